/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The order of sources decides the class of a group, and the first that speaks is heard: a source that names a class that is not
 * there ends the search, because what comes after it was not meant.
 *
 * What the host lives on is protected: only an exact name with force takes it. */

#include <ctype.h>

#include "policies/match.h"
#include "policies/schema.h"

/* Units that the host or we ourselves live on. Their own group is protected; what is below it is theirs to give away,
 * with the exception of those that "below" marks. */
static const struct {
        const char *name;
        bool below;
} protected_units[] = {
        { "-.slice", false },
        { "init.scope", false },
        { "dbus.service", false },
        { "dbus-broker.service", false },
        { "systemd-journald.service", false },
        { "systemd-logind.service", false },
        { "systemd-udevd.service", true }, /* its workers are in the group "udev" below */
        { "kubelet.service", false },
        { "cpuclassd.service", false },
        { "cpuclassd.socket", false },
        { "cpuclass-gateway.service", false },
        { "cpuclass-pools.service", false }, /* pools of ours are below and are managed */
};

static bool name_is_protected(const char *name, size_t n, bool is_last) {
        for (size_t i = 0; i < ELEMENTSOF(protected_units); i++)
                if ((is_last || protected_units[i].below) && strlen(protected_units[i].name) == n &&
                    memcmp(protected_units[i].name, name, n) == 0)
                        return true;
        /* journald's instances for namespaces: systemd-journald@NAME.service */
        return is_last && n > strlen("systemd-journald@") && memcmp(name, "systemd-journald@", strlen("systemd-journald@")) == 0;
}

static bool path_is_protected(const char *path) {
        if (path_is_kubernetes_node(path))
                return true;
        path += strspn(path, "/");
        if (!*path)
                return true; /* the root */
        while (*path) {
                size_t n = strcspn(path, "/");
                const char *next = path + n + strspn(path + n, "/");

                if (name_is_protected(path, n, !*next))
                        return true;
                path = next;
        }
        return false;
}

bool group_is_protected(const GroupFacts *facts) {
        if (facts->cgroup && path_is_protected(facts->cgroup))
                return true;
        if (facts->unit && name_is_protected(facts->unit, strlen(facts->unit), true))
                return true;
        for (const char *const *n = facts->unit_names; n && *n; n++)
                if (name_is_protected(*n, strlen(*n), true))
                        return true;
        return false;
}

static bool unit_condition(const char *glob, const GroupFacts *facts) {
        if (facts->unit && unit_glob_matches(glob, facts->unit))
                return true;
        for (const char *const *n = facts->unit_names; n && *n; n++)
                if (unit_glob_matches(glob, *n))
                        return true;
        return false;
}

/* The names of slices say what is above them: a-b.slice is in a.slice, and that in -.slice. */
static bool slice_condition(const char *glob, const GroupFacts *facts) {
        char name[256];
        size_t n;

        if (!facts->slice || strlen(facts->slice) >= sizeof(name) || !endswith(facts->slice, ".slice"))
                return false;
        (void) strcpy(name, facts->slice);
        n = strlen(name) - strlen(".slice");
        for (;;) {
                if (unit_glob_matches(glob, name))
                        return true;
                if (streq(name, "-.slice"))
                        return false;
                while (n > 0 && name[n - 1] != '-')
                        n--;
                if (n <= 1)
                        (void) strcpy(name, "-.slice");
                else
                        (void) strcpy(name + --n, ".slice");
        }
}

/* Whether a level of the path is user-UID.slice for this uid. */
static bool path_is_of_uid(const char *path, const char *uid) {
        size_t n = strlen(uid);

        for (const char *p = strstr(path, "/user-"); p; p = strstr(p + 1, "/user-")) {
                const char *rest = p + strlen("/user-");

                if (strncmp(rest, uid, n) == 0 && startswith(rest + n, ".slice") &&
                    (rest[n + strlen(".slice")] == '/' || !rest[n + strlen(".slice")]))
                        return true;
        }
        return false;
}

static bool user_condition(const char *user, const GroupFacts *facts) {
        char uid[16];

        if (facts->user && streq(user, facts->user))
                return true;
        if (strspn(user, "0123456789") != strlen(user))
                return false;
        if (facts->has_uid) {
                (void) snprintf(uid, sizeof(uid), "%u", facts->uid);
                if (streq(uid, user))
                        return true;
        }
        return facts->cgroup && path_is_of_uid(facts->cgroup, user);
}

/* Pod UIDs are compared without regard to case, and to which of - and _ stands between the parts. */
static bool uid_equal(const char *a, const char *b) {
        for (; *a && *b; a++, b++) {
                int x = *a == '_' ? '-' : tolower((unsigned char) *a), y = *b == '_' ? '-' : tolower((unsigned char) *b);

                if (x != y)
                        return false;
        }
        return !*a && !*b;
}

static bool pod_conditions(const RuleMatch *m, const GroupFacts *facts) {
        PodFacts pod;

        if (!m->kubernetes_qos && !m->pod_uid && !m->container_id)
                return true;
        if (!facts->cgroup || !pod_facts_from_path(facts->cgroup, &pod))
                return false;
        if (m->kubernetes_qos && !streq(m->kubernetes_qos, pod.qos))
                return false;
        if (m->pod_uid && !uid_equal(m->pod_uid, pod.pod_uid))
                return false;
        return !m->container_id || (m->container_id[0] && startswith(pod.container_id, m->container_id));
}

bool rule_matches(const Rule *r, const GroupFacts *facts) {
        const RuleMatch *m = &r->match;

        if (m->unit && !unit_condition(m->unit, facts))
                return false;
        if (m->slice && !slice_condition(m->slice, facts))
                return false;
        if (m->cgroup && !(facts->cgroup && cgroup_glob_matches(m->cgroup, facts->cgroup)))
                return false;
        if (m->user && !user_condition(m->user, facts))
                return false;
        return pod_conditions(m, facts);
}

/* Whether a rule may take a protected group that it matches. */
static bool rule_may_force(const Rule *r) {
        return r->force && ((r->match.unit && glob_is_exact(r->match.unit)) || (r->match.cgroup && glob_is_exact(r->match.cgroup)));
}

static Classification chosen(const Policy *p, const char *name, ClassSource source, const Rule *rule) {
        const ServiceClass *c = policy_find_class(p, name);

        return (Classification) { .service_class = c, .source = source, .rule = rule, .unknown_class = c ? NULL : name };
}

void classify_group(const Policy *p, const GroupFacts *facts, const char *api_class, bool api_force, Classification *ret) {
        bool is_protected = group_is_protected(facts), refused = false;

        if (api_class) {
                if (is_protected && !api_force)
                        *ret = (Classification) { .refused_protected = true };
                else
                        *ret = chosen(p, api_class, CLASS_SOURCE_API, NULL);
                return;
        }
        if (facts->unit_class || facts->label_class) {
                if (!is_protected) {
                        *ret = facts->unit_class ? chosen(p, facts->unit_class, CLASS_SOURCE_UNIT, NULL)
                                                 : chosen(p, facts->label_class, CLASS_SOURCE_LABEL, NULL);
                        return;
                }
                refused = true;
        }
        for (size_t i = 0; i < p->n_rules; i++) {
                const Rule *r = &p->rules[i];

                if (!rule_matches(r, facts))
                        continue;
                if (is_protected && !rule_may_force(r)) {
                        refused = true;
                        continue;
                }
                *ret = chosen(p, r->class_name, CLASS_SOURCE_RULE, r);
                return;
        }
        *ret = (Classification) { .refused_protected = refused };
}

const char *class_source_to_string(ClassSource s) {
        static const char *const words[] = { "none", "api", "unit", "label", "rule", "inherited" };

        return (size_t) s < ELEMENTSOF(words) ? words[s] : NULL;
}
