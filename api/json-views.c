/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Everything else as JSON: decisions, assignments, classes, rules, the daemon and its host. */

#include "api/internal.h"

json_t *json_decision(const Decision *d) {
        bool bandwidth = streq_null(d->knob, "bandwidth");
        json_t *o = json_object(), *law = json_null();
        int e = 0;

        if (streq_null(d->trigger, "law"))
                law = json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o}", "cause", json_text(law_cause_to_string(d->cause)),
                                "throttled_permyriad", (int) d->law.throttled_permyriad, "usage_per_period_usec", json_u64(d->law.usage_per_period_usec),
                                "need_usec", json_u64(d->law.need_usec), "quota_usec", json_quota(d->law.quota_usec), "burst_usec", json_u64(d->law.burst_usec),
                                "latency_nice", d->law.latency_nice_changed ? json_integer(d->law.latency_nice) : json_null());
        e |= json_object_set_new(o, "sequence", json_u64(d->sequence));
        e |= json_object_set_new(o, "at", json_time_realtime(d->realtime_usec));
        e |= set_path(o, "cgroup", d->cgroup);
        e |= json_object_set_new(o, "unit", json_text(d->unit));
        e |= json_object_set_new(o, "class", json_text(d->class_name));
        e |= json_object_set_new(o, "knob", json_text(d->knob));
        e |= json_object_set_new(o, "trigger", json_text(d->trigger));
        e |= json_object_set_new(o, "dry_run", json_boolean(d->dry_run));
        e |= json_object_set_new(o, "errno", json_errno(d->error));
        e |= json_object_set_new(o, "before", bandwidth ? json_bandwidth(d->before.period_usec > 0, &d->before) : json_integer(d->before_number));
        e |= json_object_set_new(o, "after", bandwidth ? json_bandwidth(d->after.period_usec > 0, &d->after) : json_integer(d->after_number));
        e |= json_object_set_new(o, "law", law);
        e |= json_object_set_new(o, "text", json_text(d->text));
        return json_whole(o, e);
}

const char *assignment_pending_reason(ApiServer *s, const Assignment *a) {
        PendingView views[64];
        size_t n = manager_pending(s->manager, views, ELEMENTSOF(views));
        _cleanup_free_ PendingView *many = NULL;
        const PendingView *list = views;

        if (n > ELEMENTSOF(views)) {
                many = calloc(n, sizeof(PendingView));
                if (many) {
                        size_t again = manager_pending(s->manager, many, n);

                        n = MIN_OF(n, again);
                        list = many;
                } else
                        n = ELEMENTSOF(views);
        }
        for (size_t i = 0; i < n; i++)
                if (list[i].assignment && list[i].assignment->kind == a->kind && streq(list[i].assignment->target, a->target))
                        return list[i].reason ? list[i].reason : "not here";
        return NULL;
}

json_t *json_assignment(const Assignment *a, const char *pending) {
        static const char *const keys[] = { [TARGET_UNIT] = "unit", [TARGET_CGROUP] = "cgroup", [TARGET_POD] = "pod_uid" };
        json_t *o = json_object();
        int e = 0;

        e |= set_path(o, keys[a->kind], a->target);
        e |= json_object_set_new(o, "class", json_text(a->class_name));
        e |= json_object_set_new(o, "owner", json_text(a->owner));
        e |= json_object_set_new(o, "force", json_boolean(a->force));
        e |= json_object_set_new(o, "overrides", overrides_is_empty(&a->overrides) ? json_object() : overrides_to_json(&a->overrides));
        e |= json_object_set_new(o, "expires_at", json_time_realtime(a->expires_realtime_usec));
        e |= json_object_set_new(o, "created_at", json_time_realtime(a->created_realtime_usec));
        e |= json_object_set_new(o, "revision", json_u64(a->revision));
        e |= json_object_set_new(o, "by", json_text(a->by));
        e |= json_object_set_new(o, "pending", json_text(pending));
        return json_whole(o, e);
}

size_t *count_groups(ApiServer *s, const Policy *p) {
        size_t *counts = calloc(MAX_OF(p->n_classes, (size_t) 1), sizeof(size_t));

        if (!counts)
                return NULL;
        for (const Group *g = manager_next_group(s->manager, NULL, true); g; g = manager_next_group(s->manager, g, true)) {
                GroupView v = {};

                group_view(s->manager, g, &v);
                for (size_t i = 0; v.service_class && i < p->n_classes; i++)
                        if (streq(p->classes[i].name, v.service_class->name)) {
                                counts[i]++;
                                break;
                        }
        }
        return counts;
}

json_t *json_class_view(const ServiceClass *c, size_t n_groups) {
        return json_pack("{s:o, s:o, s:o}", "class", class_to_json(c), "origin", json_text(c->origin), "n_groups", json_u64(n_groups));
}

json_t *json_rules(ApiServer *s) {
        const Policy *p = manager_policy(s->manager);
        json_t *a = json_array();
        int e = 0;

        for (size_t i = 0; p && i < p->n_rules; i++)
                e |= json_array_append_new(a, json_pack("{s:o, s:o}", "rule", rule_to_json(&p->rules[i]), "origin", json_text(p->rules[i].origin)));
        return json_pack("{s:o}", "rules", json_whole(a, e));
}

json_t *json_status(ApiServer *s) {
        DaemonStatus d = {};
        PendingView views[100];
        json_t *o = json_object(), *pending = json_array();
        size_t n;
        int e = 0;

        manager_status(s->manager, &d);
        n = MIN_OF(manager_pending(s->manager, views, ELEMENTSOF(views)), ELEMENTSOF(views));
        for (size_t i = 0; i < n; i++)
                if (views[i].assignment)
                        e |= json_array_append_new(pending, json_assignment(views[i].assignment, views[i].reason ? views[i].reason : "not here"));
        e |= json_object_set_new(o, "version", json_text(d.version));
        e |= json_object_set_new(o, "started_at", json_time_realtime(d.started_realtime_usec));
        e |= json_object_set_new(o, "ready", json_boolean(d.ready));
        e |= json_object_set_new(o, "dry_run", json_boolean(d.dry_run));
        e |= json_object_set_new(o, "paused", json_boolean(d.paused));
        e |= json_object_set_new(o, "paused_until", d.paused ? json_time_monotonic(d.paused_until_usec) : json_null());
        e |= json_object_set_new(o, "bus_connected", json_boolean(d.bus_connected));
        e |= json_object_set_new(o, "groups", json_pack("{s:o, s:o, s:o, s:o, s:o}", "seen", json_u64(d.n_groups_seen), "classified", json_u64(d.n_groups_classified),
                                                        "pending", json_u64(d.n_pending), "drift", json_u64(d.n_drift), "failed", json_u64(d.n_failed)));
        e |= json_object_set_new(o, "writes", json_pack("{s:o, s:o, s:o, s:o}", "bandwidth", json_u64(d.n_writes_bandwidth), "thread", json_u64(d.n_writes_thread),
                                                        "bus", json_u64(d.n_writes_bus), "file", json_u64(d.n_writes_file)));
        e |= json_object_set_new(o, "rescans", json_u64(d.n_rescans));
        e |= json_object_set_new(o, "overflows", json_u64(d.n_overflows));
        e |= json_object_set_new(o, "ticks", json_u64(d.n_ticks));
        e |= json_object_set_new(o, "last_tick_usec", json_u64(d.last_tick_usec));
        e |= json_object_set_new(o, "worst_tick_usec", json_u64(d.worst_tick_usec));
        e |= json_object_set_new(o, "ledger_records", json_u64(d.n_ledger));
        e |= json_object_set_new(o, "threads_tracked", json_u64(d.n_threads_tracked));
        e |= json_object_set_new(o, "policy", json_pack("{s:o, s:o}", "revision", json_u64(d.policy_revision), "error", json_text(d.policy_error)));
        e |= json_object_set_new(o, "decisions", json_u64(d.n_decisions));
        e |= json_object_set_new(o, "pending", pending);
        e |= json_object_set_new(o, "api", json_pack("{s:o, s:o, s:o, s:o}", "connections", json_u64(s->n_clients), "subscribers", json_u64(s->n_subscribers),
                                                     "requests", json_u64(s->n_requests), "refused", json_u64(s->n_refused)));
        return json_whole(o, e);
}

json_t *json_host(ApiServer *s) {
        const HostFacts *h = manager_host_facts(s->manager);
        json_t *o = json_object(), *facts = json_array();
        int e = 0;

        for (FactId i = 0; i < _FACT_MAX; i++)
                e |= json_array_append_new(facts, json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", json_text(fact_name(i)),
                                                            "state", json_text(fact_state_to_string(h->facts[i].state)),
                                                            "reason", json_text(h->facts[i].reason[0] ? h->facts[i].reason : NULL),
                                                            "loss", json_text(fact_loss(i)), "remedy", json_text(fact_remedy(i))));
        e |= json_object_set_new(o, "kernel_release", json_text(h->kernel_release));
        e |= json_object_set_new(o, "boot_id", json_text(h->boot_id));
        e |= json_object_set_new(o, "n_cpus", json_integer(h->n_cpus));
        e |= json_object_set_new(o, "base_slice_nsec", json_u64(h->base_slice_nsec));
        e |= json_object_set_new(o, "bandwidth_slice_usec", h->bandwidth_slice_usec > 0 ? json_u64(h->bandwidth_slice_usec) : json_null());
        e |= json_object_set_new(o, "sched_ext", json_text(h->sched_ext_name[0] ? h->sched_ext_name : NULL));
        e |= json_object_set_new(o, "facts", facts);
        return json_whole(o, e);
}

/* Adds a file name once. */
static int add_file(json_t *files, const char *origin) {
        json_t *text = json_text(origin), *known;
        size_t i;

        if (!origin) {
                json_decref(text);
                return 0;
        }
        json_array_foreach(files, i, known)
                if (json_equal(known, text)) {
                        json_decref(text);
                        return 0;
                }
        return json_array_append_new(files, text);
}

json_t *json_policy(ApiServer *s) {
        const Policy *p = manager_policy(s->manager);
        json_t *o = json_object(), *files = json_array(), *classes = json_array(), *patches = json_object();
        DaemonStatus d = {};
        int e = 0;

        manager_status(s->manager, &d);
        for (size_t i = 0; p && i < p->n_classes; i++) {
                e |= add_file(files, p->classes[i].origin);
                e |= json_array_append_new(classes, json_text(p->classes[i].name));
        }
        for (size_t i = 0; p && i < p->n_rules; i++)
                e |= add_file(files, p->rules[i].origin);
        for (size_t i = 0; p && i < p->n_patches; i++)
                e |= json_object_set_new(patches, p->patches[i].id, json_text(p->patches[i].state));
        e |= json_object_set_new(o, "revision", json_u64(manager_policy_revision(s->manager)));
        e |= json_object_set_new(o, "error", json_text(d.policy_error));
        e |= json_object_set_new(o, "files", files);
        e |= json_object_set_new(o, "classes", classes);
        e |= json_object_set_new(o, "n_rules", json_u64(p ? p->n_rules : 0));
        e |= json_object_set_new(o, "patches", patches);
        return json_whole(o, e);
}

json_t *json_pause(ApiServer *s) {
        json_t *o = json_object(), *groups = json_array();
        DaemonStatus d = {};
        int e = 0;

        manager_status(s->manager, &d);
        for (const Group *g = manager_next_group(s->manager, NULL, true); g; g = manager_next_group(s->manager, g, true)) {
                GroupView v = {};
                json_t *one;

                group_view(s->manager, g, &v);
                if (!v.paused || d.paused)
                        continue;
                one = json_pack("{s:o, s:o}", "unit", json_text(v.unit), "paused_until", json_time_monotonic(v.paused_until_usec));
                e |= set_path(one, "cgroup", v.cgroup);
                e |= json_array_append_new(groups, one);
        }
        e |= json_object_set_new(o, "paused", json_boolean(d.paused));
        e |= json_object_set_new(o, "paused_until", d.paused ? json_time_monotonic(d.paused_until_usec) : json_null());
        e |= json_object_set_new(o, "groups", groups);
        return json_whole(o, e);
}
