/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From facts to a class, and from a class to what is wanted of each knob. Decides nothing about the kernel: the knobs do. */

#include "daemon/manager-internal.h"

#include <pwd.h>

const UnitInfo *group_unit(const Manager *m, const Group *g) {
        return m->units ? units_by_cgroup(m->units, g->path) : NULL;
}

/* The nearest unit above (not the group itself). */
static const UnitInfo *unit_above(const Manager *m, const Group *g) {
        _cleanup_free_ char *path = path_parent(g->path);

        while (path && !streq(path, "/")) {
                const UnitInfo *u = m->units ? units_by_cgroup(m->units, path) : NULL;
                char *up;

                if (u)
                        return u;
                up = path_parent(path);
                free(path);
                path = up;
        }
        return NULL;
}

static bool is_unit_name(const char *name) {
        static const char *const suffixes[] = { ".service", ".scope", ".slice", ".socket", ".mount", ".swap" };

        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++)
                if (endswith(name, suffixes[i]))
                        return true;
        return false;
}

/* A container or machine that runs a systemd of its own in a delegated subtree: somewhere between the delegated unit and the group lies a
 * directory with an init.scope in it. */
static bool has_own_manager(const Manager *m, const Group *g, const char *delegated) {
        _cleanup_free_ char *path = strdup(g->path);

        while (path && (streq(path, delegated) || path_is_below(path, delegated))) {
                _cleanup_free_ char *init = NULL;
                char *up;

                if (asprintf(&init, "%s/init.scope", path) < 0) {
                        init = NULL;
                        return false;
                }
                if (group_table_find(&m->groups, init))
                        return true;
                up = path_parent(path);
                free(path);
                path = up;
        }
        return false;
}

Writer group_writer(Manager *m, const Group *g, char *reason, size_t size) {
        const UnitInfo *unit, *above;
        const char *last = strrchr(g->path, '/') + 1;

        reason[0] = 0;
        if (m->config.no_systemd)
                return WRITER_CGROUPFS;
        if (!m->units_listed) {
                (void) snprintf(reason, size, "systemd's units are not known yet: the bus is not connected");
                return WRITER_NONE;
        }
        unit = group_unit(m, g);
        if (unit)
                return WRITER_SYSTEMD;
        above = unit_above(m, g);
        if (above && above->delegate) {
                if (startswith(above->id, "user@")) {
                        (void) snprintf(reason, size, "belongs to the user manager %.64s", above->id);
                        return WRITER_NONE;
                }
                if (has_own_manager(m, g, above->cgroup)) {
                        (void) snprintf(reason, size, "belongs to the service manager that runs inside %.64s", above->id);
                        return WRITER_NONE;
                }
                return WRITER_CGROUPFS;
        }
        if (above && startswith(above->id, "user@")) {
                (void) snprintf(reason, size, "belongs to the user manager %.64s", above->id);
                return WRITER_NONE;
        }
        if (is_unit_name(last) && (!above || endswith(above->id, ".slice"))) {
                /* Looks like a unit that systemd has not told us of: wait for it rather than write behind its back. */
                if (m->units)
                        units_refresh(m->units, last);
                (void) snprintf(reason, size, "waiting for systemd to tell of this unit");
                return WRITER_NONE;
        }
        return WRITER_CGROUPFS;
}

static const Assignment *find_assignment(const Manager *m, const Group *g, const UnitInfo *unit, const PodFacts *pod, bool is_pod) {
        const Assignment *a;

        if (unit)
                for (char **n = unit->names; n && *n; n++) {
                        a = assignments_get(m->assignments, TARGET_UNIT, *n);
                        if (a)
                                return a;
                }
        a = assignments_get(m->assignments, TARGET_CGROUP, g->path);
        if (a)
                return a;
        if (unit) {
                /* An assignment to a template covers the instances that have none of their own. */
                const char *at = strchr(unit->id, '@'), *dot = strrchr(unit->id, '.');

                if (at && dot && dot > at + 1) {
                        _cleanup_free_ char *template = NULL;

                        if (asprintf(&template, "%.*s%s", (int) (at + 1 - unit->id), unit->id, dot) < 0)
                                template = NULL;
                        a = template ? assignments_get(m->assignments, TARGET_UNIT, template) : NULL;
                        if (a)
                                return a;
                }
        }
        if (is_pod && pod->pod_uid[0])
                return assignments_get(m->assignments, TARGET_POD, pod->pod_uid);
        return NULL;
}

const Assignment *unit_assignment(const Manager *m, const char *id) {
        const UnitInfo *known = m->units ? units_get(m->units, id) : NULL;
        const UnitInfo by_name = { .id = (char *) id, .names = (char *[]) { (char *) id, NULL } };
        const Group nowhere = { .path = (char *) "" };
        const PodFacts pod = { 0 };

        return find_assignment(m, &nowhere, known ? known : &by_name, &pod, false);
}

static void user_of(const Group *g, const UnitInfo *unit, char *name, size_t size, bool *ret_has_uid, uint32_t *ret_uid) {
        const char *p = strstr(g->path, "/user-");

        name[0] = 0;
        *ret_has_uid = false;
        if (unit && unit->user && unit->user[0])
                (void) snprintf(name, size, "%s", unit->user);
        if (p) {
                char *end;
                unsigned long uid = strtoul(p + 6, &end, 10);

                if (end > p + 6 && startswith(end, ".slice") && uid < UINT32_MAX) {
                        *ret_has_uid = true;
                        *ret_uid = (uint32_t) uid;
                }
        } else if (name[0] >= '0' && name[0] <= '9') {
                *ret_has_uid = true;
                *ret_uid = (uint32_t) strtoul(name, NULL, 10);
        }
        if (*ret_has_uid && !name[0]) {
                char buffer[1024];
                struct passwd pw, *found = NULL;

                /* /etc/passwd only through nss "files" in practice; the sandbox has no network. */
                if (getpwuid_r(*ret_uid, &pw, buffer, sizeof(buffer), &found) == 0 && found)
                        (void) snprintf(name, size, "%s", found->pw_name);
        }
}

/* The innermost slice on the path. */
static void slice_of_path(const char *path, char *ret, size_t size) {
        const char *p = path;

        ret[0] = 0;
        while ((p = strchr(p, '/'))) {
                const char *start = ++p, *end = strchrnul(p, '/');
                size_t n = (size_t) (end - start);

                if (n > 6 && n < size && strncmp(end - 6, ".slice", 6) == 0) {
                        memcpy(ret, start, n);
                        ret[n] = 0;
                }
        }
}

static bool same_class(const ServiceClass *a, const ServiceClass *b) {
        return a && b && streq(a->name, b->name);
}

/* Nearest classified ancestor whose class is inherited. */
static const Group *inherits_from(const Manager *m, const Group *g) {
        _cleanup_free_ char *path = path_parent(g->path);

        while (path && !streq(path, "/")) {
                const Group *a = group_table_find(&m->groups, path);
                char *up;

                if (a && a->managed && a->managed->service_class && a->managed->classification.source != CLASS_SOURCE_INHERITED)
                        return a->managed->service_class->inherit ? a : NULL;
                up = path_parent(path);
                free(path);
                path = up;
        }
        return NULL;
}

static void mark_children_dirty(Manager *m, const Group *g) {
        _cleanup_free_ char *prefix = NULL;

        if (asprintf(&prefix, "%s/", g->path) < 0) {
                prefix = NULL;
                return;
        }
        for (size_t i = group_table_lower_bound(&m->groups, prefix); i < m->groups.n && startswith(m->groups.items[i]->path, prefix); i++)
                manager_mark_dirty(m, m->groups.items[i]);
}

/* A class that is taken away during a pause: values stay until it is resumed, and nothing may point into a policy that is about to go. */
static void forget_class(Group *g) {
        Managed *x = g->managed;

        x->service_class = NULL;
        x->classification = (Classification) { 0 };
        x->effective = (ServiceClass) { 0 };
        x->law_running = false;
}

static void release_all(Manager *m, Group *g) {
        bool inherit = g->managed->service_class && g->managed->service_class->inherit;

        if (manager_is_paused(m, g, NULL)) {
                forget_class(g);
                if (inherit)
                        mark_children_dirty(m, g);
                return;
        }
        bandwidth_release(m, g, "unassign");
        latency_release(m, g, "unassign");
        cookie_release(m, g, "unassign");
        group_drop_managed(g);
        if (inherit)
                mark_children_dirty(m, g);
}

const Assignment *group_assignment(const Manager *m, const Group *g) {
        PodFacts pod;
        bool is_pod = pod_facts_from_path(g->path, &pod);

        return find_assignment(m, g, group_unit(m, g), &pod, is_pod);
}

void classify_and_plan(Manager *m, Group *g) {
        const UnitInfo *unit = group_unit(m, g), *above = unit ? NULL : unit_above(m, g);
        const Assignment *assignment;
        const Group *ancestor = NULL;
        Classification c;
        GroupFacts facts;
        PodFacts pod;
        ServiceClass effective;
        char user[64], slice[256];
        bool is_pod = pod_facts_from_path(g->path, &pod);
        bool fresh;

        facts = (GroupFacts) {
                .cgroup = g->path,
                .unit = unit ? unit->id : NULL,
                .unit_names = unit ? (const char *const *) unit->names : NULL,
                .unit_class = unit ? unit->class_word : NULL,
                .label_class = g->label,
        };
        slice_of_path(g->path, slice, sizeof(slice));
        facts.slice = unit && unit->slice && unit->slice[0] ? unit->slice : slice[0] ? slice : NULL;
        user_of(g, unit ? unit : above, user, sizeof(user), &facts.has_uid, &facts.uid);
        facts.user = user[0] ? user : NULL;

        assignment = find_assignment(m, g, unit, &pod, is_pod);
        classify_group(m->policy, &facts, assignment ? assignment->class_name : NULL, assignment && assignment->force, &c);
        g->is_protected = c.refused_protected;
        (void) free_and_strdup(&g->unknown_class, c.unknown_class);
        if (!c.service_class && !c.unknown_class && !c.refused_protected && !group_is_protected(&facts)) {
                ancestor = inherits_from(m, g);
                if (ancestor) {
                        c.service_class = ancestor->managed->service_class;
                        c.source = CLASS_SOURCE_INHERITED;
                }
        }
        if (!c.service_class) {
                if (g->managed)
                        release_all(m, g);
                return;
        }

        fresh = !g->managed;
        if (group_make_managed(g) < 0)
                return;
        if (c.source == CLASS_SOURCE_INHERITED) {
                /* Latency and cookie travel down; bandwidth is each group's own. */
                effective = ancestor->managed->effective;
                effective.manages_bandwidth = false;
                (void) free_and_strdup(&g->managed->inherited_from, ancestor->path);
        } else {
                class_apply_overrides(c.service_class, assignment && c.source == CLASS_SOURCE_API ? &assignment->overrides : &(Overrides) { 0 }, &effective);
                (void) free_and_strdup(&g->managed->inherited_from, NULL);
        }
        if (!fresh && (!same_class(g->managed->service_class, c.service_class) || g->managed->effective.inherit != effective.inherit ||
                       (effective.inherit && (g->managed->effective.has_latency_nice != effective.has_latency_nice || g->managed->effective.latency_nice != effective.latency_nice ||
                                              g->managed->effective.core_scheduling != effective.core_scheduling))))
                mark_children_dirty(m, g);
        g->managed->service_class = c.service_class;
        g->managed->classification = c;
        g->managed->effective = effective;
        if (fresh) {
                g->managed->last_active_usec = clock_monotonic_usec();
                discover_watch_values(m, g);
                if (effective.inherit)
                        mark_children_dirty(m, g);
        }
}
