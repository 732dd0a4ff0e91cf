/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Read-only pictures of the manager for the API. */

#include "daemon/manager-internal.h"

#include "config.h"

void manager_status(const Manager *m, DaemonStatus *ret) {
        *ret = m->counters;
        ret->version = CPUCLASS_VERSION;
        ret->ready = m->ready && (m->units_listed || m->config.no_systemd);
        ret->dry_run = m->config.dry_run;
        ret->paused = manager_is_paused(m, NULL, &ret->paused_until_usec);
        ret->bus_connected = m->units_listed;
        ret->n_groups_seen = m->groups.n;
        for (size_t i = 0; i < m->groups.n; i++) {
                const Managed *x = m->groups.items[i]->managed;
                uint64_t now = clock_monotonic_usec();

                if (!x || !x->service_class)
                        continue;
                ret->n_groups_classified++;
                ret->n_threads_tracked += x->slice_threads.n + x->cookie_threads.n;
                if (x->bandwidth.common.status == KNOB_FAILED || x->latency.common.status == KNOB_FAILED || x->cookie.common.status == KNOB_FAILED)
                        ret->n_failed++;
                if (x->bandwidth.common.held_until_usec > now || (x->bandwidth.common.last_drift_usec && now - x->bandwidth.common.last_drift_usec < 60 * USEC_PER_SEC))
                        ret->n_drift++;
        }
        ret->n_pending = manager_pending(m, NULL, 0);
        ret->n_ledger = ledger_count(m->ledger, _LEDGER_KIND_MAX);
        ret->policy_error = m->policy_error;
        ret->policy_revision = m->policy_revision;
        ret->n_decisions = m->n_decisions;
}

const HostFacts *manager_host_facts(const Manager *m) {
        return &m->host;
}
const CgroupRoot *manager_cgroup_root(const Manager *m) {
        return &m->root;
}
const Policy *manager_policy(const Manager *m) {
        return m->policy;
}
uint64_t manager_policy_revision(const Manager *m) {
        return m->policy_revision;
}
const Assignments *manager_assignments(const Manager *m) {
        return m->assignments;
}

static bool to_show(const Group *g) {
        return g->managed || g->unknown_class || g->is_protected;
}

static const Group *first_from(const Manager *m, size_t i, bool classified_only) {
        for (; i < m->groups.n; i++)
                if (!classified_only || to_show(m->groups.items[i]))
                        return m->groups.items[i];
        return NULL;
}

const Group *manager_next_group_after_path(const Manager *m, const char *path, bool classified_only) {
        size_t i = path ? group_table_lower_bound(&m->groups, path) : 0;

        if (path && i < m->groups.n && streq(m->groups.items[i]->path, path))
                i++;
        return first_from(m, i, classified_only);
}

const Group *manager_next_group(const Manager *m, const Group *after, bool classified_only) {
        return manager_next_group_after_path(m, after ? after->path : NULL, classified_only);
}

const Group *manager_find_group_by_cgroup(const Manager *m, const char *cgroup) {
        return group_table_find(&m->groups, cgroup);
}

const Group *manager_find_group_by_unit(const Manager *m, const char *unit) {
        const UnitInfo *u = m->units ? units_get(m->units, unit) : NULL;

        return u && u->cgroup && u->cgroup[0] ? group_table_find(&m->groups, u->cgroup) : NULL;
}

void group_view(const Manager *m, const Group *g, GroupView *ret) {
        static const BandwidthKnob no_bandwidth;
        static const LatencyKnob no_latency;
        static const CookieKnob no_cookie;
        static const GroupSample no_sample;
        const UnitInfo *u = group_unit(m, g);
        const Managed *x = g->managed;
        _cleanup_close_ int fd = -1;
        char text[256];
        ssize_t n;

        *ret = (GroupView) {
                .cgroup = g->path,
                .inode = g->inode,
                .unit = u ? u->id : NULL,
                .slice = u && u->slice && u->slice[0] ? u->slice : NULL,
                .unknown_class = g->unknown_class,
                .is_protected = g->is_protected,
                .bandwidth = x ? &x->bandwidth : &no_bandwidth,
                .latency = x ? &x->latency : &no_latency,
                .cookie = x ? &x->cookie : &no_cookie,
                .sample = x ? &x->sample : &no_sample,
        };
        fd = cgroup_open(&m->root, g->path);
        n = fd >= 0 ? cgroup_read_file(fd, "cgroup.events", text, sizeof(text)) : -1;
        ret->populated = n > 0 && populated_parse(text, (size_t) n) == 1;
        ret->paused = manager_is_paused(m, g, &ret->paused_until_usec);
        if (!x || !x->service_class) {
                ret->unmanaged_reason = g->is_protected ? "protected: the host depends on it" : g->unknown_class ? "its class is not in the policy" : NULL;
                return;
        }
        ret->service_class = x->service_class;
        ret->effective_class = x->effective;
        ret->source = x->classification.source;
        ret->rule = x->classification.rule;
        ret->assignment = x->classification.source == CLASS_SOURCE_API ? group_assignment(m, g) : NULL;
        ret->inherited_from = x->inherited_from;
        ret->left_to_other_manager = x->left_to_other_manager;
        ret->unmanaged_reason = x->unmanaged_reason[0] ? x->unmanaged_reason : NULL;
        ret->drift = x->bandwidth.common.held_until_usec > clock_monotonic_usec() || x->latency.common.status == KNOB_HELD ||
                     (x->bandwidth.common.last_drift_usec && clock_monotonic_usec() - x->bandwidth.common.last_drift_usec < 60 * USEC_PER_SEC);
        ret->law_config = x->law_config;
        ret->law_state = x->law_running ? &x->law_state : NULL;
        if (x->last_decision && m->n_decisions - x->last_decision_sequence < DECISION_RING)
                ret->last_decision = x->last_decision;
}

int group_effective_bandwidth(const Manager *m, const Group *g, Bandwidth *ret, char **ret_limited_by) {
        return bandwidth_effective(&m->root, g->path, ret, ret_limited_by);
}

int group_affected_siblings(const Manager *m, const Group *g, size_t max, char ***ret) {
        _cleanup_free_ char *parent = path_parent(g->path), *prefix = NULL;
        char **names;
        size_t n = 0;

        names = calloc(max + 1, sizeof(*names));
        if (!names)
                return -ENOMEM;
        if (!parent) {
                *ret = names;
                return 0;
        }
        if (asprintf(&prefix, "%s/", streq(parent, "/") ? "" : parent) < 0) {
                prefix = NULL;
                free(names);
                return -ENOMEM;
        }
        for (size_t i = group_table_lower_bound(&m->groups, prefix); i < m->groups.n && n < max && startswith(m->groups.items[i]->path, prefix); i++) {
                const Group *s = m->groups.items[i];
                const UnitInfo *u;

                if (s == g || strchr(s->path + strlen(prefix), '/') || (s->managed && s->managed->service_class))
                        continue;
                u = group_unit(m, s);
                names[n] = strdup(u ? u->id : s->path);
                if (names[n])
                        n++;
        }
        *ret = names;
        return (int) n;
}
