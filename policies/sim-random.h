/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Random numbers of the simulator: a 64-bit state, the same sequence for the same seed on every machine (splitmix64, public domain
 * arithmetic), and the few distributions that the workloads are made of. */

#include <math.h>

#include "policies/util.h"

typedef struct SimRandom {
        uint64_t state;
} SimRandom;

/* A stream of its own for each purpose, so that one more number drawn here changes nothing there. */
static inline SimRandom sim_random_stream(uint64_t seed, uint64_t stream) {
        return (SimRandom) { seed * UINT64_C(0x9e3779b97f4a7c15) + stream * UINT64_C(0xd1342543de82ef95) + 1 };
}

static inline uint64_t sim_random_next(SimRandom *r) {
        uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* In (0, 1]. */
static inline double sim_random_unit(SimRandom *r) {
        return (double) ((sim_random_next(r) >> 11) + 1) * 0x1.0p-53;
}

static inline double sim_random_between(SimRandom *r, double low, double high) {
        return low + (high - low) * sim_random_unit(r);
}

static inline double sim_random_exponential(SimRandom *r, double mean) {
        return -mean * log(sim_random_unit(r));
}

/* Pareto with this least value and shape, cut at most. */
static inline double sim_random_pareto(SimRandom *r, double least, double shape, double most) {
        double v = least * pow(sim_random_unit(r), -1 / shape);

        return v < most ? v : most;
}
