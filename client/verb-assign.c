/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* assign and unassign: one PUT or DELETE, its dry run, and what became of it in the kernel. */

#include <inttypes.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/group-print.h"
#include "client/names.h"
#include "client/options.h"
#include "client/table.h"
#include "client/target.h"
#include "client/verbs.h"

const char help_assign[] =
        "Gives a unit, a cgroup path or pod:UID a class. It holds over restarts of the daemon\n"
        "and reboots; a unit that does not exist yet gets its class when it starts.\n\n"
        "  --quota, --floor, --ceiling AMOUNT   150% of a CPU, 50%base, 20ms a period, max, keep\n"
        "  --burst AMOUNT        50% of the quota, 20ms, full\n"
        "  --period DURATION     period of quota and burst, 1ms to 1s\n"
        "  --latency-nice N      -20 (first) to 19\n"
        "  --for DURATION        ends by itself: 10m, 1h30m\n"
        "  --owner OWNER         who may replace or prune it (default \"api\")\n"
        "  --steal               take it over from another owner\n"
        "  --force               also a protected unit, by its exact name\n"
        "  -n, --dry-run         show the writes that would follow, and who else is affected\n"
        "  --wait[=DURATION]     until the kernel has it (10s)\n"
        "  --json                the API's answer";

const char help_unassign[] =
        "Takes an assignment back: rules decide again, or the original values return.\n\n"
        "  -n, --dry-run       show the writes that would follow\n"
        "  --wait[=DURATION]   until the kernel has it (10s)\n"
        "  --json              the API's answer";

#define WAIT_DEFAULT_USEC (10 * USEC_PER_SEC)
#define WAIT_MAX_USEC (60 * USEC_PER_SEC)

typedef struct Request {
        Argument target;
        bool dry_run, wait, steal;
        uint64_t wait_usec;
} Request;

/* --wait[=DURATION] */
static ExitCode parse_wait(const Options *o, Request *r) {
        r->wait = true;
        r->wait_usec = WAIT_DEFAULT_USEC;
        if (optarg && (duration_parse(optarg, &r->wait_usec) < 0 || r->wait_usec == 0 || r->wait_usec > WAIT_MAX_USEC))
                return options_wrong(o, "--wait", optarg, "expected a duration up to 60s");
        return CODE_OK;
}

static ExitCode send(const Client *c, const Request *r, const char *method, json_t *body, Answer *ret) {
        char timeout[32];
        _cleanup_free_ char *url = NULL;

        (void) snprintf(timeout, sizeof(timeout), "%" PRIu64, r->wait_usec);
        url = argument_assignment_url(&r->target, "dry_run", r->dry_run ? "true" : NULL, "steal", r->steal ? "true" : NULL,
                                      "wait", r->wait ? "applied" : NULL, "timeout_usec", r->wait ? timeout : NULL, NULL);
        if (!url) {
                complain("out of memory");
                return CODE_FAILURE;
        }
        return client_request(c, method, url, body, TIMEOUT_USUAL + (unsigned) (r->wait_usec / USEC_PER_SEC), ret);
}

/* What a dry run answers. */
static ExitCode print_preview(const Client *c, const json_t *answer) {
        static const Column columns[] = {
                { "GROUP", COLUMN_CUT }, { "KNOB", COLUMN_LEFT }, { "WRITER", COLUMN_LEFT }, { "TARGET", COLUMN_CUT }, { "VALUE", COLUMN_LEFT },
        };
        Table *t = table_new(c, columns, ELEMENTSOF(columns));
        ExitCode code;
        json_t *one;
        size_t i;

        if (!t)
                return CODE_FAILURE;
        json_array_foreach(json_object_get(answer, "writes"), i, one) {
                const json_t *value = json_object_get(one, "value");
                _cleanup_free_ char *text = json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

                table_row(t);
                table_cell(t, json_text(one, "cgroup"), STYLE_NONE);
                table_cell(t, json_text(one, "knob"), STYLE_NONE);
                table_cell(t, json_text(one, "writer"), STYLE_NONE);
                table_cell(t, json_text(one, "target"), STYLE_NONE);
                table_cell(t, text, STYLE_NONE);
        }
        code = table_print(t, json_flag(answer, "matched") ? "Nothing would be written." : "The target is not here now; nothing would be written.");
        (void) table_free(t);
        json_array_foreach(json_object_get(answer, "affected"), i, one) {
                if (i == 0)
                        say_styled(c, STYLE_WARN, "Also affected, because the cpu controller is switched on beside them:\n");
                say("  %s\n", json_string_value(one) ?: "?");
        }
        json_array_foreach(json_object_get(answer, "notes"), i, one)
                say("Note: %s\n", json_string_value(one) ?: "");
        return code;
}

static void print_assignment(const Client *c, const json_t *a) {
        char text[FORMAT_MAX];
        uint64_t at;

        say("%s: ", json_text(a, "unit") ?: json_text(a, "cgroup") ?: json_text(a, "pod_uid") ?: "?");
        say_styled(c, STYLE_BOLD, "%s", json_text(a, "class") ?: "?");
        if (json_time(a, "expires_at", &at))
                say(", ends %s", format_age(at, now_usec(), text));
        if (json_text(a, "pending"))
                say_styled(c, STYLE_WARN, ", waits: %s", json_text(a, "pending"));
        (void) putchar('\n');
}

/* The answer of a PUT or DELETE with ?wait=applied. */
static void print_waited(const Client *c, const Request *r, const json_t *answer) {
        const json_t *group = json_object_get(answer, "group"), *assignment = json_object_get(answer, "assignment");

        if (assignment)
                print_assignment(c, assignment);
        else
                say("%s: no longer assigned\n", r->target.text);
        if (json_text(answer, "pending") && !json_text(assignment, "pending"))
                say_styled(c, STYLE_WARN, "  waits: %s\n", json_text(answer, "pending"));
        if (json_is_object(group))
                group_print_knobs_short(c, group);
}

static ExitCode add_amount(const Options *o, json_t *cpu, const char *key, const char *option, AmountKind bare_percent) {
        const char *why = "";
        Amount amount;
        json_t *value;

        if (amount_parse(optarg, bare_percent, &amount, &why) < 0)
                return options_wrong(o, option, optarg, why);
        value = amount_to_json(&amount);
        if (!value || json_object_set_new(cpu, key, value) < 0)
                return CODE_FAILURE;
        return CODE_OK;
}

static ExitCode add_latency_nice(const Options *o, json_t *overrides) {
        char *end;
        long n = strtol(optarg, &end, 10);

        if (end == optarg || *end || n < LATENCY_NICE_MIN || n > LATENCY_NICE_MAX)
                return options_wrong(o, "--latency-nice", optarg, "expected a whole number from -20 to 19");
        return json_object_set_new(overrides, "latency_nice", json_integer(n)) < 0 ? CODE_FAILURE : CODE_OK;
}

static ExitCode add_duration(const Options *o, json_t *to, const char *key, const char *option) {
        uint64_t usec;

        if (duration_parse(optarg, &usec) < 0 || usec == 0 || usec > INT64_MAX)
                return options_wrong(o, option, optarg, "expected a duration such as 10m, 1h30m or 500ms");
        return json_object_set_new(to, key, json_integer((json_int_t) usec)) < 0 ? CODE_FAILURE : CODE_OK;
}

static void json_decref_pointer(json_t **o) {
        if (*o)
                json_decref(*o);
}

enum { OPT_QUOTA = 256, OPT_BURST, OPT_FLOOR, OPT_CEILING, OPT_PERIOD, OPT_LATENCY_NICE, OPT_FOR, OPT_OWNER, OPT_STEAL, OPT_FORCE, OPT_WAIT };

int verb_assign(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "quota", required_argument, NULL, OPT_QUOTA },
                { "burst", required_argument, NULL, OPT_BURST },
                { "floor", required_argument, NULL, OPT_FLOOR },
                { "ceiling", required_argument, NULL, OPT_CEILING },
                { "period", required_argument, NULL, OPT_PERIOD },
                { "latency-nice", required_argument, NULL, OPT_LATENCY_NICE },
                { "for", required_argument, NULL, OPT_FOR },
                { "owner", required_argument, NULL, OPT_OWNER },
                { "steal", no_argument, NULL, OPT_STEAL },
                { "force", no_argument, NULL, OPT_FORCE },
                { "dry-run", no_argument, NULL, 'n' },
                { "wait", optional_argument, NULL, OPT_WAIT },
                {},
        };
        _cleanup_(json_decref_pointer) json_t *body = json_object(), *overrides = json_object(), *cpu = json_object();
        _cleanup_answer_ Answer a = {};
        Request r = {};
        Options o;
        int option;
        ExitCode code = CODE_OK;

        options_init(&o, c, verb, options, false, argc, argv);
        while (code == CODE_OK && (option = options_next(&o)) >= 0)
                switch (option) {
                case OPT_QUOTA:
                        code = add_amount(&o, cpu, "quota", "--quota", AMOUNT_PERCENT_OF_CPU);
                        break;
                case OPT_BURST:
                        code = add_amount(&o, cpu, "burst", "--burst", AMOUNT_PERCENT_OF_QUOTA);
                        break;
                case OPT_FLOOR:
                        code = add_amount(&o, cpu, "floor", "--floor", AMOUNT_PERCENT_OF_CPU);
                        break;
                case OPT_CEILING:
                        code = add_amount(&o, cpu, "ceiling", "--ceiling", AMOUNT_PERCENT_OF_CPU);
                        break;
                case OPT_PERIOD:
                        code = add_duration(&o, cpu, "period_usec", "--period");
                        break;
                case OPT_LATENCY_NICE:
                        code = add_latency_nice(&o, overrides);
                        break;
                case OPT_FOR:
                        code = add_duration(&o, body, "expires_in_usec", "--for");
                        break;
                case OPT_OWNER:
                        code = json_object_set_new(body, "owner", json_string(optarg)) < 0 ? options_wrong(&o, "--owner", optarg, "is no UTF-8") : CODE_OK;
                        break;
                case OPT_STEAL:
                        r.steal = true;
                        break;
                case OPT_FORCE:
                        (void) json_object_set_new(body, "force", json_true());
                        break;
                case 'n':
                        r.dry_run = true;
                        break;
                case OPT_WAIT:
                        code = parse_wait(&o, &r);
                        break;
                }
        if (code != CODE_OK)
                return code;
        if (option != OPTIONS_END || !options_check_arguments(&o, 2, 2))
                return o.exit_code;
        code = argument_from_command_line(argv[optind], &r.target);
        if (code == CODE_OK && r.target.kind == ARGUMENT_PID) {
                complain("a process cannot be assigned, only its group can");
                hint("Which group that is: cpuclassctl explain %s", r.target.text);
                code = CODE_INVALID;
        }
        if (code == CODE_OK && json_object_set_new(body, "class", json_string(argv[optind + 1])) < 0) {
                complain("\"%s\" is no class name", argv[optind + 1]);
                code = CODE_INVALID;
        }
        if (code == CODE_OK && json_object_size(cpu) > 0)
                (void) json_object_set(overrides, "cpu", cpu);
        if (code == CODE_OK && json_object_size(overrides) > 0)
                (void) json_object_set(body, "overrides", overrides);
        if (code == CODE_OK) {
                code = send(c, &r, "PUT", body, &a);
                if (code == CODE_INVALID)
                        class_hint_unless_known(c, argv[optind + 1]);
        }
        if (code == CODE_OK) {
                if (c->json)
                        client_print_json(c, &a);
                else if (r.dry_run)
                        code = print_preview(c, a.json);
                else if (r.wait)
                        print_waited(c, &r, a.json);
                else
                        print_assignment(c, a.json);
        }
        argument_clear(&r.target);
        return code;
}

int verb_unassign(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "dry-run", no_argument, NULL, 'n' },
                { "wait", optional_argument, NULL, OPT_WAIT },
                {},
        };
        _cleanup_answer_ Answer before = {}, a = {};
        _cleanup_free_ char *url = NULL;
        Request r = {};
        Options o;
        int option;
        ExitCode code = CODE_OK;

        options_init(&o, c, verb, options, false, argc, argv);
        while (code == CODE_OK && (option = options_next(&o)) >= 0)
                switch (option) {
                case 'n':
                        r.dry_run = true;
                        break;
                case OPT_WAIT:
                        code = parse_wait(&o, &r);
                        break;
                }
        if (code != CODE_OK)
                return code;
        if (option != OPTIONS_END || !options_check_arguments(&o, 1, 1))
                return o.exit_code;
        code = argument_from_command_line(argv[optind], &r.target);
        if (code == CODE_OK && r.target.kind == ARGUMENT_PID) {
                complain("a process has no assignment, only its group has");
                code = CODE_INVALID;
        }
        /* DELETE answers the same for what never was: a person wants to know. */
        if (code == CODE_OK) {
                url = argument_assignment_url(&r.target, NULL);
                code = url ? client_request(c, "GET", url, NULL, TIMEOUT_USUAL, &before) : CODE_FAILURE;
                if (code == CODE_NOT_FOUND)
                        assignment_hint(c, r.target.text);
        }
        if (code == CODE_OK)
                code = send(c, &r, "DELETE", NULL, &a);
        if (code == CODE_OK) {
                if (c->json)
                        client_print_json(c, &a);
                else if (r.dry_run)
                        code = print_preview(c, a.json);
                else
                        print_waited(c, &r, a.json);
        }
        argument_clear(&r.target);
        return code;
}
