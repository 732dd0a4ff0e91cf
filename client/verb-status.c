/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* status: the daemon itself, and what waits for something. */

#include <inttypes.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/http.h"
#include "client/options.h"
#include "client/verbs.h"

const char help_status[] =
        "How the daemon is doing: policy, groups, pauses, writes, and the assignments\n"
        "that wait for their target.\n\n"
        "  --json   the answer of GET /v1/status";

static void row(const Client *c, const char *name) {
        say_styled(c, STYLE_DIM, "  %-10s ", name);
}

static void print_status(const Client *c, const json_t *s) {
        const json_t *groups = json_object_get(s, "groups"), *writes = json_object_get(s, "writes"), *policy = json_object_get(s, "policy");
        const char *error = json_text(policy, "error");
        char a[FORMAT_MAX], b[FORMAT_MAX];
        uint64_t at = 0, failed, drift;
        json_t *one;
        size_t i;

        say_styled(c, STYLE_BOLD, "cpuclassd %s", json_text(s, "version") ?: "");
        if (json_time(s, "started_at", &at))
                say(", started %s", format_age(at, now_usec(), a));
        (void) putchar('\n');

        row(c, "state");
        if (!json_flag(s, "ready"))
                say_styled(c, STYLE_WARN, "starting");
        else
                say_styled(c, STYLE_GOOD, "ready");
        if (json_flag(s, "dry_run"))
                say_styled(c, STYLE_WARN, ", dry run: decides and writes nothing");
        if (json_flag(s, "paused")) {
                say_styled(c, STYLE_WARN, ", paused");
                if (json_time(s, "paused_until", &at))
                        say_styled(c, STYLE_WARN, ", ends %s", format_age(at, now_usec(), a));
        }
        if (!json_flag(s, "bus_connected"))
                say_styled(c, STYLE_WARN, ", no connection to systemd");
        (void) putchar('\n');

        row(c, "policy");
        say("revision %" PRIu64 "\n", json_number_or(policy, "revision", 0));
        if (error) {
                row(c, "");
                say_styled(c, STYLE_BAD, "the policy on disk was refused, the former one is in force: %s\n", error);
        }

        row(c, "groups");
        failed = json_number_or(groups, "failed", 0);
        drift = json_number_or(groups, "drift", 0);
        say("%" PRIu64 " seen, %" PRIu64 " with a class, %" PRIu64 " assignments waiting", json_number_or(groups, "seen", 0),
            json_number_or(groups, "classified", 0), json_number_or(groups, "pending", 0));
        say_styled(c, drift ? STYLE_WARN : STYLE_NONE, ", %" PRIu64 " drifted", drift);
        say_styled(c, failed ? STYLE_BAD : STYLE_NONE, ", %" PRIu64 " failed\n", failed);

        row(c, "writes");
        say("%" PRIu64 " bandwidth, %" PRIu64 " thread, %" PRIu64 " through systemd, %" PRIu64 " file\n", json_number_or(writes, "bandwidth", 0),
            json_number_or(writes, "thread", 0), json_number_or(writes, "bus", 0), json_number_or(writes, "file", 0));
        row(c, "undo");
        say("%" PRIu64 " originals kept, %" PRIu64 " threads tracked\n", json_number_or(s, "ledger_records", 0), json_number_or(s, "threads_tracked", 0));
        row(c, "loop");
        say("%" PRIu64 " ticks, the last took %s, the longest %s\n", json_number_or(s, "ticks", 0),
            duration_format(json_number_or(s, "last_tick_usec", 0), a, sizeof(a)), duration_format(json_number_or(s, "worst_tick_usec", 0), b, sizeof(b)));

        json_array_foreach(json_object_get(s, "pending"), i, one) {
                if (i == 0)
                        (void) puts("\nWaiting for their target:");
                say("  %s -> %s: %s\n", json_text(one, "unit") ?: json_text(one, "cgroup") ?: json_text(one, "pod_uid") ?: "?",
                    json_text(one, "class") ?: "?", json_text(one, "pending") ?: "not here");
        }
}

int verb_status(Client *c, const Verb *verb, int argc, char **argv) {
        _cleanup_answer_ Answer a = {};
        Options o;
        ExitCode code;

        options_init(&o, c, verb, NULL, false, argc, argv);
        if (options_next(&o) != OPTIONS_END || !options_check_arguments(&o, 0, 0))
                return o.exit_code;
        code = client_request(c, "GET", "/v1/status", NULL, TIMEOUT_USUAL, &a);
        if (code != CODE_OK)
                return code;
        if (c->json)
                client_print_json(c, &a);
        else
                print_status(c, a.json);
        return CODE_OK;
}
