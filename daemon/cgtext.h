/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Parsers for the kernel's cgroup text files. No allocation; any bytes are safe input; an absent field is unknown, not 0. */

#include <sys/types.h>

#include "policies/resolve.h"

typedef struct CpuStat {
        uint64_t usage_usec;
        bool has_bandwidth;          /* nr_periods, nr_throttled, throttled_usec */
        uint64_t nr_periods, nr_throttled, throttled_usec;
        bool has_bursts;             /* nr_bursts, burst_usec */
        uint64_t nr_bursts, burst_usec;
        bool has_force_idle;         /* core_sched.force_idle_usec */
        uint64_t force_idle_usec;
        bool has_loss;               /* our patch: bw_parked_usec, bw_lost_usec */
        uint64_t parked_usec, lost_usec;
} CpuStat;

typedef struct CpuPressure {
        uint64_t some_total_usec;
        bool has_full;
        uint64_t full_total_usec;
        uint32_t some_avg10_permyriad, full_avg10_permyriad; /* percent x 100 */
} CpuPressure;

/* Each takes text of a known length (no NUL needed). Returns 0, or -EBADMSG when what must be there is not, or a number
 * does not fit; *ret is untouched then. Unknown lines are skipped. */
int cpu_stat_parse(const char *text, size_t length, CpuStat *ret);
int cpu_pressure_parse(const char *text, size_t length, CpuPressure *ret);
/* "MAX PERIOD": quota_usec (QUOTA_UNLIMITED for "max") and period_usec. */
int cpu_max_parse(const char *text, size_t length, uint64_t *ret_quota_usec, uint64_t *ret_period_usec);
/* A single unsigned number with an optional newline. */
int number_parse(const char *text, size_t length, uint64_t *ret);
/* A single signed number. */
int signed_parse(const char *text, size_t length, int64_t *ret);
/* Calls fn for each tid or pid of a cgroup.threads / cgroup.procs text; 0 lines (foreign pid namespace) are given as 0. fn returns 0 to go on; another
 * value ends the walk and is returned. */
int tids_parse(const char *text, size_t length, int (*fn)(pid_t tid, void *userdata), void *userdata);
/* Whether a space-separated list (cgroup.controllers) holds a word. */
bool word_list_contains(const char *text, size_t length, const char *word);
/* cgroup.events "populated N": 0 or 1, or -EBADMSG. */
int populated_parse(const char *text, size_t length);
