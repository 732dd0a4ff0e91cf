/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* simulate: what a law would have done to a demand, without a daemon and without a kernel. Options become a Simulation; the rest is in
 * simulate-*.c. */

#include <sys/stat.h>

#include "client/duration.h"
#include "client/options.h"
#include "client/policy-files.h"
#include "client/simulate.h"
#include "client/text.h"
#include "client/verbs.h"

const char help_simulate[] =
        "Tries control laws on a demand, with a model of the kernel's bandwidth control.\n\n"
        "  --generate WORKLOAD  a built-in workload; \"list\" shows them\n"
        "  --trace FILE         a recording of \"cpuclassctl record\"\n"
        "  --work DURATION      CPU time of the requests that a trace is cut into (5ms)\n"
        "  --law LAW,LAW...     static burst koordlet captain adaptive; \"+burst\" behind one adds it\n"
        "  --policy FILE        the numbers of a class of this policy (or directory)\n"
        "  --class CLASS        which class\n"
        "  --base DURATION      the owner's quota per 100ms (\"60ms\")\n"
        "  --plot FILE          an SVG of use, quota and throttling, or of the frontiers\n"
        "  --frontier           each law over all settings of its dial\n"
        "  --outcome            the law against the others, as ratios; over all workloads\n"
        "  --requests FILE      writes the requests: arrival, parts, work in us, a line each\n"
        "  --duration DURATION  of the run (10m)\n"
        "  --delay DURATION     from a sample to the write (5ms)\n"
        "  --seed N             the same seed gives the same numbers everywhere (1)\n"
        "  --seeds N            frontier, outcome: over so many seeds (3)\n"
        "  --cpus N             of the host (8)\n"
        "  --json               everything, each decision with its reason\n\n"
        "ALLOCATED is quota over time, burst used, and what each write grants anew.";

#define LAWS_MAX 10
#define DURATION_MOST_USEC (7 * 24 * 3600 * USEC_PER_SEC)

enum { OPTION_GENERATE = 256, OPTION_TRACE, OPTION_LAW, OPTION_POLICY, OPTION_CLASS, OPTION_BASE, OPTION_PLOT, OPTION_FRONTIER, OPTION_OUTCOME,
        OPTION_REQUESTS, OPTION_DURATION, OPTION_SEED, OPTION_SEEDS, OPTION_CPUS, OPTION_DELAY, OPTION_WORK };

typedef struct Wish {
        const char *generate, *trace, *laws, *class_name, *plot, *requests;
        bool frontier, outcome, has_duration;
        uint64_t n_seeds;
        PolicyFiles files;
        bool has_policy;
        SimContender contenders[LAWS_MAX];
        size_t n_contenders;
} Wish;

static ExitCode list_workloads(const Client *c) {
        json_t *all = json_array();

        for (size_t i = 0; i < sim_workload_count(); i++) {
                const SimWorkload *w = sim_workload_at(i);

                if (c->json)
                        (void) json_array_append_new(all, json_pack("{s:s, s:s, s:b}", "name", w->name, "description", w->description, "held_out", w->held_out));
                else
                        say("%-12s %s%s\n", w->name, w->description, w->held_out ? " (not used for tuning)" : "");
        }
        if (c->json)
                (void) json_dumpf(all, stdout, JSON_INDENT(2));
        json_decref(all);
        return CODE_OK;
}

static bool number_option(const Options *o, const char *option, uint64_t least, uint64_t most, uint64_t *ret, ExitCode *ret_code) {
        char *end, why[80];
        unsigned long long v;

        errno = 0;
        v = strtoull(optarg, &end, 10);
        if (errno == 0 && end != optarg && *end == 0 && optarg[0] != '-' && v >= least && v <= most) {
                *ret = v;
                return true;
        }
        (void) snprintf(why, sizeof(why), "not a number from %llu to %llu", (unsigned long long) least, (unsigned long long) most);
        *ret_code = options_wrong(o, option, optarg, why);
        return false;
}

static bool duration_option(const Options *o, const char *option, uint64_t least, uint64_t most, uint64_t *ret, ExitCode *ret_code) {
        char low[32], high[32], why[120];

        if (duration_parse(optarg, ret) == 0 && *ret >= least && *ret <= most)
                return true;
        (void) snprintf(why, sizeof(why), "not a duration from %s to %s", duration_format(least, low, sizeof(low)), duration_format(most, high, sizeof(high)));
        *ret_code = options_wrong(o, option, optarg, why);
        return false;
}

static void print_diags(const DiagList *list) {
        for (size_t i = 0; i < list->n_items; i++) {
                _cleanup_free_ char *text = diag_to_string(&list->items[i]);

                complain("%s", text ? text : "out of memory");
        }
}

static ExitCode read_laws(const Options *o, const char *text, Wish *w) {
        static const char *const known[] = { "static", "burst", "koordlet", "captain", "adaptive" };
        _cleanup_free_ char *copy = strdup(text);
        char *save = NULL;

        if (!copy)
                return CODE_FAILURE;
        for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
                const char *nearest;

                if (w->n_contenders == LAWS_MAX)
                        return options_wrong(o, "--law", text, "too many laws");
                if (sim_contender_from_string(word, &w->contenders[w->n_contenders]) >= 0) {
                        w->n_contenders++;
                        continue;
                }
                nearest = text_suggest(word, known, ELEMENTSOF(known));
                complain("simulate: --law: no law \"%s\"", word);
                if (nearest)
                        hint("Did you mean \"%s\"?", nearest);
                return CODE_INVALID;
        }
        if (w->n_contenders == 0)
                return options_wrong(o, "--law", text, "names no law");
        return CODE_OK;
}

/* Takes the numbers of a class: its law, targets, bounds and burst, for an owner's quota. */
static ExitCode use_class(const Wish *w, const Policy *policy, Simulation *s) {
        Bandwidth base = { s->base_usec, PERIOD_DEFAULT_USEC, 0 };
        const ServiceClass *class = NULL;
        BandwidthPlan plan;

        if (w->class_name)
                class = policy_find_class(policy, w->class_name);
        else if (policy->n_classes == 1)
                class = &policy->classes[0];
        if (!class) {
                complain(w->class_name ? "simulate: the policy has no class \"%s\"" : "simulate: the policy has more than one class: name one with --class", w->class_name);
                return w->class_name ? CODE_NOT_FOUND : CODE_USAGE;
        }
        if (base.quota_usec == 0)
                base.quota_usec = s->workload ? s->workload->base_usec : s->trace.samples[0].live.quota_usec;
        resolve_bandwidth(class, &base, &plan);
        law_config_from_class(class, &plan, s->host.n_cpus, &s->law);
        s->class_name = class->name;
        s->has_class = true;
        return CODE_OK;
}

/* A trace without a class: bounds as a workload has them. */
static void use_trace_defaults(Simulation *s) {
        Bandwidth live = s->trace.samples[0].live;

        s->law = (LawConfig) {
                .base = { s->base_usec ?: live.quota_usec, PERIOD_DEFAULT_USEC, 0 },
                .floor_usec = QUOTA_MIN_USEC,
                .ceiling_usec = s->host.n_cpus * PERIOD_DEFAULT_USEC,
                .may_raise = true,
                .n_cpus = s->host.n_cpus,
        };
        if (s->base_usec == 0)
                s->law.base.period_usec = live.period_usec;
}

static ExitCode read_trace(const char *path, Simulation *s) {
        _cleanup_(diag_list_clear) DiagList list = {};
        _cleanup_(policy_files_clear) PolicyFiles file = {};
        int r = policy_files_add(&file, path, false, &list);

        if (r >= 0)
                r = sim_trace_parse(path, file.items[0].text, file.items[0].length, &s->trace, &list);
        if (r >= 0)
                return CODE_OK;
        print_diags(&list);
        if (r == -ENOMEM)
                complain("out of memory");
        return r == -ENOMEM ? CODE_FAILURE : CODE_INVALID;
}

static ExitCode read_policy(Wish *w, Simulation *s) {
        _cleanup_(diag_list_clear) DiagList list = {};
        _cleanup_(policy_free_pointer) Policy *policy = NULL;
        int r = policy_files_build(&w->files, &policy, &list);
        ExitCode code;

        if (r < 0) {
                print_diags(&list);
                if (r == -ENOMEM)
                        complain("out of memory");
                return r == -ENOMEM ? CODE_FAILURE : CODE_INVALID;
        }
        code = use_class(w, policy, s);
        if (code == CODE_OK && w->n_contenders == 0)
                w->contenders[w->n_contenders++] = (SimContender) { s->law.law, false };
        /* The name outlives the policy that it is from. */
        s->class_name = w->class_name ?: "of the policy";
        return code;
}

static ExitCode write_requests(const char *path, const Simulation *s) {
        SimSource *source = s->workload ? sim_workload_source_new(s->workload, s->host.seed) : sim_trace_source_new(&s->trace, s->work_usec, s->host.seed);
        _cleanup_fclose_ FILE *f = source ? fopen(path, "we") : NULL;
        SimRequest q;
        bool good;

        while (f && source->next(source, &q) && q.arrival_usec < s->host.duration_usec)
                (void) fprintf(f, "%lu %u %u%s\n", (unsigned long) q.arrival_usec, q.n_parts, q.work_usec, q.unmeasured ? " unmeasured" : "");
        good = f && fflush(f) == 0;
        if (!good)
                complain("cannot write %s: %s", path, strerror(errno));
        (void) sim_source_free(source);
        return good ? CODE_OK : CODE_FAILURE;
}

static ExitCode run_laws(const Client *c, const Wish *w, const Simulation *s) {
        SimRun runs[LAWS_MAX] = {};
        ExitCode code = CODE_OK;
        size_t n = 0;
        int r = 0;

        for (; n < w->n_contenders && r >= 0; n++)
                r = simulation_run(s, w->contenders[n], &runs[n]);
        if (r < 0) {
                complain("simulate: %s", r == -ENOMEM ? "out of memory" : "no group can run with these numbers (a quota of 1 ms at least, and a limit)");
                code = CODE_FAILURE;
        }
        if (code == CODE_OK && w->plot) {
                r = simulation_plot(w->plot, s, runs, n);
                if (r < 0) {
                        complain("cannot write %s: %s", w->plot, strerror(-r));
                        code = CODE_FAILURE;
                }
        }
        if (code == CODE_OK)
                code = c->json ? simulation_print_json(c, s, runs, n) : simulation_print(c, s, runs, n);
        for (size_t i = 0; i < n; i++)
                simulation_run_clear(&runs[i]);
        return code;
}

static void default_laws(Wish *w) {
        static const SimContender usual[] = { { LAW_ADAPTIVE, true }, { LAW_CAPTAIN, false }, { LAW_CAPTAIN, true }, { LAW_KOORDLET, false }, { LAW_STATIC, false }, { LAW_BURST, true } };

        if (w->n_contenders > 0)
                return;
        memcpy(w->contenders, usual, sizeof(usual));
        w->n_contenders = w->outcome ? 1 : ELEMENTSOF(usual);
}

static ExitCode simulate(const Client *c, Wish *w, Simulation *s) {
        SimSeeds seeds = { s->host.seed, (uint32_t) w->n_seeds };
        ExitCode code;

        if (w->generate) {
                s->workload = sim_workload_find(w->generate);
                if (!s->workload) {
                        complain("simulate: no workload \"%s\"", w->generate);
                        hint("cpuclassctl simulate --generate list shows them.");
                        return CODE_NOT_FOUND;
                }
        }
        if (w->trace) {
                code = read_trace(w->trace, s);
                if (code != CODE_OK)
                        return code;
                if (!w->has_duration)
                        s->host.duration_usec = sim_trace_duration_usec(&s->trace);
                use_trace_defaults(s);
        }
        if (w->has_policy) {
                code = read_policy(w, s);
                if (code != CODE_OK)
                        return code;
        }
        default_laws(w);
        if (w->requests) {
                code = write_requests(w->requests, s);
                if (code != CODE_OK)
                        return code;
        }
        if (w->outcome)
                return simulate_outcome(c, s->workload, w->contenders[0], sim_default_dial(w->contenders[0].law), seeds, s->host.duration_usec);
        if (w->frontier)
                return simulate_frontiers(c, s->workload, w->contenders, w->n_contenders, seeds, s->host.duration_usec, w->plot);
        return run_laws(c, w, s);
}

static ExitCode check_wish(const Wish *w) {
        if (w->generate && w->trace)
                complain("simulate: --generate and --trace exclude each other");
        else if (!w->generate && !w->trace && !w->outcome)
                complain("simulate: what demand? --generate WORKLOAD or --trace FILE");
        else if ((w->frontier || w->outcome) && (w->trace || w->has_policy))
                complain("simulate: --frontier and --outcome are for workloads, with their own numbers");
        else if (w->frontier && w->outcome)
                complain("simulate: --frontier and --outcome exclude each other");
        else if (w->outcome && w->plot)
                complain("simulate: --outcome draws nothing; --frontier does");
        else if (w->requests && !w->generate && !w->trace)
                complain("simulate: --requests needs --generate or --trace");
        else if (w->class_name && !w->has_policy)
                complain("simulate: --class needs --policy");
        else
                return CODE_OK;
        hint("Try: cpuclassctl simulate --help");
        return CODE_USAGE;
}

static ExitCode read_options(Options *o, Wish *w, Simulation *s) {
        _cleanup_(diag_list_clear) DiagList list = {};
        ExitCode code = CODE_OK;
        uint64_t number = 0;
        int option;

        while ((option = options_next(o)) >= 0) {
                bool good = true;

                switch (option) {
                case OPTION_GENERATE:
                        w->generate = optarg;
                        break;
                case OPTION_TRACE:
                        w->trace = optarg;
                        break;
                case OPTION_LAW:
                        w->laws = optarg;
                        break;
                case OPTION_POLICY:
                        w->has_policy = true;
                        good = policy_files_add(&w->files, optarg, false, &list) >= 0;
                        if (!good) {
                                print_diags(&list);
                                code = CODE_INVALID;
                        }
                        break;
                case OPTION_CLASS:
                        w->class_name = optarg;
                        break;
                case OPTION_BASE:
                        good = duration_option(o, "--base", QUOTA_MIN_USEC, SIM_CPUS_MAX * PERIOD_DEFAULT_USEC, &s->base_usec, &code);
                        break;
                case OPTION_PLOT:
                        w->plot = optarg;
                        break;
                case OPTION_FRONTIER:
                        w->frontier = true;
                        break;
                case OPTION_OUTCOME:
                        w->outcome = true;
                        break;
                case OPTION_REQUESTS:
                        w->requests = optarg;
                        break;
                case OPTION_DURATION:
                        w->has_duration = true;
                        good = duration_option(o, "--duration", USEC_PER_SEC, DURATION_MOST_USEC, &s->host.duration_usec, &code);
                        break;
                case OPTION_SEED:
                        good = number_option(o, "--seed", 0, UINT32_MAX, &s->host.seed, &code);
                        break;
                case OPTION_SEEDS:
                        good = number_option(o, "--seeds", 1, 1000, &w->n_seeds, &code);
                        break;
                case OPTION_CPUS:
                        good = number_option(o, "--cpus", 1, SIM_CPUS_MAX, &number, &code);
                        s->host.n_cpus = (uint32_t) number;
                        break;
                case OPTION_DELAY:
                        good = duration_option(o, "--delay", 0, 10 * USEC_PER_SEC, &s->host.write_delay_usec, &code);
                        break;
                case OPTION_WORK:
                        good = duration_option(o, "--work", 100, USEC_PER_SEC, &s->work_usec, &code);
                        break;
                }
                if (!good)
                        return code;
        }
        if (option != OPTIONS_END || !options_check_arguments(o, 0, 0))
                return o->exit_code == CODE_OK ? (ExitCode) -1 : o->exit_code; /* --help was given: nothing more to do */
        return w->laws ? read_laws(o, w->laws, w) : CODE_OK;
}

int verb_simulate(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "generate", required_argument, NULL, OPTION_GENERATE },
                { "trace", required_argument, NULL, OPTION_TRACE },
                { "law", required_argument, NULL, OPTION_LAW },
                { "policy", required_argument, NULL, OPTION_POLICY },
                { "class", required_argument, NULL, OPTION_CLASS },
                { "base", required_argument, NULL, OPTION_BASE },
                { "plot", required_argument, NULL, OPTION_PLOT },
                { "frontier", no_argument, NULL, OPTION_FRONTIER },
                { "outcome", no_argument, NULL, OPTION_OUTCOME },
                { "requests", required_argument, NULL, OPTION_REQUESTS },
                { "duration", required_argument, NULL, OPTION_DURATION },
                { "seed", required_argument, NULL, OPTION_SEED },
                { "seeds", required_argument, NULL, OPTION_SEEDS },
                { "cpus", required_argument, NULL, OPTION_CPUS },
                { "delay", required_argument, NULL, OPTION_DELAY },
                { "work", required_argument, NULL, OPTION_WORK },
                {},
        };
        Simulation s = { .work_usec = 5 * USEC_PER_MSEC };
        Wish w = { .n_seeds = 3 };
        ExitCode code;
        Options o;

        sim_setup_init(&s.host);
        options_init(&o, c, verb, options, false, argc, argv);
        code = read_options(&o, &w, &s);
        if (code == CODE_OK && w.generate && streq(w.generate, "list"))
                code = list_workloads(c);
        else {
                if (code == CODE_OK)
                        code = check_wish(&w);
                if (code == CODE_OK)
                        code = simulate(c, &w, &s);
        }
        policy_files_clear(&w.files);
        sim_trace_clear(&s.trace);
        return (int) code == -1 ? CODE_OK : code;
}
