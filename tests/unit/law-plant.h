/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* What the tests of the laws share: random numbers with a seed, a config, and a small plant that a law can steer. */

#include "policies/law.h"
#include "policies/law-tuning.h"

#define MS UINT64_C(1000)
#define SEC USEC_PER_SEC

static inline uint64_t next_random(uint64_t *seed) {
        uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static inline uint64_t below(uint64_t *seed, uint64_t n) {
        return next_random(seed) % n;
}

static inline LawConfig config_of(LawKind law, uint64_t base, uint64_t floor, uint64_t ceiling) {
        return (LawConfig) {
                .law = law,
                .base = { .quota_usec = base, .period_usec = 100 * MS },
                .floor_usec = floor,
                .ceiling_usec = ceiling,
                .burst = { .kind = AMOUNT_FULL },
                .may_raise = true,
                .has_latency_nice = true,
                .n_cpus = 4,
        };
}

/* ---- a small plant: work queues up, a period spends at most the quota and what the bucket holds ---- */

typedef struct Plant {
        LawConfig config;
        LawState state;
        LawDecision decision;
        Bandwidth live;
        uint64_t now_usec, backlog_usec, tokens_usec;
        unsigned writes;
        bool host_busy;
} Plant;

static inline void plant_init(Plant *p, const LawConfig *config) {
        *p = (Plant) { .config = *config, .now_usec = SEC };
        law_start(config, &p->live);
        law_reset(config, &p->state);
}

static inline LawSample plant_run(Plant *p, uint64_t demand) {
        LawSample s = {
                .valid = true,
                .window_usec = p->live.period_usec,
                .nr_periods = 1,
                .live = p->live,
                .host_busy_permyriad = p->host_busy ? 9000 : 1000,
        };

        p->backlog_usec += demand;
        p->tokens_usec = MIN_OF(p->tokens_usec + p->live.quota_usec, p->live.quota_usec + p->live.burst_usec);
        s.usage_usec = MIN_OF(p->backlog_usec, p->tokens_usec);
        p->backlog_usec -= s.usage_usec;
        p->tokens_usec -= s.usage_usec;
        if (p->backlog_usec > 0) {
                s.nr_throttled = 1;
                s.throttled_usec = s.window_usec / 2;
        }
        p->now_usec += s.window_usec;
        s.now_usec = p->now_usec;
        return s;
}

static inline void plant_step(Plant *p, uint64_t demand) {
        LawSample s = plant_run(p, demand);

        law_step(&p->config, &p->state, &s, &p->decision);
        if (p->decision.changed) {
                p->live.quota_usec = p->decision.quota_usec;
                p->live.burst_usec = p->decision.burst_usec;
                p->writes++;
        }
}
