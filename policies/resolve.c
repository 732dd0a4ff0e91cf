/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Amounts become microseconds here, and only here, and each is rounded once, down.
 *
 * A share of the base or of a CPU is kept as a fraction until the period is known: in a short period it may be less than the
 * 1 ms that the kernel takes. Then the period gets longer instead of the share greater, as systemd does it
 * (cgroup_cpu_adjust_period, src/core/cgroup.c), so that an owner's small limit is not multiplied by a class's short period. */

#include "policies/resolve.h"

typedef unsigned __int128 u128;

#define PERCENT_PER_SEC_USEC UINT64_C(10000) /* one percent of a CPU in a second */
/* CPUQuota= is read back by parse_permyriad_unbounded (src/basic/percent-util.c): at most INT_MAX permyriad. */
#define SYSTEMD_PERCENT_MAX UINT64_C(21474836)

/* CPU time per period: a fraction of the period, or fixed microseconds. */
typedef struct Share {
        enum { SHARE_NONE, SHARE_UNLIMITED, SHARE_FRACTION, SHARE_FIXED } kind;
        u128 numerator, denominator;
        uint64_t usec;
} Share;

static uint64_t saturate(u128 v) {
        return v > QUOTA_MAX_USEC ? QUOTA_MAX_USEC : v < QUOTA_MIN_USEC ? QUOTA_MIN_USEC : (uint64_t) v;
}

static uint64_t period_or_default(uint64_t period_usec) {
        return period_usec == 0 ? PERIOD_DEFAULT_USEC : CLAMP_TO(period_usec, PERIOD_MIN_USEC, PERIOD_MAX_USEC);
}

static Share share_of_base(const Bandwidth *base, uint64_t percent) {
        if (base->quota_usec == QUOTA_UNLIMITED)
                return (Share) { .kind = SHARE_UNLIMITED };
        return (Share) {
                .kind = SHARE_FRACTION,
                .numerator = (u128) base->quota_usec * MIN_OF(percent, UINT64_C(1) << 32),
                .denominator = (u128) period_or_default(base->period_usec) * 100,
        };
}

static Share share_of(const Amount *a, const Bandwidth *base) {
        switch (a->kind) {
        case AMOUNT_KEEP:
                return share_of_base(base, 100);
        case AMOUNT_PERCENT_OF_BASE:
                return share_of_base(base, a->value);
        case AMOUNT_PERCENT_OF_CPU:
                return (Share) { .kind = SHARE_FRACTION, .numerator = a->value, .denominator = 100 };
        case AMOUNT_USEC:
                return (Share) { .kind = SHARE_FIXED, .usec = a->value };
        case AMOUNT_MAX:
                return (Share) { .kind = SHARE_UNLIMITED };
        case AMOUNT_UNSET:
        case AMOUNT_FULL:
        case AMOUNT_PERCENT_OF_QUOTA:
                break;
        }
        return (Share) { .kind = SHARE_NONE };
}

/* u128 has room: a numerator is below 2^96 (64 bits of quota, 32 of percent), a period below 2^20. */
static uint64_t share_to_usec(const Share *s, uint64_t period_usec) {
        if (s->kind == SHARE_UNLIMITED)
                return QUOTA_UNLIMITED;
        if (s->kind == SHARE_FIXED)
                return saturate(s->usec);
        return saturate(s->numerator * period_usec / s->denominator);
}

/* The least period, from this one on and within the kernel's bounds, that gives a share at least the kernel's 1 ms. */
static uint64_t share_lengthen_period(const Share *s, uint64_t period_usec) {
        u128 need;

        if (s->kind != SHARE_FRACTION || s->numerator == 0)
                return period_usec;
        need = (QUOTA_MIN_USEC * s->denominator + s->numerator - 1) / s->numerator;
        return need > PERIOD_MAX_USEC ? PERIOD_MAX_USEC : MAX_OF(period_usec, (uint64_t) need);
}

uint64_t resolve_burst(const Amount *burst, uint64_t quota_usec, uint64_t keep_usec) {
        if (quota_usec == QUOTA_UNLIMITED)
                return 0;
        switch (burst->kind) {
        case AMOUNT_UNSET:
        case AMOUNT_KEEP:
                return MIN_OF(keep_usec, quota_usec);
        case AMOUNT_FULL:
        case AMOUNT_MAX:
                return quota_usec;
        case AMOUNT_PERCENT_OF_QUOTA:
                return burst->value >= 100 ? quota_usec : (uint64_t) ((u128) quota_usec * burst->value / 100);
        case AMOUNT_USEC:
                return MIN_OF(burst->value, quota_usec);
        case AMOUNT_PERCENT_OF_BASE:
        case AMOUNT_PERCENT_OF_CPU:
                break;
        }
        return 0;
}

void resolve_bandwidth(const ServiceClass *c, const Bandwidth *base, BandwidthPlan *ret) {
        uint64_t period = period_or_default(c->period_usec > 0 ? c->period_usec : base->period_usec), quota, ceiling, floor;
        Share share = share_of(&c->quota, base), top = share_of(&c->ceiling, base), bottom = share_of(&c->floor, base);
        bool owner_limits = base->quota_usec != QUOTA_UNLIMITED, ceiling_stated = top.kind != SHARE_NONE;
        BandwidthPlan plan = { .burst = c->law == LAW_BURST ? (Amount) { AMOUNT_FULL, 0 } : c->burst };

        if (share.kind == SHARE_NONE) /* not stated: keep */
                share = share_of_base(base, 100);
        if (share.kind == SHARE_UNLIMITED && c->quota.kind != AMOUNT_MAX) {
                plan.start = (Bandwidth) { QUOTA_UNLIMITED, period, 0 };
                plan.floor_usec = plan.ceiling_usec = QUOTA_UNLIMITED;
                plan.unlimited = true;
                *ret = plan;
                return;
        }
        if (!ceiling_stated)
                top = owner_limits ? share_of_base(base, 100) : share;
        period = share_lengthen_period(&share, period);
        period = share_lengthen_period(&top, period);
        quota = share_to_usec(&share, period);
        ceiling = share_to_usec(&top, period);
        plan.limited_by_owner = !ceiling_stated && owner_limits && quota > ceiling;
        quota = MIN_OF(quota, ceiling);
        /* A floor relative to a base of "max" has nothing to stand on, like one that is not stated. */
        floor = bottom.kind == SHARE_NONE || bottom.kind == SHARE_UNLIMITED ? quota : share_to_usec(&bottom, period);
        floor = MIN_OF(floor, ceiling);
        quota = MAX_OF(quota, floor);

        plan.start = (Bandwidth) {
                .quota_usec = quota,
                .period_usec = period,
                .burst_usec = resolve_burst(&plan.burst, quota, base->burst_usec),
        };
        plan.floor_usec = floor;
        plan.ceiling_usec = ceiling;
        *ret = plan;
}

/* Whole percents in a quota (at most QUOTA_MAX_USEC): exact where it is what that many percents come to in this period, else
 * rounded down. */
static uint64_t quota_to_percents(uint64_t quota_usec, uint64_t period_usec, bool *ret_exact) {
        uint64_t percents = (quota_usec * 100 + period_usec - 1) / period_usec;
        bool exact = percents * period_usec / 100 == quota_usec;

        if (ret_exact)
                *ret_exact = exact;
        return exact ? percents : quota_usec * 100 / period_usec;
}

uint64_t quota_round_for_systemd(uint64_t quota_usec, uint64_t period_usec) {
        uint64_t percents, least;

        if (quota_usec == QUOTA_UNLIMITED)
                return QUOTA_UNLIMITED;
        period_usec = period_or_default(period_usec);
        /* Below 1 ms systemd would write 1 ms and lengthen the period. */
        least = (QUOTA_MIN_USEC * 100 + period_usec - 1) / period_usec;
        percents = quota_to_percents(MIN_OF(quota_usec, QUOTA_MAX_USEC), period_usec, NULL);
        percents = CLAMP_TO(percents, least, SYSTEMD_PERCENT_MAX);
        return percents * period_usec / 100;
}

uint64_t quota_to_per_sec_usec(uint64_t quota_usec, uint64_t period_usec) {
        uint64_t percents;
        bool exact;

        if (quota_usec == QUOTA_UNLIMITED)
                return USEC_INFINITY;
        period_usec = period_or_default(period_usec);
        quota_usec = MIN_OF(quota_usec, QUOTA_MAX_USEC);
        percents = quota_to_percents(quota_usec, period_usec, &exact);
        /* The quota lost the fraction of a microsecond: don't let that cost a whole percent. */
        if (exact)
                return percents * PERCENT_PER_SEC_USEC;
        return (uint64_t) ((u128) quota_usec * USEC_PER_SEC / period_usec);
}

uint64_t quota_from_per_sec_usec(uint64_t per_sec_usec, uint64_t period_usec) {
        if (per_sec_usec == USEC_INFINITY)
                return QUOTA_UNLIMITED;
        return saturate((u128) per_sec_usec * period_or_default(period_usec) / USEC_PER_SEC);
}

/* Load weights of nice -20 to 19: sched_prio_to_weight, kernel/sched/core.c. Each step is about 1.25. */
static const uint32_t nice_weights[] = {
        88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
        1024,  820,   655,   526,   423,   335,   272,   215,   172,   137,   110,  87,   70,   56,   45,   36,   29,   23,   18,   15,
};

uint64_t latency_nice_to_slice_nsec(int latency_nice, uint64_t base_slice_nsec) {
        const uint64_t least = UINT64_C(100000), most = UINT64_C(100000000); /* ns; the kernel clamps to 0.1 to 100 ms */
        uint32_t weight = nice_weights[CLAMP_TO(latency_nice, LATENCY_NICE_MIN, LATENCY_NICE_MAX) - LATENCY_NICE_MIN];
        u128 slice;

        if (latency_nice == 0 || base_slice_nsec == 0)
                return 0;
        slice = (u128) base_slice_nsec * 1024 / weight;
        slice = MIN_OF(slice, (u128) base_slice_nsec * 4);
        return slice < least ? least : slice > most ? most : (uint64_t) slice;
}
