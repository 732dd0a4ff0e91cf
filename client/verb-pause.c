/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pause, resume, restore: hands off, hands on, and everything back. */

#include <inttypes.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/options.h"
#include "client/target.h"
#include "client/verbs.h"
#include "config.h"

const char help_pause[] =
        "Stops all changes: values stay as they are. With GROUP (a unit or a cgroup path)\n"
        "only for that group. Survives a restart of the daemon.\n\n"
        "  --for DURATION   ends by itself: 10m, 1h30m\n"
        "  --json           the answer of PUT /v1/pause";

const char help_resume[] =
        "Ends the pause of everything, or of GROUP.\n\n"
        "  --json   accepted; there is no answer to print";

const char help_restore[] =
        "Puts back every value that is still ours, leaves what somebody else has changed\n"
        "since, and pauses the daemon so that it stays so (\"resume\" ends that). Works\n"
        "without a running daemon too: then \"cpuclassd --restore\" does it.\n\n"
        "  --json   the answer of POST /v1/restore";

#define TIMEOUT_RESTORE 300    /* seconds: systemd reloads its units at the end */

static ExitCode group_from_command_line(const char *text, Argument *ret) {
        ExitCode code = argument_from_command_line(text, ret);

        if (code == CODE_OK && !argument_group(ret)) {
                complain("\"%s\": only a unit or a cgroup path can be paused", text);
                return CODE_INVALID;
        }
        return code;
}

static void print_paused(const Client *c, const json_t *answer) {
        char text[FORMAT_MAX];
        uint64_t until;
        json_t *one;
        size_t i;

        if (json_flag(answer, "paused")) {
                say_styled(c, STYLE_WARN, "Everything is paused");
                if (json_time(answer, "paused_until", &until))
                        say(", ends %s\n", format_age(until, now_usec(), text));
                else
                        say(" until \"cpuclassctl resume\"\n");
        }
        json_array_foreach(json_object_get(answer, "groups"), i, one) {
                say("%s is ", group_name(one));
                say_styled(c, STYLE_WARN, "paused");
                if (json_time(one, "paused_until", &until))
                        say(", ends %s\n", format_age(until, now_usec(), text));
                else
                        say(" until resumed\n");
        }
}

int verb_pause(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "for", required_argument, NULL, 'f' },
                {},
        };
        _cleanup_argument_ Argument argument = {};
        _cleanup_answer_ Answer a = {};
        json_t *body;
        uint64_t duration = 0;
        Options o;
        int option;
        ExitCode code = CODE_OK;

        options_init(&o, c, verb, options, false, argc, argv);
        while ((option = options_next(&o)) >= 0)
                if (duration_parse(optarg, &duration) < 0 || duration == 0 || duration > INT64_MAX)
                        return options_wrong(&o, "--for", optarg, "expected a duration such as 10m, 1h30m or 90s");
        if (option != OPTIONS_END || !options_check_arguments(&o, 0, 1))
                return o.exit_code;
        if (argv[optind]) {
                code = group_from_command_line(argv[optind], &argument);
                if (code != CODE_OK)
                        return code;
        }
        body = json_object();
        if (argument.text && json_object_set_new(body, "group", json_string(argument.text)) < 0) {
                complain("\"%s\" is no UTF-8: pause it by its unit, or its parent", argument.text);
                code = CODE_INVALID;
        }
        if (duration > 0)
                (void) json_object_set_new(body, "duration_usec", json_integer((json_int_t) duration));
        if (code == CODE_OK)
                code = client_request(c, "PUT", "/v1/pause", body, TIMEOUT_USUAL, &a);
        json_decref(body);
        if (code == CODE_NOT_FOUND && argument.text)
                argument_hint(c, &argument);
        if (code != CODE_OK)
                return code;
        if (c->json)
                client_print_json(c, &a);
        else
                print_paused(c, a.json);
        return CODE_OK;
}

int verb_resume(Client *c, const Verb *verb, int argc, char **argv) {
        _cleanup_argument_ Argument argument = {};
        _cleanup_answer_ Answer a = {};
        _cleanup_free_ char *url = NULL;
        Options o;
        ExitCode code = CODE_OK;

        options_init(&o, c, verb, NULL, false, argc, argv);
        if (options_next(&o) != OPTIONS_END || !options_check_arguments(&o, 0, 1))
                return o.exit_code;
        if (argv[optind])
                code = group_from_command_line(argv[optind], &argument);
        if (code != CODE_OK)
                return code;
        url = url_with_query("/v1/pause", "group", argument.text, NULL);
        code = url ? client_request(c, "DELETE", url, NULL, TIMEOUT_USUAL, &a) : CODE_FAILURE;
        if (code == CODE_NOT_FOUND && argument.text)
                argument_hint(c, &argument);
        if (code == CODE_OK && !c->json)
                say("%s resumed\n", argument.text ? argument.text : "Everything is");
        return code;
}

/* No daemon: the program itself does it, from the ledger on disk. */
static ExitCode restore_without_daemon(const Client *c) {
        const char *named = getenv("CPUCLASS_DAEMON"), *daemon = named && *named ? named : CPUCLASS_DAEMON;

        hint("No daemon answers: running %s --restore", daemon);
        (void) fflush(NULL);
        (void) execl(daemon, daemon, "--restore", (char *) NULL);
        complain("cannot run %s: %s", daemon, strerror(errno));
        return errno == EACCES ? CODE_REFUSED : CODE_UNREACHABLE;
}

int verb_restore(Client *c, const Verb *verb, int argc, char **argv) {
        _cleanup_answer_ Answer alive = {}, a = {};
        Options o;
        ExitCode code;

        options_init(&o, c, verb, NULL, false, argc, argv);
        if (options_next(&o) != OPTIONS_END || !options_check_arguments(&o, 0, 0))
                return o.exit_code;
        code = http_call(c, "GET", "/livez", NULL, 10, true, &alive);
        if (code == CODE_UNREACHABLE)
                return restore_without_daemon(c);
        code = client_request(c, "POST", "/v1/restore", NULL, TIMEOUT_RESTORE, &a);
        if (code != CODE_OK)
                return code;
        if (c->json) {
                client_print_json(c, &a);
                return CODE_OK;
        }
        say("%" PRIu64 " values put back, %" PRIu64 " left as somebody else has set them since.\n", json_number_or(a.json, "restored", 0),
            json_number_or(a.json, "left", 0));
        say("The daemon is paused until \"cpuclassctl resume\".\n");
        return CODE_OK;
}
