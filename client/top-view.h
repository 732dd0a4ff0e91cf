/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* How top looks: rows into lines of an exact width. No I/O but to the stream that is given. */

#include "client/client.h"
#include "client/top-model.h"

/* The daemon's own line. */
typedef struct TopHead {
        char text[256];               /* "cpuclassd 0.1.0, 12 groups ..." */
        char trouble[256];            /* "" none: paused, no answer, a refused policy */
} TopHead;

typedef struct TopScreen {
        size_t width;                 /* columns, at least 40 */
        size_t height;                /* lines; 0: all rows */
        size_t first;                 /* row at the top */
        size_t selected;              /* row that is marked; SIZE_MAX none */
        bool whole;                   /* nothing is cut (batch) */
        const char *keys;             /* last line; NULL none */
} TopScreen;

/* Prints head, column titles, rows, and the last line. clear: each line ends with "erase to the end of the line", for a redraw in place. */
void top_view_print(FILE *f, const Client *c, const TopHead *head, TopRow *const *rows, size_t n_rows, const TopFilter *filter, const TopScreen *screen,
                    uint64_t now_usec, bool clear);
/* Rows that fit a height. */
size_t top_view_rows(size_t height, bool trouble);
/* The last minute in width characters, the newest at the right, scaled to the quota where there is one, else to the most in it. Throttled seconds are in the warning style. */
void top_view_sparkline(FILE *f, const Client *c, const TopRow *row, size_t width, uint64_t now_usec);
