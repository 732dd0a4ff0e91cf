/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Text from outside on its way to a terminal, and the nearest of some words. */

#include "policies/util.h"

/* Makes bytes harmless for a terminal: control characters (C0, DEL, C1), line and paragraph separators, characters that turn the
 * reading direction, bytes that are no UTF-8, and whatever is not ASCII in a locale without UTF-8, become \xNN (bytes) or \uNNNN (characters); all else stays, backslashes too (unit
 * names are full of them). s may be NULL (gives ""). Returns a new string, NULL without memory. */
char *text_escape(const char *s);
/* The same for a JSON text: DEL, C1 and direction characters (which JSON allows raw) become their \uNNNN escape, so that the text stays the
 * same JSON. */
char *text_escape_json(const char *s, size_t length);

/* Columns that a harmless text takes on a terminal. */
size_t text_width(const char *s);

/* Harmless text cut to at most width columns, with an ellipsis ("~" without UTF-8) where something is missing. New string, NULL without memory. */
char *text_cut(const char *s, size_t width, bool utf8);
/* The same, but the end stays. */
char *text_cut_front(const char *s, size_t width, bool utf8);

/* Edits (insertions, deletions, replacements, swaps of neighbours) from a to b without regard to case. */
size_t text_distance(const char *a, const char *b);
/* The candidate that was probably meant: within a third of the word's length, or the only one that begins with word. NULL: none. Returns a
 * pointer out of candidates (n of them; NULL entries are skipped). */
const char *text_suggest(const char *word, const char *const *candidates, size_t n);
