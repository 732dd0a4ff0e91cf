/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* From a class to microseconds: what its words mean for a group with this base. Pure arithmetic. */

#include "policies/policy.h"

#define QUOTA_UNLIMITED UINT64_MAX  /* "max" in cpu.max */

/* One setting of cpu.max and cpu.max.burst. */
typedef struct Bandwidth {
        uint64_t quota_usec;  /* per period; QUOTA_UNLIMITED: no limit */
        uint64_t period_usec;
        uint64_t burst_usec;
} Bandwidth;

static inline bool bandwidth_equal(const Bandwidth *a, const Bandwidth *b) {
        return a->quota_usec == b->quota_usec && a->period_usec == b->period_usec && a->burst_usec == b->burst_usec;
}

/* What a class wants of one group: the start value and the bounds for its law. */
typedef struct BandwidthPlan {
        Bandwidth start;          /* quota and burst before any feedback; already within floor and ceiling */
        uint64_t floor_usec;      /* least quota for a law */
        uint64_t ceiling_usec;    /* most quota for a law; QUOTA_UNLIMITED allowed */
        Amount burst;             /* rule to derive a burst from another quota */
        bool unlimited;           /* the base is "max" and the quota relative to it: nothing to set, burst 0 */
        bool limited_by_owner;    /* the owner's explicit limit cut what the class asked for */
} BandwidthPlan;

/* Resolves a class (overrides already applied) against the owner's own setting (base: quota, period, burst before us).
 * The period is the class's, else the base's live one. When the period differs from the base's, "percent of base" keeps the ratio.
 * Where a share of the base or of a CPU would be below the kernel's 1 ms, the period gets longer (at most 1 s), as systemd does it: use
 * the plan's period, not the class's. A floor above the ceiling gives way; "max" without a ceiling is still within the owner's limit.
 * The owner's explicit quota (base.quota_usec != QUOTA_UNLIMITED) is the ceiling unless the class states one.
 * All results obey the kernel: quota >= 1000, burst <= quota, period 1000..1000000; rounding is down, once.
 * A quota above UINT64 or kernel limits saturates. Never fails. */
void resolve_bandwidth(const ServiceClass *c, const Bandwidth *base, BandwidthPlan *ret);

/* Burst for a quota by the plan's rule; at most the quota; 0 when the quota is unlimited. keep_usec is used where the rule is "keep". */
uint64_t resolve_burst(const Amount *burst, uint64_t quota_usec, uint64_t keep_usec);

/* systemd 252 keeps a quota as CPU time per second in whole percents (10 ms per second), truncated (cgroup drop-in writer,
 * src/core/dbus-cgroup.c). Rounds a quota to what systemd can hold for this period, downwards but at least one percent, so that a
 * value that we ask for is the value that we read back; rounded up where systemd would lengthen the period instead (below 1 ms). */
uint64_t quota_round_for_systemd(uint64_t quota_usec, uint64_t period_usec);
/* CPUQuotaPerSecUSec for a quota (USEC_INFINITY for unlimited), and back. */
uint64_t quota_to_per_sec_usec(uint64_t quota_usec, uint64_t period_usec);
uint64_t quota_from_per_sec_usec(uint64_t per_sec_usec, uint64_t period_usec);

/* EEVDF slice for a latency nice: base x 1024 / weight of the nice table entry (kernel/sched/core.c sched_prio_to_weight),
 * positive side capped at 4 x base, result within 100 us .. 100 ms. base_slice_nsec is the host's base slice
 * (debugfs sched/base_slice_ns; 2.8 or 3 ms typical). latency_nice 0 gives 0: the default slice; so does an unknown base (0). */
uint64_t latency_nice_to_slice_nsec(int latency_nice, uint64_t base_slice_nsec);
