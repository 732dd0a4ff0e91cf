/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures of a simulation as SVG, with no library: a panel for each law over time, or frontiers of allocation against p99. */

#include <math.h>

#include "client/simulate.h"

#define WIDTH 1100
#define LEFT 70
#define RIGHT 20
#define PANEL 150
#define GAP 46

static const char *const colours[] = { "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f" };

static void svg_begin(FILE *f, unsigned height) {
        (void) fprintf(f,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" width=\"%u\" height=\"%u\" font-family=\"sans-serif\" font-size=\"12\">\n"
                       "<rect width=\"%u\" height=\"%u\" fill=\"white\"/>\n", WIDTH, height, WIDTH, height, WIDTH, height);
}

/* A file that is whole or not there: written beside and renamed. */
typedef struct Output {
        char *path, *temporary;
        FILE *file;
} Output;

static int output_open(Output *o, const char *path) {
        *o = (Output) { .path = strdup(path) };
        if (!o->path || asprintf(&o->temporary, "%s.new", path) < 0) {
                o->temporary = NULL;
                return -ENOMEM;
        }
        o->file = fopen(o->temporary, "we");
        return o->file ? 0 : -errno;
}

static int output_close(Output *o, int r) {
        if (o->file) {
                bool failed = ferror(o->file);

                if ((fclose(o->file) != 0 || failed) && r >= 0)
                        r = -EIO;
                if (r >= 0 && rename(o->temporary, o->path) < 0)
                        r = -errno;
                if (r < 0)
                        (void) unlink(o->temporary);
        }
        free(o->path);
        free(o->temporary);
        return r;
}

/* A round number of CPUs above the highest value, for the axis. */
static double axis_top(double highest) {
        double step = pow(10, floor(log10(MAX_OF(highest, 1e-3))));

        for (unsigned i = 0; i < 3; i++) {
                static const double factors[] = { 1, 2, 5 };

                if (highest <= step * factors[i])
                        return step * factors[i];
        }
        return step * 10;
}

static double quota_cpus(const Bandwidth *b) {
        return b->period_usec == 0 ? 0 : (double) b->quota_usec / (double) b->period_usec;
}

static double used_cpus(const SimColumn *c) {
        return c->window_usec == 0 ? 0 : (double) c->used_usec / (double) c->window_usec;
}

static void panel(FILE *f, const SimRun *run, unsigned top, double most) {
        double sx = (double) (WIDTH - LEFT - RIGHT) / SIM_COLUMNS, sy = PANEL / most;
        const SimOutcome *o = &run->outcome;
        char name[24];

        (void) fprintf(f, "<text x=\"%u\" y=\"%u\" font-weight=\"bold\">%s</text>\n", LEFT, top - 8, sim_contender_to_string(run->contender, name));
        (void) fprintf(f, "<text x=\"%u\" y=\"%u\" text-anchor=\"end\">allocated %.2f CPUs, used %.2f, throttled in %.1f %% of periods, p50 %.1f ms, p99 %.1f ms, %lu changes</text>\n",
                       WIDTH - RIGHT, top - 8, (double) sim_allocated_usec(o) / (double) run->duration_usec, (double) o->used_usec / (double) run->duration_usec,
                       o->nr_periods ? 100.0 * (double) o->nr_throttled / (double) o->nr_periods : 0.0, (double) sim_histogram_percentile(&o->latency, 5000) / 1e3,
                       (double) sim_histogram_percentile(&o->latency, 9900) / 1e3, (unsigned long) o->n_changes);
        for (unsigned i = 0; i <= 2; i++) {
                double y = top + PANEL - PANEL * i / 2.0;

                (void) fprintf(f, "<line x1=\"%u\" x2=\"%u\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%u\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                               LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, most * i / 2);
        }

        (void) fprintf(f, "<path fill=\"#9ecae1\" stroke=\"none\" d=\"M%u %u", LEFT, top + PANEL);
        for (unsigned i = 0; i < SIM_COLUMNS; i++)
                (void) fprintf(f, "L%.1f %.1f", LEFT + i * sx, top + PANEL - used_cpus(&run->columns[i]) * sy);
        (void) fprintf(f, "L%u %uZ\"/>\n<path fill=\"none\" stroke=\"#08519c\" stroke-width=\"1.3\" d=\"", WIDTH - RIGHT, top + PANEL);
        for (unsigned i = 0, n = 0; i < SIM_COLUMNS; i++)
                if (run->columns[i].window_usec > 0)
                        (void) fprintf(f, "%c%.1f %.1f", n++ == 0 ? 'M' : 'L', LEFT + i * sx, top + PANEL - MIN_OF(quota_cpus(&run->columns[i].highest), most) * sy);
        (void) fprintf(f, "\"/>\n<path fill=\"none\" stroke=\"#d62728\" stroke-width=\"1.5\" d=\"");
        for (unsigned i = 0; i < SIM_COLUMNS; i++)
                if (run->columns[i].nr_throttled > 0)
                        (void) fprintf(f, "M%.1f %uv6", LEFT + i * sx, top + PANEL + 2);
        (void) fprintf(f, "\"/>\n");
}

int simulation_plot(const char *path, const Simulation *s, const SimRun *runs, size_t n) {
        unsigned height = 40 + (unsigned) n * (PANEL + GAP) + 30;
        double highest = 0.01;
        Output o;
        int r = output_open(&o, path);

        if (r < 0)
                return output_close(&o, r);
        for (size_t k = 0; k < n; k++)
                for (unsigned i = 0; i < SIM_COLUMNS; i++)
                        highest = MAX_OF(highest, MAX_OF(used_cpus(&runs[k].columns[i]), quota_cpus(&runs[k].columns[i].highest)));
        svg_begin(o.file, height);
        (void) fprintf(o.file, "<text x=\"%u\" y=\"20\" font-size=\"14\">%s, seed %lu, %.0f s: CPUs used (area), quota (line), throttled (red marks below)</text>\n", LEFT,
                       s->workload ? s->workload->name : "trace", (unsigned long) s->host.seed, (double) s->host.duration_usec / 1e6);
        for (size_t k = 0; k < n; k++)
                panel(o.file, &runs[k], 60 + (unsigned) k * (PANEL + GAP), axis_top(highest));
        for (unsigned i = 0; i <= 10; i++)
                (void) fprintf(o.file, "<text x=\"%.1f\" y=\"%u\" text-anchor=\"middle\">%g s</text>\n", LEFT + (WIDTH - LEFT - RIGHT) * i / 10.0, height - 16,
                               (double) s->host.duration_usec / 1e7 * i);
        (void) fprintf(o.file, "</svg>\n");
        return output_close(&o, 0);
}

/* ---- frontiers ---- */

typedef struct LogAxis {
        double low, high;      /* logarithms */
        double from, to;       /* on paper */
} LogAxis;

static double place(const LogAxis *a, double v) {
        return a->from + (log10(v) - a->low) / MAX_OF(a->high - a->low, 1e-9) * (a->to - a->from);
}

static void axis_marks(FILE *f, const LogAxis *a, bool horizontal, unsigned height, const char *unit, double scale) {
        static const double factors[] = { 1, 2, 5 };

        for (int e = (int) floor(a->low); e <= (int) ceil(a->high); e++)
                for (unsigned i = 0; i < ELEMENTSOF(factors); i++) {
                        double v = pow(10, e) * factors[i], at;

                        if (log10(v) < a->low || log10(v) > a->high)
                                continue;
                        at = place(a, v);
                        if (horizontal)
                                (void) fprintf(f, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"40\" y2=\"%u\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%u\" text-anchor=\"middle\">%g%s</text>\n",
                                               at, at, height - 50, at, height - 34, v * scale, unit);
                        else
                                (void) fprintf(f, "<line x1=\"%u\" x2=\"%u\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%u\" y=\"%.1f\" text-anchor=\"end\">%g%s</text>\n",
                                               LEFT, WIDTH - 160, at, at, LEFT - 6, at + 4, v * scale, unit);
                }
}

int frontier_plot(const char *path, const SimWorkload *w, const SimContender *laws, const SimFrontier *frontiers, size_t n) {
        const unsigned height = 620;
        LogAxis x = { INFINITY, -INFINITY, LEFT, WIDTH - 160 }, y = { INFINITY, -INFINITY, height - 50, 40 };
        Output o;
        int r = output_open(&o, path);

        if (r < 0)
                return output_close(&o, r);
        for (size_t k = 0; k < n; k++)
                for (size_t i = 0; i < frontiers[k].n; i++) {
                        const SimScore *s = &frontiers[k].points[i].score;

                        x.low = MIN_OF(x.low, log10(s->allocated_cpus) - 0.02);
                        x.high = MAX_OF(x.high, log10(s->allocated_cpus) + 0.02);
                        y.low = MIN_OF(y.low, log10(s->p99_usec) - 0.05);
                        y.high = MAX_OF(y.high, log10(s->p99_usec) + 0.05);
                }
        svg_begin(o.file, height);
        (void) fprintf(o.file, "<text x=\"%u\" y=\"20\" font-size=\"14\">%s: allocated CPUs against p99, each law over its dial; lower left is better</text>\n", LEFT, w->name);
        axis_marks(o.file, &x, true, height, "", 1);
        axis_marks(o.file, &y, false, height, " ms", 1e-3);
        for (size_t k = 0; k < n; k++) {
                const char *colour = colours[k % ELEMENTSOF(colours)];
                char name[24];

                (void) fprintf(o.file, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\" d=\"", colour);
                for (size_t i = 0; i < frontiers[k].n; i++)
                        (void) fprintf(o.file, "%c%.1f %.1f", i == 0 ? 'M' : 'L', place(&x, frontiers[k].points[i].score.allocated_cpus),
                                       place(&y, frontiers[k].points[i].score.p99_usec));
                (void) fprintf(o.file, "\"/>\n");
                for (size_t i = 0; i < frontiers[k].n; i++)
                        (void) fprintf(o.file, "<circle r=\"3.5\" fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\"><title>%s, dial %u</title></circle>\n", colour,
                                       place(&x, frontiers[k].points[i].score.allocated_cpus), place(&y, frontiers[k].points[i].score.p99_usec),
                                       sim_contender_to_string(laws[k], name), frontiers[k].points[i].dial);
                (void) fprintf(o.file, "<text x=\"%u\" y=\"%zu\" fill=\"%s\">%s</text>\n", WIDTH - 150, 60 + k * 18, colour, sim_contender_to_string(laws[k], name));
        }
        (void) fprintf(o.file, "</svg>\n");
        return output_close(&o, 0);
}
