/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "adaptive": the default law. It asks why a group waits before it does anything, and gives quota only for what quota can cure.
 *
 * The quota that a demand needs is its arrival curve: if a group used U in k consecutive periods, quota q and burst b let it through when
 * k q + b >= U. The largest such q over all k up to five seconds is the need of this moment; each second remembers its largest need, and the law keeps what the
 * last few seconds needed. Throttling is answered at the first sample that shows it, also inside a throttled period, where the kernel's counters still
 * stand: pressure without progress and an own estimate of the token bucket tell. A raise is sized by what the group used while it could run.
 *
 * Going down is slow, going up is fast. A raise soon after a step down is a regret: then the law remembers twice as long. How often it may
 * double is the class's strictness.
 *
 * Where something else makes it wait, the quota stays: an ancestor's limit, runtime that lies unused in per-CPU slices, other groups on the
 * CPUs. For the last it asks for a shorter slice (latency nice), and groups of lower priority give way. */

#include "policies/law-internal.h"
#include "policies/law-tuning.h"

/* ---- the arrival curve ---- */

/* Least quota that lets this use through in this time, with the burst that the class's rule gives to a quota. */
static uint64_t quota_for(const LawConfig *config, uint64_t used_usec, uint64_t elapsed_usec, uint64_t period_usec) {
        /* Less than a period still has the quota of one. */
        uint64_t periods_milli = MAX_OF(mul_div(elapsed_usec, 1000, period_usec), UINT64_C(1000));
        uint64_t with_full_burst = mul_div(used_usec, 1000, add_saturating(periods_milli, 1000));
        uint64_t burst;

        switch (config->burst.kind) {
        case AMOUNT_FULL:
                return with_full_burst;
        case AMOUNT_PERCENT_OF_QUOTA:
                return mul_div(used_usec, 1000, add_saturating(periods_milli, MIN_OF(config->burst.value, UINT64_C(100)) * 10));
        default:
                /* A fixed burst, but never more than the quota. */
                burst = resolve_burst(&config->burst, UINT64_C(1) << 40, config->base.burst_usec);
                return MAX_OF(with_full_burst, mul_div(sub_floored(used_usec, burst), 1000, periods_milli));
        }
}

/* The largest need of any stretch of time that ends now. */
static uint64_t need_now(const LawConfig *config, const LawState *state, const LawView *view) {
        uint64_t used = 0, elapsed = 0, need = 0;

        for (uint32_t age = 0; age < state->history_count && elapsed < ADAPTIVE_HORIZON_USEC; age++) {
                uint32_t i = (state->history_next + LAW_HISTORY - 1 - age) % LAW_HISTORY;

                used = add_saturating(used, state->history_usage_usec[i]);
                elapsed = add_saturating(elapsed, state->history_window_usec[i]);
                need = MAX_OF(need, quota_for(config, used, elapsed, view->period_usec));
        }
        return need;
}

static void remember_need(LawState *state, uint64_t need_usec) {
        uint64_t *slot = &state->need_usec[state->need_second % LAW_NEEDS];

        *slot = MAX_OF(*slot, need_usec);
}

/* What the seconds that it still remembers needed. */
static uint64_t remembered_need(const LawState *state) {
        uint64_t seconds = MIN_OF((uint64_t) ADAPTIVE_MEMORY_SECONDS << state->regret_level, (uint64_t) LAW_NEEDS);
        uint64_t need = 0;

        for (uint64_t k = 0; k < seconds; k++)
                need = MAX_OF(need, state->need_usec[(state->need_second + LAW_NEEDS - k) % LAW_NEEDS]);
        return need;
}

/* ---- what each sample teaches ---- */

static int64_t bounded(uint64_t usec) {
        return (int64_t) MIN_OF(usec, UINT64_C(1) << 60);
}

void law_adaptive_observe(const LawConfig *config, LawState *state, const LawView *view) {
        const LawSample *s = view->sample;
        uint64_t second = view->now_usec / USEC_PER_SEC;
        int64_t full = bounded(add_saturating(view->limit_usec, view->burst_usec));
        int64_t refill = bounded(mul_div(view->limit_usec, s->window_usec, view->period_usec));
        uint32_t share = s->nr_throttled > 0 ? 10000 : 0;

        for (uint64_t k = state->need_second + 1; k <= second && k <= state->need_second + LAW_NEEDS; k++)
                state->need_usec[k % LAW_NEEDS] = 0;
        state->need_second = second;
        remember_need(state, need_now(config, state, view));

        state->bucket_usec = MAX_OF(MIN_OF(state->bucket_usec + refill, full) - bounded(s->usage_usec), -full);
        state->throttled_share_permyriad = (state->throttled_share_permyriad * (ADAPTIVE_SHARE_SAMPLES - 1) + share) / ADAPTIVE_SHARE_SAMPLES;
}

/* What one sample looks like to the law. */
typedef struct Signs {
        bool throttled;   /* a period ended throttled */
        bool stalled;     /* threads waited for a CPU */
        bool dry;         /* stalled, and the bucket must be empty: throttled right now */
        bool lost;        /* throttled with runtime left */
} Signs;

/* A period that was throttled lies within the samples of the last period and this one. If they used less than it was allowed, runtime lay elsewhere. */
static bool runtime_is_lost(const LawState *state, const LawView *view) {
        const LawSample *s = view->sample;
        uint64_t span = add_saturating(s->live.period_usec, s->window_usec), elapsed = 0, used = 0, allowed;

        if (law_since(view->now_usec, state->last_write_usec) <= span)
                return false;
        for (uint32_t age = 0; age < state->history_count && elapsed < span; age++) {
                uint32_t i = (state->history_next + LAW_HISTORY - 1 - age) % LAW_HISTORY;

                used = add_saturating(used, state->history_usage_usec[i]);
                elapsed = add_saturating(elapsed, state->history_window_usec[i]);
        }
        allowed = mul_div(s->live.quota_usec, s->nr_throttled, 1);
        if (s->has_bandwidth_loss && add_saturating(s->parked_usec, s->lost_usec) >= mul_div(allowed, 100 - LAW_WELL_BELOW_PERCENT, 100))
                return true;
        return elapsed >= span && used < mul_div(allowed, LAW_WELL_BELOW_PERCENT, 100);
}

static Signs read_signs(const LawState *state, const LawView *view) {
        const LawSample *s = view->sample;
        Signs signs = { .throttled = s->nr_throttled > 0 };

        signs.stalled = s->has_pressure && s->some_usec >= mul_div(s->window_usec, LAW_STALLED_PERMYRIAD, 10000);
        signs.dry = signs.stalled && !state->witness && state->bucket_usec < bounded(mul_div(view->limit_usec, ADAPTIVE_DRY_PERCENT, 100));
        signs.lost = signs.throttled && runtime_is_lost(state, view);
        return signs;
}

/* ---- quota ---- */

static uint32_t most_regrets(const LawConfig *config) {
        uint32_t strictness = config->targets.strictness ?: ADAPTIVE_STRICTNESS;

        return MIN_OF(strictness, (uint32_t) ADAPTIVE_STRICTNESS_MAX) - 1;
}

/* What a throttled group would have used: as much per time as while it ran. Without pressure, which knows when nobody ran: a part of what its CPUs
 * stood still for (they are summed, and not all of them would have run to the end). */
static uint64_t demand_unthrottled(const LawView *view) {
        const LawSample *s = view->sample;
        uint64_t ran;

        if (!s->has_pressure)
                return add_saturating(view->use_usec, mul_div(mul_div(s->throttled_usec, view->period_usec, s->window_usec), ADAPTIVE_UNMET_PERCENT, 100));
        if (s->full_usec == 0)
                return view->use_usec;
        ran = MAX_OF(sub_floored(s->window_usec, s->full_usec), mul_div(s->window_usec, ADAPTIVE_RAN_PERCENT, 100));
        return mul_div(mul_div(s->usage_usec, view->period_usec, MAX_OF(ran, UINT64_C(1))), ADAPTIVE_DEMAND_PERCENT, 100);
}

static void propose(LawState *state, const LawView *view, LawDecision *ret, LawCause cause, uint64_t quota_usec, uint64_t need_usec) {
        ret->changed = true;
        ret->cause = cause;
        ret->quota_usec = quota_usec;
        ret->need_usec = need_usec;
        law_window_restart(state, view->now_usec);
}

/* Throttled, or about to be: up to what the demand needs. True when there is nothing else to think about. */
static bool raise(const LawConfig *config, LawState *state, const LawView *view, const Signs *signs, uint64_t target, LawDecision *ret) {
        uint64_t want = MAX_OF(MAX_OF(target, demand_unthrottled(view)), mul_div(view->limit_usec, ADAPTIVE_RAISE_PERCENT, 100));
        LawCause cause = LAW_CAUSE_DEMAND_ABOVE_LIMIT;

        if (!signs->throttled && !signs->dry)
                return false;
        if (config->targets.throttled_permyriad > 0 && state->throttled_share_permyriad <= config->targets.throttled_permyriad)
                return false;
        /* The kernel counts a throttled period when it is over: after a raise it reports what the raise has already answered. */
        if (!signs->dry && law_since(view->now_usec, state->last_raise_usec) <= ADAPTIVE_ANSWERED_USEC)
                return false;
        if (view->limit_usec >= view->ceiling_usec) {
                ret->cause = LAW_CAUSE_OWN_LIMIT;
                ret->hold = config->may_raise ? LAW_HOLD_CEILING : LAW_HOLD_NO_RAISE;
                ret->need_usec = want;
                return true;
        }

        if (law_since(view->now_usec, state->last_lower_usec) < ADAPTIVE_REGRET_WITHIN_USEC && state->previous_quota_usec > 0) {
                state->regret_level = MIN_OF(state->regret_level + 1, most_regrets(config));
                state->regret_until_usec = view->now_usec + (ADAPTIVE_REGRET_FORGET_USEC << state->regret_level);
                want = MAX_OF(want, mul_div(state->previous_quota_usec, ADAPTIVE_ROLLBACK_PERCENT, 100));
                cause = LAW_CAUSE_ROLLBACK;
        }
        /* Where a sample is longer than a period, bursts within it leave no other trace than that this limit did not do. */
        if (view->sample->window_usec >= 2 * view->sample->live.period_usec)
                remember_need(state, mul_div(MIN_OF(want, add_saturating(view->limit_usec, view->limit_usec)), ADAPTIVE_EVIDENCE_PERCENT, 100));
        propose(state, view, ret, cause, want, want);
        return true;
}

static void lower(LawState *state, const LawView *view, uint64_t target, LawDecision *ret) {
        if (target > mul_div(view->limit_usec, ADAPTIVE_LOWER_BELOW_PERCENT, 100) || view->limit_usec <= view->floor_usec)
                return;
        if (law_since(view->now_usec, state->last_throttled_usec) < ADAPTIVE_CALM_USEC ||
            law_since(view->now_usec, state->last_write_usec) < ADAPTIVE_LOWER_EVERY_USEC)
                return;
        propose(state, view, ret, target == 0 ? LAW_CAUSE_QUIET : LAW_CAUSE_OVER_PROVISIONED,
                target, target);
}

/* A group of a higher priority waits for CPUs: down by a part each second, to the floor. Afterwards back in parts, to the base or to
 * what it needs, whichever is less. */
static bool give_way(const LawConfig *config, LawState *state, const LawView *view, uint64_t target, LawDecision *ret) {
        const LawSample *s = view->sample;
        uint64_t back_to = config->may_raise ? MIN_OF(target, view->base_usec) : view->base_usec;
        bool due = law_since(view->now_usec, state->last_write_usec) >= ADAPTIVE_GIVE_EVERY_USEC;

        if (s->contention_above) {
                ret->cause = LAW_CAUSE_GIVE_WAY;
                state->gave_way_usec = view->now_usec;
                if (view->limit_usec <= view->floor_usec)
                        ret->hold = LAW_HOLD_FLOOR;
                else if (due)
                        propose(state, view, ret, LAW_CAUSE_GIVE_WAY, mul_div(view->limit_usec, ADAPTIVE_GIVE_PERCENT, 100), 0);
                return true;
        }
        if (state->gave_way_usec == 0)
                return false;
        if (view->limit_usec >= back_to) {
                state->gave_way_usec = 0;
                return false;
        }
        if (due && law_since(view->now_usec, state->gave_way_usec) >= ADAPTIVE_TAKE_BACK_AFTER_USEC)
                propose(state, view, ret, LAW_CAUSE_QUIET,
                        MIN_OF(back_to, view->limit_usec + mul_div(view->base_usec, ADAPTIVE_TAKE_BACK_PERCENT, 100)), back_to);
        return true;
}

/* ---- latency nice ---- */

/* Towards -20 while it waits for CPUs that others use, in steps; back to the class's own value when that is over. */
static void steer_latency(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret) {
        if (!config->has_latency_nice || !config->may_raise)
                return;
        if (state->witness) {
                state->contended_usec = view->now_usec;
                ret->cause = LAW_CAUSE_CONTENTION;
                if (state->latency_nice > LATENCY_NICE_MIN && law_since(view->now_usec, state->latency_since_usec) >= ADAPTIVE_LATENCY_EVERY_USEC) {
                        ret->latency_nice = MAX_OF(state->latency_nice - ADAPTIVE_LATENCY_STEP, LATENCY_NICE_MIN);
                        ret->latency_nice_changed = true;
                }
        } else if (state->latency_nice < config->latency_nice && law_since(view->now_usec, state->contended_usec) >= ADAPTIVE_LATENCY_BACK_USEC &&
                   law_since(view->now_usec, state->latency_since_usec) >= ADAPTIVE_LATENCY_BACK_USEC) {
                ret->cause = LAW_CAUSE_QUIET;
                ret->latency_nice = MIN_OF(state->latency_nice + ADAPTIVE_LATENCY_STEP, config->latency_nice);
                ret->latency_nice_changed = true;
        }
}

/* ---- the table of causes, first things first ---- */

static void forget_regrets(LawState *state, const LawView *view) {
        if (state->regret_level > 0 && view->now_usec >= state->regret_until_usec) {
                state->regret_level--;
                state->regret_until_usec = view->now_usec + (ADAPTIVE_REGRET_FORGET_USEC << state->regret_level);
        }
}

void law_adaptive_step(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret) {
        const LawSample *s = view->sample;
        Signs signs = read_signs(state, view);
        uint64_t need = remembered_need(state);
        uint64_t target = mul_div(need, ADAPTIVE_HEADROOM_PERCENT, 100);

        ret->throttled_permyriad = law_window_throttled_permyriad(state);
        ret->usage_per_period_usec = view->use_usec;
        ret->need_usec = target;
        forget_regrets(state, view);

        if (s->ancestor_throttled) {
                ret->cause = LAW_CAUSE_ANCESTOR_LIMIT;
                return;
        }
        if (give_way(config, state, view, target, ret))
                return;
        if (signs.lost) {
                ret->cause = LAW_CAUSE_RUNTIME_LOST;
                return;
        }
        if (raise(config, state, view, &signs, target, ret))
                return;
        /* Before the kernel throttles: the stretch of time that ends now has used up what quota and burst let through. */
        if (need > mul_div(view->limit_usec, ADAPTIVE_EARLY_PERCENT, 100) && view->limit_usec < view->ceiling_usec) {
                propose(state, view, ret, LAW_CAUSE_DEMAND_ABOVE_LIMIT, target, target);
                return;
        }

        if (s->has_force_idle && s->force_idle_usec >= mul_div(s->window_usec, LAW_FORCE_IDLE_PERMYRIAD, 10000))
                ret->cause = LAW_CAUSE_FORCE_IDLE;
        steer_latency(config, state, view, ret);
        /* A class that may not rise keeps its base: it would have no way back but by steps. */
        if (config->may_raise || view->limit_usec > view->base_usec)
                lower(state, view, target, ret);
}
