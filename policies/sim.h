/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The simulator: a host with a few CPUs, groups of worker threads under CFS bandwidth control, requests that arrive when they arrive, and the very
 * control laws of the daemon in a loop around it. Pure and deterministic: the same setup gives the same outcome.
 *
 * What is modelled: the pool, slices, timers and writes of CFS bandwidth (sim-bandwidth.h); accounting at the scheduler's tick, so that a group overruns as in the
 * kernel; one run queue a CPU, wake-up on the last CPU or an idle one, stealing by idle CPUs, turns of one slice, a shorter slice preempts a longer
 * one; a daemon that samples every 100 ms and whose writes take a moment. What is not: memory, caches, system time, interrupts, nested limits. */

#include "policies/law.h"
#include "policies/sim-bandwidth.h"
#include "policies/sim-histogram.h"

#define SIM_GROUPS_MAX 4

/* One request: all of its parts can run at the same time, each needs this much CPU; it is done when the last part is. */
typedef struct SimRequest {
        uint64_t arrival_usec;
        uint32_t n_parts;
        uint32_t work_usec;
        bool unmeasured;               /* work that nobody waits for (garbage collection): takes CPU, has no latency */
} SimRequest;

/* Where requests come from: arrival times never go back, and never depend on how fast the server is (open loop). */
typedef struct SimSource SimSource;
struct SimSource {
        /* Fills the next request; false: there are no more. */
        bool (*next)(SimSource *source, SimRequest *ret);
        void (*free)(SimSource *source); /* NULL: nothing to free */
};

/* NULL is fine. Returns NULL. */
static inline SimSource *sim_source_free(SimSource *s) {
        if (s && s->free)
                s->free(s);
        return NULL;
}

typedef struct SimGroupSetup {
        const char *name;
        SimSource *source;             /* NULL: none */
        uint32_t n_workers;            /* threads that serve requests */
        uint32_t n_hogs;               /* threads that always want to run */
        LawConfig law;                 /* base unlimited: a group without a limit */
} SimGroupSetup;

/* What was seen and decided at one sample, for plots and logs. */
typedef struct SimPoint {
        uint64_t now_usec;
        uint32_t group;
        const LawSample *sample;
        const LawDecision *decision;
} SimPoint;

typedef struct SimSetup {
        uint32_t n_cpus;               /* at most SIM_CPUS_MAX */
        uint64_t duration_usec;
        uint64_t seed;                 /* phases of timer and sampling */
        uint64_t tick_usec;            /* scheduler's tick: 4 ms for HZ=250 */
        uint64_t bandwidth_slice_usec; /* kernel.sched_cfs_bandwidth_slice_us */
        uint64_t base_slice_usec;      /* of EEVDF */
        uint64_t write_delay_usec;     /* from a sample to the write that follows from it */
        uint64_t sample_usec;          /* 0: as the laws ask for */
        uint32_t n_groups;
        SimGroupSetup groups[SIM_GROUPS_MAX];
        void (*observe)(const SimPoint *point, void *userdata); /* may be NULL */
        void *userdata;
} SimSetup;

/* What came out for one group. Allocation is what the group was given: quota over time, burst that it used, and runtime that writes put into the pool. */
typedef struct SimOutcome {
        SimHistogram latency;          /* of requests, in microseconds; what is unfinished at the end counts with its age */
        SimHistogram reaction;         /* from throttling after a second without to the next raise in force */
        uint64_t n_requests, n_unfinished;
        uint64_t used_usec, quota_usec, burst_usec, granted_usec;
        uint64_t nr_periods, nr_throttled, throttled_usec;
        uint64_t some_usec, full_usec;
        uint64_t n_changes;            /* decisions that changed quota or burst */
        uint64_t n_writes;             /* writes of the two files */
        uint64_t n_latency_changes;
        uint64_t n_causes[_LAW_CAUSE_MAX]; /* changes by cause */
        uint64_t highest_quota_usec, lowest_quota_usec;
} SimOutcome;

/* CPU time that the group was given. */
static inline uint64_t sim_allocated_usec(const SimOutcome *o) {
        return o->quota_usec + o->burst_usec + o->granted_usec;
}

/* A setup with the numbers of a stock Debian 12 kernel and an eight-CPU host, and no groups. */
void sim_setup_init(SimSetup *setup);

/* Runs it. Fills one outcome a group, to be cleared with sim_outcome_clear(). 0, -EINVAL for a setup that makes no sense, -ENOMEM;
 * on failure nothing is filled. Reads each source to its end or the end of the time, whichever is first. */
int sim_run(const SimSetup *setup, SimOutcome ret[SIM_GROUPS_MAX]);
void sim_outcome_clear(SimOutcome *o);
/* Frees the sources of all groups and forgets the groups. */
void sim_setup_clear(SimSetup *setup);
