/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where children land (the idlest-group patches), and who runs beside whom (core scheduling). */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab.h"

#define MAX_CHILDREN 1024
#define MAX_CPUS 256

/* Fork children that note their CPU and sleep at once: how many are on the busiest CPU? */
int lab_spread(int argc, char **argv) {
        int n = 0, gap = 0, option, busiest = 0, used = 0, count[MAX_CPUS] = {0};
        pid_t pids[MAX_CHILDREN];
        volatile int *cpu;

        while ((option = getopt(argc, argv, "n:g:")) >= 0)
                switch (option) {
                case 'n': n = atoi(optarg); break;
                case 'g': gap = atoi(optarg); break;
                default: return 2;
                }
        if (n < 1 || n > MAX_CHILDREN)
                die("spread: 1 to %d children", MAX_CHILDREN);
        cpu = mmap(NULL, n * sizeof(*cpu), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (cpu == MAP_FAILED)
                die("no memory");
        for (int i = 0; i < n; i++) {
                cpu[i] = -1;
                pids[i] = spawn();
                if (!pids[i]) {
                        cpu[i] = sched_getcpu();
                        pause();
                        _exit(0);
                }
                if (gap)
                        sleep_ns(gap * USEC);
        }
        sleep_ns(300 * MSEC);
        for (int i = 0; i < n; i++) {
                if (cpu[i] >= 0 && cpu[i] < MAX_CPUS && count[cpu[i]]++ == 0)
                        used++;
                reap(pids[i]);
        }
        for (int i = 0; i < MAX_CPUS; i++)
                if (count[i] > busiest)
                        busiest = count[i];
        printf("children=%d cpus=%d busiest=%d\n", n, used, busiest);
        return 0;
}

/*
 * One hog for each CPU:GROUP. Prints the CPU time of each as a part of the time that passed, their sum, the forced
 * idle time in their groups, and for how much of the time two of different groups ran at once ("together").
 */
int lab_core(int argc, char **argv) {
        int n, option, cpu[MAX_CHILDREN];
        int64_t used[MAX_CHILDREN], seconds = 0, forced = 0, began, sum = 0, samples = 0, together = 0;
        struct {
                volatile int64_t beat;
                char pad[56];
        } *beats;
        const char *group[MAX_CHILDREN];
        pid_t pids[MAX_CHILDREN];

        while ((option = getopt(argc, argv, "t:")) >= 0)
                switch (option) {
                case 't': seconds = atoll(optarg); break;
                default: return 2;
                }
        n = argc - optind;
        if (!seconds || n < 1 || n > 16)
                die("core: an option is missing");
        beats = mmap(NULL, n * sizeof(*beats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (beats == MAP_FAILED)
                die("no memory");
        for (int i = 0; i < n; i++) {
                char *colon = strchr(argv[optind + i], ':');

                if (!colon)
                        die("core: not CPU:GROUP: %s", argv[optind + i]);
                cpu[i] = atoi(argv[optind + i]);
                group[i] = colon + 1;
                pids[i] = spawn();
                if (!pids[i]) {
                        group_join(group[i]);
                        pin(cpu[i]);
                        for (;;)
                                beats[i].beat++;
                }
        }
        sleep_ns(300 * MSEC);
        for (int i = 0; i < n; i++)
                used[i] = group_stat(group[i], "usage_usec");
        for (int i = 0; i < n; i++) {
                int64_t f = group_stat(group[i], "core_sched.force_idle_usec");
                bool counted = false;

                for (int k = 0; k < i; k++)
                        counted |= strcmp(group[k], group[i]) == 0;
                if (!counted)
                        forced -= f < 0 ? 0 : f;
        }
        began = now(CLOCK_MONOTONIC);
        /* Sampled from outside: whose counter moves within the same short while? */
        while (now(CLOCK_MONOTONIC) - began < seconds * SEC) {
                int64_t first[16];
                int moving = -1;
                bool mixed = false;

                for (int i = 0; i < n; i++)
                        first[i] = beats[i].beat;
                for (volatile int i = 0; i < 2000; i++)
                        ;
                for (int i = 0; i < n; i++)
                        if (beats[i].beat != first[i]) {
                                if (moving >= 0 && strcmp(group[moving], group[i]) != 0)
                                        mixed = true;
                                moving = i;
                        }
                samples++;
                together += mixed;
                sleep_ns(2 * MSEC);
        }
        began = (now(CLOCK_MONOTONIC) - began) / USEC;
        for (int i = 0; i < n; i++) {
                int64_t f = group_stat(group[i], "core_sched.force_idle_usec");
                bool counted = false;

                used[i] = group_stat(group[i], "usage_usec") - used[i];
                for (int k = 0; k < i; k++)
                        counted |= strcmp(group[k], group[i]) == 0;
                if (!counted) {
                        forced += f < 0 ? 0 : f;
                        sum += used[i];
                }
                printf("cpu%d=%.3f ", cpu[i], (double)used[i] / began);
        }
        printf("sum=%.3f forced=%.3f together=%.3f\n", (double)sum / began, (double)forced / began,
               samples ? (double)together / samples : 0.0);
        for (int i = 0; i < n; i++)
                reap(pids[i]);
        return 0;
}
