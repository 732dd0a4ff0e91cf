/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* JSON text as people write it: parsed strictly, and with the way back from a field to its line.
 *
 * For policy documents, request bodies and state files alike. */

#include <jansson.h>
#include <stddef.h>

#include "policies/diag.h"

#define DOCUMENT_MAX_BYTES (4U * 1024 * 1024)

/* Parses a text whose top is an object. Syntax errors, repeated keys, NUL characters, invalid UTF-8 and texts over
 * DOCUMENT_MAX_BYTES are reported in list with file (may be NULL), line and JSON pointer.
 * Returns 0 and a new reference; -EINVAL with a diagnosis; -ENOMEM. On failure *ret is untouched, with one exception:
 * where repeated keys are all that is wrong, *ret_repeated (may be NULL) gets a new reference to the document with the last
 * of them, so that the check can go on and report the rest too. */
int document_load(const char *file, const char *text, size_t length, json_t **ret, json_t **ret_repeated, DiagList *list);

/* Line (1-based) of the field that a JSON pointer names, in a text that parses; of the nearest object around it where the
 * field is missing. */
unsigned document_line(const char *text, size_t length, const char *pointer);

/* Gives a line to each item from index "first" on that has a pointer and no line yet. */
void document_add_lines(DiagList *list, size_t first, const char *text, size_t length);

/* JSON pointer (RFC 6901) of a member or an element of the value at "parent"; escapes ~ and /. Returns a new string to
 * free, or NULL without memory. A NULL parent counts as NULL memory. */
char *pointer_to_key(const char *parent, const char *key);
char *pointer_to_index(const char *parent, size_t index);
