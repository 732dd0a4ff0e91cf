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

/* Throttled although less than this of the quota was used: runtime lies parked in per-CPU slices, or was lost. */
#define LAW_WELL_BELOW_PERCENT 70
