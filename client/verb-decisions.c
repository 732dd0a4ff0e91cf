/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* decisions and events: what was done and why, what is kept and what comes. Following survives a restart of the daemon. */

#include <inttypes.h>
#include <time.h>

#include "client/format.h"
#include "client/group-print.h"
#include "client/options.h"
#include "client/target.h"
#include "client/verbs.h"

const char help_decisions[] =
        "The latest decisions, oldest first: when, which group, what, and why.\n\n"
        "  -n N               how many (20, at most 1000)\n"
        "  --group GROUP      only of this unit or cgroup path\n"
        "  --since SEQUENCE   only later ones than this\n"
        "  -v, --numbers      with the values before and after, and what the law saw\n"
        "  -f, --follow       go on with those to come, until Ctrl-C\n"
        "  --json             GET /v1/decisions; with --follow one decision a line";

const char help_events[] =
        "The daemon's event stream, an event a line: its number, its kind, and what\n"
        "happened. Begins with what the daemon still keeps after SEQUENCE.\n\n"
        "  --since SEQUENCE   begin after this event (0: all that is kept)\n"
        "  -f, --follow       go on with those to come, until Ctrl-C\n"
        "  --json             the data of each event, one a line";

#define RETRY_SEC 1
#define RETRIES 30

typedef struct Follow {
        const Client *client;
        const char *group;       /* unit or path; NULL all */
        bool numbers, events;
        uint64_t shown;          /* up to this sequence number all is printed already; 0: nothing is */
        char last_id[96];        /* opaque; "" none yet */
} Follow;

static bool is_of_group(const json_t *d, const char *group) {
        return !group || streq_null(json_text(d, "unit"), group) || streq_null(json_text(d, "cgroup"), group);
}

static void print_line_json(const Client *c, const char *text) {
        Answer a = { .body = (char *) text, .length = strlen(text) };

        client_print_json(c, &a);
}

/* The stream begins with what the list has shown, so that nothing falls between the two: that is passed over. */
static bool is_shown(Follow *f, const char *name, const json_t *d) {
        if (f->shown == 0)
                return false;
        if (streq_null(name, "gap") || json_number_or(d, "sequence", 0) <= f->shown)
                return true;
        f->shown = 0;
        return false;
}

static int on_event(const char *id, const char *name, const char *data, void *userdata) {
        Follow *f = userdata;
        json_t *d = json_loads(data, 0, NULL);

        if (id && strlen(id) < sizeof(f->last_id))
                (void) strcpy(f->last_id, id);
        if (!json_is_object(d) || is_shown(f, name, d) || (streq_null(name, "decision") && !is_of_group(d, f->group)))
                ;
        else if (f->client->json)
                print_line_json(f->client, data);
        else if (streq_null(name, "gap"))
                say_styled(f->client, STYLE_WARN, "(some decisions were missed: the oldest that is kept is %" PRIu64 ")\n", json_number_or(d, "oldest", 0));
        else {
                if (f->events)
                        say_styled(f->client, STYLE_DIM, "%s %s ", id ? id : "-", name ? name : "message");
                decision_print(f->client, d, true, f->numbers);
        }
        if (d)
                json_decref(d);
        (void) fflush(stdout);
        return ferror(stdout);
}

/* Stays on the stream, also over a restart of the daemon, after which it begins with the oldest that the new one has. */
static ExitCode follow(Follow *f) {
        ExitCode code = CODE_OK;
        bool ended = false;

        for (int failures = 0; failures < RETRIES; failures++) {
                code = http_stream(f->client, "/v1/events", *f->last_id ? f->last_id : "0", on_event, f, failures > 0, &ended);
                if (ended)
                        return CODE_OK;
                if (code != CODE_OK && code != CODE_UNREACHABLE)
                        return code;
                if (code == CODE_OK) {
                        complain("the stream ended, trying again");
                        failures = 0;
                }
                (void) nanosleep(&(struct timespec) { .tv_sec = RETRY_SEC }, NULL);
        }
        complain("the daemon did not come back");
        return code;
}

static ExitCode print_kept(const Client *c, const json_t *answer, const Follow *f) {
        json_t *one;
        size_t i;

        if (json_flag(answer, "gap") && !c->json)
                say_styled(c, STYLE_WARN, "(the oldest that is kept is %" PRIu64 ")\n", json_number_or(answer, "oldest", 0));
        json_array_foreach(json_object_get(answer, "decisions"), i, one) {
                if (c->json) {
                        _cleanup_free_ char *text = json_dumps(one, JSON_COMPACT);

                        print_line_json(c, text ? text : "");
                        continue;
                }
                if (f->events)
                        say_styled(c, STYLE_DIM, "%" PRIu64 " decision ", json_number_or(one, "sequence", 0));
                decision_print(c, one, true, f->numbers);
        }
        return CODE_OK;
}

static bool is_number(const char *text) {
        return *text && text[strspn(text, "0123456789")] == 0 && strlen(text) < 19;
}

static int run(Client *c, const Verb *verb, int argc, char **argv, bool events) {
        static const struct option decision_options[] = {
                { "lines", required_argument, NULL, 'n' },
                { "group", required_argument, NULL, 'g' },
                { "since", required_argument, NULL, 's' },
                { "numbers", no_argument, NULL, 'v' },
                { "follow", no_argument, NULL, 'f' },
                {},
        };
        static const struct option event_options[] = {
                { "since", required_argument, NULL, 's' },
                { "follow", no_argument, NULL, 'f' },
                {},
        };
        _cleanup_argument_ Argument argument = {};
        _cleanup_answer_ Answer a = {};
        _cleanup_free_ char *url = NULL;
        const char *limit = "20", *since = NULL;
        Follow f = { .client = c, .events = events };
        bool want_follow = false;
        Options o;
        int option;
        ExitCode code;

        if (events) {
                limit = "1000";
                since = "0";
        }
        options_init(&o, c, verb, events ? event_options : decision_options, false, argc, argv);
        while ((option = options_next(&o)) >= 0)
                switch (option) {
                case 'n':
                        if (!is_number(optarg) || strtoul(optarg, NULL, 10) < 1 || strtoul(optarg, NULL, 10) > 1000)
                                return options_wrong(&o, "-n", optarg, "expected a number from 1 to 1000");
                        limit = optarg;
                        break;
                case 'g':
                        code = argument_from_command_line(optarg, &argument);
                        if (code != CODE_OK)
                                return code;
                        f.group = argument_group(&argument);
                        if (!f.group)
                                return options_wrong(&o, "--group", optarg, "expected a unit or a cgroup path");
                        break;
                case 's':
                        if (!is_number(optarg))
                                return options_wrong(&o, "--since", optarg, "expected a sequence number");
                        since = optarg;
                        break;
                case 'v':
                        f.numbers = true;
                        break;
                case 'f':
                        want_follow = true;
                        break;
                }
        if (option != OPTIONS_END || !options_check_arguments(&o, 0, 0))
                return o.exit_code;
        url = url_with_query("/v1/decisions", "since", since, "group", f.group, "limit", limit, NULL);
        code = url ? client_request(c, "GET", url, NULL, TIMEOUT_USUAL, &a) : CODE_FAILURE;
        if (code != CODE_OK)
                return code;
        if (c->json && !want_follow && !events) {
                client_print_json(c, &a);
                return CODE_OK;
        }
        code = print_kept(c, a.json, &f);
        if (!want_follow) {
                if (json_array_size(json_object_get(a.json, "decisions")) == 0 && !c->json)
                        say("Nothing has been changed since the daemon started.\n");
                return code;
        }
        (void) fflush(stdout);
        f.shown = json_number_or(a.json, "next_since", 0);
        return follow(&f);
}

int verb_decisions(Client *c, const Verb *verb, int argc, char **argv) {
        return run(c, verb, argc, argv, false);
}

int verb_events(Client *c, const Verb *verb, int argc, char **argv) {
        return run(c, verb, argc, argv, true);
}
