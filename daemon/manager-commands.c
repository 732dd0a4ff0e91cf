/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What clients may tell the manager: assignments, pauses, and waiting for an effect. Each is durable when it returns. */

#include "daemon/manager-internal.h"

#define PAUSES_FILE "pauses.json"

/* ---- assignments ---- */

static bool target_is_template(const char *unit) {
        const char *at = strchr(unit, '@');

        return at && at[1] == '.';
}

static Group *group_of_target(const Manager *m, TargetKind kind, const char *target) {
        const UnitInfo *u;

        switch (kind) {
        case TARGET_UNIT:
                u = m->units ? units_get(m->units, target) : NULL;
                return u && u->cgroup && u->cgroup[0] ? group_table_find(&m->groups, u->cgroup) : NULL;
        case TARGET_CGROUP:
                return group_table_find(&m->groups, target);
        case TARGET_POD:
                for (size_t i = 0; i < m->groups.n; i++) {
                        PodFacts pod;

                        if (pod_facts_from_path(m->groups.items[i]->path, &pod) && streq(pod.pod_uid, target))
                                return m->groups.items[i];
                }
                return NULL;
        default:
                return NULL;
        }
}

static void target_changed(Manager *m, TargetKind kind, const char *target) {
        Group *g = NULL;

        if ((kind == TARGET_UNIT && target_is_template(target)) || kind == TARGET_POD) {
                manager_mark_all_dirty(m);
                return;
        }
        g = group_of_target(m, kind, target);
        if (g)
                manager_mark_dirty(m, g);
        else if (kind == TARGET_UNIT && m->units)
                units_refresh(m->units, target);
}

static bool target_is_protected(const Manager *m, TargetKind kind, const char *target) {
        const UnitInfo *u = kind == TARGET_UNIT && m->units ? units_get(m->units, target) : NULL;
        GroupFacts facts = {
                .unit = u ? u->id : kind == TARGET_UNIT ? target : NULL,
                .unit_names = u ? (const char *const *) u->names : NULL,
                .cgroup = kind == TARGET_CGROUP ? target : u && u->cgroup && u->cgroup[0] ? u->cgroup : NULL,
        };

        if (kind == TARGET_CGROUP) {
                const Group *g = group_table_find(&m->groups, target);
                const UnitInfo *of = g ? group_unit(m, g) : NULL;

                facts.unit = of ? of->id : NULL;
        }
        return kind != TARGET_POD && group_is_protected(&facts);
}

static int check_assignment(const Manager *m, const Assignment *a, const char *prefix, DiagList *list) {
        char pointer[64];

        (void) snprintf(pointer, sizeof(pointer), "%s/%s", prefix, a->kind == TARGET_UNIT ? "unit" : a->kind == TARGET_CGROUP ? "cgroup" : "pod_uid");
        if (!target_is_valid(a->kind, a->target, pointer, list))
                return -EINVAL;
        if (!policy_find_class(m->policy, a->class_name)) {
                (void) snprintf(pointer, sizeof(pointer), "%s/class", prefix);
                diag_add(list, "request body", 0, pointer, a->class_name, "a class of the policy", "no such class");
                return -ENOENT;
        }
        if (!a->force && target_is_protected(m, a->kind, a->target)) {
                (void) snprintf(pointer, sizeof(pointer), "%s/force", prefix);
                diag_add(list, "request body", 0, pointer, "false", "true", "%s is protected: the host depends on it", a->target);
                return -EPERM;
        }
        return 0;
}

int manager_assign(Manager *m, const Assignment *a, bool steal, bool *ret_created, DiagList *list) {
        int r = check_assignment(m, a, "", list);

        if (r < 0)
                return r;
        r = assignments_put(m->assignments, a, steal, ret_created);
        if (r == -EEXIST) {
                const Assignment *other = assignments_get(m->assignments, a->kind, a->target);

                diag_add(list, "request body", 0, "/owner", a->owner, other ? other->owner : NULL, "belongs to another owner");
        } else if (r < 0)
                diag_add(list, NULL, 0, "", NULL, NULL, "could not be stored: %s", strerror(-r));
        if (r < 0)
                return r;
        if (a->expires_realtime_usec && a->expires_realtime_usec < m->next_expiry_usec) {
                m->next_expiry_usec = a->expires_realtime_usec;
                manager_wake(m);
        }
        target_changed(m, a->kind, a->target);
        return 0;
}

int manager_unassign(Manager *m, TargetKind kind, const char *target, const char *who) {
        /* The caller's string may be the very assignment's, which goes away. */
        _cleanup_free_ char *copy = strdup(target);
        int r;

        if (!copy)
                return -ENOMEM;
        r = assignments_delete(m->assignments, kind, copy);
        if (r >= 0)
                target_changed(m, kind, copy);
        return r;
}

int manager_replace_owner(Manager *m, const char *owner, const Assignment *all, size_t n, size_t *ret_changed, size_t *ret_pruned, DiagList *list) {
        size_t conflict = 0;
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                char prefix[40];
                int k;

                (void) snprintf(prefix, sizeof(prefix), "/assignments/%zu", i);
                k = check_assignment(m, &all[i], prefix, list);
                r = r < 0 ? r : k;
        }
        if (r < 0)
                return r;
        r = assignments_replace_owner(m->assignments, owner, all, n, ret_changed, ret_pruned, &conflict);
        if (r == -EEXIST) {
                char pointer[40];

                (void) snprintf(pointer, sizeof(pointer), "/assignments/%zu", conflict);
                diag_add(list, "request body", 0, pointer, conflict < n ? all[conflict].target : NULL, NULL, "belongs to another owner");
        } else if (r < 0)
                diag_add(list, NULL, 0, "", NULL, NULL, "could not be stored: %s", strerror(-r));
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                if (all[i].expires_realtime_usec)
                        m->next_expiry_usec = MIN_OF(m->next_expiry_usec, all[i].expires_realtime_usec);
        if (*ret_changed || *ret_pruned)
                manager_mark_all_dirty(m);
        return 0;
}

size_t manager_pending(const Manager *m, PendingView *ret, size_t max) {
        size_t n = 0;

        for (size_t i = 0; i < assignments_count(m->assignments); i++) {
                const Assignment *a = assignments_at(m->assignments, i);
                const char *reason = NULL;

                if (group_of_target(m, a->kind, a->target))
                        continue;
                if (a->kind == TARGET_UNIT && target_is_template(a->target))
                        reason = "waits for instances of the template";
                else if (a->kind == TARGET_UNIT) {
                        const UnitInfo *u = m->units ? units_get(m->units, a->target) : NULL;

                        reason = !u ? "the unit is not loaded: it gets its class when it starts" : "the unit is not running: it gets its class when it starts";
                } else if (a->kind == TARGET_CGROUP)
                        reason = "the cgroup does not exist";
                else
                        reason = "the pod has no cgroup on this host";
                if (n < max)
                        ret[n] = (PendingView) { .assignment = a, .reason = reason };
                n++;
        }
        return n;
}

/* ---- pauses ---- */

/* without: a pause that is left out; NULL: none. */
static int pauses_store(Manager *m, const Pause *without) {
        json_t *document = json_pack("{s:i, s:[]}", "version", 1, "pauses"), *array;
        int r;

        if (!document)
                return -ENOMEM;
        array = json_object_get(document, "pauses");
        for (size_t i = 0; i < m->n_pauses; i++) {
                json_t *o;

                if (&m->pauses[i] == without)
                        continue;
                o = json_pack("{s:o, s:I}", "key", m->pauses[i].key ? json_stringn_nocheck(m->pauses[i].key, strlen(m->pauses[i].key)) : json_null(),
                                      "until_realtime_usec", (json_int_t) m->pauses[i].until_realtime_usec);

                if (!o || json_array_append_new(array, o) < 0) {
                        json_decref(document);
                        return -ENOMEM;
                }
        }
        r = state_write_json(m->state_fd, PAUSES_FILE, document);
        json_decref(document);
        return r;
}

int pauses_load(Manager *m) {
        char error_text[256];
        json_t *document = NULL, *o;
        size_t i;
        int r = state_read_json(m->state_fd, PAUSES_FILE, 1U << 20, &document, error_text, sizeof(error_text));

        if (r == -ENOENT)
                return 0;
        if (r == -EBADMSG) {
                log_fields(LOG_ERR, MESSAGE_STATE_DAMAGED, "The file of pauses was damaged: it was put aside", "CPUCLASS_ERROR", error_text, NULL);
                return state_put_aside(m->state_fd, PAUSES_FILE);
        }
        if (r < 0)
                return r;
        json_array_foreach(json_object_get(document, "pauses"), i, o) {
                const char *key = json_string_value(json_object_get(o, "key"));
                json_int_t until = json_integer_value(json_object_get(o, "until_realtime_usec"));

                if (m->n_pauses >= PAUSES_MAX || until < 0 || GROW_ARRAY(m->pauses, m->n_pauses, m->pauses_capacity) < 0)
                        break;
                m->pauses[m->n_pauses++] = (Pause) { .key = key ? strdup(key) : NULL, .until_realtime_usec = (uint64_t) until };
        }
        json_decref(document);
        return 0;
}

static bool pause_covers(const Manager *m, const Pause *p, const Group *g) {
        const UnitInfo *u;

        if (!p->key)
                return true;
        if (!g)
                return false;
        if (p->key[0] == '/')
                return streq(p->key, g->path);
        u = group_unit(m, g);
        for (char **n = u ? u->names : NULL; n && *n; n++)
                if (streq(*n, p->key))
                        return true;
        return false;
}

bool manager_is_paused(const Manager *m, const Group *g, uint64_t *ret_until_usec) {
        uint64_t wall = m->n_pauses ? clock_realtime_usec() : 0;

        for (size_t i = 0; i < m->n_pauses; i++) {
                const Pause *p = &m->pauses[i];

                if (p->until_realtime_usec && p->until_realtime_usec <= wall)
                        continue;
                if (!pause_covers(m, p, g))
                        continue;
                if (ret_until_usec)
                        *ret_until_usec = p->until_realtime_usec ? clock_monotonic_usec() + (p->until_realtime_usec - wall) : USEC_INFINITY;
                return true;
        }
        return false;
}

static Pause *find_pause(Manager *m, const char *key) {
        for (size_t i = 0; i < m->n_pauses; i++)
                if (streq_null(m->pauses[i].key, key))
                        return &m->pauses[i];
        return NULL;
}

static void drop_pause(Manager *m, Pause *p) {
        free(p->key);
        *p = m->pauses[--m->n_pauses];
}

void pauses_expire(Manager *m) {
        uint64_t wall = m->n_pauses ? clock_realtime_usec() : 0;
        bool over = false;

        for (size_t i = 0; i < m->n_pauses;)
                if (m->pauses[i].until_realtime_usec && m->pauses[i].until_realtime_usec <= wall) {
                        log_notice("The pause of %s is over", m->pauses[i].key ? m->pauses[i].key : "everything");
                        drop_pause(m, &m->pauses[i]);     /* the file may keep it: it is over there, too */
                        over = true;
                } else
                        i++;
        if (over)
                manager_mark_all_dirty(m);
}

int manager_pause(Manager *m, const char *key, uint64_t duration_usec) {
        uint64_t until = duration_usec ? clock_realtime_usec() + duration_usec : 0, former = 0;
        Pause *p = find_pause(m, key);
        bool fresh = !p;
        int r;

        if (key && !manager_find_group_by_cgroup(m, key) && !manager_find_group_by_unit(m, key))
                return -ENOENT;
        if (fresh) {
                char *copy = NULL;

                if (m->n_pauses >= PAUSES_MAX)
                        return -ENOSPC;
                if (GROW_ARRAY(m->pauses, m->n_pauses, m->pauses_capacity) < 0 || (key && !(copy = strdup(key))))
                        return -ENOMEM;
                p = &m->pauses[m->n_pauses++];
                *p = (Pause) { .key = copy };
        } else
                former = p->until_realtime_usec;
        p->until_realtime_usec = until;
        r = pauses_store(m, NULL);
        if (r < 0) {
                /* What was in force stays in force. */
                if (fresh)
                        drop_pause(m, p);
                else
                        p->until_realtime_usec = former;
                return r;
        }
        log_notice("Paused %s%s", key ? key : "everything", duration_usec ? " for a while" : " until it is resumed");
        manager_mark_all_dirty(m);
        manager_wake(m);
        return 0;
}

int manager_resume(Manager *m, const char *key) {
        Pause *p = find_pause(m, key);
        int r;

        if (!p)
                return -ENOENT;
        r = pauses_store(m, p);
        if (r < 0)
                return r;
        drop_pause(m, p);
        log_notice("Resumed %s", key ? key : "everything");
        manager_mark_all_dirty(m);
        manager_wake(m);
        return 0;
}

/* ---- waiting for an effect ---- */

static bool knob_settled(const KnobCommon *c) {
        return c->status != KNOB_PENDING;
}

bool group_is_settled(const Group *g) {
        const Managed *x = g->managed;

        return !g->dirty && (!x || (knob_settled(&x->bandwidth.common) && knob_settled(&x->latency.common) && knob_settled(&x->cookie.common) &&
                                    !x->property_busy && !x->weight_busy && !(x->property_due_usec && !x->law_running)));
}

void waiters_check(Manager *m, uint64_t now) {
        for (size_t i = 0; i < m->n_waiters;) {
                Waiter w = m->waiters[i];
                Group *g = group_of_target(m, w.kind, w.target);
                int error;

                if (g && group_is_settled(g) && (g->managed || !assignments_get(m->assignments, w.kind, w.target)))
                        error = 0;
                else if (now >= w.deadline_usec)
                        error = -ETIMEDOUT;
                else {
                        i++;
                        continue;
                }
                m->waiters[i] = m->waiters[--m->n_waiters];
                w.done(error, g, w.userdata);
                free(w.target);
        }
}

int manager_wait_applied(Manager *m, TargetKind kind, const char *target, uint64_t timeout_usec, ManagerApplied done, void *userdata, uint64_t *ret_ticket) {
        Waiter w = { .kind = kind, .deadline_usec = clock_monotonic_usec() + timeout_usec, .done = done, .userdata = userdata };

        if (GROW_ARRAY(m->waiters, m->n_waiters, m->waiters_capacity) < 0)
                return -ENOMEM;
        w.target = strdup(target);
        if (!w.target)
                return -ENOMEM;
        w.ticket = ++m->last_ticket;
        m->waiters[m->n_waiters++] = w;
        if (ret_ticket)
                *ret_ticket = w.ticket;
        manager_wake(m);
        return 0;
}

void manager_wait_cancel(Manager *m, uint64_t ticket) {
        for (size_t i = 0; i < m->n_waiters; i++)
                if (m->waiters[i].ticket == ticket) {
                        free(m->waiters[i].target);
                        m->waiters[i] = m->waiters[--m->n_waiters];
                        return;
                }
}
