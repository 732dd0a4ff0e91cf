/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values below 64 have a bucket each; above, the leading bit chooses a row and the next six bits the step in it. */

#include <inttypes.h>

#include "tests/vm/workloads/latency.h"

static unsigned bucket_of(uint64_t usec) {
        unsigned shift, row;

        if (usec < LATENCY_STEPS)
                return (unsigned) usec;
        shift = 63U - (unsigned) __builtin_clzll(usec) - 6U;
        row = shift + 1;
        if (row >= LATENCY_DOUBLINGS)
                return LATENCY_DOUBLINGS * LATENCY_STEPS - 1;
        return row * LATENCY_STEPS + (unsigned) ((usec >> shift) & (LATENCY_STEPS - 1));
}

/* The greatest value that falls into a bucket. */
static uint64_t bucket_end(unsigned bucket) {
        unsigned row = bucket / LATENCY_STEPS, step = bucket % LATENCY_STEPS;

        if (row == 0)
                return step;
        return ((UINT64_C(1) * LATENCY_STEPS + step + 1) << (row - 1)) - 1;
}

void latency_add(Latency *l, uint64_t usec) {
        l->count++;
        l->sum_usec += usec;
        if (usec > l->max_usec)
                l->max_usec = usec;
        l->buckets[bucket_of(usec)]++;
}

uint64_t latency_at(const Latency *l, unsigned permille) {
        uint64_t seen = 0, wanted = (l->count * permille + 999) / 1000;

        if (l->count == 0)
                return 0;
        if (wanted == 0)
                wanted = 1;
        for (unsigned i = 0; i < LATENCY_DOUBLINGS * LATENCY_STEPS; i++) {
                seen += l->buckets[i];
                if (seen >= wanted && permille < 1000)
                        return bucket_end(i) < l->max_usec ? bucket_end(i) : l->max_usec;
        }
        return l->max_usec;
}

void latency_print(const Latency *l, FILE *out) {
        fprintf(out,
                "{\"count\":%" PRIu64 ",\"mean_usec\":%" PRIu64 ",\"p50_usec\":%" PRIu64 ",\"p90_usec\":%" PRIu64 ",\"p99_usec\":%" PRIu64
                ",\"p999_usec\":%" PRIu64 ",\"max_usec\":%" PRIu64 "}",
                l->count, l->count > 0 ? l->sum_usec / l->count : 0, latency_at(l, 500), latency_at(l, 900), latency_at(l, 990),
                latency_at(l, 999), l->max_usec);
}
