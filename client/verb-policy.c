/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* policy check works without a daemon and with its code; policy reload and show ask it. */

#include <inttypes.h>

#include "client/format.h"
#include "client/http.h"
#include "client/options.h"
#include "client/policy-files.h"
#include "client/table.h"
#include "client/text.h"
#include "client/verbs.h"
#include "config.h"

const char help_policy[] =
        "  check [FILE|DIRECTORY...]   the daemon's verdict, without a daemon. The files count as\n"
        "                              if they lay in " CPUCLASS_SYSCONF_POLICY_DIR ": beside what is\n"
        "                              installed, instead of a file of the same name. Without\n"
        "                              any: what is installed. What was put through the API is\n"
        "                              not looked at.\n"
        "  reload                      the daemon reads its files again: all of them, or none\n"
        "  show                        what is in force: files, classes, rules\n\n"
        "  --alone   check: only the files named, nothing installed beside them\n"
        "  --json    the verdict, or the API's answer\n\n"
        "Exit code 6: the policy is wrong.";

static json_t *diag_to_json(const Diag *d) {
        json_t *o = json_object();
        const struct {
                const char *key, *text;
        } texts[] = { { "file", d->file }, { "pointer", d->pointer }, { "message", d->message }, { "value", d->value }, { "limit", d->limit } };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (texts[i].text)
                        (void) json_object_set_new(o, texts[i].key, json_string(texts[i].text));
        if (d->line > 0)
                (void) json_object_set_new(o, "line", json_integer(d->line));
        return o;
}

static void print_verdict_json(const Client *c, const PolicyFiles *files, const Policy *policy, const DiagList *list) {
        json_t *names = json_array(), *errors = json_array(), *all;

        for (size_t i = 0; i < files->n_items; i++)
                (void) json_array_append_new(names, json_string(files->items[i].path));
        for (size_t i = 0; i < list->n_items; i++)
                (void) json_array_append_new(errors, diag_to_json(&list->items[i]));
        all = json_pack("{s:b, s:o, s:I, s:I, s:o}", "valid", policy != NULL, "files", names,
                        "classes", (json_int_t) (policy ? policy->n_classes : 0), "rules", (json_int_t) (policy ? policy->n_rules : 0), "errors", errors);
        if (all) {
                (void) json_print(c, all);
                json_decref(all);
        }
}

/* The error to go on with, so that all files are looked at: no memory before a bad file before none. */
static int worse(int a, int b) {
        return a == -ENOMEM || b == -ENOMEM ? -ENOMEM : a < 0 ? a : b;
}

static ExitCode check(const Client *c, char **paths, size_t n_paths, bool alone) {
        _cleanup_(policy_files_clear) PolicyFiles files = {};
        _cleanup_(diag_list_clear) DiagList list = {};
        _cleanup_(policy_free_pointer) Policy *policy = NULL;
        int r = 0;

        if (!alone) {
                r = policy_files_add(&files, CPUCLASS_VENDOR_POLICY_DIR, true, &list);
                if (r != -ENOMEM)
                        r = worse(r, policy_files_add(&files, CPUCLASS_SYSCONF_POLICY_DIR, true, &list));
        }
        for (size_t i = 0; i < n_paths && r != -ENOMEM; i++) {
                const char *slash = strrchr(paths[i], '/');

                r = worse(r, policy_files_add(&files, paths[i], false, &list));
                for (size_t k = 0; k < files.n_items && !endswith(paths[i], ".json"); k++)
                        if (streq(files.items[k].name, slash ? slash + 1 : paths[i]))
                                hint("Note: the daemon reads only names that end in .json; %s is not one.", paths[i]);
        }
        if (r == 0)
                r = policy_files_build(&files, &policy, &list);
        if (r == -ENOMEM) {
                complain("out of memory");
                return CODE_FAILURE;
        }
        if (c->json)
                print_verdict_json(c, &files, policy, &list);
        if (r < 0) {
                for (size_t i = 0; i < list.n_items && !c->json; i++) {
                        _cleanup_free_ char *text = diag_to_string(&list.items[i]);

                        complain("%s", text ? text : "out of memory");
                }
                return CODE_INVALID;
        }
        if (!c->json)
                say("Good: %zu classes, %zu rules in %zu files.\n", policy->n_classes, policy->n_rules, files.n_items);
        return CODE_OK;
}

static ExitCode reload(const Client *c) {
        _cleanup_answer_ Answer a = {};
        ExitCode code = client_request(c, "POST", "/v1/policy/reload", NULL, TIMEOUT_USUAL, &a);

        if (code != CODE_OK)
                return code;
        if (c->json)
                client_print_json(c, &a);
        else
                say("Revision %" PRIu64 " is in force: %zu classes, %" PRIu64 " rules.\n", json_number_or(a.json, "revision", 0),
                    json_array_size(json_object_get(a.json, "classes")), json_number_or(a.json, "n_rules", 0));
        return CODE_OK;
}

/* "unit=web-*.service slice=..." */
static char *match_text(json_t *match) {
        char *text = NULL;
        size_t length;
        const char *key;
        json_t *value;
        FILE *f = open_memstream(&text, &length);

        if (!f)
                return NULL;
        json_object_foreach(match, key, value)
                if (json_is_string(value))
                        (void) fprintf(f, "%s%s=%s", ftell(f) > 0 ? " " : "", key, json_string_value(value));
        return fclose(f) == 0 ? text : NULL;
}

static ExitCode print_rules(const Client *c, const json_t *answer) {
        static const Column columns[] = {
                { "RULE", COLUMN_LEFT }, { "CLASS", COLUMN_LEFT }, { "MATCHES", COLUMN_CUT }, { "FORCE", COLUMN_LEFT }, { "FROM", COLUMN_CUT },
        };
        Table *t = table_new(c, columns, ELEMENTSOF(columns));
        ExitCode code;
        json_t *one;
        size_t i;

        if (!t)
                return CODE_FAILURE;
        json_array_foreach(json_object_get(answer, "rules"), i, one) {
                const json_t *rule = json_object_get(one, "rule");
                _cleanup_free_ char *match = match_text(json_object_get(rule, "match"));

                table_row(t);
                table_cell(t, json_text(rule, "name"), STYLE_NONE);
                table_cell(t, json_text(rule, "class"), STYLE_NONE);
                table_cell(t, match, STYLE_NONE);
                table_cell(t, json_flag(rule, "force") ? "force" : NULL, STYLE_NONE);
                table_cell(t, json_text(one, "origin"), STYLE_NONE);
        }
        code = table_print(t, "There are no rules: only assignments, units and labels give classes.");
        (void) table_free(t);
        return code;
}

static ExitCode show(const Client *c) {
        _cleanup_answer_ Answer policy = {}, rules = {};
        ExitCode code = client_request(c, "GET", "/v1/policy", NULL, TIMEOUT_USUAL, &policy);
        const char *key;
        json_t *one;
        size_t i;

        if (code != CODE_OK)
                return code;
        if (c->json) {
                client_print_json(c, &policy);
                return CODE_OK;
        }
        code = client_request(c, "GET", "/v1/rules", NULL, TIMEOUT_USUAL, &rules);
        if (code != CODE_OK)
                return code;
        say("Revision %" PRIu64 "\n", json_number_or(policy.json, "revision", 0));
        if (json_text(policy.json, "error"))
                say_styled(c, STYLE_BAD, "What is on disk was refused: %s\n", json_text(policy.json, "error"));
        json_array_foreach(json_object_get(policy.json, "files"), i, one)
                say("%s%s\n", i == 0 ? "Files    " : "         ", json_string_value(one) ?: "?");
        json_array_foreach(json_object_get(policy.json, "classes"), i, one)
                say("%s%s", i == 0 ? "Classes  " : ", ", json_string_value(one) ?: "?");
        if (json_array_size(json_object_get(policy.json, "classes")) > 0)
                (void) putchar('\n');
        json_object_foreach(json_object_get(policy.json, "patches"), key, one)
                say("Patch    %s: %s\n", key, json_string_value(one) ?: "?");
        (void) putchar('\n');
        return print_rules(c, rules.json);
}

int verb_policy(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "alone", no_argument, NULL, 'a' },
                {},
        };
        static const char *const actions[] = { "check", "reload", "show" };
        const char *action, *nearest;
        bool alone = false;
        Options o;
        int option;

        options_init(&o, c, verb, options, false, argc, argv);
        while ((option = options_next(&o)) >= 0)
                alone = true;
        if (option != OPTIONS_END || !options_check_arguments(&o, 1, 4096))
                return o.exit_code;
        action = argv[optind];
        if (streq(action, "check"))
                return check(c, argv + optind + 1, (size_t) (argc - optind - 1), alone);
        if ((streq(action, "reload") || streq(action, "show")) && !options_check_arguments(&o, 1, 1))
                return o.exit_code;
        if (streq(action, "reload"))
                return reload(c);
        if (streq(action, "show"))
                return show(c);
        complain("policy: unknown action \"%s\"", action);
        nearest = text_suggest(action, actions, ELEMENTSOF(actions));
        if (nearest)
                hint("Did you mean \"%s\"?", nearest);
        else
                hint("Actions are check, reload and show.");
        return CODE_USAGE;
}
