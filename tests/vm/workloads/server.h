/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* An open-loop request server in one process: requests arrive at times that are fixed in advance, whatever becomes of the earlier ones, so a server
 * that is held up gets a queue and its latencies say so (no coordinated omission). Latency is completion minus scheduled arrival. */

#include "tests/vm/workloads/threads.h"

typedef enum ArrivalPattern { ARRIVAL_UNIFORM = 0, ARRIVAL_POISSON } ArrivalPattern;

typedef struct ServerOptions {
        double rate;              /* requests a second while arrivals are on */
        ArrivalPattern pattern;
        unsigned batch;           /* this many arrive at the same time (the rate counts requests) */
        uint64_t on_usec, off_usec; /* arrivals only during on_usec of each on + off; off 0: always */
        uint64_t cpu_usec;        /* CPU time of a request */
        bool exponential;         /* its distribution: fixed, or exponential with this mean */
        unsigned workers;
        uint64_t seed;
        uint64_t warmup_usec, duration_usec; /* duration 0: until a signal */
        uint64_t report_usec;     /* a report each so often; 0: none but on signals and at the end */
        const char *stats_path;   /* where reports go (replaced atomically); NULL: standard output, one line each */
} ServerOptions;

/* Runs until its duration is over or SIGTERM/SIGINT comes. SIGUSR1: report now. SIGUSR2: begin a new measurement ("since_mark").
 * A report is one JSON object: {"at_usec", "window":{"span_usec","latency":{..},"wake":{..}}, "since_mark":{..}, "backlog_usec", "cpu_usec"}. wake: from the arrival to
 * the first instruction of the worker, for requests whose worker slept. Requests that wait or are in hand count with their time so far; backlog_usec is that of the
 * oldest. The final report goes to standard output too. Returns an exit code. */
int server_run(const ServerOptions *options, const Scheduling *scheduling);
