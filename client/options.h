/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* getopt_long for a verb: its own options and those that every verb has, with "did you mean" for the rest. */

#include <getopt.h>

#include "client/client.h"

#define OPTIONS_END (-1)
#define OPTIONS_STOP (-2)  /* --help was given, or a wrong option: return exit_code */

typedef struct Options {
        Client *client;
        const Verb *verb;
        int argc;
        char **argv;
        struct option merged[40];
        char letters[64];
        ExitCode exit_code;
} Options;

/* own: the verb's options up to one with a NULL name (NULL: none); val is what options_next() returns, a letter's code where there is a short form too.
 * in_order: stop at the first argument that is no option (for "run", whose command has options of its own). */
void options_init(Options *o, Client *c, const Verb *verb, const struct option *own, bool in_order, int argc, char **argv);
/* The next option's val, with getopt's optarg; OPTIONS_END when the arguments begin at optind; OPTIONS_STOP. */
int options_next(Options *o);
/* Whether the number of arguments left is within bounds; complains otherwise. */
bool options_check_arguments(Options *o, int least, int most);
/* A wrong value of an option: complains, names the verb's help, gives CODE_INVALID (as the daemon would). */
ExitCode options_wrong(const Options *o, const char *option, const char *value, const char *why);

/* Prints a verb's help. */
void verb_help(const Verb *verb);
/* Looks up a verb; complains with what may have been meant. */
const Verb *verb_find(const char *name);
