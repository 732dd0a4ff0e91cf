/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* complete: words for the shells' completions, one a line. Not in the help: people have no use for it. It is silent and quick when the daemon is not there. */

#include "client/format.h"
#include "client/groups.h"
#include "client/options.h"
#include "client/verbs.h"

const char help_complete[] =
        "Words for shell completion that begin with PREFIX: verbs, options of a verb,\n"
        "classes, groups, assigned targets, rules, patches.";

#define TIMEOUT_COMPLETE 2

/* Only names that a shell can take without surprises: a completion is not the place for others. */
static void print_word(const char *word, const char *prefix) {
        if (!word || !*word || !startswith(word, prefix))
                return;
        for (const unsigned char *p = (const unsigned char *) word; *p; p++)
                if (*p <= ' ' || *p >= 0x7f)
                        return;
        (void) puts(word);
}

static json_t *ask(const Client *c, const char *path) {
        _cleanup_answer_ Answer a = {};

        if (http_call(c, "GET", path, NULL, TIMEOUT_COMPLETE, true, &a) != CODE_OK || a.status != 200)
                return NULL;
        return json_incref(a.json);
}

static void print_verbs(const char *prefix) {
        for (const Verb *v = verbs; v->name; v++)
                if (v->summary)
                        print_word(v->name, prefix);
}

/* Whether an option in a help text is one of the verb's: it stands in the first column of its line, which ends with two blanks. */
static bool is_in_first_column(const char *help, const char *p) {
        const char *line = p, *q;

        while (line > help && line[-1] != '\n')
                line--;
        q = line + strspn(line, " ");
        return *q == '-' && !memmem(q, (size_t) (p - q), "  ", 2);
}

/* The options that a verb's help names; it is what people are told, so nothing else is offered. */
static void print_options(const char *verb, const char *prefix) {
        for (const Verb *v = verbs; v->name; v++) {
                if (!streq(v->name, verb))
                        continue;
                for (const char *p = v->help; (p = strstr(p, "--"));) {
                        size_t n = 2 + strspn(p + 2, "abcdefghijklmnopqrstuvwxyz-");
                        _cleanup_free_ char *word = strndup(p, n);

                        if (n > 2 && is_in_first_column(v->help, p))
                                print_word(word, prefix);
                        p += n;
                }
                print_word("--help", prefix);
        }
}

int verb_complete(Client *c, const Verb *verb, int argc, char **argv) {
        const char *what = argc > 1 ? argv[1] : "", *prefix = argc > 2 ? argv[argc - 1] : "", *key;
        json_t *answer = NULL, *one;
        size_t i;

        if (streq(what, "verbs"))
                print_verbs(prefix);
        else if (streq(what, "options") && argc > 3)
                print_options(argv[2], prefix);
        else if (streq(what, "classes")) {
                answer = ask(c, "/v1/classes");
                json_array_foreach(json_object_get(answer, "classes"), i, one)
                        print_word(json_text(json_object_get(one, "class"), "name"), prefix);
        } else if (streq(what, "groups")) {
                if (groups_request(c, (GroupsFilter) { .all = true }, true, &answer) == CODE_OK)
                        json_array_foreach(json_object_get(answer, "groups"), i, one)
                                print_word(json_text(one, *prefix == '/' ? "cgroup" : "unit"), prefix);
        } else if (streq(what, "assigned")) {
                answer = ask(c, "/v1/assignments");
                json_array_foreach(json_object_get(answer, "assignments"), i, one) {
                        _cleanup_free_ char *pod = NULL;

                        if (json_text(one, "pod_uid") && asprintf(&pod, "pod:%s", json_text(one, "pod_uid")) < 0)
                                pod = NULL;
                        print_word(pod ? pod : json_text(one, "unit") ?: json_text(one, "cgroup"), prefix);
                }
        } else if (streq(what, "rules")) {
                answer = ask(c, "/v1/rules");
                json_array_foreach(json_object_get(answer, "rules"), i, one)
                        print_word(json_text(json_object_get(one, "rule"), "name"), prefix);
        } else if (streq(what, "patches")) {
                answer = ask(c, "/v1/policy");
                json_object_foreach(json_object_get(answer, "patches"), key, one)
                        print_word(key, prefix);
        } else
                return CODE_USAGE;
        if (answer)
                json_decref(answer);
        return CODE_OK;
}
