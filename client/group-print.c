/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The views of a group. The reader is awake at night because of it: what is wrong stands out, what is usual is quiet, numbers have their units. */

#include <inttypes.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/group-print.h"
#include "client/table.h"

#define LABEL_WIDTH 12

void print_label(const Client *c, const char *label) {
        say_styled(c, STYLE_DIM, "  %-*s ", LABEL_WIDTH, label);
}

/* A line of a knob's block: one step further in. */
static void sub_label(const Client *c, const char *label) {
        say_styled(c, STYLE_DIM, "    %-*s ", LABEL_WIDTH - 2, label);
}

/* An enum's word as people read it: "dry_run" -> "dry run". */
static const char *words(const char *word, char buffer[FORMAT_MAX]) {
        (void) snprintf(buffer, FORMAT_MAX, "%s", word ? word : "-");
        for (char *p = buffer; *p; p++)
                if (*p == '_')
                        *p = ' ';
        return buffer;
}

void group_print_head(const Client *c, const json_t *group) {
        const char *state = json_text(group, "state"), *class_name = json_text(group, "class");
        char text[FORMAT_MAX];
        uint64_t until;

        say_styled(c, STYLE_BOLD, "%s", group_name(group));
        if (json_text(group, "unit"))
                say("  %s", json_text(group, "cgroup") ?: "");
        (void) putchar('\n');

        print_label(c, "class");
        if (class_name)
                say_styled(c, STYLE_BOLD, "%s", class_name);
        else
                say("none: not touched");
        if (state && class_name)
                say_styled(c, state_style(state), "  %s", words(state, text));
        if (!json_flag(group, "populated"))
                say("  (no processes)");
        (void) putchar('\n');
        if (json_text(group, "state_reason")) {
                print_label(c, "");
                say("%s\n", json_text(group, "state_reason"));
        }
        if (json_text(group, "unknown_class")) {
                print_label(c, "");
                say_styled(c, STYLE_BAD, "the class \"%s\" was asked for, but the policy has none of that name\n", json_text(group, "unknown_class"));
        }
        if (json_text(group, "unmanaged_reason")) {
                print_label(c, "left alone");
                say("%s\n", json_text(group, "unmanaged_reason"));
        }
        if (json_flag(group, "protected")) {
                print_label(c, "protected");
                say("only an assignment or rule by exact name with force takes it\n");
        }
        if (json_flag(group, "paused")) {
                print_label(c, "paused");
                if (json_time(group, "paused_until", &until))
                        say_styled(c, STYLE_WARN, "ends %s\n", format_age(until, now_usec(), text));
                else
                        say_styled(c, STYLE_WARN, "until resumed\n");
        }
}

static const char *const knobs[] = { "bandwidth", "latency", "cookie" };

/* What a knob has in force, in words. */
static const char *in_force(const json_t *knob, const char *name, char buffer[FORMAT_MAX]) {
        char text[FORMAT_MAX];
        Bandwidth b;

        buffer[0] = 0;
        if (streq_null(json_text(knob, "status"), "absent"))
                return buffer;

        if (streq(name, "bandwidth"))
                return format_bandwidth(json_bandwidth(knob, "observed", &b) ? &b : NULL, buffer);
        if (streq(name, "latency")) {
                json_int_t nice = json_integer_value(json_object_get(knob, "latency_nice"));
                uint64_t slice = json_number_or(knob, "slice_nsec", 0);

                if (streq_null(json_text(knob, "mechanism"), "file"))
                        (void) snprintf(buffer, FORMAT_MAX, "nice %" JSON_INTEGER_FORMAT ", by the group's file", nice);
                else
                        (void) snprintf(buffer, FORMAT_MAX, "nice %" JSON_INTEGER_FORMAT ", slice %s on %" PRIu64 " of %" PRIu64 " threads", nice,
                                        slice ? duration_format(slice / NSEC_PER_USEC, text, sizeof(text)) : "as usual",
                                        json_number_or(knob, "threads_covered", 0), json_number_or(knob, "threads", 0));
                return buffer;
        }
        (void) snprintf(buffer, FORMAT_MAX, "%.40s on %" PRIu64 " of %" PRIu64 " threads", json_text(knob, "cookie_id") ?: "none",
                        json_number_or(knob, "threads_covered", 0), json_number_or(knob, "threads", 0));
        return buffer;
}

void group_print_knobs_short(const Client *c, const json_t *group) {
        for (size_t i = 0; i < ELEMENTSOF(knobs); i++) {
                const json_t *knob = json_object_get(group, knobs[i]);
                const char *status = json_text(knob, "status"), *error = json_text(knob, "errno");
                char text[FORMAT_MAX];

                if (!json_is_object(knob) || streq_null(status, "unmanaged"))
                        continue;
                print_label(c, knobs[i]);
                say_styled(c, state_style(status), "%-9s", words(status, text));
                (void) in_force(knob, knobs[i], text);
                if (*text)
                        say(" %s", text);
                if (error)
                        say_styled(c, STYLE_BAD, " %s", error);
                if (json_text(knob, "reason"))
                        say(" %s%s", *text ? "- " : "", json_text(knob, "reason"));
                (void) putchar('\n');
        }
}

static void print_bandwidth_values(const Client *c, const json_t *knob) {
        static const char *const values[] = { "original", "base", "desired", "observed" };
        const json_t *plan = json_object_get(knob, "plan");
        char text[FORMAT_MAX], other[FORMAT_MAX];
        uint64_t ceiling;
        Bandwidth b;

        if (json_flag(knob, "controller_off")) {
                sub_label(c, "");
                say("the cpu controller is off for this group: it has no cpu.max\n");
        }
        for (size_t i = 0; i < ELEMENTSOF(values); i++)
                if (json_bandwidth(knob, values[i], &b)) {
                        sub_label(c, values[i]);
                        say("%s\n", format_bandwidth(&b, text));
                }
        if (!json_is_object(plan))
                return;
        sub_label(c, "limits");
        say("from %s to %s a period%s\n", duration_format(json_number_or(plan, "floor_usec", 0), text, sizeof(text)),
            json_number(plan, "ceiling_usec", &ceiling) ? duration_format(ceiling, other, sizeof(other)) : "max",
            json_flag(plan, "unlimited") ? "; the base is unlimited, so nothing is set" :
            json_flag(plan, "limited_by_owner") ? "; the owner's own limit is the most" : "");
}

static void print_thread_counts(const Client *c, const json_t *knob) {
        uint64_t other = json_number_or(knob, "threads_other_policy", 0), failed = json_number_or(knob, "threads_failed", 0);
        uint64_t races = json_number_or(knob, "races", 0);

        if (other + failed + races == 0)
                return;
        sub_label(c, "threads");
        say("%" PRIu64 " of another policy left alone", other);
        say_styled(c, failed ? STYLE_BAD : STYLE_NONE, ", %" PRIu64 " failed", failed);
        say(", %" PRIu64 " changed at the same time and put right\n", races);
}

static void print_history(const Client *c, const json_t *knob) {
        const json_t *drift = json_object_get(knob, "drift");
        const char *writer = json_text(knob, "writer");
        uint64_t at, n = json_number_or(knob, "writes", 0), drifts = json_number_or(drift, "count", 0), now = now_usec();
        char text[FORMAT_MAX];

        if (n > 0 || (writer && !streq(writer, "none"))) {
                sub_label(c, "written");
                say("by %s, %" PRIu64 " times", writer ? writer : "-", n);
                if (json_time(knob, "last_write_at", &at))
                        say(", last %s", format_age(at, now, text));
                (void) putchar('\n');
        }
        if (json_text(knob, "errno")) {
                sub_label(c, "error");
                say_styled(c, STYLE_BAD, "%s", json_text(knob, "errno"));
                say("%s%s\n", json_text(knob, "reason") ? ": " : "", json_text(knob, "reason") ?: "");
        } else if (json_text(knob, "reason")) {
                sub_label(c, "reason");
                say("%s\n", json_text(knob, "reason"));
        }
        if (drifts > 0) {
                sub_label(c, "drift");
                say_styled(c, STYLE_WARN, "%" PRIu64 " foreign changes", drifts);
                if (json_time(drift, "last_at", &at))
                        say(", last %s", format_age(at, now, text));
                if (json_text(drift, "writer"))
                        say(" by %s", json_text(drift, "writer"));
                if (json_text(drift, "value"))
                        say(": %s", json_text(drift, "value"));
                if (json_time(drift, "held_until", &at))
                        say(" (left as it is, ends %s)", format_age(at, now, text));
                (void) putchar('\n');
        }
}

void group_print_knobs(const Client *c, const json_t *group) {
        for (size_t i = 0; i < ELEMENTSOF(knobs); i++) {
                const json_t *knob = json_object_get(group, knobs[i]);
                const char *status = json_text(knob, "status");
                char text[FORMAT_MAX];

                if (!json_is_object(knob))
                        continue;
                print_label(c, knobs[i]);
                say_styled(c, state_style(status), "%s", words(status, text));
                if (streq_null(status, "unmanaged")) {
                        say(": the class says nothing of it\n");
                        continue;
                }
                if (!streq(knobs[i], "bandwidth") && *in_force(knob, knobs[i], text))
                        say(", %s", text);
                (void) putchar('\n');
                if (streq(knobs[i], "bandwidth"))
                        print_bandwidth_values(c, knob);
                else
                        print_thread_counts(c, knob);
                print_history(c, knob);
        }
}

void group_print_sample(const Client *c, const json_t *group) {
        const json_t *sample = json_object_get(group, "sample"), *window = json_object_get(sample, "window"), *pressure = json_object_get(sample, "pressure");
        char text[FORMAT_MAX], other[FORMAT_MAX];
        uint64_t n, full;

        if (!json_is_object(sample))
                return;
        print_label(c, "now");
        say("uses %s of a CPU", format_permyriad(json_number_or(sample, "usage_permyriad_of_cpu", 0), text));
        if (json_number(window, "nr_periods", &n))
                say(", throttled in %" PRIu64 " of %" PRIu64 " periods (%s)", json_number_or(window, "nr_throttled", 0), n,
                    format_permyriad(json_number_or(sample, "throttled_permyriad", 0), text));
        if (json_number(pressure, "some_avg10_permyriad", &n))
                say(", pressure some %s", format_permyriad(n, text));
        if (json_number(pressure, "full_avg10_permyriad", &full))
                say(" full %s", format_permyriad(full, other));
        (void) putchar('\n');
        if (json_flag(window, "ancestor_throttled")) {
                print_label(c, "");
                say_styled(c, STYLE_WARN, "a group above it is being throttled\n");
        }
        if (json_number(window, "force_idle_usec", &n) && n > 0) {
                print_label(c, "");
                say("its cookie kept other threads of its cores idle for %s in the last %s\n", duration_format(n, text, sizeof(text)),
                    duration_format(json_number_or(sample, "window_usec", 0), other, sizeof(other)));
        }
        if (json_text(group, "law")) {
                print_label(c, "law");
                say("%s\n", json_text(group, "law"));
        }
}

void decision_print(const Client *c, const json_t *d, bool name, bool numbers) {
        const json_t *law = json_object_get(d, "law");
        const char *error = json_text(d, "errno");
        char text[FORMAT_MAX], a[FORMAT_MAX], b[FORMAT_MAX];
        Bandwidth before, after;
        uint64_t at;

        say_styled(c, STYLE_DIM, "%s ", json_time(d, "at", &at) ? format_clock(at, now_usec(), text) : "-");
        if (name)
                say_styled(c, STYLE_BOLD, "%s ", group_name(d));
        say("%s", json_text(d, "text") ?: json_text(d, "trigger") ?: "-");
        if (json_flag(d, "dry_run"))
                say_styled(c, STYLE_WARN, " (dry run)");
        if (error)
                say_styled(c, STYLE_BAD, " [%s]", error);
        (void) putchar('\n');
        if (!numbers)
                return;
        if (json_bandwidth(d, "before", &before) && json_bandwidth(d, "after", &after))
                say("    %s  ->  %s\n", format_bandwidth(&before, a), format_bandwidth(&after, b));
        if (json_is_object(law)) {
                uint64_t need = json_number_or(law, "need_usec", 0);

                (void) words(json_text(law, "cause"), text);
                say("    %s: throttled in %s of the periods, used %s a period", text, format_permyriad(json_number_or(law, "throttled_permyriad", 0), a),
                    duration_format(json_number_or(law, "usage_per_period_usec", 0), b, sizeof(b)));
                if (need > 0)
                        say(", needs %s", duration_format(need, a, sizeof(a)));
                (void) putchar('\n');
        }
}
