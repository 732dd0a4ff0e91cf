/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Words for what a law did: one for programs, one sentence for people. A sentence says what was seen, what it means and what
 * follows, with the numbers, so that a newcomer needs no second look. */

#include <inttypes.h>
#include <stdarg.h>

#include "policies/law-internal.h"

static const char *const cause_words[_LAW_CAUSE_MAX] = {
        [LAW_CAUSE_NONE] = "none",
        [LAW_CAUSE_DEMAND_ABOVE_LIMIT] = "demand_above_limit",
        [LAW_CAUSE_ANCESTOR_LIMIT] = "ancestor_limit",
        [LAW_CAUSE_RUNTIME_LOST] = "runtime_lost",
        [LAW_CAUSE_CONTENTION] = "contention",
        [LAW_CAUSE_OWN_LIMIT] = "own_limit",
        [LAW_CAUSE_FORCE_IDLE] = "force_idle",
        [LAW_CAUSE_OVER_PROVISIONED] = "over_provisioned",
        [LAW_CAUSE_QUIET] = "quiet",
        [LAW_CAUSE_NODE_OVERLOAD] = "node_overload",
        [LAW_CAUSE_ROLLBACK] = "rollback",
        [LAW_CAUSE_GIVE_WAY] = "give_way",
        [LAW_CAUSE_MISSING_DATA] = "missing_data",
        [LAW_CAUSE_FOREIGN_CHANGE] = "foreign_change",
};

static const char *const cause_meanings[_LAW_CAUSE_MAX] = {
        [LAW_CAUSE_NONE] = "nothing to correct",
        [LAW_CAUSE_DEMAND_ABOVE_LIMIT] = "demand is above the limit",
        [LAW_CAUSE_ANCESTOR_LIMIT] = "a group above it is throttled, so more quota here would not help",
        [LAW_CAUSE_RUNTIME_LOST] = "runtime lies unused in per-CPU slices, so more quota would not help",
        [LAW_CAUSE_CONTENTION] = "it waits for CPUs that others use, not for its quota",
        [LAW_CAUSE_OWN_LIMIT] = "it is held back by its own limit",
        [LAW_CAUSE_FORCE_IDLE] = "CPUs are kept idle for the sake of its core scheduling cookie",
        [LAW_CAUSE_OVER_PROVISIONED] = "it has needed clearly less than its quota",
        [LAW_CAUSE_QUIET] = "it is quiet, so it goes back towards its base",
        [LAW_CAUSE_NODE_OVERLOAD] = "the host is overloaded",
        [LAW_CAUSE_ROLLBACK] = "the last step down was too much",
        [LAW_CAUSE_GIVE_WAY] = "a group of a higher priority waits for CPUs",
        [LAW_CAUSE_MISSING_DATA] = "data is missing, so everything stays as it is",
        [LAW_CAUSE_FOREIGN_CHANGE] = "somebody else changed the limit, and it goes on from there",
};

static const char *const hold_words[_LAW_HOLD_MAX] = {
        [LAW_HOLD_NONE] = "none",
        [LAW_HOLD_CEILING] = "ceiling",
        [LAW_HOLD_FLOOR] = "floor",
        [LAW_HOLD_NO_RAISE] = "no_raise",
        [LAW_HOLD_HOST_CEILING] = "host_ceiling",
        [LAW_HOLD_WRITE_BUDGET] = "write_budget",
        [LAW_HOLD_IN_FLIGHT] = "in_flight",
};

static const char *const hold_meanings[_LAW_HOLD_MAX] = {
        [LAW_HOLD_CEILING] = "the class's ceiling is reached",
        [LAW_HOLD_FLOOR] = "the class's floor is reached",
        [LAW_HOLD_NO_RAISE] = "this class may not rise above its base",
        [LAW_HOLD_HOST_CEILING] = "the host's ceiling for all groups is reached",
        [LAW_HOLD_WRITE_BUDGET] = "it has been written too often in the last minute",
        [LAW_HOLD_IN_FLIGHT] = "the last write has not arrived yet",
};

const char *law_cause_to_string(LawCause c) {
        return (unsigned) c < _LAW_CAUSE_MAX ? cause_words[c] : "unknown";
}

const char *law_hold_to_string(LawHold h) {
        return (unsigned) h < _LAW_HOLD_MAX ? hold_words[h] : "unknown";
}

/* A text that grows in a buffer of a fixed size and is cut at its end. */
typedef struct Text {
        char *buffer;
        size_t size, used;
} Text;

static void __attribute__((format(printf, 2, 3))) text_add(Text *t, const char *format, ...) {
        va_list ap;
        int n;

        if (t->used + 1 >= t->size)
                return;
        va_start(ap, format);
        n = vsnprintf(t->buffer + t->used, t->size - t->used, format, ap);
        va_end(ap);
        if (n > 0)
                t->used += MIN_OF((size_t) n, t->size - t->used - 1);
}

/* Microseconds as milliseconds: "48.2 ms", "max". */
static void text_add_msec(Text *t, uint64_t usec) {
        if (usec == QUOTA_UNLIMITED)
                text_add(t, "max");
        else if (usec % 1000 == 0)
                text_add(t, "%" PRIu64 " ms", usec / 1000);
        else
                text_add(t, "%" PRIu64 ".%" PRIu64 " ms", usec / 1000, usec % 1000 / 100);
}

static void text_add_observation(Text *t, const LawDecision *d, const Bandwidth *live) {
        if (d->usage_per_period_usec == 0 && d->throttled_permyriad == 0)
                return;
        text_add(t, "used ");
        text_add_msec(t, d->usage_per_period_usec);
        text_add(t, " of ");
        text_add_msec(t, live->quota_usec);
        text_add(t, " per ");
        text_add_msec(t, live->period_usec);
        text_add(t, ", throttled in %u.%u %% of periods: ", d->throttled_permyriad / 100, d->throttled_permyriad % 100 / 10);
}

static void text_add_action(Text *t, const LawDecision *d, const Bandwidth *live) {
        if (d->changed) {
                const char *verb = d->quota_usec > live->quota_usec ? "raised" : d->quota_usec < live->quota_usec ? "lowered" : "kept";

                text_add(t, "; quota %s from ", verb);
                text_add_msec(t, live->quota_usec);
                text_add(t, " to ");
                text_add_msec(t, d->quota_usec);
                text_add(t, ", burst ");
                text_add_msec(t, d->burst_usec);
                if (d->need_usec > 0) {
                        text_add(t, " (needs ");
                        text_add_msec(t, d->need_usec);
                        text_add(t, ")");
                }
        }
        if (d->latency_nice_changed)
                text_add(t, "; latency nice set to %d", d->latency_nice);
        if (d->hold != LAW_HOLD_NONE && (unsigned) d->hold < _LAW_HOLD_MAX)
                text_add(t, "%s%s", d->changed ? "; limited: " : "; held: ", hold_meanings[d->hold]);
}

void law_decision_describe(const LawDecision *d, const Bandwidth *live, char *buffer, size_t size) {
        Text t = { buffer, size, 0 };

        if (size == 0)
                return;
        buffer[0] = '\0';
        text_add_observation(&t, d, live);
        text_add(&t, "%s", (unsigned) d->cause < _LAW_CAUSE_MAX ? cause_meanings[d->cause] : "unknown cause");
        text_add_action(&t, d, live);
}
