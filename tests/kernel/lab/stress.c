/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Everything at once, for the debug kernels: fork storms, tasks that change their group and their attributes, groups
 * that come and go, writes to every file and switch that the patches add, CPUs that go off and on. It measures
 * nothing: what counts is that the log stays clean.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab.h"

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif

static char **groups;
static int n_groups;
static int64_t end;

/* Errors are part of the game: a group may be gone, a CPU the last one. */
static void put(const char *path, const char *value) {
        int fd = open(path, O_WRONLY);

        if (fd < 0)
                return;
        if (write(fd, value, strlen(value)) < 0 && errno == EIO)
                die("%s: EIO", path);
        close(fd);
}

static bool going_on(void) {
        return now(CLOCK_MONOTONIC) < end;
}

static void storm(uint32_t seed) {
        while (going_on()) {
                pid_t pids[8];

                for (int i = 0; i < 8; i++) {
                        pids[i] = fork();
                        if (!pids[i]) {
                                char path[512];

                                snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs",
                                         groups[next_random(&seed, n_groups)]);
                                put(path, "0");
                                if (next_random(&seed, 2))
                                        prctl(PR_SCHED_CORE, 1 /* create */, 0, next_random(&seed, 3), 0);
                                burn(next_random(&seed, 3000) * USEC);
                                sleep_ns(next_random(&seed, 1000) * USEC);
                                burn(next_random(&seed, 300) * USEC);
                                _exit(0);
                        }
                }
                for (int i = 0; i < 8; i++)
                        if (pids[i] > 0)
                                waitpid(pids[i], NULL, 0);
        }
}

/* A few that live long, move, and change what they ask for. */
static void mover(uint32_t seed) {
        char path[512];

        while (going_on()) {
                struct sched_attributes a = {
                        .size = sizeof(a),
                        .flags = FLAG_KEEP_ALL | FLAG_LATENCY_NICE,
                        .latency_nice = (int)next_random(&seed, 40) - 20,
                };
                struct sched_param param = {.sched_priority = 1}, none = {0};

                snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", groups[next_random(&seed, n_groups)]);
                put(path, "0");
                (void)sched_set(0, &a);
                if (next_random(&seed, 8) == 0)
                        sched_setscheduler(0, SCHED_FIFO, &param);
                else
                        sched_setscheduler(0, SCHED_OTHER, &none);
                burn(next_random(&seed, 4000) * USEC);
                sleep_ns(next_random(&seed, 2000) * USEC);
        }
}

static void writer(uint32_t seed) {
        static const char *const files[] = {"cpu.latency.nice", "cpu.core_tag", "cpu.max", "cpu.idle", "cpu.weight", "cpu.stat"};
        char path[512], value[64], line[4096];

        while (going_on()) {
                const char *file = files[next_random(&seed, 6)];

                snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/%s", groups[next_random(&seed, n_groups)], file);
                if (strcmp(file, "cpu.latency.nice") == 0)
                        snprintf(value, sizeof(value), "%d", (int)next_random(&seed, 44) - 22);
                else if (strcmp(file, "cpu.max") == 0)
                        snprintf(value, sizeof(value), next_random(&seed, 3) ? "%u 20000" : "max", 1000 + next_random(&seed, 90000));
                else if (strcmp(file, "cpu.weight") == 0)
                        snprintf(value, sizeof(value), "%u", 1 + next_random(&seed, 1000));
                else
                        snprintf(value, sizeof(value), "%u", next_random(&seed, 2));
                if (strcmp(file, "cpu.stat") == 0) {
                        int fd = open(path, O_RDONLY);

                        if (fd >= 0 && read(fd, line, sizeof(line)) >= 0)
                                close(fd);
                } else
                        put(path, value);
                if (next_random(&seed, 64) == 0) {
                        snprintf(value, sizeof(value), "%u", next_random(&seed, 128));
                        put("/proc/sys/kernel/sched_cpuclass_features", value);
                }
                if (next_random(&seed, 16) == 0)
                        sleep_ns(next_random(&seed, 1000) * USEC);
        }
}

static void makers(uint32_t seed) {
        char path[512], child[540];

        while (going_on()) {
                snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/.stress%u", groups[next_random(&seed, n_groups)], next_random(&seed, 4));
                if (mkdir(path, 0755) == 0) {
                        pid_t pid = fork();

                        snprintf(child, sizeof(child), "%s/cgroup.procs", path);
                        if (!pid) {
                                put(child, "0");
                                burn(next_random(&seed, 2000) * USEC);
                                _exit(0);
                        }
                        snprintf(child, sizeof(child), "%s/cpu.core_tag", path);
                        put(child, "1");
                        snprintf(child, sizeof(child), "%s/cpu.latency.nice", path);
                        put(child, "-20");
                        waitpid(pid, NULL, 0);
                }
                rmdir(path);
        }
}

static void hotplug(uint32_t seed) {
        long cpus = sysconf(_SC_NPROCESSORS_CONF);
        char path[128];

        while (going_on()) {
                snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/online", 1 + (long)next_random(&seed, cpus - 1));
                put(path, next_random(&seed, 2) ? "0" : "1");
                sleep_ns(next_random(&seed, 200) * MSEC);
        }
        for (long i = 1; i < cpus; i++) {
                snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/online", i);
                put(path, "1");
        }
}

int lab_stress(int argc, char **argv) {
        static void (*const parts[])(uint32_t seed) = {storm, storm, mover, mover, mover, writer, writer, writer, writer, makers, hotplug};
        enum { N = sizeof(parts) / sizeof(*parts) };
        int64_t seconds = 0;
        pid_t pids[N];
        int option, bad = 0;

        while ((option = getopt(argc, argv, "t:")) >= 0)
                switch (option) {
                case 't': seconds = atoll(optarg); break;
                default: return 2;
                }
        groups = argv + optind;
        n_groups = argc - optind;
        if (!seconds || n_groups < 1)
                die("stress: an option is missing");
        end = now(CLOCK_MONOTONIC) + seconds * SEC;
        for (int i = 0; i < N; i++) {
                pids[i] = spawn();
                if (!pids[i]) {
                        parts[i](99 + i);
                        _exit(0);
                }
        }
        for (int i = 0; i < N; i++) {
                int status;

                waitpid(pids[i], &status, 0);
                bad |= status;
        }
        printf("stress seconds=%lld\n", (long long)seconds);
        return bad ? 2 : 0;
}
