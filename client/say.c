/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The only ways in which a verb says something: all of them escape what a terminal would obey. */

#include "client/client.h"
#include "client/text.h"

__attribute__((format(printf, 4, 0)))
static void print(FILE *stream, const char *begin, const char *end, const char *format, va_list arguments) {
        _cleanup_free_ char *text = NULL, *safe = NULL;
        size_t n;
        bool newline;
        int r = vasprintf(&text, format, arguments);

        if (r < 0) {
                text = NULL;
                return;
        }
        n = (size_t) r;
        newline = endswith(format, "\n") && n > 0 && text[n - 1] == '\n';
        if (newline)
                text[n - 1] = 0;
        safe = text_escape(text);
        if (safe)
                (void) fprintf(stream, "%s%s%s%s", begin, safe, end, newline ? "\n" : "");
}

void complain(const char *format, ...) {
        va_list arguments;

        (void) fflush(stdout);
        va_start(arguments, format);
        print(stderr, "cpuclassctl: ", "\n", format, arguments);
        va_end(arguments);
}

void hint(const char *format, ...) {
        va_list arguments;

        (void) fflush(stdout);
        va_start(arguments, format);
        print(stderr, "  ", "\n", format, arguments);
        va_end(arguments);
}

void say(const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        print(stdout, "", "", format, arguments);
        va_end(arguments);
}

void say_styled(const Client *c, Style s, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        print(stdout, style_begin(c, s), style_end(c, s), format, arguments);
        va_end(arguments);
}

const char *style_begin(const Client *c, Style s) {
        static const char *const sequences[] = {
                [STYLE_NONE] = "",
                [STYLE_BOLD] = "\033[1m",
                [STYLE_DIM] = "\033[2m",
                [STYLE_GOOD] = "\033[32m",
                [STYLE_WARN] = "\033[33m",
                [STYLE_BAD] = "\033[1;31m",
        };

        return c->colour ? sequences[s] : "";
}

const char *style_end(const Client *c, Style s) {
        return c->colour && s != STYLE_NONE ? "\033[0m" : "";
}
