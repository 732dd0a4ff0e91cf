/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "static" and "burst": the values stay as the class wrote them. These laws only say what they see. */

#include "policies/law-internal.h"
#include "policies/law-tuning.h"

void law_static_step(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret) {
        const LawSample *s = view->sample;

        ret->throttled_permyriad = law_window_throttled_permyriad(state);
        ret->usage_per_period_usec = law_window_use(state, view->period_usec);
        law_window_restart(state, view->now_usec);

        if (s->nr_throttled > 0)
                ret->cause = ret->usage_per_period_usec < mul_div(view->limit_usec, LAW_WELL_BELOW_PERCENT, 100) && s->has_bandwidth_loss &&
                                             s->parked_usec + s->lost_usec > 0 ?
                        LAW_CAUSE_RUNTIME_LOST : LAW_CAUSE_OWN_LIMIT;
        else if (s->ancestor_throttled)
                ret->cause = LAW_CAUSE_ANCESTOR_LIMIT;
}
