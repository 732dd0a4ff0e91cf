/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/options.h"
#include "client/text.h"

enum {
        OPTION_JSON = 0x1000,
        OPTION_SOCKET,
        OPTION_HELP,
};

static const struct option common[] = {
        { "json", no_argument, NULL, OPTION_JSON },
        { "socket", required_argument, NULL, OPTION_SOCKET },
        { "help", no_argument, NULL, OPTION_HELP },
};

void options_init(Options *o, Client *c, const Verb *verb, const struct option *own, bool in_order, int argc, char **argv) {
        size_t n = 0, letters = 0;

        *o = (Options) { .client = c, .verb = verb, .argc = argc, .argv = argv };
        if (in_order)
                o->letters[letters++] = '+';
        o->letters[letters++] = ':'; /* a missing argument is told from an unknown option */
        o->letters[letters++] = 'h';
        for (; own && own->name; own++) {
                o->merged[n++] = *own;
                if (own->val < 128 && letters + 4 < sizeof(o->letters)) {
                        o->letters[letters++] = (char) own->val;
                        for (int i = 0; i < own->has_arg; i++)
                                o->letters[letters++] = ':';
                }
        }
        for (size_t i = 0; i < ELEMENTSOF(common); i++)
                o->merged[n++] = common[i];
        opterr = 0;
        optind = 0; /* GNU: start anew, also the order of arguments */
}

/* An option that nobody knows: getopt leaves it just behind optind, or as a letter in optopt. */
static void complain_unknown(const Options *o) {
        const char *given = optind > 0 && optind <= o->argc ? o->argv[optind - 1] : "", *nearest;
        const char *names[ELEMENTSOF(o->merged)];
        _cleanup_free_ char *word = NULL;
        size_t n = 0;

        if (!startswith(given, "--")) {
                complain("%s: unknown option -%c", o->verb->name, optopt ?: '?');
                return;
        }
        word = strndup(given + 2, strcspn(given + 2, "="));
        for (; o->merged[n].name; n++)
                names[n] = o->merged[n].name;
        if (optopt && word)
                complain("%s: --%s takes no value", o->verb->name, word);
        else
                complain("%s: unknown option --%s", o->verb->name, word ? word : "");
        nearest = word ? text_suggest(word, names, n) : NULL;
        if (nearest && !streq(nearest, word))
                hint("Did you mean --%s?", nearest);
}

int options_next(Options *o) {
        for (;;) {
                int option = getopt_long(o->argc, o->argv, o->letters, o->merged, NULL);

                switch (option) {
                case -1:
                        return OPTIONS_END;
                case OPTION_JSON:
                        o->client->json = true;
                        break;
                case OPTION_SOCKET:
                        o->client->socket = optarg;
                        break;
                case 'h':
                case OPTION_HELP:
                        verb_help(o->verb);
                        o->exit_code = CODE_OK;
                        return OPTIONS_STOP;
                case '?':
                        complain_unknown(o);
                        goto usage;
                case ':':
                        complain("%s: %s needs a value", o->verb->name, o->argv[optind - 1]);
                        goto usage;
                default:
                        return option;
                }
        }
usage:
        hint("Try: cpuclassctl %s --help", o->verb->name);
        o->exit_code = CODE_USAGE;
        return OPTIONS_STOP;
}

bool options_check_arguments(Options *o, int least, int most) {
        int n = o->argc - optind;

        if (n >= least && n <= most)
                return true;
        if (n < least)
                complain("%s: too few arguments", o->verb->name);
        else
                complain("%s: too many arguments: \"%s\"", o->verb->name, o->argv[optind + most]);
        hint("Usage: cpuclassctl %s [OPTION...] %s", o->verb->name, o->verb->arguments ? o->verb->arguments : "");
        o->exit_code = CODE_USAGE;
        return false;
}

ExitCode options_wrong(const Options *o, const char *option, const char *value, const char *why) {
        complain("%s: %s \"%s\": %s", o->verb->name, option, value, why);
        hint("Try: cpuclassctl %s --help", o->verb->name);
        return CODE_INVALID;
}

void verb_help(const Verb *verb) {
        (void) printf("cpuclassctl %s [OPTION...]%s%s\n\n%s\n", verb->name, verb->arguments ? " " : "", verb->arguments ? verb->arguments : "", verb->help);
}

const Verb *verb_find(const char *name) {
        const char *names[64], *nearest;
        size_t n = 0;

        for (const Verb *v = verbs; v->name; v++) {
                if (streq(v->name, name))
                        return v;
                if (v->summary && n < ELEMENTSOF(names))
                        names[n++] = v->name;
        }
        complain("unknown verb \"%s\"", name);
        nearest = text_suggest(name, names, n);
        if (nearest)
                hint("Did you mean \"%s\"?", nearest);
        else
                hint("Try: cpuclassctl --help");
        return NULL;
}
