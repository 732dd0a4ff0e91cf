/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* explain: the whole story of a group, from who gave it its class to what the kernel has and what limits it. */

#include <inttypes.h>

#include "client/format.h"
#include "client/group-print.h"
#include "client/options.h"
#include "client/target.h"
#include "client/verbs.h"

const char help_explain[] =
        "Why a group has the settings it has: who gave it the class and what else would\n"
        "match; for each setting the original, the base, what is desired and observed, the\n"
        "last writer, error and drift; what is effective along the path; and the last\n"
        "decisions with their numbers. GROUP is a unit, a cgroup path or pod:UID.\n\n"
        "  -n N     decisions to show (5; 0 none)\n"
        "  --json   the answer of GET /v1/explain";

static void print_precedence(const Client *c, const json_t *explain) {
        json_t *one;
        size_t i;

        json_array_foreach(json_object_get(explain, "precedence"), i, one) {
                const char *verdict = json_text(one, "verdict");
                bool chosen = streq_null(verdict, "chosen");

                print_label(c, i == 0 ? "asked" : "");
                say_styled(c, chosen ? STYLE_BOLD : STYLE_DIM, "%-10s %-9s", json_text(one, "source") ?: "?", verdict ? verdict : "");
                if (json_text(one, "class"))
                        say_styled(c, chosen ? STYLE_BOLD : STYLE_NONE, " %s", json_text(one, "class"));
                if (json_text(one, "detail") && *json_text(one, "detail"))
                        say("%s %s", json_text(one, "class") ? "," : "", json_text(one, "detail"));
                (void) putchar('\n');
        }
}

static void print_assignment(const Client *c, const json_t *group) {
        const json_t *a = json_object_get(group, "assignment");
        char text[FORMAT_MAX];
        uint64_t at;

        if (!json_is_object(a))
                return;
        print_label(c, "assigned");
        say("by %s for \"%s\"", json_text(a, "by") ?: "?", json_text(a, "owner") ?: "?");
        if (json_time(a, "created_at", &at))
                say(", %s", format_age(at, now_usec(), text));
        if (json_time(a, "expires_at", &at))
                say(", ends %s", format_age(at, now_usec(), text));
        if (json_object_size(json_object_get(a, "overrides")) > 0) {
                _cleanup_free_ char *overrides = json_dumps(json_object_get(a, "overrides"), JSON_COMPACT);

                say(", with %s", overrides ? overrides : "overrides");
        }
        (void) putchar('\n');
}

static void print_effective(const Client *c, const json_t *explain) {
        const json_t *effective = json_object_get(explain, "effective"), *own = json_object_get(json_object_get(explain, "group"), "bandwidth");
        const char *limited_by = json_text(effective, "limited_by");
        char text[FORMAT_MAX];
        Bandwidth b;
        json_t *one;
        size_t i;

        if (json_bandwidth(effective, "bandwidth", &b)) {
                print_label(c, "effective");
                say_styled(c, STYLE_BOLD, "%s of a CPU", format_quota(&b, text));
                if (limited_by && !streq_null(limited_by, json_text(json_object_get(explain, "group"), "cgroup")))
                        say_styled(c, STYLE_WARN, ", limited by %s", limited_by);
                else if (b.quota_usec == QUOTA_UNLIMITED)
                        say(": nothing on the path limits it");
                (void) putchar('\n');
        } else if (!json_flag(own, "controller_off") && json_is_object(own)) {
                print_label(c, "effective");
                say("not known\n");
        }
        if (json_array_size(json_object_get(effective, "path")) < 2)
                return;
        json_array_foreach(json_object_get(effective, "path"), i, one) {
                const json_t *nice = json_object_get(one, "latency_nice");
                bool has = json_bandwidth(one, "bandwidth", &b);

                print_label(c, i == 0 ? "path" : "");
                say("%*s%s  %s", (int) i * 2, "", group_name(one), format_quota(has ? &b : NULL, text));
                if (json_text(one, "class"))
                        say("  %s", json_text(one, "class"));
                if (json_is_integer(nice))
                        say("  nice %" JSON_INTEGER_FORMAT, json_integer_value(nice));
                if (json_flag(one, "drift"))
                        say_styled(c, STYLE_WARN, "  drift");
                (void) putchar('\n');
        }
}

static void print_explain(const Client *c, const json_t *explain, size_t n_decisions) {
        const json_t *group = json_object_get(explain, "group"), *decisions = json_object_get(explain, "decisions");
        const char *pid_cgroup = json_text(explain, "pid_cgroup");
        size_t i, n;
        json_t *one;

        group_print_head(c, group);
        if (pid_cgroup) {
                print_label(c, "process");
                say("%" PRIu64 " is in %s\n", json_number_or(json_object_get(explain, "asked"), "pid", 0), pid_cgroup);
        }
        print_precedence(c, explain);
        print_assignment(c, group);
        if (json_text(group, "inherited_from")) {
                print_label(c, "inherited");
                say("from %s\n", json_text(group, "inherited_from"));
        }
        (void) putchar('\n');
        group_print_knobs(c, group);
        print_effective(c, explain);
        group_print_sample(c, group);

        json_array_foreach(json_object_get(explain, "affected_siblings"), i, one) {
                print_label(c, i == 0 ? "also affects" : "");
                say("%s\n", json_string_value(one) ?: "?");
        }

        n = json_array_size(decisions);
        if (n_decisions == 0)
                return;
        (void) putchar('\n');
        if (n == 0)
                say("Nothing has been changed since the daemon started.\n");
        for (i = n > n_decisions ? n - n_decisions : 0; i < n; i++)
                decision_print(c, json_array_get(decisions, i), false, true);
}

int verb_explain(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "lines", required_argument, NULL, 'n' },
                {},
        };
        _cleanup_argument_ Argument argument = {};
        _cleanup_answer_ Answer a = {};
        unsigned long n_decisions = 5;
        Options o;
        int option;
        ExitCode code;

        options_init(&o, c, verb, options, false, argc, argv);
        while ((option = options_next(&o)) >= 0) {
                char *end;

                n_decisions = strtoul(optarg, &end, 10);
                if (end == optarg || *end || *optarg == '-')
                        return options_wrong(&o, "-n", optarg, "expected a number");
        }
        if (option != OPTIONS_END || !options_check_arguments(&o, 1, 1))
                return o.exit_code;
        code = argument_from_command_line(argv[optind], &argument);
        if (code == CODE_OK)
                code = argument_request(c, &argument, true, &a);
        if (code != CODE_OK)
                return code;
        if (c->json)
                client_print_json(c, &a);
        else
                print_explain(c, a.json, n_decisions);
        return CODE_OK;
}
