/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instrument of the kernel scenarios: loads with a known shape, and what happened to them, one line of key=value
 * a measurement. It judges nothing; the scripts beside it do. Linked statically, so that it runs in any guest.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab.h"

#define CGROUP "/sys/fs/cgroup"

void die(const char *format, ...) {
        va_list args;

        fflush(stdout);
        fputs("lab: ", stderr);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
        _exit(2);
}

int64_t now(clockid_t clock) {
        struct timespec t;

        clock_gettime(clock, &t);
        return t.tv_sec * SEC + t.tv_nsec;
}

void sleep_ns(int64_t ns) {
        struct timespec t = {ns / SEC, ns % SEC};

        while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
                ;
}

void burn(int64_t ns) {
        int64_t end = now(CLOCK_THREAD_CPUTIME_ID) + ns;

        while (now(CLOCK_THREAD_CPUTIME_ID) < end)
                for (volatile int i = 0; i < 200; i++)
                        ;
}

void pin(int cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (sched_setaffinity(0, sizeof(set), &set) < 0)
                die("cannot run on CPU %d: %s", cpu, strerror(errno));
}

uint32_t next_random(uint32_t *seed, uint32_t limit) {
        *seed = *seed * 1664525 + 1013904223;
        return (uint64_t)*seed * limit >> 32;
}

void group_join(const char *group) {
        char path[512];
        int fd;

        snprintf(path, sizeof(path), CGROUP "/%s/cgroup.procs", group);
        fd = open(path, O_WRONLY);
        if (fd < 0 || write(fd, "0", 1) != 1)
                die("cannot join %s: %s", path, strerror(errno));
        close(fd);
}

int64_t group_stat(const char *group, const char *key) {
        char path[512], name[64];
        long long value;
        FILE *f;

        snprintf(path, sizeof(path), CGROUP "/%s/cpu.stat", group);
        f = fopen(path, "re");
        if (!f)
                die("cannot read %s: %s", path, strerror(errno));
        while (fscanf(f, "%63s %lld", name, &value) == 2)
                if (strcmp(name, key) == 0) {
                        fclose(f);
                        return value;
                }
        fclose(f);
        return -1;
}

int sched_set(pid_t pid, const struct sched_attributes *attributes) {
        return syscall(SYS_sched_setattr, pid, attributes, 0) < 0 ? -errno : 0;
}

int sched_get(pid_t pid, struct sched_attributes *ret, unsigned size) {
        memset(ret, 0, sizeof(*ret));
        return syscall(SYS_sched_getattr, pid, ret, size, 0) < 0 ? -errno : 0;
}

void set_latency_nice(int value) {
        struct sched_attributes a = {
                .size = sizeof(a),
                .flags = FLAG_KEEP_ALL | FLAG_LATENCY_NICE,
                .latency_nice = value,
        };
        int r = sched_set(0, &a);

        if (r < 0)
                die("cannot set latency nice %d: %s", value, strerror(-r));
}

pid_t spawn(void) {
        pid_t pid;

        fflush(stdout);
        pid = fork();
        if (pid < 0)
                die("cannot fork: %s", strerror(errno));
        if (pid == 0)
                prctl(PR_SET_PDEATHSIG, SIGKILL);
        return pid;
}

void reap(pid_t pid) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

void sample_init(struct sample *s, size_t room) {
        s->values = calloc(room, sizeof(*s->values));
        if (!s->values)
                die("no memory for %zu values", room);
        s->n = 0;
        s->room = room;
}

void sample_init_shared(struct sample *s, size_t room) {
        s->values = mmap(NULL, room * sizeof(*s->values), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (s->values == MAP_FAILED)
                die("no memory for %zu values", room);
        s->n = 0;
        s->room = room;
}

void sample_add(struct sample *s, int64_t ns) {
        if (s->n == s->room)
                die("more than %zu values", s->room);
        s->values[s->n++] = ns;
}

static int compare(const void *a, const void *b) {
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

void sample_print(struct sample *s) {
        double sum = 0;

        if (!s->n)
                die("nothing was measured");
        qsort(s->values, s->n, sizeof(*s->values), compare);
        for (size_t i = 0; i < s->n; i++)
                sum += s->values[i];
        printf("n=%zu min=%.1f p50=%.1f avg=%.1f p90=%.1f p99=%.1f max=%.1f", s->n, s->values[0] / 1e3,
               s->values[s->n / 2] / 1e3, sum / s->n / 1e3, s->values[s->n * 9 / 10] / 1e3,
               s->values[s->n * 99 / 100] / 1e3, s->values[s->n - 1] / 1e3);
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                int (*run)(int argc, char **argv);
                const char *help;
        } verbs[] = {
                {"latency", lab_latency, "-c CPU -g GROUP [-b GROUP]... -r RUN_US -s SLEEP_US -t SECONDS\n"
                 "             [-R RUN_US -S SLEEP_US] [-n TASK_NICE] [-N LOAD_TASK_NICE]"},
                {"share", lab_share, "-c CPU -t SECONDS GROUP..."},
                {"spread", lab_spread, "-n CHILDREN -g GAP_US"},
                {"core", lab_core, "-t SECONDS CPU:GROUP..."},
                {"bandwidth", lab_bandwidth, "-g GROUP -w WORKERS -t SECONDS"},
                {"pingpong", lab_pingpong, "-n ROUNDS [-c CPU]"},
                {"schbench", lab_schbench, "-m MESSAGE_THREADS -w WORKERS -r RUN_US -t SECONDS [-n LATENCY_NICE]"},
                {"attributes", lab_attributes, ""},
                {"hog", lab_hog, "-c CPU [-g GROUP]"},
                {"cookies", lab_cookies, "GROUP GROUP PARENT CHILD"},
                {"stress", lab_stress, "-t SECONDS GROUP..."},
        };

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc > 1)
                for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
                        if (strcmp(argv[1], verbs[i].name) == 0)
                                return verbs[i].run(argc - 1, argv + 1);
        for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
                fprintf(stderr, "lab %s %s\n", verbs[i].name, verbs[i].help);
        return 2;
}
