/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Counts of values of any size with a relative error below half a percent: exact up to 255, then 256 steps to each power of two. */

#include "policies/util.h"

typedef struct SimHistogram {
        uint64_t *counts;              /* NULL: empty */
        uint64_t n;
        uint64_t max;
        unsigned __int128 sum;
} SimHistogram;

int sim_histogram_init(SimHistogram *h);
void sim_histogram_clear(SimHistogram *h);
void sim_histogram_add(SimHistogram *h, uint64_t value);
/* Adds all of another. */
void sim_histogram_merge(SimHistogram *h, const SimHistogram *other);
/* Least value that this share (permyriad) of all do not exceed; 0 when empty. */
uint64_t sim_histogram_percentile(const SimHistogram *h, uint32_t permyriad);
uint64_t sim_histogram_mean(const SimHistogram *h);
