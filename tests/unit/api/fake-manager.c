/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The test double behind the API tests: daemon/manager.h without a kernel. */

#include <fcntl.h>

#include "tests/unit/api/fake-manager.h"

static const char policy_text[] =
        "{\"version\": 1, \"classes\": ["
        "{\"name\": \"latency-critical\", \"priority\": 900, \"latency_nice\": -10, \"cpu\": {\"quota\": {\"percent_of_base\": 100}, \"burst\": \"full\", \"law\": \"captain\"}},"
        "{\"name\": \"batch\", \"priority\": 100, \"latency_nice\": 10, \"cpu\": {\"quota\": {\"percent_of_cpu\": 50}}}],"
        "\"rules\": [{\"name\": \"web\", \"class\": \"latency-critical\", \"match\": {\"unit\": \"nginx.service\"}}]}";

static Group *add_group(Manager *m, const char *cgroup, const char *unit, const char *class_name) {
        Group *g = &m->groups[m->n_groups++];

        *g = (Group) { .manager = m, .cgroup = strdup(cgroup), .unit = unit ? strdup(unit) : NULL, .class_name = class_name };
        return g;
}

static int compare_groups(const void *x, const void *y) {
        return strcmp(((const Group *) x)->cgroup, ((const Group *) y)->cgroup);
}

Manager *fake_manager_new(sd_event *event, const char *state_dir, size_t n_more) {
        Manager *m = calloc(1, sizeof(*m));
        DiagList list = {};
        Group *g;

        m->event = sd_event_ref(event);
        m->state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (assignments_open(m->state_fd, &(bool) { 0 }, &m->assignments) < 0 ||
            policy_build(&(PolicyDocument) { "test.json", policy_text, sizeof(policy_text) - 1 }, 1, &m->policy, &list) < 0)
                abort();
        m->status = (DaemonStatus) { .version = "1", .started_realtime_usec = 1700000000000000, .ready = true, .bus_connected = true, .n_groups_seen = 5 + n_more, .policy_revision = 7 };
        for (FactId i = 0; i < _FACT_MAX; i++)
                m->facts.facts[i].state = FACT_YES;
        m->facts.facts[FACT_CORE_SCHEDULING] = (HostFact) { FACT_NO, "the kernel was built without CONFIG_SCHED_CORE" };
        strcpy(m->facts.kernel_release, "6.12");
        m->facts.n_cpus = 2;

        m->groups = calloc(n_more + 5, sizeof(Group));
        add_group(m, "/system.slice", "system.slice", NULL);
        g = add_group(m, "/system.slice/batch.service", "batch.service", "batch");
        g->source = CLASS_SOURCE_API;
        g->bandwidth.common = (KnobCommon) { .status = KNOB_FAILED, .writer = WRITER_SYSTEMD, .error = EINVAL, .reason = "the kernel refused the quota" };
        g = add_group(m, "/system.slice/nginx.service", "nginx.service", "latency-critical");
        g->source = CLASS_SOURCE_RULE;
        g->bandwidth = (BandwidthKnob) {
                .common = { .status = KNOB_APPLIED, .writer = WRITER_SYSTEMD, .n_writes = 2, .last_write_usec = 1000000 },
                .has_observed = true, .observed = { 50000, 100000, 25000 },
                .has_base = true, .base = { QUOTA_UNLIMITED, 100000, 0 },
        };
        g->latency = (LatencyKnob) { .common = { .status = KNOB_APPLIED, .writer = WRITER_THREADS }, .latency_nice = -10, .slice_nsec = 300000, .n_threads = 4, .n_covered = 4 };
        g->cookie.common = (KnobCommon) { .status = KNOB_ABSENT, .reason = "no core scheduling" };
        g->sample = (GroupSample) {
                .at_usec = 5000000, .window_usec = 100000, .total = { .usage_usec = 1234567, .has_bandwidth = true, .nr_periods = 10, .nr_throttled = 3, .throttled_usec = 42 },
                .has_pressure = true, .pressure = { .some_total_usec = 1500000 }, .usage_permyriad_of_cpu = 5000, .throttled_permyriad = 3000,
        };
        add_group(m, STRANGE_CGROUP, NULL, "batch")->source = CLASS_SOURCE_LABEL;
        for (size_t i = 0; i < n_more; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "/more/%06zu", i);
                add_group(m, path, NULL, "batch")->source = CLASS_SOURCE_RULE;
        }
        qsort(m->groups, m->n_groups, sizeof(Group), compare_groups);
        m->oldest = 1;
        return m;
}

Manager *fake_manager_free(Manager *m) {
        for (size_t i = 0; i < m->n_groups; i++) {
                free(m->groups[i].cgroup);
                free(m->groups[i].unit);
        }
        for (size_t i = 0; i < FAKE_DECISIONS; i++) {
                free(m->ring[i].cgroup);
                free(m->ring[i].text);
        }
        free(m->groups);
        free(m->done_target);
        (void) policy_free(m->policy);
        (void) assignments_close(m->assignments);
        (void) close(m->state_fd);
        sd_event_source_disable_unref(m->soon);
        sd_event_unref(m->event);
        free(m);
        return NULL;
}

void fake_decide(Manager *m, const char *cgroup, const char *text) {
        Decision *d = &m->ring[m->n_decisions % FAKE_DECISIONS];

        free(d->cgroup);
        free(d->text);
        *d = (Decision) {
                .sequence = ++m->n_decisions, .realtime_usec = 1700000000000000 + m->n_decisions, .cgroup = strdup(cgroup), .text = strdup(text),
                .class_name = (char *) "batch", .knob = "bandwidth", .trigger = "law", .cause = LAW_CAUSE_DEMAND_ABOVE_LIMIT,
                .law = { .quota_usec = 60000, .throttled_permyriad = 2500 }, .before = { 50000, 100000, 0 }, .after = { 60000, 100000, 0 },
        };
        if (m->n_decisions > FAKE_DECISIONS)
                m->oldest = m->n_decisions - FAKE_DECISIONS + 1;
        m->status.n_decisions = m->n_decisions;
        if (m->on_decision)
                m->on_decision(d, m->on_decision_userdata);
}

/* ---- views ---- */

void manager_status(const Manager *m, DaemonStatus *ret) {
        *ret = m->status;
}

const HostFacts *manager_host_facts(const Manager *m) {
        return &m->facts;
}

const Policy *manager_policy(const Manager *m) {
        return m->policy;
}

uint64_t manager_policy_revision(const Manager *m) {
        return m->status.policy_revision;
}

const Assignments *manager_assignments(const Manager *m) {
        return m->assignments;
}

const Group *manager_next_group_after_path(const Manager *m, const char *path, bool classified_only) {
        for (size_t i = 0; i < m->n_groups; i++)
                if ((!path || strcmp(m->groups[i].cgroup, path) > 0) && (!classified_only || m->groups[i].class_name))
                        return &m->groups[i];
        return NULL;
}

const Group *manager_next_group(const Manager *m, const Group *after, bool classified_only) {
        for (size_t i = after ? (size_t) (after - m->groups) + 1 : 0; i < m->n_groups; i++)
                if (!classified_only || m->groups[i].class_name)
                        return &m->groups[i];
        return NULL;
}

const Group *manager_find_group_by_cgroup(const Manager *m, const char *cgroup) {
        for (size_t i = 0; i < m->n_groups; i++)
                if (streq(m->groups[i].cgroup, cgroup))
                        return &m->groups[i];
        return NULL;
}

const Group *manager_find_group_by_unit(const Manager *m, const char *unit) {
        for (size_t i = 0; i < m->n_groups; i++)
                if (streq_null(m->groups[i].unit, streq(unit, "www.service") ? "nginx.service" : unit))
                        return &m->groups[i];
        return NULL;
}

void group_view(const Manager *m, const Group *g, GroupView *ret) {
        *ret = (GroupView) {
                .cgroup = g->cgroup, .inode = (uint64_t) (g - m->groups) + 100, .unit = g->unit, .slice = g->unit ? "system.slice" : NULL, .populated = true,
                .service_class = g->class_name ? policy_find_class(m->policy, g->class_name) : NULL, .source = g->source,
                .rule = g->source == CLASS_SOURCE_RULE ? &m->policy->rules[0] : NULL,
                .assignment = g->unit ? assignments_get(m->assignments, TARGET_UNIT, g->unit) : NULL,
                .is_protected = g->is_protected, .paused = g->paused, .paused_until_usec = USEC_INFINITY, .drift = g->drift,
                .bandwidth = g->class_name ? &g->bandwidth : NULL, .latency = g->class_name ? &g->latency : NULL, .cookie = g->class_name ? &g->cookie : NULL,
                .sample = &g->sample,
        };
        if (ret->service_class)
                ret->effective_class = *ret->service_class;
        for (uint64_t i = m->n_decisions; i >= m->oldest && i > 0; i--)
                if (streq(m->ring[(i - 1) % FAKE_DECISIONS].cgroup, g->cgroup)) {
                        ret->last_decision = &m->ring[(i - 1) % FAKE_DECISIONS];
                        break;
                }
}

int group_effective_bandwidth(const Manager *m, const Group *g, Bandwidth *ret, char **ret_limited_by) {
        *ret = (Bandwidth) { 50000, 100000, 0 };
        *ret_limited_by = strdup("/system.slice");
        return 0;
}

int group_affected_siblings(const Manager *m, const Group *g, size_t max, char ***ret) {
        *ret = calloc(2, sizeof(char *));
        (*ret)[0] = strdup("other.service");
        return 0;
}

size_t manager_pending(const Manager *m, PendingView *ret, size_t max) {
        size_t n = 0;

        for (size_t i = 0; i < assignments_count(m->assignments); i++) {
                const Assignment *a = assignments_at(m->assignments, i);

                if (a->kind == TARGET_UNIT && !manager_find_group_by_unit(m, a->target)) {
                        if (n < max)
                                ret[n] = (PendingView) { a, "unit is not loaded" };
                        n++;
                }
        }
        return n;
}

size_t manager_decisions(const Manager *m, uint64_t since, const char *cgroup, const Decision **ret, size_t max, uint64_t *ret_oldest) {
        size_t n = 0;

        *ret_oldest = m->n_decisions > 0 ? m->oldest : 0;
        for (uint64_t i = MAX_OF(since + 1, m->oldest); i <= m->n_decisions && n < max; i++)
                if (!cgroup || streq(m->ring[(i - 1) % FAKE_DECISIONS].cgroup, cgroup))
                        ret[n++] = &m->ring[(i - 1) % FAKE_DECISIONS];
        return n;
}

/* ---- commands ---- */

static int command(Manager *m, const char *format, const char *a, const char *b) {
        int k = m->fail;

        m->fail = 0;
        if (k < 0)
                return k;
        m->n_commands++;
        (void) snprintf(m->last, sizeof(m->last), "%s %s %s", format, a ? a : "-", b ? b : "-");
        return 0;
}

int manager_assign(Manager *m, const Assignment *a, bool steal, bool *ret_created, DiagList *list) {
        int k;

        if (!policy_find_class(m->policy, a->class_name)) {
                diag_add(list, "request body", 0, "/class", a->class_name, NULL, "there is no such class");
                return -ENOENT;
        }
        if (streq(a->target, "init.scope") && !a->force)
                return -EPERM;
        k = command(m, "assign", a->target, a->by);
        return k < 0 ? k : assignments_put(m->assignments, a, steal, ret_created);
}

int manager_unassign(Manager *m, TargetKind kind, const char *target, const char *who) {
        int k = command(m, "unassign", target, who);

        return k < 0 ? k : assignments_delete(m->assignments, kind, target);
}

int manager_replace_owner(Manager *m, const char *owner, const Assignment *all, size_t n, size_t *ret_changed, size_t *ret_pruned, DiagList *list) {
        size_t conflict = 0;
        int k = command(m, "replace", owner, NULL);

        return k < 0 ? k : assignments_replace_owner(m->assignments, owner, all, n, ret_changed, ret_pruned, &conflict);
}

int manager_reload_policy(Manager *m, DiagList *list) {
        int k = command(m, "reload", NULL, NULL);

        if (k == -EINVAL)
                diag_add(list, "/etc/cpuclass/policies.d/50-x.json", 3, "/classes/0/latency_nice", "-30", "-20 to 19", "out of range");
        return k;
}

int manager_put_class(Manager *m, const char *name, json_t *json, bool *ret_created, DiagList *list) {
        _cleanup_free_ char *text = NULL;
        json_t *document = json_pack("{s:i, s:[O]}", "version", 1, "classes", json);
        Policy *both = NULL;
        int k;

        text = json_dumps(document, 0);
        json_decref(document);
        *ret_created = !policy_find_class(m->policy, name);
        k = policy_build((PolicyDocument[]) { { "test.json", policy_text, sizeof(policy_text) - 1 }, { "api", text, strlen(text) } }, 2, &both, list);
        if (k < 0)
                return k;
        k = command(m, "put-class", name, NULL);
        if (k < 0) {
                (void) policy_free(both);
                return k;
        }
        (void) policy_free(m->policy);
        m->policy = both;
        return 0;
}

int manager_delete_class(Manager *m, const char *name, DiagList *list) {
        const ServiceClass *c = policy_find_class(m->policy, name);

        return !c ? -ENOENT : streq(c->origin, "test.json") ? -EPERM : command(m, "delete-class", name, NULL);
}

int manager_put_rules(Manager *m, json_t *rules_array, DiagList *list) {
        m->put_rules_called = true;
        return command(m, "put-rules", NULL, NULL);
}

int manager_pause(Manager *m, const char *cgroup_or_unit, uint64_t duration_usec) {
        int k = command(m, "pause", cgroup_or_unit, NULL);
        Group *g;

        if (k < 0)
                return k;
        if (!cgroup_or_unit) {
                m->status.paused = true;
                m->status.paused_until_usec = USEC_INFINITY;
                return 0;
        }
        g = (Group *) (*cgroup_or_unit == '/' ? manager_find_group_by_cgroup(m, cgroup_or_unit) : manager_find_group_by_unit(m, cgroup_or_unit));
        if (!g)
                return -ENOENT;
        g->paused = true;
        return 0;
}

int manager_resume(Manager *m, const char *cgroup_or_unit) {
        if (!cgroup_or_unit)
                m->status.paused = false;
        return command(m, "resume", cgroup_or_unit, NULL);
}

int manager_preview(Manager *m, const Assignment *a, json_t **ret) {
        if (a->class_name && !policy_find_class(m->policy, a->class_name))
                return -ENOENT;
        *ret = json_pack("{s:b, s:[], s:[s], s:[]}", "matched", 1, "writes", "affected", "other.service", "notes");
        return 0;
}

static void finish(Manager *m) {
        const Group *g = m->done_kind == TARGET_UNIT ? manager_find_group_by_unit(m, m->done_target) : manager_find_group_by_cgroup(m, m->done_target);
        ManagerApplied done = TAKE_PTR(m->done);

        m->ticket = 0;
        done(m->wait_error, g, m->done_userdata);
}

static int on_soon(sd_event_source *s, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        if (m->done)
                finish(m);
        if (m->restored)
                TAKE_PTR(m->restored)(3, 1, m->restored_userdata);
        return 0;
}

static void soon(Manager *m) {
        m->soon = sd_event_source_disable_unref(m->soon);
        (void) sd_event_add_time_relative(m->event, &m->soon, CLOCK_MONOTONIC, 20000, 1000, on_soon, m);
}

int manager_wait_applied(Manager *m, TargetKind kind, const char *target, uint64_t timeout_usec, ManagerApplied done, void *userdata, uint64_t *ret_ticket) {
        m->done = done;
        m->done_userdata = userdata;
        m->done_kind = kind;
        (void) free_and_strdup(&m->done_target, target);
        m->ticket = *ret_ticket = 77;
        if (m->wait == FAKE_WAIT_NOW)
                finish(m);
        else if (m->wait == FAKE_WAIT_SOON)
                soon(m);
        return 0;
}

void manager_wait_cancel(Manager *m, uint64_t ticket) {
        if (ticket == m->ticket) {
                m->done = NULL;
                m->n_cancelled++;
        }
}

int manager_restore_all(Manager *m, void (*done)(size_t n_restored, size_t n_left, void *userdata), void *userdata) {
        int k = command(m, "restore", NULL, NULL);

        if (k < 0)
                return k;
        if (m->wait == FAKE_WAIT_NOW)
                done(3, 1, userdata);
        else {
                m->restored = done;
                m->restored_userdata = userdata;
                soon(m);
        }
        return 0;
}

int manager_pool_run(Manager *m, const char *pool, const char *class_name, pid_t pid, char **ret_cgroup, DiagList *list) {
        int k = command(m, "pool", pool, class_name);

        if (k < 0)
                return k;
        return asprintf(ret_cgroup, "/system.slice/cpuclassd.service/%s-1", pool) < 0 ? -ENOMEM : 0;
}

void manager_set_decision_handler(Manager *m, void (*fn)(const Decision *d, void *userdata), void *userdata) {
        m->on_decision = fn;
        m->on_decision_userdata = userdata;
}
