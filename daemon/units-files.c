/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What unit files say about a unit's class and quota, read the way systemd reads them (systemd.syntax(7), systemd.unit(5)): lines ended by a newline,
 * carriage return or NUL, continued by a backslash across comments, sections, the last assignment wins, an empty one resets. Which files count is in units-owner.c. */

#include "daemon/units-internal.h"

#include <limits.h>

#include "policies/policy.h"

#define WHITESPACE " \t\n\r"

void unit_words_init(UnitWords *w) {
        *w = (UnitWords){ .quota_per_sec_usec = USEC_INFINITY, .quota_period_usec = USEC_INFINITY, .weight = UINT64_MAX };
}

void unit_words_clear(UnitWords *w) {
        free(w->class_word);
        unit_words_init(w);
}

/* ---- values ---- */

/* A whole number as systemd's safe_atoi() takes it (any C base). */
static bool parse_int(const char *s, size_t length, int *ret) {
        char buffer[24], *end;
        long v;

        if (length == 0 || length >= sizeof(buffer))
                return false;
        memcpy(buffer, s, length);
        buffer[length] = 0;
        errno = 0;
        v = strtol(buffer, &end, 0);
        if (errno || end == buffer || *end || v < 0 || v > INT_MAX)
                return false;
        *ret = (int) v;
        return true;
}

bool unit_parse_quota(const char *text, uint64_t *ret_per_sec_usec) {
        static const struct {
                const char *sign;
                unsigned places; /* digits that may follow the point */
        } units[] = { { "\xe2\x80\xb1", 0 } /* per ten thousand */, { "\xe2\x80\xb0", 1 } /* per thousand */, { "%", 2 } };

        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                size_t n;
                const char *point;
                int whole, permyriad = 0;

                if (!endswith(text, units[i].sign))
                        continue;
                n = strlen(text) - strlen(units[i].sign);
                point = units[i].places > 0 ? memchr(text, '.', n) : NULL;
                if (!parse_int(text, point ? (size_t) (point - text) : n, &whole))
                        return false;
                if (point && ((size_t) (text + n - point - 1) < 1 || (size_t) (text + n - point - 1) > units[i].places))
                        return false;
                for (unsigned k = 0; k < units[i].places; k++) {
                        char c = point && point + 1 + k < text + n ? point[1 + k] : '0';

                        if (c < '0' || c > '9')
                                return false;
                        permyriad = permyriad * 10 + (c - '0');
                }
                for (unsigned k = 0; k < units[i].places; k++)
                        if (__builtin_mul_overflow(whole, 10, &whole))
                                return false;
                if (__builtin_add_overflow(whole, permyriad, &permyriad) || permyriad <= 0)
                        return false;
                *ret_per_sec_usec = (uint64_t) permyriad * USEC_PER_SEC / 10000;
                return true;
        }
        return false;
}

/* The unit at p, longest name first among those that begin alike; returns what follows, or NULL. */
static const char *take_time_unit(const char *p, uint64_t *ret_usec) {
        static const struct {
                const char *name;
                uint64_t usec;
        } units[] = {
                { "seconds", USEC_PER_SEC }, { "second", USEC_PER_SEC }, { "sec", USEC_PER_SEC }, { "s", USEC_PER_SEC },
                { "minutes", 60 * USEC_PER_SEC }, { "minute", 60 * USEC_PER_SEC }, { "min", 60 * USEC_PER_SEC },
                { "months", 2629800 * USEC_PER_SEC }, { "month", 2629800 * USEC_PER_SEC }, { "M", 2629800 * USEC_PER_SEC },
                { "msec", USEC_PER_MSEC }, { "ms", USEC_PER_MSEC }, { "m", 60 * USEC_PER_SEC },
                { "hours", 3600 * USEC_PER_SEC }, { "hour", 3600 * USEC_PER_SEC }, { "hr", 3600 * USEC_PER_SEC }, { "h", 3600 * USEC_PER_SEC },
                { "days", 86400 * USEC_PER_SEC }, { "day", 86400 * USEC_PER_SEC }, { "d", 86400 * USEC_PER_SEC },
                { "weeks", 604800 * USEC_PER_SEC }, { "week", 604800 * USEC_PER_SEC }, { "w", 604800 * USEC_PER_SEC },
                { "years", 31557600 * USEC_PER_SEC }, { "year", 31557600 * USEC_PER_SEC }, { "y", 31557600 * USEC_PER_SEC },
                { "usec", 1 }, { "us", 1 }, { "\xce\xbcs", 1 }, { "\xc2\xb5s", 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (startswith(p, units[i].name)) {
                        *ret_usec = units[i].usec;
                        return p + strlen(units[i].name);
                }
        return NULL;
}

bool unit_parse_time_span(const char *text, uint64_t *ret_usec) {
        const char *p = text + strspn(text, WHITESPACE);
        uint64_t sum = 0;

        if (startswith(p, "infinity") && p[8 + strspn(p + 8, WHITESPACE)] == 0) {
                *ret_usec = USEC_INFINITY;
                return true;
        }
        if (!*p)
                return false;
        for (; *p; p += strspn(p, WHITESPACE)) {
                size_t n = strspn(p, "0123456789"), n_fraction = 0;
                const char *fraction = NULL, *after;
                uint64_t whole = 0, unit = USEC_PER_SEC, part, digit_worth;

                for (size_t i = 0; i < n; i++)
                        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, (uint64_t) (p[i] - '0'), &whole))
                                return false;
                if (p[n] == '.') {
                        fraction = p + n + 1;
                        n_fraction = strspn(fraction, "0123456789");
                        if (n_fraction == 0)
                                return false;
                        after = fraction + n_fraction;
                } else if (n == 0)
                        return false;
                else
                        after = p + n;
                p = take_time_unit(after + strspn(after, WHITESPACE), &unit);
                if (!p) {
                        /* Without a unit these are seconds, and white space or the end must follow. */
                        if (*after && !strchr(WHITESPACE, *after))
                                return false;
                        p = after;
                }
                if (__builtin_mul_overflow(whole, unit, &part) || __builtin_add_overflow(sum, part, &sum))
                        return false;
                digit_worth = unit / 10;
                for (size_t i = 0; i < n_fraction; i++, digit_worth /= 10)
                        if (__builtin_add_overflow(sum, (uint64_t) (fraction[i] - '0') * digit_worth, &sum))
                                return false;
                if (sum == USEC_INFINITY)
                        return false;
        }
        *ret_usec = sum;
        return true;
}

/* ---- lines ---- */

/* A class word goes to terminals and logs and is compared with names that are plain ASCII: anything else in it becomes "?", so that it stays a wrong word. */
static int set_class_word(UnitWords *w, const char *value) {
        char word[POLICY_NAME_MAX + 2];
        size_t n = 0;

        for (; value[n] && n < sizeof(word) - 1; n++)
                word[n] = (unsigned char) value[n] > 0x20 && (unsigned char) value[n] < 0x7f ? value[n] : '?';
        word[n] = 0;
        return free_and_strdup(&w->class_word, n > 0 ? word : NULL);
}

static int assign(UnitWords *w, const char *section, const char *unit_section, const char *key, const char *value) {
        uint64_t v;

        w->n_assignments++;
        if (streq(section, "X-CpuClass"))
                return streq(key, "Class") ? set_class_word(w, value) : 0;
        if (!streq(section, unit_section))
                return 0;
        if (streq(key, "CPUQuota")) {
                if (!*value)
                        v = USEC_INFINITY;
                else if (!unit_parse_quota(value, &v))
                        return 0; /* systemd ignores it, too */
                w->quota_per_sec_usec = v;
                w->says_quota = true;
        } else if (streq(key, "CPUQuotaPeriodSec")) {
                if (!*value)
                        v = USEC_INFINITY;
                else if (!unit_parse_time_span(value, &v))
                        return 0;
                w->quota_period_usec = v;
                w->says_period = true;
        } else if (streq(key, "CPUWeight")) {
                char *end;

                errno = 0;
                v = *value ? strtoull(value, &end, 10) : UINT64_MAX;
                if (*value && (errno || *end || value[0] < '0' || value[0] > '9' || v < 1 || v > 10000))
                        return 0;
                w->weight = v;
                w->says_weight = true;
        }
        return 0;
}

static char *strip(char *s) {
        char *end;

        s += strspn(s, WHITESPACE);
        for (end = s + strlen(s); end > s && strchr(WHITESPACE, end[-1]); end--)
                ;
        *end = 0;
        return s;
}

typedef struct Parser {
        UnitWords *words;
        const char *unit_section;
        char section[64]; /* "" before the first, or one that is too long to be one of ours */
        bool done;        /* an error that makes systemd stop reading the file */
} Parser;

static int parse_line(Parser *p, char *line) {
        char *l = strip(line), *value;
        size_t n = strlen(l);

        if (n == 0)
                return 0;
        if (l[0] == '[') {
                if (l[n - 1] != ']') {
                        p->done = true;
                        return 0;
                }
                l[n - 1] = 0;
                if (n - 2 < sizeof(p->section))
                        strcpy(p->section, l + 1);
                else
                        p->section[0] = 0;
                return 0;
        }
        value = strchr(l, '=');
        if (!value || value == l)
                return 0;
        *value++ = 0;
        return assign(p->words, p->section, p->unit_section, strip(l), strip(value));
}

/* Length of the line at p, and of its end: different end characters in a row are one end (CR LF), the same ones are several. */
static size_t line_length(const char *p, size_t left, size_t *ret_end) {
        size_t n = 0, end = 0;
        bool seen[3] = { false };

        while (n < left && p[n] != '\n' && p[n] != '\r' && p[n] != 0)
                n++;
        for (; n + end < left; end++) {
                unsigned kind = p[n + end] == '\n' ? 0 : p[n + end] == '\r' ? 1 : p[n + end] == 0 ? 2 : 3;

                if (kind == 3 || seen[kind])
                        break;
                seen[kind] = true;
        }
        *ret_end = end;
        return n;
}

/* Whether the last byte is a backslash that is not itself escaped. */
static bool is_continued(const char *s) {
        bool escaped = false;

        for (; *s; s++)
                escaped = !escaped && *s == '\\';
        return escaped;
}

int unit_words_parse(UnitWords *w, const char *text, size_t length, const char *section) {
        Parser parser = { .words = w, .unit_section = section };
        _cleanup_free_ char *line = malloc(length + 1);
        size_t filled = 0;
        bool continued = false;

        if (!line)
                return -ENOMEM;
        if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
                text += 3;
                length -= 3;
        }
        while (length > 0 && !parser.done) {
                size_t end, n = line_length(text, length, &end);
                const char *first = text;
                size_t left = n;
                int r;

                while (left > 0 && strchr(WHITESPACE, *first)) {
                        first++;
                        left--;
                }
                if (left == 0 || (*first != '#' && *first != ';')) { /* a comment does not end a continuation */
                        memcpy(line + filled, text, n);
                        line[filled + n] = 0;
                        /* What is before this part ends in a blank, so it can't escape anything here. */
                        continued = is_continued(line + filled);
                        filled += n;
                        if (continued)
                                line[filled - 1] = ' ';
                        else {
                                r = parse_line(&parser, line);
                                if (r < 0)
                                        return r;
                                filled = 0;
                        }
                }
                text += n + end;
                length -= n + end;
        }
        return continued && !parser.done ? parse_line(&parser, line) : 0;
}
