/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Which class does a group get? The order of sources, the rules, and what is protected. Pure. */

#include "policies/policy.h"

/* What is known of a group when it is classified. Pointers stay the caller's; NULL / 0 is unknown. */
typedef struct GroupFacts {
        const char *cgroup;            /* path from the root of the hierarchy, "/" first */
        const char *unit;              /* canonical unit id when the cgroup is a unit's own */
        const char *const *unit_names; /* id and aliases, NULL-terminated; NULL: unit only */
        const char *slice;             /* slice unit of the unit, or the innermost slice on the path */
        const char *user;              /* user name, when known */
        bool has_uid;
        uint32_t uid;
        const char *unit_class;        /* [X-CpuClass] Class= of the unit's own files */
        const char *label_class;       /* xattr user.cpuclass of a root-owned directory */
} GroupFacts;

typedef enum ClassSource {
        CLASS_SOURCE_NONE = 0,
        CLASS_SOURCE_API,
        CLASS_SOURCE_UNIT,   /* the unit's own word */
        CLASS_SOURCE_LABEL,
        CLASS_SOURCE_RULE,
        CLASS_SOURCE_INHERITED,
} ClassSource;

/* The outcome of a classification. Pointers are into the policy (or the facts); valid as long as these. */
typedef struct Classification {
        const ServiceClass *service_class; /* NULL: not touched */
        ClassSource source;
        const Rule *rule;                  /* the rule, when source is RULE */
        const char *unknown_class;         /* a source named this class, which the policy lacks (no class then) */
        bool refused_protected;            /* something would match, but the group is protected */
} Classification;

/* Classifies a group. api_class is the class name of its assignment or NULL, api_force its force flag.
 * Order: API, unit's own word, label, rules (first match wins). A source that names an unknown class ends the search
 * without a class: a typing error must not hand the group to a lower source. */
void classify_group(const Policy *p, const GroupFacts *facts, const char *api_class, bool api_force, Classification *ret);

const char *class_source_to_string(ClassSource s);

/* Whether a group is protected (our own unit, -.slice, init.scope, dbus, journald, logind, udevd, the cgroup root,
 * kubelet-owned nodes /kubepods*, /kubelet* that are not a pod's or container's). */
bool group_is_protected(const GroupFacts *facts);

/* Whether a rule's conditions all hold. */
bool rule_matches(const Rule *r, const GroupFacts *facts);

/* Glob on a cgroup path: "*" and "?" stay within one level, "**" crosses levels, and where it is a level of its own it may be
 * none; brackets as fnmatch. A backslash is a letter like any other: unit names are full of them (\x2d). Bytes, not characters, and no
 * locale. Work is bounded by pattern length x path length (no backtracking). Patterns over 4096 bytes never match. */
bool cgroup_glob_matches(const char *pattern, const char *path);

/* The same on a unit name, which has no levels: what fnmatch(pattern, name, FNM_NOESCAPE) says. */
bool unit_glob_matches(const char *pattern, const char *name);

/* What a container path says, from the naming of kubelet's and container runtimes' drivers (systemd and cgroupfs):
 * fills buffers with the pod UID with dashes, the QoS ("guaranteed" for a pod directly under kubepods), and the container id.
 * Returns true when the path is a pod's or a container's own group; for a group below one the buffers are filled too, but the
 * answer is false: what a container makes inside itself is its own. Empty string for what it does not say. */
typedef struct PodFacts {
        char pod_uid[64];
        char qos[16];
        char container_id[72];
} PodFacts;
bool pod_facts_from_path(const char *cgroup, PodFacts *ret);
/* Whether the path is in kubelet's tree but above its pods: the node's own groups, which kubelet rewrites every minute. */
bool path_is_kubernetes_node(const char *cgroup);
