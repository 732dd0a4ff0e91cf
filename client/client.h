/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* What every verb of cpuclassctl shares: exit codes, the session, and how something is said to a person. */

#include <jansson.h>
#include <stdarg.h>

#include "policies/util.h"

/* Constant over versions; the table in --help and the man page says the same. */
typedef enum ExitCode {
        CODE_OK = 0,
        CODE_FAILURE = 1,      /* it was tried and went wrong, or something needs an admin */
        CODE_USAGE = 2,        /* the command line makes no sense */
        CODE_NOT_FOUND = 3,    /* no such group, class, assignment */
        CODE_REFUSED = 4,      /* no permission, protected, owned by somebody else */
        CODE_UNREACHABLE = 5,  /* no daemon answers */
        CODE_INVALID = 6,      /* a value, or a policy, is wrong */
} ExitCode;

typedef struct Client {
        const char *socket;    /* path of the daemon's socket */
        bool json;             /* print what the API answers */
        bool colour;           /* standard output is a terminal that wants colour */
        bool terminal;         /* standard output is a terminal */
        bool utf8;             /* the locale's encoding */
} Client;

typedef struct Verb {
        const char *name;
        const char *arguments; /* for the usage line: "TARGET CLASS"; NULL none */
        const char *summary;   /* one line of `cpuclassctl --help`; NULL: not shown there */
        const char *help;      /* what `cpuclassctl VERB --help` says below its usage line */
        int (*run)(Client *c, const struct Verb *verb, int argc, char **argv); /* argv[0] is the verb's name; returns an ExitCode */
} Verb;

extern const Verb verbs[];     /* ends with a NULL name */

/* Says what is wrong on standard error, "cpuclassctl: ..." with control bytes escaped; one line, no newline in the format. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same without the name in front: what might help. */
void hint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* printf to standard output with control bytes escaped; only a newline at the end of the format stays one. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
typedef enum Style { STYLE_NONE = 0, STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_WARN, STYLE_BAD } Style;
/* say() in a style, where the session has colour. */
void say_styled(const Client *c, Style s, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The escape sequences themselves, "" without colour: for output that is already harmless. */
const char *style_begin(const Client *c, Style s);
const char *style_end(const Client *c, Style s);
