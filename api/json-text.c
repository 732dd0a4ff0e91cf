/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small values as JSON. Names of cgroups are bytes, JSON strings are Unicode: what is no UTF-8 is shown as U+FFFD, and the exact bytes are
 * given beside it in a form that can be sent back. */

#include <time.h>

#include "api/internal.h"

/* Length of the UTF-8 sequence at s (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF), 0 when there is none. */
static size_t utf8_sequence(const unsigned char *s) {
        if (s[0] < 0x80)
                return 1;
        if (s[0] >= 0xc2 && s[0] <= 0xdf)
                return (s[1] & 0xc0) == 0x80 ? 2 : 0;
        if ((s[0] & 0xf0) == 0xe0) {
                if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80)
                        return 0;
                if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
                        return 0;
                return 3;
        }
        if (s[0] >= 0xf0 && s[0] <= 0xf4) {
                if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80 || (s[3] & 0xc0) != 0x80)
                        return 0;
                if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
                        return 0;
                return 4;
        }
        return 0;
}

static bool utf8_is_valid(const char *s) {
        const unsigned char *p = (const unsigned char *) s;

        while (*p) {
                size_t n = utf8_sequence(p);

                if (n == 0)
                        return false;
                p += n;
        }
        return true;
}

char *utf8_sanitize(const char *s) {
        const unsigned char *p = (const unsigned char *) s;
        char *out, *q;

        out = q = malloc(strlen(s) * 3 + 1);
        if (!out)
                return NULL;
        while (*p) {
                size_t n = utf8_sequence(p);

                if (n == 0) {
                        memcpy(q, "\xef\xbf\xbd", 3);
                        q += 3;
                        p++;
                } else {
                        memcpy(q, p, n);
                        q += n;
                        p += n;
                }
        }
        *q = 0;
        return out;
}

json_t *json_text(const char *s) {
        _cleanup_free_ char *clean = NULL;

        if (!s)
                return json_null();
        if (utf8_is_valid(s))
                return json_string_nocheck(s);
        clean = utf8_sanitize(s);
        return clean ? json_string_nocheck(clean) : NULL;
}

int set_path(json_t *o, const char *key, const char *path) {
        if (json_object_set_new(o, key, json_text(path)) < 0)
                return -1;
        if (path && !utf8_is_valid(path)) {
                _cleanup_free_ char *escaped = uri_encode(path);
                char name[64];

                if (!escaped)
                        return -1;
                (void) snprintf(name, sizeof(name), "%s_escaped", key);
                return json_object_set_new(o, name, json_string_nocheck(escaped));
        }
        return 0;
}

json_t *json_u64(uint64_t v) {
        return json_integer((json_int_t) MIN_OF(v, (uint64_t) INT64_MAX));
}

json_t *json_quota(uint64_t quota_usec) {
        return quota_usec == QUOTA_UNLIMITED ? json_string_nocheck("max") : json_u64(quota_usec);
}

json_t *json_bandwidth(bool has, const Bandwidth *b) {
        if (!has)
                return json_null();
        return json_pack("{s:o, s:o, s:o}", "quota_usec", json_quota(b->quota_usec), "period_usec", json_u64(b->period_usec),
                         "burst_usec", json_u64(b->burst_usec));
}

static uint64_t now_of(clockid_t clock) {
        struct timespec t;

        (void) clock_gettime(clock, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

uint64_t now_monotonic_usec(void) {
        return now_of(CLOCK_MONOTONIC);
}

uint64_t now_realtime_usec(void) {
        return now_of(CLOCK_REALTIME);
}

void format_time(uint64_t realtime_usec, char buffer[40]) {
        time_t seconds = (time_t) MIN_OF(realtime_usec / USEC_PER_SEC, UINT64_C(253402300799)); /* the end of year 9999 */
        struct tm tm;
        char head[24];

        if (!gmtime_r(&seconds, &tm) || strftime(head, sizeof(head), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
                head[0] = 0;
        (void) snprintf(buffer, 40, "%s.%06uZ", head, (unsigned) (realtime_usec % USEC_PER_SEC));
}

json_t *json_time_realtime(uint64_t usec) {
        char text[40];

        if (usec == 0 || usec == USEC_INFINITY)
                return json_null();
        format_time(usec, text);
        return json_string_nocheck(text);
}

json_t *json_time_monotonic(uint64_t usec) {
        uint64_t mono, real;

        if (usec == 0 || usec == USEC_INFINITY)
                return json_null();
        mono = now_monotonic_usec();
        real = now_realtime_usec();
        if (usec >= mono)
                return json_time_realtime(real + MIN_OF(usec - mono, UINT64_MAX / 4));
        return json_time_realtime(real > mono - usec ? real - (mono - usec) : 1);
}

const char *errno_word(int error, char buffer[16]) {
        const char *name = strerrorname_np(error);

        if (name)
                return name;
        (void) snprintf(buffer, 16, "%d", error);
        return buffer;
}

json_t *json_errno(int error) {
        char buffer[16];

        return error == 0 ? json_null() : json_string_nocheck(errno_word(error < 0 ? -error : error, buffer));
}
