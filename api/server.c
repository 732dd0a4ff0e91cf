/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libmicrohttpd on the daemon's loop, without a thread: its epoll descriptor is an event source, its time-outs are a timer. Who is at the other end of a
 * connection is found out when it comes. One that neither sends nor takes bytes is closed by the library; one that does so drop by drop by our own
 * deadline. What happens inside a connection is in request.c. */

#include <fcntl.h>
#include <grp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "api/internal.h"

#define BODY_DEFAULT (1024 * 1024)         /* bytes */
#define CONNECTION_MEMORY (32 * 1024)      /* request line and headers */
#define GROUPS_MAX_AGE_USEC (60 * USEC_PER_SEC)
#define SWEEP_USEC (2 * USEC_PER_SEC)

/* ---- connections ---- */

static int on_sweep(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiServer *s = userdata;
        uint64_t now = now_monotonic_usec();

        for (Client *c = s->clients; c; c = c->next)
                if (c->deadline_usec <= now) {
                        /* the library sees the end of the stream and ends the connection in its own time */
                        (void) shutdown(c->fd, SHUT_RDWR);
                        c->deadline_usec = USEC_INFINITY;
                }
        if (s->clients) {
                (void) sd_event_source_set_time_relative(source, SWEEP_USEC);
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        return 0;
}

static void client_set_peer(ApiServer *s, Client *c) {
        unsigned same = 0;

        if (peer_read(c->fd, &c->peer) < 0)
                return;
        if (now_monotonic_usec() - s->groups.looked_up_usec > GROUPS_MAX_AGE_USEC)
                groups_lookup(&s->config, &s->groups);
        c->peer.right = peer_right(c->fd, &c->peer, &s->groups);
        if (s->config.rights) {
                int right = s->config.rights(c->peer.uid, s->config.audit_userdata);

                if (right >= 0)
                        c->peer.right = (Right) MIN_OF(right, (int) RIGHT_WRITE);
        }
        for (Client *o = s->clients; o; o = o->next)
                if (o->peer.uid == c->peer.uid)
                        same++;
        c->over_limit = c->peer.uid != 0 && same > s->config.max_connections_per_uid;
}

static void on_connection(void *userdata, struct MHD_Connection *connection, void **context, enum MHD_ConnectionNotificationCode code) {
        ApiServer *s = userdata;
        Client *c;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

                c = calloc(1, sizeof(*c));
                if (!c || !info) { /* request_on_uri() then refuses */
                        free(c);
                        return;
                }
                c->server = s;
                c->connection = connection;
                c->fd = info->connect_fd;
                c->peer.uid = (uid_t) -1;
                c->deadline_usec = now_monotonic_usec() + s->config.request_timeout_sec * USEC_PER_SEC;
                c->next = s->clients;
                if (c->next)
                        c->next->link = &c->next;
                c->link = &s->clients;
                s->clients = c;
                if (s->n_clients++ == 0) {
                        (void) sd_event_source_set_time_relative(s->sweep, SWEEP_USEC);
                        (void) sd_event_source_set_enabled(s->sweep, SD_EVENT_ONESHOT);
                }
                client_set_peer(s, c);
                *context = c;
                return;
        }
        c = *context;
        if (!c)
                return;
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        /* At its limit the library takes the listening socket out of its epoll set and only puts it back in a later run. */
        if (s->n_clients-- >= s->config.max_connections)
                server_kick(s);
        *context = NULL;
        free(c);
}

/* ---- loop ---- */

static int on_run(ApiServer *s) {
        MHD_UNSIGNED_LONG_LONG timeout_msec;

        (void) MHD_run(s->http);
        if (MHD_get_timeout(s->http, &timeout_msec) == MHD_YES) {
                (void) sd_event_source_set_time_relative(s->timer, MIN_OF((uint64_t) timeout_msec, UINT64_C(3600000)) * USEC_PER_MSEC);
                (void) sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
        } else
                (void) sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
        return 0;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        return on_run(userdata);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        return on_run(userdata);
}

static int on_kick(sd_event_source *source, void *userdata) {
        return on_run(userdata);
}

void server_kick(ApiServer *s) {
        if (s->kick)
                (void) sd_event_source_set_enabled(s->kick, SD_EVENT_ONESHOT);
}

static void on_log(void *userdata, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));
static void on_log(void *userdata, const char *format, va_list ap) {
        /* The library tells of clients that go away; a client must not be able to fill the journal. Counted as refusals instead. */
        ((ApiServer *) userdata)->n_refused++;
}

/* ---- start and end ---- */

static int make_socket(ApiServer *s) {
        const char *path = s->config.socket_path;
        union {
                struct sockaddr_un un;
                struct sockaddr sa;
        } address = { .un.sun_family = AF_UNIX };
        _cleanup_close_ int fd = -1, probe = -1;
        mode_t mask;
        int k;

        if (!path || strlen(path) >= sizeof(address.un.sun_path))
                return -EINVAL;
        memcpy(address.un.sun_path, path, strlen(path) + 1);

        /* A socket file that nobody listens on is what a crash left; one that somebody does is another instance. */
        probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (probe < 0)
                return -errno;
        if (connect(probe, &address.sa, sizeof(address.un)) >= 0 || errno == EAGAIN)
                return -EADDRINUSE;
        if (errno == ECONNREFUSED) {
                struct stat st;

                if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
                        return -EEXIST;
                if (unlink(path) < 0)
                        return -errno;
        } else if (errno != ENOENT)
                return -errno;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        mask = umask(0777); /* nobody connects before owner and mode are right */
        k = bind(fd, &address.sa, sizeof(address.un)) < 0 ? -errno : 0;
        (void) umask(mask);
        if (k < 0)
                return k;
        s->unlink_path = strdup(path);
        if (!s->unlink_path) {
                (void) unlink(path);
                return -ENOMEM;
        }
        if (s->groups.reader != (gid_t) -1 && geteuid() == 0 && chown(path, (uid_t) -1, s->groups.reader) < 0)
                return -errno;
        if (chmod(path, 0660) < 0 || listen(fd, 128) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static void apply_defaults(ApiConfig *c) {
        if (!c->reader_group)
                c->reader_group = "cpuclass";
        if (!c->writer_group)
                c->writer_group = "cpuclass-admin";
        if (c->max_body == 0)
                c->max_body = BODY_DEFAULT;
        if (c->max_connections == 0)
                c->max_connections = 256;
        if (c->max_connections_per_uid == 0)
                c->max_connections_per_uid = MAX_OF(c->max_connections / 2, 1U);
        if (c->max_subscribers == 0)
                c->max_subscribers = 32;
        if (c->idle_timeout_sec == 0)
                c->idle_timeout_sec = 30;
        if (c->request_timeout_sec == 0)
                c->request_timeout_sec = 60;
        if (c->heartbeat_sec == 0)
                c->heartbeat_sec = 15;
}

int api_server_new(sd_event *event, Manager *manager, int listen_fd, const ApiConfig *config, ApiServer **ret) {
        ApiServer *s = calloc(1, sizeof(*s));
        const union MHD_DaemonInfo *info;
        int k;

        if (!s) {
                close_fd_pointer(&listen_fd);
                return -ENOMEM;
        }
        s->listen_fd = listen_fd;
        s->event = sd_event_ref(event);
        s->manager = manager;
        s->config = *config;
        apply_defaults(&s->config);
        groups_lookup(&s->config, &s->groups);
        if (s->listen_fd < 0) {
                k = make_socket(s);
                if (k < 0)
                        goto fail;
                s->listen_fd = k;
        } else if ((k = fcntl(s->listen_fd, F_GETFL)) < 0 || fcntl(s->listen_fd, F_SETFL, k | O_NONBLOCK) < 0) {
                k = -errno;
                goto fail;
        }

        s->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, request_on_data, s,
                                   MHD_OPTION_EXTERNAL_LOGGER, on_log, s, /* first, as the library asks for */
                                   MHD_OPTION_LISTEN_SOCKET, (MHD_socket) s->listen_fd,
                                   MHD_OPTION_CONNECTION_LIMIT, s->config.max_connections,
                                   MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) CONNECTION_MEMORY,
                                   MHD_OPTION_CONNECTION_TIMEOUT, s->config.idle_timeout_sec,
                                   /* What its strict mode checks (Host, no space in the target) is checked here, with a better answer. */
                                   MHD_OPTION_STRICT_FOR_CLIENT, 0,
                                   MHD_OPTION_URI_LOG_CALLBACK, request_on_uri, s,
                                   MHD_OPTION_UNESCAPE_CALLBACK, request_on_unescape, s,
                                   MHD_OPTION_NOTIFY_COMPLETED, request_on_completed, s,
                                   MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
                                   MHD_OPTION_END);
        s->listen_fd = -1; /* the library's now, also when it failed */
        if (!s->http) {
                k = errno > 0 ? -errno : -EIO;
                goto fail;
        }
        info = MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD);
        if (!info) {
                k = -EIO;
                goto fail;
        }
        if ((k = sd_event_add_io(event, &s->io, info->epoll_fd, EPOLLIN, on_io, s)) < 0 ||
            (k = sd_event_add_time_relative(event, &s->timer, CLOCK_MONOTONIC, 0, 0, on_timer, s)) < 0 ||
            (k = sd_event_add_time_relative(event, &s->sweep, CLOCK_MONOTONIC, 0, 0, on_sweep, s)) < 0 ||
            (k = sd_event_add_defer(event, &s->kick, on_kick, s)) < 0 ||
            (k = sd_event_source_set_enabled(s->timer, SD_EVENT_OFF)) < 0 || (k = sd_event_source_set_enabled(s->sweep, SD_EVENT_OFF)) < 0)
                goto fail;
        (void) sd_event_source_set_description(s->io, "api-http");
        (void) sd_event_source_set_description(s->timer, "api-http-timeout");
        (void) sd_event_source_set_description(s->sweep, "api-deadlines");
        (void) sd_event_source_set_description(s->kick, "api-http-resume");
        manager_set_decision_handler(manager, events_decision, s);
        *ret = s;
        return 0;

fail:
        (void) api_server_free(s);
        return k;
}

void api_server_refresh_groups(ApiServer *s) {
        groups_lookup(&s->config, &s->groups);
}

ApiServer *api_server_free(ApiServer *s) {
        if (!s)
                return NULL;
        if (s->http) {
                manager_set_decision_handler(s->manager, NULL, NULL);
                events_stop(s);
                /* the library aborts the process when a suspended connection is left */
                for (Client *c = s->clients; c; c = c->next)
                        if (c->request)
                                request_resume(c->request);
                MHD_stop_daemon(s->http); /* also closes the listening socket */
        }
        close_fd_pointer(&s->listen_fd);
        if (s->unlink_path)
                (void) unlink(s->unlink_path);
        free(s->unlink_path);
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->timer);
        sd_event_source_disable_unref(s->sweep);
        sd_event_source_disable_unref(s->kick);
        sd_event_source_disable_unref(s->heartbeat);
        sd_event_unref(s->event);
        free(s);
        return NULL;
}
