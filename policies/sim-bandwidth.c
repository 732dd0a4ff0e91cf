/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's rules, one function each: assign_cfs_rq_runtime, return_cfs_rq_runtime, do_sched_cfs_period_timer,
 * do_sched_cfs_slack_timer, distribute_cfs_runtime, tg_set_cfs_bandwidth. */

#include "policies/sim-bandwidth.h"

/* cfs_bandwidth_slack_period: returned runtime is handed out this much later. */
#define SLACK_PERIOD_USEC (5 * USEC_PER_MSEC)
/* min_bandwidth_expiration: not so shortly before the period timer. */
#define SLACK_MIN_EXPIRATION_USEC (2 * USEC_PER_MSEC)

void sim_bandwidth_init(SimBandwidth *b, uint32_t n_cpus, uint64_t slice_usec, uint64_t keep_usec, const Bandwidth *set, uint64_t phase_usec) {
        *b = (SimBandwidth) {
                .n_cpus = n_cpus,
                .slice_usec = slice_usec,
                .keep_usec = keep_usec,
                .set = *set,
                .timer_usec = phase_usec,
                .slack_usec = USEC_INFINITY,
        };
        if (sim_bandwidth_is_limited(b))
                b->pool_usec = b->snapshot_usec = (int64_t) set->quota_usec;
}

/* start_cfs_bandwidth: the expiry moves on by whole periods. */
static void start_timer(SimBandwidth *b, uint64_t now_usec) {
        if (b->active)
                return;
        b->active = true;
        if (b->timer_usec <= now_usec)
                b->timer_usec += ((now_usec - b->timer_usec) / b->set.period_usec + 1) * b->set.period_usec;
}

/* __refill_cfs_bandwidth_runtime */
static void refill(SimBandwidth *b) {
        int64_t over, most = (int64_t) (b->set.quota_usec + b->set.burst_usec);

        b->pool_usec += (int64_t) b->set.quota_usec;
        over = b->snapshot_usec - b->pool_usec;
        if (over > 0) {
                b->burst_usec += (uint64_t) over;
                b->nr_bursts++;
        }
        if (b->pool_usec > most)
                b->pool_usec = most;
        b->snapshot_usec = b->pool_usec;
}

static bool assign(SimBandwidth *b, uint32_t cpu, uint64_t target_usec, uint64_t now_usec) {
        SimBandwidthLocal *l = &b->local[cpu];
        int64_t amount = (int64_t) target_usec - l->remaining_usec;

        start_timer(b, now_usec);
        if (b->pool_usec > 0) {
                amount = MIN_OF(amount, b->pool_usec);
                b->pool_usec -= amount;
                l->remaining_usec += amount;
                b->idle = false;
        }
        return l->remaining_usec > 0;
}

static bool get(SimBandwidth *b, uint32_t cpu, uint64_t target_usec, uint64_t now_usec) {
        SimBandwidthLocal *l = &b->local[cpu];

        if (!sim_bandwidth_is_limited(b))
                return true;
        if (l->throttled)
                return false;
        if (l->remaining_usec > 0 || assign(b, cpu, target_usec, now_usec))
                return true;
        l->throttled = true;
        l->throttled_since_usec = now_usec;
        b->throttled_cpus[b->n_throttled_cpus++] = cpu;
        return false;
}

bool sim_bandwidth_demand(SimBandwidth *b, uint32_t cpu, uint64_t now_usec) {
        return get(b, cpu, b->slice_usec, now_usec);
}

bool sim_bandwidth_pick(SimBandwidth *b, uint32_t cpu, uint64_t now_usec) {
        return get(b, cpu, 1, now_usec);
}

void sim_bandwidth_return(SimBandwidth *b, uint32_t cpu, uint64_t now_usec) {
        SimBandwidthLocal *l = &b->local[cpu];
        int64_t slack = l->remaining_usec - (int64_t) b->keep_usec;

        if (!sim_bandwidth_is_limited(b) || slack <= 0)
                return;
        l->remaining_usec -= slack;
        b->pool_usec += slack;
        if (b->pool_usec > (int64_t) b->slice_usec && b->n_throttled_cpus > 0 && b->slack_usec == USEC_INFINITY &&
            b->timer_usec > now_usec + SLACK_MIN_EXPIRATION_USEC + SLACK_PERIOD_USEC)
                b->slack_usec = now_usec + SLACK_PERIOD_USEC;
}

static void unthrottle(SimBandwidth *b, uint32_t cpu, uint64_t now_usec) {
        b->local[cpu].throttled = false;
        b->throttled_usec += now_usec - b->local[cpu].throttled_since_usec;
}

/* distribute_cfs_runtime: pays each throttled CPU's debt and a little more; the rest it must ask for itself. */
static uint32_t distribute(SimBandwidth *b, uint64_t now_usec, uint32_t unthrottled[SIM_CPUS_MAX]) {
        uint32_t n = 0, left = 0;

        for (uint32_t i = 0; i < b->n_throttled_cpus; i++) {
                uint32_t cpu = b->throttled_cpus[i];
                SimBandwidthLocal *l = &b->local[cpu];

                if (b->pool_usec > 0) {
                        int64_t amount = MIN_OF(1 - l->remaining_usec, b->pool_usec);

                        b->pool_usec -= amount;
                        l->remaining_usec += amount;
                }
                if (l->remaining_usec > 0) {
                        unthrottle(b, cpu, now_usec);
                        unthrottled[n++] = cpu;
                } else
                        b->throttled_cpus[left++] = cpu;
        }
        b->n_throttled_cpus = left;
        return n;
}

uint32_t sim_bandwidth_period_timer(SimBandwidth *b, uint64_t now_usec, uint32_t unthrottled[SIM_CPUS_MAX]) {
        bool throttled = b->n_throttled_cpus > 0;

        b->nr_periods++;
        refill(b); /* also when idle: an idle period still saves for the burst */
        if (b->idle && !throttled) {
                b->active = false;
                return 0;
        }
        b->timer_usec += b->set.period_usec;
        if (!throttled) {
                b->idle = true;
                return 0;
        }
        b->nr_throttled++;
        b->idle = false;
        return distribute(b, now_usec, unthrottled);
}

uint32_t sim_bandwidth_slack_timer(SimBandwidth *b, uint64_t now_usec, uint32_t unthrottled[SIM_CPUS_MAX]) {
        b->slack_usec = USEC_INFINITY;
        if (b->pool_usec <= (int64_t) b->slice_usec || b->timer_usec < now_usec + SLACK_MIN_EXPIRATION_USEC)
                return 0;
        return distribute(b, now_usec, unthrottled);
}

uint32_t sim_bandwidth_write(SimBandwidth *b, const Bandwidth *set, uint64_t now_usec, uint32_t unthrottled[SIM_CPUS_MAX]) {
        int64_t before = b->pool_usec, gained;
        uint32_t n = b->n_throttled_cpus;

        b->set = *set;
        if (sim_bandwidth_is_limited(b)) {
                refill(b);
                start_timer(b, now_usec);
        }
        gained = b->pool_usec - before;
        for (uint32_t cpu = 0; cpu < b->n_cpus; cpu++) {
                gained -= b->local[cpu].remaining_usec;
                b->local[cpu].remaining_usec = 0;
        }
        if (gained > 0)
                b->granted_usec += (uint64_t) gained;

        for (uint32_t i = 0; i < n; i++) {
                unthrottled[i] = b->throttled_cpus[i];
                unthrottle(b, unthrottled[i], now_usec);
        }
        b->n_throttled_cpus = 0;
        return n;
}

uint64_t sim_bandwidth_throttled_now(const SimBandwidth *b, uint64_t now_usec) {
        uint64_t sum = b->throttled_usec;

        for (uint32_t i = 0; i < b->n_throttled_cpus; i++)
                sum += now_usec - b->local[b->throttled_cpus[i]].throttled_since_usec;
        return sum;
}
