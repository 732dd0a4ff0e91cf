/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of units and groups are any bytes but NUL and newline. Whatever goes to a terminal passes here first: one decoder of UTF-8 decides
 * for each character whether it may stay. */

#include <ctype.h>
#include <langinfo.h>
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

/* On a terminal that does not read UTF-8, the second byte of a harmless character may be a C1 control: then only ASCII passes. */
static bool is_utf8(void) {
        return streq(nl_langinfo(CODESET), "UTF-8");
}

typedef enum EscapeForm { FORM_TERMINAL, FORM_JSON } EscapeForm;

static char *escape(const char *s, size_t length, EscapeForm form) {
        const unsigned char *p = (const unsigned char *) s, *end = p + length;
        bool utf8 = is_utf8();
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
                        continue;
                }
                if ((!is_harmful(c) && (c < 0x80 || utf8)) || (form == FORM_JSON && c < 0x20)) {
                        memcpy(o, p, n);
                        o += n;
                } else if (form == FORM_TERMINAL && c < 0x80)
                        o += sprintf(o, "\\x%02x", c);
                else if (c < 0x10000)
                        o += sprintf(o, "\\u%04x", c);
                else if (form == FORM_TERMINAL)
                        o += sprintf(o, "\\U%08x", c);
                else /* JSON has no other way than the surrogates of UTF-16 (RFC 8259, 7) */
                        o += sprintf(o, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
                p += n;
        }
        *o = 0;
        return out;
}

char *text_escape(const char *s) {
        return escape(s ? s : "", s ? strlen(s) : 0, FORM_TERMINAL);
}

char *text_escape_json(const char *s, size_t length) {
        return escape(s, length, FORM_JSON);
}

/* Columns of the character at p, and its length in bytes. */
static size_t character_width(const unsigned char *p, const unsigned char *end, size_t *ret_length) {
        uint32_t c = 0;
        size_t n = decode_utf8(p, (size_t) (end - p), &c);
        int w = n > 0 ? wcwidth((wchar_t) c) : 1;

        *ret_length = n > 0 ? n : 1;
        return w > 0 ? (size_t) w : w < 0;
}

size_t text_width(const char *s) {
        const unsigned char *p = (const unsigned char *) s, *end = p + strlen(s);
        size_t width = 0, n;

        for (; p < end; p += n)
                width += character_width(p, end, &n);
        return width;
}

static const char *ellipsis(bool utf8) {
        return utf8 ? "\xe2\x80\xa6" : "~";
}

char *text_cut(const char *s, size_t width, bool utf8) {
        const unsigned char *p = (const unsigned char *) s, *end = p + strlen(s);
        size_t used = 0, n;
        char *out;

        if (text_width(s) <= width)
                return strdup(s);
        if (width == 0)
                return strdup("");
        for (; p < end; p += n) {
                size_t w = character_width(p, end, &n);

                if (used + w > width - 1)
                        break;
                used += w;
        }
        return asprintf(&out, "%.*s%s", (int) (p - (const unsigned char *) s), s, ellipsis(utf8)) < 0 ? NULL : out;
}

char *text_cut_front(const char *s, size_t width, bool utf8) {
        const unsigned char *p = (const unsigned char *) s, *end = p + strlen(s);
        size_t left = text_width(s), n;
        char *out;

        if (left <= width)
                return strdup(s);
        if (width == 0)
                return strdup("");
        for (; p < end && left > width - 1; p += n)
                left -= character_width(p, end, &n);
        return asprintf(&out, "%s%s", ellipsis(utf8), (const char *) p) < 0 ? NULL : out;
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
