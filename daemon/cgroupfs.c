/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opening, reading and writing in the cgroup2 tree.
 *
 * A group's path comes from users, unit names and other processes. It is resolved by the kernel below the mount's own descriptor with openat2(2)
 * (Linux 5.6): no "..", no link and no other mount can lead out of the tree, also while somebody renames what we walk over. */

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "daemon/cgroupfs.h"
#include "policies/policy.h"

/* openat2 answers EAGAIN when a rename anywhere races with a lookup that is confined. */
#define OPEN_TRIES 16

int cgroup_open_beneath(int dir_fd, const char *relative) {
        struct open_how how = {
                .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
        };

        for (unsigned i = 0; i < OPEN_TRIES; i++) {
                long fd = syscall(SYS_openat2, dir_fd, relative, &how, sizeof(how));

                if (fd >= 0)
                        return (int) fd;
                if (errno != EAGAIN && errno != EINTR)
                        return -errno;
        }
        return -EAGAIN;
}

/* The path below the root for openat2: checks what "/a/b" must look like. One form only, since the path is a group's name. */
static int relative_path(const char *path, const char **ret) {
        const char *p = path;

        if (*p != '/' || strlen(path) >= PATH_MAX)
                return -EINVAL;
        if (streq(path, "/")) {
                *ret = ".";
                return 0;
        }
        while (*p) {
                size_t n = strcspn(++p, "/");

                if (n == 0 || n > NAME_MAX || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
                        return -EINVAL;
                p += n;
        }
        *ret = path + 1;
        return 0;
}

int cgroup_open(const CgroupRoot *root, const char *path) {
        const char *relative;
        int r;

        r = relative_path(path, &relative);
        if (r < 0)
                return r;
        return cgroup_open_beneath(root->fd, relative);
}

int cgroup_inode(int dir_fd, uint64_t *ret) {
        struct stat st;

        if (fstat(dir_fd, &st) < 0)
                return -errno;
        *ret = st.st_ino;
        return 0;
}

int cgroup_open_file(int dir_fd, const char *name, int flags) {
        int fd;

        if (!*name || strchr(name, '/') || streq(name, ".") || streq(name, ".."))
                return -EINVAL;
        do
                fd = openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
        while (fd < 0 && errno == EINTR);
        return fd < 0 ? -errno : fd;
}

ssize_t cgroup_pread(int file_fd, char *buffer, size_t size) {
        ssize_t n;

        do
                n = pread(file_fd, buffer, size, 0);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        return (size_t) n >= size ? -E2BIG : n;
}

ssize_t cgroup_read_file(int dir_fd, const char *name, char *buffer, size_t size) {
        _cleanup_close_ int fd = cgroup_open_file(dir_fd, name, O_RDONLY);

        return fd < 0 ? fd : cgroup_pread(fd, buffer, size);
}

int cgroup_read_all(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_length) {
        _cleanup_close_ int fd = cgroup_open_file(dir_fd, name, O_RDONLY);
        size_t length = 0, size = MIN_OF(max, (size_t) 4095) + 1;
        _cleanup_free_ char *text = NULL;

        if (fd < 0)
                return fd;
        text = malloc(size);
        if (!text)
                return -ENOMEM;
        for (;;) {
                ssize_t n;

                n = read(fd, text + length, size - length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
                if (length > max)
                        return -E2BIG;
                /* The buffer is always larger than what it holds: room for the NUL, and one byte beyond max to see that there is more. */
                if (length == size) {
                        size_t larger = MIN_OF(size * 2, max + 1);
                        char *p = realloc(text, larger);

                        if (!p)
                                return -ENOMEM;
                        text = p;
                        size = larger;
                }
        }
        text[length] = 0;
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

int cgroup_write_file(int dir_fd, const char *name, const char *text) {
        _cleanup_close_ int fd = cgroup_open_file(dir_fd, name, O_WRONLY);
        size_t length = strlen(text);
        ssize_t n;

        if (fd < 0)
                return fd;
        do
                n = write(fd, text, length);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        return (size_t) n == length ? 0 : -EIO;
}

int cgroup_label(int dir_fd, char **ret) {
        static const char *const names[] = { "trusted.cpuclass", "user.cpuclass" };
        struct stat st;

        if (fstat(dir_fd, &st) < 0)
                return -errno;
        /* Whoever may write the directory may set user.* attributes: a user must not pick a class for himself. */
        if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
                return -ENODATA;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char value[256];
                ssize_t n;
                char *s;

                n = fgetxattr(dir_fd, names[i], value, sizeof(value) - 1);
                if (n < 0) {
                        if (errno == ENODATA || errno == EOPNOTSUPP || errno == EPERM)
                                continue;
                        return errno == ERANGE || errno == E2BIG ? -EBADMSG : -errno;
                }
                value[n] = 0;
                if (strlen(value) != (size_t) n || !policy_name_is_valid(value))
                        return -EBADMSG;
                s = strdup(value);
                if (!s)
                        return -ENOMEM;
                *ret = s;
                return 0;
        }
        return -ENODATA;
}

/* Reads a whole file of /proc that belongs to a task; -ESRCH when the task is gone. */
static int read_proc_file(pid_t pid, const char *name, char *buffer, size_t size) {
        _cleanup_close_ int fd = -1;
        char path[64];
        size_t length = 0;

        (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        for (;;) {
                ssize_t n = read(fd, buffer + length, size - 1 - length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
                if (length == size - 1)
                        return -E2BIG;
        }
        buffer[length] = 0;
        return 0;
}

int cgroup_of_pid(pid_t pid, char **ret) {
        /* Up to a dozen v1 hierarchies may stand before the line that we want, each with a path of its own. */
        const size_t size = 16 * PATH_MAX;
        _cleanup_free_ char *text = NULL;
        int r;

        if (pid <= 0)
                return -ESRCH;
        text = malloc(size);
        if (!text)
                return -ENOMEM;
        r = read_proc_file(pid, "cgroup", text, size);
        if (r < 0)
                return r;
        for (char *line = text; *line;) {
                size_t n = strcspn(line, "\n");

                if (startswith(line, "0::")) {
                        char *s = strndup(line + 3, n - 3);

                        if (!s)
                                return -ENOMEM;
                        *ret = s;
                        return 0;
                }
                line += n;
                if (*line == '\n')
                        line++;
        }
        return -ENOENT;
}
