/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a simulation came to: a table with a line a law, or everything as JSON. */

#include "client/simulate.h"
#include "client/table.h"
#include "client/http.h"

#define CELL_MAX 64

static void __attribute__((format(printf, 3, 4))) cell(Table *t, Style style, const char *format, ...) {
        char text[CELL_MAX];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        table_cell(t, text, style);
}

static void cell_msec(Table *t, uint64_t usec) {
        cell(t, STYLE_NONE, usec < 10000 ? "%.2fms" : usec < 1000000 ? "%.0fms" : "%.1fs", usec < 1000000 ? (double) usec / 1e3 : (double) usec / 1e6);
}

static double cpus(uint64_t usec, const SimRun *run) {
        return (double) usec / (double) run->duration_usec;
}

ExitCode simulation_print(const Client *c, const Simulation *s, const SimRun *runs, size_t n) {
        static const Column columns[] = {
                { "LAW", COLUMN_LEFT }, { "ALLOCATED", COLUMN_RIGHT }, { "USED", COLUMN_RIGHT }, { "THROTTLED", COLUMN_RIGHT }, { "P50", COLUMN_RIGHT },
                { "P99", COLUMN_RIGHT }, { "MAX", COLUMN_RIGHT }, { "UNFINISHED", COLUMN_RIGHT }, { "CHANGES/MIN", COLUMN_RIGHT }, { "REACTION", COLUMN_RIGHT },
                { "QUOTA", COLUMN_RIGHT | COLUMN_WIDE },
        };
        Table *t;
        ExitCode code;

        if (s->workload)
                say("%s: %s. %.0f s, %u CPUs, seed %lu%s.\n", s->workload->name, s->workload->description, (double) s->host.duration_usec / 1e6, s->host.n_cpus,
                    (unsigned long) s->host.seed, s->workload->held_out ? "; not used for tuning" : "");
        else {
                uint32_t throttled = sim_trace_throttled_permyriad(&s->trace);

                say("Trace of %s: %.0f s, %u CPUs, cut into requests of %.1f ms, seed %lu.\n", s->trace.group ?: "a group", (double) s->host.duration_usec / 1e6,
                    s->host.n_cpus, (double) s->work_usec / 1e3, (unsigned long) s->host.seed);
                if (throttled > 0)
                        say("It was throttled in %.1f %% of its samples: there it wanted more than a trace can say.\n", throttled / 100.0);
        }
        if (s->has_class)
                say("Class %s: quota %.1f ms per %.0f ms, floor %.1f ms, ceiling %.1f ms.\n", s->class_name, (double) s->law.base.quota_usec / 1e3,
                    (double) s->law.base.period_usec / 1e3, (double) s->law.floor_usec / 1e3,
                    s->law.ceiling_usec == QUOTA_UNLIMITED ? 0.0 : (double) s->law.ceiling_usec / 1e3);

        t = table_new(c, columns, ELEMENTSOF(columns));
        if (!t)
                return CODE_FAILURE;
        for (size_t i = 0; i < n; i++) {
                const SimOutcome *o = &runs[i].outcome;
                char name[24];

                table_row(t);
                cell(t, STYLE_BOLD, "%s", sim_contender_to_string(runs[i].contender, name));
                cell(t, STYLE_NONE, "%.3f", cpus(sim_allocated_usec(o), &runs[i]));
                cell(t, STYLE_NONE, "%.3f", cpus(o->used_usec, &runs[i]));
                cell(t, STYLE_NONE, "%.1f%%", o->nr_periods ? 100.0 * (double) o->nr_throttled / (double) o->nr_periods : 0.0);
                cell_msec(t, sim_histogram_percentile(&o->latency, 5000));
                cell_msec(t, sim_histogram_percentile(&o->latency, 9900));
                cell_msec(t, o->latency.max);
                cell(t, o->n_unfinished > 100 ? STYLE_WARN : STYLE_NONE, "%lu", (unsigned long) o->n_unfinished);
                cell(t, STYLE_NONE, "%.1f", (double) o->n_changes * 60e6 / (double) runs[i].duration_usec);
                if (o->reaction.n > 0)
                        cell_msec(t, sim_histogram_percentile(&o->reaction, 5000));
                else
                        table_cell(t, NULL, STYLE_NONE);
                if (o->highest_quota_usec > 0)
                        cell(t, STYLE_NONE, "%.1f..%.1fms", (double) o->lowest_quota_usec / 1e3, (double) o->highest_quota_usec / 1e3);
                else
                        table_cell(t, "max", STYLE_NONE);
        }
        code = table_print(t, NULL);
        (void) table_free(t);
        return code;
}

static json_t *quota_json(uint64_t quota_usec) {
        return quota_usec == QUOTA_UNLIMITED ? json_string("max") : json_integer((json_int_t) quota_usec);
}

static json_t *change_json(const SimChange *change) {
        const LawDecision *d = &change->decision;
        char text[512];
        json_t *o;

        law_decision_describe(d, &change->before, text, sizeof(text));
        o = json_pack("{s:I, s:s, s:s, s:s}", "t_usec", (json_int_t) change->at_usec, "cause", law_cause_to_string(d->cause), "hold", law_hold_to_string(d->hold),
                      "text", text);
        if (o && d->changed)
                (void) (json_object_set_new(o, "quota_usec", quota_json(d->quota_usec)) | json_object_set_new(o, "burst_usec", json_integer((json_int_t) d->burst_usec)));
        if (o && d->latency_nice_changed)
                (void) json_object_set_new(o, "latency_nice", json_integer(d->latency_nice));
        return o;
}

static json_t *percentiles_json(const SimHistogram *h) {
        return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "n", (json_int_t) h->n, "mean", (json_int_t) sim_histogram_mean(h),
                         "p50", (json_int_t) sim_histogram_percentile(h, 5000), "p90", (json_int_t) sim_histogram_percentile(h, 9000),
                         "p99", (json_int_t) sim_histogram_percentile(h, 9900), "p999", (json_int_t) sim_histogram_percentile(h, 9990), "max", (json_int_t) h->max);
}

static json_t *run_json(const SimRun *run) {
        const SimOutcome *o = &run->outcome;
        json_t *changes = json_array(), *causes = json_object();
        char name[24];

        for (size_t i = 0; i < run->n_changes; i++)
                (void) json_array_append_new(changes, change_json(&run->changes[i]));
        for (unsigned i = 0; i < _LAW_CAUSE_MAX; i++)
                if (o->n_causes[i] > 0)
                        (void) json_object_set_new(causes, law_cause_to_string(i), json_integer((json_int_t) o->n_causes[i]));
        return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o}",
                         "law", sim_contender_to_string(run->contender, name),
                         "allocated_usec", (json_int_t) sim_allocated_usec(o), "quota_time_usec", (json_int_t) o->quota_usec, "burst_usec", (json_int_t) o->burst_usec,
                         "granted_by_writes_usec", (json_int_t) o->granted_usec, "used_usec", (json_int_t) o->used_usec,
                         "nr_periods", (json_int_t) o->nr_periods, "nr_throttled", (json_int_t) o->nr_throttled, "throttled_usec", (json_int_t) o->throttled_usec,
                         "some_usec", (json_int_t) o->some_usec, "full_usec", (json_int_t) o->full_usec,
                         "latency_usec", percentiles_json(&o->latency), "reaction_usec", percentiles_json(&o->reaction),
                         "n_requests", (json_int_t) o->n_requests, "n_unfinished", (json_int_t) o->n_unfinished,
                         "n_changes", (json_int_t) o->n_changes, "n_writes", (json_int_t) o->n_writes, "causes", causes, "changes", changes);
}

ExitCode simulation_print_json(const Client *c, const Simulation *s, const SimRun *runs, size_t n) {
        json_t *laws = json_array(), *all;
        ExitCode code = CODE_FAILURE;

        for (size_t i = 0; i < n; i++)
                (void) json_array_append_new(laws, run_json(&runs[i]));
        all = json_pack("{s:s?, s:s?, s:I, s:I, s:i, s:o}", "workload", s->workload ? s->workload->name : NULL, "trace", s->workload ? NULL : s->trace.group ?: "",
                        "seed", (json_int_t) s->host.seed, "duration_usec", (json_int_t) s->host.duration_usec, "n_cpus", (int) s->host.n_cpus, "laws", laws);
        if (!all)
                complain("out of memory");
        else
                code = json_print(c, all);
        json_decref(all);
        return code;
}
