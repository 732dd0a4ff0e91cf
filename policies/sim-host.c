/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPUs and threads of the simulated host. Nothing happens between events: a running thread is booked when somebody looks, and each CPU
 * knows when it must be looked at next. Runtime is only checked at ticks and wake-ups, as in the kernel, so groups overrun by up to a tick. */

#include "policies/sim-internal.h"

#define KEEP_USEC (1 * USEC_PER_MSEC) /* min_cfs_rq_runtime */

void sim_group_pressure(SimHost *h, SimGroup *g) {
        uint64_t elapsed = h->now_usec - g->pressure_since_usec;

        g->pressure_since_usec = h->now_usec;
        if (g->n_waiting == 0)
                return;
        g->some_usec += elapsed;
        if (g->n_running == 0)
                g->full_usec += elapsed;
}

static void set_state(SimHost *h, SimThread *t, SimThreadState state) {
        SimGroup *g = &h->groups[t->group];

        sim_group_pressure(h, g);
        g->n_running += (state == SIM_THREAD_RUNNING) - (t->state == SIM_THREAD_RUNNING);
        g->n_waiting += (state == SIM_THREAD_READY || state == SIM_THREAD_THROTTLED) -
                        (t->state == SIM_THREAD_READY || t->state == SIM_THREAD_THROTTLED);
        t->state = state;
}

static void account(SimHost *h, uint32_t cpu) {
        SimCpu *c = &h->cpus[cpu];
        uint64_t elapsed = h->now_usec - c->since_usec;

        c->since_usec = h->now_usec;
        if (c->current == SIM_NOBODY || elapsed == 0)
                return;

        SimThread *t = &h->threads[c->current];
        SimGroup *g = &h->groups[t->group];

        if (!t->hog)
                t->work_usec -= MIN_OF(elapsed, t->work_usec);
        t->ran_usec += elapsed;
        g->used_usec += elapsed;
        h->busy_usec += elapsed;
        if (sim_bandwidth_is_limited(&g->bandwidth))
                g->bandwidth.local[cpu].remaining_usec -= (int64_t) elapsed;
}

void sim_host_account_all(SimHost *h) {
        for (uint32_t i = 0; i < h->setup->n_cpus; i++)
                account(h, i);
}

static uint64_t next_tick(const SimHost *h, uint64_t not_before_usec) {
        uint64_t tick = h->setup->tick_usec;
        uint64_t t = (not_before_usec + tick - 1) / tick * tick;

        return t > h->now_usec ? t : t + tick;
}

static void plan_event(SimHost *h, uint32_t cpu) {
        SimCpu *c = &h->cpus[cpu];
        uint64_t event = USEC_INFINITY;

        account(h, cpu);
        if (c->current != SIM_NOBODY) {
                const SimThread *t = &h->threads[c->current];
                const SimGroup *g = &h->groups[t->group];

                if (!t->hog)
                        event = h->now_usec + t->work_usec;
                if (sim_bandwidth_is_limited(&g->bandwidth)) {
                        int64_t remaining = g->bandwidth.local[cpu].remaining_usec;

                        event = MIN_OF(event, next_tick(h, h->now_usec + (uint64_t) MAX_OF(remaining, INT64_C(0))));
                }
                if (c->n_ready > 0)
                        event = MIN_OF(event, next_tick(h, h->now_usec + (g->slice_usec > t->ran_usec ? g->slice_usec - t->ran_usec : 0)));
        }
        c->event_usec = event;
}

static void push_ready(SimHost *h, uint32_t cpu, uint32_t thread) {
        SimThread *t = &h->threads[thread];

        t->cpu = cpu;
        set_state(h, t, SIM_THREAD_READY);
        sim_list_push(h, &h->cpus[cpu].ready, thread);
        h->cpus[cpu].n_ready++;
        h->n_ready++;
}

static uint32_t pop_ready(SimHost *h, uint32_t cpu) {
        uint32_t thread = sim_list_pop(h, &h->cpus[cpu].ready);

        if (thread != SIM_NOBODY) {
                h->cpus[cpu].n_ready--;
                h->n_ready--;
        }
        return thread;
}

/* All threads of a group on this CPU stop: its pool is empty. */
static void throttle(SimHost *h, uint32_t cpu, uint32_t group) {
        SimCpu *c = &h->cpus[cpu];
        SimGroup *g = &h->groups[group];
        uint32_t n = c->n_ready;

        if (c->current != SIM_NOBODY && h->threads[c->current].group == group) {
                set_state(h, &h->threads[c->current], SIM_THREAD_THROTTLED);
                sim_list_push(h, &g->throttled[cpu], c->current);
                c->current = SIM_NOBODY;
        }
        while (n-- > 0) {
                uint32_t thread = pop_ready(h, cpu);

                if (h->threads[thread].group == group) {
                        set_state(h, &h->threads[thread], SIM_THREAD_THROTTLED);
                        sim_list_push(h, &g->throttled[cpu], thread);
                } else
                        push_ready(h, cpu, thread);
        }
        if (law_is_moving(g->setup->law.law) && g->onset_usec == 0 &&
            (g->last_throttled_usec == 0 || h->now_usec - g->last_throttled_usec > USEC_PER_SEC))
                g->onset_usec = h->now_usec;
        g->last_throttled_usec = h->now_usec;
}

/* Another CPU's waiting thread, for a CPU that would be idle; from the longest queue. */
static uint32_t steal(SimHost *h) {
        uint32_t from = SIM_NOBODY;

        if (h->n_ready == 0)
                return SIM_NOBODY;
        for (uint32_t i = 0; i < h->setup->n_cpus; i++)
                if (h->cpus[i].n_ready > 0 && (from == SIM_NOBODY || h->cpus[i].n_ready > h->cpus[from].n_ready))
                        from = i;
        return pop_ready(h, from);
}

/* An idle CPU picks what to run. */
static void pick(SimHost *h, uint32_t cpu) {
        SimCpu *c = &h->cpus[cpu];

        while (c->current == SIM_NOBODY) {
                uint32_t thread = pop_ready(h, cpu);

                if (thread == SIM_NOBODY)
                        thread = steal(h);
                if (thread == SIM_NOBODY)
                        break;

                SimThread *t = &h->threads[thread];
                SimGroup *g = &h->groups[t->group];

                t->cpu = cpu;
                if (sim_bandwidth_pick(&g->bandwidth, cpu, h->now_usec)) {
                        set_state(h, t, SIM_THREAD_RUNNING);
                        t->ran_usec = 0;
                        c->current = thread;
                        c->since_usec = h->now_usec;
                } else {
                        set_state(h, t, SIM_THREAD_THROTTLED);
                        sim_list_push(h, &g->throttled[cpu], thread);
                        throttle(h, cpu, t->group);
                }
        }
        plan_event(h, cpu);
}

static bool is_idle(const SimCpu *c) {
        return c->current == SIM_NOBODY && c->n_ready == 0;
}

/* The CPU for a thread that wakes: its last one if that is idle, else an idle one, else the one with the shortest queue. */
static uint32_t choose_cpu(const SimHost *h, const SimThread *t) {
        uint32_t n = h->setup->n_cpus, best = t->cpu;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t cpu = (t->cpu + i) % n;

                if (is_idle(&h->cpus[cpu]))
                        return cpu;
                if (h->cpus[cpu].n_ready < h->cpus[best].n_ready)
                        best = cpu;
        }
        return best;
}

/* Puts a thread into the run queue of a CPU, or straight onto it. */
static void enqueue(SimHost *h, uint32_t cpu, uint32_t thread) {
        SimCpu *c = &h->cpus[cpu];
        SimThread *t = &h->threads[thread];

        if (c->current == SIM_NOBODY) {
                push_ready(h, cpu, thread);
                pick(h, cpu);
                return;
        }
        account(h, cpu);
        if (h->groups[t->group].slice_usec < h->groups[h->threads[c->current].group].slice_usec) {
                uint32_t former = c->current;

                /* A shorter slice preempts; who was running goes on afterwards. */
                c->current = SIM_NOBODY;
                set_state(h, t, SIM_THREAD_READY);
                t->cpu = cpu;
                t->next = c->ready.first;
                c->ready.first = thread;
                if (c->ready.last == SIM_NOBODY)
                        c->ready.last = thread;
                c->n_ready++;
                h->n_ready++;
                push_ready(h, cpu, former);
                pick(h, cpu);
                return;
        }
        push_ready(h, cpu, thread);
        plan_event(h, cpu);
}

void sim_host_wake(SimHost *h, uint32_t thread) {
        SimThread *t = &h->threads[thread];
        SimGroup *g = &h->groups[t->group];
        uint32_t cpu = choose_cpu(h, t), current = h->cpus[cpu].current;

        t->cpu = cpu;
        /* A group that runs there already is checked at the tick. */
        if ((current == SIM_NOBODY || h->threads[current].group != t->group) && !sim_bandwidth_demand(&g->bandwidth, cpu, h->now_usec)) {
                set_state(h, t, SIM_THREAD_THROTTLED);
                sim_list_push(h, &g->throttled[cpu], thread);
                /* The first to find the pool empty: the rest of the group on this CPU stops too. */
                throttle(h, cpu, t->group);
                pick(h, cpu);
                return;
        }
        enqueue(h, cpu, thread);
}

static bool group_waits_on(const SimHost *h, uint32_t cpu, uint32_t group) {
        for (uint32_t t = h->cpus[cpu].ready.first; t != SIM_NOBODY; t = h->threads[t].next)
                if (h->threads[t].group == group)
                        return true;
        return false;
}

void sim_host_cpu_event(SimHost *h, uint32_t cpu) {
        SimCpu *c = &h->cpus[cpu];
        uint32_t thread = c->current;

        account(h, cpu);
        if (thread != SIM_NOBODY) {
                SimThread *t = &h->threads[thread];
                SimGroup *g = &h->groups[t->group];

                if (!t->hog && t->work_usec == 0 && !sim_requests_part_done(h, thread)) {
                        set_state(h, t, SIM_THREAD_IDLE);
                        sim_list_push(h, &g->idle, thread);
                        c->current = SIM_NOBODY;
                        if (!group_waits_on(h, cpu, t->group))
                                sim_bandwidth_return(&g->bandwidth, cpu, h->now_usec);
                } else if (h->now_usec % h->setup->tick_usec == 0) {
                        if (!sim_bandwidth_demand(&g->bandwidth, cpu, h->now_usec))
                                throttle(h, cpu, t->group);
                        else if (c->n_ready > 0 && t->ran_usec >= g->slice_usec) {
                                c->current = SIM_NOBODY;
                                push_ready(h, cpu, thread);
                        }
                }
        }
        if (c->current == SIM_NOBODY)
                pick(h, cpu);
        else
                plan_event(h, cpu);
}

/* Lets the threads of a group go on on these CPUs. */
static void resume(SimHost *h, uint32_t group, const uint32_t *cpus, uint32_t n) {
        SimGroup *g = &h->groups[group];

        for (uint32_t i = 0; i < n; i++) {
                SimList list = g->throttled[cpus[i]];

                /* Detached first: who goes on may be throttled again at once. */
                sim_list_init(&g->throttled[cpus[i]]);
                for (uint32_t thread = list.first; thread != SIM_NOBODY;) {
                        uint32_t next = h->threads[thread].next;

                        if (g->bandwidth.local[cpus[i]].throttled)
                                sim_list_push(h, &g->throttled[cpus[i]], thread);
                        else
                                enqueue(h, cpus[i], thread);
                        thread = next;
                }
        }
}

void sim_host_period_timer(SimHost *h, uint32_t group) {
        uint32_t cpus[SIM_CPUS_MAX];

        resume(h, group, cpus, sim_bandwidth_period_timer(&h->groups[group].bandwidth, h->now_usec, cpus));
}

void sim_host_slack_timer(SimHost *h, uint32_t group) {
        uint32_t cpus[SIM_CPUS_MAX];

        resume(h, group, cpus, sim_bandwidth_slack_timer(&h->groups[group].bandwidth, h->now_usec, cpus));
}

static void write_one(SimHost *h, uint32_t group, const Bandwidth *set) {
        SimGroup *g = &h->groups[group];
        uint32_t cpus[SIM_CPUS_MAX], n;

        if (bandwidth_equal(&g->bandwidth.set, set))
                return;
        n = sim_bandwidth_write(&g->bandwidth, set, h->now_usec, cpus);
        g->outcome->n_writes++;
        resume(h, group, cpus, n);
        for (uint32_t i = 0; i < h->setup->n_cpus; i++)
                plan_event(h, i);
}

void sim_host_write(SimHost *h, uint32_t group, const Bandwidth *want) {
        Bandwidth step = h->groups[group].bandwidth.set;

        sim_host_account_all(h);
        if (want->burst_usec < step.burst_usec) {
                step.burst_usec = want->burst_usec;
                write_one(h, group, &step);
        }
        step.quota_usec = want->quota_usec;
        step.period_usec = want->period_usec;
        write_one(h, group, &step);
        step.burst_usec = want->burst_usec;
        write_one(h, group, &step);
}

void sim_host_set_latency_nice(SimHost *h, uint32_t group, int latency_nice) {
        uint64_t nsec = latency_nice_to_slice_nsec(latency_nice, h->setup->base_slice_usec * NSEC_PER_USEC);

        h->groups[group].slice_usec = nsec == 0 ? h->setup->base_slice_usec : MAX_OF(nsec / NSEC_PER_USEC, UINT64_C(1));
        h->groups[group].nice = latency_nice;
}

int sim_host_init(SimHost *h, const SimSetup *setup, SimOutcome *outcomes) {
        uint32_t n = 0, thread = 0;

        *h = (SimHost) { .setup = setup };
        for (uint32_t i = 0; i < setup->n_groups; i++)
                n += setup->groups[i].n_workers + setup->groups[i].n_hogs;
        h->threads = calloc(MAX_OF(n, 1u), sizeof(*h->threads));
        if (!h->threads)
                return -ENOMEM;
        h->n_threads = n;
        for (uint32_t i = 0; i < setup->n_cpus; i++) {
                h->cpus[i] = (SimCpu) { .current = SIM_NOBODY, .event_usec = USEC_INFINITY };
                sim_list_init(&h->cpus[i].ready);
        }

        for (uint32_t i = 0; i < setup->n_groups; i++) {
                const SimGroupSetup *s = &setup->groups[i];
                SimGroup *g = &h->groups[i];
                Bandwidth start;

                *g = (SimGroup) { .setup = s, .outcome = &outcomes[i], .pending_usec = USEC_INFINITY, .free_open = SIM_NOBODY };
                sim_list_init(&g->idle);
                for (uint32_t k = 0; k < SIM_CPUS_MAX; k++)
                        sim_list_init(&g->throttled[k]);
                law_start(&s->law, &start);
                sim_bandwidth_init(&g->bandwidth, setup->n_cpus, setup->bandwidth_slice_usec, KEEP_USEC, &start, 0);
                sim_host_set_latency_nice(h, i, s->law.has_latency_nice ? s->law.latency_nice : 0);
                for (uint32_t k = 0; k < s->n_workers + s->n_hogs; k++, thread++) {
                        h->threads[thread] = (SimThread) { .group = i, .cpu = thread % setup->n_cpus, .hog = k >= s->n_workers };
                        if (!h->threads[thread].hog)
                                sim_list_push(h, &g->idle, thread);
                }
                sim_requests_fetch(g);
        }
        for (uint32_t i = 0; i < h->n_threads; i++)
                if (h->threads[i].hog)
                        sim_host_wake(h, i);
        return 0;
}

void sim_host_clear(SimHost *h) {
        for (uint32_t i = 0; h->setup && i < h->setup->n_groups; i++) {
                free(h->groups[i].backlog);
                free(h->groups[i].open);
        }
        free(h->threads);
        *h = (SimHost) {};
}
