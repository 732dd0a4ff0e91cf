/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* loadgen: the workloads that scenarios, the demonstration and the benches run as units. One program with a mode each, so that a test says in one line
 * what it puts on the host. */

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "policies/util.h"
#include "tests/vm/workloads/server.h"
#include "tests/vm/workloads/threads.h"

static const char usage_text[] =
        "loadgen hog [THREADS]      each thread runs for ever (or --duty USEC of each --period USEC)\n"
        "loadgen threads N          N threads that sleep\n"
        "loadgen idle               one thread that sleeps\n"
        "loadgen forker             a new thread every --every USEC, at most --max at once, each sleeps --life USEC\n"
        "loadgen burst              open-loop request server; JSON reports (see tests/vm/workloads/server.h)\n"
        "\n"
        "scheduling of each thread:\n"
        "  --policy LIST            other, batch, idle, fifo, rr; thread i takes the i-th of the list, round and round\n"
        "  --nice N  --priority N  --reset-on-fork  --slice USEC  --util-min N  --util-max N  --cpus LIST\n"
        "hog: --duty USEC --period USEC\n"
        "forker: --every USEC --life USEC --max N --processes (child processes in place of threads)\n"
        "burst:\n"
        "  --rate N                 requests a second (100)       --pattern uniform|poisson (poisson)\n"
        "  --batch N                arrivals at a time (1)        --on USEC --off USEC  arrivals only during \"on\"\n"
        "  --cpu USEC               CPU time of a request (1000)  --exponential  its distribution\n"
        "  --workers N              threads (4)                   --seed N (1)\n"
        "  --warmup USEC --duration USEC --report USEC --stats FILE\n"
        "  SIGUSR1 reports, SIGUSR2 begins a new \"since_mark\"\n"
        "--ready FILE               make FILE when all threads are there\n";

typedef struct Options {
        Scheduling scheduling;
        ServerOptions server;
        unsigned threads;
        uint64_t duty_usec, period_usec;
        uint64_t every_usec, life_usec;
        unsigned max;
        bool processes;
        const char *ready_path;
} Options;

static pthread_barrier_t started;

static void fail(const char *what, int error) {
        fprintf(stderr, "loadgen: %s: %s\n", what, strerror(error));
        exit(EXIT_FAILURE);
}

static void announce_ready(const Options *o) {
        FILE *f;

        if (!o->ready_path)
                return;
        f = fopen(o->ready_path, "we");
        if (!f)
                fail(o->ready_path, errno);
        (void) fclose(f);
}

typedef struct Member {
        const Options *options;
        unsigned index;
        bool works;
} Member;

static void hog(const Options *o) {
        uint64_t next = now_nsec();

        for (;;) {
                if (o->period_usec == 0) {
                        burn_some();
                        continue;
                }
                if (o->duty_usec > 0)
                        burn_nsec(o->duty_usec * NSEC_PER_USEC);
                next += o->period_usec * NSEC_PER_USEC;
                if (next > now_nsec())
                        sleep_until_nsec(next);
                else
                        next = now_nsec(); /* no catching up: a duty cycle, not an open loop */
        }
}

static void *member_main(void *userdata) {
        Member *m = userdata;
        int r = scheduling_apply(&m->options->scheduling, m->index);

        if (r < 0)
                fail("cannot set the scheduling of a thread", -r);
        (void) pthread_barrier_wait(&started);
        if (m->works)
                hog(m->options);
        for (;;)
                (void) pause();
        return NULL;
}

/* The main thread is member 0: "threads 3" has three threads, not four. */
static void run_members(const Options *o, bool work) {
        Member *members = calloc(o->threads, sizeof(Member));

        if (!members)
                fail("memory", ENOMEM);
        (void) pthread_barrier_init(&started, NULL, o->threads);
        for (unsigned i = o->threads; i-- > 0;) {
                pthread_t thread;
                int r;

                members[i] = (Member) {o, i, work};
                if (i == 0) {
                        /* The barrier holds all until the last one is set up, this one. */
                        r = scheduling_apply(&o->scheduling, 0);
                        if (r < 0)
                                fail("cannot set the scheduling of the main thread", -r);
                        (void) pthread_barrier_wait(&started);
                        announce_ready(o);
                        if (work)
                                hog(o);
                        for (;;)
                                (void) pause();
                }
                r = pthread_create(&thread, NULL, member_main, &members[i]);
                if (r != 0)
                        fail("cannot start a thread", r);
        }
}

static unsigned n_alive;

static void *mayfly_main(void *userdata) {
        const Options *o = userdata;

        sleep_until_nsec(now_nsec() + o->life_usec * NSEC_PER_USEC);
        (void) __atomic_sub_fetch(&n_alive, 1, __ATOMIC_RELAXED);
        return NULL;
}

static void start_mayfly(Options *o) {
        (void) __atomic_add_fetch(&n_alive, 1, __ATOMIC_RELAXED);
        if (o->processes) {
                pid_t pid = fork();

                if (pid < 0)
                        fail("fork", errno);
                if (pid == 0) {
                        (void) mayfly_main(o);
                        _exit(0);
                }
        } else {
                pthread_attr_t attributes;
                pthread_t thread;
                int r;

                (void) pthread_attr_init(&attributes);
                (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
                r = pthread_create(&thread, &attributes, mayfly_main, o);
                if (r != 0)
                        fail("cannot start a thread", r);
        }
}

static void run_forker(Options *o) {
        uint64_t next = now_nsec();
        int r = scheduling_apply(&o->scheduling, 0);

        if (r < 0)
                fail("cannot set the scheduling of the main thread", -r);
        announce_ready(o);
        for (;;) {
                while (o->processes && waitpid(-1, NULL, WNOHANG) > 0)
                        (void) __atomic_sub_fetch(&n_alive, 1, __ATOMIC_RELAXED);
                if (__atomic_load_n(&n_alive, __ATOMIC_RELAXED) < o->max)
                        start_mayfly(o);
                next += o->every_usec * NSEC_PER_USEC;
                sleep_until_nsec(next);
        }
}

static uint64_t number(const char *text, const char *option, uint64_t most) {
        unsigned long long value;
        char *end;

        errno = 0;
        value = strtoull(text, &end, 10);
        if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value > most) {
                fprintf(stderr, "loadgen: --%s wants a number up to %llu, not \"%s\"\n", option, (unsigned long long) most, text);
                exit(2);
        }
        return value;
}

enum { OPT_POLICY = 256, OPT_NICE, OPT_PRIORITY, OPT_RESET, OPT_SLICE, OPT_UTIL_MIN, OPT_UTIL_MAX, OPT_CPUS, OPT_DUTY, OPT_PERIOD, OPT_EVERY,
        OPT_LIFE, OPT_MAX, OPT_PROCESSES, OPT_RATE, OPT_PATTERN, OPT_BATCH, OPT_ON, OPT_OFF, OPT_CPU, OPT_EXPONENTIAL, OPT_WORKERS, OPT_SEED,
        OPT_WARMUP, OPT_DURATION, OPT_REPORT, OPT_STATS, OPT_READY };

static const struct option long_options[] = {
        {"policy", required_argument, NULL, OPT_POLICY},     {"nice", required_argument, NULL, OPT_NICE},
        {"priority", required_argument, NULL, OPT_PRIORITY}, {"reset-on-fork", no_argument, NULL, OPT_RESET},
        {"slice", required_argument, NULL, OPT_SLICE},       {"util-min", required_argument, NULL, OPT_UTIL_MIN},
        {"util-max", required_argument, NULL, OPT_UTIL_MAX}, {"cpus", required_argument, NULL, OPT_CPUS},
        {"duty", required_argument, NULL, OPT_DUTY},         {"period", required_argument, NULL, OPT_PERIOD},
        {"every", required_argument, NULL, OPT_EVERY},       {"life", required_argument, NULL, OPT_LIFE},
        {"max", required_argument, NULL, OPT_MAX},           {"processes", no_argument, NULL, OPT_PROCESSES},
        {"rate", required_argument, NULL, OPT_RATE},         {"pattern", required_argument, NULL, OPT_PATTERN},
        {"batch", required_argument, NULL, OPT_BATCH},       {"on", required_argument, NULL, OPT_ON},
        {"off", required_argument, NULL, OPT_OFF},           {"cpu", required_argument, NULL, OPT_CPU},
        {"exponential", no_argument, NULL, OPT_EXPONENTIAL}, {"workers", required_argument, NULL, OPT_WORKERS},
        {"seed", required_argument, NULL, OPT_SEED},         {"warmup", required_argument, NULL, OPT_WARMUP},
        {"duration", required_argument, NULL, OPT_DURATION}, {"report", required_argument, NULL, OPT_REPORT},
        {"stats", required_argument, NULL, OPT_STATS},       {"ready", required_argument, NULL, OPT_READY},
        {"help", no_argument, NULL, 'h'},                    {},
};

static void parse_scheduling(int option, const char *name, Scheduling *s) {
        switch (option) {
        case OPT_POLICY:
                if (scheduling_parse_policies(optarg, s) < 0) {
                        fprintf(stderr, "loadgen: no such policies: %s\n", optarg);
                        exit(2);
                }
                break;
        case OPT_NICE: {
                char *end;
                long n = strtol(optarg, &end, 10);

                if (*end != '\0' || n < -20 || n > 19) {
                        fprintf(stderr, "loadgen: --nice wants -20 to 19\n");
                        exit(2);
                }
                s->nice = (int) n;
                s->has_nice = true;
                break;
        }
        case OPT_PRIORITY:
                s->priority = (int) number(optarg, name, 99);
                break;
        case OPT_RESET:
                s->reset_on_fork = true;
                break;
        case OPT_SLICE:
                s->slice_nsec = number(optarg, name, 1000000) * NSEC_PER_USEC;
                break;
        case OPT_UTIL_MIN:
                s->util_min = (int) number(optarg, name, 1024);
                break;
        case OPT_UTIL_MAX:
                s->util_max = (int) number(optarg, name, 1024);
                break;
        case OPT_CPUS:
                if (scheduling_parse_cpus(optarg, s) < 0) {
                        fprintf(stderr, "loadgen: no CPU list: %s\n", optarg);
                        exit(2);
                }
                break;
        default:
                break;
        }
}

static void parse_server(int option, const char *name, ServerOptions *o) {
        const uint64_t day_usec = UINT64_C(86400) * USEC_PER_SEC;

        switch (option) {
        case OPT_RATE:
                o->rate = (double) number(optarg, name, 1000000);
                break;
        case OPT_PATTERN:
                if (!streq(optarg, "uniform") && !streq(optarg, "poisson")) {
                        fprintf(stderr, "loadgen: --pattern wants uniform or poisson\n");
                        exit(2);
                }
                o->pattern = streq(optarg, "poisson") ? ARRIVAL_POISSON : ARRIVAL_UNIFORM;
                break;
        case OPT_BATCH:
                o->batch = (unsigned) number(optarg, name, 100000);
                break;
        case OPT_ON:
                o->on_usec = number(optarg, name, day_usec);
                break;
        case OPT_OFF:
                o->off_usec = number(optarg, name, day_usec);
                break;
        case OPT_CPU:
                o->cpu_usec = number(optarg, name, day_usec);
                break;
        case OPT_EXPONENTIAL:
                o->exponential = true;
                break;
        case OPT_WORKERS:
                o->workers = (unsigned) number(optarg, name, 10000);
                break;
        case OPT_SEED:
                o->seed = number(optarg, name, UINT64_MAX);
                break;
        case OPT_WARMUP:
                o->warmup_usec = number(optarg, name, day_usec);
                break;
        case OPT_DURATION:
                o->duration_usec = number(optarg, name, day_usec);
                break;
        case OPT_REPORT:
                o->report_usec = number(optarg, name, day_usec);
                break;
        case OPT_STATS:
                o->stats_path = optarg;
                break;
        default:
                break;
        }
}

static void parse_options(int argc, char **argv, Options *o) {
        const uint64_t day_usec = UINT64_C(86400) * USEC_PER_SEC;
        int c, index = 0;

        while ((c = getopt_long(argc, argv, "h", long_options, &index)) >= 0) {
                const char *name = long_options[index].name;

                switch (c) {
                case 'h':
                        fputs(usage_text, stdout);
                        exit(EXIT_SUCCESS);
                case '?':
                        fputs(usage_text, stderr);
                        exit(2);
                case OPT_DUTY:
                        o->duty_usec = number(optarg, name, day_usec);
                        break;
                case OPT_PERIOD:
                        o->period_usec = number(optarg, name, day_usec);
                        break;
                case OPT_EVERY:
                        o->every_usec = number(optarg, name, day_usec);
                        break;
                case OPT_LIFE:
                        o->life_usec = number(optarg, name, day_usec);
                        break;
                case OPT_MAX:
                        o->max = (unsigned) number(optarg, name, 100000);
                        break;
                case OPT_PROCESSES:
                        o->processes = true;
                        break;
                case OPT_READY:
                        o->ready_path = optarg;
                        break;
                default:
                        if (c >= OPT_RATE)
                                parse_server(c, name, &o->server);
                        else
                                parse_scheduling(c, name, &o->scheduling);
                        break;
                }
        }
}

int main(int argc, char **argv) {
        Options o = {
                .scheduling = {.util_min = -1, .util_max = -1, .priority = 1},
                .server = {.rate = 100, .pattern = ARRIVAL_POISSON, .batch = 1, .cpu_usec = 1000, .workers = 4, .seed = 1},
                .threads = 1,
                .every_usec = 10000,
                .life_usec = 1000000,
                .max = 100,
        };
        const char *mode, *count;

        parse_options(argc, argv, &o);
        mode = optind < argc ? argv[optind] : "";
        count = optind + 1 < argc ? argv[optind + 1] : NULL;
        if (argc - optind > 2 || (count && !streq(mode, "hog") && !streq(mode, "threads"))) {
                fputs(usage_text, stderr);
                return 2;
        }
        if (count)
                o.threads = (unsigned) number(count, "threads", 100000);
        if (o.threads < 1 || o.server.rate < 1 || o.server.batch < 1 || o.server.workers < 1) {
                fputs("loadgen: threads, rate, batch and workers are at least 1\n", stderr);
                return 2;
        }
        if (streq(mode, "hog"))
                run_members(&o, true);
        else if (streq(mode, "threads") || streq(mode, "idle"))
                run_members(&o, false);
        else if (streq(mode, "forker"))
                run_forker(&o);
        else if (streq(mode, "burst")) {
                announce_ready(&o);
                return server_run(&o.server, &o.scheduling);
        }
        fputs(usage_text, stderr);
        return 2;
}
