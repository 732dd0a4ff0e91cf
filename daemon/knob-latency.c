/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Latency: cpu.latency.nice where the kernel has it, else an EEVDF slice on each thread.
 *
 * Threads inherit a slice at fork, but not when they are moved into a group, so the list is walked twice a second: new ones get the slice, those that left get
 * back what they had. All originals of a walk go to the ledger in one write before the first thread is touched. Work is bounded: a walk takes up at most
 * NEW_PER_TURN new threads and the next turn of the loop goes on. */

#include "daemon/knob-threads.h"

#include <errno.h>
#include <fcntl.h>

#define NEW_PER_TURN 512
#define VERIFY_PER_TURN 256      /* threads that had it: looked at again, so that `chrt -o -p 0` is noticed */

static void fail(Manager *m, Group *g, const char *trigger, int error, const char *what) {
        LatencyKnob *l = &g->managed->latency;
        bool news = l->common.error != -error;

        l->common.error = -error;
        l->common.status = KNOB_FAILED;
        (void) snprintf(l->common.reason, sizeof(l->common.reason), "%s: %s", what, strerror(-error));
        if (news)
                decide_record(m, g, &(DecisionInput) { .knob = "latency", .trigger = trigger, .error = -error, .after_number = l->latency_nice }, "%s: %s", what,
                              strerror(-error));
}

/* ---- our kernel's file ---- */

static bool reconcile_file(Manager *m, Group *g, int dir_fd, const char *trigger) {
        LatencyKnob *l = &g->managed->latency;
        LedgerRecord record = { .kind = LEDGER_LATENCY_FILE, .key = g->path, .inode = g->inode, .written_number = l->latency_nice, .has_written = true };
        const LedgerRecord *old;
        char text[32];
        int64_t live;
        ssize_t n = cgroup_read_file(dir_fd, "cpu.latency.nice", text, sizeof(text));
        int r;

        if (n < 0 || signed_parse(text, (size_t) n, &live) < 0)
                return false;
        l->by_file = true;
        l->common.writer = WRITER_CGROUPFS;
        old = ledger_find(m->ledger, LEDGER_LATENCY_FILE, g->path, g->inode, 0, 0);
        l->original_nice = old ? old->original_number : live;
        if (live == l->latency_nice) {
                l->common.status = KNOB_APPLIED;
                l->common.reason[0] = 0;
                return true;
        }
        if (m->config.dry_run) {
                l->common.status = KNOB_DRY_RUN;
                return true;
        }
        if (old && old->has_written && live != old->written_number && live != old->previous_number &&
            (l->common.n_writes > 0 || live != old->original_number)) {
                /* Somebody else's value. */
                l->common.n_drifts++;
                l->common.last_drift_usec = clock_monotonic_usec();
                (void) snprintf(l->common.drift_writer, sizeof(l->common.drift_writer), "foreign");
                (void) snprintf(l->common.drift_value, sizeof(l->common.drift_value), "%" PRId64, live);
                if (g->managed->effective.drift != DRIFT_ENFORCE) {
                        l->common.status = KNOB_HELD;
                        (void) snprintf(l->common.reason, sizeof(l->common.reason), "somebody else set it to %" PRId64, live);
                        return true;
                }
        }
        record.original_number = l->original_nice;
        record.previous_number = old ? old->written_number : 0;
        r = ledger_put(m->ledger, &record, 1);
        if (r >= 0) {
                (void) snprintf(text, sizeof(text), "%d", l->latency_nice);
                r = cgroup_write_file(dir_fd, "cpu.latency.nice", text);
        }
        if (r < 0) {
                fail(m, g, trigger, r, "cpu.latency.nice could not be written");
                return true;
        }
        m->counters.n_writes_file++;
        l->common.n_writes++;
        l->common.last_write_usec = clock_monotonic_usec();
        l->common.status = KNOB_APPLIED;
        l->common.error = 0;
        l->common.reason[0] = 0;
        decide_record(m, g, &(DecisionInput) { .knob = "latency", .trigger = trigger, .before_number = live, .after_number = l->latency_nice },
                      "latency nice %" PRId64 " -> %d (cpu.latency.nice)", live, l->latency_nice);
        return true;
}

/* ---- slices per thread ---- */

/* A thread that carries our slice has left: it gets back what it had, unless its new group gives it one of its own. */
static void thread_left(Manager *m, Group *g, const TrackedThread *t, uint64_t slice_nsec) {
        _cleanup_free_ char *path = NULL;
        uint64_t start, now_slice;
        const Group *other;
        bool takes;

        if (thread_start_time(t->tid, &start) < 0 || start != t->start_ticks || cgroup_of_pid(t->tid, &path) < 0) {
                dead_thread(m, LEDGER_THREAD_SLICE, g->path, t->tid, t->start_ticks);
                return;
        }
        /* A group that gives it a slice takes its record over, with the original in it. */
        other = group_table_find(&m->groups, path);
        if (streq(path, g->path) || (other && other->managed && other->managed->effective.has_latency_nice))
                return;
        dead_thread(m, LEDGER_THREAD_SLICE, g->path, t->tid, t->start_ticks);
        if (slice_read(NULL, t->tid, m->host.base_slice_nsec, &now_slice, &takes) >= 0 && takes && now_slice == slice_nsec)
                (void) slice_apply(NULL, t->tid, (uint64_t) t->original, m->host.base_slice_nsec, NULL, NULL);
}

void latency_group_gone(Manager *m, Group *g) {
        const ThreadSet *set = &g->managed->slice_threads;

        for (size_t i = 0; i < set->n; i++)
                thread_left(m, g, &set->items[i], g->managed->latency.slice_nsec);
}

static void sweep_left(Manager *m, Group *g, const pid_t *tids, size_t n, uint64_t slice_nsec) {
        ThreadSet *set = &g->managed->slice_threads;
        size_t out = 0, j = 0;

        for (size_t i = 0; i < set->n; i++) {
                while (j < n && tids[j] < set->items[i].tid)
                        j++;
                if (j < n && tids[j] == set->items[i].tid)
                        set->items[out++] = set->items[i];
                else
                        thread_left(m, g, &set->items[i], slice_nsec);
        }
        set->n = out;
}

typedef struct Fresh {
        pid_t tid;
        uint64_t start_ticks, before, previous;
} Fresh;

/* What we gave it last, or before that (a crash came between the record and the call). */
static bool slice_is_ours(const LedgerRecord *r, uint64_t slice_nsec) {
        return slice_nsec == (uint64_t) r->written_number || (r->previous_number != 0 && slice_nsec == (uint64_t) r->previous_number);
}

static int remember(Manager *m, Group *g, const Fresh *fresh, size_t n, uint64_t slice_nsec) {
        _cleanup_free_ LedgerRecord *records = calloc(n ? n : 1, sizeof(*records));

        if (!records)
                return -ENOMEM;
        /* One that left and has come back must not lose its new record to the note that it had left. */
        dead_threads_flush(m, true);
        for (size_t i = 0; i < n; i++)
                records[i] = (LedgerRecord) {
                        .kind = LEDGER_THREAD_SLICE, .key = g->path, .inode = g->inode, .tid = fresh[i].tid, .start_ticks = fresh[i].start_ticks,
                        .original_number = (int64_t) fresh[i].before, .written_number = (int64_t) slice_nsec, .has_written = true,
                        .previous_number = (int64_t) fresh[i].previous,
                };
        return ledger_put(m->ledger, records, n);
}

static void reconcile_threads(Manager *m, Group *g, int dir_fd, const char *trigger) {
        Managed *x = g->managed;
        LatencyKnob *l = &x->latency;
        _cleanup_free_ pid_t *tids = NULL;
        uint64_t want = latency_nice_to_slice_nsec(l->latency_nice, m->host.base_slice_nsec), old_slice = l->slice_nsec;
        Fresh fresh[NEW_PER_TURN];
        size_t n = 0, n_fresh = 0, verified = 0, n_set = 0;
        bool changed = l->common.status != KNOB_UNMANAGED && old_slice != want && x->slice_threads.n > 0, more = false, zero = false, foreign_seen = false;
        size_t n_held = 0;
        int r = group_threads(dir_fd, &tids, &n, &zero), first_error = 0;

        if (r < 0) {
                if (r != -ENODEV && r != -ENOENT)
                        fail(m, g, trigger, r, "cgroup.threads could not be read");
                return;
        }
        l->by_file = false;
        l->slice_nsec = want;
        l->common.writer = WRITER_THREADS;
        sweep_left(m, g, tids, n, old_slice);
        if (changed)
                for (size_t i = 0; i < x->slice_threads.n; i++)
                        x->slice_threads.items[i].verified = false;
        l->n_threads = (uint32_t) n;
        l->n_other_policy = l->n_covered = l->n_failed = 0;

        for (size_t i = 0; i < n; i++) {
                TrackedThread *t = thread_set_find(&x->slice_threads, tids[i]);
                uint64_t now_slice, start, before;
                const LedgerRecord *old;
                bool takes;

                if (t && t->verified) {
                        l->n_covered++;
                        continue;
                }
                if (t && !changed && verified >= VERIFY_PER_TURN) {
                        l->n_covered++;
                        continue;
                }
                if (slice_read(NULL, tids[i], m->host.base_slice_nsec, &now_slice, &takes) < 0)
                        continue;            /* it ended */
                if (!takes) {
                        l->n_other_policy++;
                        continue;
                }
                if (t) {
                        verified++;
                        t->verified = true;
                        if (now_slice == want) {
                                l->n_covered++;
                                continue;
                        }
                }
                if (n_fresh == NEW_PER_TURN) {
                        more = true;
                        continue;
                }
                if (thread_start_time(tids[i], &start) < 0)
                        continue;
                /* What we last gave it, here or in another group, before or after a restart of ours. */
                old = ledger_find(m->ledger, LEDGER_THREAD_SLICE, NULL, 0, tids[i], start);
                if (old)
                        /* Any other value than ours is its owner's newer word. */
                        before = slice_is_ours(old, now_slice) || now_slice == want ? (uint64_t) old->original_number : now_slice;
                else
                        /* A slice that equals ours was inherited from a parent in the group: the original is the default. */
                        before = now_slice == want ? 0 : now_slice;
                if (t && old && now_slice != want && !slice_is_ours(old, now_slice)) {
                        /* Somebody set another slice on a thread of ours: that is its owner's word from now on, and what a stop gives back. */
                        l->common.n_drifts++;
                        l->common.last_drift_usec = clock_monotonic_usec();
                        (void) snprintf(l->common.drift_writer, sizeof(l->common.drift_writer), "foreign");
                        (void) snprintf(l->common.drift_value, sizeof(l->common.drift_value), "thread %d: %" PRIu64 " ns", (int) tids[i], now_slice);
                        if (!foreign_seen) {
                                uint64_t now = clock_monotonic_usec();

                                foreign_seen = true;
                                if (now - x->slice_window_start_usec > 60 * USEC_PER_SEC) {
                                        x->slice_window_start_usec = now;
                                        x->slice_window_count = 0;
                                }
                                x->slice_window_count++;
                        }
                        /* Whoever sets it again and again is left alone for the rest of the minute: no write war. */
                        if (x->effective.drift == DRIFT_HOLD || x->slice_window_count > DRIFTS_PER_MINUTE) {
                                n_held++;
                                continue;
                        }
                }
                fresh[n_fresh++] = (Fresh) { tids[i], start, before, old ? (uint64_t) old->written_number : 0 };
        }
        if (n_fresh > 0 && !m->config.dry_run) {
                r = remember(m, g, fresh, n_fresh, want);
                if (r < 0) {
                        fail(m, g, trigger, r, "nothing was written: the ledger can't be kept");
                        return;
                }
        }
        for (size_t i = 0; i < n_fresh; i++) {
                bool race = false;
                TrackedThread *t;

                if (m->config.dry_run) {
                        n_set++;
                        continue;
                }
                r = slice_apply(NULL, fresh[i].tid, want, m->host.base_slice_nsec, NULL, &race);
                if (race)
                        l->n_races++;
                if (r == -ESRCH)
                        continue;
                if (r < 0 || r == SLICE_IGNORED) {
                        l->n_failed++;
                        first_error = r < 0 ? r : -EOPNOTSUPP;
                        continue;
                }
                if (r == SLICE_NOT_TAKEN) {
                        l->n_other_policy++;
                        continue;
                }
                t = thread_set_add(&x->slice_threads, fresh[i].tid);
                if (!t)
                        continue;
                t->start_ticks = fresh[i].start_ticks;
                t->original = (int64_t) fresh[i].before;
                t->verified = true;
                l->n_covered++;
                if (r == SLICE_SET) {
                        n_set++;
                        l->common.n_writes++;
                        m->counters.n_writes_thread++;
                        l->common.last_write_usec = clock_monotonic_usec();
                }
        }
        if (verified < VERIFY_PER_TURN && !more)
                /* A round is complete: begin the next one. */
                for (size_t i = 0; i < x->slice_threads.n; i++)
                        x->slice_threads.items[i].verified = false;
        if (m->config.dry_run) {
                if (l->common.status != KNOB_DRY_RUN && n_set)
                        decide_record(m, g, &(DecisionInput) { .knob = "latency", .trigger = trigger, .after_number = l->latency_nice },
                                      "would give %zu threads a slice of %" PRIu64 " us", n_set, want / NSEC_PER_USEC);
                l->common.status = KNOB_DRY_RUN;
                return;
        }
        if (n_set > 0)
                decide_record(m, g, &(DecisionInput) { .knob = "latency", .trigger = l->common.status == KNOB_APPLIED && !changed ? "thread" : trigger,
                                                       .before_number = (int64_t) old_slice, .after_number = (int64_t) want },
                              "%zu threads have a slice of %" PRIu64 " us (latency nice %d)", n_set, want / NSEC_PER_USEC, l->latency_nice);
        if (l->n_failed > 0 && first_error) {
                fail(m, g, trigger, first_error, "some threads refused a slice");
                return;
        }
        l->common.error = 0;
        l->common.status = more ? KNOB_PENDING : KNOB_APPLIED;
        if (n_held) {
                l->common.status = KNOB_HELD;
                (void) snprintf(l->common.reason, sizeof(l->common.reason), "%zu threads have a slice that somebody else set: left alone", n_held);
        } else if (zero)
                (void) snprintf(l->common.reason, sizeof(l->common.reason), "threads of another pid namespace can't be reached");
        else if (l->n_other_policy)
                (void) snprintf(l->common.reason, sizeof(l->common.reason), "%u threads have a policy that takes no slice (FIFO, RR, DEADLINE, IDLE): left alone",
                                l->n_other_policy);
        else
                l->common.reason[0] = 0;
        if (more)
                manager_mark_dirty(m, g);
}

void latency_reconcile(Manager *m, Group *g, const char *trigger) {
        Managed *x = g->managed;
        LatencyKnob *l = &x->latency;
        _cleanup_close_ int fd = -1;
        const HostFact *slice = &m->host.facts[FACT_EEVDF_SLICE];

        if (!x->effective.has_latency_nice) {
                if (l->common.status != KNOB_UNMANAGED)
                        latency_release(m, g, trigger);
                return;
        }
        l->latency_nice = x->law_running && x->law_state.latency_since_usec ? x->law_state.latency_nice : x->effective.latency_nice;
        if (manager_is_paused(m, g, NULL)) {
                l->common.status = KNOB_PAUSED;
                (void) snprintf(l->common.reason, sizeof(l->common.reason), "paused: nothing is written until it is resumed");
                return;
        }
        if (x->left_to_other_manager) {
                l->common.status = KNOB_REFUSED;
                (void) snprintf(l->common.reason, sizeof(l->common.reason), "%.180s", x->unmanaged_reason);
                return;
        }
        fd = cgroup_open(&m->root, g->path);
        if (fd < 0)
                return;
        if (m->host.facts[FACT_LATENCY_NICE_FILE].state == FACT_YES && reconcile_file(m, g, fd, trigger))
                return;
        if (slice->state != FACT_YES) {
                l->common.status = KNOB_ABSENT;
                (void) snprintf(l->common.reason, sizeof(l->common.reason), "%s", slice->reason[0] ? slice->reason : "this kernel honours no custom slice");
                return;
        }
        reconcile_threads(m, g, fd, trigger);
}

static bool latency_of_group(const LedgerRecord *r, void *userdata) {
        const Group *g = userdata;

        return (r->kind == LEDGER_THREAD_SLICE || r->kind == LEDGER_LATENCY_FILE) && streq(r->key, g->path);
}

void latency_release(Manager *m, Group *g, const char *trigger) {
        Managed *x = g->managed;
        RestoreResult result = { 0 };

        if (m->config.dry_run)
                return;
        dead_threads_flush(m, true);
        restore_records(m->ledger, &m->root, m->host.base_slice_nsec, latency_of_group, g, &result);
        thread_set_clear(&x->slice_threads);
        if (result.n_restored)
                decide_record(m, g, &(DecisionInput) { .knob = "latency", .trigger = trigger, .before_number = x->latency.latency_nice },
                              x->latency.by_file ? "cpu.latency.nice is back at its own value" : "%zu threads have their own slice back", result.n_restored);
        x->latency = (LatencyKnob) { 0 };
}
