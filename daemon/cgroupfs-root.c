/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finding the cgroup2 mount. mountinfo (proc_pid_mountinfo(5)) tells all: where it is, and whether a v1 hierarchy holds the cpu controller. */

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include "daemon/cgroupfs.h"

/* Undoes mountinfo's \040 escapes in place. */
static void unescape_octal(char *s) {
        char *out = s;

        while (*s) {
                if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
                        *out++ = (char) ((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
                        s += 4;
                } else
                        *out++ = *s++;
        }
        *out = 0;
}

/* Whether a comma-separated list holds a word. */
static bool option_listed(const char *options, const char *word) {
        size_t n = strlen(word);

        while (*options) {
                size_t length = strcspn(options, ",");

                if (length == n && strncmp(options, word, n) == 0)
                        return true;
                options += length;
                options += *options == ',';
        }
        return false;
}

typedef struct MountLine {
        char *root, *mountpoint, *type, *options;
} MountLine;

/* "36 35 98:0 /root /mnt rw,noatime master:1 - type source super-options"; the line is cut up. */
static bool mount_line_parse(char *line, MountLine *ret) {
        char *save = NULL, *word, *fields[6];

        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                if (!(fields[i] = strtok_r(i == 0 ? line : NULL, " \n", &save)))
                        return false;
        while ((word = strtok_r(NULL, " \n", &save)) && !streq(word, "-"))
                ;
        if (!word)
                return false;
        ret->root = fields[3];
        ret->mountpoint = fields[4];
        ret->type = strtok_r(NULL, " \n", &save);
        if (!ret->type || !strtok_r(NULL, " \n", &save))
                return false;
        ret->options = strtok_r(NULL, " \n", &save);
        return ret->options;
}

int cgroup_root_open(const char *mountinfo_path, CgroupRoot *ret) {
        _cleanup_fclose_ FILE *f = fopen(mountinfo_path ?: "/proc/self/mountinfo", "re");
        _cleanup_free_ char *line = NULL, *mountpoint = NULL;
        bool whole = false, v1_cpu = false;
        size_t size = 0;
        CgroupRoot root;
        int r;

        if (!f)
                return -errno;
        while (getline(&line, &size, f) >= 0) {
                MountLine m;

                if (!mount_line_parse(line, &m))
                        continue;
                if (streq(m.type, "cgroup") && option_listed(m.options, "cpu"))
                        v1_cpu = true;
                /* A mount of the whole hierarchy beats one of a part of it (a bind mount, another namespace's view). */
                if (!streq(m.type, "cgroup2") || (mountpoint && (whole || !streq(m.root, "/"))))
                        continue;
                whole = streq(m.root, "/");
                unescape_octal(m.mountpoint);
                r = free_and_strdup(&mountpoint, m.mountpoint);
                if (r < 0)
                        return r;
        }
        if (ferror(f))
                return -EIO;
        if (!mountpoint)
                return -ENOENT;

        r = cgroup_root_open_at(mountpoint, &root);
        if (r < 0)
                return r;
        if (!mountinfo_path) {
                struct statfs s;

                /* Something else may lie over the mount point by now. */
                if (fstatfs(root.fd, &s) < 0 || s.f_type != CGROUP2_SUPER_MAGIC) {
                        cgroup_root_close(&root);
                        return -ENOENT;
                }
        }
        root.hybrid = v1_cpu;
        *ret = root;
        return 0;
}

int cgroup_root_open_at(const char *directory, CgroupRoot *ret) {
        _cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *copy = NULL;
        char controllers[1024];
        ssize_t n;

        if (fd < 0)
                return -errno;
        copy = strdup(directory);
        if (!copy)
                return -ENOMEM;
        n = cgroup_read_file(fd, "cgroup.controllers", controllers, sizeof(controllers));
        if (n < 0 && n != -ENOENT)
                return (int) n;
        *ret = (CgroupRoot) {
                .fd = TAKE_FD(fd),
                .mountpoint = TAKE_PTR(copy),
                .has_cpu = n >= 0 && word_list_contains(controllers, (size_t) n, "cpu"),
        };
        return 0;
}

void cgroup_root_close(CgroupRoot *root) {
        if (root->fd >= 0)
                (void) close(root->fd);
        free(root->mountpoint);
        *root = (CgroupRoot) { .fd = -1 };
}
