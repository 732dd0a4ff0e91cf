/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Globs without backtracking: the pattern is a machine whose states are its byte positions, and each byte of the name moves all
 * states that are alive at once. So the work is at most pattern x name, whoever wrote the pattern.
 *
 * Two kinds of star: one stays in its level, two cross levels. In names without levels they are the same. */

#include "policies/match.h"

#define PATTERN_MAX 4096

static bool is_in_class(const char *name, size_t n, unsigned char c) {
        static const struct {
                const char *name;
                const char *ranges; /* pairs of first and last */
        } classes[] = {
                { "alnum", "09AZaz" },       { "alpha", "AZaz" },       { "blank", "\t\t  " },       { "cntrl", "\001\037\177\177" },
                { "digit", "09" },           { "graph", "!~" },         { "lower", "az" },           { "print", " ~" },
                { "punct", "!/:@[`{~" },     { "space", "\t\r  " },     { "upper", "AZ" },           { "xdigit", "09AFaf" },
        };

        for (size_t i = 0; i < ELEMENTSOF(classes); i++)
                if (strlen(classes[i].name) == n && memcmp(classes[i].name, name, n) == 0)
                        for (const char *r = classes[i].ranges; r[0]; r += 2)
                                if (c >= (unsigned char) r[0] && c <= (unsigned char) r[1])
                                        return true;
        return false;
}

/* One element of a bracket expression that starts at p: a letter, or a class "[:name:]". Returns the byte after it, or NULL where
 * the pattern ends in its middle. *ret_class_length > 0: it is a class, whose name starts at p + 2. */
static const char *bracket_element(const char *p, size_t *ret_class_length) {
        const char *end = p[0] == '[' && p[1] == ':' ? strstr(p + 2, ":]") : NULL;

        *ret_class_length = 0;
        if (!*p)
                return NULL;
        if (!end || strspn(p + 2, "abcdefghijklmnopqrstuvwxyz") != (size_t) (end - p - 2) || end == p + 2)
                return p + 1;
        *ret_class_length = end - p - 2;
        return end + 2;
}

/* Length of the bracket expression at p, which is on "[", or 0 when it is none: then the bracket is a letter. A slash ends
 * a level, so in paths no expression goes across it. */
static size_t bracket_length(const char *p, bool levels) {
        const char *q = p + 1;
        size_t class_length;
        bool first = true;

        if (*q == '!' || *q == '^')
                q++;
        for (; *q && (first || *q != ']'); first = false) {
                if (levels && *q == '/')
                        return 0;
                q = bracket_element(q, &class_length);
                if (!q)
                        return 0;
        }
        return *q ? q + 1 - p : 0;
}

/* Whether a bracket expression of this length takes the byte. */
static bool bracket_takes(const char *p, size_t length, unsigned char c) {
        const char *q = p + 1, *end = p + length - 1;
        bool negated = *q == '!' || *q == '^', found = false;

        q += negated;
        while (q < end) {
                size_t class_length;
                const char *next = bracket_element(q, &class_length);

                if (class_length > 0)
                        found |= is_in_class(q + 2, class_length, c);
                else if (next + 1 < end && next[0] == '-') {
                        found |= c >= (unsigned char) q[0] && c <= (unsigned char) next[1];
                        next += 2;
                } else
                        found |= c == (unsigned char) *q;
                q = next;
        }
        return found != negated;
}

static bool glob_matches(const char *pattern, const char *name, bool levels) {
        size_t n = strlen(pattern);
        bool alive[PATTERN_MAX + 1], next[PATTERN_MAX + 1];
        uint16_t bracket[PATTERN_MAX + 1]; /* lengths of the expressions that start here */

        if (n > PATTERN_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                bracket[i] = pattern[i] == '[' ? (uint16_t) bracket_length(pattern + i, levels) : 0;
        memset(alive, 0, n + 1);
        alive[0] = true;
        for (;; name++) {
                unsigned char c = (unsigned char) *name;
                bool any = false;

                memset(next, 0, n + 1);
                for (size_t i = 0; i < n; i++) {
                        size_t stars;

                        if (!alive[i])
                                continue;
                        if (levels && pattern[i] == '/' && startswith(pattern + i, "/**/"))
                                alive[i + 3] = true; /* no level at all */
                        stars = strspn(pattern + i, "*");
                        if (stars > 0) {
                                alive[i + stars] = true;
                                if (c && (!levels || stars > 1 || c != '/'))
                                        any = next[i] = true;
                                continue;
                        }
                        if (!c)
                                continue;
                        if (bracket[i] > 0) {
                                if (!(levels && c == '/') && bracket_takes(pattern + i, bracket[i], c))
                                        any = next[i + bracket[i]] = true;
                        } else if (pattern[i] == '?' ? !(levels && c == '/') : (unsigned char) pattern[i] == c)
                                any = next[i + 1] = true;
                }
                if (!c)
                        return alive[n];
                if (!any)
                        return false;
                memcpy(alive, next, n + 1);
        }
}

bool cgroup_glob_matches(const char *pattern, const char *path) {
        return glob_matches(pattern, path, true);
}

bool unit_glob_matches(const char *pattern, const char *name) {
        return glob_matches(pattern, name, false);
}
