/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Steering the daemon: pause and resume, put everything back, and groups of our own. */

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "api/internal.h"
#include "daemon/pool.h"

#define PAUSE_MAX_USEC (UINT64_C(366) * 24 * 3600 * USEC_PER_SEC)

int route_pause_get(Request *r) {
        return reply_json(r, 200, json_pause(r->server));
}

/* The group that a name means: NULL in *ret is everything. 0, or 1 with a problem. */
static int named_group(Request *r, const char *name) {
        _cleanup_(diag_list_clear) DiagList list = {};

        if (!name || target_is_valid(*name == '/' ? TARGET_CGROUP : TARGET_UNIT, name, "/group", &list))
                return 0;
        (void) reply_problem(r, 400, "invalid", &list, "\"group\" must be a full unit name or a cgroup path");
        return 1;
}

typedef struct PauseBody {
        char *group;
        uint64_t duration_usec;
} PauseBody;

static const Field pause_fields[] = {
        { "group", FIELD_STRING, 1, 4096, .offset = offsetof(PauseBody, group), .help = "unit or cgroup path; absent: everything" },
        { "duration_usec", FIELD_UINT64, 1, PAUSE_MAX_USEC, .offset = offsetof(PauseBody, duration_usec), .help = "absent: until resumed" },
        {},
};

static void pause_body_clear(PauseBody *b) {
        fields_clear(pause_fields, b);
}

int route_pause_put(Request *r) {
        _cleanup_(pause_body_clear) PauseBody body = {};
        int k;

        k = request_decode(r, pause_fields, &body);
        if (k != 0)
                return k < 0 ? k : 0;
        if (named_group(r, body.group) != 0)
                return 0;
        k = manager_pause(r->server->manager, body.group, body.duration_usec);
        if (k == -ENOENT)
                return reply_problem(r, 404, "not-found", NULL, "there is no such group now");
        if (k < 0)
                return reply_error(r, k, NULL);
        return reply_json(r, 200, json_pause(r->server));
}

int route_pause_delete(Request *r) {
        const char *group = request_param(r, "group");
        int k;

        if (named_group(r, group) != 0)
                return 0;
        k = manager_resume(r->server->manager, group);
        if (k < 0 && k != -ENOENT)
                return reply_error(r, k, NULL);
        return reply_empty(r, 204);
}

/* ---- restore ---- */

/* The manager can't be asked to forget its callback, the request may end before it comes: this stands between. */
typedef struct Restore {
        Request *request; /* NULL: gone */
        bool done;
} Restore;

static void restore_abandon(Request *r) {
        Restore *x = r->abandon_data;

        x->request = NULL;
}

static void on_restored(size_t n_restored, size_t n_left, void *userdata) {
        Restore *x = userdata;
        Request *r = x->request;

        x->done = true;
        if (r) {
                int k = reply_json(r, 200, json_pack("{s:o, s:o, s:b}", "restored", json_u64(n_restored), "left", json_u64(n_left), "paused", 1));

                if (k < 0)
                        (void) reply_error(r, k, NULL);
                r->abandon = NULL;
                request_resume(r);
        }
        free(x);
}

int route_restore(Request *r) {
        Restore *x;
        int k;

        k = request_decode(r, (Field[]) { {} }, NULL);
        if (k != 0)
                return k < 0 ? k : 0;
        /* first of all nobody may write what is put back again */
        k = manager_pause(r->server->manager, NULL, 0);
        if (k < 0)
                return reply_error(r, k, NULL);
        x = calloc(1, sizeof(*x));
        if (!x)
                return -ENOMEM;
        x->request = r;
        r->abandon = restore_abandon;
        r->abandon_data = x;
        k = manager_restore_all(r->server->manager, on_restored, x);
        if (k < 0) { /* it will not be called */
                r->abandon = NULL;
                free(x);
                return reply_error(r, k, NULL);
        }
        return r->reply.ready ? 0 : 1;
}

/* ---- pools ---- */

/* Whether the process is the peer's own: the same user. The descriptor pins it, so that the number can't come to mean another one between check and use. */
static int open_own_process(const Peer *peer, pid_t pid, int *ret_pidfd) {
        _cleanup_close_ int pidfd = -1;
        char path[40];
        struct stat st;

        pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0)
                return -errno;
        (void) snprintf(path, sizeof(path), "/proc/%d", (int) pid);
        if (stat(path, &st) < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno == ESRCH)
                return -ESRCH; /* what stat() saw may have been another process already */
        if (st.st_uid != peer->uid)
                return -EACCES;
        *ret_pidfd = TAKE_FD(pidfd);
        return 0;
}

typedef struct PoolBody {
        char *class_name;
        uint64_t pid;
} PoolBody;

static const Field pool_fields[] = {
        { "class", FIELD_STRING, 1, 256, .offset = offsetof(PoolBody, class_name), .help = "absent: the rules decide" },
        { "pid", FIELD_UINT64, 1, INT32_MAX, .offset = offsetof(PoolBody, pid), .help = "absent: the caller" },
        {},
};

static void pool_body_clear(PoolBody *b) {
        fields_clear(pool_fields, b);
}

int route_pool(Request *r) {
        _cleanup_(pool_body_clear) PoolBody body = { .pid = r->client->peer.pid > 0 ? (uint64_t) r->client->peer.pid : 0 };
        _cleanup_(diag_list_clear) DiagList list = {};
        const char *pool = r->captures[0];
        _cleanup_free_ char *cgroup = NULL;
        _cleanup_close_ int pidfd = -1;
        json_t *o;
        pid_t pid;
        int k;

        k = request_decode(r, pool_fields, &body);
        if (k != 0)
                return k < 0 ? k : 0;
        pid = (pid_t) body.pid;
        if (!pool_name_is_valid(pool))
                return reply_problem(r, 400, "invalid", NULL, "not a valid pool name: a small letter or digit, then up to 63 of a-z 0-9 . _ -");
        if (pid == 0)
                return reply_problem(r, 400, "invalid", NULL, "the caller's process is not visible here: give its \"pid\"");
        k = open_own_process(&r->client->peer, pid, &pidfd);
        if (k == -ESRCH || k == -EINVAL)
                return reply_problem(r, 404, "not-found", NULL, "there is no process %d", (int) pid);
        if (k == -EACCES)
                return reply_problem(r, 403, "forbidden", NULL, "process %d belongs to another user", (int) pid);
        if (k < 0)
                return reply_error(r, k, NULL);
        k = manager_pool_run(r->server->manager, pool, body.class_name, pid, &cgroup, &list);
        if (k == -ENOENT)
                return reply_problem(r, 422, "unknown-class", &list, "the policy has no such class");
        if (k == -ESRCH)
                return reply_problem(r, 404, "not-found", &list, "process %d has ended", (int) pid);
        if (k < 0)
                return reply_error(r, k, &list);
        o = json_pack("{s:o, s:o, s:o}", "pool", json_text(pool), "class", json_text(body.class_name), "pid", json_integer(pid));
        return reply_json(r, 201, json_whole(o, o ? set_path(o, "cgroup", cgroup) : -1));
}
