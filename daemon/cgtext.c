/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's cgroup files are lines of words. A cursor walks over them; nothing is copied and nothing beyond the length is read.
 *
 * What the kernel adds to a file in later versions is skipped, what it leaves out stays "unknown". A key that we do know with a value that
 * is no number is damage, never a guess. */

#include <limits.h>

#include "daemon/cgtext.h"

typedef struct Span {
        const char *p, *end;
} Span;

/* Takes the next line (without its newline) off the text. */
static bool next_line(Span *text, Span *ret) {
        const char *newline;

        if (text->p >= text->end)
                return false;
        newline = memchr(text->p, '\n', (size_t) (text->end - text->p));
        *ret = (Span) { text->p, newline ? newline : text->end };
        text->p = newline ? newline + 1 : text->end;
        return true;
}

/* Takes the next word off a line; words are separated by single or many blanks. */
static bool next_word(Span *line, Span *ret) {
        const char *p = line->p, *start;

        while (p < line->end && (*p == ' ' || *p == '\t'))
                p++;
        start = p;
        while (p < line->end && *p != ' ' && *p != '\t')
                p++;
        line->p = p;
        if (p == start)
                return false;
        *ret = (Span) { start, p };
        return true;
}

static bool span_is(const Span *s, const char *word, size_t length) {
        return (size_t) (s->end - s->p) == length && memcmp(s->p, word, length) == 0;
}
#define SPAN_IS(s, literal) span_is((s), (literal), sizeof(literal) - 1)

/* The whole span is decimal digits; leading zeros are fine, a sign is not. */
static int span_number(const Span *s, uint64_t *ret) {
        uint64_t n = 0;

        if (s->p >= s->end)
                return -EBADMSG;
        for (const char *p = s->p; p < s->end; p++) {
                unsigned digit = (unsigned char) *p - '0';

                if (digit > 9 || n > (UINT64_MAX - digit) / 10)
                        return -EBADMSG;
                n = n * 10 + digit;
        }
        *ret = n;
        return 0;
}

/* "23.21" as 2321: percent x 100, as LOAD_INT and LOAD_FRAC print it (kernel/sched/psi.c psi_show). */
static int span_percent(const Span *s, uint32_t *ret) {
        const char *dot = memchr(s->p, '.', (size_t) (s->end - s->p));
        uint64_t whole, hundredths;

        if (!dot || s->end - dot != 3 || span_number(&(Span) { s->p, dot }, &whole) < 0 || span_number(&(Span) { dot + 1, s->end }, &hundredths) < 0)
                return -EBADMSG;
        if (whole > UINT32_MAX / 100 - 1)
                return -EBADMSG;
        *ret = (uint32_t) (whole * 100 + hundredths);
        return 0;
}

/* The only line of a one-line file. */
static int only_line(const char *text, size_t length, Span *ret) {
        Span all = { text, text + length };

        if (!next_line(&all, ret) || all.p != all.end)
                return -EBADMSG;
        return 0;
}

int cpu_stat_parse(const char *text, size_t length, CpuStat *ret) {
        enum {
                USAGE = 1 << 0, PERIODS = 1 << 1, THROTTLED = 1 << 2, THROTTLED_USEC = 1 << 3, BURSTS = 1 << 4, BURST_USEC = 1 << 5, FORCE_IDLE = 1 << 6,
                PARKED = 1 << 7, LOST = 1 << 8,
        };
        Span all = { text, text + length }, line, key, value;
        unsigned seen = 0;
        CpuStat s = {};

        while (next_line(&all, &line)) {
                uint64_t *target = NULL;
                unsigned bit = 0;

                if (!next_word(&line, &key))
                        continue;
                /* By length first: this runs for every group at every sample. */
                switch (key.end - key.p) {
                case 9:
                        if (SPAN_IS(&key, "nr_bursts"))
                                target = &s.nr_bursts, bit = BURSTS;
                        break;
                case 10:
                        if (SPAN_IS(&key, "usage_usec"))
                                target = &s.usage_usec, bit = USAGE;
                        else if (SPAN_IS(&key, "nr_periods"))
                                target = &s.nr_periods, bit = PERIODS;
                        else if (SPAN_IS(&key, "burst_usec"))
                                target = &s.burst_usec, bit = BURST_USEC;
                        break;
                case 12:
                        if (SPAN_IS(&key, "nr_throttled"))
                                target = &s.nr_throttled, bit = THROTTLED;
                        else if (SPAN_IS(&key, "bw_lost_usec"))
                                target = &s.lost_usec, bit = LOST;
                        break;
                case 14:
                        if (SPAN_IS(&key, "throttled_usec"))
                                target = &s.throttled_usec, bit = THROTTLED_USEC;
                        else if (SPAN_IS(&key, "bw_parked_usec"))
                                target = &s.parked_usec, bit = PARKED;
                        break;
                case 26:
                        if (SPAN_IS(&key, "core_sched.force_idle_usec"))
                                target = &s.force_idle_usec, bit = FORCE_IDLE;
                        break;
                }
                if (!target)
                        continue;
                if (!next_word(&line, &value) || line.p != line.end || span_number(&value, target) < 0)
                        return -EBADMSG;
                seen |= bit;
        }
        if (!(seen & USAGE))
                return -EBADMSG;

        s.has_bandwidth = (seen & (PERIODS | THROTTLED | THROTTLED_USEC)) == (PERIODS | THROTTLED | THROTTLED_USEC);
        s.has_bursts = (seen & (BURSTS | BURST_USEC)) == (BURSTS | BURST_USEC);
        s.has_force_idle = seen & FORCE_IDLE;
        s.has_loss = (seen & (PARKED | LOST)) == (PARKED | LOST);
        /* Half of a set is as good as none: nobody may read the numbers of an unknown one. */
        if (!s.has_bandwidth)
                s.nr_periods = s.nr_throttled = s.throttled_usec = 0;
        if (!s.has_bursts)
                s.nr_bursts = s.burst_usec = 0;
        if (!s.has_loss)
                s.parked_usec = s.lost_usec = 0;
        *ret = s;
        return 0;
}

/* avg10= and total= of a "some" or "full" line. */
static int pressure_line(Span line, uint32_t *ret_avg10, uint64_t *ret_total) {
        bool has_avg10 = false, has_total = false;
        Span word;

        while (next_word(&line, &word)) {
                const char *equals = memchr(word.p, '=', (size_t) (word.end - word.p));
                Span key, value;

                if (!equals)
                        return -EBADMSG;
                key = (Span) { word.p, equals };
                value = (Span) { equals + 1, word.end };
                if (SPAN_IS(&key, "avg10")) {
                        if (span_percent(&value, ret_avg10) < 0)
                                return -EBADMSG;
                        has_avg10 = true;
                } else if (SPAN_IS(&key, "total")) {
                        if (span_number(&value, ret_total) < 0)
                                return -EBADMSG;
                        has_total = true;
                }
        }
        return has_avg10 && has_total ? 0 : -EBADMSG;
}

int cpu_pressure_parse(const char *text, size_t length, CpuPressure *ret) {
        Span all = { text, text + length }, line, kind;
        CpuPressure p = {};
        bool has_some = false;

        while (next_line(&all, &line)) {
                if (!next_word(&line, &kind))
                        continue;
                if (SPAN_IS(&kind, "some")) {
                        if (pressure_line(line, &p.some_avg10_permyriad, &p.some_total_usec) < 0)
                                return -EBADMSG;
                        has_some = true;
                } else if (SPAN_IS(&kind, "full")) {
                        if (pressure_line(line, &p.full_avg10_permyriad, &p.full_total_usec) < 0)
                                return -EBADMSG;
                        p.has_full = true;
                }
        }
        if (!has_some)
                return -EBADMSG;
        *ret = p;
        return 0;
}

int cpu_max_parse(const char *text, size_t length, uint64_t *ret_quota_usec, uint64_t *ret_period_usec) {
        Span line, quota, period;
        uint64_t q = QUOTA_UNLIMITED, p;

        if (only_line(text, length, &line) < 0 || !next_word(&line, &quota) || !next_word(&line, &period) || line.p != line.end)
                return -EBADMSG;
        /* A number as large as our word for "max" is none that a kernel prints. */
        if (!SPAN_IS(&quota, "max") && (span_number(&quota, &q) < 0 || q == QUOTA_UNLIMITED))
                return -EBADMSG;
        /* Everybody divides by the period. */
        if (span_number(&period, &p) < 0 || p == 0)
                return -EBADMSG;
        *ret_quota_usec = q;
        *ret_period_usec = p;
        return 0;
}

int number_parse(const char *text, size_t length, uint64_t *ret) {
        Span line;

        if (only_line(text, length, &line) < 0)
                return -EBADMSG;
        return span_number(&line, ret);
}

int signed_parse(const char *text, size_t length, int64_t *ret) {
        bool negative;
        uint64_t n;
        Span line;

        if (only_line(text, length, &line) < 0)
                return -EBADMSG;
        negative = line.p < line.end && *line.p == '-';
        if (negative)
                line.p++;
        if (span_number(&line, &n) < 0 || n > (uint64_t) INT64_MAX + negative)
                return -EBADMSG;
        *ret = negative ? (int64_t) -n : (int64_t) n;
        return 0;
}

int tids_parse(const char *text, size_t length, int (*fn)(pid_t tid, void *userdata), void *userdata) {
        Span all = { text, text + length }, line;

        while (next_line(&all, &line)) {
                uint64_t n;
                int r;

                if (span_number(&line, &n) < 0 || n > INT_MAX)
                        return -EBADMSG;
                r = fn((pid_t) n, userdata);
                if (r != 0)
                        return r;
        }
        return 0;
}

bool word_list_contains(const char *text, size_t length, const char *word) {
        Span all = { text, text + length }, line, one;
        size_t n = strlen(word);

        while (next_line(&all, &line))
                while (next_word(&line, &one))
                        if (span_is(&one, word, n))
                                return true;
        return false;
}

int populated_parse(const char *text, size_t length) {
        Span all = { text, text + length }, line, key, value;

        while (next_line(&all, &line))
                if (next_word(&line, &key) && SPAN_IS(&key, "populated")) {
                        if (!next_word(&line, &value) || line.p != line.end)
                                return -EBADMSG;
                        if (SPAN_IS(&value, "0"))
                                return 0;
                        return SPAN_IS(&value, "1") ? 1 : -EBADMSG;
                }
        return -EBADMSG;
}
