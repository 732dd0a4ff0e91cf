/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cookies on the running kernel: most have none (77 then), and what they answer instead is tested everywhere. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/cookie.h"

static bool supported;

static void need_support(void) {
        if (!supported)
                skip();
}

static size_t n_threads(void) {
        DIR *d = opendir("/proc/self/task");
        size_t n = 0;

        assert_non_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n - 2;
}

/* A joined thread is still listed for a moment after the join. */
static void assert_threads(size_t n) {
        for (unsigned i = 0; i < 1000 && n_threads() != n; i++)
                usleep(1000);
        assert_int_equal(n_threads(), n);
}

static void test_probe(void **state) {
        int error = 0, r = cookie_probe(&error);
        uint64_t own = 77;

        assert_true(r == 0 || r == 1);
        supported = r == 1;
        if (r == 1) {
                /* The caller has none after it. */
                assert_int_equal(cookie_read(0, &own), 0);
                assert_int_equal(own, 0);
        } else {
                CookieHolder *h = NULL;
                int expected = error == ENODEV ? -ENODEV : -EOPNOTSUPP;

                print_message("no cookies here: %s\n", strerror(error));
                assert_true(error == ENODEV || error == EINVAL);
                assert_int_equal(cookie_read(0, &own), expected);
                assert_int_equal(own, 77);
                assert_int_equal(cookie_holder_new(&h), expected);
                assert_int_equal(cookie_holder_adopt(getpid(), &h), expected);
                assert_null(h);
                assert_int_equal(cookie_clear(getpid(), COOKIE_SCOPE_THREAD), expected);
        }
        assert_null(cookie_holder_free(NULL));
        assert_threads(1);
}

/* A process with three threads that waits to be ended; it tells the ids of its threads. */
typedef struct Target {
        pid_t pid, tids[2];
        int done;
} Target;

static void *idle_thread(void *userdata) {
        pid_t tid = (pid_t) syscall(SYS_gettid);

        (void) !write(*(int *) userdata, &tid, sizeof(tid));
        for (;;)
                pause();
        return NULL;
}

static Target target_start(void) {
        int up[2], down[2];
        Target t = {};

        assert_int_equal(pipe(up), 0);
        assert_int_equal(pipe(down), 0);
        t.pid = fork();
        if (t.pid == 0) {
                pthread_t threads[2];
                char c;

                close(down[1]);
                for (size_t i = 0; i < 2; i++)
                        (void) pthread_create(&threads[i], NULL, idle_thread, &up[1]);
                (void) !read(down[0], &c, 1);
                _exit(0);
        }
        close(up[1]);
        close(down[0]);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(read(up[0], &t.tids[i], sizeof(pid_t)), sizeof(pid_t));
        close(up[0]);
        t.done = down[1];
        return t;
}

static void target_end(Target *t) {
        close(t->done);
        assert_int_equal(waitpid(t->pid, NULL, 0), t->pid);
}

static uint64_t cookie_of(pid_t tid) {
        uint64_t id = 1;

        assert_int_equal(cookie_read(tid, &id), 0);
        return id;
}

static void test_scopes(void **state) {
        CookieHolder *h = NULL;
        Target t;

        need_support();
        t = target_start();
        assert_int_equal(cookie_holder_new(&h), 0);
        assert_true(cookie_holder_id(h) != 0);
        assert_int_equal(n_threads(), 2);
        assert_int_equal(cookie_of(0), 0);

        assert_int_equal(cookie_share_to(h, t.tids[0], COOKIE_SCOPE_THREAD), 0);
        assert_int_equal(cookie_of(t.tids[0]), cookie_holder_id(h));
        assert_int_equal(cookie_of(t.tids[1]), 0);
        assert_int_equal(cookie_of(t.pid), 0);

        assert_int_equal(cookie_share_to(h, t.pid, COOKIE_SCOPE_PROCESS), 0);
        assert_int_equal(cookie_of(t.tids[1]), cookie_holder_id(h));
        assert_int_equal(cookie_of(t.pid), cookie_holder_id(h));

        assert_int_equal(cookie_clear(t.tids[1], COOKIE_SCOPE_THREAD), 0);
        assert_int_equal(cookie_of(t.tids[1]), 0);
        assert_int_equal(cookie_of(t.pid), cookie_holder_id(h));
        assert_int_equal(cookie_clear(t.pid, COOKIE_SCOPE_PROCESS), 0);
        assert_int_equal(cookie_of(t.pid), 0);
        assert_int_equal(cookie_of(t.tids[0]), 0);

        target_end(&t);
        assert_int_equal(cookie_share_to(h, t.pid, COOKIE_SCOPE_PROCESS), -ESRCH);
        assert_int_equal(cookie_share_to(h, 0, COOKIE_SCOPE_THREAD), -ESRCH);
        assert_int_equal(cookie_clear(t.pid, COOKIE_SCOPE_PROCESS), -ESRCH);
        assert_int_equal(cookie_of(0), 0);
        assert_null(cookie_holder_free(h));
        assert_threads(1);
}

static void test_two(void **state) {
        CookieHolder *a = NULL, *b = NULL;
        Target t;

        need_support();
        t = target_start();
        assert_int_equal(cookie_holder_new(&a), 0);
        assert_int_equal(cookie_holder_new(&b), 0);
        assert_int_not_equal(cookie_holder_id(a), cookie_holder_id(b));
        assert_int_equal(cookie_share_to(a, t.pid, COOKIE_SCOPE_PROCESS), 0);
        assert_int_equal(cookie_share_to(b, t.tids[0], COOKIE_SCOPE_THREAD), 0);
        assert_int_equal(cookie_of(t.pid), cookie_holder_id(a));
        assert_int_equal(cookie_of(t.tids[0]), cookie_holder_id(b));
        cookie_holder_free(a);
        cookie_holder_free(b);
        target_end(&t);
}

/* As after a restart: the holder is gone, the cookie lives in its threads, a new holder takes it over. */
static void test_adopt(void **state) {
        CookieHolder *h = NULL, *again = NULL;
        uint64_t id;
        Target t;

        need_support();
        t = target_start();
        assert_int_equal(cookie_holder_adopt(t.pid, &again), -ENODATA);
        assert_int_equal(cookie_holder_new(&h), 0);
        id = cookie_holder_id(h);
        assert_int_equal(cookie_share_to(h, t.tids[0], COOKIE_SCOPE_THREAD), 0);
        cookie_holder_free(h);
        assert_int_equal(cookie_of(t.tids[0]), id);
        assert_int_equal(cookie_holder_adopt(t.tids[0], &again), 0);
        assert_int_equal(cookie_holder_id(again), id);
        assert_int_equal(cookie_share_to(again, t.tids[1], COOKIE_SCOPE_THREAD), 0);
        assert_int_equal(cookie_of(t.tids[1]), id);
        assert_int_equal(cookie_of(0), 0);
        cookie_holder_free(again);
        again = NULL;
        target_end(&t);
        assert_int_equal(cookie_holder_adopt(t.pid, &again), -ESRCH);
        assert_null(again);
        assert_threads(1);
}

/* We must not spread a cookie that we were started with. */
static void *with_cookie(void *userdata) {
        CookieHolder *h = userdata;
        int *result = malloc(sizeof(int));

        *result = cookie_share_to(h, (pid_t) syscall(SYS_gettid), COOKIE_SCOPE_THREAD);
        if (*result == 0)
                *result = cookie_clear(getpid(), COOKIE_SCOPE_PROCESS);
        return result;
}

static void test_own_cookie(void **state) {
        CookieHolder *h = NULL;
        void *result;
        pthread_t thread;

        need_support();
        assert_int_equal(cookie_holder_new(&h), 0);
        assert_int_equal(pthread_create(&thread, NULL, with_cookie, h), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_int_equal(*(int *) result, -EBUSY);
        free(result);
        assert_int_equal(cookie_of(0), 0);
        cookie_holder_free(h);
}

/* With all signals blocked, as in the daemon, and many holders. */
static void test_many(void **state) {
        CookieHolder *h[64];
        sigset_t all, old;
        Target t;

        need_support();
        sigfillset(&all);
        assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &old), 0);
        t = target_start();
        for (size_t i = 0; i < ELEMENTSOF(h); i++)
                assert_int_equal(cookie_holder_new(&h[i]), 0);
        for (unsigned i = 0; i < 1000; i++) {
                CookieHolder *one = h[i % ELEMENTSOF(h)];

                assert_int_equal(cookie_share_to(one, t.pid, COOKIE_SCOPE_PROCESS), 0);
                assert_int_equal(cookie_of(t.tids[1]), cookie_holder_id(one));
        }
        for (size_t i = 0; i < ELEMENTSOF(h); i++)
                cookie_holder_free(h[i]);
        target_end(&t);
        assert_threads(1);
        assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
}

int main(void) {
        const struct CMUnitTest probe[] = { cmocka_unit_test(test_probe) };
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_scopes), cmocka_unit_test(test_two), cmocka_unit_test(test_adopt), cmocka_unit_test(test_own_cookie), cmocka_unit_test(test_many),
        };
        int r = cmocka_run_group_tests_name("probe", probe, NULL, NULL);

        if (r != 0)
                return r;
        return supported ? cmocka_run_group_tests_name("cookies", tests, NULL, NULL) : 77;
}
