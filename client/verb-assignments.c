/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* assignments: what the API was told, one row a target. */

#include "client/format.h"
#include "client/http.h"
#include "client/options.h"
#include "client/table.h"
#include "client/verbs.h"

const char help_assignments[] =
        "What has been assigned through the API: by whom, until when, and whether its\n"
        "target is here.\n\n"
        "  --owner OWNER   only assignments of this owner\n"
        "  --json          the answer of GET /v1/assignments";

static void print_one(Table *t, const json_t *a) {
        const json_t *overrides = json_object_get(a, "overrides");
        _cleanup_free_ char *text = json_object_size(overrides) > 0 ? json_dumps(overrides, JSON_COMPACT) : NULL, *pod = NULL;
        char age[FORMAT_MAX];
        uint64_t at;

        if (json_text(a, "pod_uid") && asprintf(&pod, "pod:%s", json_text(a, "pod_uid")) < 0)
                pod = NULL;
        table_row(t);
        table_cell(t, pod ? pod : group_name(a), STYLE_NONE);
        table_cell(t, json_text(a, "class"), STYLE_NONE);
        table_cell(t, json_text(a, "owner"), STYLE_NONE);
        table_cell(t, json_text(a, "by"), STYLE_NONE);
        table_cell(t, json_time(a, "created_at", &at) ? format_age(at, now_usec(), age) : NULL, STYLE_NONE);
        table_cell(t, json_time(a, "expires_at", &at) ? format_age(at, now_usec(), age) : NULL, STYLE_NONE);
        table_cell(t, json_flag(a, "force") ? "force" : NULL, STYLE_NONE);
        table_cell(t, text, STYLE_NONE);
        table_cell(t, json_text(a, "pending"), STYLE_WARN);
}

int verb_assignments(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "owner", required_argument, NULL, 'o' },
                {},
        };
        static const Column columns[] = {
                { "TARGET", COLUMN_CUT }, { "CLASS", COLUMN_LEFT }, { "OWNER", COLUMN_LEFT }, { "BY", COLUMN_LEFT }, { "MADE", COLUMN_LEFT },
                { "ENDS", COLUMN_LEFT }, { "FORCE", COLUMN_WIDE }, { "OVERRIDES", COLUMN_CUT | COLUMN_WIDE }, { "WAITS", COLUMN_CUT },
        };
        _cleanup_answer_ Answer a = {};
        _cleanup_free_ char *url = NULL;
        const char *owner = NULL;
        json_t *one;
        Options o;
        Table *t;
        size_t i;
        int option;
        ExitCode code;

        options_init(&o, c, verb, options, false, argc, argv);
        while ((option = options_next(&o)) >= 0)
                owner = optarg;
        if (option != OPTIONS_END || !options_check_arguments(&o, 0, 0))
                return o.exit_code;
        url = url_with_query("/v1/assignments", "owner", owner, NULL);
        code = url ? client_request(c, "GET", url, NULL, TIMEOUT_USUAL, &a) : CODE_FAILURE;
        if (code != CODE_OK)
                return code;
        if (c->json) {
                client_print_json(c, &a);
                return CODE_OK;
        }
        t = table_new(c, columns, ELEMENTSOF(columns));
        if (!t)
                return CODE_FAILURE;
        json_array_foreach(json_object_get(a.json, "assignments"), i, one)
                print_one(t, one);
        code = table_print(t, "Nothing is assigned.");
        (void) table_free(t);
        return code;
}
