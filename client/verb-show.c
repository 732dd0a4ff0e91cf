/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* show: a group on one screen. */

#include "client/format.h"
#include "client/group-print.h"
#include "client/options.h"
#include "client/target.h"
#include "client/verbs.h"

const char help_show[] =
        "One group: its class, what is in force, and what it uses. GROUP is a unit, a cgroup\n"
        "path, a process id or pod:UID. \"explain\" says why.\n\n"
        "  --json   the API's GroupView";

int verb_show(Client *c, const Verb *verb, int argc, char **argv) {
        _cleanup_argument_ Argument argument = {};
        _cleanup_answer_ Answer a = {};
        const json_t *decision;
        Options o;
        ExitCode code;

        options_init(&o, c, verb, NULL, false, argc, argv);
        if (options_next(&o) != OPTIONS_END || !options_check_arguments(&o, 1, 1))
                return o.exit_code;
        code = argument_from_command_line(argv[optind], &argument);
        if (code == CODE_OK)
                code = argument_request(c, &argument, false, &a);
        if (code != CODE_OK)
                return code;
        if (c->json) {
                client_print_json(c, &a);
                return CODE_OK;
        }
        group_print_head(c, a.json);
        if (json_text(a.json, "source")) {
                print_label(c, "given by");
                say("%s%s%s\n", json_text(a.json, "source"), json_text(a.json, "rule") ? " " : "", json_text(a.json, "rule") ?: "");
        }
        group_print_knobs_short(c, a.json);
        group_print_sample(c, a.json);
        decision = json_object_get(a.json, "last_decision");
        if (json_is_object(decision)) {
                print_label(c, "last change");
                decision_print(c, decision, false, false);
        }
        return CODE_OK;
}
