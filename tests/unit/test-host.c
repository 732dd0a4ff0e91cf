/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Host facts: on made-up hosts (a directory with /proc and /sys, another as the cgroup tree), and once on the real one. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/host.h"
#include "tests/unit/files.h"

typedef struct Host {
        char directory[64], tree[80];
        CgroupRoot root;
} Host;

/* An ordinary host: 6.12, SMT, systemd's tree with the controller on, no sched_ext. */
static int setup(void **state) {
        Host *h = calloc(1, sizeof(*h));

        assert_non_null(h);
        temporary_directory(h->directory);
        put_file(h->directory, "proc/sys/kernel/osrelease", "6.12.117+deb12-amd64\n");
        put_file(h->directory, "proc/sys/kernel/random/boot_id", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n");
        put_file(h->directory, "proc/sys/kernel/sched_cfs_bandwidth_slice_us", "5000\n");
        put_file(h->directory, "proc/sys/kernel/sched_schedstats", "0\n");
        put_file(h->directory, "proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t0\t5\t1\ncpu\t0\t5\t1\n");
        put_file(h->directory, "proc/stat", "cpu  10 20 30 400 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
        put_file(h->directory, "sys/devices/system/cpu/online", "0-3,8,10-11\n");
        put_file(h->directory, "sys/devices/system/cpu/smt/control", "on\n");
        put_file(h->directory, "sys/devices/system/cpu/smt/active", "1\n");
        put_file(h->directory, "sys/kernel/debug/sched/base_slice_ns", "2800000\n");
        put_file(h->directory, "proc/self/ns/x", "");
        {
                char path[128];

                (void) snprintf(path, sizeof(path), "%s/proc/self/ns/pid", h->directory);
                assert_int_equal(symlink("pid:[4026531836]", path), 0);
                (void) snprintf(path, sizeof(path), "%s/proc/self/ns/cgroup", h->directory);
                assert_int_equal(symlink("cgroup:[4026531835]", path), 0);
        }
        put_file(h->directory, "tree/cgroup.controllers", "cpuset cpu io memory pids\n");
        put_file(h->directory, "tree/cpu.pressure", "some avg10=1.00 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
        put_file(h->directory, "tree/system.slice/cpu.max", "max 100000\n");
        put_file(h->directory, "tree/system.slice/cpu.max.burst", "0\n");
        put_file(h->directory, "tree/system.slice/cpu.stat", "usage_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
        (void) snprintf(h->tree, sizeof(h->tree), "%s/tree", h->directory);
        assert_int_equal(cgroup_root_open_at(h->tree, &h->root), 0);
        *state = h;
        return 0;
}

static int teardown(void **state) {
        Host *h = *state;

        cgroup_root_close(&h->root);
        temporary_directory_remove(h->directory);
        free(h);
        return 0;
}

static void remove_file(Host *h, const char *name) {
        char path[256];

        (void) snprintf(path, sizeof(path), "%s/%s", h->directory, name);
        assert_int_equal(remove(path), 0);
}

static void reopen(Host *h) {
        cgroup_root_close(&h->root);
        assert_int_equal(cgroup_root_open_at(h->tree, &h->root), 0);
}

static HostFacts probe(Host *h) {
        HostFacts f;

        memset(&f, 0x5a, sizeof(f));
        host_probe(h->directory, &h->root, &f);
        /* Whoever says no must say why; who says yes need not. */
        for (FactId id = 0; id < _FACT_MAX; id++) {
                assert_true(f.facts[id].state <= FACT_NOT_ENFORCED);
                if (f.facts[id].state == FACT_YES)
                        assert_string_equal(f.facts[id].reason, "");
                if (f.facts[id].state == FACT_NO || f.facts[id].state == FACT_NOT_ENFORCED)
                        assert_true(f.facts[id].reason[0]);
        }
        return f;
}

static void assert_fact(const HostFacts *f, FactId id, FactState state, const char *reason_has) {
        if (f->facts[id].state != state || (reason_has && !strstr(f->facts[id].reason, reason_has)))
                fail_msg("%s is %s (%s)", fact_name(id), fact_state_to_string(f->facts[id].state), f->facts[id].reason);
}

static void test_ordinary(void **state) {
        Host *h = *state;
        HostFacts f = probe(h);

        assert_fact(&f, FACT_CGROUP2, FACT_YES, NULL);
        assert_fact(&f, FACT_CPU_CONTROLLER, FACT_YES, NULL);
        assert_fact(&f, FACT_BURST, FACT_YES, NULL);
        assert_fact(&f, FACT_PRESSURE, FACT_YES, NULL);
        assert_fact(&f, FACT_SMT, FACT_YES, NULL);
        assert_fact(&f, FACT_SCHED_EXT_OFF, FACT_YES, NULL);
        assert_fact(&f, FACT_HOST_NAMESPACES, FACT_YES, NULL);
        assert_fact(&f, FACT_LATENCY_NICE_FILE, FACT_NO, "cpu.latency.nice");
        assert_fact(&f, FACT_CORE_TAG_FILE, FACT_NO, "cpu.core_tag");
        assert_fact(&f, FACT_BANDWIDTH_LOSS, FACT_NO, "bw_lost_usec");
        assert_fact(&f, FACT_SCHEDSTATS, FACT_NO, "is 0");
        /* System calls would ask the wrong kernel; systemd is the manager's to ask. */
        assert_fact(&f, FACT_EEVDF_SLICE, FACT_UNKNOWN, NULL);
        assert_fact(&f, FACT_CORE_SCHEDULING, FACT_UNKNOWN, NULL);
        assert_fact(&f, FACT_SYSTEMD, FACT_UNKNOWN, NULL);
        assert_int_equal(f.n_cpus, 7);
        assert_int_equal(f.base_slice_nsec, 2800000);
        assert_int_equal(f.bandwidth_slice_usec, 5000);
        assert_string_equal(f.kernel_release, "6.12.117+deb12-amd64");
        assert_string_equal(f.boot_id, "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0");
        assert_string_equal(f.sched_ext_name, "");
}

static void test_patched(void **state) {
        Host *h = *state;
        HostFacts f;

        put_file(h->directory, "tree/system.slice/cpu.latency.nice", "0\n");
        put_file(h->directory, "tree/system.slice/cpu.core_tag", "0\n");
        put_file(h->directory, "tree/system.slice/cpu.stat", "usage_usec 1\nbw_parked_usec 0\nbw_lost_usec 0\n");
        put_file(h->directory, "proc/sys/kernel/sched_schedstats", "1\n");
        f = probe(h);
        assert_fact(&f, FACT_LATENCY_NICE_FILE, FACT_YES, NULL);
        assert_fact(&f, FACT_CORE_TAG_FILE, FACT_YES, NULL);
        assert_fact(&f, FACT_BANDWIDTH_LOSS, FACT_YES, NULL);
        assert_fact(&f, FACT_SCHEDSTATS, FACT_YES, NULL);
}

static void test_no_cgroup2(void **state) {
        Host *h = *state;
        HostFacts f;

        host_probe(h->directory, NULL, &f);
        assert_fact(&f, FACT_CGROUP2, FACT_NO, "no cgroup2");
        assert_fact(&f, FACT_CPU_CONTROLLER, FACT_NO, "no cgroup2");
        assert_fact(&f, FACT_BURST, FACT_NO, "no cgroup2");
        assert_fact(&f, FACT_PRESSURE, FACT_NO, "no cgroup2");
        assert_fact(&f, FACT_SMT, FACT_YES, NULL);
}

static void test_no_controller(void **state) {
        _cleanup_free_ char *cgroups = NULL;
        Host *h = *state;
        HostFacts f;
        size_t n;

        put_file(h->directory, "tree/cgroup.controllers", "hugetlb\n");
        remove_file(h, "tree/system.slice/cpu.max");
        remove_file(h, "tree/system.slice/cpu.max.burst");
        reopen(h);
        /* From the files of a hybrid host. */
        cgroups = case_read("kernel-text/6.18-hybrid/proc-cgroups", &n);
        put_file(h->directory, "proc/cgroups", cgroups);
        f = probe(h);
        assert_fact(&f, FACT_CPU_CONTROLLER, FACT_NO, "v1");
        assert_fact(&f, FACT_BURST, FACT_NO, "controller");
        assert_fact(&f, FACT_PRESSURE, FACT_YES, NULL);
        put_file(h->directory, "proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t0\t5\t1\ncpu\t0\t5\t0\n");
        f = probe(h);
        assert_fact(&f, FACT_CPU_CONTROLLER, FACT_NO, "command line");
        remove_file(h, "proc/cgroups");
        f = probe(h);
        assert_fact(&f, FACT_CPU_CONTROLLER, FACT_NO, "does not offer");
        h->root.hybrid = true;
        f = probe(h);
        assert_fact(&f, FACT_CPU_CONTROLLER, FACT_NO, "v1");
}

/* The controller is there and on nowhere yet: its files can't be judged. */
static void test_controller_off(void **state) {
        Host *h = *state;
        HostFacts f;

        remove_file(h, "tree/system.slice/cpu.max");
        remove_file(h, "tree/system.slice/cpu.max.burst");
        f = probe(h);
        assert_fact(&f, FACT_CPU_CONTROLLER, FACT_YES, NULL);
        assert_fact(&f, FACT_BURST, FACT_UNKNOWN, "on");
        assert_fact(&f, FACT_LATENCY_NICE_FILE, FACT_UNKNOWN, "on");
        /* One that the manager shows settles it. */
        {
                int fd = cgroup_open(&h->root, "/system.slice");

                assert_true(fd >= 0);
                assert_false(host_probe_group(fd, &f));
                assert_fact(&f, FACT_BURST, FACT_UNKNOWN, "on");
                put_file(h->directory, "tree/system.slice/cpu.max", "max 100000\n");
                put_file(h->directory, "tree/system.slice/cpu.max.burst", "0\n");
                assert_true(host_probe_group(fd, &f));
                assert_fact(&f, FACT_BURST, FACT_YES, NULL);
                assert_fact(&f, FACT_LATENCY_NICE_FILE, FACT_NO, "cpu.latency.nice");
                assert_false(host_probe_group(fd, &f));
                strcpy(f.sched_ext_name, "x");
                assert_true(host_probe_group(fd, &f));
                assert_fact(&f, FACT_BURST, FACT_NOT_ENFORCED, "x");
                close(fd);
                remove_file(h, "tree/system.slice/cpu.max");
                remove_file(h, "tree/system.slice/cpu.max.burst");
        }
        /* Another group has it. */
        put_file(h->directory, "tree/a/cpu.max", "max 100000\n");
        f = probe(h);
        assert_fact(&f, FACT_BURST, FACT_NO, "cpu.max.burst");
}

static void test_pressure(void **state) {
        Host *h = *state;
        HostFacts f;

        put_file(h->directory, "tree/cpu.pressure", "");
        f = probe(h);
        assert_fact(&f, FACT_PRESSURE, FACT_NO, "cpu.pressure");
        /* The root's file is missing, a group's is there. */
        remove_file(h, "tree/cpu.pressure");
        f = probe(h);
        assert_fact(&f, FACT_PRESSURE, FACT_NO, "no cpu.pressure");
        put_file(h->directory, "tree/user.slice/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
        f = probe(h);
        assert_fact(&f, FACT_PRESSURE, FACT_YES, NULL);
        assert_fact(&f, FACT_BURST, FACT_YES, NULL);
}

static void test_smt(void **state) {
        Host *h = *state;
        HostFacts f;

        put_file(h->directory, "sys/devices/system/cpu/smt/active", "0\n");
        f = probe(h);
        assert_fact(&f, FACT_SMT, FACT_NO, "one thread");
        put_file(h->directory, "sys/devices/system/cpu/smt/control", "forceoff\n");
        f = probe(h);
        assert_fact(&f, FACT_SMT, FACT_NO, "forceoff");
        /* Without these files the topology tells. */
        remove_file(h, "sys/devices/system/cpu/smt/active");
        f = probe(h);
        assert_fact(&f, FACT_SMT, FACT_UNKNOWN, NULL);
        put_file(h->directory, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0\n");
        f = probe(h);
        assert_fact(&f, FACT_SMT, FACT_NO, "one thread");
        put_file(h->directory, "sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,5\n");
        f = probe(h);
        assert_fact(&f, FACT_SMT, FACT_YES, NULL);
}

static void test_sched_ext(void **state) {
        Host *h = *state;
        HostFacts f;

        put_file(h->directory, "tree/system.slice/cpu.core_tag", "0\n");
        put_file(h->directory, "tree/system.slice/cpu.latency.nice", "0\n");
        put_file(h->directory, "sys/kernel/sched_ext/state", "disabled\n");
        f = probe(h);
        assert_fact(&f, FACT_SCHED_EXT_OFF, FACT_YES, NULL);
        put_file(h->directory, "sys/kernel/sched_ext/state", "enabled\n");
        put_file(h->directory, "sys/kernel/sched_ext/switch_all", "1\n");
        put_file(h->directory, "sys/kernel/sched_ext/root/ops", "lavd_1.0.5\n");
        f = probe(h);
        assert_fact(&f, FACT_SCHED_EXT_OFF, FACT_NOT_ENFORCED, "lavd_1.0.5");
        assert_fact(&f, FACT_CPU_CONTROLLER, FACT_NOT_ENFORCED, "lavd_1.0.5");
        assert_fact(&f, FACT_BURST, FACT_NOT_ENFORCED, "lavd_1.0.5");
        assert_fact(&f, FACT_CORE_TAG_FILE, FACT_NOT_ENFORCED, "lavd_1.0.5");
        assert_fact(&f, FACT_LATENCY_NICE_FILE, FACT_NOT_ENFORCED, "lavd_1.0.5");
        assert_fact(&f, FACT_PRESSURE, FACT_YES, NULL);
        assert_string_equal(f.sched_ext_name, "lavd_1.0.5");
        /* Only for the threads that asked for it: quotas hold, cookies stay away. */
        put_file(h->directory, "sys/kernel/sched_ext/switch_all", "0\n");
        f = probe(h);
        assert_fact(&f, FACT_SCHED_EXT_OFF, FACT_NOT_ENFORCED, "lavd_1.0.5");
        assert_fact(&f, FACT_CPU_CONTROLLER, FACT_YES, NULL);
        assert_fact(&f, FACT_CORE_TAG_FILE, FACT_NOT_ENFORCED, "lavd_1.0.5");
        /* Between two states, nameless. */
        put_file(h->directory, "sys/kernel/sched_ext/state", "enabling\n");
        remove_file(h, "sys/kernel/sched_ext/root/ops");
        f = probe(h);
        assert_fact(&f, FACT_SCHED_EXT_OFF, FACT_NOT_ENFORCED, "(enabling)");
}

static void relink(Host *h, const char *name, const char *target) {
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/proc/self/ns/%s", h->directory, name);
        assert_int_equal(unlink(path), 0);
        if (target)
                assert_int_equal(symlink(target, path), 0);
}

static void test_namespaces(void **state) {
        Host *h = *state;
        HostFacts f;

        relink(h, "cgroup", "cgroup:[4026532999]");
        f = probe(h);
        assert_fact(&f, FACT_HOST_NAMESPACES, FACT_NO, "cgroup namespace");
        relink(h, "pid", "pid:[4026532998]");
        f = probe(h);
        assert_fact(&f, FACT_HOST_NAMESPACES, FACT_NO, "pid namespace");
        relink(h, "pid", NULL);
        f = probe(h);
        assert_fact(&f, FACT_HOST_NAMESPACES, FACT_UNKNOWN, "can't be read");
}

static void test_fingerprint(void **state) {
        static const struct {
                const char *file, *text;
        } changes[] = {
                { "sys/devices/system/cpu/online", "0-2\n" },       { "sys/devices/system/cpu/smt/control", "off\n" }, { "sys/devices/system/cpu/smt/active", "0\n" },
                { "sys/kernel/sched_ext/state", "enabled\n" },      { "sys/kernel/sched_ext/root/ops", "x\n" },        { "sys/kernel/sched_ext/root/ops", "\n" },
                { "proc/sys/kernel/sched_schedstats", "1\n" },
        };
        Host *h = *state;
        uint64_t now = host_fingerprint(h->directory);

        assert_int_equal(now, host_fingerprint(h->directory));
        for (size_t i = 0; i < ELEMENTSOF(changes); i++) {
                uint64_t next;

                put_file(h->directory, changes[i].file, changes[i].text);
                next = host_fingerprint(h->directory);
                assert_int_not_equal(next, now);
                assert_int_equal(next, host_fingerprint(h->directory));
                now = next;
        }
}

static void test_cpu_times(void **state) {
        static const char *const damaged[] = { "", "cpu\n", "cpu 1 2 3\n", "cpu  1 2 3 4 5 6 7\n", "cpu  1 2 3 4 x 6 7 8\n", "cpu0 1 2 3 4 5 6 7 8\n" };
        uint64_t busy = 0, total = 0;
        Host *h = *state;

        assert_int_equal(host_cpu_times(h->directory, &busy, &total), 0);
        assert_int_equal(busy, 10 + 20 + 30 + 6 + 7 + 8);
        assert_int_equal(total, 10 + 20 + 30 + 400 + 50 + 6 + 7 + 8);
        for (size_t i = 0; i < ELEMENTSOF(damaged); i++) {
                put_file(h->directory, "proc/stat", damaged[i]);
                assert_int_equal(host_cpu_times(h->directory, &busy, &total), -EBADMSG);
                assert_int_equal(total, 531);
        }
        remove_file(h, "proc/stat");
        assert_int_equal(host_cpu_times(h->directory, &busy, &total), -ENOENT);
}

static void test_texts(void **state) {
        for (FactId id = 0; id < _FACT_MAX; id++) {
                assert_non_null(fact_name(id));
                assert_non_null(fact_loss(id));
                assert_non_null(fact_remedy(id));
                assert_int_equal(strspn(fact_name(id), "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(fact_name(id)));
                for (FactId other = 0; other < id; other++)
                        assert_string_not_equal(fact_name(id), fact_name(other));
        }
        assert_string_equal(fact_state_to_string(FACT_NOT_ENFORCED), "not enforced");
        assert_string_equal(fact_state_to_string(FACT_UNKNOWN), "unknown");
}

/* The host we run on: whatever it is, the facts are told and agree with one another. */
static void test_real(void **state) {
        CgroupRoot root = { .fd = -1 };
        uint64_t busy, total;
        HostFacts f;
        int r = cgroup_root_open(NULL, &root);

        assert_true(r == 0 || r == -ENOENT);
        host_probe("", r == 0 ? &root : NULL, &f);
        for (FactId id = 0; id < _FACT_MAX; id++)
                print_message("%-20s %-12s %s\n", fact_name(id), fact_state_to_string(f.facts[id].state), f.facts[id].reason);
        print_message("%s, %u CPUs, base slice %llu ns, bandwidth slice %llu us\n", f.kernel_release, f.n_cpus, (unsigned long long) f.base_slice_nsec,
                      (unsigned long long) f.bandwidth_slice_usec);
        assert_true(f.n_cpus >= 1);
        assert_true(f.kernel_release[0]);
        assert_int_equal(strlen(f.boot_id), 36);
        assert_int_equal(f.facts[FACT_CGROUP2].state, r == 0 ? FACT_YES : FACT_NO);
        if (f.facts[FACT_EEVDF_SLICE].state == FACT_YES)
                assert_true(f.base_slice_nsec >= 100000);
        assert_int_equal(host_cpu_times("", &busy, &total), 0);
        assert_true(busy > 0 && busy <= total);
        assert_int_equal(host_fingerprint(""), host_fingerprint(""));
        cgroup_root_close(&root);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_ordinary), TEST(test_patched),    TEST(test_no_cgroup2), TEST(test_no_controller), TEST(test_controller_off), TEST(test_pressure), TEST(test_smt),
                TEST(test_sched_ext), TEST(test_namespaces), TEST(test_fingerprint), TEST(test_cpu_times),  cmocka_unit_test(test_texts), cmocka_unit_test(test_real),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
