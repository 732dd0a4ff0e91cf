/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cgroup tree on directories: what may be opened and what may not, files of every size, the walk with its bounds, labels, mounts. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "daemon/cgroupfs.h"
#include "tests/unit/files.h"

static size_t open_descriptors(void) {
        DIR *d = opendir("/proc/self/fd");
        size_t n = 0;

        assert_non_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

typedef struct Tree {
        char directory[64];
        CgroupRoot root;
        size_t n_descriptors;
} Tree;

static int setup(void **state) {
        Tree *t = calloc(1, sizeof(*t));

        assert_non_null(t);
        temporary_directory(t->directory);
        put_file(t->directory, "cgroup.controllers", "cpuset cpu io\n");
        t->n_descriptors = open_descriptors();
        assert_int_equal(cgroup_root_open_at(t->directory, &t->root), 0);
        *state = t;
        return 0;
}

/* Nothing may be left open by a test. */
static int teardown(void **state) {
        Tree *t = *state;

        cgroup_root_close(&t->root);
        assert_int_equal(open_descriptors(), t->n_descriptors);
        temporary_directory_remove(t->directory);
        free(t);
        return 0;
}

static void test_root(void **state) {
        Tree *t = *state;
        CgroupRoot root;

        assert_true(t->root.has_cpu);
        assert_string_equal(t->root.mountpoint, t->directory);
        put_file(t->directory, "other/cgroup.controllers", "cpuset cpuacct\n");
        {
                char path[128];

                (void) snprintf(path, sizeof(path), "%s/other", t->directory);
                assert_int_equal(cgroup_root_open_at(path, &root), 0);
                assert_false(root.has_cpu);
                cgroup_root_close(&root);
                assert_int_equal(root.fd, -1);
                cgroup_root_close(&root); /* again is fine */
                (void) snprintf(path, sizeof(path), "%s/none", t->directory);
                assert_int_equal(cgroup_root_open_at(path, &root), -ENOENT);
        }
}

static void write_mountinfo(Tree *t, const char *format, char path[static 128]) {
        char text[4096];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void) snprintf(text, sizeof(text), format, t->directory, t->directory);
#pragma GCC diagnostic pop
        put_file(t->directory, "mountinfo", text);
        (void) snprintf(path, 128, "%s/mountinfo", t->directory);
}

static void test_mountinfo(void **state) {
        static const char *const kernels[] = { "6.1-stock", "6.12-stock", "6.12-sched-core" };
        Tree *t = *state;
        char path[128];
        CgroupRoot root;

        /* A blank in the mount point is \040; the second mount shows only a part; optional fields come and go. */
        put_file(t->directory, "with blank/cgroup.controllers", "cpu\n");
        write_mountinfo(t, "22 1 8:1 / / rw - ext4 /dev/sda1 rw\nshort line\n39 22 0:35 /part %s rw - cgroup2 cgroup2 rw\n"
                           "40 22 0:35 / %s/with\\040blank rw,nosuid shared:13 master:2 - cgroup2 cgroup2 rw,nsdelegate\n", path);
        assert_int_equal(cgroup_root_open(path, &root), 0);
        assert_true(endswith(root.mountpoint, "/with blank"));
        assert_true(root.has_cpu);
        assert_false(root.hybrid);
        cgroup_root_close(&root);

        /* cpu bound to v1; "cpuacct" and "cpuset" alone are not it. */
        write_mountinfo(t, "39 22 0:35 / /x rw - cgroup cgroup rw,cpu,cpuacct\n40 22 0:35 / %s rw - cgroup2 cgroup2 rw\n", path);
        assert_int_equal(cgroup_root_open(path, &root), 0);
        assert_true(root.hybrid);
        cgroup_root_close(&root);
        write_mountinfo(t, "39 22 0:35 / /x rw - cgroup cgroup rw,cpuacct\n38 22 0:35 / /y rw - cgroup cgroup rw,cpuset\n"
                           "40 22 0:35 / %s rw - cgroup2 cgroup2 rw\n", path);
        assert_int_equal(cgroup_root_open(path, &root), 0);
        assert_false(root.hybrid);
        cgroup_root_close(&root);

        write_mountinfo(t, "39 22 0:35 / %s rw - cgroup cgroup rw,cpu\n", path);
        assert_int_equal(cgroup_root_open(path, &root), -ENOENT);
        write_mountinfo(t, "40 22 0:35 / %s/nowhere rw - cgroup2 cgroup2 rw\n", path);
        assert_int_equal(cgroup_root_open(path, &root), -ENOENT);
        assert_int_equal(cgroup_root_open("/does/not/exist", &root), -ENOENT);

        /* Real ones, moved to our directory. */
        for (size_t i = 0; i < ELEMENTSOF(kernels) + 1; i++) {
                bool hybrid = i == ELEMENTSOF(kernels);
                _cleanup_free_ char *text = NULL;
                const char *place = hybrid ? " /sys/fs/cgroup/unified " : " /sys/fs/cgroup ";
                char name[128], moved[8192], *p;
                size_t n;

                (void) snprintf(name, sizeof(name), "kernel-text/%s/mountinfo", hybrid ? "6.18-hybrid" : kernels[i]);
                text = case_read(name, &n);
                p = strstr(text, place);
                assert_non_null(p);
                *p = 0;
                (void) snprintf(moved, sizeof(moved), "%s %s %s", text, t->directory, p + strlen(place));
                put_file(t->directory, "mountinfo", moved);
                (void) snprintf(path, sizeof(path), "%s/mountinfo", t->directory);
                assert_int_equal(cgroup_root_open(path, &root), 0);
                assert_int_equal(root.hybrid, hybrid);
                assert_string_equal(root.mountpoint, t->directory);
                cgroup_root_close(&root);
        }
}

static void test_open(void **state) {
        static const char *const names[] = {
                "a.slice/b\\x2dc.service", "a.slice/100%s%n.scope", "a.slice/two words", "a.slice/x@y.service", "a.slice/\"quoted'", "a.slice/\033[31m", "a.slice/\xc3\xa4",
                "a.slice/..x", "a.slice/.hidden", "a.slice/...",
        };
        Tree *t = *state;
        char *deep, path[256];
        int fd;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                uint64_t inode = 0;
                struct stat st;

                put_file(t->directory, names[i], NULL);
                (void) snprintf(path, sizeof(path), "/%s", names[i]);
                fd = cgroup_open(&t->root, path);
                assert_true(fd >= 0);
                assert_int_equal(cgroup_inode(fd, &inode), 0);
                assert_int_equal(fstatat(t->root.fd, names[i], &st, 0), 0);
                assert_int_equal(inode, st.st_ino);
                assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
                close(fd);
        }
        fd = cgroup_open(&t->root, "/");
        assert_true(fd >= 0);
        close(fd);

        /* Not as the kernel writes it. */
        {
                static const char *const wrong[] = { "", "a.slice", "//", "/a.slice/", "//a.slice", "/a.slice//x", "/.", "/..", "/a.slice/..", "/../etc", "/a.slice/./x", "./a" };

                for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                        assert_int_equal(cgroup_open(&t->root, wrong[i]), -EINVAL);
        }
        deep = malloc(2 * PATH_MAX);
        assert_non_null(deep);
        memset(deep, 'x', 2 * PATH_MAX);
        deep[0] = '/';
        deep[NAME_MAX + 2] = 0;
        assert_int_equal(cgroup_open(&t->root, deep), -EINVAL);
        for (size_t i = 0; i < 2 * PATH_MAX; i += 100)
                deep[i] = '/';
        deep[NAME_MAX + 2] = 'x';
        deep[2 * PATH_MAX - 1] = 0;
        assert_int_equal(cgroup_open(&t->root, deep), -EINVAL);
        free(deep);

        /* Links lead nowhere, neither out of the tree nor within. */
        assert_int_equal(symlinkat("a.slice", t->root.fd, "link"), 0);
        assert_int_equal(symlinkat("/", t->root.fd, "out"), 0);
        assert_int_equal(cgroup_open(&t->root, "/link"), -ELOOP);
        assert_int_equal(cgroup_open(&t->root, "/link/..x"), -ELOOP);
        assert_int_equal(cgroup_open(&t->root, "/out/etc"), -ELOOP);
        assert_int_equal(cgroup_open(&t->root, "/gone"), -ENOENT);
        assert_int_equal(cgroup_open(&t->root, "/cgroup.controllers"), -ENOTDIR);
        assert_int_equal(cgroup_open_beneath(t->root.fd, ".."), -EXDEV);
        assert_int_equal(cgroup_open_beneath(t->root.fd, "/etc"), -EXDEV);
}

static void test_files(void **state) {
        Tree *t = *state;
        char buffer[16], *text, *big;
        size_t length;
        int fd;

        put_file(t->directory, "ten", "0123456789");
        put_file(t->directory, "empty", "");
        assert_int_equal(cgroup_read_file(t->root.fd, "ten", buffer, sizeof(buffer)), 10);
        assert_memory_equal(buffer, "0123456789", 10);
        assert_int_equal(cgroup_read_file(t->root.fd, "ten", buffer, 11), 10);
        assert_int_equal(cgroup_read_file(t->root.fd, "ten", buffer, 10), -E2BIG);
        assert_int_equal(cgroup_read_file(t->root.fd, "empty", buffer, sizeof(buffer)), 0);
        assert_int_equal(cgroup_read_file(t->root.fd, "none", buffer, sizeof(buffer)), -ENOENT);
        assert_int_equal(cgroup_read_file(t->root.fd, "../x", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(cgroup_read_file(t->root.fd, "", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(cgroup_read_file(t->root.fd, "..", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(symlinkat("ten", t->root.fd, "link"), 0);
        assert_int_equal(cgroup_read_file(t->root.fd, "link", buffer, sizeof(buffer)), -ELOOP);

        /* Again and again from the start of one descriptor. */
        fd = cgroup_open_file(t->root.fd, "ten", O_RDONLY);
        assert_true(fd >= 0);
        assert_int_equal(cgroup_pread(fd, buffer, sizeof(buffer)), 10);
        put_file(t->directory, "ten", "abc");
        assert_int_equal(cgroup_pread(fd, buffer, sizeof(buffer)), 3);
        close(fd);

        put_file(t->directory, "max", "old value\n");
        assert_int_equal(cgroup_write_file(t->root.fd, "max", "new"), 0);
        assert_int_equal(cgroup_read_file(t->root.fd, "max", buffer, sizeof(buffer)), 10);
        assert_memory_equal(buffer, "new", 3);
        assert_int_equal(cgroup_write_file(t->root.fd, "none", "x"), -ENOENT);
        assert_int_equal(faccessat(t->root.fd, "none", F_OK, 0), -1);
        assert_int_equal(cgroup_write_file(t->root.fd, "a/b", "x"), -EINVAL);

        /* Sizes around the buffer's steps and around the limit. */
        big = malloc(40001);
        assert_non_null(big);
        memset(big, '7', 40000);
        for (size_t n = 0; n <= 40000; n = n < 4090 ? n + 1363 : n < 4100 ? n + 1 : n + 5983) {
                big[n] = 0;
                put_file(t->directory, "big", big);
                big[n] = '7';
                assert_int_equal(cgroup_read_all(t->root.fd, "big", 40000, &text, &length), 0);
                assert_int_equal(length, n);
                assert_int_equal(strlen(text), n);
                free(text);
                assert_int_equal(cgroup_read_all(t->root.fd, "big", n, &text, &length), 0);
                assert_int_equal(length, n);
                free(text);
                if (n > 0) {
                        text = (char *) "untouched";
                        assert_int_equal(cgroup_read_all(t->root.fd, "big", n - 1, &text, &length), -E2BIG);
                        assert_string_equal(text, "untouched");
                }
        }
        free(big);
        assert_int_equal(cgroup_read_all(t->root.fd, "none", 10, &text, &length), -ENOENT);
}

/* ---- the walk ---- */

typedef struct Seen {
        char *paths[256];
        size_t n, most_descriptors;
        const char *skip, *stop;
        Tree *tree;
        const char *remove_at, *removed;
} Seen;

static int see(const char *path, int dir_fd, uint64_t inode, void *userdata) {
        Seen *s = userdata;
        uint64_t again;
        size_t n = open_descriptors();

        assert_true(s->n < ELEMENTSOF(s->paths));
        assert_int_equal(cgroup_inode(dir_fd, &again), 0);
        assert_int_equal(inode, again);
        s->paths[s->n++] = strdup(path);
        s->most_descriptors = MAX_OF(s->most_descriptors, n);
        if (s->remove_at && streq(path, s->remove_at))
                (void) unlinkat(s->tree->root.fd, s->removed, AT_REMOVEDIR);
        if (s->stop && streq(path, s->stop))
                return -ECANCELED;
        return s->skip && streq(path, s->skip) ? 1 : 0;
}

static bool seen(const Seen *s, const char *path) {
        for (size_t i = 0; i < s->n; i++)
                if (streq(s->paths[i], path))
                        return true;
        return false;
}

static void seen_clear(Seen *s) {
        for (size_t i = 0; i < s->n; i++)
                free(s->paths[i]);
        *s = (Seen) {};
}

static void test_walk(void **state) {
        Tree *t = *state;
        Seen s = {};
        size_t before;

        put_file(t->directory, "a/b/c/cpu.stat", "x");
        put_file(t->directory, "a/b2/cpu.stat", "x");
        put_file(t->directory, "z/cpu.stat", "x");
        assert_int_equal(symlinkat("a", t->root.fd, "link"), 0);
        before = open_descriptors();
        assert_int_equal(cgroup_walk(&t->root, "/", see, &s), 0);
        assert_int_equal(open_descriptors(), before);
        assert_int_equal(s.n, 6);
        assert_string_equal(s.paths[0], "/");
        assert_true(seen(&s, "/a") && seen(&s, "/a/b") && seen(&s, "/a/b/c") && seen(&s, "/a/b2") && seen(&s, "/z"));
        /* Parents first. */
        for (size_t i = 1; i < s.n; i++) {
                char parent[PATH_MAX];
                bool found = false;

                strcpy(parent, s.paths[i]);
                *strrchr(parent, '/') = 0;
                for (size_t j = 0; j < i; j++)
                        found |= streq(s.paths[j], *parent ? parent : "/");
                assert_true(found);
        }
        seen_clear(&s);

        assert_int_equal(cgroup_walk(&t->root, "/a", see, &s), 0);
        assert_int_equal(s.n, 4);
        assert_string_equal(s.paths[0], "/a");
        seen_clear(&s);
        s.skip = "/a/b";
        assert_int_equal(cgroup_walk(&t->root, "/a", see, &s), 0);
        assert_int_equal(s.n, 3);
        assert_false(seen(&s, "/a/b/c"));
        seen_clear(&s);
        s.skip = "/a";
        assert_int_equal(cgroup_walk(&t->root, "/a", see, &s), 0);
        assert_int_equal(s.n, 1);
        seen_clear(&s);
        s.stop = "/a/b";
        assert_int_equal(cgroup_walk(&t->root, "/", see, &s), -ECANCELED);
        assert_false(seen(&s, "/a/b/c"));
        assert_int_equal(open_descriptors(), before);
        seen_clear(&s);

        assert_int_equal(cgroup_walk(&t->root, "/none", see, &s), -ENOENT);
        assert_int_equal(cgroup_walk(&t->root, "none", see, &s), -EINVAL);
        assert_int_equal(s.n, 0);

        /* A group that goes away before its turn, and one that is walked when it goes. */
        put_file(t->directory, "v/gone", NULL);
        s = (Seen) { .tree = t, .remove_at = "/v", .removed = "v/gone" };
        assert_int_equal(cgroup_walk(&t->root, "/v", see, &s), 0);
        assert_int_equal(s.n, 1);
        seen_clear(&s);
        s = (Seen) { .tree = t, .remove_at = "/v", .removed = "v" };
        assert_int_equal(cgroup_walk(&t->root, "/v", see, &s), 0);
        assert_int_equal(s.n, 1);
        seen_clear(&s);
}

static int count(const char *path, int dir_fd, uint64_t inode, void *userdata) {
        Seen *s = userdata;

        s->n++;
        if (s->n % 100 == 0)
                s->most_descriptors = MAX_OF(s->most_descriptors, open_descriptors());
        return 0;
}

static void test_walk_bounds(void **state) {
        Tree *t = *state;
        char path[8192] = "";
        size_t before = open_descriptors();
        Seen s = {};
        int fd;

        /* Wide: more entries than one buffer of getdents, descriptors as many as levels. */
        for (unsigned i = 0; i < 3000; i++) {
                (void) snprintf(path, sizeof(path), "wide/%s-%u", "a.rather.long.name.as.containers.have.them.0123456789abcdef0123456789abcdef", i);
                put_file(t->directory, path, NULL);
        }
        assert_int_equal(cgroup_walk(&t->root, "/wide", count, &s), 0);
        assert_int_equal(s.n, 3001);
        assert_true(s.most_descriptors <= before + 2);

        /* Deep: ends at the bound. */
        fd = dup(t->root.fd);
        for (unsigned i = 0; i < CGROUP_WALK_DEPTH + 10; i++) {
                int next;

                assert_int_equal(mkdirat(fd, "d", 0755), 0);
                next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                assert_true(next >= 0);
                close(fd);
                fd = next;
        }
        close(fd);
        s = (Seen) {};
        assert_int_equal(cgroup_walk(&t->root, "/d", count, &s), 0);
        assert_int_equal(s.n, CGROUP_WALK_DEPTH + 1);

        /* Paths of PATH_MAX bytes and more can't be given: not visited, the rest is. */
        fd = dup(t->root.fd);
        for (unsigned i = 0; i < 20; i++) {
                char name[NAME_MAX + 1];
                int next;

                memset(name, 'n', NAME_MAX);
                name[0] = 'l';
                name[NAME_MAX] = 0;
                assert_int_equal(mkdirat(fd, name, 0755), 0);
                next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                assert_true(next >= 0);
                close(fd);
                fd = next;
        }
        close(fd);
        s = (Seen) {};
        assert_int_equal(cgroup_walk(&t->root, "/", count, &s), 0);
        /* the root, the wide ones, 64 levels with the root among them, and 15 levels of 256 bytes */
        assert_int_equal(s.n, 1 + 3001 + CGROUP_WALK_DEPTH + 15);
}

/* ---- labels ---- */

static void test_label(void **state) {
        static const struct {
                const char *value;
                size_t length;
        } bad[] = { { "", 0 }, { "Latency", 7 }, { "a b", 3 }, { "a\n", 2 }, { "a\0", 2 }, { "a\0b", 3 }, { "\033[m", 3 }, { "a/b", 3 } };
        Tree *t = *state;
        char *label = NULL, longest[300];
        int fd;

        if (geteuid() != 0)
                skip();
        put_file(t->directory, "g", NULL);
        fd = cgroup_open(&t->root, "/g");
        assert_true(fd >= 0);
        assert_int_equal(cgroup_label(fd, &label), -ENODATA);
        if (fsetxattr(fd, "user.cpuclass", "batch", 5, 0) < 0 && errno == EOPNOTSUPP) {
                close(fd);
                skip(); /* tmpfs before 6.6 */
        }
        assert_int_equal(cgroup_label(fd, &label), 0);
        assert_string_equal(label, "batch");
        free(label);
        label = NULL;
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                assert_int_equal(fsetxattr(fd, "user.cpuclass", bad[i].value, bad[i].length, 0), 0);
                assert_int_equal(cgroup_label(fd, &label), -EBADMSG);
                assert_null(label);
        }
        memset(longest, 'a', sizeof(longest));
        assert_int_equal(fsetxattr(fd, "user.cpuclass", longest, sizeof(longest), 0), 0);
        assert_int_equal(cgroup_label(fd, &label), -EBADMSG);

        /* A label that somebody other than root could have set counts for nothing. */
        assert_int_equal(fsetxattr(fd, "user.cpuclass", "batch", 5, 0), 0);
        assert_int_equal(fchown(fd, 1000, 1000), 0);
        assert_int_equal(cgroup_label(fd, &label), -ENODATA);
        assert_int_equal(fchown(fd, 0, 1000), 0);
        assert_int_equal(fchmod(fd, 0775), 0);
        assert_int_equal(cgroup_label(fd, &label), -ENODATA);
        assert_int_equal(fchmod(fd, 0757), 0);
        assert_int_equal(cgroup_label(fd, &label), -ENODATA);
        assert_int_equal(fchmod(fd, 0755), 0);
        assert_int_equal(cgroup_label(fd, &label), 0);
        assert_string_equal(label, "batch");
        free(label);

        /* The trusted one goes first, where it can be set at all. */
        if (fsetxattr(fd, "trusted.cpuclass", "isolated", 8, 0) == 0) {
                assert_int_equal(cgroup_label(fd, &label), 0);
                assert_string_equal(label, "isolated");
                free(label);
        }
        close(fd);
}

static void test_of_pid(void **state) {
        _cleanup_free_ char *own = NULL;
        char *path = NULL;
        pid_t pid;
        int r;

        r = cgroup_of_pid(getpid(), &own);
        if (r == -ENOENT)
                skip(); /* no cgroup2 hierarchy */
        assert_int_equal(r, 0);
        assert_int_equal(own[0], '/');
        assert_null(strchr(own, '\n'));
        assert_int_equal(cgroup_of_pid(0, &path), -ESRCH);
        assert_int_equal(cgroup_of_pid(-1, &path), -ESRCH);
        pid = fork();
        if (pid == 0)
                _exit(0);
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(cgroup_of_pid(pid, &path), -ESRCH);
        assert_null(path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_root, setup, teardown),  cmocka_unit_test_setup_teardown(test_mountinfo, setup, teardown),
                cmocka_unit_test_setup_teardown(test_open, setup, teardown),  cmocka_unit_test_setup_teardown(test_files, setup, teardown),
                cmocka_unit_test_setup_teardown(test_walk, setup, teardown),  cmocka_unit_test_setup_teardown(test_walk_bounds, setup, teardown),
                cmocka_unit_test_setup_teardown(test_label, setup, teardown), cmocka_unit_test_setup_teardown(test_of_pid, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
