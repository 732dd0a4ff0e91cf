/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Columns have a rank: the line takes them by rank while they fit, the group's name and the sparkline share what is left. So 80 columns show what
 * matters at night, and a wide terminal shows everything. */

#include <inttypes.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/text.h"
#include "client/top-view.h"

typedef enum ColumnId { COL_GROUP, COL_CLASS, COL_CPU, COL_QUOTA, COL_THROTTLED, COL_LOST, COL_SOME, COL_FULL, COL_BURST, COL_SLICE, COL_COOKIE, COL_STATE, COL_AGE, COL_SPARK, COL_ACTION, _COL_MAX } ColumnId;

static const struct {
        const char *title;
        size_t width;
        unsigned rank;        /* 0 is always there */
        bool right;
} columns[_COL_MAX] = {
        [COL_GROUP] = { "GROUP", 18, 0, false },
        [COL_CLASS] = { "CLASS", 9, 0, false },
        [COL_CPU] = { "CPU%", 6, 0, true },
        [COL_QUOTA] = { "QUOTA%", 6, 0, true },
        [COL_THROTTLED] = { "THR%", 5, 0, true },
        [COL_LOST] = { "THR ms/s", 8, 4, true },
        [COL_SOME] = { "SOME%", 5, 1, true },
        [COL_FULL] = { "FULL%", 5, 5, true },
        [COL_BURST] = { "BURST ms/s", 10, 6, true },
        [COL_SLICE] = { "SLICE", 7, 7, true },
        [COL_COOKIE] = { "COOK", 4, 8, true },
        [COL_STATE] = { "STATE", 8, 2, false },
        [COL_AGE] = { "AGO", 5, 2, true },
        [COL_SPARK] = { "LAST MIN", 8, 3, false },
        [COL_ACTION] = { "LAST ACTION", 24, 9, false },
};
#define RANKS 10

/* Who gets the columns that are left, in turns. */
static const struct {
        ColumnId column;
        size_t most;
} shares[] = { { COL_CLASS, 7 /* "latency-critical" */ }, { COL_GROUP, 14 }, { COL_ACTION, 30 }, { COL_SPARK, 22 }, { COL_GROUP, 16 }, { COL_ACTION, SIZE_MAX } };

/* Width of each column, 0 for those that are left out. */
static void lay_out(size_t width, size_t ret[_COL_MAX]) {
        size_t used = 0, spare, part;
        bool full = false;

        for (unsigned rank = 0; rank < RANKS; rank++) {
                size_t more = 0;

                for (size_t i = 0; i < _COL_MAX; i++)
                        if (columns[i].rank == rank)
                                more += columns[i].width + 1;
                if (rank > 0 && used + more - 1 > width)
                        full = true; /* what ranks lower stays out too: names are worth more than it */
                if (full)
                        more = 0;
                for (size_t i = 0; i < _COL_MAX; i++)
                        if (columns[i].rank == rank)
                                ret[i] = more > 0 ? columns[i].width : 0;
                used += more;
        }
        if (used > width + 1) {
                /* narrower than what is always there: the name gives way */
                size_t over = used - width - 1;

                ret[COL_GROUP] = columns[COL_GROUP].width > over + 4 ? columns[COL_GROUP].width - over : 4;
                return;
        }
        spare = width + 1 - used;
        for (size_t i = 0; i < ELEMENTSOF(shares); i++)
                if (ret[shares[i].column] > 0) {
                        part = MIN_OF(spare, shares[i].most);
                        ret[shares[i].column] += part;
                        spare -= part;
                }
}

/* Text in exactly width columns; safe text only. */
static void put(FILE *f, const Client *c, const char *text, size_t width, bool right, Style style) {
        size_t has = text_width(text);
        _cleanup_free_ char *cut = NULL;

        if (has > width) {
                /* the end of a path tells more than its beginning */
                cut = *text == '/' ? text_cut_front(text, width, c->utf8) : text_cut(text, width, c->utf8);
                text = cut ? cut : "";
                has = text_width(text);
        }
        (void) fprintf(f, "%*s%s%s%s%*s", right ? (int) (width - has) : 0, "", style_begin(c, style), text, style_end(c, style),
                       right ? 0 : (int) (width - has), "");
}

static const char *percent(uint64_t permyriad, char buffer[FORMAT_MAX]) {
        if (permyriad >= 100000)
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64, permyriad / 100);
        else
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 ".%" PRIu64, permyriad / 100, permyriad % 100 / 10);
        return buffer;
}

static const char *quota(const TopRow *r, char buffer[FORMAT_MAX]) {
        if (!r->has_bandwidth)
                return "-";
        if (r->bandwidth.quota_usec == QUOTA_UNLIMITED || r->bandwidth.period_usec == 0)
                return "max";
        return percent((uint64_t) ((__uint128_t) r->bandwidth.quota_usec * 10000 / r->bandwidth.period_usec), buffer);
}

/* "12s", "5m", "3h", "2d" */
static const char *age(uint64_t at_usec, uint64_t now_usec, char buffer[FORMAT_MAX]) {
        uint64_t s = now_usec > at_usec ? (now_usec - at_usec) / USEC_PER_SEC : 0;

        if (at_usec == 0)
                return "-";
        if (s < 100)
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "s", s);
        else if (s < 100 * 60)
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "m", s / 60);
        else if (s < 48 * 3600)
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "h", s / 3600);
        else
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "d", s / 86400);
        return buffer;
}

static const struct {
        const char *word;
        Style style;
} controllers[] = {
        [CONTROLLER_NONE] = { "-", STYLE_DIM },
        [CONTROLLER_STEADY] = { "steady", STYLE_GOOD },
        [CONTROLLER_RAISING] = { "raising", STYLE_WARN },
        [CONTROLLER_LOWERING] = { "lowering", STYLE_NONE },
        [CONTROLLER_HELD] = { "held", STYLE_WARN },
        [CONTROLLER_PAUSED] = { "paused", STYLE_WARN },
        [CONTROLLER_FAILED] = { "failed", STYLE_BAD },
        [CONTROLLER_PENDING] = { "pending", STYLE_WARN },
};

void top_view_sparkline(FILE *f, const Client *c, const TopRow *row, size_t width, uint64_t now_usec) {
        static const char *const blocks[] = { " ", "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88" };
        static const char *const letters[] = { " ", "_", ".", ":", "-", "=", "+", "*", "#" };
        uint64_t now = now_usec / USEC_PER_SEC, full = 0, n;

        if (width == 0)
                return;
        if (row->has_bandwidth && row->bandwidth.quota_usec != QUOTA_UNLIMITED && row->bandwidth.period_usec > 0)
                full = (uint64_t) ((__uint128_t) row->bandwidth.quota_usec * 10000 / row->bandwidth.period_usec);
        for (size_t i = 0; full == 0 && i < TOP_SECONDS; i++)
                if (row->seconds[i].second + TOP_SECONDS > now)
                        full = MAX_OF(full, (uint64_t) row->seconds[i].use_permyriad);
        full = MAX_OF(full, (uint64_t) 100);
        n = MIN_OF(width, (size_t) TOP_SECONDS);
        (void) fprintf(f, "%*s", (int) (width - n), "");
        for (uint64_t cell = 0; cell < n; cell++) {
                /* the seconds of this cell, counted back from now */
                uint64_t from = (n - cell) * TOP_SECONDS / n, to = (n - cell - 1) * TOP_SECONDS / n, most = 0, level;
                bool any = false, throttled = false;

                for (uint64_t back = to; back < from; back++) {
                        const TopSecond *s = &row->seconds[(now - back) % TOP_SECONDS];

                        if (now < back || s->second != now - back)
                                continue;
                        any = true;
                        most = MAX_OF(most, (uint64_t) s->use_permyriad);
                        throttled = throttled || s->throttled;
                }
                level = !any ? 0 : MIN_OF(1 + most * 7 / full, (uint64_t) 8);
                (void) fprintf(f, "%s%s%s", style_begin(c, throttled ? STYLE_WARN : STYLE_NONE), c->utf8 ? blocks[level] : letters[level],
                               style_end(c, throttled ? STYLE_WARN : STYLE_NONE));
        }
}

/* What a tree shows below another group: the part of the path that is new. */
static char *shown_name(const TopRow *r, bool tree) {
        _cleanup_free_ char *name = text_escape(top_row_name(r));
        char *shown = NULL;

        if (!name)
                return NULL;
        if (tree && !r->unit && r->depth > 0) {
                char *slash = strrchr(name, '/');

                if (slash && slash[1])
                        memmove(name, slash + 1, strlen(slash + 1) + 1);
        }
        if (asprintf(&shown, "%*s%s%s", (int) r->depth * 2, "", name, r->drift ? " !" : "") < 0)
                return NULL;
        return shown;
}

static void print_cell(FILE *f, const Client *c, const TopRow *r, ColumnId id, size_t width, bool tree, uint64_t now_usec) {
        _cleanup_free_ char *text = NULL;
        char buffer[FORMAT_MAX];
        const char *s = "-";
        Style style = STYLE_NONE;

        switch (id) {
        case COL_GROUP:
                text = shown_name(r, tree);
                s = text ? text : "?";
                /* the mark of a drift survives a long name */
                if (r->drift && text_width(s) > width && width > 4) {
                        char *mark = strrchr(text, ' ');

                        if (mark)
                                *mark = 0;
                        put(f, c, text, width - 2, false, STYLE_WARN);
                        (void) fprintf(f, "%s !%s", style_begin(c, STYLE_WARN), style_end(c, STYLE_WARN));
                        return;
                }
                style = r->drift ? STYLE_WARN : STYLE_NONE;
                break;
        case COL_CLASS:
                text = text_escape(r->class_name);
                s = text && *text ? text : "-";
                break;
        case COL_CPU:
                s = r->has_sample ? percent(r->use_permyriad, buffer) : "-";
                break;
        case COL_QUOTA:
                s = quota(r, buffer);
                break;
        case COL_THROTTLED:
                s = r->has_sample ? percent(r->throttled_permyriad, buffer) : "-";
                style = r->throttled_permyriad >= 1000 ? STYLE_BAD : r->throttled_permyriad > 0 ? STYLE_WARN : STYLE_NONE;
                break;
        case COL_LOST:
                (void) snprintf(buffer, sizeof(buffer), "%" PRIu64, r->throttled_usec_per_sec / 1000);
                s = r->has_sample ? buffer : "-";
                break;
        case COL_SOME:
                s = r->has_pressure ? percent(r->some_permyriad, buffer) : "-";
                break;
        case COL_FULL:
                s = r->has_pressure ? percent(r->full_permyriad, buffer) : "-";
                break;
        case COL_BURST:
                (void) snprintf(buffer, sizeof(buffer), "%" PRIu64, r->burst_usec_per_sec / 1000);
                s = r->has_sample ? buffer : "-";
                break;
        case COL_SLICE:
                if (r->slice_nsec > 0)
                        s = duration_format(r->slice_nsec / NSEC_PER_USEC, buffer, sizeof(buffer));
                break;
        case COL_COOKIE:
                text = text_escape(r->cookie);
                s = text && *text ? text : "-";
                break;
        case COL_STATE:
                s = controllers[r->controller].word;
                style = controllers[r->controller].style;
                break;
        case COL_AGE:
                s = age(r->action_at_usec, now_usec, buffer);
                break;
        case COL_SPARK:
                top_view_sparkline(f, c, r, width, now_usec);
                return;
        default:
                text = text_escape(r->action);
                s = text && *text ? text : "-";
                if (width == 0) { /* the end of a whole line */
                        (void) fputs(s, f);
                        return;
                }
        }
        put(f, c, s, width, columns[id].right, style);
}

size_t top_view_rows(size_t height, bool trouble) {
        size_t taken = 3 + trouble; /* head, titles, last line */

        return height > taken ? height - taken : 1;
}

/* A whole line of its own; newest text first, cut at the width. */
static void print_line(FILE *f, const Client *c, const char *text, const TopScreen *screen, Style style, bool clear) {
        _cleanup_free_ char *safe = text_escape(text), *cut = safe && !screen->whole ? text_cut(safe, screen->width, c->utf8) : NULL;

        (void) fprintf(f, "%s%s%s%s\n", style_begin(c, style), cut ? cut : safe ? safe : "", style_end(c, style), clear ? "\033[K" : "");
}

void top_view_print(FILE *f, const Client *c, const TopHead *head, TopRow *const *rows, size_t n_rows, const TopFilter *filter, const TopScreen *screen,
                    uint64_t now_usec, bool clear) {
        bool trouble = head->trouble[0];
        size_t widths[_COL_MAX], n, last = 0;
        size_t shown = screen->height > 0 ? top_view_rows(screen->height, trouble) : n_rows;

        lay_out(screen->width, widths);
        /* in a file a name is whole: its column is as wide as the longest */
        for (size_t i = 0; screen->whole && i < n_rows; i++) {
                _cleanup_free_ char *name = shown_name(rows[i], filter->tree);

                widths[COL_GROUP] = MAX_OF(widths[COL_GROUP], name ? text_width(name) : 0);
                widths[COL_CLASS] = MAX_OF(widths[COL_CLASS], rows[i]->class_name ? strlen(rows[i]->class_name) : 0);
        }
        for (size_t i = 0; i < _COL_MAX; i++)
                if (widths[i] > 0)
                        last = i;
        if (screen->whole)
                widths[last] = 0; /* a line ends with its text */
        print_line(f, c, head->text, screen, STYLE_BOLD, clear);
        if (trouble)
                print_line(f, c, head->trouble, screen, STYLE_BAD, clear);
        for (size_t i = 0; i <= last; i++)
                if (widths[i] > 0) {
                        put(f, c, columns[i].title, widths[i], columns[i].right, STYLE_DIM);
                        (void) fputs(i == last ? "" : " ", f);
                } else if (i == last)
                        (void) fputs(columns[i].title, f);
        (void) fprintf(f, "%s\n", clear ? "\033[K" : "");
        n = screen->first < n_rows ? MIN_OF(n_rows - screen->first, shown) : 0;
        for (size_t k = screen->first; k < screen->first + n; k++) {
                if (k == screen->selected)
                        (void) fputs(c->colour ? "\033[7m" : ">", f);
                for (size_t i = 0; i <= last; i++)
                        if (widths[i] > 0 || i == last) {
                                size_t width = widths[i] - (i == COL_GROUP && k == screen->selected && !c->colour);

                                print_cell(f, c, rows[k], (ColumnId) i, width, filter->tree, now_usec);
                                if (k == screen->selected && c->colour)
                                        (void) fputs("\033[7m", f); /* a cell's own style ended it */
                                (void) fputs(i == last ? "" : " ", f);
                        }
                (void) fprintf(f, "%s%s\n", k == screen->selected && c->colour ? "\033[0m" : "", clear ? "\033[K" : "");
        }
        if (screen->keys) {
                for (; n < shown; n++)
                        (void) fprintf(f, "%s\n", clear ? "\033[K" : "");
                /* no newline at the bottom: it would scroll */
                {
                        _cleanup_free_ char *safe = text_escape(screen->keys), *cut = safe ? text_cut(safe, screen->width, c->utf8) : NULL;

                        (void) fprintf(f, "%s%s%s%s", style_begin(c, STYLE_DIM), cut ? cut : "", style_end(c, STYLE_DIM), clear ? "\033[K" : "");
                }
        }
}
