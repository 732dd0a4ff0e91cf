/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What people type: durations, amounts, targets; and what the daemon's answers mean as an exit code. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/http.h"
#include "client/target.h"

static void test_duration_parse(void **state) {
        static const struct {
                const char *text;
                int result;
                uint64_t usec;
        } cases[] = {
                { "10m", 0, 600 * USEC_PER_SEC },
                { "1h30m", 0, 5400 * USEC_PER_SEC },
                { "500ms", 0, 500000 },
                { "90", 0, 90 * USEC_PER_SEC },
                { "0", 0, 0 },
                { "2 days 3 hours", 0, UINT64_C(183600) * USEC_PER_SEC },
                { "1w", 0, UINT64_C(604800) * USEC_PER_SEC },
                { "1s 500ms 20us", 0, 1500020 },
                { "7\xc2\xb5s", 0, 7 },
                { " 5s ", 0, 5 * USEC_PER_SEC },
                { "", -EINVAL, 0 },
                { " ", -EINVAL, 0 },
                { "m", -EINVAL, 0 },
                { "-5s", -EINVAL, 0 },
                { "+5s", -EINVAL, 0 },
                { "5x", -EINVAL, 0 },
                { "1.5h", -EINVAL, 0 },
                { "1m1h", -EINVAL, 0 },     /* the larger unit stands first */
                { "1m 1m", -EINVAL, 0 },
                { "1h 30", -EINVAL, 0 },    /* 30 of what? */
                { "10M", -EINVAL, 0 },
                { "1h,30m", -EINVAL, 0 },
                { "18446744073709551615us", 0, UINT64_MAX },
                { "18446744073709551616us", -ERANGE, 0 },
                { "18446744073709551615s", -ERANGE, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t usec = 4711;

                assert_int_equal(duration_parse(cases[i].text, &usec), cases[i].result);
                assert_true(usec == (cases[i].result == 0 ? cases[i].usec : 4711));
        }
}

static void test_duration_format(void **state) {
        static const struct {
                uint64_t usec;
                const char *text;
        } cases[] = {
                { 0, "0" },
                { 1, "1us" },
                { 999, "999us" },
                { 2500, "2.5ms" },
                { 105, "105us" },
                { 100000, "100ms" },
                { 1500000, "1.5s" },
                { 59999999, "59.999s" },
                { 60 * USEC_PER_SEC, "1m" },
                { 5400 * USEC_PER_SEC, "1h 30m" },
                { 5401 * USEC_PER_SEC, "1h 30m" },
                { UINT64_C(86400) * USEC_PER_SEC, "1d" },
                { UINT64_MAX, "30500568w 6d" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char buffer[64];

                assert_string_equal(duration_format(cases[i].usec, buffer, sizeof(buffer)), cases[i].text);
        }
        /* a small buffer is cut, never overrun */
        for (size_t size = 1; size < 8; size++) {
                char small[16];

                memset(small, 'x', sizeof(small));
                (void) duration_format(5400 * USEC_PER_SEC, small, size);
                assert_int_equal(small[size], 'x');
                assert_true(strlen(small) < size);
        }
}

static void test_amount(void **state) {
        static const struct {
                const char *text;
                AmountKind bare, kind;
                uint64_t value;
        } cases[] = {
                { "150%", AMOUNT_PERCENT_OF_CPU, AMOUNT_PERCENT_OF_CPU, 150 },
                { "50%", AMOUNT_PERCENT_OF_QUOTA, AMOUNT_PERCENT_OF_QUOTA, 50 },
                { "50%base", AMOUNT_PERCENT_OF_CPU, AMOUNT_PERCENT_OF_BASE, 50 },
                { "50%quota", AMOUNT_PERCENT_OF_CPU, AMOUNT_PERCENT_OF_QUOTA, 50 },
                { "200%cpu", AMOUNT_PERCENT_OF_QUOTA, AMOUNT_PERCENT_OF_CPU, 200 },
                { "20ms", AMOUNT_PERCENT_OF_CPU, AMOUNT_USEC, 20000 },
                { "1s500ms", AMOUNT_PERCENT_OF_CPU, AMOUNT_USEC, 1500000 },
                { "max", AMOUNT_PERCENT_OF_CPU, AMOUNT_MAX, 0 },
                { "keep", AMOUNT_PERCENT_OF_CPU, AMOUNT_KEEP, 0 },
                { "full", AMOUNT_PERCENT_OF_QUOTA, AMOUNT_FULL, 0 },
        };
        static const char *const wrong[] = { "", "20", "abc", "12.5%", "-5%", "5%%", "5%foo", "%", "MAX", "99999999999999999999%" };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *why = NULL;
                Amount a = {};

                assert_int_equal(amount_parse(cases[i].text, cases[i].bare, &a, &why), 0);
                assert_int_equal(a.kind, cases[i].kind);
                assert_true(a.value == cases[i].value);
        }
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                const char *why = NULL;
                Amount a = {};

                assert_int_equal(amount_parse(wrong[i], AMOUNT_PERCENT_OF_CPU, &a, &why), -EINVAL);
                assert_non_null(why);
        }
}

static void test_argument(void **state) {
        static const struct {
                const char *text;
                ArgumentKind kind;
                const char *value, *url;
        } cases[] = {
                { "nginx", ARGUMENT_UNIT, "nginx.service", "/v1/assignments/unit/nginx.service" },
                { "nginx.service", ARGUMENT_UNIT, "nginx.service", "/v1/assignments/unit/nginx.service" },
                { "web.slice", ARGUMENT_UNIT, "web.slice", "/v1/assignments/unit/web.slice" },
                { "foo.bar", ARGUMENT_UNIT, "foo.bar.service", "/v1/assignments/unit/foo.bar.service" },
                { ".service", ARGUMENT_UNIT, ".service.service", "/v1/assignments/unit/.service.service" },
                { "web@1", ARGUMENT_UNIT, "web@1.service", "/v1/assignments/unit/web%401.service" },
                { "a\\x2db", ARGUMENT_UNIT, "a\\x2db.service", "/v1/assignments/unit/a%5Cx2db.service" },
                { "my app", ARGUMENT_UNIT, "my\\x20app.service", "/v1/assignments/unit/my%5Cx20app.service" },
                { "e\033[m", ARGUMENT_UNIT, "e\\x1b\\x5bm.service", "/v1/assignments/unit/e%5Cx1b%5Cx5bm.service" },
                { "/", ARGUMENT_CGROUP, "/", "/v1/assignments/cgroup?path=%2F" },
                { "/a b/100%/", ARGUMENT_CGROUP, "/a b/100%", "/v1/assignments/cgroup?path=%2Fa%20b%2F100%25" },
                { "/x\xff&y=1#?", ARGUMENT_CGROUP, "/x\xff&y=1#?", "/v1/assignments/cgroup?path=%2Fx%FF%26y%3D1%23%3F" },
                { "pod:AB_12-cd", ARGUMENT_POD, "ab-12-cd", "/v1/assignments/pod/ab-12-cd" },
                { "1234", ARGUMENT_PID, "1234", NULL },
        };
        static const char *const wrong[] = { "", "/a\nb", "pod:", "pod:a/b", "0", "99999999999", "4294967296" };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_argument_ Argument a = {};
                _cleanup_free_ char *url = NULL;
                const char *why = NULL;

                assert_int_equal(argument_parse(cases[i].text, &a, &why), 0);
                assert_int_equal(a.kind, cases[i].kind);
                assert_string_equal(a.text, cases[i].value);
                url = argument_assignment_url(&a, NULL);
                if (cases[i].url)
                        assert_string_equal(url, cases[i].url);
                else
                        assert_null(url);
        }
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                Argument a = {};
                const char *why = NULL;

                assert_int_equal(argument_parse(wrong[i], &a, &why), -EINVAL);
                assert_non_null(why);
                assert_null(a.text);
        }
}

static void test_argument_url_query(void **state) {
        Argument unit = { ARGUMENT_UNIT, (char *) "a.service" }, path = { ARGUMENT_CGROUP, (char *) "/a" };
        _cleanup_free_ char *first = argument_assignment_url(&unit, "dry_run", "true", "steal", NULL, "wait", "applied", NULL);
        _cleanup_free_ char *second = argument_assignment_url(&path, "dry_run", "true", NULL);
        _cleanup_free_ char *third = url_with_query("/v1/groups", "class", NULL, "after", "x&y", "limit", "5", NULL);

        assert_string_equal(first, "/v1/assignments/unit/a.service?dry_run=true&wait=applied");
        assert_string_equal(second, "/v1/assignments/cgroup?path=%2Fa&dry_run=true");
        assert_string_equal(third, "/v1/groups?after=x%26y&limit=5");
}

static void test_long_unit(void **state) {
        char name[300];
        Argument a = {};
        const char *why = NULL;

        memset(name, 'a', sizeof(name) - 1);
        name[sizeof(name) - 1] = 0;
        assert_int_equal(argument_parse(name, &a, &why), -EINVAL);
        name[247] = 0;
        assert_int_equal(argument_parse(name, &a, &why), 0);
        assert_int_equal(strlen(a.text), 255);
        argument_clear(&a);
}

static void test_exit_codes(void **state) {
        static const struct {
                long status;
                const char *type;
                ExitCode code;
        } cases[] = {
                { 200, NULL, CODE_OK },
                { 201, NULL, CODE_OK },
                { 202, NULL, CODE_OK },
                { 204, NULL, CODE_OK },
                { 400, "urn:cpuclass:problem:invalid", CODE_INVALID },
                { 413, NULL, CODE_INVALID },
                { 415, NULL, CODE_INVALID },
                { 422, "urn:cpuclass:problem:unknown-class", CODE_INVALID },
                { 422, "urn:cpuclass:problem:policy-refused", CODE_INVALID },
                { 403, "urn:cpuclass:problem:forbidden", CODE_REFUSED },
                { 409, "urn:cpuclass:problem:protected", CODE_REFUSED },
                { 409, "urn:cpuclass:problem:owned-by-other", CODE_REFUSED },
                { 412, NULL, CODE_REFUSED },
                { 404, "urn:cpuclass:problem:not-found", CODE_NOT_FOUND },
                { 405, NULL, CODE_FAILURE },
                { 500, NULL, CODE_FAILURE },
                { 502, "urn:cpuclass:problem:not-applied", CODE_FAILURE },
                { 503, NULL, CODE_FAILURE },
                { 504, "urn:cpuclass:problem:not-applied-in-time", CODE_FAILURE },
                { 507, NULL, CODE_FAILURE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(exit_code_of_answer(cases[i].status, cases[i].type), cases[i].code);
        /* scripts rely on the numbers */
        assert_int_equal(CODE_OK, 0);
        assert_int_equal(CODE_FAILURE, 1);
        assert_int_equal(CODE_USAGE, 2);
        assert_int_equal(CODE_NOT_FOUND, 3);
        assert_int_equal(CODE_REFUSED, 4);
        assert_int_equal(CODE_UNREACHABLE, 5);
        assert_int_equal(CODE_INVALID, 6);
}

static void test_formats(void **state) {
        char text[FORMAT_MAX];
        Bandwidth b = { 150000, 100000, 50000 };
        uint64_t at = 0;

        assert_string_equal(format_quota(&b, text), "150%");
        assert_string_equal(format_bandwidth(&b, text), "150% (150ms per 100ms), burst 50ms");
        b = (Bandwidth) { 1250, 10000, 0 };
        assert_string_equal(format_quota(&b, text), "12.5%");
        b = (Bandwidth) { QUOTA_UNLIMITED, 100000, 0 };
        assert_string_equal(format_bandwidth(&b, text), "max");
        assert_string_equal(format_bandwidth(NULL, text), "-");
        b = (Bandwidth) { UINT64_MAX - 1, 1, UINT64_MAX };
        assert_true(strlen(format_bandwidth(&b, text)) < FORMAT_MAX);
        assert_string_equal(format_permyriad(1234, text), "12.3%");
        assert_string_equal(format_age(10 * USEC_PER_SEC, 75 * USEC_PER_SEC, text), "1m 5s ago");
        assert_string_equal(format_age(75 * USEC_PER_SEC, 10 * USEC_PER_SEC, text), "in 1m 5s");
        assert_string_equal(format_age(75 * USEC_PER_SEC, 75 * USEC_PER_SEC, text), "now");

        assert_true(time_parse("1970-01-01T00:01:00Z", &at));
        assert_true(at == 60 * USEC_PER_SEC);
        assert_true(time_parse("2026-03-01T12:00:00.250000Z", &at));
        assert_true(at % USEC_PER_SEC == 250000);
        assert_false(time_parse("2026-03-01", &at));
        assert_false(time_parse("2026-03-01T12:00:00", &at));
        assert_false(time_parse("now", &at));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_duration_parse),
                cmocka_unit_test(test_duration_format),
                cmocka_unit_test(test_amount),
                cmocka_unit_test(test_argument),
                cmocka_unit_test(test_argument_url_query),
                cmocka_unit_test(test_long_unit),
                cmocka_unit_test(test_exit_codes),
                cmocka_unit_test(test_formats),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
