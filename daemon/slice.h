/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* EEVDF slices of threads: sched_setattr(2) with sched_runtime on SCHED_OTHER and SCHED_BATCH, all else left as it is.
 *
 * Slice values are nanoseconds, 0 is the default slice. Policy and reset-on-fork are kept by the kernel itself (SCHED_FLAG_KEEP_POLICY, Linux 5.3). There is no
 * flag that leaves the nice value out, so it is sent as read in the call before; a renice that falls between those two calls is
 * lost and can't be seen by any means. Changes around them are seen by reading again: the newer value stays. */

#include <sys/types.h>

#include "policies/util.h"

/* Mirror of struct sched_attr (include/uapi/linux/sched/types.h), size 56 (SCHED_ATTR_SIZE_VER1). */
typedef struct ThreadAttributes {
        uint32_t size;
        uint32_t sched_policy;
        uint64_t sched_flags;
        int32_t sched_nice;
        uint32_t sched_priority;
        uint64_t sched_runtime;
        uint64_t sched_deadline;
        uint64_t sched_period;
        uint32_t sched_util_min;
        uint32_t sched_util_max;
} ThreadAttributes;

/* The two system calls, behind a struct so that tests can give another kernel. NULL pointers in functions below mean the real one. */
typedef struct SchedOps {
        int (*getattr)(pid_t tid, ThreadAttributes *ret, void *userdata);             /* 0 or -errno */
        int (*setattr)(pid_t tid, const ThreadAttributes *attr, void *userdata);      /* 0 or -errno */
        void *userdata;
} SchedOps;
extern const SchedOps sched_ops_kernel;

/* Whether the policy of a thread takes a slice (SCHED_OTHER, SCHED_BATCH). */
bool slice_policy_takes(uint32_t sched_policy);

typedef enum SliceOutcome {
        SLICE_ALREADY = 0,  /* it had the value */
        SLICE_SET,          /* written and read back */
        SLICE_NOT_TAKEN,    /* this policy takes none (FIFO, RR, DEADLINE, IDLE): left alone */
        SLICE_IGNORED,      /* the kernel answered 0 and ignored it (before 6.12) */
} SliceOutcome;

/* Gives one thread a slice. Returns a SliceOutcome, or -ESRCH (gone), -EPERM, or another negative errno. Policy, nice, flags (reset-on-fork) and clamps
 * stay as they are; *ret_race (may be NULL) is set true when somebody changed them in between and it was put right.
 * *ret_before (may be NULL) gets the slice read before, 0 when it equals base_slice_nsec (getattr can't tell a custom slice from the default).
 * slice_nsec 0 resets to the default. */
int slice_apply(const SchedOps *ops, pid_t tid, uint64_t slice_nsec, uint64_t base_slice_nsec, uint64_t *ret_before, bool *ret_race);

/* Reads a thread's slice: 0 for the default or where the policy takes none (then *ret_takes false; may be NULL). */
int slice_read(const SchedOps *ops, pid_t tid, uint64_t base_slice_nsec, uint64_t *ret_slice_nsec, bool *ret_takes);

/* Start time of a thread in clock ticks since boot (field 22 of /proc/TGID/task/TID/stat; /proc/TID works for any tid). With the tid it names a thread for good.
 * -ESRCH when it is gone. */
int thread_start_time(pid_t tid, uint64_t *ret_ticks);
/* Thread group (process) of a thread from /proc/TID/status; -ESRCH. */
int thread_group_of(pid_t tid, pid_t *ret_tgid);

/* Probes by doing, on the calling thread's own helper thread: 1 the kernel honours a custom slice, 0 it ignores it, or negative errno.
 * *ret_base_slice_nsec: what a fresh SCHED_OTHER thread reports. Nothing of the caller changes. */
int slice_probe(uint64_t *ret_base_slice_nsec);
