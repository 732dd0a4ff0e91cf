/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* A histogram of latencies in microseconds with a bounded relative error: 64 steps to each power of two, so at most 1.6 %. */

#include <stdint.h>
#include <stdio.h>

#define LATENCY_STEPS 64U
#define LATENCY_DOUBLINGS 34U /* up to about 19 hours */

typedef struct Latency {
        uint64_t count, sum_usec, max_usec;
        uint32_t buckets[LATENCY_DOUBLINGS * LATENCY_STEPS];
} Latency;

void latency_add(Latency *l, uint64_t usec);
/* The latency that this share of all samples does not exceed (permille of 1000: 990 is p99); 0 when there are none. The true maximum for 1000. */
uint64_t latency_at(const Latency *l, unsigned permille);
/* Writes {"count":..,"mean_usec":..,"p50_usec":..,"p90_usec":..,"p99_usec":..,"p999_usec":..,"max_usec":..}. */
void latency_print(const Latency *l, FILE *out);
