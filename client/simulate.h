/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* What `cpuclassctl simulate` runs and keeps: one simulation, one run of it for each law. */

#include "client/client.h"
#include "policies/sim-compare.h"
#include "policies/sim-trace.h"

/* The demand and the host. Either a workload or a trace. */
typedef struct Simulation {
        const SimWorkload *workload;   /* NULL: the trace */
        SimTrace trace;
        uint64_t work_usec;            /* CPU time of a request that a trace is cut into */
        bool has_class;                /* law holds what a class of a policy says; else the workload's own numbers */
        LawConfig law;
        const char *class_name;
        uint64_t base_usec;            /* the owner's quota per 100 ms; 0: the workload's or the trace's own */
        SimSetup host;                 /* CPUs, times, seed; no groups */
} Simulation;

#define SIM_COLUMNS 1000               /* of a plot */

typedef struct SimColumn {
        uint64_t used_usec, window_usec;
        Bandwidth highest;             /* largest quota in force */
        uint64_t nr_throttled;
} SimColumn;

typedef struct SimChange {
        uint64_t at_usec;
        Bandwidth before;
        LawDecision decision;
} SimChange;

typedef struct SimRun {
        SimContender contender;
        SimOutcome outcome;
        SimColumn *columns;            /* SIM_COLUMNS of them */
        SimChange *changes;
        size_t n_changes, capacity;
        bool out_of_memory;
        uint64_t duration_usec;
} SimRun;

/* Runs one law. 0 or negative errno; clear with simulation_run_clear(). */
int simulation_run(const Simulation *s, SimContender c, SimRun *ret);
void simulation_run_clear(SimRun *run);

/* ---- simulate-print.c ---- */
ExitCode simulation_print(const Client *c, const Simulation *s, const SimRun *runs, size_t n);
ExitCode simulation_print_json(const Client *c, const Simulation *s, const SimRun *runs, size_t n);

/* ---- simulate-plot.c ---- */
/* Writes an SVG of use, quota and throttling over time, a panel a law. 0 or negative errno. */
int simulation_plot(const char *path, const Simulation *s, const SimRun *runs, size_t n);
/* Writes an SVG of frontiers: allocation against p99. */
int frontier_plot(const char *path, const SimWorkload *w, const SimContender *laws, const SimFrontier *frontiers, size_t n);

/* ---- simulate-compare.c ---- */
/* Prints the frontier of each law on a workload. plot may be NULL. */
ExitCode simulate_frontiers(const Client *c, const SimWorkload *w, const SimContender *laws, size_t n, SimSeeds seeds, uint64_t duration_usec, const char *plot);
/* Prints the table of ratios of a law against the others over a workload, or over all where w is NULL. */
ExitCode simulate_outcome(const Client *c, const SimWorkload *w, SimContender law, uint32_t dial, SimSeeds seeds, uint64_t duration_usec);
