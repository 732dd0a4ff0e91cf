/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The manager: owns all parts, joins their events, and works one queue of groups that need a look. */

#include "daemon/knob-threads.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define QUEUE_PER_TURN 64     /* groups worked a turn, so that the API and the tick get theirs */

uint64_t clock_monotonic_usec(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / NSEC_PER_USEC;
}

uint64_t clock_realtime_usec(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / NSEC_PER_USEC;
}

/* ---- the queue ---- */

void manager_mark_dirty(Manager *m, Group *g) {
        if (g->dirty)
                return;
        g->dirty = true;
        g->next_dirty = NULL;
        if (m->dirty_tail)
                m->dirty_tail->next_dirty = g;
        else
                m->dirty_head = g;
        m->dirty_tail = g;
        if (m->dirty_source)
                (void) sd_event_source_set_enabled(m->dirty_source, SD_EVENT_ONESHOT);
}

void manager_mark_all_dirty(Manager *m) {
        for (size_t i = 0; i < m->groups.n; i++)
                manager_mark_dirty(m, m->groups.items[i]);
}

static void reconcile_group(Manager *m, Group *g, const char *trigger) {
        char reason[160];
        bool fresh = !g->managed;
        Managed *x;

        if (m->units_awaited_usec)
                return;                      /* all are looked at once the units are known */
        classify_and_plan(m, g);
        if (g->leftovers)
                leftovers_release(m, g);
        x = g->managed;
        if (!x || !x->service_class)
                return;
        if (group_writer(m, g, reason, sizeof(reason)) == WRITER_NONE) {
                x->left_to_other_manager = m->units_listed;
                (void) snprintf(x->unmanaged_reason, sizeof(x->unmanaged_reason), "%s", reason);
        } else {
                x->left_to_other_manager = false;
                x->unmanaged_reason[0] = 0;
        }
        bandwidth_reconcile(m, g, fresh ? "assign" : trigger);
        latency_reconcile(m, g, fresh ? "assign" : trigger);
        cookie_reconcile(m, g, fresh ? "assign" : trigger);
        if (fresh) {
                x->next_sample_usec = 0;
                manager_wake(m);
        }
}

static int on_dirty(sd_event_source *source, void *userdata) {
        Manager *m = userdata;

        for (unsigned i = 0; i < QUEUE_PER_TURN && m->dirty_head; i++) {
                Group *g = m->dirty_head;

                m->dirty_head = g->next_dirty;
                if (!m->dirty_head)
                        m->dirty_tail = NULL;
                g->dirty = false;
                reconcile_group(m, g, "reconcile");
        }
        if (m->dirty_head)
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        else if (m->n_waiters)
                waiters_check(m, clock_monotonic_usec());
        return 0;
}

/* ---- systemd ---- */

static void on_units_connected(void *userdata) {
        Manager *m = userdata;

        m->units_listed = true;
        m->units_awaited_usec = 0;
        m->reloading = false;
        m->host.facts[FACT_SYSTEMD] = (HostFact) { .state = FACT_YES };
        log_info("systemd's units are known");
        if (!m->leftovers_marked)
                leftovers_mark(m);
        m->leftovers_marked = true;
        m->next_pools_scan_usec = 0;
        manager_wake(m);
        manager_mark_all_dirty(m);
}

static void on_units_disconnected(void *userdata) {
        Manager *m = userdata;

        m->units_listed = false;
        m->host.facts[FACT_SYSTEMD] = (HostFact) { .state = FACT_NO };
        (void) snprintf(m->host.facts[FACT_SYSTEMD].reason, sizeof(m->host.facts[FACT_SYSTEMD].reason), "the system bus is not connected; trying again");
        for (size_t i = 0; i < m->groups.n; i++)
                if (m->groups.items[i]->managed)
                        m->groups.items[i]->managed->property_busy = m->groups.items[i]->managed->weight_busy = false;
        log_warning("The connection to systemd is lost: units keep what they have until it is back");
}

static void on_unit_changed(const UnitInfo *unit, void *userdata) {
        Manager *m = userdata;
        Group *g = unit->cgroup && unit->cgroup[0] ? group_table_find(&m->groups, unit->cgroup) : NULL;

        if (!g) {
                /* The unit speaks before its directory's event came. */
                if (unit->cgroup && unit->cgroup[0])
                        m->rescan_wanted = m->rescan_wanted || m->watches_exhausted;
                return;
        }
        if (g->managed)
                bandwidth_units_changed(m, g, unit);
        else
                manager_mark_dirty(m, g);
}

static void on_unit_removed(const char *id, void *userdata) {
        Manager *m = userdata;

        (void) m;
        (void) id;
}

static void on_reloading(bool active, void *userdata) {
        Manager *m = userdata;

        m->reloading = active;
        if (active)
                return;
        /* A reload puts back what systemd holds: look at every group of ours. */
        for (size_t i = 0; i < m->groups.n; i++)
                if (m->groups.items[i]->managed)
                        manager_mark_dirty(m, m->groups.items[i]);
}

static bool on_own_dropin(const char *id, const char *property, const char *content, const char **ret_original, void *userdata) {
        Manager *m = userdata;
        const LedgerRecord *r = ledger_find(m->ledger, LEDGER_UNIT_QUOTA, id, 0, 0, 0);

        if (!r || !record_owns_dropin(r, property, content))
                return false;
        *ret_original = streq(property, "CPUQuotaPeriodSec") ? r->period_original_text : r->original_text;
        return true;
}

static void on_reload_done(int error, const char *message, void *userdata) {
        if (error < 0)
                log_warning("systemd could not reload: %s", message ? message : strerror(-error));
}

static int on_reload_due(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        m->reload_source = sd_event_source_disable_unref(m->reload_source);
        if (m->units && units_are_connected(m->units))
                (void) units_reload(m->units, on_reload_done, m);
        return 0;
}

void units_coalesced_reload(Manager *m) {
        if (m->reload_source || !m->units)
                return;
        if (sd_event_add_time_relative(m->event, &m->reload_source, CLOCK_MONOTONIC, 100 * USEC_PER_MSEC, 10 * USEC_PER_MSEC, on_reload_due, m) >= 0)
                (void) sd_event_source_set_description(m->reload_source, "daemon-reload");
}

/* ---- life ---- */

static int make_directory(const char *path, mode_t mode) {
        if (mkdir(path, mode) < 0 && errno != EEXIST)
                return -errno;
        return 0;
}

int manager_new(sd_event *event, const ManagerConfig *config, Manager **ret) {
        Manager *m = calloc(1, sizeof(*m));
        _cleanup_free_ char *lock_path = NULL;
        _cleanup_close_ int runtime_fd = -1;
        bool damaged = false;
        size_t stale = 0, bad = 0;
        int r;

        if (!m)
                return -ENOMEM;
        m->config = *config;
        m->event = sd_event_ref(event);
        m->inotify_fd = m->state_fd = m->lock_fd = -1;
        m->root.fd = -1;
        m->counters.started_realtime_usec = clock_realtime_usec();
        m->next_expiry_usec = USEC_INFINITY;

        r = make_directory(config->state_dir, 0700);
        if (r < 0) {
                log_error("The state directory %s can't be made: %s", config->state_dir, strerror(-r));
                goto fail;
        }
        m->state_fd = open(config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (m->state_fd < 0) {
                r = -errno;
                log_error("The state directory %s can't be opened: %s", config->state_dir, strerror(-r));
                goto fail;
        }
        /* One instance a host: the lock is in the run-time directory, which all mount namespaces of the service share. */
        (void) make_directory(config->runtime_dir, 0755);
        if (asprintf(&lock_path, "%s/lock", config->runtime_dir) < 0) {
                r = -ENOMEM;
                goto fail;
        }
        m->lock_fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (m->lock_fd < 0) {
                r = -errno;
                log_error("The lock %s can't be opened: %s", lock_path, strerror(-r));
                goto fail;
        }
        if (flock(m->lock_fd, LOCK_EX | LOCK_NB) < 0) {
                r = errno == EWOULDBLOCK ? -EBUSY : -errno;
                if (r == -EBUSY)
                        log_error("Another cpuclassd runs on this host (it holds %s): nothing is done", lock_path);
                goto fail;
        }
        r = config->cgroup_dir ? cgroup_root_open_at(config->cgroup_dir, &m->root) : cgroup_root_open(NULL, &m->root);
        m->has_root = r >= 0;
        if (r < 0)
                log_warning("No cgroup2 mount: %s. Nothing can be managed on this host", strerror(-r));
        host_probe("", m->has_root ? &m->root : NULL, &m->host);
        m->host_fingerprint = host_fingerprint("");
        m->next_host_check_usec = clock_monotonic_usec();
        if (m->host.facts[FACT_HOST_NAMESPACES].state == FACT_NO) {
                log_error("Refusing to run: %s", m->host.facts[FACT_HOST_NAMESPACES].reason);
                r = -EREMOTE;
                goto fail;
        }
        /* The ledger lives on the run-time file system: it dies with the boot, exactly as the values that it is about, and needs no disk to answer
         * before a write to a knob. */
        runtime_fd = open(config->runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (runtime_fd < 0) {
                r = -errno;
                goto fail;
        }
        r = ledger_open(runtime_fd, m->host.boot_id, &stale, &bad, &m->ledger);
        if (r < 0) {
                log_error("The ledger can't be opened: %s", strerror(-r));
                goto fail;
        }
        if (stale)
                log_info("%zu ledger records of an earlier boot are dropped: the kernel has forgotten those values", stale);
        if (bad)
                log_fields(LOG_WARNING, MESSAGE_STATE_DAMAGED, "Some lines of the ledger could not be read; the file was kept aside", NULL);
        r = assignments_open(m->state_fd, &damaged, &m->assignments);
        if (r < 0) {
                log_error("The assignments can't be opened: %s", strerror(-r));
                goto fail;
        }
        if (damaged)
                log_fields(LOG_ERR, MESSAGE_STATE_DAMAGED, "The file of assignments was damaged: it was put aside, and we start with none", NULL);
        r = pauses_load(m);
        if (r < 0)
                goto fail;
        *ret = m;
        return 0;

fail:
        (void) manager_free(m);
        return r;
}

int manager_start(Manager *m) {
        static const UnitsHandlers handlers = {
                .connected = on_units_connected,
                .disconnected = on_units_disconnected,
                .changed = on_unit_changed,
                .removed = on_unit_removed,
                .reloading = on_reloading,
                .own_dropin = on_own_dropin,
        };
        DiagList list = { 0 };
        int r;

        r = policy_load(m, &list);
        for (size_t i = 0; i < list.n_items; i++) {
                _cleanup_free_ char *text = diag_to_string(&list.items[i]);

                log_fields(LOG_ERR, MESSAGE_POLICY_REFUSED, text ? text : "bad policy", NULL);
        }
        diag_list_clear(&list);
        if (r < 0) {
                /* Without a policy nothing is touched; the API stays up so that it can be mended and reloaded. */
                r = policy_build(NULL, 0, &m->policy, &list);
                diag_list_clear(&list);
                if (r < 0)
                        return r;
                log_error("The policy is not in force: no class is known until it is mended and reloaded");
        }
        r = sd_event_add_defer(m->event, &m->dirty_source, on_dirty, m);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(m->dirty_source, "reconcile");
        (void) sd_event_source_set_priority(m->dirty_source, SD_EVENT_PRIORITY_NORMAL + 10);
        r = tick_start(m);
        if (r < 0)
                return r;
        r = discover_start(m);
        if (r < 0) {
                log_error("Watching the cgroup tree failed: %s", strerror(-r));
                return r;
        }
        if (!m->config.no_systemd) {
                m->units_awaited_usec = clock_monotonic_usec() + UNITS_AWAITED_USEC;
                r = units_new(m->event, m->config.bus_address, &handlers, m, &m->units);
                if (r < 0) {
                        log_error("Talking to systemd failed: %s", strerror(-r));
                        return r;
                }
        }
        if (m->config.no_systemd)
                leftovers_mark(m);
        r = pools_load(m);
        if (r < 0)
                log_warning("Pools are not available: %s", strerror(-r));
        (void) assignments_expire(m->assignments, clock_realtime_usec(), &m->next_expiry_usec);
        m->ready = true;
        return 0;
}

Manager *manager_free(Manager *m) {
        if (!m)
                return NULL;
        for (size_t i = 0; i < m->n_waiters; i++)
                free(m->waiters[i].target);
        free(m->waiters);
        discover_stop(m);
        m->tick_source = sd_event_source_disable_unref(m->tick_source);
        m->dirty_source = sd_event_source_disable_unref(m->dirty_source);
        m->reload_source = sd_event_source_disable_unref(m->reload_source);
        m->units = units_free(m->units);
        group_table_clear(&m->groups);
        for (size_t i = 0; i < m->n_cookies; i++) {
                (void) cookie_holder_free(m->cookies[i].holder);
                free(m->cookies[i].key);
        }
        free(m->cookies);
        if (m->ledger)
                dead_threads_flush(m, true);
        free(m->dead);
        m->ledger = ledger_close(m->ledger);
        m->assignments = assignments_close(m->assignments);
        m->policy = policy_free(m->policy);
        if (m->runtime_policy)
                json_decref(m->runtime_policy);
        for (size_t i = 0; i < m->n_pauses; i++)
                free(m->pauses[i].key);
        free(m->pauses);
        for (size_t i = 0; i < m->n_pool_groups; i++)
                free(m->pool_groups[i]);
        free(m->pool_groups);
        for (size_t i = 0; i < DECISION_RING; i++) {
                free(m->ring[i].cgroup);
                free(m->ring[i].unit);
                free(m->ring[i].class_name);
                free(m->ring[i].text);
        }
        free(m->policy_error);
        cgroup_root_close(&m->root);
        if (m->lock_fd >= 0)
                (void) close(m->lock_fd);
        if (m->state_fd >= 0)
                (void) close(m->state_fd);
        sd_event_unref(m->event);
        free(m);
        return NULL;
}

/* ---- restore everything ---- */

void manager_quiesce(Manager *m) {
        m->tick_source = sd_event_source_disable_unref(m->tick_source);
        m->dirty_source = sd_event_source_disable_unref(m->dirty_source);
}

static bool all_records(const LedgerRecord *r, void *userdata) {
        return true;
}

typedef struct RestoreAll {
        Manager *manager;
        RestoreResult result;
        uint64_t deadline_usec;
        void (*done)(size_t n_restored, size_t n_left, void *userdata);
        void *userdata;
} RestoreAll;

static void restore_reloaded(int error, const char *message, void *userdata) {
        RestoreAll *all = userdata;

        if (error < 0)
                log_warning("Our drop-ins are removed, but systemd could not reload: %s. Run systemctl daemon-reload", message ? message : strerror(-error));
        if (all->done)
                all->done(all->result.n_restored, all->result.n_left, all->userdata);
        free(all);
}

static void restore_finish(RestoreAll *all) {
        Manager *m = all->manager;
        char text[128];

        restore_records(m->ledger, &m->root, m->host.base_slice_nsec, all_records, NULL, &all->result);
        for (size_t i = 0; i < m->n_cookies; i++) {
                (void) cookie_holder_free(m->cookies[i].holder);
                free(m->cookies[i].key);
        }
        m->n_cookies = 0;
        (void) snprintf(text, sizeof(text), "%zu values put back, %zu left as somebody else changed them since, %zu failed", all->result.n_restored, all->result.n_left,
                        all->result.n_failed);
        log_fields(all->result.n_failed ? LOG_WARNING : LOG_INFO, MESSAGE_RESTORED, text, NULL);
        all->result.reload_due = all->result.reload_due || m->reload_source;
        m->reload_source = sd_event_source_disable_unref(m->reload_source);
        if (all->result.reload_due && m->units && units_reload(m->units, restore_reloaded, all) >= 0)
                return;
        if (all->result.reload_due)
                log_warning("Our drop-ins are removed, but systemd is not reachable. Run systemctl daemon-reload");
        if (all->done)
                all->done(all->result.n_restored, all->result.n_left, all->userdata);
        free(all);
}

/* A call to systemd that is under way would write its drop-in after ours were taken away: wait for its answer. */
static int restore_wait(sd_event_source *source, uint64_t usec, void *userdata) {
        RestoreAll *all = userdata;

        if (all->manager->n_calls > 0 && clock_monotonic_usec() < all->deadline_usec) {
                (void) sd_event_source_set_time_relative(source, 20 * USEC_PER_MSEC);
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        sd_event_source_disable_unref(source);
        restore_finish(all);
        return 0;
}

int manager_restore_all(Manager *m, void (*done)(size_t n_restored, size_t n_left, void *userdata), void *userdata) {
        RestoreAll *all = calloc(1, sizeof(*all));
        sd_event_source *source = NULL;

        if (!all)
                return -ENOMEM;
        *all = (RestoreAll) { .manager = m, .done = done, .userdata = userdata, .deadline_usec = clock_monotonic_usec() + 10 * USEC_PER_SEC };
        /* The groups forget what they held, so that nothing writes behind the restore's back. */
        for (size_t i = 0; i < m->groups.n; i++)
                if (m->groups.items[i]->managed)
                        group_drop_managed(m->groups.items[i]);
        dead_threads_flush(m, true);
        if (m->n_calls > 0 && sd_event_add_time_relative(m->event, &source, CLOCK_MONOTONIC, 20 * USEC_PER_MSEC, 0, restore_wait, all) >= 0)
                return 0;
        restore_finish(all);
        return 0;
}
