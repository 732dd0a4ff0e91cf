/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Core-scheduling cookies: prctl(PR_SCHED_CORE, ...), Documentation/admin-guide/hw-vuln/core-scheduling.rst.
 *
 * A cookie's value can't be chosen and it lives as long as a task holds it, so each cookie has a holder: a parked thread of ours that carries it and shares
 * it to others on request. SHARE_FROM taints the thread that calls it, so it happens in a holder, never in the loop. A cookie is cleared
 * by sharing the calling thread's cookie 0 to the target: the loop's thread must stay without one. */

#include <sys/types.h>

#include "policies/util.h"

typedef struct CookieHolder CookieHolder;

/* Makes a holder with a new cookie. Returns 0, -ENODEV (no SMT), -EOPNOTSUPP (no CONFIG_SCHED_CORE), another negative errno. */
int cookie_holder_new(CookieHolder **ret);
/* Makes a holder that adopts the cookie that a thread already carries; -ENODATA when it carries none, -ESRCH when it is gone. */
int cookie_holder_adopt(pid_t tid, CookieHolder **ret);
/* Ends the holder's thread; the cookie lives on in the threads that carry it. NULL is fine. */
CookieHolder *cookie_holder_free(CookieHolder *h);
/* The kernel's hashed id of the cookie (PR_SCHED_CORE_GET): good for comparing only. */
uint64_t cookie_holder_id(const CookieHolder *h);

typedef enum CookieScope {
        COOKIE_SCOPE_THREAD,   /* PIDTYPE_PID: for processes whose threads live in several groups */
        COOKIE_SCOPE_PROCESS,  /* PIDTYPE_TGID: under the task-list lock, so no clone is missed */
} CookieScope;

/* Gives the holder's cookie to a thread or its whole process. 0, -ESRCH, -EPERM, ... Synchronous: the holder's thread answers in microseconds. */
int cookie_share_to(CookieHolder *h, pid_t pid, CookieScope scope);
/* Takes any cookie away (shares cookie 0). Called from a thread without a cookie: -EBUSY when it has one (our own process was started with it). */
int cookie_clear(pid_t pid, CookieScope scope);
/* The hashed id of a thread's cookie; 0: none. tid 0 is the calling thread. -ENODEV, -EOPNOTSUPP as above, -ESRCH, -EPERM. */
int cookie_read(pid_t tid, uint64_t *ret);
/* Probes by doing in a helper thread: 1 works, 0 with *ret_errno = ENODEV (no SMT) or EINVAL (not configured), negative errno when no thread could be made. */
int cookie_probe(int *ret_errno);
