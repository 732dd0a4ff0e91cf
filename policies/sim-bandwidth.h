/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* A model of CFS bandwidth control as kernel/sched/fair.c of 6.1 and 6.12 has it: one pool of runtime for each group, refilled by a period timer,
 * handed out to CPUs in slices; a CPU that finds the pool empty is throttled until the timer, returned slack or a write of the
 * limit lets it go on. The caller owns time and threads, and asks here for runtime. Times are microseconds, where the kernel has nanoseconds. */

#include "policies/resolve.h"

#define SIM_CPUS_MAX 64

typedef struct SimBandwidthLocal {
        int64_t remaining_usec;        /* of this CPU's slice; below 0: a debt that the next slice repays */
        bool throttled;
        uint64_t throttled_since_usec;
} SimBandwidthLocal;

typedef struct SimBandwidth {
        /* fixed */
        uint32_t n_cpus;
        uint64_t slice_usec;           /* kernel.sched_cfs_bandwidth_slice_us */
        uint64_t keep_usec;            /* min_cfs_rq_runtime: what a CPU that goes idle keeps */

        Bandwidth set;
        int64_t pool_usec;             /* cfs_b->runtime */
        int64_t snapshot_usec;         /* runtime_snap: the pool after the last refill */
        bool idle;                     /* nobody asked since the last timer */
        bool active;                   /* the timer runs */
        uint64_t timer_usec;           /* its next expiry; when it stands, the last one: the phase stays */
        uint64_t slack_usec;           /* slack timer; USEC_INFINITY: not armed */
        SimBandwidthLocal local[SIM_CPUS_MAX];
        uint32_t throttled_cpus[SIM_CPUS_MAX]; /* in the order of throttling */
        uint32_t n_throttled_cpus;

        /* as in cpu.stat */
        uint64_t nr_periods, nr_throttled, throttled_usec, nr_bursts, burst_usec;
        /* what writes of the limit put into the pool */
        uint64_t granted_usec;
} SimBandwidth;

/* Starts with a full pool. phase_usec: where the timer's periods begin. */
void sim_bandwidth_init(SimBandwidth *b, uint32_t n_cpus, uint64_t slice_usec, uint64_t keep_usec, const Bandwidth *set, uint64_t phase_usec);

static inline bool sim_bandwidth_is_limited(const SimBandwidth *b) {
        return b->set.quota_usec != QUOTA_UNLIMITED;
}

/* A CPU has used its slice up, or a thread of the group wakes up on it: gets it a new slice. False: nothing left, and the CPU is throttled now. */
bool sim_bandwidth_demand(SimBandwidth *b, uint32_t cpu, uint64_t now_usec);
/* A CPU picks this group to run next: with no slice it gets the least there is, as the kernel does on its way to throttling. */
bool sim_bandwidth_pick(SimBandwidth *b, uint32_t cpu, uint64_t now_usec);
/* A CPU has nothing more of this group to run: what is above the kept part goes back to the pool. */
void sim_bandwidth_return(SimBandwidth *b, uint32_t cpu, uint64_t now_usec);

/* The period timer or the slack timer expires (at timer_usec, slack_usec). Fills unthrottled with the CPUs that may go on and returns how many. */
uint32_t sim_bandwidth_period_timer(SimBandwidth *b, uint64_t now_usec, uint32_t unthrottled[SIM_CPUS_MAX]);
uint32_t sim_bandwidth_slack_timer(SimBandwidth *b, uint64_t now_usec, uint32_t unthrottled[SIM_CPUS_MAX]);

/* A write of cpu.max or of cpu.max.burst: refills, forgets the slices, unthrottles all. */
uint32_t sim_bandwidth_write(SimBandwidth *b, const Bandwidth *set, uint64_t now_usec, uint32_t unthrottled[SIM_CPUS_MAX]);

/* Throttled time up to now, CPUs that are still throttled included. */
uint64_t sim_bandwidth_throttled_now(const SimBandwidth *b, uint64_t now_usec);
