/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What may reach a terminal, and what was probably meant. */

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/client.h"
#include "client/text.h"

static void test_escape(void **state) {
        static const struct {
                const char *in, *out;
        } cases[] = {
                { NULL, "" },
                { "nginx.service", "nginx.service" },
                { "dev-disk\\x2dby.swap", "dev-disk\\x2dby.swap" },
                { "\033[31mred", "\\x1b[31mred" },
                { "a\nb\tc\r", "a\\x0ab\\x09c\\x0d" },
                { "del\177", "del\\x7f" },
                { "m\xc3\xbcller-\xe6\x97\xa5", "m\xc3\xbcller-\xe6\x97\xa5" },
                { "csi\xc2\x9b" "31m", "csi\\u009b31m" },
                { "raw\x9b" "31m", "raw\\x9b31m" },
                { "\xff\xfe", "\\xff\\xfe" },
                { "cut\xe6\x97", "cut\\xe6\\x97" },
                { "long\xc0\xaf", "long\\xc0\\xaf" },                       /* an overlong slash */
                { "\xed\xa0\x80", "\\xed\\xa0\\x80" },                      /* a surrogate */
                { "x\xe2\x80\xaey", "x\\u202ey" },                          /* right-to-left override */
                { "100 %s %n", "100 %s %n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *got = text_escape(cases[i].in);

                assert_non_null(got);
                assert_string_equal(got, cases[i].out);
        }
}

/* Nothing that a terminal would obey comes out, whatever goes in. */
static void test_escape_any_bytes(void **state) {
        uint32_t seed = 1;

        for (unsigned round = 0; round < 20000; round++) {
                char in[24];
                size_t n = 0;
                _cleanup_free_ char *got = NULL;
                json_t *text;

                while (n < sizeof(in) - 1) {
                        seed = seed * 1664525U + 1013904223U;
                        in[n] = (char) (seed >> 24);
                        n += in[n] != 0;
                        if ((seed >> 16 & 15) == 0)
                                break;
                }
                in[n] = 0;
                got = text_escape(in);
                assert_non_null(got);
                for (const unsigned char *p = (const unsigned char *) got; *p; p++) {
                        assert_true(*p >= 0x20 && *p != 0x7f);
                        /* C1 in UTF-8 is C2 80..9F; a lone C1 byte would not be UTF-8 and so be escaped */
                        assert_false(*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f);
                }
                text = json_string(got); /* it is UTF-8 now */
                assert_non_null(text);
                json_decref(text);
        }
}

/* The escaped JSON says the same as before. */
static void test_escape_json(void **state) {
        static const char text[] = "{\"a\": \"x\xc2\x9b\177y\xe2\x80\xae\",\n \"b\": 1}";
        _cleanup_free_ char *got = text_escape_json(text, strlen(text));
        json_t *before, *after;

        assert_non_null(got);
        assert_null(strchr(got, '\177'));
        assert_null(strstr(got, "\xc2\x9b"));
        assert_null(strstr(got, "\xe2\x80\xae"));
        before = json_loads(text, 0, NULL);
        after = json_loads(got, 0, NULL);
        assert_non_null(before);
        assert_true(json_equal(before, after));
        json_decref(before);
        json_decref(after);
}

static void test_distance(void **state) {
        assert_int_equal(text_distance("", ""), 0);
        assert_int_equal(text_distance("abc", ""), 3);
        assert_int_equal(text_distance("status", "statsu"), 1);
        assert_int_equal(text_distance("kitten", "sitting"), 3);
        assert_int_equal(text_distance("Batch", "batch"), 0);
        assert_int_equal(text_distance("ca", "abc"), 3);
}

static void test_suggest(void **state) {
        static const char *const words[] = { "status", "list", "show", "explain", "classes", "assign", "unassign", "assignments", NULL, "latency-critical" };
        static const struct {
                const char *word, *meant;
        } cases[] = {
                { "statsu", "status" },
                { "lsit", "list" },
                { "explian", "explain" },
                { "latency-crtical", "latency-critical" },
                { "latency", "latency-critical" },
                { "LIST", "list" },
                { "unasign", "unassign" },
                { "frobnicate", NULL },
                { "x", NULL },
                { "", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *got = text_suggest(cases[i].word, words, ELEMENTSOF(words));

                if (cases[i].meant) {
                        assert_non_null(got);
                        assert_string_equal(got, cases[i].meant);
                } else
                        assert_null(got);
        }
}

/* Every verb has its help, and it fits a screen of 24 lines and 100 columns. */
static void test_help_fits(void **state) {
        size_t n = 0;

        for (const Verb *v = verbs; v->name; v++, n++) {
                size_t lines = 2;

                assert_non_null(v->run);
                assert_true(!v->summary || strlen(v->summary) <= 60);
                for (const char *p = v->help; *p;) {
                        size_t length = strcspn(p, "\n");

                        assert_true(length <= 92);
                        lines++;
                        p += length + (p[length] == '\n');
                }
                assert_true(lines <= 24);
        }
        assert_true(n >= 16);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_escape),
                cmocka_unit_test(test_escape_any_bytes),
                cmocka_unit_test(test_escape_json),
                cmocka_unit_test(test_distance),
                cmocka_unit_test(test_suggest),
                cmocka_unit_test(test_help_fits),
        };

        (void) setlocale(LC_ALL, "C.UTF-8");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
