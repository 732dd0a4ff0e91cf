/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loop of the simulator: whatever is due first happens next. At each sample the groups are read as the daemon reads the kernel, their laws
 * step, and what they decide is written a moment later. */

#include "policies/sim-internal.h"
#include "policies/sim-random.h"

/* A law of one second looks each second, as in the daemon; all groups are sampled in one pass. */
static uint64_t sample_interval(const SimSetup *setup) {
        uint64_t least = setup->sample_usec ?: USEC_PER_SEC;

        for (uint32_t i = 0; i < setup->n_groups && setup->sample_usec == 0; i++)
                least = MIN_OF(least, law_interval_usec(setup->groups[i].law.law));
        return least;
}

void sim_setup_init(SimSetup *setup) {
        *setup = (SimSetup) {
                .n_cpus = 8,
                .duration_usec = 600 * USEC_PER_SEC,
                .seed = 1,
                .tick_usec = 4 * USEC_PER_MSEC,
                .bandwidth_slice_usec = 5 * USEC_PER_MSEC,
                .base_slice_usec = 3 * USEC_PER_MSEC,
                .write_delay_usec = 5 * USEC_PER_MSEC,
        };
}

void sim_setup_clear(SimSetup *setup) {
        for (uint32_t i = 0; i < setup->n_groups; i++)
                setup->groups[i].source = sim_source_free(setup->groups[i].source);
        setup->n_groups = 0;
}

static bool setup_is_valid(const SimSetup *s) {
        if (s->n_cpus == 0 || s->n_cpus > SIM_CPUS_MAX || s->n_groups > SIM_GROUPS_MAX || s->tick_usec == 0 ||
            s->bandwidth_slice_usec == 0 || s->base_slice_usec == 0 || s->duration_usec > USEC_INFINITY / 4)
                return false;
        for (uint32_t i = 0; i < s->n_groups; i++) {
                const Bandwidth *b = &s->groups[i].law.base;

                if (s->groups[i].source && s->groups[i].n_workers == 0)
                        return false;
                if (b->period_usec < PERIOD_MIN_USEC || b->period_usec > PERIOD_MAX_USEC)
                        return false;
                if (b->quota_usec != QUOTA_UNLIMITED && (b->quota_usec < QUOTA_MIN_USEC || b->quota_usec > b->period_usec * 4096))
                        return false;
        }
        return true;
}

/* Totals since the start, in the fields of a sample. */
static void read_totals(SimHost *h, SimGroup *g, LawSample *ret) {
        const SimBandwidth *b = &g->bandwidth;

        sim_group_pressure(h, g);
        *ret = (LawSample) {
                .now_usec = h->now_usec,
                .nr_periods = b->nr_periods,
                .nr_throttled = b->nr_throttled,
                .throttled_usec = b->throttled_usec,
                .usage_usec = g->used_usec,
                .nr_bursts = b->nr_bursts,
                .burst_usec = b->burst_usec,
                .some_usec = g->some_usec,
                .full_usec = g->full_usec,
        };
}

static void make_sample(SimHost *h, SimGroup *g, uint32_t host_busy_permyriad, LawSample *ret) {
        LawSample now, *last = &g->last_totals;

        read_totals(h, g, &now);
        *ret = (LawSample) {
                .now_usec = h->now_usec + USEC_PER_SEC, /* a clock that never was 0 */
                .window_usec = h->now_usec - last->now_usec,
                .valid = true,
                .nr_periods = now.nr_periods - last->nr_periods,
                .nr_throttled = now.nr_throttled - last->nr_throttled,
                .throttled_usec = now.throttled_usec - last->throttled_usec,
                .usage_usec = now.usage_usec - last->usage_usec,
                .has_bursts = true,
                .nr_bursts = now.nr_bursts - last->nr_bursts,
                .burst_usec = now.burst_usec - last->burst_usec,
                .has_pressure = true,
                .some_usec = now.some_usec - last->some_usec,
                .full_usec = now.full_usec - last->full_usec,
                .live = g->bandwidth.set,
                .host_busy_permyriad = host_busy_permyriad,
        };
        *last = now;
}

static void note_quota(SimHost *h, SimGroup *g) {
        const Bandwidth *b = &g->bandwidth.set;

        if (b->quota_usec != QUOTA_UNLIMITED) {
                g->outcome->quota_usec += (uint64_t) ((unsigned __int128) b->quota_usec * (h->now_usec - g->quota_since_usec) / b->period_usec);
                g->outcome->highest_quota_usec = MAX_OF(g->outcome->highest_quota_usec, b->quota_usec);
                g->outcome->lowest_quota_usec = MIN_OF(g->outcome->lowest_quota_usec, b->quota_usec);
        }
        g->quota_since_usec = h->now_usec;
}

static void take_decision(SimHost *h, SimGroup *g, const LawDecision *d) {
        if (d->changed) {
                g->pending = (Bandwidth) { d->quota_usec, g->bandwidth.set.period_usec, d->burst_usec };
                g->outcome->n_changes++;
                g->outcome->n_causes[d->cause]++;
        } else if (g->pending_usec == USEC_INFINITY)
                g->pending = g->bandwidth.set;
        if (d->latency_nice_changed) {
                g->nice = d->latency_nice;
                g->pending_nice = true;
                g->outcome->n_latency_changes++;
        }
        if (d->changed || d->latency_nice_changed)
                g->pending_usec = h->now_usec + h->setup->write_delay_usec;
}

/* Who gives way, from what the laws saw at the last sample. */
static void choose_who_gives_way(const SimHost *h, bool ret[SIM_GROUPS_MAX]) {
        LawPeer peers[SIM_GROUPS_MAX];

        for (uint32_t i = 0; i < h->setup->n_groups; i++) {
                const SimGroup *g = &h->groups[i];

                peers[i] = (LawPeer) {
                        .priority = g->setup->law.priority,
                        .witness = law_is_witness(&g->law),
                        .can_give = g->steered && g->setup->law.law == LAW_ADAPTIVE && g->bandwidth.set.quota_usec > g->setup->law.floor_usec,
                };
        }
        law_choose_who_gives_way(peers, h->setup->n_groups, ret);
}

/* Reads all groups, then lets all laws step. */
static void sample_all(SimHost *h, uint64_t *last_busy_usec, uint64_t *last_usec) {
        LawSample samples[SIM_GROUPS_MAX];
        bool give_way[SIM_GROUPS_MAX];
        uint64_t could = (h->now_usec - *last_usec) * h->setup->n_cpus;
        uint32_t busy;

        sim_host_account_all(h);
        busy = could == 0 ? 0 : (uint32_t) MIN_OF((h->busy_usec - *last_busy_usec) * 10000 / could, UINT64_C(10000));
        *last_busy_usec = h->busy_usec;
        *last_usec = h->now_usec;

        choose_who_gives_way(h, give_way);
        for (uint32_t i = 0; i < h->setup->n_groups; i++)
                make_sample(h, &h->groups[i], busy, &samples[i]);
        for (uint32_t i = 0; i < h->setup->n_groups; i++) {
                SimGroup *g = &h->groups[i];
                LawDecision d;

                if (!g->steered)
                        continue;
                samples[i].contention_above = give_way[i];
                law_step(&g->setup->law, &g->law, &samples[i], &d);
                take_decision(h, g, &d);
                if (h->setup->observe)
                        h->setup->observe(&(SimPoint) { h->now_usec, i, &samples[i], &d }, h->setup->userdata);
        }
}

static void apply_pending(SimHost *h, uint32_t group) {
        SimGroup *g = &h->groups[group];
        uint64_t before = g->bandwidth.set.quota_usec;

        g->pending_usec = USEC_INFINITY;
        note_quota(h, g);
        sim_host_write(h, group, &g->pending);
        note_quota(h, g);
        if (g->pending_nice) {
                g->pending_nice = false;
                sim_host_set_latency_nice(h, group, g->nice);
        }
        if (g->onset_usec > 0 && g->bandwidth.set.quota_usec > before) {
                sim_histogram_add(&g->outcome->reaction, h->now_usec - g->onset_usec);
                g->onset_usec = 0;
        }
}

/* Does one thing that is due at h->now_usec for a group; false: nothing was. */
static bool group_event(SimHost *h, uint32_t group) {
        SimGroup *g = &h->groups[group];
        SimBandwidth *b = &g->bandwidth;

        /* The timer first: at the same moment the kernel's interrupt comes before any thread. */
        if (b->active && b->timer_usec <= h->now_usec)
                sim_host_period_timer(h, group);
        else if (b->slack_usec <= h->now_usec)
                sim_host_slack_timer(h, group);
        else if (g->has_upcoming && g->upcoming.arrival_usec <= h->now_usec)
                sim_requests_arrive(h, group);
        else if (g->pending_usec <= h->now_usec)
                apply_pending(h, group);
        else
                return false;
        return true;
}

static uint64_t next_event(const SimHost *h) {
        uint64_t next = USEC_INFINITY;

        for (uint32_t i = 0; i < h->setup->n_groups; i++) {
                const SimGroup *g = &h->groups[i];

                if (g->bandwidth.active)
                        next = MIN_OF(next, g->bandwidth.timer_usec);
                next = MIN_OF(next, g->bandwidth.slack_usec);
                if (g->has_upcoming)
                        next = MIN_OF(next, g->upcoming.arrival_usec);
                next = MIN_OF(next, g->pending_usec);
        }
        for (uint32_t i = 0; i < h->setup->n_cpus; i++)
                next = MIN_OF(next, h->cpus[i].event_usec);
        return next;
}

static void run_until(SimHost *h, uint64_t until_usec) {
        while (!h->out_of_memory) {
                uint64_t next = next_event(h);

                if (next >= until_usec)
                        break;
                h->now_usec = MAX_OF(h->now_usec, next);
                for (uint32_t i = 0; i < h->setup->n_groups; i++)
                        while (group_event(h, i))
                                ;
                for (uint32_t i = 0; i < h->setup->n_cpus; i++)
                        if (h->cpus[i].event_usec <= h->now_usec)
                                sim_host_cpu_event(h, i);
        }
        h->now_usec = until_usec;
}

static void finish(SimHost *h, uint32_t group) {
        SimGroup *g = &h->groups[group];
        SimOutcome *o = g->outcome;

        sim_requests_finish(h, group);
        sim_group_pressure(h, g);
        note_quota(h, g);
        o->used_usec = g->used_usec;
        o->burst_usec = g->bandwidth.burst_usec;
        o->granted_usec = g->bandwidth.granted_usec;
        o->nr_periods = g->bandwidth.nr_periods;
        o->nr_throttled = g->bandwidth.nr_throttled;
        o->throttled_usec = sim_bandwidth_throttled_now(&g->bandwidth, h->now_usec);
        o->some_usec = g->some_usec;
        o->full_usec = g->full_usec;
}

void sim_outcome_clear(SimOutcome *o) {
        sim_histogram_clear(&o->latency);
        sim_histogram_clear(&o->reaction);
        *o = (SimOutcome) {};
}

int sim_run(const SimSetup *setup, SimOutcome ret[SIM_GROUPS_MAX]) {
        SimOutcome outcomes[SIM_GROUPS_MAX] = {};
        SimRandom random = sim_random_stream(setup->seed, 0);
        uint64_t interval, next_sample, last_busy = 0, last_sample = 0;
        SimHost *h;
        int r = 0;

        if (!setup_is_valid(setup))
                return -EINVAL;
        h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        for (uint32_t i = 0; i < setup->n_groups && r >= 0; i++) {
                r = sim_histogram_init(&outcomes[i].latency);
                if (r >= 0)
                        r = sim_histogram_init(&outcomes[i].reaction);
                outcomes[i].lowest_quota_usec = UINT64_MAX;
        }
        if (r >= 0)
                r = sim_host_init(h, setup, outcomes);

        if (r >= 0) {
                interval = sample_interval(setup);
                next_sample = 1 + sim_random_next(&random) % interval;
                for (uint32_t i = 0; i < setup->n_groups; i++) {
                        SimGroup *g = &h->groups[i];

                        if (!g->bandwidth.active)
                                g->bandwidth.timer_usec = sim_random_next(&random) % g->bandwidth.set.period_usec;
                        law_reset(&g->setup->law, &g->law);
                        g->steered = g->setup->law.base.quota_usec != QUOTA_UNLIMITED;
                        g->last_totals.now_usec = 0;
                }
                while (!h->out_of_memory && h->now_usec < setup->duration_usec) {
                        run_until(h, MIN_OF(next_sample, setup->duration_usec));
                        if (h->now_usec == next_sample) {
                                sample_all(h, &last_busy, &last_sample);
                                next_sample += interval;
                        }
                }
                sim_host_account_all(h);
                for (uint32_t i = 0; i < setup->n_groups; i++)
                        finish(h, i);
                if (h->out_of_memory)
                        r = -ENOMEM;
        }

        sim_host_clear(h);
        free(h);
        for (uint32_t i = 0; i < setup->n_groups; i++)
                if (r >= 0)
                        ret[i] = outcomes[i];
                else
                        sim_outcome_clear(&outcomes[i]);
        return r;
}
