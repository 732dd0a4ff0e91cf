/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* What the laws share among themselves: one view of a sample, in the units of the base period, and a little arithmetic.
 *
 * A law only proposes. law.c alone turns a proposal into a decision, so that no law can step over a guard. */

#include "policies/law.h"

/* A sample as a law sees it: every amount is CPU time in microseconds per period of config->base. */
typedef struct LawView {
        uint64_t now_usec;
        uint64_t period_usec;      /* of the base */
        uint64_t limit_usec;       /* quota in force */
        uint64_t burst_usec;       /* burst in force */
        uint64_t floor_usec;
        uint64_t ceiling_usec;     /* the base for a class that may not raise */
        uint64_t base_usec;
        uint64_t use_usec;         /* usage of this sample */
        const LawSample *sample;
} LawView;

/* A proposal is a LawDecision whose quota is per base period; the burst is added by law.c. */
void law_static_step(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret);
void law_captain_step(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret);
void law_koordlet_step(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret);
/* Looks at every sample, also while a write is in flight; proposes when asked to. */
void law_adaptive_observe(const LawConfig *config, LawState *state, const LawView *view);
void law_adaptive_step(const LawConfig *config, LawState *state, const LawView *view, LawDecision *ret);

/* a * b / c rounded down; saturates at UINT64_MAX; c must not be 0. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c) {
        unsigned __int128 r;
        uint64_t product;

        if (!__builtin_mul_overflow(a, b, &product)) /* nearly always, and much faster */
                return product / c;
        r = (unsigned __int128) a * b / c;
        return r > UINT64_MAX ? UINT64_MAX : (uint64_t) r;
}

static inline uint64_t add_saturating(uint64_t a, uint64_t b) {
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t sub_floored(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}

/* Time since a moment that may be 0 (never): then as long ago as can be. */
static inline uint64_t law_since(uint64_t now_usec, uint64_t then_usec) {
        return then_usec == 0 ? USEC_INFINITY : sub_floored(now_usec, then_usec);
}

/* Throttled periods of all periods in the window since the last decision, 1/10000. */
uint32_t law_window_throttled_permyriad(const LawState *state);
/* Usage per base period in that window. */
uint64_t law_window_use(const LawState *state, uint64_t period_usec);
/* Starts a new window and notes the time of the decision. */
void law_window_restart(LawState *state, uint64_t now_usec);
/* Usage per base period of the sample that is age samples old (0 is the newest; age < history_count). */
uint64_t law_history_use(const LawState *state, uint32_t age, uint64_t period_usec);
