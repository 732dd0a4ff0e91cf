/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* record: what a group uses, as the daemon samples it, into a trace for "simulate". */

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <time.h>

#include "client/duration.h"
#include "client/format.h"
#include "client/options.h"
#include "client/target.h"
#include "client/verbs.h"
#include "policies/sim-trace.h"

const char help_record[] =
        "Records what a group uses, as the daemon samples it, into a trace for \"simulate\". The\n"
        "daemon samples every 100ms where a law moves the limit, each second elsewhere. Where\n"
        "the group is throttled it wants more than a trace can say: give it a roomy limit.\n\n"
        "  -o, --output FILE     the trace (standard output)\n"
        "      --for DURATION    how long (60s, until Ctrl-C at the latest)\n"
        "      --every DURATION  how often to look (100ms)";

/* The API turns a sample's time into a date anew at each request: two answers about the same sample differ a little. */
#define SAME_SAMPLE_USEC (5 * USEC_PER_MSEC)

typedef struct Totals {
        uint64_t at_usec;
        uint64_t usage_usec, nr_periods, nr_throttled, throttled_usec;
        Bandwidth live;
} Totals;

static volatile sig_atomic_t stop;

static void on_signal(int signal) {
        stop = 1;
}

static uint64_t monotonic_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

/* False: the daemon has not sampled it yet. */
static bool read_totals(const json_t *group, Totals *ret) {
        const json_t *sample = json_object_get(group, "sample"), *total = json_object_get(sample, "total");
        Totals t = { .live = { QUOTA_UNLIMITED, PERIOD_DEFAULT_USEC, 0 } };

        if (!json_time(sample, "at", &t.at_usec) || !json_number(total, "usage_usec", &t.usage_usec))
                return false;
        t.nr_periods = json_number_or(total, "nr_periods", 0);
        t.nr_throttled = json_number_or(total, "nr_throttled", 0);
        t.throttled_usec = json_number_or(total, "throttled_usec", 0);
        (void) json_bandwidth(json_object_get(group, "bandwidth"), "observed", &t.live);
        *ret = t;
        return true;
}

static int write_line(FILE *f, json_t *o) {
        int r = o && json_dumpf(o, f, JSON_COMPACT) == 0 && fputc('\n', f) != EOF && fflush(f) == 0 ? 0 : -EIO;

        json_decref(o);
        return r;
}

static uint32_t host_cpus(const Client *c) {
        _cleanup_answer_ Answer a = {};

        if (client_request(c, "GET", "/v1/host", NULL, TIMEOUT_USUAL, &a) != CODE_OK)
                return 0;
        return (uint32_t) MIN_OF(json_number_or(a.json, "n_cpus", 1), (uint64_t) SIM_CPUS_MAX);
}

static ExitCode record(const Client *c, const Argument *group, FILE *f, uint64_t for_usec, uint64_t every_usec, size_t *ret_n) {
        uint64_t end = monotonic_usec() + for_usec, first = 0, now_realtime = now_usec();
        uint32_t n_cpus = host_cpus(c);
        char recorded_at[32];
        time_t seconds = (time_t) (now_realtime / USEC_PER_SEC);
        struct tm tm;
        Totals last = {};

        if (n_cpus == 0)
                return CODE_UNREACHABLE; /* said */
        (void) strftime(recorded_at, sizeof(recorded_at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
        if (write_line(f, sim_trace_header(group->text, n_cpus, recorded_at)) < 0)
                goto broken;
        while (!stop && monotonic_usec() < end) {
                _cleanup_answer_ Answer a = {};
                ExitCode code = argument_request(c, group, false, &a);
                Totals t;

                if (code != CODE_OK)
                        return *ret_n > 0 && code == CODE_NOT_FOUND ? CODE_OK : code; /* it ended: what there is, is good */
                if (read_totals(a.json, &t) && t.at_usec > last.at_usec + SAME_SAMPLE_USEC) {
                        /* Counters that went back are those of a new cgroup of the same name. */
                        if (first > 0 && t.usage_usec >= last.usage_usec && t.nr_periods >= last.nr_periods) {
                                SimTraceSample s = {
                                        .at_usec = t.at_usec - first,
                                        .window_usec = t.at_usec - last.at_usec,
                                        .usage_usec = t.usage_usec - last.usage_usec,
                                        .nr_periods = t.nr_periods - last.nr_periods,
                                        .nr_throttled = t.nr_throttled - last.nr_throttled,
                                        .throttled_usec = t.throttled_usec - last.throttled_usec,
                                        .live = t.live,
                                };

                                if (write_line(f, sim_trace_sample_to_json(&s)) < 0)
                                        goto broken;
                                ++*ret_n;
                        }
                        if (first == 0)
                                first = t.at_usec;
                        last = t;
                }
                (void) nanosleep(&(struct timespec) { (time_t) (every_usec / USEC_PER_SEC), (long) (every_usec % USEC_PER_SEC * NSEC_PER_USEC) }, NULL);
        }
        return CODE_OK;
broken:
        complain("cannot write the trace: %s", strerror(errno));
        return CODE_FAILURE;
}

int verb_record(Client *c, const Verb *verb, int argc, char **argv) {
        static const struct option options[] = {
                { "output", required_argument, NULL, 'o' },
                { "for", required_argument, NULL, 'f' },
                { "every", required_argument, NULL, 'e' },
                {},
        };
        uint64_t for_usec = 60 * USEC_PER_SEC, every_usec = 100 * USEC_PER_MSEC;
        const struct sigaction action = { .sa_handler = on_signal };
        _cleanup_argument_ Argument group = {};
        _cleanup_fclose_ FILE *file = NULL;
        const char *path = NULL;
        size_t n = 0;
        ExitCode code;
        Options o;
        int option;

        options_init(&o, c, verb, options, false, argc, argv);
        while ((option = options_next(&o)) >= 0)
                if (option == 'o')
                        path = optarg;
                else if (option == 'f' && (duration_parse(optarg, &for_usec) < 0 || for_usec < USEC_PER_SEC || for_usec > 7 * 86400 * USEC_PER_SEC))
                        return options_wrong(&o, "--for", optarg, "not a duration from 1s to a week");
                else if (option == 'e' && (duration_parse(optarg, &every_usec) < 0 || every_usec < 10 * USEC_PER_MSEC || every_usec > 60 * USEC_PER_SEC))
                        return options_wrong(&o, "--every", optarg, "not a duration from 10ms to 1min");
        if (option != OPTIONS_END || !options_check_arguments(&o, 1, 1))
                return o.exit_code;
        code = argument_from_command_line(argv[optind], &group);
        if (code != CODE_OK)
                return code;

        if (path && !streq(path, "-")) {
                file = fopen(path, "we");
                if (!file) {
                        complain("cannot write %s: %s", path, strerror(errno));
                        return CODE_FAILURE;
                }
        }
        (void) sigaction(SIGINT, &action, NULL);
        (void) sigaction(SIGTERM, &action, NULL);
        code = record(c, &group, file ?: stdout, for_usec, every_usec, &n);
        if (code == CODE_OK && n == 0) {
                complain("record: no sample came: the daemon does not sample %s", group.text);
                return CODE_FAILURE;
        }
        if (code == CODE_OK && file)
                hint("%zu samples in %s", n, path);
        return code;
}
