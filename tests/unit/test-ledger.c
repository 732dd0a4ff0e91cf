/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ledger: what was promised is there after any crash, stale boots are gone, damage is kept, and 50,000 threads are cheap. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "daemon/ledger.h"
#include "tests/unit/state-faults.h"

#define BOOT "6f5dec9a-0001-4000-8000-00000000000a"
#define OTHER_BOOT "7f5dec9a-0001-4000-8000-00000000000a"

static Ledger *open_boot(int dir, const char *boot, size_t *ret_stale, size_t *ret_damaged) {
        Ledger *l = NULL;

        assert_int_equal(ledger_open(dir, boot, ret_stale, ret_damaged, &l), 0);
        return l;
}

static Ledger *open_ledger(int dir) {
        size_t damaged = 99, stale = 99;
        Ledger *l = open_boot(dir, BOOT, &stale, &damaged);

        assert_int_equal(damaged, 0);
        assert_int_equal(stale, 0);
        return l;
}

static LedgerRecord thread(pid_t tid) {
        return (LedgerRecord){ .kind = LEDGER_THREAD_SLICE, .key = (char *) (tid % 2 ? "/a.slice/odd.service" : "/a.slice/even.service"), .tid = tid,
                               .start_ticks = 1000 + (uint64_t) tid, .original_number = 0, .written_number = 300000, .has_written = true };
}

static const LedgerRecord quota = {
        .kind = LEDGER_UNIT_QUOTA, .key = (char *) "a\\x2db.service",
        .original = { QUOTA_UNLIMITED, 100000, 0 }, .written = { 50000, 100000, 50000 }, .has_written = true,
        .original_text = (char *) "[Service]\nCPUQuota=20%\n# \xff\n", .written_text = (char *) "[Service]\nCPUQuota=50%\n",
        .dropin_path = (char *) "/run/systemd/system.control/a\\x2db.service.d/50-CPUQuota.conf",
        .period_written_text = (char *) "[Service]\nCPUQuotaPeriodSec=100ms\n", .period_dropin_path = (char *) "/run/p",
};

static void assert_same(const LedgerRecord *a, const LedgerRecord *b) {
        assert_non_null(a);
        assert_int_equal(a->kind, b->kind);
        assert_true(streq_null(a->key, b->key));
        assert_int_equal(a->inode, b->inode);
        assert_int_equal(a->tid, b->tid);
        assert_int_equal(a->start_ticks, b->start_ticks);
        assert_true(bandwidth_equal(&a->original, &b->original));
        assert_true(bandwidth_equal(&a->written, &b->written));
        assert_int_equal(a->has_written, b->has_written);
        assert_int_equal(a->original_number, b->original_number);
        assert_int_equal(a->written_number, b->written_number);
        assert_true(streq_null(a->original_text, b->original_text));
        assert_true(streq_null(a->written_text, b->written_text));
        assert_true(streq_null(a->dropin_path, b->dropin_path));
        assert_true(streq_null(a->period_original_text, b->period_original_text));
        assert_true(streq_null(a->period_written_text, b->period_written_text));
        assert_true(streq_null(a->period_dropin_path, b->period_dropin_path));
}

static void test_records(void **state) {
        int dir = scratch_open();
        Ledger *l = open_ledger(dir);
        LedgerRecord all[] = {
                quota,
                { .kind = LEDGER_BANDWIDTH, .key = (char *) "/w/\xff\x1b%s", .inode = UINT64_MAX - 1, .original = { 20000, 100000, 20000 } },
                { .kind = LEDGER_LATENCY_FILE, .key = (char *) "/x", .inode = 5, .original_number = -20, .written_number = 19, .has_written = true },
                { .kind = LEDGER_CORE_TAG, .key = (char *) "/x", .inode = 5, .original_number = INT64_MIN, .written_number = INT64_MAX },
                { .kind = LEDGER_THREAD_COOKIE, .tid = 12, .start_ticks = 99 },
                { .kind = LEDGER_SWITCH, .key = (char *) "LATENCY_NICE", .original_text = (char *) "" },
                { .kind = LEDGER_UNIT_WEIGHT, .key = (char *) "a.service", .original_number = -1, .written_number = 100 },
                thread(7),
        };

        assert_int_equal(ledger_put(l, all, ELEMENTSOF(all)), 0);
        for (unsigned round = 0; round < 2; round++) {
                for (size_t i = 0; i < ELEMENTSOF(all); i++)
                        assert_same(ledger_find(l, all[i].kind, all[i].key, all[i].inode, all[i].tid, all[i].start_ticks), &all[i]);
                assert_int_equal(ledger_count(l, _LEDGER_KIND_MAX), ELEMENTSOF(all));
                assert_int_equal(ledger_count(l, LEDGER_SWITCH), 1);
                /* Other identities. */
                assert_null(ledger_find(l, LEDGER_LATENCY_FILE, "/x", 6, 0, 0));
                assert_null(ledger_find(l, LEDGER_LATENCY_FILE, "/y", 5, 0, 0));
                assert_null(ledger_find(l, LEDGER_THREAD_SLICE, NULL, 0, 7, 1008));
                assert_null(ledger_find(l, LEDGER_THREAD_COOKIE, NULL, 0, 7, 1007));
                assert_non_null(ledger_find(l, LEDGER_THREAD_SLICE, NULL, 0, 7, 1007));
                assert_null(ledger_find(l, LEDGER_UNIT_QUOTA, NULL, 0, 0, 0));
                ledger_close(l);
                l = open_ledger(dir);
        }

        /* Bad ones change nothing, good ones beside them included. */
        all[1].key = NULL;
        all[0].original_number = 5;
        assert_int_equal(ledger_put(l, all, 2), -EINVAL);
        assert_int_equal(ledger_find(l, LEDGER_UNIT_QUOTA, quota.key, 0, 0, 0)->original_number, 0);
        all[7].tid = 0;
        assert_int_equal(ledger_put(l, &all[7], 1), -EINVAL);
        all[7].kind = _LEDGER_KIND_MAX;
        assert_int_equal(ledger_drop(l, &all[7]), -EINVAL);
        ledger_close(l);
        scratch_close(dir);
}

static int count_one(const LedgerRecord *r, void *userdata) {
        ++*(size_t *) userdata;
        return 0;
}

static void test_changes(void **state) {
        int dir = scratch_open();
        Ledger *l = open_ledger(dir);
        LedgerRecord a = thread(1), b = quota, c = thread(2);
        size_t n = 0;

        assert_int_equal(ledger_note_written(l, &a), -ENOENT);
        assert_int_equal(ledger_put(l, &a, 1), 0);
        a.written_number = 5;
        a.original_number = 77; /* not taken by a note */
        assert_int_equal(ledger_note_written(l, &a), 0);
        a.original_number = 0;
        assert_same(ledger_find(l, a.kind, NULL, 0, 1, 1001), &a);

        /* A note rides on the next put. */
        assert_int_equal(ledger_put(l, &b, 1), 0);
        {
                Ledger *copy = open_boot(dir, BOOT, NULL, NULL);

                assert_same(ledger_find(copy, a.kind, NULL, 0, 1, 1001), &a);
                ledger_close(copy);
        }
        b.written_text = (char *) "other";
        b.written.quota_usec = 1000;
        assert_int_equal(ledger_note_written(l, &b), 0);
        assert_int_equal(ledger_sync(l), 0);
        assert_int_equal(ledger_put(l, &c, 1), 0);
        /* A put of what ledger_find gave. */
        assert_int_equal(ledger_put(l, ledger_find(l, b.kind, b.key, 0, 0, 0), 1), 0);
        assert_same(ledger_find(l, b.kind, b.key, 0, 0, 0), &b);
        /* A drop of what ledger_find gave, twice in one call. */
        {
                LedgerRecord twice[2] = { *ledger_find(l, b.kind, b.key, 0, 0, 0) };

                twice[1] = twice[0];
                assert_int_equal(ledger_drop_many(l, twice, 2), 0);
        }
        assert_null(ledger_find(l, b.kind, b.key, 0, 0, 0));
        assert_int_equal(ledger_drop(l, &b), 0);
        assert_int_equal(ledger_for_each(l, _LEDGER_KIND_MAX, count_one, &n), 0);
        assert_int_equal(n, 2);
        ledger_close(l);

        l = open_ledger(dir);
        assert_null(ledger_find(l, b.kind, b.key, 0, 0, 0));
        assert_same(ledger_find(l, a.kind, NULL, 0, 1, 1001), &a);
        assert_int_equal(ledger_count(l, _LEDGER_KIND_MAX), 2);
        /* The note of a record that was dropped is not a record. */
        a.written_number = 6;
        assert_int_equal(ledger_note_written(l, &a), 0);
        assert_int_equal(ledger_drop(l, &a), 0);
        assert_int_equal(ledger_note_written(l, &c), 0);
        ledger_close(l);
        l = open_ledger(dir);
        assert_int_equal(ledger_count(l, _LEDGER_KIND_MAX), 1);
        ledger_close(l);
        scratch_close(dir);
}

static void test_boot(void **state) {
        int dir = scratch_open();
        Ledger *l = open_ledger(dir);
        LedgerRecord a = thread(1), b = thread(2);
        size_t stale = 0, damaged = 99;

        assert_int_equal(ledger_put(l, &a, 1), 0);
        assert_int_equal(ledger_put(l, &b, 1), 0);
        ledger_close(l);
        l = open_boot(dir, OTHER_BOOT, &stale, &damaged);
        assert_int_equal(stale, 2);
        assert_int_equal(damaged, 0);
        assert_int_equal(ledger_count(l, _LEDGER_KIND_MAX), 0);
        assert_int_equal(ledger_put(l, &b, 1), 0);
        ledger_close(l);
        l = open_boot(dir, OTHER_BOOT, &stale, &damaged);
        assert_int_equal(stale, 0);
        assert_int_equal(ledger_count(l, _LEDGER_KIND_MAX), 1);
        ledger_close(l);
        l = NULL;
        assert_int_equal(ledger_open(dir, "--", NULL, NULL, &l), -EINVAL);
        scratch_close(dir);
}

static void test_damage(void **state) {
        int dir = scratch_open();
        Ledger *l = open_ledger(dir);
        LedgerRecord a = thread(1), b = thread(2);
        size_t length = 0, damaged = 0;
        char *text;

        assert_int_equal(ledger_put(l, &a, 1), 0);
        assert_int_equal(ledger_put(l, &b, 1), 0);
        ledger_close(l);
        text = read_raw(dir, "ledger", &length);
        text[30] ^= 1; /* in the first record */
        write_raw(dir, "ledger", text, length);
        free(text);
        l = open_boot(dir, BOOT, NULL, &damaged);
        assert_int_equal(damaged, 1);
        assert_int_equal(ledger_count(l, _LEDGER_KIND_MAX), 1);
        assert_true(file_exists(dir, "ledger.damaged-1"));
        ledger_close(l);
        ledger_close(open_ledger(dir));

        write_raw(dir, "ledger", "cpuclass-log 9\nfuture\n", 22);
        l = open_boot(dir, BOOT, NULL, &damaged);
        assert_int_equal(damaged, 1);
        text = read_raw(dir, "ledger.damaged-2", NULL);
        assert_string_equal(text, "cpuclass-log 9\nfuture\n");
        free(text);
        assert_int_equal(ledger_put(l, &a, 1), 0);
        ledger_close(l);
        ledger_close(open_ledger(dir));
        scratch_close(dir);
}

static void test_disk_errors(void **state) {
        int dir = scratch_open();
        Ledger *l = open_ledger(dir);
        LedgerRecord many[600], a = thread(2000), b = thread(2001);

        for (size_t i = 0; i < ELEMENTSOF(many); i++)
                many[i] = thread((pid_t) i + 1);
        assert_int_equal(ledger_put(l, &a, 1), 0);
        for (unsigned step = 1; step <= 4; step++) { /* three lines and the sync */
                fault_arm(step, -ENOSPC);
                assert_int_equal(ledger_put(l, many, ELEMENTSOF(many)), -ENOSPC);
                fault_disarm();
                assert_int_equal(ledger_count(l, _LEDGER_KIND_MAX), 1);
                fault_arm(1, -ENOSPC);
                assert_int_equal(ledger_drop(l, &a), -ENOSPC);
                fault_disarm();
                assert_same(ledger_find(l, a.kind, NULL, 0, a.tid, a.start_ticks), &a);
        }
        /* After the failed sync the file is made anew by itself. */
        assert_int_equal(ledger_put(l, &b, 1), 0);
        ledger_close(l);
        l = open_ledger(dir);
        assert_int_equal(ledger_count(l, _LEDGER_KIND_MAX), 2);
        ledger_close(l);
        scratch_close(dir);
}

/* Each step that is acknowledged adds a byte to the pipe. */
typedef struct Crash {
        int dir;
        int acknowledged_fd;
} Crash;

static void acknowledge(const Crash *c) {
        if (write(c->acknowledged_fd, "x", 1) != 1)
                abort();
}

static void life(void *userdata) {
        const Crash *c = userdata;
        LedgerRecord many[300];
        Ledger *l = NULL;

        if (ledger_open(c->dir, BOOT, NULL, NULL, &l) < 0)
                abort();
        for (size_t i = 0; i < ELEMENTSOF(many); i++)
                many[i] = thread((pid_t) i + 1);
        if (ledger_put(l, many, ELEMENTSOF(many)) < 0) /* 1 */
                abort();
        acknowledge(c);
        /* Enough churn of one record for compactions to happen. */
        for (unsigned i = 0; i < 1500; i++) {
                LedgerRecord q = quota;

                q.original_number = i + 1;
                if (ledger_put(l, &q, 1) < 0) /* 2 .. 1501 */
                        abort();
                acknowledge(c);
        }
        if (ledger_drop_many(l, many, 150) < 0) /* 1502 */
                abort();
        acknowledge(c);
        ledger_close(l);
}

static void test_crash(void **state) {
        unsigned n_steps, n_deaths = 0;
        bool died = true;

        {
                Crash c = { .dir = scratch_open(), .acknowledged_fd = open("/dev/null", O_WRONLY) };

                fault_arm(0, 0);
                life(&c);
                n_steps = fault_steps;
                fault_disarm();
                close(c.acknowledged_fd);
                scratch_close(c.dir);
        }
        assert_true(n_steps > 3010); /* compactions happened */

        /* Every step at the beginning and the end, and a sample between. */
        for (unsigned at = 1; died; at += at < 40 || at > n_steps - 40 ? 1 : 23) {
                Crash c = { .dir = scratch_open() };
                char bytes[4096];
                int pipe_fd[2];
                ssize_t acknowledged;
                Ledger *l;
                const LedgerRecord *q;

                assert_int_equal(pipe(pipe_fd), 0);
                c.acknowledged_fd = pipe_fd[1];
                died = dies_at(at, life, &c);
                close(pipe_fd[1]);
                acknowledged = read(pipe_fd[0], bytes, sizeof(bytes));
                close(pipe_fd[0]);
                n_deaths += died;

                l = open_ledger(c.dir);
                q = ledger_find(l, LEDGER_UNIT_QUOTA, quota.key, 0, 0, 0);
                if (acknowledged >= 1 && acknowledged < 1502)
                        assert_true(ledger_count(l, LEDGER_THREAD_SLICE) == 300 || (acknowledged == 1501 && ledger_count(l, LEDGER_THREAD_SLICE) == 150));
                if (acknowledged >= 1502)
                        assert_int_equal(ledger_count(l, LEDGER_THREAD_SLICE), 150);
                if (acknowledged >= 2) {
                        ssize_t last = MIN_OF(acknowledged, 1501) - 1;

                        assert_non_null(q);
                        assert_true(q->original_number == last || q->original_number == last + 1);
                }
                for (pid_t tid = 200; tid <= 300 && acknowledged >= 1; tid++)
                        assert_non_null(ledger_find(l, LEDGER_THREAD_SLICE, NULL, 0, tid, 1000 + (uint64_t) tid));
                ledger_close(l);
                assert_int_equal(access(scratch_path, F_OK), 0);
                scratch_close(c.dir);
        }
        assert_true(n_deaths > 90);
}

static double now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* 50,000 threads, churn, and the log stays within bounds. The time is far above what is needed: it only catches a square. */
static void test_many(void **state) {
        const size_t n = 50000;
        int dir = scratch_open();
        Ledger *l = open_ledger(dir);
        LedgerRecord *all = calloc(n, sizeof(*all));
        double begin = now();
        struct stat st;

        assert_non_null(all);
        for (size_t i = 0; i < n; i++)
                all[i] = thread((pid_t) i + 1);
        assert_int_equal(ledger_put(l, all, n), 0);
        assert_int_equal(ledger_count(l, LEDGER_THREAD_SLICE), n);
        /* Most go, in an order that is not the table's; others come into their places. */
        for (size_t i = 0; i < n; i++) {
                size_t j = (i * 7919) % n;
                LedgerRecord t = all[i];

                all[i] = all[j];
                all[j] = t;
        }
        assert_int_equal(ledger_drop_many(l, all, 40000), 0);
        for (size_t i = 0; i < n; i++)
                if ((ledger_find(l, LEDGER_THREAD_SLICE, NULL, 0, all[i].tid, all[i].start_ticks) != NULL) != (i >= 40000))
                        fail_msg("thread %d", all[i].tid);
        for (unsigned round = 0; round < 5; round++) {
                for (size_t i = 0; i < 10000; i++)
                        all[i].start_ticks++;
                assert_int_equal(ledger_put(l, all, 10000), 0);
                assert_int_equal(ledger_drop_many(l, all, 10000), 0);
        }
        ledger_close(l);
        assert_int_equal(fstatat(dir, "ledger", &st, 0), 0);
        assert_true(st.st_size < 10 * 1000 * 1000);
        l = open_ledger(dir);
        assert_int_equal(ledger_count(l, LEDGER_THREAD_SLICE), 10000);
        for (size_t i = 40000; i < n; i++)
                if (!ledger_find(l, LEDGER_THREAD_SLICE, NULL, 0, all[i].tid, all[i].start_ticks))
                        fail_msg("thread %d", all[i].tid);
        ledger_close(l);
        print_message("many: %.2f s\n", now() - begin);
        assert_true(now() - begin < 20);
        free(all);
        scratch_close(dir);
}

/* Random changes against a plain model. */
static void test_model(void **state) {
        enum { N = 64 };
        int64_t model[N] = { 0 }; /* 0: absent, else written_number */
        int dir = scratch_open();
        Ledger *l = open_ledger(dir);
        unsigned seed = 1;

        for (unsigned step = 0; step < 3000; step++) {
                unsigned i = (unsigned) rand_r(&seed) % N, what = (unsigned) rand_r(&seed) % 8;
                LedgerRecord r = { .kind = i % 2 ? LEDGER_BANDWIDTH : LEDGER_UNIT_WEIGHT, .inode = i % 2 ? i / 4 : 0 };
                char key[16];

                (void) snprintf(key, sizeof(key), "/k%u", i / 2);
                r.key = key;
                r.written_number = (int64_t) step + 1;
                if (what < 3) {
                        assert_int_equal(ledger_put(l, &r, 1), 0);
                        model[i] = r.written_number;
                } else if (what < 5) {
                        assert_int_equal(ledger_drop(l, &r), 0);
                        model[i] = 0;
                } else if (what < 7) {
                        assert_int_equal(ledger_note_written(l, &r), model[i] ? 0 : -ENOENT);
                        if (model[i])
                                model[i] = r.written_number;
                } else if (step % 50 == 0) {
                        ledger_close(l);
                        l = open_ledger(dir);
                }
                for (unsigned k = 0; k < N && step % 16 == 0; k++) {
                        const LedgerRecord *found;

                        (void) snprintf(key, sizeof(key), "/k%u", k / 2);
                        found = ledger_find(l, k % 2 ? LEDGER_BANDWIDTH : LEDGER_UNIT_WEIGHT, key, k % 2 ? k / 4 : 0, 0, 0);
                        assert_int_equal(found ? found->written_number : 0, model[k]);
                }
        }
        ledger_close(l);
        scratch_close(dir);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_records),
                cmocka_unit_test(test_changes),
                cmocka_unit_test(test_boot),
                cmocka_unit_test(test_damage),
                cmocka_unit_test(test_disk_errors),
                cmocka_unit_test(test_crash),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_model),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
