/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Core cookies: who may share a core with whom.
 *
 * One holder thread keeps each cookie alive: one a class ("class") or one a group ("group"). Processes get it through the process scope of the prctl, which the kernel does
 * under the task-list lock; threads of a threaded group through the thread scope. New processes inherit it; moved ones are found by the walk. A thread that carries somebody
 * else's cookie is left alone and reported. */

#include "daemon/knob-threads.h"

static void cookie_key(const Group *g, char *buffer, size_t size) {
        const ServiceClass *c = &g->managed->effective;

        if (c->core_scheduling == CORE_SCHEDULING_CLASS)
                (void) snprintf(buffer, size, "class:%s", c->name);
        else
                (void) snprintf(buffer, size, "group:%s", g->managed->inherited_from ? g->managed->inherited_from : g->path);
}

static Cookie *find_cookie(Manager *m, const char *key) {
        for (size_t i = 0; i < m->n_cookies; i++)
                if (streq(m->cookies[i].key, key))
                        return &m->cookies[i];
        return NULL;
}

typedef struct Adoption {
        const char *key;        /* cgroup path, or NULL for any */
        const Manager *m;
        const char *cookie_key;
        CookieHolder *holder;
} Adoption;

static int try_adopt(const LedgerRecord *r, void *userdata) {
        Adoption *a = userdata;
        uint64_t id, start;

        if (!r->original_text || !streq(r->original_text, a->cookie_key) || thread_start_time(r->tid, &start) < 0 || start != r->start_ticks ||
            cookie_read(r->tid, &id) < 0 || id == 0 || id != (uint64_t) r->written_number)
                return 0;
        return cookie_holder_adopt(r->tid, &a->holder) >= 0 ? 1 : 0;
}

/* The cookie of a group: the one that lives, one that a former daemon left on its threads, or a new one. */
static int get_cookie(Manager *m, const char *key, Cookie **ret) {
        Cookie *c = find_cookie(m, key);
        Adoption a = { .m = m, .cookie_key = key };
        int r;

        if (c) {
                *ret = c;
                return 0;
        }
        if (GROW_ARRAY(m->cookies, m->n_cookies, m->cookies_capacity) < 0)
                return -ENOMEM;
        (void) ledger_for_each(m->ledger, LEDGER_THREAD_COOKIE, try_adopt, &a);
        if (!a.holder) {
                r = cookie_holder_new(&a.holder);
                if (r < 0)
                        return r;
        }
        c = &m->cookies[m->n_cookies];
        *c = (Cookie) { .key = strdup(key), .holder = a.holder, .id = cookie_holder_id(a.holder) };
        if (!c->key) {
                (void) cookie_holder_free(a.holder);
                return -ENOMEM;
        }
        m->n_cookies++;
        *ret = c;
        return 0;
}

void cookies_sweep(Manager *m) {
        m->cookies_idle = false;
        for (size_t i = 0; i < m->n_cookies;) {
                bool used = false;

                for (size_t j = 0; j < m->groups.n && !used; j++) {
                        const Group *g = m->groups.items[j];
                        char key[4200];

                        if (!g->managed || g->managed->effective.core_scheduling == CORE_SCHEDULING_NONE)
                                continue;
                        cookie_key(g, key, sizeof(key));
                        used = streq(key, m->cookies[i].key);
                }
                if (used) {
                        i++;
                        continue;
                }
                (void) cookie_holder_free(m->cookies[i].holder);
                free(m->cookies[i].key);
                m->cookies[i] = m->cookies[--m->n_cookies];
        }
}

/* ---- our kernel's file: one tag a group ---- */

static int64_t tag_of_key(const char *key) {
        /* A stable number from the name (FNV-1a), never 0: the same after a restart of the daemon. */
        uint32_t h = 2166136261U;

        for (const unsigned char *p = (const unsigned char *) key; *p; p++)
                h = (h ^ *p) * 16777619U;
        h &= 0x7fffffffU;
        return h ? (int64_t) h : 1;
}

static bool reconcile_file(Manager *m, Group *g, int dir_fd, const char *key, const char *trigger) {
        CookieKnob *k = &g->managed->cookie;
        int64_t want = tag_of_key(key), live;
        LedgerRecord record = { .kind = LEDGER_CORE_TAG, .key = g->path, .inode = g->inode, .written_number = want, .has_written = true };
        const LedgerRecord *old;
        char text[32];
        ssize_t n = cgroup_read_file(dir_fd, "cpu.core_tag", text, sizeof(text));
        int r;

        if (n < 0 || signed_parse(text, (size_t) n, &live) < 0)
                return false;
        k->by_file = true;
        k->common.writer = WRITER_CGROUPFS;
        k->cookie_id = (uint64_t) want;
        if (live == want) {
                k->common.status = KNOB_APPLIED;
                k->common.reason[0] = 0;
                return true;
        }
        if (m->config.dry_run) {
                k->common.status = KNOB_DRY_RUN;
                return true;
        }
        old = ledger_find(m->ledger, LEDGER_CORE_TAG, g->path, g->inode, 0, 0);
        record.original_number = old ? old->original_number : live;
        r = ledger_put(m->ledger, &record, 1);
        if (r >= 0) {
                (void) snprintf(text, sizeof(text), "%" PRId64, want);
                r = cgroup_write_file(dir_fd, "cpu.core_tag", text);
        }
        k->common.error = r < 0 ? -r : 0;
        if (r < 0) {
                k->common.status = KNOB_FAILED;
                (void) snprintf(k->common.reason, sizeof(k->common.reason), "cpu.core_tag could not be written: %s", strerror(-r));
                return true;
        }
        m->counters.n_writes_file++;
        k->common.n_writes++;
        k->common.last_write_usec = clock_monotonic_usec();
        k->common.status = KNOB_APPLIED;
        k->common.reason[0] = 0;
        decide_record(m, g, &(DecisionInput) { .knob = "cookie", .trigger = trigger, .before_number = live, .after_number = want }, "core tag %" PRId64 " -> %" PRId64, live, want);
        return true;
}

/* ---- prctl ---- */

static void thread_left(Manager *m, Group *g, const TrackedThread *t, uint64_t id) {
        _cleanup_free_ char *path = NULL;
        uint64_t start, now_id;
        const Group *other;

        if (thread_start_time(t->tid, &start) < 0 || start != t->start_ticks || cgroup_of_pid(t->tid, &path) < 0) {
                dead_thread(m, LEDGER_THREAD_COOKIE, g->path, t->tid, t->start_ticks);
                return;
        }
        /* A group that gives it a cookie takes its record over. */
        other = group_table_find(&m->groups, path);
        if (streq(path, g->path) || (other && other->managed && other->managed->effective.core_scheduling != CORE_SCHEDULING_NONE))
                return;
        dead_thread(m, LEDGER_THREAD_COOKIE, g->path, t->tid, t->start_ticks);
        if (cookie_read(t->tid, &now_id) >= 0 && now_id == id)
                (void) cookie_clear(t->tid, COOKIE_SCOPE_THREAD);
}

void cookie_group_gone(Manager *m, Group *g) {
        const Managed *x = g->managed;

        for (size_t i = 0; i < x->cookie_threads.n; i++)
                thread_left(m, g, &x->cookie_threads.items[i], x->cookie.cookie_id);
        /* Its own cookie needs no holder any more. */
        m->cookies_idle = m->cookies_idle || x->effective.core_scheduling != CORE_SCHEDULING_NONE;
}

static bool group_is_threaded(int dir_fd) {
        char text[32];
        ssize_t n = cgroup_read_file(dir_fd, "cgroup.type", text, sizeof(text) - 1);

        if (n < 0)
                return false;
        text[n] = 0;
        return startswith(text, "threaded");
}

static void reconcile_threads(Manager *m, Group *g, int dir_fd, const char *key, const char *trigger) {
        Managed *x = g->managed;
        CookieKnob *k = &x->cookie;
        _cleanup_free_ pid_t *tids = NULL;
        _cleanup_free_ LedgerRecord *records = NULL;
        CookieScope scope = group_is_threaded(dir_fd) ? COOKIE_SCOPE_THREAD : COOKIE_SCOPE_PROCESS;
        size_t n = 0, out = 0, j = 0, n_set = 0, n_new = 0, n_foreign = 0;
        Cookie *cookie;
        int r = group_threads(dir_fd, &tids, &n, NULL), first_error = 0;

        if (r < 0)
                return;
        r = get_cookie(m, key, &cookie);
        if (r < 0) {
                k->common.error = -r;
                k->common.status = r == -ENODEV || r == -EOPNOTSUPP ? KNOB_ABSENT : KNOB_FAILED;
                (void) snprintf(k->common.reason, sizeof(k->common.reason), "no cookie could be made: %s", strerror(-r));
                return;
        }
        k->by_file = false;
        k->common.writer = WRITER_THREADS;
        if (k->cookie_id && k->cookie_id != cookie->id) {
                /* The group has another cookie now (another class): what carried the old one is not foreign. */
                for (size_t i = 0; i < x->cookie_threads.n; i++)
                        x->cookie_threads.items[i].verified = false;
        }
        for (size_t i = 0; i < x->cookie_threads.n; i++) {
                while (j < n && tids[j] < x->cookie_threads.items[i].tid)
                        j++;
                if (j < n && tids[j] == x->cookie_threads.items[i].tid)
                        x->cookie_threads.items[out++] = x->cookie_threads.items[i];
                else
                        thread_left(m, g, &x->cookie_threads.items[i], k->cookie_id ? k->cookie_id : cookie->id);
        }
        x->cookie_threads.n = out;
        records = calloc(n ? n : 1, sizeof(*records));
        if (!records)
                return;
        k->n_threads = (uint32_t) n;
        k->n_covered = k->n_failed = 0;
        /* First the ledger, for all that will be touched. */
        for (size_t i = 0; i < n; i++) {
                TrackedThread *t = thread_set_find(&x->cookie_threads, tids[i]);
                uint64_t start;

                if (t && k->cookie_id == cookie->id)
                        continue;
                if (thread_start_time(tids[i], &start) < 0)
                        continue;
                records[n_new++] = (LedgerRecord) { .kind = LEDGER_THREAD_COOKIE, .key = g->path, .inode = g->inode, .tid = tids[i], .start_ticks = start,
                                                    .original_text = cookie->key, .written_number = (int64_t) cookie->id, .has_written = true };
        }
        if (n_new > 0 && !m->config.dry_run) {
                dead_threads_flush(m, true);     /* of one that left and has come back */
                r = ledger_put(m->ledger, records, n_new);
                if (r < 0) {
                        k->common.status = KNOB_FAILED;
                        k->common.error = -r;
                        (void) snprintf(k->common.reason, sizeof(k->common.reason), "nothing was written: the ledger can't be kept (%s)", strerror(-r));
                        return;
                }
        }
        for (size_t i = 0; i < n_new; i++) {
                TrackedThread *t = thread_set_add(&x->cookie_threads, records[i].tid);

                if (t)
                        t->start_ticks = records[i].start_ticks;
        }
        for (size_t i = 0; i < n; i++) {
                uint64_t id;

                if (cookie_read(tids[i], &id) < 0)
                        continue;
                if (id == cookie->id) {
                        k->n_covered++;
                        continue;
                }
                if (id != 0 && id != k->cookie_id) {
                        bool ours = false;

                        for (size_t c = 0; c < m->n_cookies && !ours; c++)
                                ours = m->cookies[c].id == id;
                        if (!ours) {
                                n_foreign++;
                                k->n_failed++;
                                continue;
                        }
                }
                if (m->config.dry_run)
                        continue;
                r = cookie_share_to(cookie->holder, tids[i], scope);
                if (r == -ESRCH)
                        continue;
                if (r < 0) {
                        k->n_failed++;
                        first_error = r;
                        continue;
                }
                n_set++;
                k->n_covered++;
                k->common.n_writes++;
                m->counters.n_writes_thread++;
                k->common.last_write_usec = clock_monotonic_usec();
        }
        k->cookie_id = cookie->id;
        if (m->config.dry_run) {
                k->common.status = KNOB_DRY_RUN;
                return;
        }
        if (n_set > 0)
                decide_record(m, g, &(DecisionInput) { .knob = "cookie", .trigger = k->common.status == KNOB_APPLIED ? "thread" : trigger, .after_number = (int64_t) cookie->id },
                              "%zu threads or processes carry the cookie %s", n_set, cookie->key);
        k->common.error = first_error ? -first_error : 0;
        if (first_error) {
                k->common.status = KNOB_FAILED;
                (void) snprintf(k->common.reason, sizeof(k->common.reason), "%u threads refused the cookie: %s", k->n_failed, strerror(-first_error));
        } else if (n_foreign) {
                k->common.status = KNOB_HELD;
                (void) snprintf(k->common.reason, sizeof(k->common.reason), "%zu threads carry a cookie of somebody else: left alone", n_foreign);
        } else {
                k->common.status = KNOB_APPLIED;
                k->common.reason[0] = 0;
        }
}

void cookie_reconcile(Manager *m, Group *g, const char *trigger) {
        Managed *x = g->managed;
        CookieKnob *k = &x->cookie;
        _cleanup_close_ int fd = -1;
        const HostFact *fact = &m->host.facts[FACT_CORE_SCHEDULING];
        char key[4200];

        if (x->effective.core_scheduling == CORE_SCHEDULING_NONE) {
                if (k->common.status != KNOB_UNMANAGED)
                        cookie_release(m, g, trigger);
                return;
        }
        if (manager_is_paused(m, g, NULL)) {
                k->common.status = KNOB_PAUSED;
                return;
        }
        if (x->left_to_other_manager) {
                k->common.status = KNOB_REFUSED;
                (void) snprintf(k->common.reason, sizeof(k->common.reason), "%.180s", x->unmanaged_reason);
                return;
        }
        if (m->host.facts[FACT_SCHED_EXT_OFF].state == FACT_NOT_ENFORCED) {
                /* Cookies together with a sched_ext scheduler have hung hosts (sched-ext/scx#3715). */
                if (k->common.status == KNOB_APPLIED) {
                        CoreScheduling wanted = x->effective.core_scheduling;

                        cookie_release(m, g, "sched_ext");
                        x->effective.core_scheduling = wanted;
                }
                k->common.status = KNOB_ABSENT;
                (void) snprintf(k->common.reason, sizeof(k->common.reason), "%s", m->host.facts[FACT_SCHED_EXT_OFF].reason);
                return;
        }
        fd = cgroup_open(&m->root, g->path);
        if (fd < 0)
                return;
        cookie_key(g, key, sizeof(key));
        if (m->host.facts[FACT_CORE_TAG_FILE].state == FACT_YES && reconcile_file(m, g, fd, key, trigger))
                return;
        if (fact->state != FACT_YES) {
                k->common.status = KNOB_ABSENT;
                (void) snprintf(k->common.reason, sizeof(k->common.reason), "%s", fact->reason[0] ? fact->reason : "core scheduling does not work here");
                return;
        }
        reconcile_threads(m, g, fd, key, trigger);
}

static bool cookie_of_group(const LedgerRecord *r, void *userdata) {
        const Group *g = userdata;

        return (r->kind == LEDGER_THREAD_COOKIE || r->kind == LEDGER_CORE_TAG) && streq(r->key, g->path);
}

void cookie_release(Manager *m, Group *g, const char *trigger) {
        Managed *x = g->managed;
        RestoreResult result = { 0 };

        if (m->config.dry_run)
                return;
        dead_threads_flush(m, true);
        restore_records(m->ledger, &m->root, m->host.base_slice_nsec, cookie_of_group, g, &result);
        thread_set_clear(&x->cookie_threads);
        if (result.n_restored)
                decide_record(m, g, &(DecisionInput) { .knob = "cookie", .trigger = trigger }, "the cookie is taken away");
        x->cookie = (CookieKnob) { 0 };
        x->effective.core_scheduling = CORE_SCHEDULING_NONE;
        cookies_sweep(m);
}
