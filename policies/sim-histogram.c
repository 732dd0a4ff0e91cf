/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A log-linear histogram: the top nine bits of a value choose its counter. */

#include "policies/sim-histogram.h"

#define STEPS 256
#define N_COUNTS (STEPS * (64 - 8 + 1))

int sim_histogram_init(SimHistogram *h) {
        *h = (SimHistogram) { .counts = calloc(N_COUNTS, sizeof(uint64_t)) };
        return h->counts ? 0 : -ENOMEM;
}

void sim_histogram_clear(SimHistogram *h) {
        free(h->counts);
        *h = (SimHistogram) {};
}

static size_t index_of(uint64_t v) {
        unsigned shift;

        if (v < STEPS)
                return v;
        shift = 63 - (unsigned) __builtin_clzll(v) - 8;
        return (size_t) (shift + 1) * STEPS + (v >> shift) - STEPS;
}

/* The middle of what a counter stands for. */
static uint64_t value_of(size_t i) {
        unsigned shift;

        if (i < STEPS)
                return i;
        shift = (unsigned) (i / STEPS) - 1;
        return ((i % STEPS + STEPS) << shift) + ((UINT64_C(1) << shift) >> 1);
}

void sim_histogram_add(SimHistogram *h, uint64_t value) {
        h->counts[index_of(value)]++;
        h->n++;
        h->sum += value;
        h->max = MAX_OF(h->max, value);
}

void sim_histogram_merge(SimHistogram *h, const SimHistogram *other) {
        if (!other->counts)
                return;
        for (size_t i = 0; i < N_COUNTS; i++)
                h->counts[i] += other->counts[i];
        h->n += other->n;
        h->sum += other->sum;
        h->max = MAX_OF(h->max, other->max);
}

uint64_t sim_histogram_percentile(const SimHistogram *h, uint32_t permyriad) {
        uint64_t want, seen = 0;

        if (h->n == 0)
                return 0;
        if (permyriad >= 10000)
                return h->max;
        want = (uint64_t) (((unsigned __int128) h->n * permyriad + 9999) / 10000);
        want = MAX_OF(want, UINT64_C(1));
        for (size_t i = 0; i < N_COUNTS; i++) {
                seen += h->counts[i];
                if (seen >= want)
                        return MIN_OF(value_of(i), h->max);
        }
        return h->max;
}

uint64_t sim_histogram_mean(const SimHistogram *h) {
        return h->n == 0 ? 0 : (uint64_t) (h->sum / h->n);
}
