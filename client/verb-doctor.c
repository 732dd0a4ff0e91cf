/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* doctor: what this host can do and what that costs; then what is wrong now and what helps. */

#include <inttypes.h>
#include <sys/stat.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/groups.h"
#include "client/options.h"
#include "client/table.h"
#include "client/verbs.h"

const char help_doctor[] =
        "Every fact about this host that cpuclass needs: whether it holds, what is lost\n"
        "without it, and what brings it. Then what is wrong now: a refused policy, failed\n"
        "settings, foreign changes, and which units share the effect of a switched-on cpu\n"
        "controller.\n\n"
        "  --json   the answer of GET /v1/host\n\n"
        "Exit code 1 when something is wrong; a feature that the kernel lacks is not.";

#define SIBLINGS_ASKED 20      /* groups whose siblings are asked for: each is a request */

static void print_facts(const Client *c, const json_t *host) {
        char text[FORMAT_MAX];
        json_t *one;
        uint64_t n;
        size_t i;

        say_styled(c, STYLE_BOLD, "Linux %s", json_text(host, "kernel_release") ?: "?");
        say(", %" PRIu64 " CPUs", json_number_or(host, "n_cpus", 0));
        if (json_number(host, "base_slice_nsec", &n) && n > 0)
                say(", base slice %s", duration_format(n / NSEC_PER_USEC, text, sizeof(text)));
        if (json_number(host, "bandwidth_slice_usec", &n) && n > 0)
                say(", bandwidth slice %s", duration_format(n, text, sizeof(text)));
        if (json_text(host, "sched_ext"))
                say_styled(c, STYLE_WARN, ", sched_ext scheduler %s", json_text(host, "sched_ext"));
        (void) putchar('\n');
        json_array_foreach(json_object_get(host, "facts"), i, one) {
                const char *state = json_text(one, "state") ?: "unknown";
                static const char *const keys[] = { "reason", "loss", "remedy" };
                static const char *const labels[] = { "why", "lost", "helps" };

                say_styled(c, state_style(state), "  %-13s", state);
                say("%s\n", json_text(one, "name") ?: "?");
                if (streq(state, "yes"))
                        continue;
                for (size_t k = 0; k < ELEMENTSOF(keys); k++)
                        if (json_text(one, keys[k]) && *json_text(one, keys[k])) {
                                say_styled(c, STYLE_DIM, "               %-6s", labels[k]);
                                say("%s\n", json_text(one, keys[k]));
                        }
        }
}

/* One thing that is wrong: counted, so that the exit code tells. */
__attribute__((format(printf, 3, 4)))
static void wrong(const Client *c, unsigned *n, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&text, format, arguments) < 0)
                text = NULL;
        va_end(arguments);
        if ((*n)++ == 0)
                (void) putchar('\n');
        say_styled(c, STYLE_BAD, "  wrong        ");
        say("%s\n", text ? text : "");
}

static void print_status(const Client *c, const json_t *s, unsigned *n) {
        const json_t *policy = json_object_get(s, "policy");

        if (json_text(policy, "error"))
                wrong(c, n, "the policy on disk was refused, the former one is in force: %s (cpuclassctl policy check)", json_text(policy, "error"));
        if (!json_flag(s, "bus_connected"))
                wrong(c, n, "no connection to systemd: what is a unit's is not changed (systemctl status dbus.service)");
        if (!json_flag(s, "ready"))
                wrong(c, n, "the daemon is still starting");
        if (json_flag(s, "paused"))
                wrong(c, n, "everything is paused: nothing is adjusted (cpuclassctl resume)");
        if (json_flag(s, "dry_run"))
                wrong(c, n, "the daemon runs with --dry-run: it decides and writes nothing");
}

static void print_groups(const Client *c, const json_t *groups, unsigned *n) {
        json_t *one;
        size_t i;

        json_array_foreach(json_object_get(groups, "groups"), i, one) {
                const char *state = json_text(one, "state"), *reason = json_text(one, "state_reason");

                if (json_text(one, "unknown_class"))
                        wrong(c, n, "%s: the class \"%s\" does not exist", group_name(one), json_text(one, "unknown_class"));
                if (streq_null(state, "failed"))
                        wrong(c, n, "%s: %s (cpuclassctl explain %s)", group_name(one), reason ? reason : "a setting failed", group_name(one));
                if (json_flag(one, "drift"))
                        wrong(c, n, "%s: somebody else changes its settings (cpuclassctl explain %s)", group_name(one), group_name(one));
        }
}

static json_t *class_of(const json_t *classes, const char *name) {
        json_t *one;
        size_t i;

        json_array_foreach(json_object_get(classes, "classes"), i, one)
                if (name && streq_null(json_text(json_object_get(one, "class"), "name"), name))
                        return json_object_get(one, "class");
        return NULL;
}

/* Whether a class may switch the controller on; its place in the document is "cpu" or the class itself. */
static bool enables_controller(const json_t *one) {
        return json_flag(one, "enable_controller") || json_flag(json_object_get(one, "cpu"), "enable_controller");
}

/* Whose share changed because a class switched the cpu controller on beside them. */
static void print_siblings(const Client *c, const json_t *groups, const json_t *classes) {
        json_t *one, *sibling, *seen = json_object();
        size_t i, k, asked = 0;

        json_array_foreach(json_object_get(groups, "groups"), i, one) {
                _cleanup_answer_ Answer a = {};
                _cleanup_free_ char *url = NULL;

                if (!enables_controller(class_of(classes, json_text(one, "class"))) || !json_text(one, "unit") || asked++ >= SIBLINGS_ASKED)
                        continue;
                url = url_with_query("/v1/explain", "unit", json_text(one, "unit"), NULL);
                if (!url || http_call(c, "GET", url, NULL, TIMEOUT_USUAL, true, &a) != CODE_OK || a.status != 200)
                        continue;
                json_array_foreach(json_object_get(a.json, "affected_siblings"), k, sibling) {
                        if (!json_is_string(sibling) || json_object_get(seen, json_string_value(sibling)))
                                continue;
                        if (json_object_size(seen) == 0) {
                                (void) putchar('\n');
                                say("  note         classes with \"enable_controller\" have the cpu controller on; these units share by weight now:\n");
                        }
                        (void) json_object_set_new(seen, json_string_value(sibling), json_true());
                        say("               %s\n", json_string_value(sibling));
                }
        }
        json_decref(seen);
}

/* The daemon does not answer: what can be seen from here. */
static void print_unreachable(const Client *c) {
        struct stat st;

        if (lstat(c->socket, &st) < 0)
                hint("%s: %s. Is cpuclassd.socket started? systemctl enable --now cpuclassd.socket cpuclassd.service", c->socket, strerror(errno));
        else if (!S_ISSOCK(st.st_mode))
                hint("%s is no socket: something else lies there.", c->socket);
        else if (access(c->socket, W_OK) < 0)
                hint("%s is not for you: become a member of the group cpuclass, and log in again.", c->socket);
        else
                hint("%s is there, but nobody listens: journalctl -u cpuclassd.service", c->socket);
}

int verb_doctor(Client *c, const Verb *verb, int argc, char **argv) {
        _cleanup_answer_ Answer host = {}, status = {}, classes = {};
        json_t *groups = NULL;
        unsigned n_wrong = 0;
        Options o;
        ExitCode code;

        options_init(&o, c, verb, NULL, false, argc, argv);
        if (options_next(&o) != OPTIONS_END || !options_check_arguments(&o, 0, 0))
                return o.exit_code;
        code = client_request(c, "GET", "/v1/host", NULL, TIMEOUT_USUAL, &host);
        if (code == CODE_UNREACHABLE || code == CODE_REFUSED)
                print_unreachable(c);
        if (code != CODE_OK)
                return code;
        if (c->json) {
                client_print_json(c, &host);
                return CODE_OK;
        }
        print_facts(c, host.json);
        code = client_request(c, "GET", "/v1/status", NULL, TIMEOUT_USUAL, &status);
        if (code == CODE_OK)
                code = client_request(c, "GET", "/v1/classes", NULL, TIMEOUT_USUAL, &classes);
        if (code == CODE_OK)
                code = groups_request(c, (GroupsFilter) {}, false, &groups);
        if (code != CODE_OK)
                return code;
        print_status(c, status.json, &n_wrong);
        print_groups(c, groups, &n_wrong);
        print_siblings(c, groups, classes.json);
        json_decref(groups);
        if (n_wrong == 0) {
                (void) putchar('\n');
                say_styled(c, STYLE_GOOD, "Nothing is wrong.\n");
        }
        return n_wrong > 0 ? CODE_FAILURE : CODE_OK;
}
