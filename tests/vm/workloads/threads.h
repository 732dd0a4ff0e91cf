/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* How the threads of a workload are scheduled, and how they burn CPU. */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define SCHEDULING_MAX_POLICIES 8

typedef struct Scheduling {
        int policies[SCHEDULING_MAX_POLICIES]; /* thread i takes policies[i % n_policies] */
        unsigned n_policies;                   /* 0: leave it as inherited */
        bool has_nice;
        int nice;
        int priority; /* of SCHED_FIFO and SCHED_RR */
        bool reset_on_fork;
        uint64_t slice_nsec;          /* 0: not set */
        int util_min, util_max;       /* -1: not set */
        bool has_affinity;
        cpu_set_t affinity;
} Scheduling;

/* Reads "other,batch,fifo". Returns 0 or -EINVAL. */
int scheduling_parse_policies(const char *text, Scheduling *s);
/* Reads "0-3,5". Returns 0 or -EINVAL. */
int scheduling_parse_cpus(const char *text, Scheduling *s);
/* Applies to the calling thread, which is the index-th of its workload. Negative errno of sched_setattr(2) or sched_setaffinity(2). */
int scheduling_apply(const Scheduling *s, unsigned index);

uint64_t now_nsec(void);        /* CLOCK_MONOTONIC */
uint64_t thread_cpu_nsec(void); /* CPU time of the calling thread */
void sleep_until_nsec(uint64_t monotonic_nsec);
/* Uses this much CPU time of the calling thread (its own clock: time in which it does not run does not count). */
void burn_nsec(uint64_t cpu_nsec);
/* Runs a fixed small piece of work, some microseconds. */
void burn_some(void);
