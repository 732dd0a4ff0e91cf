/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread that shares nothing with the loop but the pointer it was given. */

#include <limits.h>
#include <signal.h>

#include "daemon/helper-thread.h"
#include "policies/util.h"

/* A cookie's holder lives as long as its cookie: what its stack may take counts for each. */
#define STACK_SIZE (64 * 1024)

int helper_thread_start(pthread_t *ret, void *(*fn)(void *userdata), void *userdata) {
        size_t least = (size_t) sysconf(_SC_THREAD_STACK_MIN);
        pthread_attr_t attr;
        sigset_t all, old;
        int r;

        r = pthread_attr_init(&attr);
        if (r != 0)
                return -r;
        r = pthread_attr_setstacksize(&attr, MAX_OF(least, (size_t) STACK_SIZE));
        if (r == 0) {
                (void) sigfillset(&all);
                r = pthread_sigmask(SIG_SETMASK, &all, &old);
        }
        if (r == 0) {
                r = pthread_create(ret, &attr, fn, userdata);
                (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        }
        (void) pthread_attr_destroy(&attr);
        return -r;
}
