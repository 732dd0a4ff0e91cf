/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parsers against what real kernels print (cases/kernel-text, values read by eye), and against what none should. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/cgtext.h"
#include "tests/unit/files.h"

#define CASES "kernel-text/"

/* ---- cpu.stat ---- */

static const struct {
        const char *file;
        CpuStat stat;
} cpu_stats[] = {
        { "6.1-stock/idle.cpu.stat", { .usage_usec = 102184, .has_bandwidth = true, .has_bursts = true } },
        { "6.1-stock/root.cpu.stat", { .usage_usec = 10172000, .has_bandwidth = true, .has_bursts = true } },
        { "6.1-stock/svc.cpu.stat",
          { .usage_usec = 1088858, .has_bandwidth = true, .nr_periods = 52, .nr_throttled = 52, .throttled_usec = 4130689, .has_bursts = true } },
        { "6.12-stock/idle.cpu.stat", { .usage_usec = 66563, .has_bandwidth = true, .has_bursts = true } },
        { "6.12-stock/root.cpu.stat", { .usage_usec = 10424000, .has_bandwidth = true, .has_bursts = true } },
        { "6.12-stock/svc.cpu.stat",
          { .usage_usec = 1085887, .has_bandwidth = true, .nr_periods = 52, .nr_throttled = 51, .throttled_usec = 3989992, .has_bursts = true } },
        { "6.12-sched-core/idle.cpu.stat", { .usage_usec = 99587, .has_bandwidth = true, .has_bursts = true, .has_force_idle = true } },
        { "6.12-sched-core/root.cpu.stat", { .usage_usec = 7056000, .has_bandwidth = true, .has_bursts = true, .has_force_idle = true } },
        { "6.12-sched-core/svc.cpu.stat",
          { .usage_usec = 1049675, .has_bandwidth = true, .nr_periods = 51, .nr_throttled = 50, .throttled_usec = 3952145, .has_bursts = true,
            .has_force_idle = true } },
        { "6.18-hybrid/group.cpu.stat", { .usage_usec = 0 } },
};

static void assert_stat_equal(const CpuStat *a, const CpuStat *b) {
        assert_int_equal(a->usage_usec, b->usage_usec);
        assert_int_equal(a->has_bandwidth, b->has_bandwidth);
        assert_int_equal(a->nr_periods, b->nr_periods);
        assert_int_equal(a->nr_throttled, b->nr_throttled);
        assert_int_equal(a->throttled_usec, b->throttled_usec);
        assert_int_equal(a->has_bursts, b->has_bursts);
        assert_int_equal(a->nr_bursts, b->nr_bursts);
        assert_int_equal(a->burst_usec, b->burst_usec);
        assert_int_equal(a->has_force_idle, b->has_force_idle);
        assert_int_equal(a->force_idle_usec, b->force_idle_usec);
        assert_int_equal(a->has_loss, b->has_loss);
        assert_int_equal(a->parked_usec, b->parked_usec);
        assert_int_equal(a->lost_usec, b->lost_usec);
}

static void test_cpu_stat(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(cpu_stats); i++) {
                _cleanup_free_ char *text = NULL;
                char name[128];
                size_t n;
                CpuStat s;

                (void) snprintf(name, sizeof(name), CASES "%s", cpu_stats[i].file);
                text = case_read(name, &n);
                print_message("%s\n", name);
                assert_int_equal(cpu_stat_parse(text, n, &s), 0);
                assert_stat_equal(&s, &cpu_stats[i].stat);
        }
}

static int parse_stat(const char *text, CpuStat *ret) {
        return cpu_stat_parse(text, strlen(text), ret);
}

static void test_cpu_stat_fields(void **state) {
        static const char *const damaged[] = {
                "", "\n", "user_usec 1\n", "usage_usec\n", "usage_usec \n", "usage_usec x\n", "usage_usec -1\n", "usage_usec +1\n", "usage_usec 1 2\n",
                "usage_usec 1x\n", "usage_usec 18446744073709551616\n", "usage_usec 99999999999999999999999\n", "usage_usec 1\nnr_periods\n",
                "usage_usec 1\nthrottled_usec 0x10\n", "usage_usec\0001\n", "Usage_usec 1\n", "usage_use 1\n",
        };
        CpuStat s, untouched;

        assert_int_equal(parse_stat("usage_usec 18446744073709551615\nnr_periods 7\nnr_throttled 6\nthrottled_usec 5\nnr_bursts 4\nburst_usec 3\n"
                                    "core_sched.force_idle_usec 2\nbw_parked_usec 9\nbw_lost_usec 8", &s), 0);
        assert_stat_equal(&s, &(CpuStat) { .usage_usec = UINT64_MAX, .has_bandwidth = true, .nr_periods = 7, .nr_throttled = 6, .throttled_usec = 5,
                                          .has_bursts = true, .nr_bursts = 4, .burst_usec = 3, .has_force_idle = true, .force_idle_usec = 2, .has_loss = true,
                                          .parked_usec = 9, .lost_usec = 8 });

        /* Keys that we do not know may say what they like, also ones as long as ours. */
        assert_int_equal(parse_stat("new_key abc def\nusage_use_ y\nnr_xxxxx z\n\nusage_usec 5\nvery_long_key_of_a_later_kernel 1\n", &s), 0);
        assert_stat_equal(&s, &(CpuStat) { .usage_usec = 5 });

        /* Half a set is unknown, and its numbers are not shown. */
        assert_int_equal(parse_stat("usage_usec 5\nnr_periods 1\nnr_throttled 1\nnr_bursts 1\nbw_lost_usec 1\n", &s), 0);
        assert_stat_equal(&s, &(CpuStat) { .usage_usec = 5 });

        for (size_t i = 0; i < ELEMENTSOF(damaged); i++) {
                memset(&s, 0x5a, sizeof(s));
                untouched = s;
                if (parse_stat(damaged[i], &s) != -EBADMSG)
                        fail_msg("taken: %s", damaged[i]);
                assert_memory_equal(&s, &untouched, sizeof(s));
        }
        /* Only the given length counts. */
        assert_int_equal(cpu_stat_parse("usage_usec 123", 12, &s), 0);
        assert_int_equal(s.usage_usec, 1);
        assert_int_equal(cpu_stat_parse("usage_usec 123", 11, &s), -EBADMSG);
        assert_int_equal(cpu_stat_parse("usage_usec 1\0\n", 14, &s), -EBADMSG);
}

/* ---- cpu.pressure ---- */

static const struct {
        const char *file;
        CpuPressure pressure;
} cpu_pressures[] = {
        { "6.1-stock/idle.cpu.pressure", { 11958, true, 11958, 0, 0 } },
        { "6.1-stock/root.cpu.pressure", { 5100248, true, 0, 3239, 0 } },
        { "6.1-stock/svc.cpu.pressure", { 3864410, true, 3864410, 2321, 2321 } },
        { "6.12-stock/idle.cpu.pressure", { 1740, true, 1740, 0, 0 } },
        { "6.12-stock/root.cpu.pressure", { 4737160, true, 0, 2676, 0 } },
        { "6.12-stock/svc.cpu.pressure", { 3394850, true, 3394850, 1979, 1979 } },
        { "6.12-sched-core/idle.cpu.pressure", { 2716, true, 2716, 0, 0 } },
        { "6.12-sched-core/root.cpu.pressure", { 4638326, true, 0, 3288, 0 } },
        { "6.12-sched-core/svc.cpu.pressure", { 4042470, true, 4042470, 2472, 2472 } },
        { "6.18-hybrid/group.cpu.pressure", { 0, true, 0, 0, 0 } },
};

static void assert_pressure_equal(const CpuPressure *a, const CpuPressure *b) {
        assert_int_equal(a->some_total_usec, b->some_total_usec);
        assert_int_equal(a->has_full, b->has_full);
        assert_int_equal(a->full_total_usec, b->full_total_usec);
        assert_int_equal(a->some_avg10_permyriad, b->some_avg10_permyriad);
        assert_int_equal(a->full_avg10_permyriad, b->full_avg10_permyriad);
}

static void test_cpu_pressure(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(cpu_pressures); i++) {
                _cleanup_free_ char *text = NULL;
                char name[128];
                CpuPressure p;
                size_t n;

                (void) snprintf(name, sizeof(name), CASES "%s", cpu_pressures[i].file);
                text = case_read(name, &n);
                print_message("%s\n", name);
                assert_int_equal(cpu_pressure_parse(text, n, &p), 0);
                assert_pressure_equal(&p, &cpu_pressures[i].pressure);
        }
}

static void test_cpu_pressure_fields(void **state) {
        static const char *const damaged[] = {
                "", "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "some avg60=0.00 avg300=0.00 total=0\n", "some avg10=0.00\n", "some\n",
                "some avg10=0 total=1\n", "some avg10=.00 total=1\n", "some avg10=0.0 total=1\n", "some avg10=0.000 total=1\n", "some avg10=-1.00 total=1\n",
                "some avg10=1.-1 total=1\n", "some avg10=99999999999.00 total=1\n", "some avg10=0.00 total=\n", "some avg10=0.00 total=-1\n",
                "some avg10=0.00 total=18446744073709551616\n", "some avg10 total=1\n", "some avg10=0.00 total=1\nfull avg10=0.00\n",
        };
        CpuPressure p, untouched;
        const char *text;

        /* Before 5.13 there is no "full" line for the CPU. */
        text = "some avg10=100.00 avg60=9.10 avg300=0.00 total=18446744073709551615\n";
        assert_int_equal(cpu_pressure_parse(text, strlen(text), &p), 0);
        assert_pressure_equal(&p, &(CpuPressure) { UINT64_MAX, false, 0, 10000, 0 });
        text = "later words\nsome new=x avg10=0.07 total=3\nfull total=2 avg10=0.70";
        assert_int_equal(cpu_pressure_parse(text, strlen(text), &p), 0);
        assert_pressure_equal(&p, &(CpuPressure) { 3, true, 2, 7, 70 });

        for (size_t i = 0; i < ELEMENTSOF(damaged); i++) {
                memset(&p, 0x5a, sizeof(p));
                untouched = p;
                if (cpu_pressure_parse(damaged[i], strlen(damaged[i]), &p) != -EBADMSG)
                        fail_msg("taken: %s", damaged[i]);
                assert_memory_equal(&p, &untouched, sizeof(p));
        }
}

/* ---- cpu.max and single numbers ---- */

static void test_cpu_max(void **state) {
        static const struct {
                const char *file;
                uint64_t quota, period;
        } cases[] = {
                { "6.1-stock/idle.cpu.max", QUOTA_UNLIMITED, 100000 },       { "6.1-stock/svc.cpu.max", 20000, 100000 },
                { "6.12-stock/idle.cpu.max", QUOTA_UNLIMITED, 100000 },      { "6.12-stock/svc.cpu.max", 20000, 100000 },
                { "6.12-sched-core/idle.cpu.max", QUOTA_UNLIMITED, 100000 }, { "6.12-sched-core/svc.cpu.max", 20000, 100000 },
        };
        static const char *const damaged[] = {
                "", "\n", "max", "max\n", "max 0\n", "max max\n", "maximum 1\n", "20000\n", "20000 \n", " \n", "-1 100000\n", "20000 100000 1\n", "20000 100000x\n",
                "18446744073709551615 100000\n", "20000 100000\n\n", "20000 100000\nx\n",
        };
        uint64_t quota, period;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = NULL;
                char name[128];
                size_t n;

                (void) snprintf(name, sizeof(name), CASES "%s", cases[i].file);
                text = case_read(name, &n);
                assert_int_equal(cpu_max_parse(text, n, &quota, &period), 0);
                assert_int_equal(quota, cases[i].quota);
                assert_int_equal(period, cases[i].period);
        }
        /* As the kernel rescales a short period. */
        assert_int_equal(cpu_max_parse("1148 22968", 10, &quota, &period), 0);
        assert_int_equal(quota, 1148);
        assert_int_equal(period, 22968);
        for (size_t i = 0; i < ELEMENTSOF(damaged); i++) {
                quota = period = 77;
                if (cpu_max_parse(damaged[i], strlen(damaged[i]), &quota, &period) != -EBADMSG)
                        fail_msg("taken: %s", damaged[i]);
                assert_int_equal(quota, 77);
                assert_int_equal(period, 77);
        }
}

static void test_numbers(void **state) {
        static const struct {
                const char *file;
                uint64_t value;
        } cases[] = {
                { "6.1-stock/idle.cpu.max.burst", 0 },       { "6.1-stock/svc.cpu.max.burst", 10000 },       { "6.1-stock/idle.cpu.weight", 50 },
                { "6.1-stock/svc.cpu.weight", 100 },         { "6.12-stock/idle.cpu.max.burst", 0 },         { "6.12-stock/svc.cpu.max.burst", 10000 },
                { "6.12-stock/idle.cpu.weight", 50 },        { "6.12-stock/svc.cpu.weight", 100 },           { "6.12-sched-core/idle.cpu.max.burst", 0 },
                { "6.12-sched-core/svc.cpu.max.burst", 10000 }, { "6.12-sched-core/idle.cpu.weight", 50 },   { "6.12-sched-core/svc.cpu.weight", 100 },
        };
        static const char *const damaged[] = { "", "\n", " 1", "1 ", "-1", "+1", "1\n\n", "1\n2\n", "0x1", "max", "18446744073709551616" };
        uint64_t n;
        int64_t s;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = NULL;
                char name[128];
                size_t length;

                (void) snprintf(name, sizeof(name), CASES "%s", cases[i].file);
                text = case_read(name, &length);
                assert_int_equal(number_parse(text, length, &n), 0);
                assert_int_equal(n, cases[i].value);
                assert_int_equal(signed_parse(text, length, &s), 0);
                assert_int_equal(s, cases[i].value);
        }
        assert_int_equal(number_parse("18446744073709551615\n", 21, &n), 0);
        assert_true(n == UINT64_MAX);
        for (size_t i = 0; i < ELEMENTSOF(damaged); i++) {
                n = 77;
                assert_int_equal(number_parse(damaged[i], strlen(damaged[i]), &n), -EBADMSG);
                assert_int_equal(n, 77);
        }

        assert_int_equal(signed_parse("-20\n", 4, &s), 0);
        assert_int_equal(s, -20);
        assert_int_equal(signed_parse("-9223372036854775808", 20, &s), 0);
        assert_true(s == INT64_MIN);
        assert_int_equal(signed_parse("9223372036854775807", 19, &s), 0);
        assert_true(s == INT64_MAX);
        assert_int_equal(signed_parse("9223372036854775808", 19, &s), -EBADMSG);
        assert_int_equal(signed_parse("-9223372036854775809", 20, &s), -EBADMSG);
        assert_int_equal(signed_parse("-", 1, &s), -EBADMSG);
        assert_int_equal(signed_parse("--1", 3, &s), -EBADMSG);
        assert_int_equal(signed_parse("", 0, &s), -EBADMSG);
}

/* ---- lists ---- */

typedef struct Tids {
        pid_t tids[16];
        size_t n, stop_at;
} Tids;

static int collect(pid_t tid, void *userdata) {
        Tids *t = userdata;

        assert_true(t->n < ELEMENTSOF(t->tids));
        t->tids[t->n++] = tid;
        return t->n == t->stop_at ? -ECANCELED : 0;
}

static void test_tids(void **state) {
        static const struct {
                const char *file;
                pid_t tid;
        } cases[] = {
                { "6.1-stock/idle.cgroup.threads", 219 },       { "6.1-stock/svc.cgroup.threads", 217 },   { "6.12-stock/idle.cgroup.threads", 265 },
                { "6.12-stock/svc.cgroup.threads", 263 },       { "6.12-sched-core/idle.cgroup.threads", 152 }, { "6.12-sched-core/svc.cgroup.threads", 150 },
        };
        static const char *const damaged[] = { "1\n\n2\n", "x\n", "-1\n", "2147483648\n", " 1\n", "1 \n" };
        Tids t;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = NULL;
                char name[128];
                size_t n;

                (void) snprintf(name, sizeof(name), CASES "%s", cases[i].file);
                text = case_read(name, &n);
                t = (Tids) {};
                assert_int_equal(tids_parse(text, n, collect, &t), 0);
                assert_int_equal(t.n, 1);
                assert_int_equal(t.tids[0], cases[i].tid);
        }
        t = (Tids) {};
        assert_int_equal(tids_parse("1\n0\n0\n2147483647\n4194304", 24, collect, &t), 0);
        assert_int_equal(t.n, 5);
        assert_int_equal(t.tids[1], 0);
        assert_int_equal(t.tids[3], 2147483647);
        assert_int_equal(t.tids[4], 4194304);
        t = (Tids) { .stop_at = 2 };
        assert_int_equal(tids_parse("1\n2\n3\n", 6, collect, &t), -ECANCELED);
        assert_int_equal(t.n, 2);
        t = (Tids) {};
        assert_int_equal(tids_parse("", 0, collect, &t), 0);
        assert_int_equal(t.n, 0);
        for (size_t i = 0; i < ELEMENTSOF(damaged); i++) {
                t = (Tids) {};
                assert_int_equal(tids_parse(damaged[i], strlen(damaged[i]), collect, &t), -EBADMSG);
        }
}

static void test_words(void **state) {
        static const struct {
                const char *file, *word;
                bool there;
        } cases[] = {
                { "6.1-stock/root.cgroup.controllers", "cpu", true },       { "6.1-stock/root.cgroup.controllers", "cpuset", true },
                { "6.1-stock/root.cgroup.controllers", "misc", true },      { "6.12-stock/root.cgroup.controllers", "cpu", true },
                { "6.12-sched-core/root.cgroup.controllers", "cpu", true }, { "6.12-sched-core/root.cgroup.controllers", "rdma", false },
                { "6.12-sched-core/root.cgroup.controllers", "pids", true },
                /* The controller is bound to v1 there. */
                { "6.18-hybrid/root.cgroup.controllers", "cpu", false },    { "6.18-hybrid/root.cgroup.controllers", "hugetlb", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = NULL;
                char name[128];
                size_t n;

                (void) snprintf(name, sizeof(name), CASES "%s", cases[i].file);
                text = case_read(name, &n);
                assert_int_equal(word_list_contains(text, n, cases[i].word), cases[i].there);
        }
        assert_false(word_list_contains("cpuset cpuacct\n", 15, "cpu"));
        assert_false(word_list_contains("", 0, "cpu"));
        assert_false(word_list_contains("cpu", 2, "cpu"));
        assert_true(word_list_contains("a  cpu", 6, "cpu"));
}

static void test_populated(void **state) {
        static const char *const files[] = {
                "6.1-stock/idle.cgroup.events", "6.1-stock/svc.cgroup.events", "6.12-stock/idle.cgroup.events", "6.12-stock/svc.cgroup.events",
                "6.12-sched-core/idle.cgroup.events", "6.12-sched-core/svc.cgroup.events",
        };
        static const char *const damaged[] = { "", "frozen 0\n", "populated\n", "populated 2\n", "populated 01\n", "populated 1 0\n", "populatedx 1\n" };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                _cleanup_free_ char *text = NULL;
                char name[128];
                size_t n;

                (void) snprintf(name, sizeof(name), CASES "%s", files[i]);
                text = case_read(name, &n);
                assert_int_equal(populated_parse(text, n), 1);
        }
        assert_int_equal(populated_parse("frozen 0\npopulated 0", 20), 0);
        for (size_t i = 0; i < ELEMENTSOF(damaged); i++)
                assert_int_equal(populated_parse(damaged[i], strlen(damaged[i])), -EBADMSG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cpu_stat), cmocka_unit_test(test_cpu_stat_fields), cmocka_unit_test(test_cpu_pressure),
                cmocka_unit_test(test_cpu_pressure_fields), cmocka_unit_test(test_cpu_max), cmocka_unit_test(test_numbers), cmocka_unit_test(test_tids),
                cmocka_unit_test(test_words), cmocka_unit_test(test_populated),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
