/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fan-out that strands runtime: one hog and many workers, each on a CPU of its own, that run for a moment and
 * sleep, all in one group with a small quota. Then the books: what the group was entitled to in the time that
 * passed, and where it went.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab.h"

#define MAX_WORKERS 64

struct books {
        int64_t at; /* monotonic, µs */
        int64_t usage, periods, throttled, bursts, unused, stranded, late, local, debt, pool;
};

static void read_books(const char *group, struct books *b) {
        b->at = now(CLOCK_MONOTONIC) / USEC;
        b->usage = group_stat(group, "usage_usec");
        b->periods = group_stat(group, "nr_periods");
        b->throttled = group_stat(group, "nr_throttled");
        b->bursts = group_stat(group, "nr_bursts");
        b->unused = group_stat(group, "unused_usec");
        b->stranded = group_stat(group, "stranded_usec");
        b->late = group_stat(group, "nr_late_periods");
        b->local = group_stat(group, "local_runtime_usec");
        b->debt = group_stat(group, "debt_usec");
        b->pool = group_stat(group, "global_runtime_usec");
}

static void read_limit(const char *group, long long *ret_quota, long long *ret_period) {
        char path[512];
        FILE *f;

        snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cpu.max", group);
        f = fopen(path, "re");
        if (!f || fscanf(f, "%lld %lld", ret_quota, ret_period) != 2)
                die("%s has no limit", path);
        fclose(f);
}

int lab_bandwidth(int argc, char **argv) {
        int64_t seconds = 0, burn_us = 50, sleep_us = 10000;
        long long quota, period;
        const char *group = NULL;
        int workers = 0, option;
        pid_t pids[MAX_WORKERS + 1];
        struct books a, b;
        double entitled;

        while ((option = getopt(argc, argv, "g:w:t:r:s:")) >= 0)
                switch (option) {
                case 'g': group = optarg; break;
                case 'w': workers = atoi(optarg); break;
                case 't': seconds = atoll(optarg); break;
                case 'r': burn_us = atoll(optarg); break;
                case 's': sleep_us = atoll(optarg); break;
                default: return 2;
                }
        if (!group || !seconds || workers < 0 || workers > MAX_WORKERS)
                die("bandwidth: an option is missing");
        read_limit(group, &quota, &period);
        for (int i = 0; i <= workers; i++) {
                pids[i] = spawn();
                if (!pids[i]) {
                        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

                        group_join(group);
                        pin(i % cpus);
                        if (i == 0)
                                for (;;)
                                        for (volatile int k = 0; k < 100000; k++)
                                                ;
                        for (;;) {
                                burn(burn_us * USEC);
                                sleep_ns(sleep_us * USEC);
                        }
                }
        }
        sleep_ns(500 * MSEC);
        read_books(group, &a);
        sleep_ns(seconds * SEC);
        read_books(group, &b);
        for (int i = 0; i <= workers; i++)
                reap(pids[i]);

        entitled = (double)(b.at - a.at) * quota / period;
        printf("workers=%d quota=%lld period=%lld used=%.4f throttled=%.3f", workers, quota, period,
               (b.usage - a.usage) / entitled,
               b.periods > a.periods ? (double)(b.throttled - a.throttled) / (b.periods - a.periods) : 0.0);
        if (b.stranded < 0) {
                printf("\n"); /* a kernel without the statistics */
                return 0;
        }
        /*
         * Each period adds a quota. It is used, thrown away at the next refill, lost as a whole where the timer was
         * late, or still there: in the pool of the group, or with a CPU (where a debt counts against it).
         */
        printf(" unused=%.4f stranded=%.4f late=%.4f kept=%.4f parked_usec=%lld accounted=%.4f\n",
               (b.unused - a.unused) / entitled, (b.stranded - a.stranded) / entitled,
               (double)(b.late - a.late) * quota / entitled,
               (b.pool + b.local - b.debt - a.pool - a.local + a.debt) / entitled, (long long)b.local,
               (b.usage - a.usage + b.unused - a.unused + (b.late - a.late) * quota + b.pool + b.local - b.debt -
                a.pool - a.local + a.debt) / entitled);
        return 0;
}
