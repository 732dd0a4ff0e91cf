/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Requests to the daemon over its unix socket. */

#include "client/client.h"

typedef struct Answer {
        long status;           /* HTTP status */
        char *body;            /* NUL-terminated, "" without one */
        size_t length;
        json_t *json;          /* the body, when it is JSON; else NULL */
} Answer;

void answer_clear(Answer *a);
#define _cleanup_answer_ _cleanup_(answer_clear)

#define TIMEOUT_USUAL 30       /* seconds for requests that answer at once */

/* One request. path is percent-encoded, with its query; body may be NULL (borrowed). Returns CODE_OK when there is an answer of any status (*ret is to be
 * cleared), else CODE_UNREACHABLE (nobody listens), CODE_REFUSED (no right to connect) or CODE_FAILURE (time-out, broken answer), with a complaint
 * unless quiet. */
ExitCode http_call(const Client *c, const char *method, const char *path, json_t *body, unsigned timeout_sec, bool quiet, Answer *ret);

/* One request whose answer must be 2xx: a problem is explained on standard error (with --json its JSON goes to standard output) and gives the
 * matching exit code; *ret is then cleared. */
ExitCode client_request(const Client *c, const char *method, const char *path, json_t *body, unsigned timeout_sec, Answer *ret);
/* Prints the answer's body as it came, with what a terminal would obey in its JSON escape. */
void client_print_json(const Client *c, const Answer *a);

/* The same for a document of several answers. Returns CODE_OK or CODE_FAILURE (no memory). */
ExitCode json_print(const Client *c, const json_t *o);

/* A stream of server-sent events. fn gets each event: id and name may be NULL; it returns nonzero to end the stream. */
typedef int (*EventFn)(const char *id, const char *name, const char *data, void *userdata);
/* Follows path until the connection ends or fn ends it. last_id may be NULL. Returns CODE_OK when the connection ended or fn returned nonzero (*ret_ended true), or as http_call. */
ExitCode http_stream(const Client *c, const char *path, const char *last_id, EventFn fn, void *userdata, bool quiet, bool *ret_ended);

/* Exit code for an answer's status and problem type (a urn:cpuclass:problem:NAME or NULL). */
ExitCode exit_code_of_answer(long status, const char *type);
/* Explains a problem (RFC 9457 body or none) on standard error. */
void problem_print(const Answer *a);

/* Percent-encodes all but unreserved characters; new string or NULL. */
char *url_encode(const char *text);
/* path + "?key=value&..." for pairs of strings up to a NULL key; pairs with a NULL value are left out. New string or NULL. */
char *url_with_query(const char *path, ...) __attribute__((sentinel));
