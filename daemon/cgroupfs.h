/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The cgroup2 tree as descriptors: everything is opened below the mount's own descriptor, never through a path that
 * somebody else could bend (openat2 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV, openat2(2)). Linux 5.6 or later is required:
 * without the call, opening answers -ENOSYS. */

#include <sys/types.h>

#include "daemon/cgtext.h"

typedef struct CgroupRoot {
        int fd;                /* directory descriptor of the mount, O_PATH-free */
        char *mountpoint;
        bool has_cpu;          /* "cpu" in the root's cgroup.controllers */
        bool hybrid;           /* the cpu controller is bound to a v1 hierarchy */
} CgroupRoot;

/* Finds the cgroup2 mount (through mountinfo_path, NULL: /proc/self/mountinfo), opens it and probes the cpu controller.
 * A directory with a fake tree can be opened for unit tests with cgroup_root_open_at(). Returns 0, -ENOENT without such a mount, or
 * another negative errno. */
int cgroup_root_open(const char *mountinfo_path, CgroupRoot *ret);
/* Opens a directory as if it were the mount (unit tests, fuzzing). */
int cgroup_root_open_at(const char *directory, CgroupRoot *ret);
void cgroup_root_close(CgroupRoot *root);

/* Opens a group's directory. path is "/" or "/a/b" as in /proc/PID/cgroup. Returns a descriptor (O_DIRECTORY|O_CLOEXEC)
 * or -ENOENT, -EINVAL (not absolute, "." or "..", an empty component, a slash at the end, too long), -ELOOP (a link), -EXDEV (something is mounted
 * there), another negative errno. */
int cgroup_open(const CgroupRoot *root, const char *path);
/* The same for a relative path below an open group's directory, which is not checked beforehand: the kernel confines it. */
int cgroup_open_beneath(int dir_fd, const char *relative);
/* Inode of the group's directory: its identity while it lives. */
int cgroup_inode(int dir_fd, uint64_t *ret);

/* Opens one file of a group; flags O_RDONLY or O_RDWR or O_WRONLY. Regular file names only (no slash). */
int cgroup_open_file(int dir_fd, const char *name, int flags);
/* Reads a whole small file with one pread from offset 0. Returns bytes read (< size), -E2BIG when it did not fit, or a
 * negative errno. A removed group answers -ENODEV. */
ssize_t cgroup_pread(int file_fd, char *buffer, size_t size);
/* Open, read, close. */
ssize_t cgroup_read_file(int dir_fd, const char *name, char *buffer, size_t size);
/* Reads a file of any length (cgroup.threads of a big service). *ret is a new string to free, NUL-terminated; at most max
 * bytes (-E2BIG beyond). */
int cgroup_read_all(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_length);
/* Writes text with one write call. Returns 0 or the kernel's refusal as negative errno, -EIO for a short write. */
int cgroup_write_file(int dir_fd, const char *name, const char *text);

/* Walks the tree from path on, which comes first itself, parents before children. fn gets the path, an open directory descriptor (borrowed) and its
 * inode; returns < 0 to end with that error, 1 to skip what is below, 0 to go on. What lies deeper than CGROUP_WALK_DEPTH levels or has a path of
 * PATH_MAX bytes is not visited; groups that vanish, links, mounts and what may not be opened are skipped silently. Returns 0, -ENOENT when path itself is
 * not there, fn's error, or -EMFILE, -ENFILE, -ENOMEM. Holds at most one descriptor a level. */
#define CGROUP_WALK_DEPTH 64
typedef int (*CgroupWalkFn)(const char *path, int dir_fd, uint64_t inode, void *userdata);
int cgroup_walk(const CgroupRoot *root, const char *path, CgroupWalkFn fn, void *userdata);

/* The extended attribute user.cpuclass of a group's directory (also trusted.cpuclass), only if root owns the directory. Returns a new string in
 * *ret, -ENODATA when there is none (or somebody other than root may write the directory), -EBADMSG for bytes that can't be a class name. The trusted one,
 * which only CAP_SYS_ADMIN can read and set, goes first. */
int cgroup_label(int dir_fd, char **ret);

/* Cgroup path (below this mount) of a pid from /proc/PID/cgroup, "0::" line; -ESRCH when gone, -ENOENT without such a line. The kernel appends " (deleted)"
 * to a removed group's path (cgroup_path, kernel/cgroup/cgroup.c proc_cgroup_show), which a live group's name may hold as well: only opening tells. */
int cgroup_of_pid(pid_t pid, char **ret);
