/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One table of units reads and writes spans of time. */

#include <ctype.h>
#include <inttypes.h>

#include "client/duration.h"

static const struct {
        const char *names; /* all spellings, the one that is written first */
        uint64_t usec;
} units[] = {
        { "w week weeks", UINT64_C(604800000000) },
        { "d day days", UINT64_C(86400000000) },
        { "h hr hour hours", UINT64_C(3600000000) },
        { "m min minute minutes", UINT64_C(60000000) },
        { "s sec second seconds", UINT64_C(1000000) },
        { "ms msec", UINT64_C(1000) },
        { "us usec \xc2\xb5s \xce\xbcs", UINT64_C(1) },
};

/* Index of the unit that a word names, or ELEMENTSOF(units). */
static size_t find_unit(const char *word, size_t length) {
        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                for (const char *p = units[i].names; *p;) {
                        size_t n = strcspn(p, " ");

                        if (n == length && strncmp(p, word, n) == 0)
                                return i;
                        p += n + (p[n] == ' ');
                }
        return ELEMENTSOF(units);
}

static int parse_number(const char **p, uint64_t *ret) {
        uint64_t n = 0;

        if (!isdigit((unsigned char) **p))
                return -EINVAL;
        for (; isdigit((unsigned char) **p); (*p)++) {
                unsigned digit = (unsigned) (**p - '0');

                if (n > (UINT64_MAX - digit) / 10)
                        return -ERANGE;
                n = n * 10 + digit;
        }
        *ret = n;
        return 0;
}

int duration_parse(const char *text, uint64_t *ret_usec) {
        const char *p = text;
        uint64_t total = 0;
        size_t next = 0; /* units from here on may still come */
        bool any = false;

        for (;;) {
                uint64_t n, part;
                size_t unit, length;
                int r;

                p += strspn(p, " ");
                if (!*p)
                        break;
                r = parse_number(&p, &n);
                if (r < 0)
                        return r;
                p += strspn(p, " ");
                length = strcspn(p, " 0123456789");
                if (length == 0) {
                        /* a bare number is seconds, and then it is alone */
                        if (any || *p)
                                return -EINVAL;
                        unit = find_unit("s", 1);
                } else {
                        unit = find_unit(p, length);
                        if (unit >= ELEMENTSOF(units) || unit < next)
                                return -EINVAL;
                        p += length;
                }
                next = unit + 1;
                if (__builtin_mul_overflow(n, units[unit].usec, &part) || __builtin_add_overflow(total, part, &total))
                        return -ERANGE;
                any = true;
        }
        if (!any)
                return -EINVAL;
        *ret_usec = total;
        return 0;
}

const char *duration_format(uint64_t usec, char *buffer, size_t size) {
        size_t i;

        if (usec == 0) {
                (void) snprintf(buffer, size, "0");
                return buffer;
        }
        for (i = 0; i < ELEMENTSOF(units) - 1; i++)
                if (usec >= units[i].usec)
                        break;
        if (units[i].usec <= USEC_PER_SEC) {
                /* below a minute: a decimal fraction of one unit, without trailing zeros */
                uint64_t whole = usec / units[i].usec, thousandths = usec % units[i].usec * 1000 / units[i].usec;
                char fraction[8] = "";

                if (thousandths > 0) {
                        int n = snprintf(fraction, sizeof(fraction), ".%03" PRIu64, thousandths);

                        while (fraction[n - 1] == '0')
                                fraction[--n] = 0;
                }
                (void) snprintf(buffer, size, "%" PRIu64 "%s%.*s", whole, fraction, (int) strcspn(units[i].names, " "), units[i].names);
        } else {
                uint64_t whole = usec / units[i].usec, rest = usec % units[i].usec / units[i + 1].usec;
                int n = snprintf(buffer, size, "%" PRIu64 "%.*s", whole, (int) strcspn(units[i].names, " "), units[i].names);

                if (rest > 0 && n > 0 && (size_t) n < size)
                        (void) snprintf(buffer + n, size - (size_t) n, " %" PRIu64 "%.*s", rest,
                                        (int) strcspn(units[i + 1].names, " "), units[i + 1].names);
        }
        return buffer;
}

int amount_parse(const char *text, AmountKind bare_percent, Amount *ret, const char **ret_why) {
        static const struct {
                const char *word;
                AmountKind kind;
        } words[] = {
                { "keep", AMOUNT_KEEP },
                { "max", AMOUNT_MAX },
                { "full", AMOUNT_FULL },
        };
        const char *p = text;
        uint64_t n;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (streq(text, words[i].word)) {
                        *ret = (Amount) { words[i].kind, 0 };
                        return 0;
                }
        if (parse_number(&p, &n) == 0) {
                AmountKind kind = AMOUNT_UNSET;

                if (streq(p, "%"))
                        kind = bare_percent;
                else if (streq(p, "%cpu"))
                        kind = AMOUNT_PERCENT_OF_CPU;
                else if (streq(p, "%base"))
                        kind = AMOUNT_PERCENT_OF_BASE;
                else if (streq(p, "%quota"))
                        kind = AMOUNT_PERCENT_OF_QUOTA;
                if (kind != AMOUNT_UNSET) {
                        *ret = (Amount) { kind, n };
                        return 0;
                }
                if (*p && duration_parse(text, &n) == 0) {
                        *ret = (Amount) { AMOUNT_USEC, n };
                        return 0;
                }
                if (!*p) {
                        *ret_why = "a number needs its unit: 150% of a CPU, 50%base, 50%quota, or 20ms per period";
                        return -EINVAL;
                }
        }
        *ret_why = "expected a whole percentage (150%, 50%base, 50%quota), a time per period (20ms), keep, max or full";
        return -EINVAL;
}
