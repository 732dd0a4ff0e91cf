/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Workloads for the simulator: services whose requests arrive at times that are fixed by a seed alone. Some were used to tune the
 * laws; the held-out ones were not, and are for reporting only. */

#include "policies/sim.h"

struct SimChunk;

typedef struct SimWorkload {
        const char *name;
        const char *description;
        bool held_out;
        uint32_t n_workers;
        uint64_t base_usec;            /* quota per 100 ms that an owner would have set: about twice the mean use */
        uint32_t n_hogs;               /* threads of a batch group beside it */
        uint64_t hog_base_usec;        /* its quota */
        uint32_t background_permyriad; /* of the host that other, unlimited groups use */
        /* Emits the requests of [start, start + SIM_CHUNK_USEC) in any order. */
        void (*fill)(struct SimChunk *c);
} SimWorkload;

#define SIM_CHUNK_USEC (100 * USEC_PER_MSEC)

size_t sim_workload_count(void);
const SimWorkload *sim_workload_at(size_t index);
const SimWorkload *sim_workload_find(const char *name);

/* A source of this workload's requests for a seed. Free with sim_source_free(). NULL without memory. */
SimSource *sim_workload_source_new(const SimWorkload *w, uint64_t seed);

/* Fills a setup for a workload: group 0 is the service under this law, its base scaled by scale_percent (100: the workload's own), floor the least the kernel
 * takes, ceiling the whole host; then a batch hog and a background where the workload has them. Clear it with sim_setup_clear(). */
int sim_workload_setup(const SimWorkload *w, const LawConfig *law, uint32_t scale_percent, uint64_t seed, SimSetup *setup);
