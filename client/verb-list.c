/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* list: one row a group. */

#include <inttypes.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/groups.h"
#include "client/options.h"
#include "client/table.h"
#include "client/text.h"
#include "client/verbs.h"

const char help_list[] =
        "Groups that have a class, or a reason to be shown, with what they use.\n\n"
        "  --class CLASS   only groups of this class\n"
        "  --state STATE   applied, degraded, pending, held, refused, failed, paused,\n"
        "                  dry_run, unmanaged\n"
        "  --drift         only groups whose settings somebody else has changed\n"
        "  --unit GLOB     only units whose name matches\n"
        "  -a, --all       also groups that nothing gives a class\n"
        "  --json          GET /v1/groups, all pages joined\n\n"
        "QUOTA is in percent of one CPU. USED is the share of one CPU, THROTTLED that of\n"
        "the periods, PRESSURE the 10 s average of \"some\".";

static const char *const states[] = { "applied", "degraded", "pending", "held", "refused", "failed", "paused", "dry_run", "unmanaged" };

static void print_group(Table *t, const json_t *g) {
        const json_t *sample = json_object_get(g, "sample"), *latency = json_object_get(g, "latency"), *pressure = json_object_get(sample, "pressure");
        const char *state = json_text(g, "state");
        char text[FORMAT_MAX];
        Bandwidth b;
        bool has = json_bandwidth(json_object_get(g, "bandwidth"), "observed", &b);
        uint64_t n;

        table_row(t);
        table_cell(t, group_name(g), STYLE_NONE);
        table_cell(t, json_text(g, "class"), STYLE_NONE);
        table_cell(t, json_text(g, "source"), STYLE_NONE);
        table_cell(t, state, state_style(state));
        table_cell(t, format_quota(has ? &b : NULL, text), STYLE_NONE);
        table_cell(t, has ? duration_format(b.burst_usec, text, sizeof(text)) : NULL, STYLE_NONE);
        if (latency && json_is_integer(json_object_get(latency, "latency_nice")) && !streq_null(json_text(latency, "status"), "unmanaged")) {
                (void) snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(latency, "latency_nice")));
                table_cell(t, text, STYLE_NONE);
        } else
                table_cell(t, NULL, STYLE_NONE);
        table_cell(t, json_number(sample, "usage_permyriad_of_cpu", &n) ? format_permyriad(n, text) : NULL, STYLE_NONE);
        table_cell(t, json_number(sample, "throttled_permyriad", &n) ? format_permyriad(n, text) : NULL, STYLE_NONE);
        table_cell(t, json_number(pressure, "some_avg10_permyriad", &n) ? format_permyriad(n, text) : NULL, STYLE_NONE);
        table_cell(t, json_flag(g, "drift") ? "drift" : json_text(g, "state_reason") ?: json_text(g, "unmanaged_reason") ?: "", STYLE_NONE);
}

int verb_list(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "class", required_argument, NULL, 'c' },
                { "state", required_argument, NULL, 's' },
                { "drift", no_argument, NULL, 'd' },
                { "unit", required_argument, NULL, 'u' },
                { "all", no_argument, NULL, 'a' },
                {},
        };
        static const Column columns[] = {
                { "GROUP", COLUMN_CUT }, { "CLASS", COLUMN_LEFT }, { "FROM", COLUMN_WIDE }, { "STATE", COLUMN_LEFT }, { "QUOTA", COLUMN_RIGHT },
                { "BURST", COLUMN_RIGHT | COLUMN_WIDE }, { "LATENCY", COLUMN_RIGHT | COLUMN_WIDE }, { "USED", COLUMN_RIGHT }, { "THROTTLED", COLUMN_RIGHT },
                { "PRESSURE", COLUMN_RIGHT }, { "NOTE", COLUMN_CUT | COLUMN_WIDE },
        };
        GroupsFilter filter = {};
        json_t *all = NULL, *group;
        Options o;
        Table *t;
        size_t i;
        int option;
        ExitCode code;

        options_init(&o, c, verb, options, false, argc, argv);
        while ((option = options_next(&o)) >= 0)
                switch (option) {
                case 'c':
                        filter.service_class = optarg;
                        break;
                case 's':
                        filter.state = optarg;
                        for (i = 0; i < ELEMENTSOF(states) && !streq(states[i], optarg); i++)
                                ;
                        if (i == ELEMENTSOF(states)) {
                                const char *nearest = text_suggest(optarg, states, ELEMENTSOF(states));

                                code = options_wrong(&o, "--state", optarg, "is no state");
                                if (nearest)
                                        hint("Did you mean \"%s\"?", nearest);
                                return code;
                        }
                        break;
                case 'd':
                        filter.drift = "true";
                        break;
                case 'u':
                        filter.unit = optarg;
                        break;
                case 'a':
                        filter.all = true;
                        break;
                }
        if (option != OPTIONS_END || !options_check_arguments(&o, 0, 0))
                return o.exit_code;
        code = groups_request(c, filter, false, &all);
        if (code != CODE_OK)
                return code;
        if (c->json)
                code = json_print(c, all);
        else {
                t = table_new(c, columns, ELEMENTSOF(columns));
                if (t)
                        json_array_foreach(json_object_get(all, "groups"), i, group)
                                print_group(t, group);
                code = t ? table_print(t, "No group has a class.") : CODE_FAILURE;
                (void) table_free(t);
        }
        json_decref(all);
        return code;
}
