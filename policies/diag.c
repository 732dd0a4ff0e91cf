/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Diagnoses are collected, not thrown: a check goes on after a mistake, so that one run shows them all.
 * Texts come from outside (keys, values, file names) and may hold anything; they are kept as they are, and made
 * harmless only where they are turned into a line for a terminal or a log. */

#include <stdarg.h>
#include <stdio.h>

#include "policies/diag.h"
#include "policies/util.h"

#define DIAG_ITEMS_MAX 100
#define DIAG_VALUE_MAX 200

/* Stands in for the first item when there is no memory for a list at all: the check still counts as failed. The list's
 * capacity stays 0, which tells that the item is not the list's own. */
static Diag out_of_memory = { .message = (char *) "out of memory while reporting an error" };

/* Length of the UTF-8 character at s within n bytes, and its code point; 0 when it is no valid one. */
static size_t utf8_character(const char *s, size_t n, uint32_t *ret) {
        const unsigned char *u = (const unsigned char *) s;
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t length = u[0] < 0x80 ? 1 : (u[0] & 0xe0) == 0xc0 ? 2 : (u[0] & 0xf0) == 0xe0 ? 3 : (u[0] & 0xf8) == 0xf0 ? 4 : 0;
        uint32_t c;

        if (length == 0 || length > n)
                return 0;
        c = length == 1 ? u[0] : u[0] & (0x7fU >> length);
        for (size_t i = 1; i < length; i++) {
                if ((u[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (u[i] & 0x3f);
        }
        if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        *ret = c;
        return length;
}

/* Copies at most DIAG_VALUE_MAX bytes, whole characters only, and marks the cut. */
static char *cut_copy(const char *s) {
        size_t n = strlen(s);
        char *copy;

        if (n <= DIAG_VALUE_MAX)
                return strdup(s);
        n = DIAG_VALUE_MAX - strlen("...");
        while (n > 0 && ((unsigned char) s[n] & 0xc0) == 0x80)
                n--;
        if (asprintf(&copy, "%.*s...", (int) n, s) < 0)
                return NULL;
        return copy;
}

void diag_add(DiagList *list, const char *file, unsigned line, const char *pointer,
              const char *value, const char *limit, const char *format, ...) {
        char *message;
        va_list ap;
        int r;

        if (list->n_items >= DIAG_ITEMS_MAX)
                return;
        if (list->capacity == 0) {
                list->items = NULL;
                list->n_items = 0;
        }
        if (GROW_ARRAY(list->items, list->n_items, list->capacity) < 0) {
                if (list->n_items == 0) {
                        list->items = &out_of_memory;
                        list->n_items = 1;
                }
                return;
        }
        va_start(ap, format);
        r = vasprintf(&message, format, ap);
        va_end(ap);
        list->items[list->n_items++] = (Diag) {
                .file = file ? strdup(file) : NULL,
                .line = line,
                .pointer = pointer ? strdup(pointer) : NULL,
                .message = r < 0 ? NULL : message,
                .value = value ? cut_copy(value) : NULL,
                .limit = limit ? strdup(limit) : NULL,
        };
}

void diag_list_clear(DiagList *list) {
        if (list->capacity > 0) {
                for (size_t i = 0; i < list->n_items; i++) {
                        free(list->items[i].file);
                        free(list->items[i].pointer);
                        free(list->items[i].message);
                        free(list->items[i].value);
                        free(list->items[i].limit);
                }
                free(list->items);
        }
        *list = (DiagList) {};
}

/* Whether a terminal would act on the character instead of showing it: control characters, and the marks that turn the
 * direction of the text around (so that a line reads other than it is). */
static bool is_active(uint32_t c) {
        return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
               (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static void put_escaped(FILE *f, const char *s) {
        size_t n = strlen(s);

        while (n > 0) {
                uint32_t c = 0;
                size_t length = utf8_character(s, n, &c);

                if (length > 0 && !is_active(c))
                        (void) fwrite(s, 1, length, f);
                else {
                        length = MAX_OF(length, (size_t) 1);
                        for (size_t i = 0; i < length; i++)
                                (void) fprintf(f, "\\x%02x", (unsigned char) s[i]);
                }
                s += length;
                n -= length;
        }
}

char *diag_to_string(const Diag *d) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        if (d->file) {
                put_escaped(f, d->file);
                if (d->line > 0)
                        (void) fprintf(f, ":%u", d->line);
                (void) fputs(": ", f);
        } else if (d->line > 0)
                (void) fprintf(f, "line %u: ", d->line);
        if (d->pointer && d->pointer[0]) {
                put_escaped(f, d->pointer);
                (void) fputs(": ", f);
        }
        put_escaped(f, d->message ?: "out of memory while reporting an error");
        if (d->value) {
                (void) fputs(": value ", f);
                put_escaped(f, d->value);
        }
        if (d->limit) {
                (void) fputs(d->value ? ", allowed: " : ": allowed: ", f);
                put_escaped(f, d->limit);
        }
        if (fclose(f) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
