/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The manager as the API and main see it: views to read, commands to give. Everything runs on the one loop. */

#include <systemd/sd-event.h>

#include "daemon/view.h"

/* Where things are; tests and main fill it. Strings stay the caller's for the life of the manager. */
typedef struct ManagerConfig {
        const char *state_dir;          /* /var/lib/cpuclass */
        const char *const *policy_dirs; /* lowest precedence first, NULL-terminated */
        const char *runtime_dir;        /* /run/cpuclass */
        const char *cgroup_dir;         /* NULL: find the mount; else a directory (tests) */
        const char *bus_address;        /* NULL: the system bus */
        bool no_systemd;                /* do not talk to systemd at all */
        bool dry_run;
} ManagerConfig;

int manager_new(sd_event *event, const ManagerConfig *config, Manager **ret);
Manager *manager_free(Manager *m);      /* writes nothing to the kernel */
int manager_start(Manager *m);
/* The daemon ends: from here on nothing is decided or written but what manager_restore_all() puts back. There is no way back. */
void manager_quiesce(Manager *m);
/* Puts back every value that is still ours; done is called when systemd has reloaded (or at once). */
int manager_restore_all(Manager *m, void (*done)(size_t n_restored, size_t n_left, void *userdata), void *userdata);

/* ---- views ---- */
void manager_status(const Manager *m, DaemonStatus *ret);
const HostFacts *manager_host_facts(const Manager *m);
const CgroupRoot *manager_cgroup_root(const Manager *m);
const Policy *manager_policy(const Manager *m);
uint64_t manager_policy_revision(const Manager *m);
const Assignments *manager_assignments(const Manager *m);
/* Groups in path order. Start with NULL; returns NULL at the end. classified_only skips what has no class and no reason to show. */
const Group *manager_next_group(const Manager *m, const Group *after, bool classified_only);
/* Paging: the first group whose path sorts after this one. path NULL: the first. */
const Group *manager_next_group_after_path(const Manager *m, const char *path, bool classified_only);
const Group *manager_find_group_by_cgroup(const Manager *m, const char *cgroup);
const Group *manager_find_group_by_unit(const Manager *m, const char *unit);   /* aliases resolve */
void group_view(const Manager *m, const Group *g, GroupView *ret);
/* The effective bandwidth along the path (reads the kernel). limited_by: new string, path of the group that limits. */
int group_effective_bandwidth(const Manager *m, const Group *g, Bandwidth *ret, char **ret_limited_by);
/* Siblings without a class that turning the controller on would affect, or that share it: unit or cgroup names, new array of new strings
 * (NULL-terminated), at most max. */
int group_affected_siblings(const Manager *m, const Group *g, size_t max, char ***ret);
size_t manager_pending(const Manager *m, PendingView *ret, size_t max);   /* returns how many there are */
/* Decisions with sequence > since, oldest first; returns how many were filled. cgroup NULL: all. *ret_oldest: oldest sequence still kept. */
size_t manager_decisions(const Manager *m, uint64_t since, const char *cgroup, const Decision **ret, size_t max, uint64_t *ret_oldest);

/* ---- commands: each is durable when it returns 0; the effect follows in the next turn of the loop ---- */
/* who: for the audit line and the assignment's "by". -ENOENT unknown class, -EPERM protected without force, -EEXIST other owner, -ENOSPC ... */
int manager_assign(Manager *m, const Assignment *a, bool steal, bool *ret_created, DiagList *list);
int manager_unassign(Manager *m, TargetKind kind, const char *target, const char *who);
int manager_replace_owner(Manager *m, const char *owner, const Assignment *all, size_t n, size_t *ret_changed, size_t *ret_pruned, DiagList *list);
/* Loads the policy again from its directories. On -EINVAL the old one stays and list says why. */
int manager_reload_policy(Manager *m, DiagList *list);
/* Runtime policy: one class or rule put or deleted through the API, kept in the state directory. json: the class or rule document. */
int manager_put_class(Manager *m, const char *name, json_t *json, bool *ret_created, DiagList *list);
int manager_delete_class(Manager *m, const char *name, DiagList *list);   /* -ENOENT; -EPERM: defined by a file, not by the API */
int manager_put_rules(Manager *m, json_t *rules_array, DiagList *list);   /* replaces all runtime rules */
/* Pause everything (group NULL) or one group; duration_usec 0: until resume. Paused: no writes, values stay. Survives a restart of the daemon. */
int manager_pause(Manager *m, const char *cgroup_or_unit, uint64_t duration_usec);
int manager_resume(Manager *m, const char *cgroup_or_unit);

/* Dry run of an assignment (class_name NULL: of an unassign): the writes that would follow and who else is affected. New reference:
 * {"matched": bool, "writes":[{"cgroup","knob","writer","target","value"}...], "affected":[...], "notes":[...]} */
int manager_preview(Manager *m, const Assignment *a, json_t **ret);

/* Tells when the target has everything that its class wants in the kernel (or that it can't). Called once; at the time-out with -ETIMEDOUT. g may be NULL (pending). */
typedef void (*ManagerApplied)(int error, const Group *g, void *userdata);
int manager_wait_applied(Manager *m, TargetKind kind, const char *target, uint64_t timeout_usec, ManagerApplied done, void *userdata, uint64_t *ret_ticket);
void manager_wait_cancel(Manager *m, uint64_t ticket);

/* Pools: makes a group for pid in our delegated subtree, moves pid there and gives it the class (NULL: rules decide). *ret_cgroup: new string. The group is removed when it
 * is empty. */
int manager_pool_run(Manager *m, const char *pool, const char *class_name, pid_t pid, char **ret_cgroup, DiagList *list);

/* Called after each decision (for event streams); one subscriber: the API. */
void manager_set_decision_handler(Manager *m, void (*fn)(const Decision *d, void *userdata), void *userdata);
