/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Tables by libsmartcols: as wide as the terminal, in a pipe as wide as their text, without colour there. */

#include "client/client.h"

typedef struct Table Table;

typedef enum ColumnFlags {
        COLUMN_LEFT = 0,
        COLUMN_RIGHT = 1,
        COLUMN_CUT = 2,     /* loses its end first when the terminal is narrow */
        COLUMN_WIDE = 4,    /* left out on a terminal of less than 110 columns */
} ColumnFlags;

typedef struct Column {
        const char *name;
        ColumnFlags flags;
} Column;

/* NULL without memory (said). */
Table *table_new(const Client *c, const Column *columns, size_t n);
Table *table_free(Table *t);
/* Begins a row. */
void table_row(Table *t);
/* Fills the next cell of the row; text from anywhere, control bytes are escaped. NULL is "-". */
void table_cell(Table *t, const char *text, Style style);
/* Prints it; nothing but empty_text (one line, may be NULL) when it has no rows. Returns CODE_OK or CODE_FAILURE. */
ExitCode table_print(Table *t, const char *empty_text);
/* The style that a group's or knob's state is shown in. */
Style state_style(const char *state);
