/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each workload is a function that emits the requests of one chunk of 100 ms; chunks are sorted and handed out one by one. Rates are
 * requests a second, work is microseconds of CPU. Service times are exponential where nothing else is said. */

#include "policies/sim-random.h"
#include "policies/sim-workload.h"

typedef struct SimChunk {
        SimSource source;              /* first: a source is cast to its chunk */
        const SimWorkload *workload;
        SimRandom random;
        uint64_t start_usec;
        double next_event_usec;        /* of the workload's own series of bursts */
        double rate_scale;             /* background load */
        SimRequest *requests;
        size_t n, size, given;
        bool failed;
} SimChunk;

static void emit(SimChunk *c, double at_usec, uint32_t n_parts, double work_usec, bool unmeasured) {
        if (GROW_ARRAY(c->requests, c->n, c->size) < 0) {
                c->failed = true;
                return;
        }
        c->requests[c->n++] = (SimRequest) {
                .arrival_usec = (uint64_t) at_usec,
                .n_parts = n_parts,
                .work_usec = (uint32_t) CLAMP_TO(work_usec, 20.0, 4e6),
                .unmeasured = unmeasured,
        };
}

/* Poisson arrivals over the chunk. */
static void emit_poisson(SimChunk *c, double rate, double mean_work_usec) {
        double t = 0;

        if (rate <= 0)
                return;
        for (;;) {
                t += sim_random_exponential(&c->random, 1e6 / rate);
                if (t >= (double) SIM_CHUNK_USEC)
                        return;
                emit(c, (double) c->start_usec + t, 1, sim_random_exponential(&c->random, mean_work_usec), false);
        }
}

static double seconds(const SimChunk *c) {
        return (double) c->start_usec / 1e6;
}

/* Whether the workload's next burst begins in this chunk; then the one after it is drawn. */
static bool burst_begins(SimChunk *c, double mean_gap_usec, double least_gap_usec, double *ret_usec) {
        if (c->next_event_usec <= 0)
                c->next_event_usec = least_gap_usec + sim_random_exponential(&c->random, mean_gap_usec);
        if (c->next_event_usec >= (double) (c->start_usec + SIM_CHUNK_USEC))
                return false;
        *ret_usec = c->next_event_usec;
        c->next_event_usec += least_gap_usec + sim_random_exponential(&c->random, mean_gap_usec);
        return true;
}

static void fill_steady(SimChunk *c) {
        emit_poisson(c, 150, 5000);
}

static void fill_diurnal(SimChunk *c) {
        emit_poisson(c, 200 * (1 + 0.8 * sin(2 * M_PI * seconds(c) / 300)), 5000);
}

static void fill_bursts(SimChunk *c) {
        double at;

        emit_poisson(c, 40, 5000);
        while (burst_begins(c, 3e6, 0, &at))
                for (unsigned i = 0; i < 60; i++)
                        emit(c, at + sim_random_between(&c->random, 0, 150e3), 1, sim_random_exponential(&c->random, 5000), false);
}

static void fill_square(SimChunk *c) {
        emit_poisson(c, fmod(seconds(c), 20) < 10 ? 300 : 30, 5000);
}

static void fill_startup(SimChunk *c) {
        emit_poisson(c, fmod(seconds(c), 120) < 8 ? 600 : 10, 5000);
}

static void fill_fan_out(SimChunk *c) {
        double t = 0;

        for (;;) {
                t += sim_random_exponential(&c->random, 1e6 / 8);
                if (t >= (double) SIM_CHUNK_USEC)
                        return;
                emit(c, (double) c->start_usec + t, 24, sim_random_between(&c->random, 1000, 3000), false);
        }
}

static void fill_sidecar(SimChunk *c) {
        emit_poisson(c, 60, 800);
}

static void fill_cron(SimChunk *c) {
        double at;

        emit_poisson(c, 50, 4000);
        while (burst_begins(c, 2e6, 8e6, &at))
                emit(c, at, 1, sim_random_between(&c->random, 500e3, 1500e3), true);
}

static void fill_gc(SimChunk *c) {
        double at;

        emit_poisson(c, 100, 4000);
        while (burst_begins(c, 4e6, 1e6, &at))
                emit(c, at, 4, sim_random_between(&c->random, 40e3, 80e3), true);
}

static void fill_heavy_tail(SimChunk *c) {
        double at;

        emit_poisson(c, 20, 4000);
        while (burst_begins(c, 2e6, 0, &at))
                for (unsigned n = (unsigned) sim_random_pareto(&c->random, 10, 1.5, 400); n > 0; n--)
                        emit(c, at, 1, sim_random_exponential(&c->random, 4000), false);
}

static void fill_tiny(SimChunk *c) {
        emit_poisson(c, 20, 500);
}

static void fill_sawtooth(SimChunk *c) {
        emit_poisson(c, 40 + 360 * fmod(seconds(c), 20) / 20, 4000);
}

static void fill_background(SimChunk *c) {
        emit_poisson(c, c->rate_scale, 5000);
}

static const SimWorkload workloads[] = {
        { "steady", "150 requests a second, 0.75 CPUs", false, 16, 150000, .fill = fill_steady },
        { "diurnal", "a day of five minutes, 0.2 to 1.8 CPUs", false, 16, 200000, .fill = fill_diurnal },
        { "bursts", "0.2 CPUs, and every 3 s on average 60 requests at once", false, 16, 60000, .fill = fill_bursts },
        { "square", "10 s of 1.5 CPUs, 10 s of 0.15", false, 16, 160000, .fill = fill_square },
        { "startup", "8 s of 3 CPUs, then nearly idle, every two minutes", false, 16, 50000, .fill = fill_startup },
        { "fan-out", "8 requests a second, each on 24 threads at once", false, 32, 80000, .fill = fill_fan_out },
        { "beside-hog", "bursts, next to a batch group with 8 threads", false, 16, 60000, .n_hogs = 8, .hog_base_usec = 400000, .fill = fill_bursts },
        { "sidecar", "60 requests of 0.8 ms a second, 0.05 CPUs", false, 4, 10000, .fill = fill_sidecar },
        { "cron", "0.2 CPUs, and every 10 s a job of one second", false, 16, 80000, .fill = fill_cron },

        { "gc", "0.4 CPUs, and every 5 s a collection on 4 threads", true, 16, 80000, .fill = fill_gc },
        { "heavy-tail", "batches of 10 to 400 requests, sizes with a heavy tail", true, 16, 40000, .fill = fill_heavy_tail },
        { "tiny", "20 requests of half a millisecond a second", true, 4, 2000, .fill = fill_tiny },
        { "sawtooth", "from 0.16 to 1.6 CPUs in 20 s, then down at once", true, 16, 180000, .fill = fill_sawtooth },
        { "full-host", "bursts on a host that others use to 85 %", true, 16, 60000, .background_permyriad = 8500, .fill = fill_bursts },
};

/* What other groups do on a host: not for choosing, only beside a workload. */
static const SimWorkload background = { "background", "other groups", false, 64, .fill = fill_background };

size_t sim_workload_count(void) {
        return ELEMENTSOF(workloads);
}

const SimWorkload *sim_workload_at(size_t index) {
        return index < ELEMENTSOF(workloads) ? &workloads[index] : NULL;
}

const SimWorkload *sim_workload_find(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(workloads); i++)
                if (streq(workloads[i].name, name))
                        return &workloads[i];
        return NULL;
}

static int by_arrival(const void *a, const void *b) {
        const SimRequest *x = a, *y = b;

        return x->arrival_usec < y->arrival_usec ? -1 : x->arrival_usec > y->arrival_usec;
}

/* A burst may reach into the next chunks: what is too early for this one waits. */
static bool chunk_next(SimSource *source, SimRequest *ret) {
        SimChunk *c = (SimChunk *) source;

        while (c->given == c->n || c->requests[c->given].arrival_usec >= c->start_usec) {
                size_t left = c->n - c->given;

                if (c->failed)
                        return false;
                memmove(c->requests, c->requests + c->given, left * sizeof(*c->requests));
                c->n = left;
                c->given = 0;
                c->workload->fill(c);
                if (c->n > left)
                        qsort(c->requests, c->n, sizeof(*c->requests), by_arrival);
                c->start_usec += SIM_CHUNK_USEC;
        }
        *ret = c->requests[c->given++];
        return true;
}

static void chunk_free(SimSource *s) {
        free(((SimChunk *) s)->requests);
        free(s);
}

SimSource *sim_workload_source_new(const SimWorkload *w, uint64_t seed) {
        SimChunk *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->source = (SimSource) { chunk_next, chunk_free };
        c->workload = w;
        c->random = sim_random_stream(seed, (uint64_t) (w - workloads) + 1);
        c->requests = calloc(64, sizeof(*c->requests));
        c->size = 64;
        if (!c->requests) {
                free(c);
                return NULL;
        }
        return &c->source;
}

int sim_workload_setup(const SimWorkload *w, const LawConfig *law, uint32_t scale_percent, uint64_t seed, SimSetup *setup) {
        SimGroupSetup *g = &setup->groups[setup->n_groups];

        *g = (SimGroupSetup) { .name = w->name, .n_workers = w->n_workers, .law = *law };
        g->law.base = (Bandwidth) { MAX_OF(w->base_usec * scale_percent / 100, QUOTA_MIN_USEC), PERIOD_DEFAULT_USEC, 0 };
        g->law.floor_usec = QUOTA_MIN_USEC;
        g->law.ceiling_usec = (uint64_t) setup->n_cpus * PERIOD_DEFAULT_USEC;
        g->law.n_cpus = setup->n_cpus;
        g->law.may_raise = true;
        g->law.priority = 800;
        g->law.has_latency_nice = true;
        g->source = sim_workload_source_new(w, seed);
        if (!g->source)
                return -ENOMEM;
        setup->n_groups++;

        if (w->n_hogs > 0) {
                g = &setup->groups[setup->n_groups++];
                *g = (SimGroupSetup) { .name = "batch", .n_hogs = w->n_hogs, .law = *law };
                g->law.base = (Bandwidth) { w->hog_base_usec, PERIOD_DEFAULT_USEC, 0 };
                g->law.floor_usec = w->hog_base_usec / 4;
                g->law.ceiling_usec = w->hog_base_usec;
                g->law.burst = (Amount) {};
                g->law.priority = 200;
                g->law.n_cpus = setup->n_cpus;
        }
        if (w->background_permyriad > 0) {
                SimSource *s = sim_workload_source_new(&background, seed + 1000003);

                if (!s)
                        return -ENOMEM;
                ((SimChunk *) s)->rate_scale = setup->n_cpus * w->background_permyriad / 10000.0 * 1e6 / 5000;
                g = &setup->groups[setup->n_groups++];
                *g = (SimGroupSetup) { .name = "background", .source = s, .n_workers = background.n_workers };
                g->law.base = (Bandwidth) { QUOTA_UNLIMITED, PERIOD_DEFAULT_USEC, 0 };
        }
        return 0;
}
