/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* top: rates from two answers, rows that come and go, and lines that never are wider than the terminal. */

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "client/text.h"
#include "client/top-view.h"

/* A group as GET /v1/groups has it; numbers in µs. */
static json_t *group(const char *cgroup, const char *unit, const char *class_name, const char *at, json_int_t usage, json_int_t periods, json_int_t throttled,
                     json_int_t throttled_usec, json_int_t some) {
        return json_pack("{s:s, s:s?, s:s?, s:s, s:b, s:s, s:{s:s, s:I, s:i, s:i, s:{s:I, s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:i, s:i}, s:{s:i, s:i}},"
                         " s:{s:s, s:{s:i, s:i, s:i}}, s:{s:i}, s:{s:s}, s:n}",
                         "cgroup", cgroup, "unit", unit, "class", class_name, "state", "applied", "drift", 0, "law", "captain",
                         "sample", "at", at, "window_usec", (json_int_t) 100000, "usage_permyriad_of_cpu", 1111, "throttled_permyriad", 2222,
                         "total", "usage_usec", usage, "nr_periods", periods, "nr_throttled", throttled, "throttled_usec", throttled_usec, "burst_usec", (json_int_t) 0,
                         "pressure", "some_total_usec", some, "full_total_usec", (json_int_t) 0, "some_avg10_permyriad", 333, "full_avg10_permyriad", 44,
                         "window", "throttled_usec", 5000, "burst_usec", 0,
                         "bandwidth", "status", "applied", "observed", "quota_usec", 50000, "period_usec", 100000, "burst_usec", 0,
                         "latency", "slice_nsec", 105000, "cookie", "cookie_id", "00000000deadbeef", "last_decision");
}

#define T0 "2026-01-02T03:04:05.000000Z"
#define T2 "2026-01-02T03:04:07.000000Z"
#define NOW UINT64_C(1767323045000000)

static TopRow *row_of(TopModel *m, const char *cgroup) {
        for (size_t i = 0; i < m->n_rows; i++)
                if (streq(m->rows[i]->cgroup, cgroup))
                        return m->rows[i];
        fail_msg("no row %s", cgroup);
        return NULL;
}

static void update(TopModel *m, uint64_t now, json_t *a, json_t *b) {
        json_t *groups = json_array();

        if (a)
                json_array_append_new(groups, a);
        if (b)
                json_array_append_new(groups, b);
        assert_int_equal(top_model_update(m, groups, now), 0);
        json_decref(groups);
}

static void test_rates(void **state) {
        TopModel m = {};
        TopRow *r;

        update(&m, NOW, group("/a", "a.service", "batch", T0, 1000000, 100, 10, 50000, 7000), NULL);
        r = row_of(&m, "/a");
        /* one answer: what the daemon's own window says */
        assert_int_equal(r->use_permyriad, 1111);
        assert_int_equal(r->throttled_permyriad, 2222);
        assert_int_equal(r->throttled_usec_per_sec, 50000);
        assert_int_equal(r->some_permyriad, 333);
        assert_string_equal(r->cookie, "beef");
        assert_int_equal(r->controller, CONTROLLER_STEADY);

        /* two: the difference over the two seconds between their samples */
        update(&m, NOW + 2 * USEC_PER_SEC, group("/a", "a.service", "batch", T2, 1800000, 120, 15, 90000, 1007000), NULL);
        assert_ptr_equal(row_of(&m, "/a"), r);
        assert_int_equal(r->use_permyriad, 4000);
        assert_int_equal(r->throttled_permyriad, 2500);
        assert_int_equal(r->throttled_usec_per_sec, 20000);
        assert_int_equal(r->some_permyriad, 5000);

        /* the same sample again: the rates stay */
        update(&m, NOW + 3 * USEC_PER_SEC, group("/a", "a.service", "batch", T2, 1800000, 120, 15, 90000, 1007000), NULL);
        assert_int_equal(r->use_permyriad, 4000);

        /* another group under the same path counts from the start: no wrap-around */
        update(&m, NOW + 4 * USEC_PER_SEC, group("/a", "a.service", "batch", "2026-01-02T03:04:09.000000Z", 500, 1, 0, 0, 0), NULL);
        assert_int_equal(r->use_permyriad, 0);
        assert_int_equal(r->throttled_permyriad, 0);
        top_model_clear(&m);
}

static void test_rows_come_and_go(void **state) {
        TopModel m = {};

        update(&m, NOW, group("/b", NULL, NULL, T0, 0, 0, 0, 0, 0), group("/a", NULL, NULL, T0, 0, 0, 0, 0, 0));
        assert_int_equal(m.n_rows, 2);
        assert_string_equal(m.rows[0]->cgroup, "/a");
        update(&m, NOW, group("/c", NULL, NULL, T0, 0, 0, 0, 0, 0), group("/b", NULL, NULL, T0, 0, 0, 0, 0, 0));
        assert_int_equal(m.n_rows, 2);
        assert_string_equal(m.rows[0]->cgroup, "/b");
        assert_string_equal(m.rows[1]->cgroup, "/c");
        update(&m, NOW, NULL, NULL);
        assert_int_equal(m.n_rows, 0);
        top_model_clear(&m);
}

static void test_controller(void **state) {
        TopModel m = {};
        json_t *g = group("/a", NULL, "batch", T0, 0, 0, 0, 0, 0);

        json_object_set_new(g, "last_decision", json_pack("{s:s, s:s, s:s, s:{s:i, s:i, s:i}, s:{s:i, s:i, s:i}}", "at", T0, "trigger", "law", "text", "raised",
                                                          "before", "quota_usec", 40000, "period_usec", 100000, "burst_usec", 0,
                                                          "after", "quota_usec", 50000, "period_usec", 100000, "burst_usec", 0));
        update(&m, NOW + USEC_PER_SEC, json_incref(g), NULL);
        assert_int_equal(m.rows[0]->controller, CONTROLLER_RAISING);
        update(&m, NOW + 60 * USEC_PER_SEC, json_incref(g), NULL);
        assert_int_equal(m.rows[0]->controller, CONTROLLER_STEADY);
        json_object_set_new(g, "paused", json_true());
        update(&m, NOW, json_incref(g), NULL);
        assert_int_equal(m.rows[0]->controller, CONTROLLER_PAUSED);
        json_object_set_new(g, "paused", json_false());
        json_object_set_new(g, "state", json_string("held"));
        update(&m, NOW, json_incref(g), NULL);
        assert_int_equal(m.rows[0]->controller, CONTROLLER_HELD);
        json_decref(g);
        top_model_clear(&m);
}

/* Names of the selected rows, joined. */
static void assert_order(TopModel *m, TopFilter filter, const char *expected) {
        char got[256] = "";
        size_t n = 0;
        _cleanup_free_ TopRow **rows = top_model_select(m, &filter, &n);

        assert_non_null(rows);
        for (size_t i = 0; i < n; i++) {
                strcat(got, i > 0 ? " " : "");
                for (unsigned d = 0; d < rows[i]->depth; d++)
                        strcat(got, ">");
                strcat(got, rows[i]->cgroup);
        }
        assert_string_equal(got, expected);
}

static void test_order(void **state) {
        TopModel m = {};
        json_t *groups = json_array();

        json_array_append_new(groups, group("/x", NULL, "batch", T0, 0, 0, 0, 0, 0));
        json_array_append_new(groups, group("/x-y", NULL, "interactive", T0, 0, 0, 0, 0, 0));
        json_array_append_new(groups, group("/x/z", NULL, "batch", T0, 0, 0, 0, 0, 0));
        json_array_append_new(groups, group("/x/z/deep", NULL, NULL, T0, 0, 0, 0, 0, 0));
        assert_int_equal(top_model_update(&m, groups, NOW), 0);
        json_decref(groups);
        row_of(&m, "/x")->use_permyriad = 5;
        row_of(&m, "/x/z")->use_permyriad = 9;
        row_of(&m, "/x-y")->use_permyriad = 7;
        row_of(&m, "/x/z/deep")->use_permyriad = 1;
        row_of(&m, "/x/z/deep")->throttled_permyriad = 9999;
        assert_order(&m, (TopFilter) { .sort = SORT_CPU }, "/x/z /x-y /x /x/z/deep");
        assert_order(&m, (TopFilter) { .sort = SORT_CPU, .reverse = true }, "/x/z/deep /x /x-y /x/z");
        assert_order(&m, (TopFilter) { .sort = SORT_THROTTLED }, "/x/z/deep /x /x-y /x/z");
        assert_order(&m, (TopFilter) { .sort = SORT_NAME }, "/x /x-y /x/z /x/z/deep");
        assert_order(&m, (TopFilter) { .sort = SORT_CLASS }, "/x /x/z /x-y /x/z/deep");
        /* what is in a group stands below it, whatever sorts between */
        assert_order(&m, (TopFilter) { .tree = true }, "/x >/x/z >>/x/z/deep /x-y");
        assert_order(&m, (TopFilter) { .tree = true, .text = "DEEP" }, "/x/z/deep");
        assert_order(&m, (TopFilter) { .text = "interactive" }, "/x-y");
        assert_order(&m, (TopFilter) { .text = "nothing" }, "");
        top_model_clear(&m);
}

static void assert_sparkline(const TopRow *r, bool utf8, size_t width, uint64_t now, const char *expected) {
        Client c = { .utf8 = utf8 };
        _cleanup_free_ char *got = NULL;
        size_t length;
        FILE *f = open_memstream(&got, &length);

        top_view_sparkline(f, &c, r, width, now);
        fclose(f);
        assert_string_equal(got, expected);
}

static void test_sparkline(void **state) {
        TopRow r = { .has_bandwidth = true, .bandwidth = { 50000, 100000, 0 } };
        uint64_t now = NOW / USEC_PER_SEC;

        assert_sparkline(&r, false, 6, NOW, "      ");
        /* now: the whole quota; 15 s ago: half of it; 65 s ago: no longer shown */
        r.seconds[now % TOP_SECONDS] = (TopSecond) { now, 5000, false };
        r.seconds[(now - 15) % TOP_SECONDS] = (TopSecond) { now - 15, 2500, false };
        r.seconds[(now - 5) % TOP_SECONDS] = (TopSecond) { now - 65, 5000, false };
        assert_sparkline(&r, false, 6, NOW, "    -#");
        assert_sparkline(&r, true, 6, NOW, "    \xe2\x96\x84\xe2\x96\x88");
        assert_sparkline(&r, false, 62, NOW, "                                              -              #");
        assert_sparkline(&r, false, 0, NOW, "");
        /* above the quota, with the burst: still one character */
        r.seconds[now % TOP_SECONDS].use_permyriad = 90000;
        assert_sparkline(&r, false, 1, NOW, "#");
}

/* No line is wider than the terminal, whatever the terminal and the names. */
static void test_width(void **state) {
        static const char *const names[] = { "a", "a-name-that-is-much-longer-than-any-column-that-a-terminal-has-for-it.service", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac.service",
                                             "evil\033[2J\n.service" };
        TopModel m = {};
        json_t *groups = json_array();
        TopHead head = { "cpuclassd 0.1.0: a head that is so long that it has to be cut on a narrow terminal, and goes on and on", "trouble" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char path[256];
                json_t *g;

                (void) snprintf(path, sizeof(path), "/system.slice/%zu/%s", i, names[i]);
                g = group(path, i % 2 ? names[i] : NULL, i == 1 ? "a-class-with-a-very-long-name-indeed" : "batch", T0, 0, 0, 0, 0, 0);
                json_object_set_new(g, "drift", json_boolean(i == 1));
                json_array_append_new(groups, g);
        }
        assert_int_equal(top_model_update(&m, groups, NOW), 0);
        json_decref(groups);
        for (unsigned tree = 0; tree < 2; tree++)
                for (size_t width = 40; width < 260; width++) {
                        Client c = { .utf8 = true };
                        TopFilter filter = { .tree = tree };
                        TopScreen screen = { .width = width, .height = 8, .selected = 1, .keys = "keys that are many, so many that they do not fit a narrow terminal either" };
                        size_t n = 0, length, lines = 0;
                        _cleanup_free_ TopRow **rows = top_model_select(&m, &filter, &n);
                        _cleanup_free_ char *text = NULL;
                        FILE *f = open_memstream(&text, &length);

                        top_view_print(f, &c, &head, rows, n, &filter, &screen, NOW, false);
                        fclose(f);
                        assert_null(strchr(text, '\033'));
                        for (char *line = text, *end; line; line = end ? end + 1 : NULL, lines++) {
                                end = strchr(line, '\n');
                                if (end)
                                        *end = 0;
                                if (text_width(line) > width)
                                        fail_msg("%zu columns at width %zu: %s", text_width(line), width, line);
                        }
                        assert_int_equal(lines, 8);
                }
        top_model_clear(&m);
}

static void test_cut(void **state) {
        static const struct {
                const char *in;
                size_t width;
                const char *end, *front;
        } cases[] = {
                { "abc", 3, "abc", "abc" },
                { "abcdef", 4, "abc~", "~def" },
                { "abcdef", 1, "~", "~" },
                { "abcdef", 0, "", "" },
                { "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 4, "\xe6\x97\xa5~", "~\xe8\xaa\x9e" },  /* two columns each */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *end = text_cut(cases[i].in, cases[i].width, false), *front = text_cut_front(cases[i].in, cases[i].width, false);

                assert_string_equal(end, cases[i].end);
                assert_string_equal(front, cases[i].front);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rates),
                cmocka_unit_test(test_rows_come_and_go),
                cmocka_unit_test(test_controller),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_sparkline),
                cmocka_unit_test(test_width),
                cmocka_unit_test(test_cut),
        };

        (void) setlocale(LC_ALL, "C.UTF-8");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
