/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of units and groups are any bytes but NUL and newline. Whatever goes to a terminal passes here first: one decoder of UTF-8 decides
 * for each character whether it may stay. */

#include <ctype.h>
#include <wchar.h>

#include "client/text.h"

/* Decodes one character (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF). Returns its length, 0 for bytes that are none. */
static size_t decode_utf8(const unsigned char *s, size_t length, uint32_t *ret) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t n;
        uint32_t c;

        if (length == 0)
                return 0;
        if (s[0] < 0x80) {
                *ret = s[0];
                return 1;
        }
        n = s[0] >= 0xf0 && s[0] < 0xf8 ? 4 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xc0 && s[0] < 0xe0 ? 2 : 0;
        if (n == 0 || n > length)
                return 0;
        c = s[0] & (0xffU >> (n + 1));
        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (s[i] & 0x3fU);
        }
        if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        *ret = c;
        return n;
}

/* Characters that act on the terminal, or on how the text around them is read, instead of being seen. */
static bool is_harmful(uint32_t c) {
        return c < 0x20 || (c >= 0x7f && c <= 0x9f) ||
                c == 0x061c || c == 0x200e || c == 0x200f ||   /* marks of direction */
                (c >= 0x2028 && c <= 0x202e) ||                /* separators, embeddings, overrides */
                (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;   /* isolates, byte order mark */
}

typedef enum EscapeForm { FORM_TERMINAL, FORM_JSON } EscapeForm;

static char *escape(const char *s, size_t length, char keep, EscapeForm form) {
        const unsigned char *p = (const unsigned char *) s, *end = p + length;
        char *out, *o;

        out = o = malloc(length * 6 + 1); /* the longest: one byte to "\u007f" */
        if (!out)
                return NULL;
        while (p < end) {
                uint32_t c = 0;
                size_t n = decode_utf8(p, (size_t) (end - p), &c);

                if (n == 0) {
                        o += sprintf(o, form == FORM_JSON ? "\\ufffd" : "\\x%02x", *p);
                        p++;
                } else if ((keep && c == (unsigned char) keep) || !is_harmful(c) || (form == FORM_JSON && c < 0x20)) {
                        memcpy(o, p, n);
                        o += n;
                        p += n;
                } else {
                        o += sprintf(o, form == FORM_TERMINAL && c < 0x80 ? "\\x%02x" : "\\u%04x", c);
                        p += n;
                }
        }
        *o = 0;
        return out;
}

char *text_escape(const char *s) {
        return escape(s ? s : "", s ? strlen(s) : 0, 0, FORM_TERMINAL);
}

char *text_escape_but(const char *s, char keep) {
        return escape(s ? s : "", s ? strlen(s) : 0, keep, FORM_TERMINAL);
}

char *text_escape_json(const char *s, size_t length) {
        return escape(s, length, 0, FORM_JSON);
}

size_t text_width(const char *s) {
        const unsigned char *p = (const unsigned char *) s, *end = p + strlen(s);
        size_t width = 0;

        while (p < end) {
                uint32_t c = 0;
                size_t n = decode_utf8(p, (size_t) (end - p), &c);
                int w = n > 0 ? wcwidth((wchar_t) c) : 1;

                width += w > 0 ? (size_t) w : w < 0;
                p += n > 0 ? n : 1;
        }
        return width;
}

#define WORD_MAX 256

size_t text_distance(const char *a, const char *b) {
        size_t n = strlen(a), m = strlen(b), rows[3][WORD_MAX + 1];
        size_t *before = rows[0], *last = rows[1], *now = rows[2];

        if (n > WORD_MAX || m > WORD_MAX)
                return MAX_OF(n, m);
        for (size_t j = 0; j <= m; j++)
                last[j] = j;
        for (size_t i = 1; i <= n; i++) {
                size_t *spare;

                now[0] = i;
                for (size_t j = 1; j <= m; j++) {
                        int x = tolower((unsigned char) a[i - 1]), y = tolower((unsigned char) b[j - 1]);

                        now[j] = MIN_OF(MIN_OF(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
                        if (i > 1 && j > 1 && x == tolower((unsigned char) b[j - 2]) && y == tolower((unsigned char) a[i - 2]))
                                now[j] = MIN_OF(now[j], before[j - 2] + 1);
                }
                spare = before;
                before = last;
                last = now;
                now = spare;
        }
        return last[m];
}

const char *text_suggest(const char *word, const char *const *candidates, size_t n) {
        const char *nearest = NULL, *longer = NULL;
        size_t least = strlen(word) / 3 + 1, n_longer = 0;

        if (strlen(word) == 0)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                size_t d;

                if (!candidates[i])
                        continue;
                d = text_distance(word, candidates[i]);
                if (d < least || (d == least && !nearest && d < strlen(word))) {
                        least = d;
                        nearest = candidates[i];
                }
                if (strncasecmp(candidates[i], word, strlen(word)) == 0) {
                        longer = candidates[i];
                        n_longer++;
                }
        }
        return nearest ? nearest : n_longer == 1 ? longer : NULL;
}
