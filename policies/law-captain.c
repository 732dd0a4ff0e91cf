/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "captain": the controller that Autothrottle (NSDI'24) runs for each service, from its published description.
 *
 * It holds the share r of throttled periods near a target t. Samples of 100 ms, a decision each second: above 3t the limit grows by the excess;
 * else it proposes the largest use of the last 50 samples plus a margin times their deviation, and lowers when that is clearly less. In the
 * second after a lowering it looks at every sample, and takes the lowering back with interest when throttling starts. The margin learns from r - t.
 *
 * Differences to the description: it works in units of the period that the group has, samples are the daemon's (100 ms, whatever the
 * period), and the guards of law.c (floor, ceiling, write budget) apply. */

#include "policies/law-internal.h"
#include "policies/law-tuning.h"

static uint64_t square_root(unsigned __int128 x) {
        unsigned __int128 r = 0, bit = (unsigned __int128) 1 << 126;

        while (bit > x)
                bit >>= 2;
        for (; bit > 0; bit >>= 2)
                if (x >= r + bit) {
                        x -= r + bit;
                        r = (r >> 1) + bit;
                } else
                        r >>= 1;
        return (uint64_t) r;
}

/* Largest use and deviation over the newest samples. */
static void history_summary(const LawState *state, uint64_t period_usec, uint64_t *ret_max, uint64_t *ret_deviation) {
        uint32_t n = MIN_OF(state->history_count, (uint32_t) CAPTAIN_SAMPLES);
        unsigned __int128 sum = 0, squares = 0;
        uint64_t max = 0, mean;

        for (uint32_t i = 0; i < n; i++) {
                uint64_t use = law_history_use(state, i, period_usec);

                max = MAX_OF(max, use);
                sum += use;
        }
        mean = n == 0 ? 0 : (uint64_t) (sum / n);
        for (uint32_t i = 0; i < n; i++) {
                uint64_t use = law_history_use(state, i, period_usec);
                uint64_t difference = MIN_OF(use > mean ? use - mean : mean - use, UINT64_C(1) << 60);

                squares += (unsigned __int128) difference * difference;
        }
        *ret_max = max;
        *ret_deviation = n == 0 ? 0 : square_root(squares / n);
}

static void learn_margin(LawState *state, uint32_t throttled_permyriad, uint32_t target_permyriad) {
        int64_t margin = state->margin_permyriad + (int64_t) throttled_permyriad - (int64_t) target_permyriad;

        state->margin_permyriad = MAX_OF(margin, INT64_C(0));
}

/* Within the second after a lowering: throttled periods so far, as a share of a whole second's. */
static bool rolls_back(LawState *state, const LawView *view, uint32_t target, LawDecision *ret) {
        uint64_t per_second = MAX_OF(USEC_PER_SEC / view->sample->live.period_usec, UINT64_C(1));
        uint64_t r;

        if (state->previous_quota_usec == 0 || law_since(view->now_usec, state->last_lower_usec) > USEC_PER_SEC)
                return false;
        r = MIN_OF(mul_div(state->window_throttled, 10000, per_second), UINT64_C(10000));
        if (r <= CAPTAIN_ALPHA * (uint64_t) target)
                return false;

        ret->changed = true;
        ret->cause = LAW_CAUSE_ROLLBACK;
        ret->quota_usec = add_saturating(state->previous_quota_usec, sub_floored(state->previous_quota_usec, view->limit_usec));
        ret->throttled_permyriad = (uint32_t) r;
        ret->usage_per_period_usec = law_window_use(state, view->period_usec);
        ret->need_usec = ret->quota_usec;
        learn_margin(state, (uint32_t) r, target);
        law_window_restart(state, view->now_usec);
        return true;
}

void law_captain_step(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret) {
        uint32_t target = config->targets.throttled_permyriad ?: CAPTAIN_TARGET_PERMYRIAD;
        uint64_t act_above = CAPTAIN_ALPHA * (uint64_t) target;
        uint64_t max_use, deviation;
        uint32_t r;

        if (rolls_back(state, view, target, ret))
                return;
        if (state->window_usec < LAW_SECOND_USEC)
                return;

        r = law_window_throttled_permyriad(state);
        ret->throttled_permyriad = r;
        ret->usage_per_period_usec = law_window_use(state, view->period_usec);
        law_window_restart(state, view->now_usec);
        learn_margin(state, r, target);

        if (r > act_above) {
                ret->changed = true;
                ret->cause = LAW_CAUSE_DEMAND_ABOVE_LIMIT;
                ret->quota_usec = mul_div(view->limit_usec, 10000 + (r - act_above), 10000);
                ret->need_usec = ret->quota_usec;
                return;
        }

        history_summary(state, view->period_usec, &max_use, &deviation);
        ret->need_usec = add_saturating(max_use, mul_div(deviation, (uint64_t) state->margin_permyriad, 10000));
        if (ret->need_usec <= mul_div(view->limit_usec, CAPTAIN_LOWER_BELOW_PERCENT, 100)) {
                ret->changed = true;
                ret->cause = LAW_CAUSE_OVER_PROVISIONED;
                ret->quota_usec = MAX_OF(ret->need_usec, mul_div(view->limit_usec, CAPTAIN_LOWER_LEAST_PERCENT, 100));
        }
}
