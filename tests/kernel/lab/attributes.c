/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The latency nice of a task as an ABI: sizes, ranges, permission, fork, and what must not change along with it. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab.h"

static int failures;

static void check(bool good, const char *what) {
        printf("%s %s\n", good ? "ok  " : "FAIL", what);
        failures += !good;
}

static int set_only(int value, unsigned size) {
        struct sched_attributes a = {
                .size = size,
                .flags = FLAG_KEEP_ALL | FLAG_LATENCY_NICE,
                .latency_nice = value,
        };

        return sched_set(0, &a);
}

static int get(void) {
        struct sched_attributes a;

        return sched_get(0, &a, sizeof(a)) < 0 ? -1000 : a.latency_nice;
}

static void sizes_and_ranges(void) {
        struct {
                struct sched_attributes known;
                uint64_t unknown;
        } longer = {.unknown = 0};
        struct sched_attributes a;

        check(sched_get(0, &a, sizeof(a)) == 0 && a.size == 64 && a.latency_nice == 0, "a fresh process is at 0, size 64");
        check(sched_get(0, &a, 56) == 0 && a.size == 56, "getattr with the size of old callers");
        check(sched_get(0, &a, 48) == 0 && a.size == 48, "getattr with the first size");
        check(set_only(-5, 60) == 0 && get() == -5, "size 60 sets");
        check(set_only(-6, 64) == 0 && get() == -6, "size 64 sets");
        check(set_only(3, 56) == -EINVAL && get() == -6, "size 56 has no room for it: EINVAL");
        check(set_only(20, 64) == -EINVAL && get() == -6, "20 is out of range");
        check(set_only(-21, 64) == -EINVAL && get() == -6, "-21 is out of range");
        check(set_only(-20, 64) == 0 && get() == -20, "-20 is in range");
        check(set_only(19, 64) == 0 && get() == 19, "19 is in range");

        sched_get(0, &a, sizeof(a));
        a.flags = FLAG_KEEP_ALL | FLAG_LATENCY_NICE;
        a.latency_nice = 4;
        a.pad = 0x12345678;
        check(sched_set(0, &a) == 0 && get() == 4, "what fills the structure up is ignored");
        check(sched_get(0, &a, sizeof(a)) == 0 && a.pad == 0, "... and reads 0");

        longer.known = a;
        longer.known.size = sizeof(longer);
        longer.known.flags = FLAG_KEEP_ALL | FLAG_LATENCY_NICE;
        longer.known.latency_nice = 5;
        check(sched_set(0, &longer.known) == 0 && get() == 5, "a longer structure with zeros behind");
        longer.unknown = 1;
        longer.known.latency_nice = 6;
        longer.known.size = sizeof(longer);
        check(sched_set(0, &longer.known) == -E2BIG && get() == 5, "a longer structure with something behind: E2BIG");

        a.size = 64;
        a.flags = 0;
        a.latency_nice = 7;
        check(sched_set(0, &a) == 0 && get() == 5, "without the flag the field is ignored");
        set_only(0, 64);
}

static void nothing_else_changes(void) {
        struct sched_param param = {0}, fifo = {.sched_priority = 7};
        struct sched_attributes a;

        setpriority(PRIO_PROCESS, 0, 5);
        sched_setscheduler(0, SCHED_BATCH, &param);
        check(set_only(-7, 64) == 0 && sched_get(0, &a, sizeof(a)) == 0 && a.policy == SCHED_BATCH && a.nice == 5 &&
                      a.latency_nice == -7, "a SCHED_BATCH task keeps its policy and its nice value");
        sched_setscheduler(0, SCHED_FIFO, &fifo);
        check(set_only(-8, 64) == 0 && sched_get(0, &a, sizeof(a)) == 0 && a.policy == SCHED_FIFO && a.priority == 7 &&
                      a.latency_nice == -8, "a SCHED_FIFO task keeps its policy and its priority");
        sched_setscheduler(0, SCHED_OTHER, &param);
        check(get() == -8, "the value outlives changes of the policy");
        setpriority(PRIO_PROCESS, 0, -3);
        check(get() == -8 && getpriority(PRIO_PROCESS, 0) == -3, "renice leaves it alone");
        setpriority(PRIO_PROCESS, 0, 0);
        set_only(0, 64);
}

static int child_value(void) {
        int status;
        pid_t pid = spawn();

        if (!pid)
                _exit(get() + 50);
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) - 50 : -1000;
}

static void forks(void) {
        struct sched_attributes a;

        set_only(-9, 64);
        check(child_value() == -9, "a child inherits it");
        sched_get(0, &a, sizeof(a));
        a.flags = FLAG_RESET_ON_FORK | FLAG_LATENCY_NICE;
        a.latency_nice = -9;
        check(sched_set(0, &a) == 0 && child_value() == 0 && get() == -9, "with reset-on-fork a child starts at 0");
        sched_get(0, &a, sizeof(a));
        a.flags = 0;
        sched_set(0, &a);
        set_only(0, 64);
}

static void permission(void) {
        pid_t pid;
        int status;

        set_only(-4, 64);
        pid = spawn();
        if (!pid) {
                if (setuid(65534) < 0)
                        _exit(10);
                if (set_only(-4, 64) != 0)
                        _exit(11);
                if (set_only(3, 64) != 0 || get() != 3)
                        _exit(12);
                if (set_only(2, 64) != -EPERM || get() != 3)
                        _exit(13);
                _exit(0);
        }
        waitpid(pid, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "without CAP_SYS_NICE: keep and raise, but not lower");
        set_only(0, 64);
}

/* Where tasks have slices (6.12), latency nice and a slice of one's own share the field that reports it. */
static void slices(void) {
        struct sched_attributes a;
        uint64_t base, small;

        sched_get(0, &a, sizeof(a));
        base = a.runtime;
        if (!base) {
                printf("ok   # no slices on this kernel\n");
                return;
        }
        set_only(-20, 64);
        sched_get(0, &a, sizeof(a));
        small = a.runtime;
        check(small < base && small >= 100000, "-20 makes the slice short, 0.1 ms at least");
        a.flags = 0;
        a.nice = 1;
        check(sched_set(0, &a) == 0 && set_only(0, 64) == 0 && sched_get(0, &a, sizeof(a)) == 0 && a.runtime == base,
              "a slice that is sent back is no request for a custom one");
        set_only(19, 64);
        sched_get(0, &a, sizeof(a));
        check(a.runtime > base && a.runtime <= 4 * base, "19 makes it longer, four times at most");
        set_only(0, 64);

        a.flags = 0;
        a.nice = 0;
        a.runtime = 50000000;
        sched_set(0, &a);
        set_only(-20, 64);
        check(sched_get(0, &a, sizeof(a)) == 0 && a.runtime == 50000000, "a slice of its own comes first");
        a.flags = 0;
        a.runtime = 0;
        check(sched_set(0, &a) == 0 && sched_get(0, &a, sizeof(a)) == 0 && a.runtime == small, "... until it is given back");
        set_only(0, 64);
}

int lab_attributes(int argc, char **argv) {
        sizes_and_ranges();
        nothing_else_changes();
        forks();
        permission();
        slices();
        return failures ? 1 : 0;
}
