/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a change of the scheduler must not slow down: a ping-pong, and wake-ups from message threads to workers. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab.h"

int lab_pingpong(int argc, char **argv) {
        int there[2], back[2], rounds = 0, cpu = -1, option;
        int64_t began;
        pid_t pid;
        char c = 0;

        while ((option = getopt(argc, argv, "n:c:")) >= 0)
                switch (option) {
                case 'n': rounds = atoi(optarg); break;
                case 'c': cpu = atoi(optarg); break;
                default: return 2;
                }
        if (rounds < 1 || pipe(there) < 0 || pipe(back) < 0)
                die("pingpong: how many rounds?");
        if (cpu >= 0)
                pin(cpu);
        pid = spawn();
        if (!pid) {
                for (;;)
                        if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
                                _exit(1);
        }
        began = now(CLOCK_MONOTONIC);
        for (int i = 0; i < rounds; i++)
                if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
                        die("pingpong: the other side is gone");
        printf("rounds=%d round_us=%.3f\n", rounds, (now(CLOCK_MONOTONIC) - began) / 1e3 / rounds);
        reap(pid);
        return 0;
}

/*
 * After schbench's idea: each message thread wakes its workers one after the other; each worker notes how long the
 * wake-up took, works, and waits for the next.
 */
struct worker {
        _Atomic int called;
        _Atomic int64_t at;
        _Atomic bool idle;
        struct sample sample;
        pthread_t thread;
};

static _Atomic bool stop;
static int64_t work;
static int n_workers, task_nice;

static void futex_wait(_Atomic int *word, int value) {
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic int *word) {
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *run_worker(void *arg) {
        struct worker *w = arg;

        if (task_nice)
                set_latency_nice(task_nice);
        while (!stop) {
                int64_t began;

                w->idle = true;
                while (!w->called && !stop)
                        futex_wait(&w->called, 0);
                if (stop)
                        break;
                began = now(CLOCK_MONOTONIC);
                if (w->sample.n < w->sample.room)
                        sample_add(&w->sample, began - w->at);
                w->called = 0;
                burn(work);
        }
        return NULL;
}

static void *run_messages(void *arg) {
        struct worker *workers = arg;

        while (!stop) {
                for (int i = 0; i < n_workers; i++)
                        if (workers[i].idle) {
                                workers[i].idle = false;
                                workers[i].at = now(CLOCK_MONOTONIC);
                                workers[i].called = 1;
                                futex_wake(&workers[i].called);
                        }
                sleep_ns(100 * USEC);
        }
        return NULL;
}

int lab_schbench(int argc, char **argv) {
        int messages = 0, option;
        struct worker *workers;
        pthread_t *threads;
        struct sample all;
        int64_t seconds = 0;
        size_t total = 0;

        while ((option = getopt(argc, argv, "m:w:r:t:n:")) >= 0)
                switch (option) {
                case 'm': messages = atoi(optarg); break;
                case 'w': n_workers = atoi(optarg); break;
                case 'r': work = atoll(optarg) * USEC; break;
                case 't': seconds = atoll(optarg); break;
                case 'n': task_nice = atoi(optarg); break;
                default: return 2;
                }
        if (messages < 1 || n_workers < 1 || !work || !seconds)
                die("schbench: an option is missing");
        workers = calloc((size_t)messages * n_workers, sizeof(*workers));
        threads = calloc(messages, sizeof(*threads));
        if (!workers || !threads)
                die("no memory");
        for (int i = 0; i < messages * n_workers; i++) {
                sample_init(&workers[i].sample, 100000);
                if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) != 0)
                        die("no more threads");
        }
        for (int i = 0; i < messages; i++)
                if (pthread_create(&threads[i], NULL, run_messages, workers + (size_t)i * n_workers) != 0)
                        die("no more threads");
        sleep_ns(seconds * SEC);
        stop = true;
        for (int i = 0; i < messages; i++)
                pthread_join(threads[i], NULL);
        for (int i = 0; i < messages * n_workers; i++) {
                workers[i].called = 1;
                futex_wake(&workers[i].called);
                pthread_join(workers[i].thread, NULL);
                total += workers[i].sample.n;
        }
        sample_init(&all, total + 1);
        for (int i = 0; i < messages * n_workers; i++)
                for (size_t k = 0; k < workers[i].sample.n; k++)
                        sample_add(&all, workers[i].sample.values[k]);
        printf("groups=%d workers=%d ", messages, n_workers);
        sample_print(&all);
        printf(" rate=%.1f\n", (double)total / seconds);
        return 0;
}
