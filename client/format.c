/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The API speaks in µs and 1/10000; people read percents of a CPU and "12s ago". All of that is here, none of it in the verbs. */

#include <inttypes.h>
#include <time.h>

#include "client/duration.h"
#include "client/format.h"

const char *json_text(const json_t *o, const char *key) {
        return json_string_value(json_object_get(o, key));
}

bool json_number(const json_t *o, const char *key, uint64_t *ret) {
        const json_t *v = json_object_get(o, key);

        if (!json_is_integer(v) || json_integer_value(v) < 0)
                return false;
        *ret = (uint64_t) json_integer_value(v);
        return true;
}

uint64_t json_number_or(const json_t *o, const char *key, uint64_t otherwise) {
        (void) json_number(o, key, &otherwise);
        return otherwise;
}

bool json_flag(const json_t *o, const char *key) {
        return json_is_true(json_object_get(o, key));
}

bool json_bandwidth(const json_t *o, const char *key, Bandwidth *ret) {
        const json_t *b = json_object_get(o, key);
        Bandwidth value = { .quota_usec = QUOTA_UNLIMITED };

        if (!json_is_object(b) || !json_number(b, "period_usec", &value.period_usec))
                return false;
        if (!json_number(b, "quota_usec", &value.quota_usec) && !streq_null(json_text(b, "quota_usec"), "max"))
                return false;
        (void) json_number(b, "burst_usec", &value.burst_usec);
        *ret = value;
        return true;
}

bool time_parse(const char *text, uint64_t *ret_usec) {
        struct tm tm = {};
        const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        uint64_t fraction = 0, scale = USEC_PER_SEC;
        time_t t;

        if (!p)
                return false;
        if (*p == '.')
                for (p++; *p >= '0' && *p <= '9'; p++) {
                        scale /= 10;
                        fraction += (uint64_t) (*p - '0') * scale;
                }
        if (!streq(p, "Z") && !streq(p, "z") && !streq(p, "+00:00"))
                return false;
        t = timegm(&tm);
        if (t < 0)
                return false;
        *ret_usec = (uint64_t) t * USEC_PER_SEC + fraction;
        return true;
}

bool json_time(const json_t *o, const char *key, uint64_t *ret_usec) {
        const char *text = json_text(o, key);

        return text && time_parse(text, ret_usec);
}

uint64_t now_usec(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / NSEC_PER_USEC;
}

const char *format_quota(const Bandwidth *b, char buffer[FORMAT_MAX]) {
        if (!b)
                (void) snprintf(buffer, FORMAT_MAX, "-");
        else if (b->quota_usec == QUOTA_UNLIMITED)
                (void) snprintf(buffer, FORMAT_MAX, "max");
        else if (b->period_usec == 0)
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "us", b->quota_usec);
        else {
                uint64_t permille = b->quota_usec * 1000 / b->period_usec;

                if (permille % 10 == 0 || permille >= 10000)
                        (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "%%", permille / 10);
                else
                        (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 ".%" PRIu64 "%%", permille / 10, permille % 10);
        }
        return buffer;
}

const char *format_bandwidth(const Bandwidth *b, char buffer[FORMAT_MAX]) {
        char share[FORMAT_MAX], quota[FORMAT_MAX], period[FORMAT_MAX], burst[FORMAT_MAX];

        if (!b || b->quota_usec == QUOTA_UNLIMITED) {
                format_quota(b, buffer);
                if (b && b->burst_usec > 0)
                        (void) snprintf(buffer, FORMAT_MAX, "max, burst %s", duration_format(b->burst_usec, burst, sizeof(burst)));
                return buffer;
        }
        (void) snprintf(buffer, FORMAT_MAX, "%.20s (%.24s per %.24s), burst %.24s", format_quota(b, share),
                        duration_format(b->quota_usec, quota, sizeof(quota)),
                        duration_format(b->period_usec, period, sizeof(period)),
                        duration_format(b->burst_usec, burst, sizeof(burst)));
        return buffer;
}

const char *format_permyriad(uint64_t value, char buffer[FORMAT_MAX]) {
        (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 ".%" PRIu64 "%%", value / 100, value % 100 / 10);
        return buffer;
}

const char *format_age(uint64_t at_usec, uint64_t now, char buffer[FORMAT_MAX]) {
        char span[FORMAT_MAX];
        uint64_t d = at_usec > now ? at_usec - now : now - at_usec;

        if (d >= USEC_PER_SEC)
                d -= d % USEC_PER_SEC;
        (void) duration_format(d, span, sizeof(span));
        if (d < USEC_PER_SEC)
                (void) snprintf(buffer, FORMAT_MAX, "now");
        else if (at_usec > now)
                (void) snprintf(buffer, FORMAT_MAX, "in %.100s", span);
        else
                (void) snprintf(buffer, FORMAT_MAX, "%.100s ago", span);
        return buffer;
}

const char *format_clock(uint64_t at_usec, uint64_t now, char buffer[FORMAT_MAX]) {
        time_t at = (time_t) (at_usec / USEC_PER_SEC), today = (time_t) (now / USEC_PER_SEC);
        struct tm a, b;

        if (!localtime_r(&at, &a) || !localtime_r(&today, &b) ||
            strftime(buffer, FORMAT_MAX, a.tm_year == b.tm_year && a.tm_yday == b.tm_yday ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &a) == 0)
                (void) snprintf(buffer, FORMAT_MAX, "-");
        return buffer;
}

const char *format_amount(const json_t *amount, char buffer[FORMAT_MAX]) {
        char span[FORMAT_MAX];
        uint64_t n;

        if (json_is_string(amount))
                (void) snprintf(buffer, FORMAT_MAX, "%s", json_string_value(amount));
        else if (json_number(amount, "percent_of_cpu", &n))
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "%%", n);
        else if (json_number(amount, "percent_of_base", &n))
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "%% of base", n);
        else if (json_number(amount, "percent_of_quota", &n))
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "%% of quota", n);
        else if (json_number(amount, "usec", &n))
                (void) snprintf(buffer, FORMAT_MAX, "%s", duration_format(n, span, sizeof(span)));
        else
                (void) snprintf(buffer, FORMAT_MAX, "-");
        return buffer;
}

const char *group_name(const json_t *group) {
        const char *unit = json_text(group, "unit"), *cgroup = json_text(group, "cgroup");

        return unit ? unit : cgroup ? cgroup : "?";
}
