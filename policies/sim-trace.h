/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Traces: what a group used, as the daemon saw it on a live host, kept so that a law can be tried on it. One JSON object a line: first a
 * header, then a sample each, so that a recording that was cut short is still a trace.
 *
 * {"cpuclass_trace":1, "group":"...", "n_cpus":8, "recorded_at":"..."}
 * {"t_usec":100000, "window_usec":100000, "usage_usec":41000, "nr_periods":1, "nr_throttled":0, "throttled_usec":0,
 *  "quota_usec":50000, "period_usec":100000, "burst_usec":0}
 *
 * "quota_usec" is "max" where there was no limit. t_usec is the end of the window, from the start of the recording. */

#include <jansson.h>

#include "policies/diag.h"
#include "policies/sim.h"

#define SIM_TRACE_VERSION 1

typedef struct SimTraceSample {
        uint64_t at_usec, window_usec;
        uint64_t usage_usec;
        uint64_t nr_periods, nr_throttled, throttled_usec;
        Bandwidth live;
} SimTraceSample;

typedef struct SimTrace {
        char *group;                   /* as it was called; NULL unknown */
        uint32_t n_cpus;
        SimTraceSample *samples;
        size_t n_samples, capacity;
} SimTrace;

/* Reads a trace. file is its name for the diagnoses. 0, -EINVAL with at least one diagnosis, -ENOMEM; *ret is untouched on failure. */
int sim_trace_parse(const char *file, const char *text, size_t length, SimTrace *ret, DiagList *list);
void sim_trace_clear(SimTrace *t);

/* The lines of a trace, new references; NULL without memory. */
json_t *sim_trace_header(const char *group, uint32_t n_cpus, const char *recorded_at);
json_t *sim_trace_sample_to_json(const SimTraceSample *s);

/* Length of the recording, and the share of samples in which the group was throttled: there it wanted more than the trace can say. */
uint64_t sim_trace_duration_usec(const SimTrace *t);
uint32_t sim_trace_throttled_permyriad(const SimTrace *t);

/* The requests that would have used what was used: each sample's CPU time in pieces of work_usec, spread over its window by the seed. The trace must
 * outlive the source. Free with sim_source_free(). NULL without memory. */
SimSource *sim_trace_source_new(const SimTrace *t, uint64_t work_usec, uint64_t seed);
