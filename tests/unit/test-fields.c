/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The field-table decoder and the way from a pointer to a line: what is taken, what is refused, and in which words. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policies/document.h"
#include "policies/fields.h"
#include "policies/util.h"

typedef struct Thing {
        char *name;
        bool on;
        int small;
        bool has_small;
        uint32_t count;
        uint64_t large;
        int colour;
        int inner;
        json_t *list;
        json_t *map;
        int even;
} Thing;

static const char *check_name(const char *s) {
        return strchr(s, ' ') ? "no spaces" : NULL;
}

static int decode_even(const FieldReader *reader, const char *pointer, json_t *value, const Field *field, void *slot) {
        if (!json_is_integer(value) || json_integer_value(value) % 2 != 0) {
                field_complain(reader, pointer, value, field->allowed, "odd");
                return -EINVAL;
        }
        *(int *) slot = (int) json_integer_value(value);
        return 0;
}

static const char *const colours[] = { "red", "green", "blue", NULL };
static const Field inner_fields[] = {
        { .name = "depth", .type = FIELD_INT, .least = 1, .most = 3, .offset = offsetof(Thing, inner) },
        {}
};
static const Field thing_fields[] = {
        { .name = "name", .type = FIELD_STRING, .least = 1, .most = 8, .flags = FIELD_REQUIRED, .check = check_name,
          .offset = offsetof(Thing, name) },
        { .name = "on", .type = FIELD_BOOL, .offset = offsetof(Thing, on) },
        { .name = "small", .type = FIELD_INT, .least = -20, .most = 19, .flags = FIELD_HAS, .offset = offsetof(Thing, small),
          .has_offset = offsetof(Thing, has_small) },
        { .name = "count", .type = FIELD_UINT32, .least = 0, .most = UINT32_MAX, .offset = offsetof(Thing, count) },
        { .name = "large", .type = FIELD_UINT64, .least = 0, .most = INT64_MAX, .offset = offsetof(Thing, large) },
        { .name = "colour", .type = FIELD_WORD, .words = colours, .offset = offsetof(Thing, colour) },
        { .name = "inner", .type = FIELD_OBJECT, .fields = inner_fields },
        { .name = "list", .type = FIELD_LIST, .least = 1, .most = 2, .offset = offsetof(Thing, list) },
        { .name = "map", .type = FIELD_MAP, .least = 0, .most = 1, .offset = offsetof(Thing, map) },
        { .name = "even", .type = FIELD_CUSTOM, .decode = decode_even, .allowed = "an even number", .offset = offsetof(Thing, even) },
        { .name = "comment", .type = FIELD_COMMENT },
        {}
};

static void test_good(void **state) {
        const char *text = "{\"name\":\"a\",\"on\":true,\"small\":-20,\"count\":4294967295,\"large\":9223372036854775807,"
                           "\"colour\":\"blue\",\"inner\":{\"depth\":3},\"list\":[1,2],\"map\":{\"k\":1},\"even\":4,"
                           "\"comment\":[\"a\",\"b\"]}";
        DiagList list = {};
        FieldReader reader = { .file = "f", .list = &list };
        json_auto_t *o = NULL;
        Thing t = {};

        assert_int_equal(document_load("f", text, strlen(text), &o, NULL, &list), 0);
        assert_int_equal(fields_decode(&reader, "", o, thing_fields, &t), 0);
        assert_string_equal(t.name, "a");
        assert_true(t.on && t.has_small);
        assert_int_equal(t.small, -20);
        assert_int_equal(t.count, UINT32_MAX);
        assert_true(t.large == INT64_MAX);
        assert_int_equal(t.colour, 2);
        assert_int_equal(t.inner, 3);
        assert_int_equal(json_array_size(t.list), 2);
        assert_int_equal(json_object_size(t.map), 1);
        assert_int_equal(t.even, 4);
        assert_int_equal(list.n_items, 0);
        fields_clear(thing_fields, &t);
        assert_null(t.name);
}

static void test_absent_keeps_defaults(void **state) {
        DiagList list = {};
        FieldReader reader = { .list = &list };
        json_auto_t *o = json_pack("{s:s}", "name", "a");
        Thing t = { .small = 7, .colour = 1, .count = 9 };

        assert_int_equal(fields_decode(&reader, "", o, thing_fields, &t), 0);
        assert_int_equal(t.small, 7);
        assert_false(t.has_small);
        assert_int_equal(t.colour, 1);
        assert_int_equal(t.count, 9);
        fields_clear(thing_fields, &t);
}

/* One wrong field a case: exactly one diagnosis, word for word. */
static void test_bad(void **state) {
        static const struct {
                const char *text, *line;
        } cases[] = {
                { "{}", "f:1: /name: missing: allowed: string, 1 to 8 bytes" },
                { "{\"name\":1}", "f:1: /name: wrong type: value 1, allowed: string, 1 to 8 bytes" },
                { "{\"name\":\"\"}", "f:1: /name: must not be empty: value \"\", allowed: string, 1 to 8 bytes" },
                { "{\"name\":\"123456789\"}", "f:1: /name: wrong length: value \"123456789\", allowed: string, 1 to 8 bytes" },
                { "{\"name\":\"a b\"}", "f:1: /name: not a valid value: value \"a b\", allowed: no spaces" },
                { "{\"name\":\"\\u001b[2J\"}", NULL },
                { "{\"name\":\"a\",\"on\":1}", "f:1: /on: wrong type: value 1, allowed: true or false" },
                { "{\"name\":\"a\",\"on\":null}", "f:1: /on: wrong type: value null, allowed: true or false" },
                { "{\"name\":\"a\",\n\"small\":20}", "f:2: /small: out of range: value 20, allowed: integer, -20 to 19" },
                { "{\"name\":\"a\",\"small\":-21}", "f:1: /small: out of range: value -21, allowed: integer, -20 to 19" },
                { "{\"name\":\"a\",\"small\":1.0}", "f:1: /small: wrong type: value 1.0, allowed: integer, -20 to 19" },
                { "{\"name\":\"a\",\"small\":\"1\"}", "f:1: /small: wrong type: value \"1\", allowed: integer, -20 to 19" },
                { "{\"name\":\"a\",\"count\":4294967296}",
                  "f:1: /count: out of range: value 4294967296, allowed: integer, 0 to 4294967295" },
                { "{\"name\":\"a\",\"large\":-1}", "f:1: /large: out of range: value -1, allowed: integer, 0 to 9223372036854775807" },
                { "{\"name\":\"a\",\"colour\":\"gren\"}",
                  "f:1: /colour: unknown word; did you mean \"green\"?: value \"gren\", allowed: \"red\", \"green\" or \"blue\"" },
                { "{\"name\":\"a\",\"colour\":\"violet\"}",
                  "f:1: /colour: unknown word: value \"violet\", allowed: \"red\", \"green\" or \"blue\"" },
                { "{\"name\":\"a\",\"inner\":3}", "f:1: /inner: wrong type: value 3, allowed: an object" },
                { "{\"name\":\"a\",\"inner\":{\"depht\":1}}", "f:1: /inner/depht: unknown key; did you mean \"depth\"?" },
                { "{\"name\":\"a\",\"inner\":{\"depth\":4}}",
                  "f:1: /inner/depth: out of range: value 4, allowed: integer, 1 to 3" },
                { "{\"name\":\"a\",\"list\":{}}", "f:1: /list: wrong type: value {}, allowed: array, 1 to 2 elements" },
                { "{\"name\":\"a\",\"list\":[]}", "f:1: /list: too few (0): allowed: array, 1 to 2 elements" },
                { "{\"name\":\"a\",\"list\":[1,2,3]}", "f:1: /list: too many (3): allowed: array, 1 to 2 elements" },
                { "{\"name\":\"a\",\"map\":{\"a\":1,\"b\":2}}", "f:1: /map: too many (2): allowed: object, 0 to 1 members" },
                { "{\"name\":\"a\",\"even\":3}", "f:1: /even: odd: value 3, allowed: an even number" },
                { "{\"name\":\"a\",\"comment\":[\"a\",\n1]}",
                  "f:2: /comment/1: wrong type: value 1, allowed: a string or an array of strings" },
                { "{\"name\":\"a\",\"comment\":1}", "f:1: /comment: wrong type: value 1, allowed: a string or an array of strings" },
                { "{\"name\":\"a\",\"a/b~c\":1}", "f:1: /a~1b~0c: unknown key" },
                { "{\"name\":\"a\",\n\n\"a\\u002fb\":1}", "f:3: /a~1b: unknown key" },
                { "{\"name\":\"a\",\"\\u001b\":1}", "f:1: /\\x1b: unknown key" },
                { "{\"name\":\"a\",\"coulor\":\"red\"}", "f:1: /coulor: unknown key; did you mean \"colour\"?" },
                { "{\"name\":\"a\",\"on\":true,\"on\":true}", "f:1: /on: this key appears twice in its object" },
                { "{\"inner\":{\"depth\":1,\n\"depth\":2}}", "f:2: /inner/depth: this key appears twice in its object" },
                { "{\"list\":[1,\n2,\n}", "f:3: /list/2: not valid JSON: unexpected token" },
                { "{\"name\":\"a\"} x", "f:1: not valid JSON: end of file expected" },
                { "", "f:1: not valid JSON: '[' or '{' expected" },
                { "[]", "f:1: wrong type: allowed: an object" },
                { "{\"name\":\"a\\u0000b\"}", "f:1: /name: not valid JSON: \\u0000 is not allowed without JSON_ALLOW_NUL" },
                { "{\"name\":\"\xff\"}", NULL },
                { "{\"large\":99999999999999999999}", "f:1: /large: not valid JSON: too big integer" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                DiagList list = {};
                FieldReader reader = { .file = "f", .list = &list };
                json_auto_t *o = NULL;
                Thing t = {};
                int r;

                r = document_load("f", cases[i].text, strlen(cases[i].text), &o, NULL, &list);
                if (r == 0)
                        r = fields_decode(&reader, "", o, thing_fields, &t);
                document_add_lines(&list, 0, cases[i].text, strlen(cases[i].text));
                if (!cases[i].line)
                        assert_true(r == 0 || list.n_items > 0);
                else {
                        _cleanup_free_ char *line = list.n_items > 0 ? diag_to_string(&list.items[0]) : NULL;

                        assert_int_equal(r, -EINVAL);
                        assert_int_equal(list.n_items, 1);
                        assert_string_equal(line, cases[i].line);
                }
                fields_clear(thing_fields, &t);
                diag_list_clear(&list);
        }
}

static void test_all_are_reported(void **state) {
        const char *text = "{\"on\":3,\n\"small\":99,\n\"colour\":1,\n\"inner\":{\"depth\":0,\n\"x\":1},\n\"y\":2}";
        static const char *const pointers[] = { "/name", "/on", "/small", "/colour", "/inner/depth", "/inner/x", "/y" };
        static const unsigned lines[] = { 1, 1, 2, 3, 4, 5, 6 };
        DiagList list = {};
        FieldReader reader = { .list = &list };
        json_auto_t *o = NULL;
        Thing t = {};

        assert_int_equal(document_load(NULL, text, strlen(text), &o, NULL, &list), 0);
        assert_int_equal(fields_decode(&reader, "", o, thing_fields, &t), -EINVAL);
        document_add_lines(&list, 0, text, strlen(text));
        assert_int_equal(list.n_items, ELEMENTSOF(pointers));
        for (size_t i = 0; i < list.n_items; i++) {
                assert_string_equal(list.items[i].pointer, pointers[i]);
                assert_int_equal(list.items[i].line, lines[i]);
        }
        diag_list_clear(&list);
}

static void test_repeated_goes_on(void **state) {
        const char *text = "{\"a\":1,\"a\":2}";
        json_auto_t *o = NULL, *repeated = NULL;
        DiagList list = {};

        assert_int_equal(document_load(NULL, text, strlen(text), &o, &repeated, &list), -EINVAL);
        assert_null(o);
        assert_int_equal(json_integer_value(json_object_get(repeated, "a")), 2);
        diag_list_clear(&list);
}

static void test_too_large(void **state) {
        size_t n = DOCUMENT_MAX_BYTES + 1;
        _cleanup_free_ char *text = malloc(n);
        json_auto_t *o = NULL;
        DiagList list = {};

        memset(text, ' ', n);
        memcpy(text, "{}", 2);
        assert_int_equal(document_load("f", text, n - 1, &o, NULL, &list), 0);
        json_decref(o);
        o = NULL;
        assert_int_equal(document_load("f", text, n, &o, NULL, &list), -EINVAL);
        assert_int_equal(list.n_items, 1);
        diag_list_clear(&list);
}

static void test_line(void **state) {
        const char *text = "\n{ \"a\" : [ 1,\n { \"b\\\"]\" : \"x\\\"}\" ,\n\"c\":[[],\n{}]\n, \"d\": -1.5e3 } ],\n\"e\"\n: null }";
        static const struct {
                const char *pointer;
                unsigned line;
        } cases[] = {
                { "", 2 },      { "/a", 2 },     { "/a/0", 2 },      { "/a/1", 3 },     { "/a/1/b\"]", 3 }, { "/a/1/c", 4 },
                { "/a/1/c/1", 5 }, { "/a/1/d", 6 }, { "/e", 7 },     { "/a/1/nothing", 3 }, { "/nothing", 2 }, { "/a/7", 2 },
                { "/e/below", 7 },
        };
        json_auto_t *o = json_loads(text, 0, NULL);

        assert_non_null(o);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(document_line(text, strlen(text), cases[i].pointer), cases[i].line);
}

static void test_nearest(void **state) {
        static const char *const words[] = { "priority", "latency_nice", "cpu", "name" };

        assert_string_equal(nearest_word("priorty", words, 4), "priority");
        assert_string_equal(nearest_word("latency-nice", words, 4), "latency_nice");
        assert_string_equal(nearest_word("nmae", words, 4), "name");
        assert_string_equal(nearest_word("cpus", words, 4), "cpu");
        assert_null(nearest_word("x", words, 4));
        assert_null(nearest_word("weight", words, 4));
        assert_null(nearest_word("", words, 4));
        assert_null(nearest_word("name", words, 0));
        assert_null(nearest_word("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", words, 4));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_good),
                cmocka_unit_test(test_absent_keeps_defaults),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_all_are_reported),
                cmocka_unit_test(test_repeated_goes_on),
                cmocka_unit_test(test_too_large),
                cmocka_unit_test(test_line),
                cmocka_unit_test(test_nearest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
