/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One run of a simulation: sets the group up for a law, and keeps what a table, a plot and a list of decisions need. */

#include "client/simulate.h"

static void observe(const SimPoint *p, void *userdata) {
        SimRun *run = userdata;
        SimColumn *c;

        if (p->group != 0)
                return;
        c = &run->columns[MIN_OF((p->now_usec - 1) * SIM_COLUMNS / run->duration_usec, UINT64_C(SIM_COLUMNS - 1))];
        c->used_usec += p->sample->usage_usec;
        c->window_usec += p->sample->window_usec;
        c->nr_throttled += p->sample->nr_throttled;
        if (p->sample->live.quota_usec != QUOTA_UNLIMITED && p->sample->live.quota_usec >= c->highest.quota_usec)
                c->highest = p->sample->live;

        if (!p->decision->changed && !p->decision->latency_nice_changed)
                return;
        if (GROW_ARRAY(run->changes, run->n_changes, run->capacity) < 0) {
                run->out_of_memory = true;
                return;
        }
        run->changes[run->n_changes++] = (SimChange) { p->now_usec, p->sample->live, *p->decision };
}

/* The group of a trace: as many threads as the host can run at once and a few that wait. */
static int setup_trace(const Simulation *s, SimSetup *setup) {
        SimGroupSetup *g = &setup->groups[0];

        *g = (SimGroupSetup) { .name = "trace", .n_workers = setup->n_cpus * 2, .law = s->law };
        g->source = sim_trace_source_new(&s->trace, s->work_usec, setup->seed);
        if (!g->source)
                return -ENOMEM;
        setup->n_groups = 1;
        return 0;
}

int simulation_run(const Simulation *s, SimContender c, SimRun *ret) {
        SimRun run = { .contender = c, .duration_usec = s->host.duration_usec };
        SimOutcome outcomes[SIM_GROUPS_MAX] = {};
        SimSetup setup = s->host;
        LawConfig law = s->law;
        int r;

        law.law = c.law;
        if (c.burst)
                law.burst = (Amount) { .kind = AMOUNT_FULL };
        else if (!s->has_class)
                law.burst = (Amount) {};

        if (s->workload) {
                uint32_t percent = s->base_usec == 0 ? 100 : (uint32_t) MIN_OF(s->base_usec * 100 / s->workload->base_usec, UINT64_C(1000000));

                r = sim_workload_setup(s->workload, &law, percent, setup.seed, &setup);
        } else
                r = setup_trace(s, &setup);
        if (r >= 0 && (s->has_class || !s->workload))
                setup.groups[0].law = law;

        run.columns = calloc(SIM_COLUMNS, sizeof(*run.columns));
        if (!run.columns)
                r = -ENOMEM;
        if (r >= 0) {
                setup.observe = observe;
                setup.userdata = &run;
                r = sim_run(&setup, outcomes);
        }
        if (r >= 0) {
                run.outcome = outcomes[0];
                for (uint32_t i = 1; i < setup.n_groups; i++)
                        sim_outcome_clear(&outcomes[i]);
                if (run.out_of_memory)
                        r = -ENOMEM;
        }
        sim_setup_clear(&setup);
        if (r < 0) {
                simulation_run_clear(&run);
                return r;
        }
        *ret = run;
        return 0;
}

void simulation_run_clear(SimRun *run) {
        sim_outcome_clear(&run->outcome);
        free(run->columns);
        free(run->changes);
        *run = (SimRun) {};
}
