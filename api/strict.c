/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A second look at the raw head of a request, for what libmicrohttpd before 0.9.77 lets pass.
 *
 * Its parser takes a line that begins with ":" or with a NUL for the end of the headers (what follows then is read as the next request), ends lines at a bare LF, folds
 * lines that begin with a space, and cuts names and values at a NUL. Each of these lets one server see another request than the next, which is all that
 * request smuggling needs. The library parses in place: it writes NULs over the separators of a block that begins at the method and whose length it tells. So
 * the block can be walked again, and must be made of exactly "method SP target SP version CRLF (name : value CRLF)* CRLF". */

#include "api/internal.h"

static bool is_token(const char *s, size_t length) {
        static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

        if (length == 0)
                return false;
        for (size_t i = 0; i < length; i++)
                if (s[i] == 0 || !strchr(token, s[i]))
                        return false;
        return true;
}

bool head_is_strict(const char *head, size_t size, const char *target, const char *version) {
        const char *end = head + size, *p;
        size_t method = strnlen(head, size), line = method + 1 + strlen(target) + 1;

        if (!is_token(head, method) || line + 2 > size || version != head + line)
                return false;
        p = version + strnlen(version, (size_t) (end - version));
        for (;;) {
                size_t name, value;

                /* the CRLF of the line before */
                if (end - p < 2 || p[0] != 0 || p[1] != 0)
                        return false;
                p += 2;
                if (p == end)
                        return false;
                if (end - p == 2)
                        return p[0] == 0 && p[1] == 0; /* the empty line */
                name = strnlen(p, (size_t) (end - p));
                if (!is_token(p, name) || name == (size_t) (end - p))
                        return false;
                p += name + 1;
                value = strnlen(p, (size_t) (end - p));
                p += value;
        }
}
