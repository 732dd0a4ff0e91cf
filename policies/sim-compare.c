/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scores over seeds, frontiers over dials, and the ratios that say who is better. */

#include <math.h>

#include "policies/sim-compare.h"

/* Steps of about an eighth, from a fifth of the workload's base to eight times. */
static const uint32_t base_dials[] = { 20, 25, 30, 36, 43, 50, 57, 65, 74, 84, 95, 108, 123, 140, 160, 182, 207, 236, 269, 306, 349, 398, 500, 650, 800 };
/* The published range of targets and a decade around it. */
static const uint32_t captain_dials[] = { 2000, 1500, 1000, 700, 500, 350, 200, 100, 50, 20, 10 };
static const uint32_t adaptive_dials[] = { 1, 2, 3, 4 };

size_t sim_dials(LawKind law, const uint32_t **ret_dials) {
        switch (law) {
        case LAW_CAPTAIN:
                *ret_dials = captain_dials;
                return ELEMENTSOF(captain_dials);
        case LAW_ADAPTIVE:
                *ret_dials = adaptive_dials;
                return ELEMENTSOF(adaptive_dials);
        default:
                *ret_dials = base_dials;
                return ELEMENTSOF(base_dials);
        }
}

uint32_t sim_default_dial(LawKind law) {
        return law == LAW_CAPTAIN ? 200 : law == LAW_ADAPTIVE ? 2 : 100;
}

int sim_score(const SimWorkload *w, SimContender c, uint32_t dial, SimSeeds seeds, uint64_t duration_usec, SimScore *ret) {
        SimScore sum = {};
        SimHistogram reaction = {};
        LawConfig law = { .law = c.law };
        uint32_t scale = 100;
        int r;

        if (seeds.n == 0 || duration_usec == 0)
                return -EINVAL;
        if (c.burst)
                law.burst.kind = AMOUNT_FULL;
        if (c.law == LAW_CAPTAIN)
                law.targets.throttled_permyriad = dial;
        else if (c.law == LAW_ADAPTIVE)
                law.targets.strictness = dial;
        else
                scale = dial;

        r = sim_histogram_init(&reaction);
        for (uint32_t i = 0; i < seeds.n && r >= 0; i++) {
                SimOutcome o[SIM_GROUPS_MAX];
                SimSetup s;

                sim_setup_init(&s);
                s.duration_usec = duration_usec;
                s.seed = seeds.first + i;
                r = sim_workload_setup(w, &law, scale, s.seed, &s);
                if (r >= 0)
                        r = sim_run(&s, o);
                if (r >= 0) {
                        double time = (double) duration_usec;

                        sum.allocated_cpus += log(MAX_OF((double) sim_allocated_usec(&o[0]), 1.0) / time);
                        sum.used_cpus += (double) o[0].used_usec / time;
                        sum.p50_usec += log(MAX_OF((double) sim_histogram_percentile(&o[0].latency, 5000), 1.0));
                        sum.p99_usec += log(MAX_OF((double) sim_histogram_percentile(&o[0].latency, 9900), 1.0));
                        sum.throttled_share += o[0].nr_periods > 0 ? (double) o[0].nr_throttled / (double) o[0].nr_periods : 0;
                        sum.changes_per_minute += (double) o[0].n_changes * 60e6 / time;
                        sum.n_requests += o[0].n_requests;
                        sum.n_unfinished += o[0].n_unfinished;
                        sim_histogram_merge(&reaction, &o[0].reaction);
                        for (uint32_t g = 0; g < s.n_groups; g++)
                                sim_outcome_clear(&o[g]);
                }
                sim_setup_clear(&s);
        }
        if (r >= 0) {
                double n = seeds.n;

                *ret = (SimScore) {
                        .allocated_cpus = exp(sum.allocated_cpus / n),
                        .used_cpus = sum.used_cpus / n,
                        .p50_usec = exp(sum.p50_usec / n),
                        .p99_usec = exp(sum.p99_usec / n),
                        .throttled_share = sum.throttled_share / n,
                        .changes_per_minute = sum.changes_per_minute / n,
                        .reaction_p50_usec = (double) sim_histogram_percentile(&reaction, 5000),
                        .reaction_p99_usec = (double) sim_histogram_percentile(&reaction, 9900),
                        .n_requests = sum.n_requests,
                        .n_unfinished = sum.n_unfinished,
                };
        }
        sim_histogram_clear(&reaction);
        return r;
}

static int by_allocation(const void *a, const void *b) {
        const SimFrontierPoint *x = a, *y = b;

        return x->score.allocated_cpus < y->score.allocated_cpus ? -1 : x->score.allocated_cpus > y->score.allocated_cpus;
}

int sim_frontier(const SimWorkload *w, SimContender c, SimSeeds seeds, uint64_t duration_usec, SimFrontier *ret) {
        const uint32_t *dials;
        SimFrontier f = {};

        f.n = MIN_OF(sim_dials(c.law, &dials), (size_t) SIM_FRONTIER_MAX);
        for (size_t i = 0; i < f.n; i++) {
                int r = sim_score(w, c, dials[i], seeds, duration_usec, &f.points[i].score);

                if (r < 0)
                        return r;
                f.points[i].dial = dials[i];
        }
        qsort(f.points, f.n, sizeof(f.points[0]), by_allocation);
        *ret = f;
        return 0;
}

/* Where the line through two points, in logarithms, has this x. */
static double between(double x0, double y0, double x1, double y1, double x) {
        double t;

        if (x1 <= x0)
                return y1;
        t = (log(x) - log(x0)) / (log(x1) - log(x0));
        return exp(log(y0) + CLAMP_TO(t, 0.0, 1.0) * (log(y1) - log(y0)));
}

double sim_frontier_allocation_at(const SimFrontier *f, double p99_usec) {
        double best_p99 = INFINITY, best_allocation = 0;

        for (size_t i = 0; i < f->n; i++) {
                const SimScore *s = &f->points[i].score;

                if (s->p99_usec <= p99_usec)
                        return isinf(best_p99) ? s->allocated_cpus : between(s->p99_usec, s->allocated_cpus, best_p99, best_allocation, p99_usec);
                if (s->p99_usec < best_p99) {
                        best_p99 = s->p99_usec;
                        best_allocation = s->allocated_cpus;
                }
        }
        return -1;
}

double sim_frontier_p99_at(const SimFrontier *f, double allocated_cpus) {
        const SimScore *best = NULL;

        if (f->n == 0)
                return INFINITY;
        for (size_t i = 0; i < f->n; i++) {
                const SimScore *s = &f->points[i].score;

                if (s->allocated_cpus > allocated_cpus) {
                        if (!best)
                                return s->p99_usec;
                        /* On the way to a better point the best so far may be better still. */
                        return MIN_OF(best->p99_usec, between(best->allocated_cpus, best->p99_usec, s->allocated_cpus, s->p99_usec, allocated_cpus));
                }
                if (!best || s->p99_usec <= best->p99_usec)
                        best = s;
        }
        return best->p99_usec;
}

static double allocation_ratio_at_equal_p99(const SimScore *own, const SimFrontier *f) {
        double other = sim_frontier_allocation_at(f, own->p99_usec);

        if (other > 0)
                return own->allocated_cpus / other;
        return -own->allocated_cpus / f->points[f->n - 1].score.allocated_cpus;
}

int sim_verdict(const SimWorkload *w, SimContender c, uint32_t dial, SimSeeds seeds, uint64_t duration_usec, SimVerdict *ret) {
        SimVerdict v = { .workload = w };
        SimScore captain, captain_burst;
        SimFrontier *f;
        int r;

        f = calloc(4, sizeof(*f));
        if (!f)
                return -ENOMEM;
        r = sim_score(w, c, dial, seeds, duration_usec, &v.own);
        if (r >= 0)
                r = sim_score(w, (SimContender) { LAW_CAPTAIN, false }, sim_default_dial(LAW_CAPTAIN), seeds, duration_usec, &captain);
        if (r >= 0)
                r = sim_score(w, (SimContender) { LAW_CAPTAIN, true }, sim_default_dial(LAW_CAPTAIN), seeds, duration_usec, &captain_burst);
        if (r >= 0)
                r = sim_frontier(w, (SimContender) { LAW_KOORDLET, false }, seeds, duration_usec, &f[0]);
        if (r >= 0)
                r = sim_frontier(w, (SimContender) { LAW_KOORDLET, true }, seeds, duration_usec, &f[1]);
        if (r >= 0)
                r = sim_frontier(w, (SimContender) { LAW_STATIC, false }, seeds, duration_usec, &f[2]);
        if (r >= 0)
                r = sim_frontier(w, (SimContender) { LAW_BURST, true }, seeds, duration_usec, &f[3]);
        if (r >= 0) {
                v.captain_allocation = v.own.allocated_cpus / captain.allocated_cpus;
                v.captain_p99 = v.own.p99_usec / captain.p99_usec;
                v.captain_burst_allocation = v.own.allocated_cpus / captain_burst.allocated_cpus;
                v.captain_burst_p99 = v.own.p99_usec / captain_burst.p99_usec;
                v.koordlet_allocation = allocation_ratio_at_equal_p99(&v.own, &f[0]);
                v.koordlet_burst_allocation = allocation_ratio_at_equal_p99(&v.own, &f[1]);
                v.static_p99 = v.own.p99_usec / sim_frontier_p99_at(&f[2], v.own.allocated_cpus);
                v.burst_p99 = v.own.p99_usec / sim_frontier_p99_at(&f[3], v.own.allocated_cpus);
                *ret = v;
        }
        free(f);
        return r;
}

const char *sim_contender_to_string(SimContender c, char buffer[24]) {
        bool implied = c.law == LAW_BURST || c.law == LAW_ADAPTIVE;

        (void) snprintf(buffer, 24, "%s%s", law_kind_to_string(c.law), c.burst && !implied ? "+burst" : "");
        return buffer;
}

int sim_contender_from_string(const char *s, SimContender *ret) {
        SimContender c = { .burst = endswith(s, "+burst") };
        char name[24];
        int r;

        if ((size_t) snprintf(name, sizeof(name), "%.*s", (int) (strlen(s) - (c.burst ? strlen("+burst") : 0)), s) >= sizeof(name))
                return -EINVAL;
        r = law_kind_from_string(name, &c.law);
        if (r < 0)
                return r;
        /* "burst" is "static" with burst, and "adaptive" is made to have one. */
        if (c.law == LAW_BURST || c.law == LAW_ADAPTIVE)
                c.burst = true;
        *ret = c;
        return 0;
}
