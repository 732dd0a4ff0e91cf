/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a diagnosis keeps, what it cuts, and how it reads. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policies/diag.h"
#include "policies/util.h"

static void test_line(void **state) {
        static const struct {
                Diag diag;
                const char *text;
        } cases[] = {
                { { .file = (char *) "a.json", .line = 3, .pointer = (char *) "/classes/0/priority",
                    .message = (char *) "out of range", .value = (char *) "1001", .limit = (char *) "0 to 1000" },
                  "a.json:3: /classes/0/priority: out of range: value 1001, allowed: 0 to 1000" },
                { { .file = (char *) "a.json", .pointer = (char *) "", .message = (char *) "no" }, "a.json: no" },
                { { .line = 7, .message = (char *) "no", .limit = (char *) "yes" }, "line 7: no: allowed: yes" },
                { { .message = (char *) "100 %s \033[2J" }, "100 %s \\x1b[2J" },
                { { .file = (char *) "x\n\x9b\xc2\x9b", .message = (char *) "\xc3\xa4\xe2\x80\xae" },
                  "x\\x0a\\x9b\\xc2\\x9b: \xc3\xa4\\xe2\\x80\\xae" },
                { { .file = NULL }, "out of memory while reporting an error" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *s = diag_to_string(&cases[i].diag);

                assert_string_equal(s, cases[i].text);
        }
}

static void test_list(void **state) {
        DiagList list = {};
        char big[1000];

        for (size_t i = 0; i + 2 < sizeof(big); i += 2)
                memcpy(big + i, "\xc3\xa4", 3);
        diag_add(&list, "f", 1, "/p", big, NULL, "number %d", 7);
        assert_int_equal(list.n_items, 1);
        assert_string_equal(list.items[0].message, "number 7");
        assert_true(strlen(list.items[0].value) <= 200);
        assert_true(endswith(list.items[0].value, "\xc3\xa4..."));
        assert_null(list.items[0].limit);
        for (size_t i = 0; i < 300; i++)
                diag_add(&list, NULL, 0, NULL, NULL, NULL, "again");
        assert_int_equal(list.n_items, 100);
        diag_list_clear(&list);
        assert_int_equal(list.n_items, 0);
        assert_null(list.items);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_line),
                cmocka_unit_test(test_list),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
