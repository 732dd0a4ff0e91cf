/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The simulated host inside: threads on CPUs (sim-host.c), requests (sim-requests.c) and the control loop around them (sim.c). */

#include "policies/sim.h"

#define SIM_NOBODY UINT32_MAX

typedef enum SimThreadState {
        SIM_THREAD_IDLE = 0,   /* waits for work */
        SIM_THREAD_READY,      /* in the run queue of its CPU */
        SIM_THREAD_RUNNING,
        SIM_THREAD_THROTTLED,  /* its group has no runtime on this CPU */
} SimThreadState;

typedef struct SimThread {
        SimThreadState state;
        bool hog;
        uint32_t group, cpu;
        uint32_t next;         /* in whatever list it is */
        uint32_t request;
        uint64_t work_usec;    /* left of its part */
        uint64_t ran_usec;     /* of its turn */
} SimThread;

typedef struct SimList {
        uint32_t first, last;
} SimList;

typedef struct SimCpu {
        uint32_t current;
        uint32_t n_ready;
        SimList ready;
        uint64_t since_usec;   /* the current thread is accounted up to here */
        uint64_t event_usec;   /* when something about it must be looked at */
} SimCpu;

typedef struct SimPart {
        uint32_t request;
        uint32_t work_usec;
} SimPart;

typedef struct SimOpenRequest {
        uint64_t arrival_usec;
        uint32_t n_left;       /* 0: free, then next_free counts */
        uint32_t next_free;
        bool unmeasured;
} SimOpenRequest;

typedef struct SimGroup {
        const SimGroupSetup *setup;
        SimBandwidth bandwidth;
        SimList idle;                       /* workers, longest idle first */
        SimList throttled[SIM_CPUS_MAX];
        SimPart *backlog;                   /* ring of parts that wait for a worker */
        size_t backlog_first, backlog_count, backlog_size;
        SimOpenRequest *open;
        uint32_t n_open, open_size, free_open;
        SimRequest upcoming;
        bool has_upcoming;
        uint64_t slice_usec;                /* EEVDF slice of its threads */

        /* pressure */
        uint32_t n_running, n_waiting;
        uint64_t pressure_since_usec, some_usec, full_usec;

        uint64_t used_usec;
        SimOutcome *outcome;

        /* control loop */
        bool steered;
        LawState law;
        LawSample last_totals;              /* totals at the last sample, in the fields of a sample */
        uint64_t pending_usec;              /* when the pending write happens; USEC_INFINITY: none */
        Bandwidth pending;
        bool pending_nice;
        int nice;
        uint64_t quota_since_usec;
        uint64_t last_throttled_usec, onset_usec;
} SimGroup;

typedef struct SimHost {
        const SimSetup *setup;
        uint64_t now_usec;
        uint64_t busy_usec;                 /* over all CPUs */
        uint32_t n_ready;                   /* threads that wait in run queues */
        bool out_of_memory;
        SimCpu cpus[SIM_CPUS_MAX];
        SimGroup groups[SIM_GROUPS_MAX];
        SimThread *threads;
        uint32_t n_threads;
} SimHost;

/* ---- sim-host.c ---- */
int sim_host_init(SimHost *h, const SimSetup *setup, SimOutcome *outcomes);
void sim_host_clear(SimHost *h);
/* Gives a woken thread a CPU. */
void sim_host_wake(SimHost *h, uint32_t thread);
/* Something about this CPU is due: its thread is done, out of runtime, or at the end of its turn. */
void sim_host_cpu_event(SimHost *h, uint32_t cpu);
/* Books the running time of all CPUs up to now. */
void sim_host_account_all(SimHost *h);
void sim_host_period_timer(SimHost *h, uint32_t group);
void sim_host_slack_timer(SimHost *h, uint32_t group);
/* Writes a setting as the daemon does: burst first when lowering, quota first when raising, only what changes. */
void sim_host_write(SimHost *h, uint32_t group, const Bandwidth *want);
void sim_host_set_latency_nice(SimHost *h, uint32_t group, int latency_nice);
void sim_group_pressure(SimHost *h, SimGroup *g);

/* ---- sim-requests.c ---- */
/* Takes the upcoming request of a group in and fetches the one after it. */
void sim_requests_arrive(SimHost *h, uint32_t group);
void sim_requests_fetch(SimGroup *g);
/* A thread has finished its part. True: it has the next one. */
bool sim_requests_part_done(SimHost *h, uint32_t thread);
/* Counts what is unfinished at the end. */
void sim_requests_finish(SimHost *h, uint32_t group);

/* ---- lists of threads ---- */
static inline void sim_list_init(SimList *l) {
        l->first = l->last = SIM_NOBODY;
}

static inline void sim_list_push(SimHost *h, SimList *l, uint32_t thread) {
        h->threads[thread].next = SIM_NOBODY;
        if (l->first == SIM_NOBODY)
                l->first = thread;
        else
                h->threads[l->last].next = thread;
        l->last = thread;
}

static inline uint32_t sim_list_pop(SimHost *h, SimList *l) {
        uint32_t thread = l->first;

        if (thread != SIM_NOBODY) {
                l->first = h->threads[thread].next;
                if (l->first == SIM_NOBODY)
                        l->last = SIM_NOBODY;
        }
        return thread;
}
