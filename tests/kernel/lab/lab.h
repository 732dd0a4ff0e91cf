/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of the lab tool share. All times are nanoseconds unless a name says otherwise. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#define USEC 1000LL
#define MSEC 1000000LL
#define SEC 1000000000LL

/* What a thing that cannot be done means for a measuring tool: say so and end, with status 2. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

int64_t now(clockid_t clock);
void sleep_ns(int64_t ns);
/* Use `ns` of this thread's CPU time. */
void burn(int64_t ns);
void pin(int cpu);
/* A random number from 0 to below `limit`; the sequence depends on nothing but *seed. */
uint32_t next_random(uint32_t *seed, uint32_t limit);

/* cgroups, by their path below the mount of version 2 */
void group_join(const char *group);
/* The value of `key` in the group's cpu.stat, or -1 where there is no such key. */
int64_t group_stat(const char *group, const char *key);

/* struct sched_attr with the field that our kernels add (and 4 bytes to fill it up). */
struct sched_attributes {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime;
        uint64_t deadline;
        uint64_t period;
        uint32_t util_min;
        uint32_t util_max;
        int32_t latency_nice;
        uint32_t pad;
};
#define FLAG_RESET_ON_FORK 0x01
#define FLAG_KEEP_POLICY 0x08
#define FLAG_KEEP_PARAMS 0x10
#define FLAG_KEEP_ALL (FLAG_KEEP_POLICY | FLAG_KEEP_PARAMS)
#define FLAG_LATENCY_NICE 0x80
int sched_set(pid_t pid, const struct sched_attributes *attributes);
int sched_get(pid_t pid, struct sched_attributes *ret, unsigned size);
/* Set only the latency nice of this thread; ends the program where the kernel refuses. */
void set_latency_nice(int value);

/* A child that dies with its parent. Returns as fork does. */
pid_t spawn(void);
void reap(pid_t pid);

/* A sample of durations and the line it makes: "n=.. min=.. p50=.. avg=.. p90=.. p99=.. max=.." in µs. */
struct sample {
        int64_t *values;
        size_t n;
        size_t room;
};
void sample_init(struct sample *s, size_t room);
/* The same in memory that children share. */
void sample_init_shared(struct sample *s, size_t room);
void sample_add(struct sample *s, int64_t ns);
void sample_print(struct sample *s);

/* One verb of the tool: argv[0] is the verb. */
int lab_latency(int argc, char **argv);
int lab_share(int argc, char **argv);
int lab_spread(int argc, char **argv);
int lab_core(int argc, char **argv);
int lab_bandwidth(int argc, char **argv);
int lab_pingpong(int argc, char **argv);
int lab_schbench(int argc, char **argv);
int lab_attributes(int argc, char **argv);
int lab_hog(int argc, char **argv);
int lab_cookies(int argc, char **argv);
int lab_stress(int argc, char **argv);
