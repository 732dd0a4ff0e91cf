/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The REST API on the daemon's loop: one unix socket, HTTP/1.1 by libmicrohttpd through its epoll descriptor, no threads.
 * See README.md for routes and shapes, openapi.yaml for the reference. */

#include <sys/types.h>

#include "daemon/manager.h"

typedef struct ApiServer ApiServer;

/* One line of the audit: who asked for what, and what came of it. Written for every request that changes something or was refused by
 * rights. Pointers are valid during the call. */
typedef struct ApiAudit {
        uid_t uid;
        gid_t gid;
        pid_t pid;
        const char *method;
        const char *path;        /* percent-encoded as it came, printable ASCII only, cut at 512 bytes */
        unsigned status;         /* HTTP status of the answer */
        const char *detail;      /* problem's detail; NULL for success */
} ApiAudit;

/* All zeroes is the default of each. Strings stay the caller's for the life of the server. */
typedef struct ApiConfig {
        const char *socket_path;       /* made (mode 0660, group reader_group) when there is no socket-activated descriptor */
        const char *reader_group;      /* NULL: "cpuclass" */
        const char *writer_group;      /* NULL: "cpuclass-admin" */
        size_t max_body;               /* bytes; 0: 1 MiB */
        unsigned max_connections;      /* 0: 256 */
        unsigned max_connections_per_uid; /* of users other than root; 0: half of max_connections */
        unsigned max_subscribers;      /* of /v1/events; 0: 32 */
        unsigned idle_timeout_sec;     /* no byte moved on a connection; 0: 30 */
        unsigned request_timeout_sec;  /* from the first wait for a request's bytes to its end; 0: 60 */
        unsigned heartbeat_sec;        /* of /v1/events; 0: 15 */
        /* For tests: takes the audit lines instead of the journal. */
        void (*audit)(const ApiAudit *line, void *userdata);
        void *audit_userdata;
        /* For tests: rights of a peer instead of asking its credentials: 0 none, 1 reader, 2 writer; negative: ask. */
        int (*rights)(uid_t uid, void *userdata);
} ApiConfig;

/* Starts serving. listen_fd: the listening unix socket from socket activation (taken over, also on failure), or -1 to make config->socket_path.
 * Takes over the manager's decision handler. Returns 0 or a negative errno (-EADDRINUSE: somebody serves there already). The event loop is referenced. */
int api_server_new(sd_event *event, Manager *manager, int listen_fd, const ApiConfig *config, ApiServer **ret);

/* Ends all connections and gives the manager's handler back. Must not be called from inside a request's handler. NULL is fine; returns NULL. */
ApiServer *api_server_free(ApiServer *s);

/* Looks the groups up again (after a reload); also done by itself when a connection comes and the last look-up is older than a minute. */
void api_server_refresh_groups(ApiServer *s);
