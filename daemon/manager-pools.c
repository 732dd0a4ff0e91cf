/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pools: groups of our own, below the unit cpuclass-pools.service that systemd delegated to us. Each `cpuclassctl run --pool` gets a group
 * NAME-N there; when its last process has ended, the group is removed. */

#include "daemon/manager-internal.h"
#include "daemon/pool.h"

#define POOLS_UNIT "cpuclass-pools.service"
#define POOL_GROUPS_MAX 4096
#define POOLS_SCAN_USEC (10 * USEC_PER_SEC)

static int pools_base(const Manager *m, char **ret) {
        const UnitInfo *u = m->units ? units_get(m->units, POOLS_UNIT) : NULL;
        char *base;

        if (!u || !u->cgroup || !u->cgroup[0])
                return -ENOENT;
        base = strdup(u->cgroup);
        if (!base)
                return -ENOMEM;
        *ret = base;
        return 0;
}

static int remember(Manager *m, const char *path) {
        char *copy;

        for (size_t i = 0; i < m->n_pool_groups; i++)
                if (streq(m->pool_groups[i], path))
                        return 0;
        if (m->n_pool_groups >= POOL_GROUPS_MAX)
                return -ENOSPC;
        if (GROW_ARRAY(m->pool_groups, m->n_pool_groups, m->pool_groups_capacity) < 0)
                return -ENOMEM;
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        m->pool_groups[m->n_pool_groups++] = copy;
        return 0;
}

int pools_load(Manager *m) {
        _cleanup_free_ char *mountpoint = NULL;
        int r;

        if (!m->has_root || m->config.cgroup_dir)
                return 0;
        r = pool_init();
        if (r < 0)
                return r;
        /* libcgroup finds the hierarchy by itself: where the two disagree, pools would be made somewhere else than we look. */
        r = pool_mountpoint(&mountpoint);
        if (r < 0)
                return r;
        if (m->root.mountpoint && !streq(mountpoint, m->root.mountpoint)) {
                log_warning("libcgroup sees the unified hierarchy at %s, we at %s: pools are off", mountpoint, m->root.mountpoint);
                return -EXDEV;
        }
        m->pools_available = true;
        return 0;
}

int manager_pool_run(Manager *m, const char *pool, const char *class_name, pid_t pid, char **ret_cgroup, DiagList *list) {
        _cleanup_free_ char *base = NULL, *path = NULL;
        bool created = false;
        int r = -EEXIST;

        if (!pool_name_is_valid(pool)) {
                diag_add(list, NULL, 0, "/pool", pool, "lower-case letters, digits, '.', '_', '-'; at most 64", "not a pool name");
                return -EINVAL;
        }
        if (class_name && !policy_find_class(m->policy, class_name)) {
                diag_add(list, "request body", 0, "/class", class_name, "a class of the policy", "no such class");
                return -ENOENT;
        }
        if (pid <= 1)
                return -ESRCH;
        if (!m->pools_available) {
                diag_add(list, NULL, 0, "", NULL, NULL, "pools are not available on this host (see the journal)");
                return -ENODEV;
        }
        r = pools_base(m, &base);
        if (r < 0) {
                diag_add(list, NULL, 0, "", NULL, NULL, "%s does not run: start it with systemctl start %s", POOLS_UNIT, POOLS_UNIT);
                return -ENODEV;
        }
        r = -EEXIST;
        for (unsigned n = 1; r == -EEXIST && n <= POOL_GROUPS_MAX; n++) {
                free(TAKE_PTR(path));
                if (asprintf(&path, "%s/%s-%u", base, pool, n) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
                r = group_table_find(&m->groups, path) ? -EEXIST : pool_create_group(path + 1);
        }
        if (r < 0) {
                diag_add(list, NULL, 0, "", NULL, NULL, "the group could not be made: %s", strerror(-r));
                return r;
        }
        if (class_name) {
                Assignment a = { .kind = TARGET_CGROUP, .target = path, .class_name = (char *) class_name, .owner = (char *) "pool", .by = (char *) "pool" };

                a.created_realtime_usec = clock_realtime_usec();
                r = manager_assign(m, &a, true, &created, list);
        }
        if (r >= 0)
                r = pool_move(path + 1, pid);
        if (r < 0) {
                if (class_name)
                        (void) assignments_delete(m->assignments, TARGET_CGROUP, path);
                (void) pool_delete_group(path + 1);
                if (list->n_items == 0)
                        diag_add(list, NULL, 0, "", NULL, NULL, "process %d could not be moved: %s", (int) pid, strerror(-r));
                return r;
        }
        (void) remember(m, path);
        manager_wake(m);
        *ret_cgroup = TAKE_PTR(path);
        return 0;
}

static bool is_empty(const Manager *m, const char *path) {
        _cleanup_close_ int fd = cgroup_open(&m->root, path);
        char text[256];
        ssize_t n;

        if (fd < 0)
                return true;
        n = cgroup_read_file(fd, "cgroup.events", text, sizeof(text));
        return n < 0 || populated_parse(text, (size_t) n) == 0;
}

void pools_sweep(Manager *m) {
        _cleanup_free_ char *base = NULL, *prefix = NULL;

        uint64_t now = clock_monotonic_usec();

        if (!m->units_listed || (m->n_pool_groups == 0 && now < m->next_pools_scan_usec))
                return;
        if (now < m->next_pools_sweep_usec)
                return;
        m->next_pools_sweep_usec = now + USEC_PER_SEC / 2;
        m->next_pools_scan_usec = now + POOLS_SCAN_USEC;
        /* Groups that a former daemon made are ours too: whatever lies below the unit but its own leaf. */
        if (pools_base(m, &base) >= 0 && asprintf(&prefix, "%s/", base) >= 0) {
                for (size_t i = group_table_lower_bound(&m->groups, prefix); i < m->groups.n && startswith(m->groups.items[i]->path, prefix); i++) {
                        const char *name = m->groups.items[i]->path + strlen(prefix);

                        if (!streq(name, "holder") && !strchr(name, '/'))
                                (void) remember(m, m->groups.items[i]->path);
                }
        }
        for (size_t i = 0; i < m->n_pool_groups;) {
                char *path = m->pool_groups[i];
                int r;

                if (!is_empty(m, path)) {
                        i++;
                        continue;
                }
                r = pool_delete_group(path + 1);
                if (r < 0 && r != -ENOENT) {
                        i++;
                        continue;
                }
                if (assignments_get(m->assignments, TARGET_CGROUP, path))
                        (void) assignments_delete(m->assignments, TARGET_CGROUP, path);
                free(path);
                m->pool_groups[i] = m->pool_groups[--m->n_pool_groups];
        }
}
