/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Traces as input that may be anything, and the arithmetic by which laws are compared. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "policies/sim-compare.h"
#include "policies/sim-trace.h"

#define MS UINT64_C(1000)
#define HEAD "{\"cpuclass_trace\":1, \"group\":\"web.service\", \"n_cpus\":8}\n"
#define SAMPLE(t, use) "{\"t_usec\":" t ", \"window_usec\":100000, \"usage_usec\":" use ", \"nr_periods\":1, \"nr_throttled\":0, \"throttled_usec\":0, " \
        "\"quota_usec\":50000, \"period_usec\":100000, \"burst_usec\":0}\n"

/* ---- traces ---- */

static void test_a_trace_is_read(void **userdata) {
        const char text[] = HEAD SAMPLE("100000", "41000") "\n" SAMPLE("300000", "0") "{\"t_usec\":400000, \"window_usec\":1000";
        DiagList list = {};
        SimTrace t;

        assert_int_equal(sim_trace_parse("t", text, strlen(text), &t, &list), 0);
        assert_string_equal(t.group, "web.service");
        assert_int_equal(t.n_cpus, 8);
        assert_int_equal(t.n_samples, 2); /* the last line was cut while it was written */
        assert_int_equal(t.samples[0].usage_usec, 41000);
        assert_int_equal(t.samples[1].live.quota_usec, 50000);
        assert_int_equal(sim_trace_duration_usec(&t), 300000);
        assert_int_equal(sim_trace_throttled_permyriad(&t), 0);
        sim_trace_clear(&t);
        diag_list_clear(&list);
}

static void test_what_is_written_is_read(void **userdata) {
        SimTraceSample s = { .at_usec = 1000000, .window_usec = 100000, .usage_usec = 12345, .nr_periods = 1, .nr_throttled = 1, .throttled_usec = 77,
                             .live = { QUOTA_UNLIMITED, 100000, 5 } };
        json_t *head = sim_trace_header("a \"b\"\n", 4, NULL), *line = sim_trace_sample_to_json(&s);
        char *one = json_dumps(head, JSON_COMPACT), *two = json_dumps(line, JSON_COMPACT), text[1024];
        DiagList list = {};
        SimTrace t;

        assert_true(snprintf(text, sizeof(text), "%s\n%s\n", one, two) < (int) sizeof(text));
        assert_int_equal(sim_trace_parse("t", text, strlen(text), &t, &list), 0);
        assert_string_equal(t.group, "a \"b\"\n");
        assert_memory_equal(&t.samples[0], &s, sizeof(s));
        assert_int_equal(sim_trace_throttled_permyriad(&t), 10000);
        sim_trace_clear(&t);
        free(one);
        free(two);
        json_decref(head);
        json_decref(line);
}

/* Each wrong trace says where and what, and changes nothing. */
static void test_wrong_traces(void **userdata) {
        static const struct {
                const char *text, *pointer;
                unsigned line;
        } cases[] = {
                { "", "", 0 },
                { "not json\n", "", 1 },
                { "[]\n", "", 1 },
                { "{\"cpuclass_trace\":2, \"n_cpus\":8}\n", "/cpuclass_trace", 1 },
                { "{\"cpuclass_trace\":1, \"n_cpus\":0}\n", "/n_cpus", 1 },
                { "{\"cpuclass_trace\":1, \"n_cpus\":65}\n", "/n_cpus", 1 },
                { HEAD, "", 0 },
                { HEAD SAMPLE("100000", "-1"), "/usage_usec", 2 },
                { HEAD SAMPLE("100000", "\"x\""), "/usage_usec", 2 },
                { HEAD SAMPLE("100000", "1.5"), "/usage_usec", 2 },
                { HEAD SAMPLE("100000", "99999999999999999999"), "", 2 },
                { HEAD SAMPLE("100000", "1, \"usage_usec\":2"), "", 2 },
                { HEAD SAMPLE("99999", "1"), "/t_usec", 2 },                             /* begins before the recording */
                { HEAD SAMPLE("200000", "1") SAMPLE("250000", "1"), "/t_usec", 3 },      /* overlaps */
                { HEAD "{\"t_usec\":100000}\n", "/window_usec", 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                SimTrace t = { .n_cpus = 77 };
                DiagList list = {};

                assert_int_equal(sim_trace_parse("file", cases[i].text, strlen(cases[i].text), &t, &list), -EINVAL);
                assert_int_equal(t.n_cpus, 77);
                assert_true(list.n_items >= 1);
                assert_string_equal(list.items[0].file, "file");
                assert_int_equal(list.items[0].line, cases[i].line);
                assert_string_equal(list.items[0].pointer, cases[i].pointer);
                diag_list_clear(&list);
        }
}

static void test_a_trace_as_requests_uses_what_was_used(void **userdata) {
        SimTraceSample samples[] = {
                { .at_usec = 100 * MS, .window_usec = 100 * MS, .usage_usec = 41 * MS },
                { .at_usec = 300 * MS, .window_usec = 100 * MS, .usage_usec = 0 },
                { .at_usec = 400 * MS, .window_usec = 100 * MS, .usage_usec = 350 * MS },
                { .at_usec = 500 * MS, .window_usec = 100 * MS, .usage_usec = 1 },
        };
        SimTrace t = { .n_cpus = 4, .samples = samples, .n_samples = 4 };
        SimSource *s = sim_trace_source_new(&t, 5 * MS, 7);
        uint64_t used[4] = {}, last = 0, n = 0;
        SimRequest q;

        while (s->next(s, &q)) {
                assert_true(q.arrival_usec >= last);
                assert_true(q.work_usec <= 5 * MS);
                last = q.arrival_usec;
                for (size_t i = 0; i < 4; i++)
                        if (q.arrival_usec >= samples[i].at_usec - samples[i].window_usec && q.arrival_usec < samples[i].at_usec)
                                used[i] += q.work_usec;
                n++;
        }
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(used[i], samples[i].usage_usec);
        assert_int_equal(n, 9 + 70 + 1);
        (void) sim_source_free(s);
}

/* ---- comparing ---- */

static SimFrontier frontier_of(size_t n, const double points[][2]) {
        SimFrontier f = { .n = n };

        for (size_t i = 0; i < n; i++)
                f.points[i].score = (SimScore) { .allocated_cpus = points[i][0], .p99_usec = points[i][1] };
        return f;
}

static void assert_near(double a, double b) {
        assert_true(fabs(a - b) <= 1e-9 * fabs(b));
}

static void test_frontiers_are_read_fairly(void **userdata) {
        static const double points[][2] = { { 1, 1000 }, { 2, 100 }, { 3, 400 }, { 4, 10 } };
        SimFrontier f = frontier_of(4, points);

        /* at an allocation: the best that it could have been set to, between points by the logarithm */
        assert_near(sim_frontier_p99_at(&f, 2), 100);
        assert_near(sim_frontier_p99_at(&f, sqrt(2)), sqrt(1000 * 100));
        assert_near(sim_frontier_p99_at(&f, 3.5), 100 > 400 ? 400 : MIN_OF(100.0, exp(log(100) + log(3.5 / 2) / log(2) * log(0.1))));
        assert_near(sim_frontier_p99_at(&f, 9), 10);
        assert_near(sim_frontier_p99_at(&f, 0.5), 1000); /* it can't be set so low: its leanest */

        /* at a p99: the least that reaches it */
        assert_near(sim_frontier_allocation_at(&f, 100), 2);
        assert_near(sim_frontier_allocation_at(&f, 5000), 1);
        assert_near(sim_frontier_allocation_at(&f, sqrt(100 * 10)), sqrt(2 * 4));
        assert_true(sim_frontier_allocation_at(&f, 9) < 0);
}

static void test_contenders_by_name(void **userdata) {
        static const char *const names[] = { "static", "burst", "koordlet", "captain", "adaptive", "captain+burst", "koordlet+burst", "static+burst" };
        SimContender c;
        char text[24];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                assert_int_equal(sim_contender_from_string(names[i], &c), 0);
                assert_string_equal(sim_contender_to_string(c, text), names[i]);
        }
        assert_int_equal(sim_contender_from_string("captain+", &c), -EINVAL);
        assert_int_equal(sim_contender_from_string("+burst", &c), -EINVAL);
        assert_int_equal(sim_contender_from_string("", &c), -EINVAL);
        assert_int_equal(sim_contender_from_string("a-very-long-name-that-is-no-law", &c), -EINVAL);
}

/* A short run of the whole comparison: the adaptive law must hold its ground where it is strong, with seeds that nothing was tuned on. */
static void test_adaptive_beats_captain_on_a_start_up(void **userdata) {
        SimVerdict v;

        assert_int_equal(sim_verdict(sim_workload_find("startup"), (SimContender) { LAW_ADAPTIVE, true }, 2, (SimSeeds) { 501, 2 }, 240 * USEC_PER_SEC, &v), 0);
        assert_true(v.captain_allocation < 0.85);
        assert_true(v.captain_p99 < 0.2);
        assert_true(v.captain_burst_allocation < 0.92);
        assert_true(v.static_p99 < 0.5);
        assert_true(fabs(v.koordlet_allocation) < 0.6);
        assert_true(v.own.reaction_p50_usec < 200e3);
}

static void test_scores_need_seeds_and_time(void **userdata) {
        SimScore s;

        assert_int_equal(sim_score(sim_workload_at(0), (SimContender) { LAW_STATIC, false }, 100, (SimSeeds) { 1, 0 }, USEC_PER_SEC, &s), -EINVAL);
        assert_int_equal(sim_score(sim_workload_at(0), (SimContender) { LAW_STATIC, false }, 100, (SimSeeds) { 1, 1 }, 0, &s), -EINVAL);
        assert_null(sim_workload_at(sim_workload_count()));
        assert_null(sim_workload_find("no such"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_trace_is_read),
                cmocka_unit_test(test_what_is_written_is_read),
                cmocka_unit_test(test_wrong_traces),
                cmocka_unit_test(test_a_trace_as_requests_uses_what_was_used),
                cmocka_unit_test(test_frontiers_are_read_fairly),
                cmocka_unit_test(test_contenders_by_name),
                cmocka_unit_test(test_adaptive_beats_captain_on_a_start_up),
                cmocka_unit_test(test_scores_need_seeds_and_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
