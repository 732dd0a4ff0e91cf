/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* A diagnosis: what is wrong in an input, where, with which value, and what would have been right.
 *
 * Every reader of outside input (policy documents, request bodies, state files) reports through this one
 * shape, so that the command line, the API's problem+json and the journal say the same. */

#include <stdarg.h>
#include <stddef.h>

typedef struct Diag {
        char *file;     /* where the document came from: a path, or "request body"; NULL when unknown */
        unsigned line;  /* 1-based line in the file; 0 when unknown */
        char *pointer;  /* JSON pointer (RFC 6901) of the field; "" is the whole document */
        char *message;  /* one sentence, no full stop, e.g. "out of range" */
        char *value;    /* the offending value as JSON text, cut to 200 bytes; NULL when there is none */
        char *limit;    /* what is allowed, e.g. "-20 to 19"; NULL when there is none */
} Diag;

/* All that was found in one check. Starts as all zeroes. */
typedef struct DiagList {
        Diag *items;
        size_t n_items;
        size_t capacity;
} DiagList;

/* Appends one diagnosis; all strings are copied, any may be NULL. Running out of memory drops the text but still
 * counts an item, so that a failed check can't look like a good one. At most 100 items are kept. */
void diag_add(DiagList *list, const char *file, unsigned line, const char *pointer,
              const char *value, const char *limit, const char *format, ...) __attribute__((format(printf, 7, 8)));

/* Frees the items and resets the list. */
void diag_list_clear(DiagList *list);

/* One line for people: "FILE:LINE: /pointer: message: value VALUE, allowed: LIMIT" with control bytes escaped.
 * Returns a new string to free, or NULL without memory. */
char *diag_to_string(const Diag *d);
