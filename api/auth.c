/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may do what. The kernel tells who is at the other end of a unix socket as of its connect(): SO_PEERCRED (uid, gid, pid) and SO_PEERGROUPS
 * (supplementary groups), see socket(7) and unix(7). Two groups give two rights; whoever changes something, or is refused, leaves a line in the
 * journal. */

#include <grp.h>
#include <sys/socket.h>
#include <syslog.h>

#include "api/internal.h"
#include "daemon/log.h"

int peer_read(int fd, Peer *ret) {
        struct ucred cred;
        socklen_t length = sizeof(cred);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) < 0)
                return -errno;
        if (length != sizeof(cred) || cred.uid == (uid_t) -1)
                return -ENODATA;
        *ret = (Peer) { .uid = cred.uid, .gid = cred.gid, .pid = cred.pid, .known = true };
        return 0;
}

static gid_t lookup_group(const char *name) {
        struct group g, *found = NULL;
        _cleanup_free_ char *buffer = NULL;
        size_t size = 4096;

        /* a group of many members needs a long buffer; a group that is no system group and that large is not what we look for */
        for (; size <= 1024 * 1024; size *= 4) {
                char *bigger = realloc(buffer, size);
                int r;

                if (!bigger)
                        break;
                buffer = bigger;
                r = getgrnam_r(name, &g, buffer, size, &found);
                if (r == 0)
                        return found ? found->gr_gid : (gid_t) -1;
                if (r != ERANGE)
                        break;
        }
        return (gid_t) -1;
}

void groups_lookup(const ApiConfig *config, Groups *g) {
        g->reader = lookup_group(config->reader_group ? config->reader_group : "cpuclass");
        g->writer = lookup_group(config->writer_group ? config->writer_group : "cpuclass-admin");
        g->looked_up_usec = now_monotonic_usec();
}

Right peer_right(int fd, const Peer *p, const Groups *g) {
        _cleanup_free_ gid_t *groups = NULL;
        socklen_t length = 0;
        Right right = RIGHT_NONE;

        if (!p->known)
                return RIGHT_NONE;
        if (p->uid == 0)
                return RIGHT_WRITE;
        if (g->reader != (gid_t) -1 && p->gid == g->reader)
                right = RIGHT_READ;
        if (g->writer != (gid_t) -1 && p->gid == g->writer)
                return RIGHT_WRITE;

        /* the first call tells the length */
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &length) < 0 && errno != ERANGE)
                return right;
        if (length == 0)
                return right;
        groups = malloc(length);
        if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) < 0)
                return right;
        for (size_t i = 0; i < length / sizeof(gid_t); i++) {
                if (g->writer != (gid_t) -1 && groups[i] == g->writer)
                        return RIGHT_WRITE;
                if (g->reader != (gid_t) -1 && groups[i] == g->reader)
                        right = RIGHT_READ;
        }
        return right;
}

void peer_describe(const Peer *p, char *buffer, size_t size) {
        (void) snprintf(buffer, size, "uid=%u", p->uid);
}

void audit_request(const Request *r, unsigned status, const char *detail) {
        const Peer *p = &r->client->peer;
        char path[513], uid[16], gid[16], pid[16], code[8];
        _cleanup_free_ char *message = NULL;
        size_t n = 0;

        for (const char *s = r->uri ? r->uri : ""; *s && n < sizeof(path) - 1; s++)
                path[n++] = (unsigned char) *s > 0x20 && (unsigned char) *s < 0x7f ? *s : '?';
        path[n] = 0;

        if (r->server->config.audit) {
                r->server->config.audit(&(ApiAudit) { .uid = p->uid, .gid = p->gid, .pid = p->pid, .method = r->method, .path = path, .status = status, .detail = detail },
                                        r->server->config.audit_userdata);
                return;
        }
        (void) snprintf(uid, sizeof(uid), "%u", p->uid);
        (void) snprintf(gid, sizeof(gid), "%u", p->gid);
        (void) snprintf(pid, sizeof(pid), "%d", (int) p->pid);
        (void) snprintf(code, sizeof(code), "%u", status);
        if (asprintf(&message, "API: uid %s (pid %s): %s %s: %s%s%s", uid, pid, r->method, path, code, detail ? ": " : "", detail ? detail : "") < 0) {
                message = NULL;
                return;
        }
        log_fields(status < 400 ? LOG_INFO : LOG_NOTICE, MESSAGE_AUDIT, message, "CPUCLASS_PEER_UID", uid, "CPUCLASS_PEER_GID", gid, "CPUCLASS_PEER_PID", pid,
                   "CPUCLASS_METHOD", r->method, "CPUCLASS_PATH", path, "CPUCLASS_STATUS", code, NULL);
}
