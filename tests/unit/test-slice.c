/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Slices: on a made-up kernel that does what kernel/sched/syscalls.c does (and in which others renice, reset and change policies at the worst moment),
 * and on the threads of this very process where the running kernel takes slices. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/slice.h"

#define BASE UINT64_C(2800000)
#define RESET_ON_FORK UINT64_C(0x01)
#define KEEP_POLICY UINT64_C(0x08)
#define CLAMP_FLAGS UINT64_C(0x60)
#define DEADLINE 6

/* ---- a made-up kernel with one thread, number 7 ---- */

typedef struct Kernel {
        ThreadAttributes a;
        uint64_t base;
        bool old;                 /* before 6.12: no slice in either direction */
        int refuse;               /* errno for setattr */
        unsigned n_get, n_set;
        /* Something happens before the call of that number (counted over both calls, 1, 2, ...). */
        unsigned meddle_at;
        void (*meddle)(struct Kernel *k);
        bool always;              /* from then on before each get */
        bool dead;
} Kernel;

static void maybe_meddle(Kernel *k, bool get) {
        unsigned now = k->n_get + k->n_set;

        if (k->meddle && (now == k->meddle_at || (k->always && get && now > k->meddle_at)))
                k->meddle(k);
}

static int fake_getattr(pid_t tid, ThreadAttributes *ret, void *userdata) {
        Kernel *k = userdata;

        k->n_get++;
        maybe_meddle(k, true);
        if (tid != 7 || k->dead)
                return -ESRCH;
        *ret = k->a;
        ret->size = 56;
        if (k->old && ret->sched_policy != DEADLINE)
                ret->sched_runtime = 0;
        return 0;
}

static int fake_setattr(pid_t tid, const ThreadAttributes *a, void *userdata) {
        Kernel *k = userdata;
        uint32_t policy;

        k->n_set++;
        maybe_meddle(k, false);
        if (tid != 7 || k->dead)
                return -ESRCH;
        if (k->refuse)
                return k->refuse;
        assert_int_equal(a->size, 56);
        /* The clamps are left alone by not naming them. */
        assert_int_equal(a->sched_flags & CLAMP_FLAGS, 0);
        policy = a->sched_flags & KEEP_POLICY ? k->a.sched_policy : a->sched_policy;
        if (policy == DEADLINE)
                return -EINVAL;
        if ((policy == SCHED_FIFO || policy == SCHED_RR) != (a->sched_priority != 0))
                return -EINVAL;
        if (!(a->sched_flags & KEEP_POLICY))
                k->a.sched_flags = a->sched_flags & RESET_ON_FORK;
        k->a.sched_policy = policy;
        if (policy == SCHED_OTHER || policy == SCHED_BATCH) {
                k->a.sched_nice = a->sched_nice;
                if (!k->old)
                        k->a.sched_runtime = a->sched_runtime == 0 ? k->base : CLAMP_TO(a->sched_runtime, UINT64_C(100000), UINT64_C(100000000));
        }
        return 0;
}

#define OPS(k) (&(SchedOps) { fake_getattr, fake_setattr, (k) })

static Kernel ordinary(void) {
        return (Kernel) { .a = { .sched_policy = SCHED_OTHER, .sched_nice = 3, .sched_runtime = BASE, .sched_util_min = 100, .sched_util_max = 900 }, .base = BASE };
}

static void test_apply(void **state) {
        static const uint32_t policies[] = { SCHED_OTHER, SCHED_BATCH };

        for (size_t i = 0; i < ELEMENTSOF(policies); i++)
                for (uint64_t flags = 0; flags <= RESET_ON_FORK; flags++)
                        for (int nice = -20; nice <= 19; nice += 13) {
                                Kernel k = ordinary();
                                uint64_t before = 1, slice = 1;
                                bool race = true, takes = false;

                                k.a.sched_policy = policies[i];
                                k.a.sched_flags = flags;
                                k.a.sched_nice = nice;
                                assert_int_equal(slice_apply(OPS(&k), 7, 500000, BASE, &before, &race), SLICE_SET);
                                assert_int_equal(before, 0);
                                assert_false(race);
                                assert_int_equal(k.a.sched_runtime, 500000);
                                assert_int_equal(k.a.sched_policy, policies[i]);
                                assert_int_equal(k.a.sched_flags, flags);
                                assert_int_equal(k.a.sched_nice, nice);
                                assert_int_equal(k.a.sched_util_min, 100);
                                assert_int_equal(k.a.sched_util_max, 900);
                                assert_int_equal(slice_read(OPS(&k), 7, BASE, &slice, &takes), 0);
                                assert_int_equal(slice, 500000);
                                assert_true(takes);

                                /* Again: nothing is written. */
                                assert_int_equal(slice_apply(OPS(&k), 7, 500000, BASE, &before, NULL), SLICE_ALREADY);
                                assert_int_equal(before, 500000);
                                assert_int_equal(k.n_set, 1);

                                assert_int_equal(slice_apply(OPS(&k), 7, 0, BASE, &before, NULL), SLICE_SET);
                                assert_int_equal(before, 500000);
                                assert_int_equal(k.a.sched_runtime, BASE);
                                assert_int_equal(slice_apply(OPS(&k), 7, 0, BASE, &before, NULL), SLICE_ALREADY);
                                assert_int_equal(before, 0);
                                assert_int_equal(k.n_set, 2);
                                assert_int_equal(k.a.sched_nice, nice);
                        }
}

static void test_clamped(void **state) {
        Kernel k = ordinary();

        assert_int_equal(slice_apply(OPS(&k), 7, 1, BASE, NULL, NULL), SLICE_SET);
        assert_int_equal(k.a.sched_runtime, 100000);
        assert_int_equal(slice_apply(OPS(&k), 7, UINT64_MAX, BASE, NULL, NULL), SLICE_SET);
        assert_int_equal(k.a.sched_runtime, 100000000);
        assert_int_equal(slice_apply(OPS(&k), 7, 100000001, BASE, NULL, NULL), SLICE_ALREADY);
}

static void test_other_policies(void **state) {
        static const uint32_t policies[] = { SCHED_FIFO, SCHED_RR, SCHED_IDLE, DEADLINE, 7 };

        for (size_t i = 0; i < ELEMENTSOF(policies); i++) {
                uint64_t before = 1, slice = 1;
                bool takes = true;
                Kernel k = ordinary();
                ThreadAttributes was;

                k.a.sched_policy = policies[i];
                k.a.sched_priority = i < 2 ? 10 : 0;
                k.a.sched_runtime = policies[i] == DEADLINE ? 10000000 : BASE;
                was = k.a;
                assert_int_equal(slice_apply(OPS(&k), 7, 500000, BASE, &before, NULL), SLICE_NOT_TAKEN);
                assert_int_equal(slice_apply(OPS(&k), 7, 0, BASE, &before, NULL), SLICE_NOT_TAKEN);
                assert_int_equal(before, 0);
                assert_int_equal(k.n_set, 0);
                assert_memory_equal(&was, &k.a, sizeof(was));
                assert_int_equal(slice_read(OPS(&k), 7, BASE, &slice, &takes), 0);
                assert_false(takes);
                assert_int_equal(slice, 0);
        }
}

static void test_old_kernel(void **state) {
        Kernel k = ordinary();

        k.old = true;
        assert_int_equal(slice_apply(OPS(&k), 7, 500000, BASE, NULL, NULL), SLICE_IGNORED);
        assert_int_equal(k.a.sched_nice, 3);
        assert_true(k.n_set <= 2);
        /* There is no custom slice to take away. */
        assert_int_equal(slice_apply(OPS(&k), 7, 0, BASE, NULL, NULL), SLICE_ALREADY);
}

static void test_errors(void **state) {
        uint64_t before = 77;
        bool race = true;
        Kernel k;

        k = ordinary();
        k.refuse = -EPERM;
        assert_int_equal(slice_apply(OPS(&k), 7, 500000, BASE, &before, &race), -EPERM);
        assert_int_equal(slice_apply(OPS(&k), 8, 500000, BASE, &before, &race), -ESRCH);
        k.refuse = -EINVAL;
        assert_int_equal(slice_apply(OPS(&k), 7, 500000, BASE, &before, &race), -EINVAL);
        assert_int_equal(before, 77);
        assert_true(race);
        assert_int_equal(slice_read(OPS(&k), 8, BASE, &before, NULL), -ESRCH);
}

static void renice(Kernel *k) {
        k->a.sched_nice = 12;
}
static void renice_each_time(Kernel *k) {
        k->a.sched_nice = k->a.sched_nice == 1 ? 2 : 1;
        k->a.sched_runtime = k->base;
}
static void to_fifo(Kernel *k) {
        k->a.sched_policy = SCHED_FIFO;
        k->a.sched_priority = 5;
}
static void to_deadline(Kernel *k) {
        k->a.sched_policy = DEADLINE;
}
static void to_batch(Kernel *k) {
        k->a.sched_policy = SCHED_BATCH;
}
static void to_idle(Kernel *k) {
        k->a.sched_policy = SCHED_IDLE;
}
static void set_reset_on_fork(Kernel *k) {
        k->a.sched_flags = RESET_ON_FORK;
}
static void reset_slice(Kernel *k) {
        k->a.sched_runtime = k->base;
}
static void chrt_other(Kernel *k) { /* chrt -o -p 0: nice as it is, slice 0 */
        k->a.sched_runtime = k->base;
        k->a.sched_nice = 4;
}
static void die(Kernel *k) {
        k->dead = true;
}

/* Call 1 reads, 2 writes, 3 reads again. */
static void test_races(void **state) {
        static const struct {
                void (*meddle)(Kernel *k);
                unsigned at;
                int outcome;
                uint32_t policy;
                uint64_t flags, runtime;
                int32_t nice;
                bool race;
        } cases[] = {
                /* after our write: the newer word stays, the slice with it */
                { renice, 3, SLICE_SET, SCHED_OTHER, 0, 500000, 12, true },
                { to_batch, 3, SLICE_SET, SCHED_BATCH, 0, 500000, 3, true },
                { set_reset_on_fork, 3, SLICE_SET, SCHED_OTHER, RESET_ON_FORK, 500000, 3, true },
                { to_fifo, 3, SLICE_NOT_TAKEN, SCHED_FIFO, 0, 500000, 3, true },
                { reset_slice, 3, SLICE_SET, SCHED_OTHER, 0, 500000, 3, false },
                { chrt_other, 3, SLICE_SET, SCHED_OTHER, 0, 500000, 4, true },
                /* between our read and our write: a stale copy of ours must not undo it */
                { to_batch, 2, SLICE_SET, SCHED_BATCH, 0, 500000, 3, true },
                { set_reset_on_fork, 2, SLICE_SET, SCHED_OTHER, RESET_ON_FORK, 500000, 3, true },
                { to_fifo, 2, SLICE_NOT_TAKEN, SCHED_FIFO, 0, BASE, 3, true },
                { to_deadline, 2, SLICE_NOT_TAKEN, DEADLINE, 0, BASE, 3, true },
                { to_idle, 2, SLICE_NOT_TAKEN, SCHED_IDLE, 0, BASE, 3, true },
                { die, 2, -ESRCH, SCHED_OTHER, 0, BASE, 3, false },
                { die, 3, -ESRCH, SCHED_OTHER, 0, 500000, 3, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Kernel k = ordinary();
                bool race = false;

                k.meddle = cases[i].meddle;
                k.meddle_at = cases[i].at;
                print_message("case %zu\n", i);
                assert_int_equal(slice_apply(OPS(&k), 7, 500000, BASE, NULL, &race), cases[i].outcome);
                assert_int_equal(k.a.sched_policy, cases[i].policy);
                assert_int_equal(k.a.sched_flags, cases[i].flags);
                assert_int_equal(k.a.sched_runtime, cases[i].runtime);
                assert_int_equal(k.a.sched_nice, cases[i].nice);
                assert_int_equal(race, cases[i].race);
        }
}

/* Somebody who changes the thread for ever does not keep us. */
static void test_endless_race(void **state) {
        Kernel k = ordinary();
        bool race = false;

        k.meddle = renice_each_time;
        k.meddle_at = 3;
        k.always = true;
        assert_true(slice_apply(OPS(&k), 7, 500000, BASE, NULL, &race) >= 0);
        assert_true(race);
        assert_true(k.n_set <= 8);
}

/* The kernel's base slice grew since we were told: a reset is a reset. */
static void test_base_moved(void **state) {
        Kernel k = ordinary();

        k.a.sched_runtime = 500000;
        k.base = 3500000;
        assert_int_equal(slice_apply(OPS(&k), 7, 0, BASE, NULL, NULL), SLICE_SET);
        assert_int_equal(k.a.sched_runtime, 3500000);
        assert_int_equal(slice_apply(OPS(&k), 7, 0, BASE, NULL, NULL), SLICE_ALREADY);
}

/* ---- this process, this kernel ---- */

static void get_own(ThreadAttributes *ret) {
        assert_int_equal(sched_ops_kernel.getattr(0, ret, NULL), 0);
}

static uint64_t probed_base(void) {
        ThreadAttributes before, after;
        uint64_t base = 0;
        int r;

        get_own(&before);
        r = slice_probe(&base);
        get_own(&after);
        assert_memory_equal(&before, &after, sizeof(before));
        if (r == -EPERM || r == -EACCES || r == -ENOSYS)
                skip(); /* a container's filter */
        assert_true(r >= 0);
        if (r == 0) {
                assert_int_equal(base, 0);
                print_message("this kernel ignores custom slices\n");
                skip();
        }
        assert_true(base >= 100000 && base <= 100000000);
        return base;
}

static void test_probe(void **state) {
        print_message("base slice %llu ns\n", (unsigned long long) probed_base());
}

/* Each in a child: what a thread became can't be taken back by an ordinary user. */
static void in_child(int (*fn)(uint64_t base), uint64_t base) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(fn(base));
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                skip();
        assert_int_equal(WEXITSTATUS(status), 0);
}

static int set_policy(uint32_t policy, uint32_t priority, int nice, uint64_t flags) {
        ThreadAttributes a = { .size = sizeof(a), .sched_policy = policy, .sched_priority = priority, .sched_nice = nice, .sched_flags = flags };

        return sched_ops_kernel.setattr(0, &a, NULL);
}

#define CHECK(x)            \
        do {                \
                if (!(x))   \
                        return __LINE__ % 70 + 1; \
        } while (0)

static int check_untouched(uint32_t policy, uint32_t priority, uint64_t flags, bool takes, uint64_t base) {
        ThreadAttributes before, after;
        bool race = false;
        int r;

        r = set_policy(policy, priority, 5, flags);
        if (r == -EPERM)
                return 77;
        CHECK(r == 0);
        CHECK(sched_ops_kernel.getattr(0, &before, NULL) == 0);
        r = slice_apply(NULL, (pid_t) syscall(SYS_gettid), base / 2, base, NULL, &race);
        CHECK(r == (takes ? SLICE_SET : SLICE_NOT_TAKEN));
        CHECK(!race);
        CHECK(sched_ops_kernel.getattr(0, &after, NULL) == 0);
        CHECK(after.sched_policy == policy && after.sched_priority == priority && after.sched_flags == before.sched_flags);
        CHECK(after.sched_nice == before.sched_nice && after.sched_util_min == before.sched_util_min && after.sched_util_max == before.sched_util_max);
        CHECK(after.sched_runtime == (takes ? base / 2 : before.sched_runtime));
        CHECK(!takes || getpriority(PRIO_PROCESS, 0) == 5);
        if (takes) {
                CHECK(slice_apply(NULL, (pid_t) syscall(SYS_gettid), 0, base, NULL, NULL) == SLICE_SET);
                CHECK(sched_ops_kernel.getattr(0, &after, NULL) == 0);
                CHECK(memcmp(&after, &before, sizeof(after)) == 0);
        }
        return 0;
}

static int child_other(uint64_t base) {
        return check_untouched(SCHED_OTHER, 0, 0, true, base);
}
static int child_other_reset(uint64_t base) {
        return check_untouched(SCHED_OTHER, 0, RESET_ON_FORK, true, base);
}
static int child_batch(uint64_t base) {
        return check_untouched(SCHED_BATCH, 0, RESET_ON_FORK, true, base);
}
static int child_idle(uint64_t base) {
        return check_untouched(SCHED_IDLE, 0, 0, false, base);
}
static int child_fifo(uint64_t base) {
        return check_untouched(SCHED_FIFO, 1, RESET_ON_FORK, false, base);
}
static int child_rr(uint64_t base) {
        return check_untouched(SCHED_RR, 1, 0, false, base);
}
/* A user's clamps survive. */
static int child_clamps(uint64_t base) {
        ThreadAttributes a = { .size = sizeof(a), .sched_policy = SCHED_OTHER, .sched_flags = CLAMP_FLAGS, .sched_util_min = 111, .sched_util_max = 777 };
        int r = sched_ops_kernel.setattr(0, &a, NULL);

        if (r == -EOPNOTSUPP || r == -EINVAL || r == -EPERM)
                return 77; /* CONFIG_UCLAMP_TASK */
        CHECK(r == 0);
        CHECK(slice_apply(NULL, getpid(), base / 2, base, NULL, NULL) == SLICE_SET);
        CHECK(sched_ops_kernel.getattr(0, &a, NULL) == 0);
        CHECK(a.sched_util_min == 111 && a.sched_util_max == 777 && a.sched_runtime == base / 2);
        return 0;
}

static void test_real_other(void **state) {
        in_child(child_other, probed_base());
}
static void test_real_other_reset(void **state) {
        in_child(child_other_reset, probed_base());
}
static void test_real_batch(void **state) {
        in_child(child_batch, probed_base());
}
static void test_real_idle(void **state) {
        in_child(child_idle, probed_base());
}
static void test_real_fifo(void **state) {
        in_child(child_fifo, probed_base());
}
static void test_real_rr(void **state) {
        in_child(child_rr, probed_base());
}
static void test_real_clamps(void **state) {
        in_child(child_clamps, probed_base());
}

/* Two threads: one renices itself up and down, the other gives it slices. How many renices fall into the one gap that can't be closed is told; once
 * the renicing is over, the last word stays whatever we write after it. */
static bool renicer_goes_on;
static pid_t renicer_tid;
static unsigned n_renices, n_lost;

static void *renicer(void *userdata) {
        pid_t self = (pid_t) syscall(SYS_gettid);

        __atomic_store_n(&renicer_tid, self, __ATOMIC_RELEASE);
        for (; __atomic_load_n(&renicer_goes_on, __ATOMIC_ACQUIRE); n_renices++) {
                (void) setpriority(PRIO_PROCESS, (id_t) self, (int) (n_renices % 2));
                n_lost += getpriority(PRIO_PROCESS, (id_t) self) != (int) (n_renices % 2);
        }
        return NULL;
}

static int child_renice_storm(uint64_t base) {
        ThreadAttributes a;
        unsigned n_races = 0;
        pthread_t thread;
        pid_t tid;

        __atomic_store_n(&renicer_goes_on, true, __ATOMIC_RELEASE);
        CHECK(pthread_create(&thread, NULL, renicer, NULL) == 0);
        while ((tid = __atomic_load_n(&renicer_tid, __ATOMIC_ACQUIRE)) == 0)
                sched_yield();
        for (unsigned i = 0; i < 20000; i++) {
                bool race = false;

                CHECK(slice_apply(NULL, tid, i % 2 ? base / 2 : base * 2, base, NULL, &race) >= 0);
                n_races += race;
        }
        __atomic_store_n(&renicer_goes_on, false, __ATOMIC_RELEASE);
        CHECK(pthread_join(thread, NULL) == 0);
        fprintf(stderr, "%u renices, %u of them lost; %u races seen at 20000 slices\n", n_renices, n_lost, n_races);

        CHECK(setpriority(PRIO_PROCESS, 0, 7) == 0);
        for (unsigned i = 0; i < 100; i++)
                CHECK(slice_apply(NULL, getpid(), i % 2 ? base / 2 : base * 2, base, NULL, NULL) == SLICE_SET);
        CHECK(sched_ops_kernel.getattr(0, &a, NULL) == 0);
        CHECK(a.sched_nice == 7 && a.sched_policy == SCHED_OTHER && a.sched_runtime == base / 2);
        return 0;
}

static void test_real_renice_storm(void **state) {
        in_child(child_renice_storm, probed_base());
}

/* ---- who a thread is ---- */

static void *tell_identity(void *userdata) {
        uint64_t *times = userdata;
        pid_t tgid = 0;

        if (thread_start_time((pid_t) syscall(SYS_gettid), &times[0]) < 0 || thread_group_of((pid_t) syscall(SYS_gettid), &tgid) < 0 || tgid != getpid())
                times[0] = 0;
        return NULL;
}

static void test_identity(void **state) {
        uint64_t own = 0, again = 0, of_thread = 0;
        pthread_t thread;
        pid_t tgid = 0, pid;
        char name[16] = {};

        assert_int_equal(thread_start_time(getpid(), &own), 0);
        assert_true(own > 0);
        assert_int_equal(thread_group_of(getpid(), &tgid), 0);
        assert_int_equal(tgid, getpid());

        /* A name made to mislead. */
        assert_int_equal(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
        assert_int_equal(pthread_setname_np(pthread_self(), ") S 1\nTgid:\t1"), 0);
        assert_int_equal(thread_start_time(getpid(), &again), 0);
        assert_int_equal(again, own);
        tgid = 0;
        assert_int_equal(thread_group_of(getpid(), &tgid), 0);
        assert_int_equal(tgid, getpid());
        assert_int_equal(pthread_setname_np(pthread_self(), name), 0);

        usleep(30000);
        assert_int_equal(pthread_create(&thread, NULL, tell_identity, &of_thread), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(of_thread > own);

        pid = fork();
        if (pid == 0)
                _exit(0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(thread_start_time(pid, &own), -ESRCH);
        assert_int_equal(thread_group_of(pid, &tgid), -ESRCH);
        assert_int_equal(thread_start_time(0, &own), -ESRCH);
        assert_int_equal(thread_start_time(-5, &own), -ESRCH);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_apply),           cmocka_unit_test(test_clamped),    cmocka_unit_test(test_other_policies), cmocka_unit_test(test_old_kernel),
                cmocka_unit_test(test_errors),          cmocka_unit_test(test_races),      cmocka_unit_test(test_endless_race),   cmocka_unit_test(test_base_moved),
                cmocka_unit_test(test_probe),           cmocka_unit_test(test_real_other), cmocka_unit_test(test_real_other_reset),
                cmocka_unit_test(test_real_batch),      cmocka_unit_test(test_real_idle),  cmocka_unit_test(test_real_fifo),
                cmocka_unit_test(test_real_rr),         cmocka_unit_test(test_real_clamps), cmocka_unit_test(test_real_renice_storm),
                cmocka_unit_test(test_identity),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
