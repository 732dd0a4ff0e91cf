/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Laws against each other: frontiers over their dials, and the table of ratios that "better" means. */

#include <math.h>

#include "client/http.h"
#include "client/simulate.h"
#include "client/table.h"

static void __attribute__((format(printf, 3, 4))) cell(Table *t, Style style, const char *format, ...) {
        char text[64];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        table_cell(t, text, style);
}

static ExitCode fail(int error) {
        complain("simulate: %s", error == -ENOMEM ? "out of memory" : "this can't be simulated");
        return CODE_FAILURE;
}

/* ---- frontiers ---- */

static json_t *frontier_json(SimContender law, const SimFrontier *f) {
        json_t *points = json_array();
        char name[24];

        for (size_t i = 0; i < f->n; i++) {
                const SimScore *s = &f->points[i].score;

                (void) json_array_append_new(points, json_pack("{s:i, s:f, s:f, s:f, s:f, s:f}", "dial", (int) f->points[i].dial, "allocated_cpus", s->allocated_cpus,
                                                               "used_cpus", s->used_cpus, "p50_usec", s->p50_usec, "p99_usec", s->p99_usec,
                                                               "changes_per_minute", s->changes_per_minute));
        }
        return json_pack("{s:s, s:o}", "law", sim_contender_to_string(law, name), "points", points);
}

static const char *dial_text(LawKind law, uint32_t dial, char buffer[32]) {
        (void) snprintf(buffer, 32, law == LAW_CAPTAIN ? "target %g %%" : law == LAW_ADAPTIVE ? "strictness %g" : "base %g %%",
                        law == LAW_CAPTAIN ? dial / 100.0 : (double) dial);
        return buffer;
}

static ExitCode print_frontiers(const Client *c, const SimWorkload *w, const SimContender *laws, const SimFrontier *frontiers, size_t n, SimSeeds seeds) {
        static const Column columns[] = {
                { "LAW", COLUMN_LEFT }, { "DIAL", COLUMN_LEFT }, { "ALLOCATED", COLUMN_RIGHT }, { "P50", COLUMN_RIGHT }, { "P99", COLUMN_RIGHT },
                { "THROTTLED", COLUMN_RIGHT }, { "CHANGES/MIN", COLUMN_RIGHT },
        };
        Table *t = table_new(c, columns, ELEMENTSOF(columns));
        ExitCode code;

        if (!t)
                return CODE_FAILURE;
        say("%s: %s. Seeds %lu to %lu.\n", w->name, w->description, (unsigned long) seeds.first, (unsigned long) (seeds.first + seeds.n - 1));
        for (size_t k = 0; k < n; k++)
                for (size_t i = 0; i < frontiers[k].n; i++) {
                        const SimScore *s = &frontiers[k].points[i].score;
                        char name[24], dial[32];

                        table_row(t);
                        cell(t, STYLE_BOLD, "%s", sim_contender_to_string(laws[k], name));
                        cell(t, frontiers[k].points[i].dial == sim_default_dial(laws[k].law) ? STYLE_BOLD : STYLE_NONE, "%s",
                             dial_text(laws[k].law, frontiers[k].points[i].dial, dial));
                        cell(t, STYLE_NONE, "%.3f", s->allocated_cpus);
                        cell(t, STYLE_NONE, "%.1fms", s->p50_usec / 1e3);
                        cell(t, STYLE_NONE, "%.1fms", s->p99_usec / 1e3);
                        cell(t, STYLE_NONE, "%.2f%%", 100 * s->throttled_share);
                        cell(t, STYLE_NONE, "%.1f", s->changes_per_minute);
                }
        code = table_print(t, NULL);
        (void) table_free(t);
        return code;
}

ExitCode simulate_frontiers(const Client *c, const SimWorkload *w, const SimContender *laws, size_t n, SimSeeds seeds, uint64_t duration_usec, const char *plot) {
        _cleanup_free_ SimFrontier *frontiers = calloc(n, sizeof(*frontiers));
        ExitCode code;
        int r;

        if (!frontiers)
                return fail(-ENOMEM);
        for (size_t k = 0; k < n; k++) {
                r = sim_frontier(w, laws[k], seeds, duration_usec, &frontiers[k]);
                if (r < 0)
                        return fail(r);
        }
        if (plot) {
                r = frontier_plot(plot, w, laws, frontiers, n);
                if (r < 0) {
                        complain("cannot write %s: %s", plot, strerror(-r));
                        return CODE_FAILURE;
                }
        }
        if (c->json) {
                json_t *all = json_array(), *o;

                for (size_t k = 0; k < n; k++)
                        (void) json_array_append_new(all, frontier_json(laws[k], &frontiers[k]));
                o = json_pack("{s:s, s:I, s:i, s:I, s:o}", "workload", w->name, "first_seed", (json_int_t) seeds.first, "n_seeds", (int) seeds.n,
                              "duration_usec", (json_int_t) duration_usec, "frontiers", all);
                if (!o)
                        return fail(-ENOMEM);
                code = json_print(c, o);
                json_decref(o);
                return code;
        }
        return print_frontiers(c, w, laws, frontiers, n, seeds);
}

/* ---- the outcome table ---- */

/* What a ratio is called in JSON and in the table, and where it is. */
static const struct {
        const char *key, *title;
        size_t offset;
} ratios[] = {
        { "captain_allocation", "CAPTAIN", offsetof(SimVerdict, captain_allocation) },
        { "captain_p99", "P99", offsetof(SimVerdict, captain_p99) },
        { "captain_burst_allocation", "CAPTAIN+BURST", offsetof(SimVerdict, captain_burst_allocation) },
        { "captain_burst_p99", "P99", offsetof(SimVerdict, captain_burst_p99) },
        { "koordlet_allocation_at_equal_p99", "KOORDLET", offsetof(SimVerdict, koordlet_allocation) },
        { "koordlet_burst_allocation_at_equal_p99", "KOORDLET+BURST", offsetof(SimVerdict, koordlet_burst_allocation) },
        { "static_p99_at_equal_allocation", "STATIC P99", offsetof(SimVerdict, static_p99) },
        { "burst_p99_at_equal_allocation", "BURST P99", offsetof(SimVerdict, burst_p99) },
};

static double ratio_of(const SimVerdict *v, size_t i) {
        return *(const double *) ((const char *) v + ratios[i].offset);
}

/* Geometric mean over the workloads that count; a law that never got there counts with what it took at most, in our disfavour. */
static double mean_ratio(const SimVerdict *v, size_t n, size_t i, int held_out) {
        double sum = 0;
        size_t m = 0;

        for (size_t k = 0; k < n; k++)
                if (held_out < 0 || v[k].workload->held_out == (held_out != 0)) {
                        sum += log(fabs(ratio_of(&v[k], i)));
                        m++;
                }
        return m == 0 ? NAN : exp(sum / (double) m);
}

static void print_mean(Table *t, const SimVerdict *v, size_t n, const char *name, int held_out) {
        if (isnan(mean_ratio(v, n, 0, held_out)))
                return;
        table_row(t);
        cell(t, STYLE_BOLD, "%s", name);
        for (unsigned i = 0; i < 3; i++)
                table_cell(t, "", STYLE_NONE);
        for (size_t i = 0; i < ELEMENTSOF(ratios); i++)
                cell(t, STYLE_BOLD, "%.2f", mean_ratio(v, n, i, held_out));
}

static ExitCode print_outcome(const Client *c, const SimVerdict *v, size_t n, SimContender law, SimSeeds seeds) {
        Column columns[4 + ELEMENTSOF(ratios)] = { { "WORKLOAD", COLUMN_LEFT }, { "ALLOCATED", COLUMN_RIGHT }, { "P99", COLUMN_RIGHT }, { "REACTION", COLUMN_RIGHT } };
        Table *t;
        ExitCode code;
        char name[24];

        for (size_t i = 0; i < ELEMENTSOF(ratios); i++)
                columns[4 + i] = (Column) { ratios[i].title, COLUMN_RIGHT };
        t = table_new(c, columns, ELEMENTSOF(columns));
        if (!t)
                return CODE_FAILURE;
        say("%s over seeds %lu to %lu, as ratios: below 1 it is better. Allocation and p99 against captain and captain+burst at a target of 2 %%; allocation at equal\n"
            "p99 against koordlet over all bases (<: it never got there, this is against the most it took); p99 at equal allocation against static and burst.\n",
            sim_contender_to_string(law, name), (unsigned long) seeds.first, (unsigned long) (seeds.first + seeds.n - 1));
        for (size_t k = 0; k < n; k++) {
                table_row(t);
                cell(t, STYLE_BOLD, "%s%s", v[k].workload->name, v[k].workload->held_out ? " *" : "");
                cell(t, STYLE_NONE, "%.3f", v[k].own.allocated_cpus);
                cell(t, STYLE_NONE, "%.1fms", v[k].own.p99_usec / 1e3);
                cell(t, STYLE_NONE, "%.0f/%.0fms", v[k].own.reaction_p50_usec / 1e3, v[k].own.reaction_p99_usec / 1e3);
                for (size_t i = 0; i < ELEMENTSOF(ratios); i++) {
                        double r = ratio_of(&v[k], i);

                        cell(t, fabs(r) > 1.05 ? STYLE_WARN : STYLE_NONE, fabs(r) < 0.1 ? "%s%.3f" : "%s%.2f", r < 0 ? "<" : "", fabs(r));
                }
        }
        print_mean(t, v, n, "tuned", 0);
        print_mean(t, v, n, "held out *", 1);
        print_mean(t, v, n, "all", -1);
        code = table_print(t, NULL);
        (void) table_free(t);
        return code;
}

static ExitCode print_outcome_json(const Client *c, const SimVerdict *v, size_t n, SimContender law, SimSeeds seeds, uint64_t duration_usec) {
        json_t *all = json_array(), *means = json_object(), *o;
        ExitCode code;
        char name[24];

        for (size_t k = 0; k < n; k++) {
                json_t *one = json_pack("{s:s, s:b, s:f, s:f, s:f, s:f, s:f, s:f}", "workload", v[k].workload->name, "held_out", v[k].workload->held_out,
                                        "allocated_cpus", v[k].own.allocated_cpus, "used_cpus", v[k].own.used_cpus, "p99_usec", v[k].own.p99_usec,
                                        "changes_per_minute", v[k].own.changes_per_minute,
                                        "reaction_p50_usec", v[k].own.reaction_p50_usec, "reaction_p99_usec", v[k].own.reaction_p99_usec);

                for (size_t i = 0; one && i < ELEMENTSOF(ratios); i++)
                        (void) json_object_set_new(one, ratios[i].key, json_real(ratio_of(&v[k], i)));
                (void) json_array_append_new(all, one);
        }
        for (size_t i = 0; i < ELEMENTSOF(ratios); i++)
                (void) json_object_set_new(means, ratios[i].key, json_real(mean_ratio(v, n, i, -1)));
        o = json_pack("{s:s, s:I, s:i, s:I, s:o, s:o}", "law", sim_contender_to_string(law, name), "first_seed", (json_int_t) seeds.first, "n_seeds", (int) seeds.n,
                      "duration_usec", (json_int_t) duration_usec, "workloads", all, "geometric_means", means);
        if (!o)
                return fail(-ENOMEM);
        code = json_print(c, o);
        json_decref(o);
        return code;
}

ExitCode simulate_outcome(const Client *c, const SimWorkload *w, SimContender law, uint32_t dial, SimSeeds seeds, uint64_t duration_usec) {
        size_t n = w ? 1 : sim_workload_count();
        _cleanup_free_ SimVerdict *v = calloc(n, sizeof(*v));

        if (!v)
                return fail(-ENOMEM);
        for (size_t k = 0; k < n; k++) {
                int r = sim_verdict(w ? w : sim_workload_at(k), law, dial, seeds, duration_usec, &v[k]);

                if (r < 0)
                        return fail(r);
        }
        return c->json ? print_outcome_json(c, v, n, law, seeds, duration_usec) : print_outcome(c, v, n, law, seeds);
}
