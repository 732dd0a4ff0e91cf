/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "koordlet": the CFS quota burst of Koordinator's node agent, from its published description.
 *
 * Each second: any throttling raises the quota by a fifth, an overloaded node lowers it by a fifth, between the base and three
 * times the base. On a node that is neither idle nor overloaded nothing rises. There is no decay on an idle node: what was raised stays.
 *
 * Differences to the description: the share pool is the host's busy share here, and the guards of law.c apply. */

#include "policies/law-internal.h"
#include "policies/law-tuning.h"

void law_koordlet_step(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret) {
        uint32_t busy = view->sample->host_busy_permyriad;
        uint64_t most;

        if (state->window_usec < LAW_SECOND_USEC)
                return;

        ret->throttled_permyriad = law_window_throttled_permyriad(state);
        ret->usage_per_period_usec = law_window_use(state, view->period_usec);
        bool throttled = state->window_throttled > 0;
        law_window_restart(state, view->now_usec);

        if (busy >= KOORDLET_OVERLOAD_PERMYRIAD) {
                ret->cause = LAW_CAUSE_NODE_OVERLOAD;
                if (view->limit_usec > view->base_usec) {
                        ret->changed = true;
                        ret->quota_usec = MAX_OF(mul_div(view->limit_usec, KOORDLET_LOWER_PERCENT, 100), view->base_usec);
                }
                return;
        }
        if (!throttled)
                return;

        ret->cause = LAW_CAUSE_DEMAND_ABOVE_LIMIT;
        most = mul_div(view->base_usec, KOORDLET_CEILING_PERCENT, 100);
        if (busy < KOORDLET_COOLING_PERMYRIAD && view->limit_usec < most) {
                ret->changed = true;
                ret->quota_usec = MIN_OF(mul_div(view->limit_usec, KOORDLET_RAISE_PERCENT, 100), most);
                ret->need_usec = ret->quota_usec;
        }
}
