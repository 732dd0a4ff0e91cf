/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Comparing laws fairly: over several seeds, as ratios, and by frontiers (what a law reaches over all settings of its one dial), so that
 * no law wins by the luck of one setting. */

#include "policies/sim-workload.h"

/* A law as a contender: by itself as published, or with burst = quota ("burst" and "adaptive" always have it). */
typedef struct SimContender {
        LawKind law;
        bool burst;
} SimContender;

typedef struct SimSeeds {
        uint64_t first;
        uint32_t n;
} SimSeeds;

/* Means over seeds: geometric for what is compared as a ratio (allocation, latency), else plain. CPUs are CPU time over time. */
typedef struct SimScore {
        double allocated_cpus, used_cpus;
        double p50_usec, p99_usec;
        double throttled_share;        /* of periods, 0..1 */
        double changes_per_minute;
        double reaction_p50_usec, reaction_p99_usec; /* over all seeds; 0: never had to react */
        uint64_t n_requests, n_unfinished;
} SimScore;

/* The dial of a law, from lean to lavish. static, burst, koordlet: the base in percent of the workload's own; captain: its target in permyriad; adaptive:
 * strictness. Returns the number of settings; *ret_dials are constant. */
size_t sim_dials(LawKind law, const uint32_t **ret_dials);
/* The setting that a law has where nobody turns the dial. */
uint32_t sim_default_dial(LawKind law);

/* Runs one contender on a workload. 0 or negative errno. */
int sim_score(const SimWorkload *w, SimContender c, uint32_t dial, SimSeeds seeds, uint64_t duration_usec, SimScore *ret);

#define SIM_FRONTIER_MAX 32

typedef struct SimFrontierPoint {
        uint32_t dial;
        SimScore score;
} SimFrontierPoint;

typedef struct SimFrontier {
        SimFrontierPoint points[SIM_FRONTIER_MAX]; /* by allocation, least first */
        size_t n;
} SimFrontier;

int sim_frontier(const SimWorkload *w, SimContender c, SimSeeds seeds, uint64_t duration_usec, SimFrontier *ret);
/* Least allocation at which a law reaches this p99 or better, between points by the logarithm; negative: it never does. */
double sim_frontier_allocation_at(const SimFrontier *f, double p99_usec);
/* Best p99 that a law reaches with at most this allocation; that of its leanest point where even that takes more. */
double sim_frontier_p99_at(const SimFrontier *f, double allocated_cpus);

/* One law against the others on one workload, as ratios; below 1 the law is better. */
typedef struct SimVerdict {
        const SimWorkload *workload;
        SimScore own;
        double captain_allocation, captain_p99;              /* captain at its own target */
        double captain_burst_allocation, captain_burst_p99;
        double koordlet_allocation;                          /* at equal p99; negative: koordlet never reaches it, then this is minus the ratio to its most */
        double koordlet_burst_allocation;
        double static_p99;                                   /* at equal allocation */
        double burst_p99;
} SimVerdict;

int sim_verdict(const SimWorkload *w, SimContender c, uint32_t dial, SimSeeds seeds, uint64_t duration_usec, SimVerdict *ret);

/* "captain", "captain+burst". buffer of at least 24 bytes. */
const char *sim_contender_to_string(SimContender c, char buffer[24]);
int sim_contender_from_string(const char *s, SimContender *ret);
