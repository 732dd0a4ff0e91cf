/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One sched_setattr(2) call sets policy, nice, priority, reset-on-fork, slice and clamps of a thread. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "policies/util.h"
#include "tests/vm/workloads/threads.h"

/* As in include/uapi/linux/sched/types.h, SCHED_ATTR_SIZE_VER1; glibc 2.36 has no wrapper. */
typedef struct Attributes {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
        uint32_t util_min, util_max;
} Attributes;

enum { FLAG_RESET_ON_FORK = 0x01, FLAG_UTIL_CLAMP_MIN = 0x20, FLAG_UTIL_CLAMP_MAX = 0x40 };

int scheduling_parse_policies(const char *text, Scheduling *s) {
        static const struct {
                const char *name;
                int policy;
        } table[] = {{"other", SCHED_OTHER}, {"batch", SCHED_BATCH}, {"idle", SCHED_IDLE}, {"fifo", SCHED_FIFO}, {"rr", SCHED_RR}};
        _cleanup_free_ char *copy = strdup(text);
        char *rest = NULL;

        if (!copy)
                return -ENOMEM;
        s->n_policies = 0;
        for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
                size_t i;

                for (i = 0; i < ELEMENTSOF(table) && !streq(table[i].name, word); i++)
                        ;
                if (i == ELEMENTSOF(table) || s->n_policies == SCHEDULING_MAX_POLICIES)
                        return -EINVAL;
                s->policies[s->n_policies++] = table[i].policy;
        }
        return s->n_policies > 0 ? 0 : -EINVAL;
}

int scheduling_parse_cpus(const char *text, Scheduling *s) {
        CPU_ZERO(&s->affinity);
        while (*text) {
                char *end;
                unsigned long first = strtoul(text, &end, 10), last = first;

                if (end == text)
                        return -EINVAL;
                if (*end == '-') {
                        text = end + 1;
                        last = strtoul(text, &end, 10);
                        if (end == text)
                                return -EINVAL;
                }
                if (last < first || last >= CPU_SETSIZE || (*end != ',' && *end != '\0'))
                        return -EINVAL;
                for (; first <= last; first++)
                        CPU_SET(first, &s->affinity);
                text = *end == ',' ? end + 1 : end;
        }
        s->has_affinity = CPU_COUNT(&s->affinity) > 0;
        return s->has_affinity ? 0 : -EINVAL;
}

int scheduling_apply(const Scheduling *s, unsigned index) {
        Attributes a = {};

        if (s->has_affinity && sched_setaffinity(0, sizeof(s->affinity), &s->affinity) < 0)
                return -errno;
        if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) < 0)
                return -errno;
        a.size = sizeof(a);
        a.flags &= FLAG_RESET_ON_FORK;
        if (s->n_policies > 0)
                a.policy = (uint32_t) s->policies[index % s->n_policies];
        a.priority = a.policy == SCHED_FIFO || a.policy == SCHED_RR ? (uint32_t) s->priority : 0;
        if (s->has_nice)
                a.nice = s->nice;
        if (s->reset_on_fork)
                a.flags |= FLAG_RESET_ON_FORK;
        a.runtime = s->slice_nsec;
        if (s->util_min >= 0) {
                a.flags |= FLAG_UTIL_CLAMP_MIN;
                a.util_min = (uint32_t) s->util_min;
        }
        if (s->util_max >= 0) {
                a.flags |= FLAG_UTIL_CLAMP_MAX;
                a.util_max = (uint32_t) s->util_max;
        }
        return syscall(SYS_sched_setattr, 0, &a, 0) < 0 ? -errno : 0;
}

static uint64_t read_clock(clockid_t id) {
        struct timespec ts;

        (void) clock_gettime(id, &ts);
        return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

uint64_t now_nsec(void) {
        return read_clock(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_nsec(void) {
        return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void sleep_until_nsec(uint64_t monotonic_nsec) {
        struct timespec ts = {(time_t) (monotonic_nsec / UINT64_C(1000000000)), (long) (monotonic_nsec % UINT64_C(1000000000))};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
}

void burn_some(void) {
        static __thread volatile uint64_t sink = 1;
        uint64_t x = sink;

        for (unsigned i = 0; i < 1000; i++)
                x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sink = x;
}

void burn_nsec(uint64_t cpu_nsec) {
        uint64_t end = thread_cpu_nsec() + cpu_nsec;

        do
                burn_some();
        while (thread_cpu_nsec() < end);
}
