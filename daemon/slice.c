/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread's slice without a trace of us in anything else that sched_setattr(2) carries.
 *
 * SCHED_FLAG_KEEP_POLICY lets the kernel keep the policy and the reset-on-fork flag that the thread has at that very moment, so those can't
 * be undone by a stale copy of ours; a thread that has become SCHED_FIFO or SCHED_DEADLINE in between makes the call fail with EINVAL instead of being
 * demoted (kernel/sched/syscalls.c __sched_setscheduler: priority 0 does not fit). Utilisation clamps stay without their flags: uclamp_reset() only sets
 * those anew that nobody has set. What remains is the nice value: it must be sent, so it is read in the call right before the write, and
 * what is found different before or after is followed up. */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "daemon/helper-thread.h"
#include "daemon/slice.h"

#define FLAG_RESET_ON_FORK UINT64_C(0x01)   /* include/uapi/linux/sched.h SCHED_FLAG_* */
#define FLAG_KEEP_POLICY UINT64_C(0x08)

/* What the kernel makes of a custom slice: kernel/sched/syscalls.c __setparam_fair. */
#define SLICE_MIN_NSEC UINT64_C(100000)
#define SLICE_MAX_NSEC UINT64_C(100000000)

#define TRIES 4

_Static_assert(sizeof(ThreadAttributes) == 56, "SCHED_ATTR_SIZE_VER1");

static int kernel_getattr(pid_t tid, ThreadAttributes *ret, void *userdata) {
        ThreadAttributes a = {};

        if (syscall(SYS_sched_getattr, tid, &a, sizeof(a), 0) < 0)
                return -errno;
        *ret = a;
        return 0;
}

static int kernel_setattr(pid_t tid, const ThreadAttributes *attr, void *userdata) {
        return syscall(SYS_sched_setattr, tid, attr, 0) < 0 ? -errno : 0;
}

const SchedOps sched_ops_kernel = { kernel_getattr, kernel_setattr, NULL };

bool slice_policy_takes(uint32_t sched_policy) {
        return sched_policy == SCHED_OTHER || sched_policy == SCHED_BATCH;
}

/* Everything as it was read but for the slice. */
static int write_slice(const SchedOps *ops, pid_t tid, const ThreadAttributes *as_read, uint64_t slice_nsec) {
        ThreadAttributes a = {
                .size = sizeof(a),
                .sched_policy = as_read->sched_policy,
                .sched_flags = (as_read->sched_flags & FLAG_RESET_ON_FORK) | FLAG_KEEP_POLICY,
                .sched_nice = as_read->sched_nice,
                .sched_runtime = slice_nsec,
        };

        return ops->setattr(tid, &a, ops->userdata);
}

/* Whether a reading is the wanted value; default_nsec is what a thread without a custom slice reports. */
static bool has_slice(const ThreadAttributes *a, uint64_t slice_nsec, uint64_t default_nsec) {
        if (slice_nsec == 0)
                return a->sched_runtime == default_nsec || a->sched_runtime == 0;
        return a->sched_runtime == slice_nsec;
}

int slice_apply(const SchedOps *ops, pid_t tid, uint64_t slice_nsec, uint64_t base_slice_nsec, uint64_t *ret_before, bool *ret_race) {
        uint64_t want = slice_nsec == 0 ? 0 : CLAMP_TO(slice_nsec, SLICE_MIN_NSEC, SLICE_MAX_NSEC);
        ThreadAttributes before, now, after;
        SliceOutcome outcome = SLICE_IGNORED;
        bool race = false;
        int r;

        if (!ops)
                ops = &sched_ops_kernel;
        r = ops->getattr(tid, &before, ops->userdata);
        if (r < 0)
                return r;

        now = before;
        for (unsigned i = 0;; i++) {
                if (!slice_policy_takes(now.sched_policy)) {
                        outcome = SLICE_NOT_TAKEN;
                        break;
                }
                if (has_slice(&now, want, base_slice_nsec)) {
                        outcome = i == 0 ? SLICE_ALREADY : SLICE_SET;
                        break;
                }
                if (i == TRIES)
                        break;

                r = write_slice(ops, tid, &now, want);
                /* EINVAL: it has become a real-time thread since we looked. */
                if (r < 0 && r != -EINVAL)
                        return r;
                if (ops->getattr(tid, &after, ops->userdata) < 0)
                        return r < 0 ? r : -ESRCH;
                if (r < 0 && after.sched_policy == now.sched_policy)
                        return r;

                /* What differs from what we sent is somebody's newer word: it stays, and is what the next try sends. */
                if (after.sched_policy != now.sched_policy || after.sched_nice != now.sched_nice ||
                    ((after.sched_flags ^ now.sched_flags) & FLAG_RESET_ON_FORK))
                        race = true;
                else if (r >= 0 && want == 0) {
                        /* The kernel's default may be another by now than the one we were told (it grows with the CPUs): what a reset gives, is it. */
                        outcome = after.sched_runtime == now.sched_runtime ? SLICE_ALREADY : SLICE_SET;
                        break;
                } else if (r >= 0 && after.sched_runtime == now.sched_runtime && i > 0)
                        break; /* twice: once might have been somebody's reset */
                now = after;
        }

        if (ret_before)
                *ret_before = !slice_policy_takes(before.sched_policy) || before.sched_runtime == base_slice_nsec ? 0 : before.sched_runtime;
        if (ret_race)
                *ret_race = race;
        return outcome;
}

int slice_read(const SchedOps *ops, pid_t tid, uint64_t base_slice_nsec, uint64_t *ret_slice_nsec, bool *ret_takes) {
        ThreadAttributes a;
        bool takes;
        int r;

        if (!ops)
                ops = &sched_ops_kernel;
        r = ops->getattr(tid, &a, ops->userdata);
        if (r < 0)
                return r;
        takes = slice_policy_takes(a.sched_policy);
        *ret_slice_nsec = !takes || a.sched_runtime == base_slice_nsec ? 0 : a.sched_runtime;
        if (ret_takes)
                *ret_takes = takes;
        return 0;
}

typedef struct Probe {
        int result;
        uint64_t base_slice_nsec;
} Probe;

static void *probe_thread(void *userdata) {
        Probe *p = userdata;
        ThreadAttributes a, fresh, custom;

        /* The thread begins with the caller's policy and slice: make it an ordinary one first. */
        p->result = kernel_getattr(0, &a, NULL);
        if (p->result < 0)
                return NULL;
        a = (ThreadAttributes) { .size = sizeof(a), .sched_policy = SCHED_OTHER, .sched_flags = a.sched_flags & FLAG_RESET_ON_FORK, .sched_nice = a.sched_nice };
        if ((p->result = kernel_setattr(0, &a, NULL)) < 0 || (p->result = kernel_getattr(0, &fresh, NULL)) < 0)
                return NULL;
        /* Some value within the kernel's bounds that is not the default. */
        a.sched_runtime = fresh.sched_runtime == 2000000 ? 2100000 : 2000000;
        if ((p->result = kernel_setattr(0, &a, NULL)) < 0 || (p->result = kernel_getattr(0, &custom, NULL)) < 0)
                return NULL;
        p->result = custom.sched_runtime == a.sched_runtime;
        p->base_slice_nsec = p->result ? fresh.sched_runtime : 0;
        return NULL;
}

int slice_probe(uint64_t *ret_base_slice_nsec) {
        Probe p = {};
        pthread_t thread;
        int r;

        r = helper_thread_start(&thread, probe_thread, &p);
        if (r < 0)
                return r;
        (void) pthread_join(thread, NULL);
        if (p.result >= 0)
                *ret_base_slice_nsec = p.base_slice_nsec;
        return p.result;
}
