/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Every number that the laws are tuned with, with its reason. Nothing else in the laws is a matter of taste. */

#include "policies/util.h"

/* ---- guards: for every law ---- */

/* One write a second on average: each write of cpu.max refills the group and unthrottles it, so writes are free CPU, and each
 * one is a D-Bus call where systemd owns the unit. The bucket lets a sudden demand be followed at once. */
#define LAW_WRITES_PER_MINUTE 60
#define LAW_WRITE_BUCKET 10
/* Half of the bucket is for raises only: a group that was lowered often must still be able to rise. */
#define LAW_WRITE_RESERVE 5

/* One step: captain's largest is 2 x previous - limit after a halving, which is three times the limit; nobody lowers to less than half. */
#define LAW_STEP_UP_PERCENT 300
#define LAW_STEP_DOWN_PERCENT 50

/* systemd applies a property in under 0.3 s (measured); a write that is not seen after this did not arrive. */
#define LAW_WRITE_SETTLE_USEC USEC_PER_SEC

/* systemd 252 keeps whole percents of a CPU: a live quota that is nearer than this to what was asked for is ours. */
#define LAW_ROUNDING_PERMYRIAD 100

/* Below this priority (the shipped batch has 200, standard 500) there is no upward branch. A hog is always throttled and would climb to its ceiling. */
#define LAW_RAISE_FROM_PRIORITY 300

/* ---- sampling ---- */

/* A period of 100 ms is the kernel's default; a finer sample sees nothing more of nr_throttled. */
#define LAW_SAMPLE_USEC (100 * USEC_PER_MSEC)
#define LAW_SLOW_SAMPLE_USEC USEC_PER_SEC
/* captain and koordlet decide each second; ticks may come a little early. */
#define LAW_SECOND_USEC (950 * USEC_PER_MSEC)

/* ---- captain: the published values (Autothrottle, NSDI'24) ---- */

#define CAPTAIN_TARGET_PERMYRIAD 200       /* t where the class gives none: in the middle of the published range */
#define CAPTAIN_ALPHA 3                    /* acts above 3t */
#define CAPTAIN_SAMPLES 50
#define CAPTAIN_LOWER_BELOW_PERCENT 90     /* only when the proposal is at most 0.9 of the limit */
#define CAPTAIN_LOWER_LEAST_PERCENT 50     /* and by half at most */

/* ---- koordlet: the published values (Koordinator, CFS quota burst) ---- */

#define KOORDLET_RAISE_PERCENT 120
#define KOORDLET_LOWER_PERCENT 80
#define KOORDLET_CEILING_PERCENT 300       /* of the base */
#define KOORDLET_OVERLOAD_PERMYRIAD 5000   /* share pool: from here on it lowers */
#define KOORDLET_COOLING_PERMYRIAD 4500    /* and from here on it does not raise */

/* ---- attribution ---- */

/* A group whose threads waited for a CPU in a tenth of the time is stalled; less than that is everyday queueing. */
#define LAW_STALLED_PERMYRIAD 1000
/* A batch group with half of the host as its quota runs on all CPUs in half of each period: a host that is busy by half on average may be
 * wholly busy when it matters. Below that a wait is a matter of placement. */
#define LAW_HOST_BUSY_PERMYRIAD 5000

/* Throttled although less than this of the quota was used: runtime lies parked in per-CPU slices, or was lost. */
#define LAW_WELL_BELOW_PERCENT 70

/* CPUs that idle for a cookie in a tenth of the time are a price worth saying. */
#define LAW_FORCE_IDLE_PERMYRIAD 1000

/* ---- adaptive ---- */

/* How far one stretch of the arrival curve may reach: five seconds of 100 ms, what the history holds. */
#define ADAPTIVE_HORIZON_USEC (5 * USEC_PER_SEC)
/* Seconds whose needs are kept. */
#define ADAPTIVE_MEMORY_SECONDS 5
#define ADAPTIVE_HEADROOM_PERCENT 106
#define ADAPTIVE_EARLY_PERCENT 104
#define ADAPTIVE_DRY_PERCENT 55
#define ADAPTIVE_RAN_PERCENT 25
#define ADAPTIVE_DEMAND_PERCENT 60
#define ADAPTIVE_UNMET_PERCENT 50
#define ADAPTIVE_RAISE_PERCENT 110
#define ADAPTIVE_ANSWERED_USEC (150 * USEC_PER_MSEC)
#define ADAPTIVE_EVIDENCE_PERCENT 100
#define ADAPTIVE_LOWER_BELOW_PERCENT 95
#define ADAPTIVE_CALM_USEC (300 * USEC_PER_MSEC)
#define ADAPTIVE_LOWER_EVERY_USEC (650 * USEC_PER_MSEC)
#define ADAPTIVE_REGRET_WITHIN_USEC (10 * USEC_PER_SEC)
#define ADAPTIVE_REGRET_FORGET_USEC (5 * USEC_PER_SEC)
#define ADAPTIVE_ROLLBACK_PERCENT 75
#define ADAPTIVE_STRICTNESS 2
#define ADAPTIVE_STRICTNESS_MAX 4
#define ADAPTIVE_SHARE_SAMPLES 32

#define ADAPTIVE_GIVE_EVERY_USEC (950 * USEC_PER_MSEC)
#define ADAPTIVE_GIVE_PERCENT 80
#define ADAPTIVE_TAKE_BACK_AFTER_USEC (2 * USEC_PER_SEC)
#define ADAPTIVE_TAKE_BACK_PERCENT 10

#define ADAPTIVE_LATENCY_STEP 10
#define ADAPTIVE_LATENCY_EVERY_USEC (950 * USEC_PER_MSEC)
#define ADAPTIVE_LATENCY_BACK_USEC (5 * USEC_PER_SEC)
