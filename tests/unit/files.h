/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Files for unit tests: cases from the source tree, and fake trees in a temporary directory. Failures end the test. */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "policies/util.h"

/* Content of a file below tests/unit/cases; new string. */
static inline char *case_read(const char *name, size_t *ret_length) {
        const char *source = getenv("CPUCLASS_SOURCE_DIR");
        _cleanup_fclose_ FILE *f = NULL;
        char path[4096], *text;

        assert_non_null(source);
        assert_true((size_t) snprintf(path, sizeof(path), "%s/tests/unit/cases/%s", source, name) < sizeof(path));
        f = fopen(path, "re");
        if (!f)
                fail_msg("%s: %s", path, strerror(errno));
        text = malloc(65536);
        assert_non_null(text);
        *ret_length = fread(text, 1, 65535, f);
        text[*ret_length] = 0;
        return text;
}

/* A new directory to fill; removed by temporary_directory_remove(). */
static inline void temporary_directory(char path[static 64]) {
        strcpy(path, "/tmp/cpuclass-test-XXXXXX");
        assert_non_null(mkdtemp(path));
}

/* Below a descriptor, so that a tree may be deeper than a path is long. */
static inline void remove_below(int fd) {
        DIR *d = fdopendir(fd);
        struct dirent *e;

        assert_non_null(d);
        while ((e = readdir(d))) {
                if (streq(e->d_name, ".") || streq(e->d_name, ".."))
                        continue;
                if (unlinkat(fd, e->d_name, 0) < 0) {
                        int child = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                        assert_true(child >= 0);
                        remove_below(child);
                        assert_int_equal(unlinkat(fd, e->d_name, AT_REMOVEDIR), 0);
                }
        }
        closedir(d);
}

static inline void temporary_directory_remove(const char *path) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(fd >= 0);
        remove_below(fd);
        assert_int_equal(rmdir(path), 0);
}

/* Makes directory/name with the directories before it; text NULL makes a directory. */
static inline void put_file(const char *directory, const char *name, const char *text) {
        char path[8192];

        assert_true((size_t) snprintf(path, sizeof(path), "%s/%s", directory, name) < sizeof(path));
        for (char *p = path + strlen(directory) + 1; (p = strchr(p, '/')); p++) {
                *p = 0;
                assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
                *p = '/';
        }
        if (!text) {
                assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        } else {
                int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

                assert_true(fd >= 0);
                assert_int_equal(write(fd, text, strlen(text)), strlen(text));
                assert_int_equal(close(fd), 0);
        }
}
