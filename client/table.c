/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cells are made harmless by text_escape(), not by libsmartcols: its own encoder doubles the \x2d of unit names. */

#include <libsmartcols/libsmartcols.h>

#include "client/table.h"
#include "client/text.h"

#define WIDE_TERMINAL 110

struct Table {
        const Client *client;
        struct libscols_table *table;
        struct libscols_line *line;
        size_t next_cell;
        bool failed;
};

Table *table_free(Table *t) {
        if (!t)
                return NULL;
        scols_unref_table(t->table);
        free(t);
        return NULL;
}

Table *table_new(const Client *c, const Column *columns, size_t n) {
        Table *t = calloc(1, sizeof(*t));
        bool narrow;

        if (t)
                t->table = scols_new_table();
        if (!t || !t->table) {
                complain("out of memory");
                return table_free(t);
        }
        t->client = c;
        (void) scols_table_enable_noencoding(t->table, 1);
        (void) scols_table_enable_colors(t->table, c->colour);
        (void) scols_table_set_column_separator(t->table, "  ");
        narrow = scols_table_get_termwidth(t->table) < WIDE_TERMINAL;
        for (size_t i = 0; i < n; i++) {
                int flags = (columns[i].flags & COLUMN_RIGHT ? SCOLS_FL_RIGHT : 0);

                /* in a pipe a row is a line, whole */
                if (c->terminal)
                        flags |= (columns[i].flags & COLUMN_CUT ? SCOLS_FL_TRUNC : 0) | (columns[i].flags & COLUMN_WIDE && narrow ? SCOLS_FL_HIDDEN : 0);
                if (!scols_table_new_column(t->table, columns[i].name, 0, flags))
                        t->failed = true;
        }
        return t;
}

void table_row(Table *t) {
        t->line = scols_table_new_line(t->table, NULL);
        t->next_cell = 0;
        if (!t->line)
                t->failed = true;
}

void table_cell(Table *t, const char *text, Style style) {
        static const char *const colours[] = {
                [STYLE_BOLD] = "bold", [STYLE_DIM] = "darkgray", [STYLE_GOOD] = "green", [STYLE_WARN] = "yellow", [STYLE_BAD] = "red",
        };
        struct libscols_cell *cell;
        char *safe;

        if (!t->line)
                return;
        cell = scols_line_get_cell(t->line, t->next_cell);
        safe = text_escape(text && *text ? text : "-");
        if (!safe || !cell || scols_line_refer_data(t->line, t->next_cell, safe) < 0) {
                free(safe);
                t->failed = true;
        } else if (t->client->colour && style != STYLE_NONE)
                (void) scols_cell_set_color(cell, colours[style]);
        t->next_cell++;
}

ExitCode table_print(Table *t, const char *empty_text) {
        if (scols_table_is_empty(t->table)) {
                if (empty_text)
                        (void) puts(empty_text);
                return CODE_OK;
        }
        if (t->failed || scols_print_table(t->table) < 0) {
                complain("out of memory");
                return CODE_FAILURE;
        }
        return CODE_OK;
}

Style state_style(const char *state) {
        static const struct {
                const char *state;
                Style style;
        } styles[] = {
                { "applied", STYLE_GOOD }, { "unlimited", STYLE_GOOD }, { "yes", STYLE_GOOD },
                { "degraded", STYLE_WARN }, { "pending", STYLE_WARN }, { "held", STYLE_WARN }, { "paused", STYLE_WARN },
                { "dry_run", STYLE_WARN }, { "refused", STYLE_WARN }, { "not enforced", STYLE_WARN }, { "no", STYLE_DIM },
                { "absent", STYLE_DIM }, { "unmanaged", STYLE_DIM }, { "failed", STYLE_BAD },
        };

        for (size_t i = 0; state && i < ELEMENTSOF(styles); i++)
                if (streq(state, styles[i].state))
                        return styles[i].style;
        return STYLE_NONE;
}
