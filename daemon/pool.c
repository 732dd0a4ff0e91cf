/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life of our own groups, through libcgroup 2.0.
 *
 * The library is told as little as possible, because of what it does by itself. Creating a group with a controller switches that controller on in every
 * group from the mount down to the new group's parent: so it is given one that is on down to the deepest group that exists already, and nothing changes for
 * anybody above. Deleting moves the processes to the parent: so only empty groups are deleted, one at a time, children first. Its error codes lose the
 * errno: so the kernel is asked afterwards. */

#include <fcntl.h>
#include <libcgroup.h>
#include <limits.h>
#include <sys/stat.h>

#include "daemon/cgroupfs.h"
#include "daemon/pool.h"
#include "policies/policy.h"

#define POOL_NAME_MAX 64

static void free_cgroup(struct cgroup **c) {
        if (*c)
                cgroup_free(c);
}

/* Messages would go to standard output; what matters is in the results. */
static void no_messages(void *userdata, int level, const char *format, va_list ap) {
}

static int to_errno(int e) {
        switch (e) {
        case 0:
                return 0;
        case ECGROUPNOTMOUNTED:
        case ECGROUPSUBSYSNOTMOUNTED:
        case ECGROUPNOTINITIALIZED:
                return -ENOSYS;
        case ECGROUPNOTEXIST:
                return -ENOENT;
        case ECGNONEMPTY:
                return -EBUSY;
        case ECGINVAL:
                return -EINVAL;
        case ECGROUPNOTOWNER:
                return -EPERM;
        case ECGROUPNOTALLOWED:
                return -EACCES;
        case ECGOTHER:
                return cgroup_get_last_errno() > 0 ? -cgroup_get_last_errno() : -EIO;
        default:
                return -EIO;
        }
}

bool pool_name_is_valid(const char *name) {
        size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-");

        return n >= 1 && n <= POOL_NAME_MAX && !name[n] && *name != '.' && *name != '_' && *name != '-';
}

int pool_init(void) {
        static bool initialized;
        int r;

        if (initialized)
                return 0;
        cgroup_set_logger(no_messages, CGROUP_LOG_ERROR, NULL);
        r = cgroup_init();
        if (r != 0)
                return to_errno(r);
        initialized = true;
        return 0;
}

/* Where the library has this controller, if that is the unified hierarchy. */
static bool controller_is_at(const char *controller, const char *mountpoint) {
        _cleanup_free_ char *where = NULL;

        return cgroup_get_subsys_mount_point(controller, &where) == 0 && streq(where, mountpoint);
}

static ssize_t read_controllers(int dir_fd, char *buffer, size_t size) {
        return cgroup_read_file(dir_fd, "cgroup.controllers", buffer, size);
}

int pool_mountpoint(char **ret) {
        _cleanup_(cgroup_root_close) CgroupRoot root = { .fd = -1 };
        char text[1024], *save = NULL;
        ssize_t n;
        int r;

        r = pool_init();
        if (r < 0)
                return r;
        r = cgroup_root_open(NULL, &root);
        if (r < 0)
                return r == -ENOENT ? -ENOSYS : r;
        n = read_controllers(root.fd, text, sizeof(text));
        if (n < 0)
                return (int) n;
        text[n] = 0;
        /* It knows mounts by their controllers. */
        for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
                char *where;

                r = cgroup_get_subsys_mount_point(word, &where);
                if (r == 0) {
                        *ret = where;
                        return 0;
                }
        }
        return -ENOSYS;
}

/* "a/b" as "/a/b" for cgroup_open(), which checks it. */
static int absolute(const char *path, char ret[static PATH_MAX]) {
        if (!*path || *path == '/' || strlen(path) + 2 > PATH_MAX)
                return -EINVAL;
        ret[0] = '/';
        strcpy(ret + 1, path);
        return 0;
}

/* Opens the deepest existing group of a path. */
static int open_deepest(const CgroupRoot *root, const char *path, bool *ret_is_root) {
        char level[PATH_MAX];

        (void) snprintf(level, sizeof(level), "%s", path);
        for (;;) {
                int fd = cgroup_open(root, level);
                bool is_root = streq(level, "/");
                char *slash;

                if (fd >= 0)
                        *ret_is_root = is_root;
                if (fd != -ENOENT || is_root)
                        return fd;
                slash = strrchr(level, '/');
                slash[slash == level] = 0;
        }
}

/* Groups below one that has processes of its own would come out as "domain invalid" and take no process (cgroup-v2.rst, "Threads"). */
static int check_no_processes(int dir_fd) {
        char text[64];
        ssize_t n = cgroup_read_file(dir_fd, "cgroup.procs", text, sizeof(text));

        if (n > 0 || n == -E2BIG || n == -EOPNOTSUPP)
                return -EBUSY;
        return (int) n;
}

/* A controller of those that are on in a group; cpu if possible, since that is what pools are for. */
static int choose_controller(const CgroupRoot *root, int dir_fd, const char **ret) {
        static const char *const controllers[] = { "cpu", "pids", "memory", "io", "cpuset", "hugetlb", "rdma", "misc" };
        char text[1024];
        ssize_t n;

        n = read_controllers(dir_fd, text, sizeof(text));
        if (n < 0)
                return (int) n;
        for (size_t i = 0; i < ELEMENTSOF(controllers); i++)
                if (word_list_contains(text, (size_t) n, controllers[i]) && controller_is_at(controllers[i], root->mountpoint)) {
                        *ret = controllers[i];
                        return 0;
                }
        return -EOPNOTSUPP;
}

/* The library's object for a path with one controller, one that is on in the group dir_fd. To create, it is switched on below that; else it is only how the
 * library finds the hierarchy, and the root's will do. */
static int make_handle(const CgroupRoot *root, const char *path, int dir_fd, struct cgroup **ret) {
        _cleanup_(free_cgroup) struct cgroup *c = NULL;
        const char *controller;
        int r;

        r = choose_controller(root, dir_fd, &controller);
        if (r < 0)
                return r;
        c = cgroup_new_cgroup(path + 1);
        if (!c || !cgroup_add_controller(c, controller))
                return -ENOMEM;
        *ret = TAKE_PTR(c);
        return 0;
}

static int prepare(const char *path, char absolute_path[static PATH_MAX], CgroupRoot *ret_root) {
        int r;

        r = absolute(path, absolute_path);
        if (r < 0)
                return r;
        r = pool_init();
        if (r < 0)
                return r;
        r = cgroup_root_open(NULL, ret_root);
        return r == -ENOENT ? -ENOSYS : r;
}

int pool_create_group(const char *path) {
        _cleanup_(cgroup_root_close) CgroupRoot root = { .fd = -1 };
        _cleanup_(free_cgroup) struct cgroup *c = NULL;
        _cleanup_close_ int fd = -1, above = -1;
        bool is_root = false;
        char full[PATH_MAX];
        int r, e;

        r = prepare(path, full, &root);
        if (r < 0)
                return r;
        fd = cgroup_open(&root, full);
        if (fd >= 0)
                return -EEXIST;
        if (fd != -ENOENT)
                return fd;
        above = open_deepest(&root, full, &is_root);
        if (above < 0)
                return above;
        if (!is_root) {
                r = check_no_processes(above);
                if (r < 0)
                        return r;
        }
        r = make_handle(&root, full, above, &c);
        if (r < 0)
                return r;
        errno = 0;
        e = cgroup_create_cgroup(c, 1);
        if (e == 0) {
                fd = cgroup_open(&root, full);
                return fd < 0 ? fd : 0;
        }
        r = to_errno(e);
        return r == -EIO && errno > 0 ? -errno : r;
}

int pool_move(const char *path, pid_t pid) {
        _cleanup_(cgroup_root_close) CgroupRoot root = { .fd = -1 };
        _cleanup_(free_cgroup) struct cgroup *c = NULL;
        _cleanup_free_ char *where = NULL;
        _cleanup_close_ int fd = -1;
        char full[PATH_MAX];
        int r, e;

        /* 0 would be ourselves. */
        if (pid <= 0)
                return -ESRCH;
        r = prepare(path, full, &root);
        if (r < 0)
                return r;
        fd = cgroup_open(&root, full);
        if (fd < 0)
                return fd;
        r = make_handle(&root, full, root.fd, &c);
        if (r < 0)
                return r;
        e = cgroup_attach_task_pid(c, pid);
        r = cgroup_of_pid(pid, &where);
        if (r < 0)
                return r;
        if (streq(where, full))
                return 0;
        return e == 0 ? -EIO : to_errno(e);
}

/* Paths below a group, in the order of the walk: parents first. */
typedef struct PathList {
        char **paths;
        size_t n, capacity;
} PathList;

static void path_list_free(PathList *l) {
        for (size_t i = 0; i < l->n; i++)
                free(l->paths[i]);
        free(l->paths);
}

static int path_list_add(const char *path, int dir_fd, uint64_t inode, void *userdata) {
        PathList *l = userdata;
        char *copy;

        if (GROW_ARRAY(l->paths, l->n, l->capacity) < 0)
                return -ENOMEM;
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        l->paths[l->n++] = copy;
        return 0;
}

int pool_delete_group(const char *path) {
        _cleanup_(cgroup_root_close) CgroupRoot root = { .fd = -1 };
        _cleanup_(path_list_free) PathList list = {};
        char full[PATH_MAX], text[256];
        int r;

        r = prepare(path, full, &root);
        if (r < 0)
                return r;
        {
                _cleanup_close_ int fd = cgroup_open(&root, full);
                ssize_t n;

                if (fd < 0)
                        return fd;
                /* With a process anywhere below nothing is deleted, also not the empty part. */
                n = cgroup_read_file(fd, "cgroup.events", text, sizeof(text));
                if (n < 0)
                        return n == -ENODEV ? -ENOENT : (int) n;
                if (populated_parse(text, (size_t) n) != 0)
                        return -EBUSY;
        }
        r = cgroup_walk(&root, full, path_list_add, &list);
        if (r < 0)
                return r;
        for (size_t i = list.n; i-- > 0;) {
                _cleanup_(free_cgroup) struct cgroup *c = NULL;

                r = make_handle(&root, list.paths[i], root.fd, &c);
                if (r < 0)
                        return r;
                r = to_errno(cgroup_delete_cgroup_ext(c, CGFLAG_DELETE_EMPTY_ONLY));
                if (r < 0)
                        return r;
        }
        return 0;
}
