/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long a task that sleeps and runs in turns waits for the CPU after each wake-up, while others want it as well.
 * The others run without end, or sleep and run too; their sleeps are random, and the same in each run of the tool.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab.h"

#define MAX_LOADS 64

__attribute__((noreturn)) static void load(const char *group, int cpu, int index, int64_t run, int64_t sleep, int nice) {
        uint32_t seed = 4711 + index;

        if (group)
                group_join(group);
        if (cpu >= 0)
                pin(cpu);
        if (nice)
                set_latency_nice(nice);
        if (!run)
                for (;;)
                        for (volatile int i = 0; i < 100000; i++)
                                ;
        for (;;) {
                burn(run);
                sleep_ns(sleep / 2 + next_random(&seed, sleep));
        }
}

static void measure(const char *group, int cpu, int nice, int64_t run, int64_t sleep, int64_t length) {
        int64_t began, used;
        struct sample s;

        group_join(group);
        pin(cpu);
        if (nice)
                set_latency_nice(nice);
        sample_init(&s, 1 << 20);
        sleep_ns(200 * MSEC);
        began = now(CLOCK_MONOTONIC);
        used = now(CLOCK_THREAD_CPUTIME_ID);
        while (now(CLOCK_MONOTONIC) - began < length) {
                int64_t due = now(CLOCK_MONOTONIC) + sleep;
                struct timespec t = {due / SEC, due % SEC};

                clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
                sample_add(&s, now(CLOCK_MONOTONIC) - due);
                burn(run);
        }
        used = now(CLOCK_THREAD_CPUTIME_ID) - used;
        began = now(CLOCK_MONOTONIC) - began;
        sample_print(&s);
        printf(" cycles=%.1f cpu=%.2f\n", s.n * 1e9 / began, 100.0 * used / began);
        fflush(stdout);
        _exit(0);
}

int lab_latency(int argc, char **argv) {
        const char *group = NULL, *loads[MAX_LOADS];
        int64_t run = 0, sleep = 0, seconds = 0, load_run = 0, load_sleep = 0;
        int cpu = -1, nice = 0, load_nice = 0, n = 0, option;
        pid_t pids[MAX_LOADS], probe;

        while ((option = getopt(argc, argv, "c:g:b:r:s:t:R:S:n:N:")) >= 0)
                switch (option) {
                case 'c': cpu = atoi(optarg); break;
                case 'g': group = optarg; break;
                case 'b':
                        if (n == MAX_LOADS)
                                die("more than %d loads", MAX_LOADS);
                        loads[n++] = optarg;
                        break;
                case 'r': run = atoll(optarg) * USEC; break;
                case 's': sleep = atoll(optarg) * USEC; break;
                case 't': seconds = atoll(optarg); break;
                case 'R': load_run = atoll(optarg) * USEC; break;
                case 'S': load_sleep = atoll(optarg) * USEC; break;
                case 'n': nice = atoi(optarg); break;
                case 'N': load_nice = atoi(optarg); break;
                default: return 2;
                }
        if (cpu < 0 || !group || !run || !sleep || !seconds || (load_run && !load_sleep))
                die("latency: an option is missing");
        for (int i = 0; i < n; i++) {
                pids[i] = spawn();
                if (!pids[i])
                        load(loads[i], cpu, i, load_run, load_sleep, load_nice);
        }
        probe = spawn();
        if (!probe)
                measure(group, cpu, nice, run, sleep, seconds * SEC);
        waitpid(probe, &option, 0);
        for (int i = 0; i < n; i++)
                reap(pids[i]);
        return option ? 2 : 0;
}

/* A hog in each group, all on one CPU: which part of the CPU does each group get? In percent. */
int lab_share(int argc, char **argv) {
        int64_t seconds = 0, before[MAX_LOADS], began;
        int cpu = -1, n = 0, option;
        pid_t pids[MAX_LOADS];

        while ((option = getopt(argc, argv, "c:t:")) >= 0)
                switch (option) {
                case 'c': cpu = atoi(optarg); break;
                case 't': seconds = atoll(optarg); break;
                default: return 2;
                }
        n = argc - optind;
        if (cpu < 0 || !seconds || n < 1 || n > MAX_LOADS)
                die("share: an option is missing");
        for (int i = 0; i < n; i++) {
                pids[i] = spawn();
                if (!pids[i])
                        load(argv[optind + i], cpu, i, 0, 0, 0);
        }
        sleep_ns(300 * MSEC);
        began = now(CLOCK_MONOTONIC);
        for (int i = 0; i < n; i++)
                before[i] = group_stat(argv[optind + i], "usage_usec");
        sleep_ns(seconds * SEC);
        for (int i = 0; i < n; i++)
                before[i] = group_stat(argv[optind + i], "usage_usec") - before[i];
        began = (now(CLOCK_MONOTONIC) - began) / USEC;
        for (int i = 0; i < n; i++)
                printf("%s%s=%.2f", i ? " " : "", argv[optind + i], 100.0 * before[i] / began);
        printf("\n");
        for (int i = 0; i < n; i++)
                reap(pids[i]);
        return 0;
}

int lab_hog(int argc, char **argv) {
        const char *group = NULL;
        int cpu = -1, option;

        while ((option = getopt(argc, argv, "c:g:")) >= 0)
                switch (option) {
                case 'c': cpu = atoi(optarg); break;
                case 'g': group = optarg; break;
                default: return 2;
                }
        load(group, cpu, 0, 0, 0, 0);
}
