/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* classes: the table of them, or every field of one. */

#include <inttypes.h>

#include "client/format.h"
#include "client/http.h"
#include "client/names.h"
#include "client/options.h"
#include "client/table.h"
#include "client/verbs.h"

const char help_classes[] =
        "Service classes in the order of their priority; with CLASS all of its fields.\n\n"
        "  --json   GET /v1/classes, or /v1/classes/CLASS\n\n"
        "QUOTA, FLOOR and CEILING are percents of one CPU where nothing else is said;\n"
        "cpuclass-policy(5) has the fields.";

static int by_priority(const void *a, const void *b) {
        json_int_t x = json_integer_value(json_object_get(json_object_get(*(json_t *const *) a, "class"), "priority"));
        json_int_t y = json_integer_value(json_object_get(json_object_get(*(json_t *const *) b, "class"), "priority"));

        return (x < y) - (x > y);
}

static ExitCode print_table(const Client *c, const json_t *answer) {
        static const Column columns[] = {
                { "CLASS", COLUMN_LEFT }, { "PRIORITY", COLUMN_RIGHT }, { "LATENCY", COLUMN_RIGHT }, { "CORES", COLUMN_LEFT },
                { "QUOTA", COLUMN_RIGHT }, { "BURST", COLUMN_RIGHT }, { "CEILING", COLUMN_RIGHT }, { "LAW", COLUMN_LEFT }, { "DRIFT", COLUMN_WIDE },
                { "GROUPS", COLUMN_RIGHT }, { "DESCRIPTION", COLUMN_CUT | COLUMN_WIDE },
        };
        const json_t *classes = json_object_get(answer, "classes");
        size_t n = json_array_size(classes);
        _cleanup_free_ json_t **sorted = calloc(n + 1, sizeof(*sorted));
        Table *t = table_new(c, columns, ELEMENTSOF(columns));
        ExitCode code;

        if (!sorted || !t) {
                (void) table_free(t);
                return CODE_FAILURE;
        }
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_array_get(classes, i);
        qsort(sorted, n, sizeof(*sorted), by_priority);
        for (size_t i = 0; i < n; i++) {
                const json_t *one = json_object_get(sorted[i], "class"), *cpu = json_object_get(one, "cpu"), *latency = json_object_get(one, "latency_nice");
                char text[FORMAT_MAX];

                table_row(t);
                table_cell(t, json_text(one, "name"), STYLE_BOLD);
                (void) snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(one, "priority")));
                table_cell(t, text, STYLE_NONE);
                (void) snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(latency));
                table_cell(t, json_is_integer(latency) ? text : NULL, STYLE_NONE);
                table_cell(t, json_text(one, "core_scheduling"), STYLE_NONE);
                table_cell(t, format_amount(json_object_get(cpu, "quota"), text), STYLE_NONE);
                table_cell(t, format_amount(json_object_get(cpu, "burst"), text), STYLE_NONE);
                table_cell(t, format_amount(json_object_get(cpu, "ceiling"), text), STYLE_NONE);
                table_cell(t, json_text(cpu, "law"), STYLE_NONE);
                table_cell(t, json_text(one, "drift"), STYLE_NONE);
                (void) snprintf(text, sizeof(text), "%" PRIu64, json_number_or(sorted[i], "n_groups", 0));
                table_cell(t, text, STYLE_NONE);
                table_cell(t, json_text(one, "description"), STYLE_NONE);
        }
        code = table_print(t, "There are no classes.");
        (void) table_free(t);
        return code;
}

/* Every field of a class by its name in the documents, nested ones with a dot. */
static void print_fields(const Client *c, json_t *o, const char *prefix) {
        const char *key;
        json_t *value;

        json_object_foreach(o, key, value) {
                _cleanup_free_ char *name = NULL, *text = NULL;
                char amount[FORMAT_MAX];

                if (json_is_null(value) || asprintf(&name, "%s%s%s", prefix, *prefix ? "." : "", key) < 0) {
                        name = NULL;
                        continue;
                }
                if (json_is_object(value) && streq(format_amount(value, amount), "-")) {
                        print_fields(c, value, name);
                        continue;
                }
                say_styled(c, STYLE_DIM, "  %-24s ", name);
                if (json_is_object(value))
                        say("%s\n", amount);
                else if (json_is_string(value))
                        say("%s\n", json_string_value(value));
                else {
                        text = json_dumps(value, JSON_ENCODE_ANY);
                        say("%s\n", text ? text : "");
                }
        }
}

int verb_classes(Client *c, const Verb *verb, int argc, char **argv) {
        _cleanup_answer_ Answer a = {};
        _cleanup_free_ char *url = NULL, *encoded = NULL;
        const char *name;
        Options o;
        ExitCode code;

        options_init(&o, c, verb, NULL, false, argc, argv);
        if (options_next(&o) != OPTIONS_END || !options_check_arguments(&o, 0, 1))
                return o.exit_code;
        name = argv[optind];
        encoded = name ? url_encode(name) : NULL;
        if (asprintf(&url, "/v1/classes%s%s", encoded ? "/" : "", encoded ? encoded : "") < 0) {
                url = NULL;
                return CODE_FAILURE;
        }
        code = client_request(c, "GET", url, NULL, TIMEOUT_USUAL, &a);
        if (name && (code == CODE_NOT_FOUND || code == CODE_INVALID))
                class_hint(c, name);
        if (code != CODE_OK)
                return code;
        if (c->json) {
                client_print_json(c, &a);
                return CODE_OK;
        }
        if (!name)
                return print_table(c, a.json);
        say_styled(c, STYLE_BOLD, "%s\n", json_text(json_object_get(a.json, "class"), "name") ?: name);
        print_fields(c, json_object_get(a.json, "class"), "");
        say_styled(c, STYLE_DIM, "  %-24s ", "defined in");
        say("%s\n", json_text(a.json, "origin") ?: "-");
        say_styled(c, STYLE_DIM, "  %-24s ", "groups");
        say("%" PRIu64 "\n", json_number_or(a.json, "n_groups", 0));
        return CODE_OK;
}
