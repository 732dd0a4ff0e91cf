/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The drop-ins that systemd writes for a run-time property: reading them, knowing ours, and taking ours away again.
 *
 * systemd 252 (unit_write_setting() in src/core/unit.c, drop_in_file() in src/shared/dropin.c) writes DIR/UNIT.d/50-PROPERTY.conf with a comment, the section and one
 * assignment, through a temporary file and a rename. Setting a property back to its old value leaves the file, which then hides the owner's later edits; so undo
 * works on the file and a reload makes it true. */

#include "daemon/units-internal.h"

#include <fcntl.h>
#include <sys/stat.h>

#define DROPIN_MAX_BYTES (UINT64_C(64) << 10)

static const char *const properties[] = { "CPUQuota", "CPUQuotaPeriodSec", "CPUWeight" };

static bool property_is_known(const char *property, size_t length) {
        for (size_t i = 0; i < ELEMENTSOF(properties); i++)
                if (strlen(properties[i]) == length && strncmp(properties[i], property, length) == 0)
                        return true;
        return false;
}

int dropin_read(const char *root, const char *id, const char *property, char **ret_path, char **ret_content) {
        static const char *const dirs[] = { RUNTIME_CONTROL, RUNTIME_TRANSIENT };

        if (!unit_type_of(id) || !property_is_known(property, strlen(property)))
                return -EINVAL;
        for (size_t i = 0; i < ELEMENTSOF(dirs); i++) {
                _cleanup_free_ char *path = NULL, *content = NULL;
                int r;

                if (asprintf(&path, "%s%s/%s.d/50-%s.conf", root, dirs[i], id, property) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
                r = unit_file_read(path, DROPIN_MAX_BYTES, &content, NULL);
                if (r == -ENOENT)
                        continue;
                if (r < 0)
                        return r;
                if (ret_path) {
                        char *shown = strdup(path + strlen(root));

                        if (!shown)
                                return -ENOMEM;
                        *ret_path = shown;
                }
                if (ret_content)
                        *ret_content = TAKE_PTR(content);
                return 0;
        }
        return -ENOENT;
}

int units_read_dropin(const char *id, const char *property, char **ret_path, char **ret_content) {
        return dropin_read("", id, property, ret_path, ret_content);
}

bool units_dropin_says(const char *id, const char *property, const char *content, uint64_t value) {
        const UnitType *type = unit_type_of(id);
        UnitWords words;
        bool same = false;

        if (!type)
                return false;
        unit_words_init(&words);
        if (unit_words_parse(&words, content, strlen(content), type->section) >= 0 && words.n_assignments == 1) {
                if (streq(property, "CPUQuota"))
                        /* systemd truncates to whole percents (bus_cgroup_set_property(), src/core/dbus-cgroup.c). */
                        same = words.says_quota && words.quota_per_sec_usec == (value == USEC_INFINITY ? value : value / 10000 * 10000);
                else if (streq(property, "CPUQuotaPeriodSec"))
                        same = words.says_period && words.quota_period_usec == value;
                else if (streq(property, "CPUWeight"))
                        same = words.says_weight && words.weight == value;
        }
        unit_words_clear(&words);
        return same;
}

/* Takes DIR/UNIT.d/50-PROPERTY.conf apart: the path comes from a state file, and we are going to remove what it names. Returns the length of the directory part. */
static int check_path(const char *path, size_t *ret_directory) {
        const char *unit, *slash, *file;
        char id[256];
        size_t n;

        unit = startswith(path, RUNTIME_CONTROL "/") ? path + strlen(RUNTIME_CONTROL "/") :
               startswith(path, RUNTIME_TRANSIENT "/") ? path + strlen(RUNTIME_TRANSIENT "/") : NULL;
        if (!unit)
                return -EINVAL;
        slash = strchr(unit, '/');
        if (!slash)
                return -EINVAL;
        n = (size_t) (slash - unit);
        if (n < 3 || n - 2 >= sizeof(id) || strncmp(slash - 2, ".d", 2) != 0)
                return -EINVAL;
        memcpy(id, unit, n - 2);
        id[n - 2] = 0;
        file = slash + 1;
        if (!unit_type_of(id) || !startswith(file, "50-") || !endswith(file, ".conf") || strlen(file) < 8 ||
            !property_is_known(file + 3, strlen(file) - 8))
                return -EINVAL;
        *ret_directory = (size_t) (slash - path);
        return 0;
}

/* Replaces the file by this content, as systemd would: whole, world-readable. */
static int replace_file(int dir_fd, const char *name, const char *content) {
        _cleanup_free_ char *temporary = NULL;
        _cleanup_close_ int fd = -1;
        size_t n = strlen(content), done = 0;
        int r = 0;

        if (asprintf(&temporary, ".#%s.cpuclass", name) < 0) {
                temporary = NULL;
                return -ENOMEM;
        }
        (void) unlinkat(dir_fd, temporary, 0);
        fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        if (fchmod(fd, 0644) < 0)
                r = -errno;
        while (r == 0 && done < n) {
                ssize_t k = write(fd, content + done, n - done);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        r = k < 0 ? -errno : -EIO;
                else
                        done += (size_t) k;
        }
        if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(dir_fd, temporary, 0);
        return r;
}

int dropin_undo(const char *root, const char *path, const char *written, const char *original) {
        _cleanup_free_ char *directory = NULL, *full = NULL, *content = NULL;
        _cleanup_close_ int dir_fd = -1;
        size_t directory_length, length = 0;
        const char *file;
        int r;

        if (!path)
                return -EINVAL;
        r = check_path(path, &directory_length);
        if (r < 0)
                return r;
        if (!written)
                return 0;
        if (asprintf(&full, "%s%s", root, path) < 0) {
                full = NULL;
                return -ENOMEM;
        }
        if (asprintf(&directory, "%s%.*s", root, (int) directory_length, path) < 0) {
                directory = NULL;
                return -ENOMEM;
        }
        file = path + directory_length + 1;

        r = unit_file_read(full, DROPIN_MAX_BYTES, &content, &length);
        if (r == -ENOENT)
                return original ? 0 : 2;
        if (r < 0)
                return r == -ENOMEM ? r : 0; /* whatever it is, it is not what systemd wrote for us */
        if (strlen(content) != length || !streq(content, written))
                return original && streq(content, original) ? 2 : 0;

        dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir_fd < 0)
                return errno == ENOENT ? 2 : -errno;
        if (original) {
                r = replace_file(dir_fd, file, original);
                return r < 0 ? r : 1;
        }
        if (unlinkat(dir_fd, file, 0) < 0)
                return errno == ENOENT ? 2 : -errno;
        /* The directory came with the first drop-in; it goes with the last. */
        (void) rmdir(directory);
        return 1;
}

int units_undo_dropin(const char *path, const char *written, const char *original) {
        return dropin_undo("", path, written, original);
}
