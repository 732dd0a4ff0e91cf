/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tick: sample what is due, let the laws decide, look after threads, and sleep until the next thing is due.
 *
 * Groups that a moving law controls and that were active lately are sampled every 100 ms through cached descriptors; the rest every second; groups at rest every few seconds,
 * because a foreign write to their files wakes us through inotify. */

#include "daemon/knob-threads.h"

#include <fcntl.h>

#define HOST_CHECK_USEC (5 * USEC_PER_SEC)
#define CONTENTION_USEC (2 * USEC_PER_SEC)
#define TICK_SLACK_USEC (5 * USEC_PER_MSEC)

static ssize_t read_cached(int dir_fd, int *fd, const char *name, char *buffer, size_t size) {
        if (*fd < 0) {
                *fd = cgroup_open_file(dir_fd, name, O_RDONLY);
                if (*fd < 0)
                        return *fd;
        }
        return cgroup_pread(*fd, buffer, size);
}

static uint64_t delta(uint64_t now, uint64_t before) {
        return now >= before ? now - before : 0;
}

static void sample_host(Manager *m, uint64_t now) {
        uint64_t busy, total;

        if (now - m->host_sampled_usec < 500 * USEC_PER_MSEC || host_cpu_times("", &busy, &total) < 0)
                return;
        if (m->cpu_total && total > m->cpu_total)
                m->host_busy_permyriad = (uint32_t) (delta(busy, m->cpu_busy) * 10000 / (total - m->cpu_total));
        m->cpu_busy = busy;
        m->cpu_total = total;
        m->host_sampled_usec = now;
}

/* Whether a group above on the path was throttled in the last window (a sampled ancestor) or its own cpu.stat says so. */
static bool ancestor_throttled(Manager *m, const Group *g) {
        _cleanup_free_ char *path = path_parent(g->path);

        while (path && !streq(path, "/")) {
                const Group *a = group_table_find(&m->groups, path);
                char *up;

                if (a && a->managed && a->managed->sample_valid && a->managed->sample.delta.nr_throttled > 0 &&
                    clock_monotonic_usec() - a->managed->sample.at_usec < 3 * USEC_PER_SEC)
                        return true;
                up = path_parent(path);
                free(path);
                path = up;
        }
        return false;
}

/* An ancestor without a class is not sampled: its counter is read here, once a group's own stall has no explanation. */
static bool unsampled_ancestor_throttled(Manager *m, const Group *g) {
        _cleanup_free_ char *path = path_parent(g->path);
        uint64_t sum = 0;
        bool grew;

        while (path && !streq(path, "/")) {
                _cleanup_close_ int fd = cgroup_open(&m->root, path);
                char buffer[4096], *up;
                CpuStat stat;
                ssize_t n = fd >= 0 ? cgroup_read_file(fd, "cpu.stat", buffer, sizeof(buffer)) : -1;

                if (n > 0 && cpu_stat_parse(buffer, (size_t) n, &stat) >= 0 && stat.has_bandwidth)
                        sum += stat.nr_throttled;
                up = path_parent(path);
                free(path);
                path = up;
        }
        grew = g->managed->ancestors_throttled && sum > g->managed->ancestors_throttled - 1;
        g->managed->ancestors_throttled = sum + 1;
        return grew;
}

void group_sample(Manager *m, Group *g, uint64_t now) {
        Managed *x = g->managed;
        GroupSample *s = &x->sample;
        bool fast = x->law_running;
        _cleanup_close_ int dir_fd = -1;
        int stat_fd = -1, pressure_fd = -1;
        char buffer[4096];
        CpuStat stat;
        CpuPressure pressure;
        bool has_pressure = false;
        ssize_t n;

        if (!fast || x->stat_fd < 0) {
                dir_fd = cgroup_open(&m->root, g->path);
                if (dir_fd < 0)
                        return;
        }
        n = read_cached(dir_fd, fast ? &x->stat_fd : &stat_fd, "cpu.stat", buffer, sizeof(buffer));
        if (stat_fd >= 0)
                (void) close(stat_fd);
        if (n < 0 || cpu_stat_parse(buffer, (size_t) n, &stat) < 0) {
                x->sample_valid = false;
                if (x->stat_fd >= 0) {
                        (void) close(x->stat_fd);
                        x->stat_fd = -1;
                }
                return;
        }
        if (m->host.facts[FACT_PRESSURE].state == FACT_YES) {
                n = dir_fd >= 0 || x->pressure_fd >= 0 ? read_cached(dir_fd, fast ? &x->pressure_fd : &pressure_fd, "cpu.pressure", buffer, sizeof(buffer)) : -1;
                if (pressure_fd >= 0)
                        (void) close(pressure_fd);
                has_pressure = n >= 0 && cpu_pressure_parse(buffer, (size_t) n, &pressure) >= 0;
        }
        if (x->sample_valid && now > s->at_usec) {
                LawSample *d = &s->delta;
                uint64_t window = now - s->at_usec;

                *d = (LawSample) {
                        .now_usec = now,
                        .window_usec = window,
                        .valid = true,
                        .usage_usec = delta(stat.usage_usec, s->total.usage_usec),
                        .live = x->bandwidth.observed,
                        .host_busy_permyriad = m->host_busy_permyriad,
                };
                if (stat.has_bandwidth && s->total.has_bandwidth) {
                        d->nr_periods = delta(stat.nr_periods, s->total.nr_periods);
                        d->nr_throttled = delta(stat.nr_throttled, s->total.nr_throttled);
                        d->throttled_usec = delta(stat.throttled_usec, s->total.throttled_usec);
                }
                if (stat.has_bursts && s->total.has_bursts) {
                        d->has_bursts = true;
                        d->nr_bursts = delta(stat.nr_bursts, s->total.nr_bursts);
                        d->burst_usec = delta(stat.burst_usec, s->total.burst_usec);
                }
                if (stat.has_force_idle && s->total.has_force_idle) {
                        d->has_force_idle = true;
                        d->force_idle_usec = delta(stat.force_idle_usec, s->total.force_idle_usec);
                }
                if (stat.has_loss && s->total.has_loss) {
                        d->has_bandwidth_loss = true;
                        d->parked_usec = delta(stat.parked_usec, s->total.parked_usec);
                        d->lost_usec = delta(stat.lost_usec, s->total.lost_usec);
                }
                if (has_pressure && s->has_pressure) {
                        d->has_pressure = true;
                        d->some_usec = delta(pressure.some_total_usec, s->pressure.some_total_usec);
                        d->full_usec = delta(pressure.full_total_usec, s->pressure.full_total_usec);
                }
                s->window_usec = window;
                s->usage_permyriad_of_cpu = (uint32_t) MIN_OF(d->usage_usec * 10000 / window, UINT32_MAX);
                s->throttled_permyriad = d->nr_periods ? (uint32_t) MIN_OF(d->nr_throttled * 10000 / d->nr_periods, 10000) : 0;
                if (d->usage_usec > window / 1000 || d->nr_throttled > 0)
                        x->last_active_usec = now;
        }
        s->total = stat;
        s->has_pressure = has_pressure;
        if (has_pressure)
                s->pressure = pressure;
        s->at_usec = now;
        x->sample_valid = true;
}

static void run_law(Manager *m, Group *g) {
        Managed *x = g->managed;
        LawSample *d = &x->sample.delta;
        LawDecision decision;
        int before = x->latency.latency_nice;

        if (!x->sample_valid || d->now_usec != x->sample.at_usec)
                return;                      /* the first sample has no difference */
        if (x->bandwidth.common.held_until_usec || manager_is_paused(m, g, NULL))
                return;
        if (d->nr_throttled == 0 && d->has_pressure && d->some_usec * 20 > d->window_usec)
                d->ancestor_throttled = ancestor_throttled(m, g) || unsampled_ancestor_throttled(m, g);
        for (int p = x->law_config.priority + 1; p <= 1000 && !d->contention_above; p++)
                d->contention_above = m->contention_usec[p] && d->now_usec - m->contention_usec[p] < CONTENTION_USEC;
        law_step(&x->law_config, &x->law_state, d, &decision);
        if (decision.changed)
                bandwidth_apply_law(m, g, &decision);
        if (decision.latency_nice_changed && x->law_config.has_latency_nice) {
                x->law_state.latency_nice = decision.latency_nice;
                x->law_state.latency_since_usec = d->now_usec;
                if (decision.latency_nice != before)
                        latency_reconcile(m, g, "law");
        }
}

/* Who is stalled without a limit of its own to blame? Lower classes give way to it. */
static void note_contention(Manager *m, const Group *g) {
        const Managed *x = g->managed;
        const LawSample *d = &x->sample.delta;
        int p = CLAMP_TO(x->effective.priority, 0, 1000);

        if (d->valid && d->has_pressure && d->nr_throttled == 0 && !d->ancestor_throttled && d->some_usec * 10 > d->window_usec &&
            m->host_busy_permyriad > 8000)
                m->contention_usec[p] = x->sample.at_usec;
}

static uint64_t sample_interval(const Group *g, uint64_t now) {
        const Managed *x = g->managed;
        bool active = now - x->last_active_usec < ACTIVE_FOR_USEC;

        if (x->law_running && active)
                return law_interval_usec(x->law_config.law);
        if (x->bandwidth.settling)
                return SETTLE_USEC / 4;
        if (x->bandwidth.common.status == KNOB_PENDING || x->bandwidth.common.held_until_usec)
                return SAMPLE_SLOW_USEC / 2;
        return active ? SAMPLE_SLOW_USEC : SAMPLE_QUIET_USEC;
}

static void check_host(Manager *m, uint64_t now) {
        uint64_t fingerprint;

        if (now < m->next_host_check_usec)
                return;
        m->next_host_check_usec = now + HOST_CHECK_USEC;
        fingerprint = host_fingerprint("");
        if (fingerprint == m->host_fingerprint)
                return;
        log_fields(LOG_NOTICE, MESSAGE_HOST_FACT, "CPUs, SMT or the scheduler changed: probing the host again", NULL);
        m->host_fingerprint = fingerprint;
        host_probe("", m->has_root ? &m->root : NULL, &m->host);
        manager_mark_all_dirty(m);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        uint64_t now = clock_monotonic_usec(), next = now + SAMPLE_QUIET_USEC, spent;

        m->counters.n_ticks++;
        if (m->units_awaited_usec && now >= m->units_awaited_usec) {
                m->units_awaited_usec = 0;
                log_warning("systemd has not told its units: going on with what paths say");
                manager_mark_all_dirty(m);
        }
        pauses_expire(m);
        check_host(m, now);
        sample_host(m, now);
        for (size_t i = 0; i < m->groups.n; i++) {
                Group *g = m->groups.items[i];
                Managed *x = g->managed;

                if (!x || !x->service_class)
                        continue;
                if (now >= x->next_sample_usec) {
                        uint64_t interval;

                        bandwidth_check_drift(m, g);
                        group_sample(m, g, now);
                        interval = sample_interval(g, now);
                        /* On the grid of the interval, so that ticks of many groups fall together. */
                        x->next_sample_usec = (now / interval + 1) * interval;
                        if (x->law_running && !g->dirty)
                                run_law(m, g);
                        note_contention(m, g);
                }
                if (x->property_due_usec) {
                        bandwidth_property_tick(m, g, now);
                        /* What is due and yet not sent waits for an answer, for a resume or for the bus. */
                        if (x->property_due_usec)
                                next = MIN_OF(next, MAX_OF(x->property_due_usec, now + (m->n_calls ? 20 : 250) * USEC_PER_MSEC));
                }
                if ((x->effective.has_latency_nice || x->effective.core_scheduling != CORE_SCHEDULING_NONE) && now >= x->next_walk_usec) {
                        latency_reconcile(m, g, "thread");
                        cookie_reconcile(m, g, "thread");
                        x->next_walk_usec = (now / WALK_USEC + 1) * WALK_USEC;
                }
                if (x->bandwidth.settling && x->bandwidth.common.held_until_usec > now)
                        next = MIN_OF(next, x->bandwidth.common.held_until_usec);
                else if (x->bandwidth.settling)
                        manager_mark_dirty(m, g);
                next = MIN_OF(next, x->next_sample_usec);
                if (x->next_walk_usec)
                        next = MIN_OF(next, x->next_walk_usec);
        }
        dead_threads_flush(m, false);
        if (m->cookies_idle)
                cookies_sweep(m);
        orphans_sweep(m, now);
        pools_sweep(m);
        if (m->n_pool_groups > 0)
                next = MIN_OF(next, now + USEC_PER_SEC);
        if (clock_realtime_usec() >= m->next_expiry_usec) {
                int r = assignments_expire(m->assignments, clock_realtime_usec(), &m->next_expiry_usec);

                if (r > 0)
                        manager_mark_all_dirty(m);
                else if (r < 0)
                        m->next_expiry_usec = clock_realtime_usec() + 10 * USEC_PER_SEC;
        }
        if (m->next_expiry_usec != USEC_INFINITY) {
                uint64_t wall = clock_realtime_usec();

                next = MIN_OF(next, now + (m->next_expiry_usec > wall ? m->next_expiry_usec - wall : 0) + USEC_PER_MSEC);
        }
        if (m->watches_exhausted && now >= m->next_rescan_usec) {
                discover_rescan(m);
                m->next_rescan_usec = clock_monotonic_usec() + RESCAN_UNWATCHED_USEC;
        }
        if (m->units_awaited_usec)
                next = MIN_OF(next, m->units_awaited_usec);
        if (m->watches_exhausted)
                next = MIN_OF(next, m->next_rescan_usec);
        waiters_check(m, now);
        if (m->n_waiters)
                next = MIN_OF(next, now + 50 * USEC_PER_MSEC);
        for (size_t i = 0; i < m->n_pauses; i++)
                if (m->pauses[i].until_realtime_usec)
                        next = MIN_OF(next, now + USEC_PER_SEC);
        spent = clock_monotonic_usec() - now;
        m->counters.last_tick_usec = spent;
        m->counters.worst_tick_usec = MAX_OF(m->counters.worst_tick_usec, spent);
        (void) sd_event_source_set_time(source, next);
        (void) sd_event_source_set_enabled(m->tick_source, SD_EVENT_ONESHOT);
        return 0;
}

int tick_start(Manager *m) {
        int r = sd_event_add_time(m->event, &m->tick_source, CLOCK_MONOTONIC, clock_monotonic_usec(), TICK_SLACK_USEC, on_tick, m);

        if (r < 0)
                return r;
        return sd_event_source_set_description(m->tick_source, "tick");
}

void manager_wake_at(Manager *m, uint64_t usec) {
        uint64_t due;
        int enabled;

        if (!m->tick_source)
                return;
        if (sd_event_source_get_enabled(m->tick_source, &enabled) >= 0 && enabled != SD_EVENT_OFF && sd_event_source_get_time(m->tick_source, &due) >= 0 && due <= usec)
                return;
        (void) sd_event_source_set_time(m->tick_source, usec);
        (void) sd_event_source_set_enabled(m->tick_source, SD_EVENT_ONESHOT);
}

void manager_wake(Manager *m) {
        if (!m->tick_source)
                return;
        (void) sd_event_source_set_time(m->tick_source, clock_monotonic_usec());
        (void) sd_event_source_set_enabled(m->tick_source, SD_EVENT_ONESHOT);
}
