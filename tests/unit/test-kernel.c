/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel-facing modules on a real cgroup tree. It makes groups and changes the host, so it runs in the VM only (CPUCLASS_VM); elsewhere it is a skip. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "daemon/bandwidth.h"
#include "daemon/host.h"
#include "daemon/pool.h"
#include "daemon/slice.h"

#define TOP "cpuclass-test"

static CgroupRoot root;

static void make_group(const char *relative) {
        if (mkdirat(root.fd, relative, 0755) < 0)
                fail_msg("%s: %s", relative, strerror(errno));
}

static void remove_group(const char *relative) {
        /* A process that was killed leaves its group a moment later. */
        for (unsigned i = 0; i < 500; i++) {
                if (unlinkat(root.fd, relative, AT_REMOVEDIR) == 0)
                        return;
                usleep(10000);
        }
        fail_msg("%s: %s", relative, strerror(errno));
}

static int open_group(const char *path) {
        int fd = cgroup_open(&root, path);

        if (fd < 0)
                fail_msg("%s: %s", path, strerror(-fd));
        return fd;
}

/* A child that sleeps in a group until it is killed. */
static pid_t sleeper(const char *path) {
        char text[32];
        pid_t pid = fork();
        int fd;

        if (pid == 0)
                for (;;)
                        pause();
        fd = open_group(path);
        (void) snprintf(text, sizeof(text), "%d", pid);
        assert_int_equal(cgroup_write_file(fd, "cgroup.procs", text), 0);
        close(fd);
        return pid;
}

static void end(pid_t pid) {
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int group_setup(void **state) {
        int fd;

        if (cgroup_root_open(NULL, &root) < 0 || !root.has_cpu)
                return -1;
        /* Through systemd, which takes a "+cpu" of anybody else back. */
        if (system("systemctl set-property --runtime system.slice CPUWeight=100") != 0)
                return -1;
        for (unsigned i = 0; i < 100; i++) {
                char text[256];
                ssize_t n = cgroup_read_file(root.fd, "cgroup.subtree_control", text, sizeof(text));

                if (n > 0 && word_list_contains(text, (size_t) n, "cpu"))
                        break;
                usleep(50000);
        }
        make_group(TOP);
        fd = open_group("/" TOP);
        if (cgroup_write_file(fd, "cgroup.subtree_control", "+cpu +pids") < 0)
                return -1;
        close(fd);
        return 0;
}

static int group_teardown(void **state) {
        remove_group(TOP);
        cgroup_root_close(&root);
        return 0;
}

/* ---- bandwidth ---- */

static void test_bandwidth_every_order(void **state) {
        static const uint64_t quotas[] = { 1000, 20000, 100000, 400000, QUOTA_UNLIMITED }, periods[] = { 10000, 1000000 };
        static const uint64_t bursts[] = { 0, 1000, 20000, 100000, UINT64_C(3000000000) };
        Bandwidth all[128];
        size_t n = 0, n_steps = 0;
        int fd;

        for (size_t q = 0; q < ELEMENTSOF(quotas); q++)
                for (size_t p = 0; p < ELEMENTSOF(periods); p++)
                        for (size_t b = 0; b < ELEMENTSOF(bursts); b++)
                                if (quotas[q] == QUOTA_UNLIMITED || bursts[b] <= quotas[q])
                                        all[n++] = (Bandwidth) { quotas[q], periods[p], bursts[b] };
        make_group(TOP "/order");
        fd = open_group("/" TOP "/order");
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n; j++) {
                        Bandwidth observed, live;
                        bool has_burst;
                        int r;

                        assert_true(bandwidth_write(fd, &all[i], NULL) >= 0);
                        r = bandwidth_write(fd, &all[j], &observed);
                        assert_int_equal(bandwidth_read(fd, &live, &has_burst), 0);
                        assert_true(has_burst);
                        if (r < 0 || !bandwidth_equal(&observed, &all[j]) || !bandwidth_equal(&live, &all[j]))
                                fail_msg("%" PRIu64 " %" PRIu64 " %" PRIu64 " -> %" PRIu64 " %" PRIu64 " %" PRIu64 ": %s", all[i].quota_usec, all[i].period_usec,
                                         all[i].burst_usec, all[j].quota_usec, all[j].period_usec, all[j].burst_usec, strerror(r < 0 ? -r : 0));
                        assert_int_equal(bandwidth_write(fd, &all[j], NULL), 0);
                        n_steps += (size_t) r;
                }
        print_message("%zu changes, %zu writes\n", n * n, n_steps);

        /* What only the kernel knows to be wrong leaves everything as it was. */
        {
                Bandwidth live, observed;

                assert_true(bandwidth_write(fd, &(Bandwidth) { 50000, 100000, 25000 }, NULL) >= 0);
                assert_int_equal(bandwidth_write(fd, &(Bandwidth) { UINT64_C(1) << 45, 100000, 10 }, &observed), -EINVAL);
                assert_int_equal(bandwidth_read(fd, &live, NULL), 0);
                assert_true(bandwidth_equal(&live, &(Bandwidth) { 50000, 100000, 25000 }));
                assert_true(bandwidth_equal(&live, &observed));
                assert_int_equal(bandwidth_write_burst(fd, 60000, NULL), -EINVAL);
                assert_int_equal(bandwidth_write_burst(fd, 50000, NULL), 1);
        }
        close(fd);
        remove_group(TOP "/order");
}

static void test_bandwidth_effective(void **state) {
        Bandwidth b;
        char *path;
        int fd;

        make_group(TOP "/a");
        fd = open_group("/" TOP "/a");
        assert_int_equal(cgroup_write_file(fd, "cgroup.subtree_control", "+cpu"), 0);
        assert_int_equal(bandwidth_write(fd, &(Bandwidth) { 30000, 100000, 0 }, NULL), 1);
        close(fd);
        make_group(TOP "/a/b");
        fd = open_group("/" TOP "/a/b");
        /* More than the parent has is taken, and does not help. */
        assert_int_equal(bandwidth_write(fd, &(Bandwidth) { 20000, 50000, 0 }, NULL), 1);
        make_group(TOP "/a/b/off");
        assert_int_equal(bandwidth_effective(&root, "/" TOP "/a/b/off", &b, &path), 0);
        assert_int_equal(b.quota_usec, 30000);
        assert_string_equal(path, "/" TOP "/a");
        free(path);
        assert_int_equal(bandwidth_write(fd, &(Bandwidth) { 10000, 50000, 0 }, NULL), 1);
        assert_int_equal(bandwidth_effective(&root, "/" TOP "/a/b/off", &b, &path), 0);
        assert_int_equal(b.quota_usec, 10000);
        assert_string_equal(path, "/" TOP "/a/b");
        free(path);
        close(fd);
        assert_int_equal(bandwidth_read(root.fd, &b, NULL), -ENOENT);
        remove_group(TOP "/a/b/off");
        remove_group(TOP "/a/b");
        remove_group(TOP "/a");
}

static void test_vanishing(void **state) {
        char text[256];
        Bandwidth b;
        int fd, file, r;

        make_group(TOP "/v");
        fd = open_group("/" TOP "/v");
        file = cgroup_open_file(fd, "cpu.stat", O_RDONLY);
        assert_true(file >= 0);
        assert_true(cgroup_pread(file, text, sizeof(text)) > 0);
        remove_group(TOP "/v");
        assert_int_equal(cgroup_pread(file, text, sizeof(text)), -ENODEV);
        r = bandwidth_read(fd, &b, NULL);
        assert_true(r == -ENODEV || r == -ENOENT);
        r = bandwidth_write(fd, &(Bandwidth) { 10000, 50000, 0 }, NULL);
        assert_true(r == -ENODEV || r == -ENOENT);
        close(file);
        close(fd);
        assert_int_equal(cgroup_open(&root, "/" TOP "/v"), -ENOENT);
}

/* ---- the tree ---- */

static int find_own(const char *path, int dir_fd, uint64_t inode, void *userdata) {
        bool *found = userdata;

        if (startswith(path, "/" TOP "/stays-"))
                found[atoi(path + strlen("/" TOP "/stays-"))] = true;
        return 0;
}

/* Groups that stay are seen by every walk, whatever comes and goes beside them. */
static void test_walk_under_churn(void **state) {
        enum { STAY = 40 };
        char name[64];
        pid_t pid;

        for (int i = 0; i < STAY; i++) {
                (void) snprintf(name, sizeof(name), TOP "/stays-%d", i);
                make_group(name);
        }
        pid = fork();
        if (pid == 0)
                for (unsigned i = 0;; i++) {
                        (void) snprintf(name, sizeof(name), TOP "/goes-%u", i % 50);
                        (void) mkdirat(root.fd, name, 0755);
                        (void) snprintf(name, sizeof(name), TOP "/goes-%u", (i + 25) % 50);
                        (void) unlinkat(root.fd, name, AT_REMOVEDIR);
                }
        for (int n = 0; n < 30; n++) {
                bool found[STAY] = {};

                assert_int_equal(cgroup_walk(&root, "/", find_own, found), 0);
                for (int i = 0; i < STAY; i++)
                        if (!found[i])
                                fail_msg("walk %d did not see stays-%d", n, i);
        }
        end(pid);
        for (int i = 0; i < 50; i++) {
                (void) snprintf(name, sizeof(name), TOP "/goes-%d", i);
                (void) unlinkat(root.fd, name, AT_REMOVEDIR);
        }
        for (int i = 0; i < STAY; i++) {
                (void) snprintf(name, sizeof(name), TOP "/stays-%d", i);
                remove_group(name);
        }
}

static void test_label_and_pid(void **state) {
        char *label, *path;
        pid_t pid;
        int fd;

        make_group(TOP "/l \\x2d%s");
        fd = open_group("/" TOP "/l \\x2d%s");
        assert_int_equal(cgroup_label(fd, &label), -ENODATA);
        assert_int_equal(fsetxattr(fd, "user.cpuclass", "latency-critical", 16, 0), 0);
        assert_int_equal(cgroup_label(fd, &label), 0);
        assert_string_equal(label, "latency-critical");
        free(label);
        assert_int_equal(fchown(fd, 1000, 1000), 0);
        assert_int_equal(cgroup_label(fd, &label), -ENODATA);
        close(fd);
        pid = sleeper("/" TOP "/l \\x2d%s");
        assert_int_equal(cgroup_of_pid(pid, &path), 0);
        assert_string_equal(path, "/" TOP "/l \\x2d%s");
        free(path);
        end(pid);
        remove_group(TOP "/l \\x2d%s");
}

/* ---- threads of groups ---- */

static int apply_half(pid_t tid, void *userdata) {
        unsigned *outcomes = userdata;
        int r = slice_apply(NULL, tid, 1000000, outcomes[15], NULL, NULL);

        assert_true(r >= 0);
        outcomes[r]++;
        return 0;
}

static void *park(void *userdata) {
        int policy = (int) (intptr_t) userdata;
        struct sched_param p = { .sched_priority = policy == SCHED_FIFO ? 1 : 0 };

        (void) pthread_setschedparam(pthread_self(), policy, &p);
        for (;;)
                pause();
        return NULL;
}

static void test_threads(void **state) {
        static const int policies[] = { SCHED_OTHER, SCHED_BATCH, SCHED_FIFO, SCHED_IDLE };
        unsigned outcomes[16] = {};
        _cleanup_free_ char *text = NULL;
        uint64_t base;
        size_t length;
        char c, pid_text[32];
        int fd, up[2], r;
        pid_t pid;

        r = slice_probe(&base);
        assert_true(r >= 0);
        outcomes[15] = (unsigned) base;
        make_group(TOP "/domain");
        make_group(TOP "/domain/t");
        fd = open_group("/" TOP "/domain/t");
        assert_int_equal(cgroup_write_file(fd, "cgroup.type", "threaded"), 0);
        assert_int_equal(pipe(up), 0);
        pid = fork();
        if (pid == 0) {
                pthread_t t;

                for (size_t i = 0; i < 200; i++)
                        (void) pthread_create(&t, NULL, park, (void *) (intptr_t) policies[i % ELEMENTSOF(policies)]);
                usleep(300000);
                (void) !write(up[1], "x", 1);
                for (;;)
                        pause();
        }
        (void) snprintf(pid_text, sizeof(pid_text), "%d", pid);
        assert_int_equal(read(up[0], &c, 1), 1);
        close(up[0]);
        close(up[1]);
        /* First into the domain, then into the threaded group below. */
        {
                int domain = open_group("/" TOP "/domain");

                assert_int_equal(cgroup_write_file(domain, "cgroup.procs", pid_text), 0);
                close(domain);
        }
        assert_int_equal(cgroup_write_file(fd, "cgroup.procs", pid_text), 0);
        assert_int_equal(cgroup_read_all(fd, "cgroup.procs", 1 << 20, &text, &length), -EOPNOTSUPP);
        assert_int_equal(cgroup_read_all(fd, "cgroup.threads", 1 << 20, &text, &length), 0);
        assert_int_equal(tids_parse(text, length, apply_half, outcomes), 0);
        assert_int_equal(outcomes[SLICE_NOT_TAKEN], 100);
        assert_int_equal(outcomes[r > 0 ? SLICE_SET : SLICE_IGNORED], 101);
        if (r > 0) {
                memset(outcomes, 0, 15 * sizeof(outcomes[0]));
                assert_int_equal(tids_parse(text, length, apply_half, outcomes), 0);
                assert_int_equal(outcomes[SLICE_ALREADY], 101);
        }
        close(fd);
        end(pid);
        remove_group(TOP "/domain/t");
        remove_group(TOP "/domain");
}

/* ---- pools ---- */

static void read_control(const char *path, char buffer[static 256]) {
        int fd = open_group(path);
        ssize_t n = cgroup_read_file(fd, "cgroup.subtree_control", buffer, 255);

        assert_true(n >= 0);
        buffer[n] = 0;
        close(fd);
}

static void test_pool(void **state) {
        char before_root[256], before_slice[256], now[256], *where = NULL, *path;
        Bandwidth b;
        pid_t pid;
        int fd;

        assert_int_equal(pool_init(), 0);
        assert_int_equal(pool_init(), 0);
        assert_int_equal(pool_mountpoint(&where), 0);
        assert_string_equal(where, root.mountpoint);
        free(where);

        read_control("/", before_root);
        read_control("/system.slice", before_slice);
        assert_int_equal(pool_create_group(TOP "/pools/web-1"), 0);
        assert_int_equal(pool_create_group(TOP "/pools/web-1"), -EEXIST);
        assert_int_equal(pool_create_group("/" TOP "/pools/x"), -EINVAL);
        assert_int_equal(pool_create_group(TOP "/../x"), -EINVAL);
        assert_int_equal(pool_create_group(""), -EINVAL);
        /* With the controller, since it was on where the path began to be new. */
        fd = open_group("/" TOP "/pools/web-1");
        assert_int_equal(bandwidth_read(fd, &b, NULL), 0);
        assert_int_equal(bandwidth_write(fd, &(Bandwidth) { 20000, 100000, 0 }, NULL), 1);
        close(fd);
        read_control("/", now);
        assert_string_equal(now, before_root);
        read_control("/system.slice", now);
        assert_string_equal(now, before_slice);

        pid = fork();
        if (pid == 0)
                for (;;)
                        pause();
        assert_int_equal(pool_move(TOP "/pools/none", pid), -ENOENT);
        assert_int_equal(pool_move(TOP "/pools/web-1", 0), -ESRCH);
        assert_int_equal(pool_move(TOP "/pools/web-1", pid), 0);
        assert_int_equal(cgroup_of_pid(pid, &path), 0);
        assert_string_equal(path, "/" TOP "/pools/web-1");
        free(path);
        /* A group that has processes of its own can't hand a controller down. */
        assert_int_equal(pool_create_group(TOP "/pools/web-1/sub"), -EBUSY);
        /* The workload may make groups of its own, without any controller. */
        make_group(TOP "/pools/web-1/own");
        make_group(TOP "/pools/web-1/own/deeper");
        assert_int_equal(pool_delete_group(TOP "/pools/web-1"), -EBUSY);
        assert_int_equal(faccessat(root.fd, TOP "/pools/web-1/own/deeper", F_OK, 0), 0);
        end(pid);
        assert_int_equal(pool_move(TOP "/pools/web-1", pid), -ESRCH);
        for (unsigned i = 0; i < 500 && pool_delete_group(TOP "/pools/web-1") == -EBUSY; i++)
                usleep(10000);
        assert_int_equal(pool_delete_group(TOP "/pools/web-1"), -ENOENT);
        assert_int_equal(faccessat(root.fd, TOP "/pools/web-1", F_OK, 0), -1);
        assert_int_equal(pool_delete_group(TOP "/pools"), 0);
}

/* Where the cpu controller is off, making a pool does not switch it on for others. */
static void test_pool_without_cpu(void **state) {
        char before[256], now[256];
        Bandwidth b;
        int fd;

        make_group(TOP "/plain");
        fd = open_group("/" TOP "/plain");
        assert_int_equal(cgroup_write_file(fd, "cgroup.subtree_control", "+pids"), 0);
        close(fd);
        make_group(TOP "/plain/sibling");
        make_group(TOP "/plain/unit");
        read_control("/" TOP "/plain", before);
        assert_int_equal(pool_create_group(TOP "/plain/unit/pool"), 0);
        read_control("/" TOP "/plain", now);
        assert_string_equal(now, before);
        fd = open_group("/" TOP "/plain/unit/pool");
        assert_int_equal(bandwidth_read(fd, &b, NULL), -ENOENT);
        close(fd);
        assert_int_equal(pool_delete_group(TOP "/plain"), 0);
}

/* ---- facts ---- */

static void test_facts(void **state) {
        HostFacts f;
        int fd;

        host_probe("", &root, &f);
        assert_int_equal(f.facts[FACT_CPU_CONTROLLER].state, FACT_YES);
        assert_int_equal(f.facts[FACT_PRESSURE].state, FACT_YES);
        assert_int_equal(f.facts[FACT_BURST].state, FACT_YES);
        assert_int_equal(f.facts[FACT_HOST_NAMESPACES].state, FACT_YES);
        assert_int_not_equal(f.facts[FACT_LATENCY_NICE_FILE].state, FACT_UNKNOWN);
        assert_int_not_equal(f.facts[FACT_CORE_SCHEDULING].state, FACT_UNKNOWN);
        fd = open_group("/" TOP);
        assert_false(host_probe_group(fd, &f));
        close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bandwidth_every_order), cmocka_unit_test(test_bandwidth_effective), cmocka_unit_test(test_vanishing),
                cmocka_unit_test(test_walk_under_churn),      cmocka_unit_test(test_label_and_pid),       cmocka_unit_test(test_threads),
                cmocka_unit_test(test_pool),                  cmocka_unit_test(test_pool_without_cpu),    cmocka_unit_test(test_facts),
        };

        if (!getenv("CPUCLASS_VM"))
                return 77;
        return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
