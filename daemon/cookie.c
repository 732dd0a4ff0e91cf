/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cookies and the threads that hold them.
 *
 * A holder waits for a request, makes the one system call that only it can make (it shares its own cookie), and answers. Owner and holder pass one
 * request at a time under a lock; the owner waits for the answer, so from outside it is an ordinary call. */

#include <pthread.h>
#include <sys/prctl.h>

#include "daemon/cookie.h"
#include "daemon/helper-thread.h"

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif
/* include/uapi/linux/prctl.h; the type is the kernel's enum pid_type. */
enum { CORE_GET = 0, CORE_CREATE = 1, CORE_SHARE_TO = 2, CORE_SHARE_FROM = 3 };
enum { TYPE_THREAD = 0, TYPE_PROCESS = 1 };

static int core_call(int command, pid_t pid, int type, uint64_t *ret_id) {
        return prctl(PR_SCHED_CORE, (unsigned long) command, (unsigned long) pid, (unsigned long) type, (unsigned long) ret_id) < 0 ? -errno : 0;
}

/* For calls without anything that could be invalid in them: the kernel knows no such prctl. */
static int unsupported_if_invalid(int r) {
        return r == -EINVAL ? -EOPNOTSUPP : r;
}

static int scope_type(CookieScope scope) {
        return scope == COOKIE_SCOPE_PROCESS ? TYPE_PROCESS : TYPE_THREAD;
}

int cookie_read(pid_t tid, uint64_t *ret) {
        _Alignas(8) uint64_t id = 0;
        int r;

        if (tid < 0)
                return -ESRCH;
        r = unsupported_if_invalid(core_call(CORE_GET, tid, TYPE_THREAD, &id));
        if (r < 0)
                return r;
        *ret = id;
        return 0;
}

typedef enum Request { REQUEST_NONE = 0, REQUEST_SHARE_TO, REQUEST_END } Request;

struct CookieHolder {
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t asked, answered;
        /* under the mutex */
        bool started;
        Request request;
        pid_t pid;
        CookieScope scope;
        int result;
        /* set before the thread starts, or by it before it says so */
        pid_t adopt_from;     /* 0: make a new cookie */
        uint64_t id;
};

/* Gives this thread its cookie. */
static int take_cookie(CookieHolder *h) {
        int r;

        if (h->adopt_from > 0)
                r = core_call(CORE_SHARE_FROM, h->adopt_from, TYPE_THREAD, NULL);
        else
                r = core_call(CORE_CREATE, 0, TYPE_THREAD, NULL);
        if (r < 0)
                return unsupported_if_invalid(r);
        r = cookie_read(0, &h->id);
        if (r < 0)
                return r;
        return h->id == 0 ? -ENODATA : 0;
}

static void *holder_thread(void *userdata) {
        CookieHolder *h = userdata;
        int r = take_cookie(h);

        (void) pthread_mutex_lock(&h->mutex);
        h->started = true;
        h->result = r;
        (void) pthread_cond_signal(&h->answered);
        while (r >= 0) {
                while (h->request == REQUEST_NONE)
                        (void) pthread_cond_wait(&h->asked, &h->mutex);
                if (h->request == REQUEST_END)
                        break;
                h->result = core_call(CORE_SHARE_TO, h->pid, scope_type(h->scope), NULL);
                h->request = REQUEST_NONE;
                (void) pthread_cond_signal(&h->answered);
        }
        (void) pthread_mutex_unlock(&h->mutex);
        return NULL;
}

/* Ends a holder whose thread runs or has ended by itself. */
static void holder_end(CookieHolder *h) {
        (void) pthread_mutex_lock(&h->mutex);
        h->request = REQUEST_END;
        (void) pthread_cond_signal(&h->asked);
        (void) pthread_mutex_unlock(&h->mutex);
        (void) pthread_join(h->thread, NULL);
        (void) pthread_cond_destroy(&h->asked);
        (void) pthread_cond_destroy(&h->answered);
        (void) pthread_mutex_destroy(&h->mutex);
        free(h);
}

static int holder_start(pid_t adopt_from, CookieHolder **ret) {
        CookieHolder *h;
        int r;

        h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        h->adopt_from = adopt_from;
        /* Default mutexes and conditions can't fail on Linux. */
        (void) pthread_mutex_init(&h->mutex, NULL);
        (void) pthread_cond_init(&h->asked, NULL);
        (void) pthread_cond_init(&h->answered, NULL);
        r = helper_thread_start(&h->thread, holder_thread, h);
        if (r < 0) {
                free(h);
                return r;
        }
        (void) pthread_mutex_lock(&h->mutex);
        while (!h->started)
                (void) pthread_cond_wait(&h->answered, &h->mutex);
        r = h->result;
        (void) pthread_mutex_unlock(&h->mutex);
        if (r < 0) {
                holder_end(h);
                return r;
        }
        *ret = h;
        return 0;
}

int cookie_holder_new(CookieHolder **ret) {
        return holder_start(0, ret);
}

int cookie_holder_adopt(pid_t tid, CookieHolder **ret) {
        if (tid <= 0)
                return -ESRCH;
        return holder_start(tid, ret);
}

CookieHolder *cookie_holder_free(CookieHolder *h) {
        if (h)
                holder_end(h);
        return NULL;
}

uint64_t cookie_holder_id(const CookieHolder *h) {
        return h->id;
}

int cookie_share_to(CookieHolder *h, pid_t pid, CookieScope scope) {
        int r;

        /* 0 would be the holder itself. */
        if (pid <= 0)
                return -ESRCH;
        (void) pthread_mutex_lock(&h->mutex);
        h->pid = pid;
        h->scope = scope;
        h->request = REQUEST_SHARE_TO;
        (void) pthread_cond_signal(&h->asked);
        while (h->request != REQUEST_NONE)
                (void) pthread_cond_wait(&h->answered, &h->mutex);
        r = h->result;
        (void) pthread_mutex_unlock(&h->mutex);
        return r;
}

int cookie_clear(pid_t pid, CookieScope scope) {
        uint64_t own;
        int r;

        if (pid <= 0)
                return -ESRCH;
        r = cookie_read(0, &own);
        if (r < 0)
                return r;
        if (own != 0)
                return -EBUSY;
        return core_call(CORE_SHARE_TO, pid, scope_type(scope), NULL);
}

static void *probe_thread(void *userdata) {
        *(int *) userdata = core_call(CORE_CREATE, 0, TYPE_THREAD, NULL);
        return NULL;
}

int cookie_probe(int *ret_errno) {
        pthread_t thread;
        int result = 0, r;

        r = helper_thread_start(&thread, probe_thread, &result);
        if (r < 0)
                return r;
        (void) pthread_join(thread, NULL);
        if (result >= 0)
                return 1;
        *ret_errno = -result;
        return 0;
}
