/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pieces below the server: URIs, names as JSON, entity tags, the raw head of a request, and the reference in step with the code. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/internal.h"

extern const char openapi_yaml[];
extern const size_t openapi_yaml_size;

static void test_uri(void **state) {
        static const struct {
                const char *in;
                bool control;
                const char *out; /* NULL: refused */
        } cases[] = {
                { "", false, "" }, { "abc", false, "abc" }, { "a%20b", false, "a b" }, { "%41%6a%6A", false, "Ajj" }, { "a+b", false, "a+b" }, { "%2F%2f", false, "//" },
                { "%25", false, "%" }, { "%2525", false, "%25" }, { "%FF%C3%A4", false, "\xff\xc3\xa4" }, { "%1B", true, "\x1b" }, { "%7F%01", true, "\x7f\x01" },
                { "%", false, NULL }, { "%4", false, NULL }, { "%4g", false, NULL }, { "%g4", false, NULL }, { "% 41", false, NULL }, { "%+1", false, NULL }, { "%00", true, NULL },
                { "%0a", true, NULL }, { "%0A", true, NULL }, { "%1B", false, NULL }, { "%7f", false, NULL }, { "%0d", false, NULL }, { " ", true, NULL }, { "a\x1b", true, NULL },
                { "\xc3\xa4", true, NULL }, { "a\tb", true, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *out = NULL;
                int k = uri_decode(cases[i].in, strlen(cases[i].in), cases[i].control, &out);

                if ((k == 0) != (cases[i].out != NULL) || (k == 0 && !streq(out, cases[i].out)))
                        fail_msg("%s: %d %s", cases[i].in, k, out ? out : "-");
                if (k != 0)
                        assert_null(out);
        }
        /* an escape that the length cuts */
        char *out = NULL;
        assert_int_equal(uri_decode("a%41", 3, false, &out), -EINVAL);
        assert_int_equal(uri_decode("a%41", 2, false, &out), -EINVAL);
        assert_int_equal(uri_decode("a%41", 1, false, &out), 0);
        assert_string_equal(out, "a");
        free(out);
}

/* Every byte but NUL (and a newline, which no cgroup has) survives both forms. */
static void test_round_trips(void **state) {
        char all[256];
        size_t n = 0;
        _cleanup_free_ char *encoded = NULL, *decoded = NULL;

        for (unsigned c = 1; c < 256; c++)
                if (c != '\n')
                        all[n++] = (char) c;
        all[n] = 0;
        encoded = uri_encode(all);
        assert_int_equal(uri_decode(encoded, strlen(encoded), true, &decoded), 0);
        assert_string_equal(decoded, all);
        for (size_t length = 0; length <= n; length++) {
                _cleanup_free_ char *token = NULL, *back = NULL;
                char cut[256];

                memcpy(cut, all, length);
                cut[length] = 0;
                token = token_encode(cut);
                assert_int_equal(strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), strlen(token));
                assert_int_equal(token_decode(token, &back), 0);
                assert_string_equal(back, cut);
        }
        static const char *const bad[] = { "A", "AAAAA", "A=", "AA==", "+A", "AA", "AB", "YWI\xc3", "Y W" };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                char *back = NULL;

                assert_int_equal(token_decode(bad[i], &back), -EINVAL);
        }
}

static void test_utf8(void **state) {
#define R "\xef\xbf\xbd"
        static const struct {
                const char *in, *out;
        } cases[] = {
                { "", "" }, { "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z", "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z" }, { "\xff", R }, { "\x80", R }, { "\xc3", R }, { "\xc3z", R "z" },
                { "\xc0\x80", R R }, { "\xc1\xbf", R R }, { "\xe0\x80\x80", R R R }, { "\xed\xa0\x80", R R R }, { "\xf0\x80\x80\x80", R R R R }, { "\xf4\x90\x80\x80", R R R R },
                { "\xf5\x80", R R }, { "\xe2\x82", R R }, { "\xf0\x9f\x98", R R R }, { "\xef\xbf\xbe", "\xef\xbf\xbe" }, { "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *out = utf8_sanitize(cases[i].in), *dumped = NULL;
                json_t *j = json_text(cases[i].in);

                assert_string_equal(out, cases[i].out);
                assert_string_equal(json_string_value(j), cases[i].out);
                dumped = json_dumps(j, JSON_ENCODE_ANY); /* the library checks again */
                assert_non_null(dumped);
                json_decref(j);
        }
        json_t *null = json_text(NULL);
        assert_true(json_is_null(null));
        json_decref(null);
}

static void test_numbers(void **state) {
        char text[40];
        json_t *j;

        j = json_u64(UINT64_MAX);
        assert_true(json_integer_value(j) == INT64_MAX);
        json_decref(j);
        j = json_quota(QUOTA_UNLIMITED);
        assert_string_equal(json_string_value(j), "max");
        json_decref(j);
        format_time(1700000000123456, text);
        assert_string_equal(text, "2023-11-14T22:13:20.123456Z");
        format_time(UINT64_MAX - 1, text);
        assert_true(startswith(text, "9999-12-31T23:59:59."));
        j = json_time_monotonic(USEC_INFINITY);
        assert_true(json_is_null(j));
        json_decref(j);
        j = json_time_monotonic(UINT64_MAX - 1);
        assert_true(json_is_string(j));
        json_decref(j);
        j = json_errno(EINVAL);
        assert_string_equal(json_string_value(j), "EINVAL");
        json_decref(j);
        j = json_errno(99999);
        assert_string_equal(json_string_value(j), "99999");
        json_decref(j);
}

static void test_etag(void **state) {
        json_t *a = json_pack("{s:i, s:s}", "a", 1, "b", "x"), *b = json_pack("{s:s, s:i}", "b", "x", "a", 1), *c = json_pack("{s:i, s:s}", "a", 2, "b", "x");
        char x[64], y[64], z[64];

        etag_of_json(a, x);
        etag_of_json(b, y);
        etag_of_json(c, z);
        assert_string_equal(x, y); /* the order of members means nothing */
        assert_string_not_equal(x, z);
        assert_int_equal(strlen(x), 34);
        json_decref(a);
        json_decref(b);
        json_decref(c);
}

static void test_head(void **state) {
#define HEAD(text) text, sizeof(text) - 1
#define V "GET\0/x\0HTTP/1.1"
        static const struct {
                const char *head;
                size_t size;
                bool good;
        } cases[] = {
                { HEAD(V "\0\0Host\0 x\0\0\0\0"), true }, { HEAD(V "\0\0\0\0"), true }, { HEAD(V "\0\0Host\0x\0\0A\0 \0\0\0\0"), true }, { HEAD(V "\0\0A\0\0\0\0\0"), true },
                { HEAD(V "\0\0Host\0 x\0\0\0"), false },         /* CRLF LF */
                { HEAD(V "\0\0Host\0 x\0\0"), false },           /* LF LF, or no end */
                { HEAD(V "\0\0Host\0 x\0A\0 y\0\0\0\0"), false }, /* a bare LF, or a NUL in a value */
                { HEAD(V "\0\0Host\0 x\0\0\0 y\0\0"), false },   /* a line that begins with a colon */
                { HEAD(V "\0\0Host\0 x\0\0\0\0\0"), false },     /* a line of a NUL */
                { HEAD(V "\0\0Host\0 x\0\0 y\0\0\0\0"), false }, /* folded */
                { HEAD(V "\0\0Ho st\0 x\0\0\0\0"), false }, { HEAD(V "\0Host\0 x\0\0\0\0"), false }, { HEAD("G T\0/x\0HTTP/1.1\0\0\0\0"), false }, { HEAD("\0/x\0HTTP/1.1\0\0\0\0"), false },
                { HEAD(V), false }, { HEAD("GET"), false }, { HEAD(""), false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                /* a copy of its own, so that a sanitizer sees a read beyond it */
                char *copy = malloc(MAX_OF(cases[i].size, (size_t) 1));

                memcpy(copy, cases[i].head, cases[i].size);
                if (head_is_strict(copy, cases[i].size, "/x", copy + 7) != cases[i].good)
                        fail_msg("case %zu", i);
                free(copy);
        }
}

/* Each route is in the reference with its parameters, and nothing else is. A line scan is enough for a file of our own making: paths are at two
 * columns, methods at four. */
static void test_openapi(void **state) {
        size_t n_documented = 0;
        _cleanup_free_ char *text = strndup(openapi_yaml, openapi_yaml_size);
        char path[128] = "", *save = NULL;
        bool in_paths = false;

        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char method[16];
                size_t i;

                if (line[0] != ' ')
                        in_paths = startswith(line, "paths:");
                if (!in_paths)
                        continue;
                if (startswith(line, "  /")) {
                        char *out = path;

                        for (const char *p = line + 2; *p && *p != ':'; p++)
                                if (*p == '{') {
                                        *out++ = '*';
                                        p = strchr(p, '}');
                                } else
                                        *out++ = *p;
                        *out = 0;
                } else if (startswith(line, "    ") && line[4] >= 'a' && line[4] <= 'z' && sscanf(line, " %15[a-z]:", method) == 1) {
                        for (char *p = method; *p; p++)
                                *p = (char) (*p - 'a' + 'A');
                        for (i = 0; i < api_n_routes; i++)
                                if (streq(api_routes[i].path, path) && streq(api_routes[i].method, method))
                                        break;
                        if (i == api_n_routes)
                                fail_msg("%s %s is documented, but is no route", method, path);
                        n_documented++;
                }
        }
        assert_int_equal(n_documented, api_n_routes);

        for (size_t i = 0; i < api_n_routes; i++) {
                _cleanup_free_ char *params = strdup(api_routes[i].params);

                for (char *p = strtok_r(params, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
                        char needle[64];

                        (void) snprintf(needle, sizeof(needle), "      name: %s\n      in: query\n", p);
                        if (!memmem(openapi_yaml, openapi_yaml_size, needle, strlen(needle)))
                                fail_msg("parameter %s of %s is not documented", p, api_routes[i].path);
                }
                /* who changes something needs the right to */
                assert_int_equal(api_routes[i].right, streq(api_routes[i].method, "GET") ? RIGHT_READ : RIGHT_WRITE);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_uri),     cmocka_unit_test(test_round_trips), cmocka_unit_test(test_utf8), cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_etag),    cmocka_unit_test(test_head),        cmocka_unit_test(test_openapi),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
