/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* URIs, strictly: what came is taken apart before it is decoded, each part is decoded once, and what is not plainly right is refused. A "%2F"
 * in a segment can then never become a separator, and no name arrives other than it was meant. */

#include "api/internal.h"

static int unhex(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

int uri_decode(const char *s, size_t length, bool allow_control, char **ret) {
        _cleanup_free_ char *out = NULL;
        size_t n = 0;

        out = malloc(length + 1);
        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < length; i++) {
                unsigned char c = (unsigned char) s[i];

                if (c == '%') {
                        int high = i + 1 < length ? unhex(s[i + 1]) : -1;
                        int low = i + 2 < length ? unhex(s[i + 2]) : -1;

                        if (high < 0 || low < 0)
                                return -EINVAL;
                        c = (unsigned char) (high << 4 | low);
                        i += 2;
                        if (c == 0 || c == '\n')
                                return -EINVAL;
                        if (!allow_control && (c < 0x20 || c == 0x7f))
                                return -EINVAL;
                } else if (c <= 0x20 || c >= 0x7f)
                        return -EINVAL;
                out[n++] = (char) c;
        }
        out[n] = 0;
        *ret = TAKE_PTR(out);
        return 0;
}

char *uri_encode(const char *s) {
        static const char digits[] = "0123456789ABCDEF";
        char *out, *p;

        out = p = malloc(strlen(s) * 3 + 1);
        if (!out)
                return NULL;
        for (; *s; s++) {
                unsigned char c = (unsigned char) *s;

                if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~/", c))
                        *p++ = (char) c;
                else {
                        *p++ = '%';
                        *p++ = digits[c >> 4];
                        *p++ = digits[c & 15];
                }
        }
        *p = 0;
        return out;
}

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char *token_encode(const char *s) {
        size_t length = strlen(s);
        char *out, *p;

        out = p = malloc(length / 3 * 4 + 5);
        if (!out)
                return NULL;
        for (size_t i = 0; i < length; i += 3) {
                uint32_t v = (uint32_t) (unsigned char) s[i] << 16;

                if (i + 1 < length)
                        v |= (uint32_t) (unsigned char) s[i + 1] << 8;
                if (i + 2 < length)
                        v |= (unsigned char) s[i + 2];
                *p++ = base64url[v >> 18];
                *p++ = base64url[v >> 12 & 63];
                if (i + 1 < length)
                        *p++ = base64url[v >> 6 & 63];
                if (i + 2 < length)
                        *p++ = base64url[v & 63];
        }
        *p = 0;
        return out;
}

int token_decode(const char *s, char **ret) {
        size_t length = strlen(s), n = 0;
        _cleanup_free_ char *out = NULL;
        uint32_t v = 0;
        unsigned bits = 0;

        if (length % 4 == 1)
                return -EINVAL;
        out = malloc(length + 1);
        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < length; i++) {
                const char *at = strchr(base64url, s[i]);

                if (!at)
                        return -EINVAL;
                v = v << 6 | (uint32_t) (at - base64url);
                bits += 6;
                if (bits >= 8) {
                        bits -= 8;
                        out[n] = (char) (v >> bits);
                        v &= (1U << bits) - 1;
                        if (out[n++] == 0)
                                return -EINVAL;
                }
        }
        if (v != 0)
                return -EINVAL;
        out[n] = 0;
        *ret = TAKE_PTR(out);
        return 0;
}
