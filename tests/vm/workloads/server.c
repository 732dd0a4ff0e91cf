/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* No dispatcher thread: each worker takes the next arrival of the schedule under a lock and, when it lies ahead, sleeps until then. With all workers busy the next
 * arrivals wait in the schedule itself, first come first served. The main thread only reports. */

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "policies/util.h"
#include "tests/vm/workloads/latency.h"
#include "tests/vm/workloads/server.h"

#define NSEC_PER_SEC UINT64_C(1000000000)

typedef struct Measurement {
        uint64_t since_nsec;
        Latency latency, wake;
} Measurement;

/* Where the arrivals stand: a value, so that a copy can be run ahead to see who is waiting. */
typedef struct Schedule {
        const ServerOptions *options;
        uint64_t start_nsec;
        uint64_t random_state;
        double next_on_time;  /* of the next batch, in seconds of on-time since the start */
        uint64_t next_nsec;   /* the same as a point of time */
        unsigned left_of_batch;
} Schedule;

typedef struct Server Server;

typedef struct Worker {
        Server *server;
        unsigned index;
        pthread_t thread;
        uint64_t serves_arrival_nsec; /* of the request in hand; under the schedule lock */
} Worker;

struct Server {
        const ServerOptions *options;
        const Scheduling *scheduling;
        Worker *workers;

        pthread_mutex_t schedule_lock;
        Schedule schedule;

        pthread_mutex_t stats_lock;
        Measurement window, mark;
};

typedef struct Request {
        uint64_t arrival_nsec, cpu_nsec;
} Request;

/* splitmix64: small, seedable, the same everywhere. Uniform in (0, 1]. */
static double random_unit(uint64_t *state) {
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        return ((double) (z >> 11) + 1.0) * 0x1.0p-53;
}

/* Arrivals are drawn in on-time; the gaps are put in here. */
static uint64_t on_time_to_nsec(const Schedule *s, double on_time) {
        const ServerOptions *o = s->options;
        double on = (double) o->on_usec / 1e6, off = (double) o->off_usec / 1e6;

        if (o->off_usec > 0 && o->on_usec > 0)
                on_time += floor(on_time / on) * off;
        return s->start_nsec + (uint64_t) (on_time * 1e9);
}

static void schedule_next_batch(Schedule *s) {
        double mean = (double) s->options->batch / s->options->rate;

        s->next_on_time += s->options->pattern == ARRIVAL_POISSON ? -log(random_unit(&s->random_state)) * mean : mean;
        s->next_nsec = on_time_to_nsec(s, s->next_on_time);
        s->left_of_batch = s->options->batch;
}

/* The batch that is current always has somebody left: next_nsec is the arrival of whoever comes next. */
static Request schedule_take(Schedule *s) {
        Request r = {s->next_nsec, s->options->cpu_usec * NSEC_PER_USEC};

        if (s->options->exponential)
                r.cpu_nsec = (uint64_t) (-log(random_unit(&s->random_state)) * (double) r.cpu_nsec);
        if (--s->left_of_batch == 0)
                schedule_next_batch(s);
        return r;
}

static Request take_request(Worker *w) {
        Server *s = w->server;
        Request r;

        (void) pthread_mutex_lock(&s->schedule_lock);
        r = schedule_take(&s->schedule);
        w->serves_arrival_nsec = r.arrival_nsec;
        (void) pthread_mutex_unlock(&s->schedule_lock);
        return r;
}

static void record(Server *s, const Request *r, uint64_t begun, uint64_t done, bool slept) {
        uint64_t latency = (done - r->arrival_nsec) / NSEC_PER_USEC, wake = (begun - r->arrival_nsec) / NSEC_PER_USEC;

        (void) pthread_mutex_lock(&s->stats_lock);
        latency_add(&s->window.latency, latency);
        latency_add(&s->mark.latency, latency);
        if (slept) {
                latency_add(&s->window.wake, wake);
                latency_add(&s->mark.wake, wake);
        }
        (void) pthread_mutex_unlock(&s->stats_lock);
}

static void *worker_main(void *userdata) {
        Worker *w = userdata;
        Server *s = w->server;
        int r = scheduling_apply(s->scheduling, w->index);

        if (r < 0) {
                fprintf(stderr, "loadgen: cannot set the scheduling of worker %u: %s\n", w->index, strerror(-r));
                exit(EXIT_FAILURE);
        }
        for (;;) {
                Request request = take_request(w);
                bool slept = request.arrival_nsec > now_nsec();
                uint64_t begun;

                if (slept)
                        sleep_until_nsec(request.arrival_nsec);
                begun = now_nsec();
                burn_nsec(request.cpu_nsec);
                (void) pthread_mutex_lock(&s->schedule_lock);
                w->serves_arrival_nsec = 0;
                (void) pthread_mutex_unlock(&s->schedule_lock);
                record(s, &request, begun, now_nsec(), slept);
        }
        return NULL;
}

static void print_measurement(FILE *out, const Measurement *m, uint64_t now) {
        fprintf(out, "{\"span_usec\":%" PRIu64 ",\"latency\":", (now - m->since_nsec) / NSEC_PER_USEC);
        latency_print(&m->latency, out);
        fputs(",\"wake\":", out);
        latency_print(&m->wake, out);
        fputc('}', out);
}

static uint64_t own_cpu_usec(void) {
        struct rusage u;

        (void) getrusage(RUSAGE_SELF, &u);
        return (uint64_t) (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * USEC_PER_SEC + (uint64_t) (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Who has arrived and is not served yet counts with the time waited so far: an overloaded server must not look good because its worst
 * requests never end. Returns how long the oldest one has been waiting. */
static uint64_t add_waiting(Server *s, uint64_t now, Measurement *window, Measurement *mark) {
        uint64_t oldest = now;
        Schedule ahead;

        (void) pthread_mutex_lock(&s->schedule_lock);
        ahead = s->schedule;
        for (unsigned i = 0; i < s->options->workers; i++) {
                uint64_t arrival = s->workers[i].serves_arrival_nsec;

                if (arrival > 0 && arrival < now) {
                        latency_add(&window->latency, (now - arrival) / NSEC_PER_USEC);
                        latency_add(&mark->latency, (now - arrival) / NSEC_PER_USEC);
                        oldest = MIN_OF(oldest, arrival);
                }
        }
        (void) pthread_mutex_unlock(&s->schedule_lock);
        while (ahead.next_nsec < now) {
                Request r = schedule_take(&ahead);

                latency_add(&window->latency, (now - r.arrival_nsec) / NSEC_PER_USEC);
                latency_add(&mark->latency, (now - r.arrival_nsec) / NSEC_PER_USEC);
                oldest = MIN_OF(oldest, r.arrival_nsec);
        }
        return (now - oldest) / NSEC_PER_USEC;
}

static void print_report(FILE *out, const Measurement *window, const Measurement *mark, uint64_t now, uint64_t backlog) {
        fprintf(out, "{\"at_usec\":%" PRIu64 ",\"window\":", now / NSEC_PER_USEC);
        print_measurement(out, window, now);
        fputs(",\"since_mark\":", out);
        print_measurement(out, mark, now);
        fprintf(out, ",\"backlog_usec\":%" PRIu64 ",\"cpu_usec\":%" PRIu64 "}\n", backlog, own_cpu_usec());
        (void) fflush(out);
}

static void restart_measurement(Measurement *m) {
        *m = (Measurement) {.since_nsec = now_nsec()};
}

/* Copies the numbers out and prints without the lock: workers never wait for a disk. */
static void report(Server *s, bool final) {
        static Measurement window, mark; /* too big for the stack's taste; only the main thread reports */
        const char *path = s->options->stats_path;
        uint64_t now, backlog;

        (void) pthread_mutex_lock(&s->stats_lock);
        now = now_nsec();
        window = s->window;
        mark = s->mark;
        restart_measurement(&s->window);
        (void) pthread_mutex_unlock(&s->stats_lock);
        backlog = add_waiting(s, now, &window, &mark);

        if (path) {
                _cleanup_free_ char *temporary = NULL;
                _cleanup_fclose_ FILE *f = NULL;

                if (asprintf(&temporary, "%s.new", path) < 0) {
                        temporary = NULL;
                        return;
                }
                f = fopen(temporary, "we");
                if (f) {
                        print_report(f, &window, &mark, now, backlog);
                        if (rename(temporary, path) < 0)
                                fprintf(stderr, "loadgen: %s: %m\n", path);
                } else
                        fprintf(stderr, "loadgen: %s: %m\n", temporary);
        }
        if (!path || final)
                print_report(stdout, &window, &mark, now, backlog);
}

/* Sleeps until a signal or this time; returns the signal or 0. */
static int wait_signal(const sigset_t *set, uint64_t until_nsec) {
        uint64_t now = now_nsec(), left;
        struct timespec ts;
        int r;

        if (until_nsec <= now)
                return 0;
        left = until_nsec - now;
        ts = (struct timespec) {(time_t) (left / NSEC_PER_SEC), (long) (left % NSEC_PER_SEC)};
        r = sigtimedwait(set, NULL, &ts);
        return r > 0 ? r : 0;
}

static void begin_measurements(Server *s) {
        (void) pthread_mutex_lock(&s->stats_lock);
        restart_measurement(&s->window);
        restart_measurement(&s->mark);
        (void) pthread_mutex_unlock(&s->stats_lock);
}

/* Reports when it is time and when it is asked, until the end or a signal to stop. */
static void supervise(Server *s, const sigset_t *set, bool *warming) {
        const ServerOptions *o = s->options;
        uint64_t begin = s->schedule.start_nsec + o->warmup_usec * NSEC_PER_USEC, next_report;
        uint64_t end = o->duration_usec > 0 ? begin + o->duration_usec * NSEC_PER_USEC : UINT64_MAX;

        *warming = true;
        next_report = o->report_usec > 0 ? begin + o->report_usec * NSEC_PER_USEC : UINT64_MAX;
        for (;;) {
                uint64_t until = MIN_OF(*warming ? begin : UINT64_MAX, MIN_OF(next_report, end)), now;

                switch (wait_signal(set, MIN_OF(until, now_nsec() + 3600 * NSEC_PER_SEC))) {
                case SIGTERM:
                case SIGINT:
                        return;
                case SIGUSR1:
                        report(s, false);
                        break;
                case SIGUSR2:
                        begin_measurements(s);
                        break;
                default:
                        break;
                }
                now = now_nsec();
                if (*warming && now >= begin) {
                        begin_measurements(s);
                        *warming = false;
                }
                if (now >= next_report) {
                        report(s, false);
                        next_report += o->report_usec * NSEC_PER_USEC;
                }
                if (now >= end)
                        return;
        }
}

int server_run(const ServerOptions *options, const Scheduling *scheduling) {
        static Server server; /* the histograms are large */
        Worker *workers = calloc(options->workers, sizeof(Worker));
        bool warming;
        sigset_t set;

        if (!workers) {
                fputs("loadgen: out of memory\n", stderr);
                return EXIT_FAILURE;
        }
        server = (Server) {
                .options = options,
                .scheduling = scheduling,
                .workers = workers,
                .schedule_lock = PTHREAD_MUTEX_INITIALIZER,
                .stats_lock = PTHREAD_MUTEX_INITIALIZER,
                .schedule = {.options = options, .start_nsec = now_nsec() + 10 * UINT64_C(1000000), .random_state = options->seed},
        };
        schedule_next_batch(&server.schedule);
        begin_measurements(&server);

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGUSR1);
        (void) sigaddset(&set, SIGUSR2);
        (void) pthread_sigmask(SIG_BLOCK, &set, NULL);
        for (unsigned i = 0; i < options->workers; i++) {
                int r;

                workers[i] = (Worker) {.server = &server, .index = i};
                r = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
                if (r != 0) {
                        fprintf(stderr, "loadgen: cannot start worker %u: %s\n", i, strerror(r));
                        return EXIT_FAILURE;
                }
        }
        supervise(&server, &set, &warming);
        report(&server, true);
        return EXIT_SUCCESS; /* the workers end with the process */
}
