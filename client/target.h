/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* What a GROUP or TARGET argument names, and where the API has it. */

#include "client/http.h"

typedef enum ArgumentKind {
        ARGUMENT_UNIT = 0,   /* "nginx", "nginx.service", "web@1" */
        ARGUMENT_CGROUP,     /* "/system.slice/..." */
        ARGUMENT_PID,        /* "1234" */
        ARGUMENT_POD,        /* "pod:UID" */
} ArgumentKind;

typedef struct Argument {
        ArgumentKind kind;
        char *text;          /* full unit name, path, digits, or pod UID */
} Argument;

void argument_clear(Argument *a);
#define _cleanup_argument_ _cleanup_(argument_clear)

/* Reads an argument. Unit names get ".service" where they have no suffix, and characters that no unit name has are escaped, as
 * systemctl does. Returns 0, -EINVAL (with *ret_why), -ENOMEM. */
int argument_parse(const char *text, Argument *ret, const char **ret_why);

/* Path of the argument's assignment ("/v1/assignments/unit/nginx.service"), with "" or "?path=..."; more query pairs follow up to NULL.
 * New string; NULL without memory, or for a pid, which cannot have one. */
char *argument_assignment_url(const Argument *a, ...) __attribute__((sentinel));
/* What ?group= of decisions and pause takes: unit or path; NULL for others. */
const char *argument_group(const Argument *a);

/* Reads an argument and says what is wrong with it; for verbs. */
ExitCode argument_from_command_line(const char *text, Argument *ret);
/* Asks for the full GroupView (explain false) or the Explain (true). A pod is found by its path, a pid through its group. With a hint what else may
 * have been meant when there is none. */
ExitCode argument_request(const Client *c, const Argument *a, bool explain, Answer *ret);
/* Names of units and groups that resemble text, for a hint after "not found". */
void argument_hint(const Client *c, const Argument *a);
