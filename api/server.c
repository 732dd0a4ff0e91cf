/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libmicrohttpd on the daemon's loop, without a thread: its epoll descriptor is an event source, its time-outs are a timer.
 *
 * A request lives from its request line (the only moment at which the library shows the undecoded URI) to the completion callback. What can be refused by
 * its headers is refused before its body is read. A handler answers at once, or later: then the connection is suspended until somebody calls
 * request_resume(). A connection that neither sends nor takes bytes is closed by the library; one that does so drop by drop by our own deadline. */

#include <fcntl.h>
#include <grp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "api/internal.h"

#define BODY_DEFAULT (1024 * 1024)
#define BODIES_MAX (8 * 1024 * 1024)       /* of all requests together */
#define DISCARD_MAX (8 * 1024 * 1024)      /* of a chunked body over the limit, so that the 413 can be read */
#define CONNECTION_MEMORY (32 * 1024)      /* request line and headers */
#define GROUPS_MAX_AGE_USEC (60 * USEC_PER_SEC)
#define SWEEP_USEC (2 * USEC_PER_SEC)

/* ---- requests ---- */

static Request *request_free(Request *r) {
        if (!r)
                return NULL;
        if (r->wait_ticket != 0)
                manager_wait_cancel(r->server->manager, r->wait_ticket);
        if (r->abandon)
                r->abandon(r);
        if (r->subscriber)
                events_forget(r);
        r->server->body_bytes -= r->body_capacity;
        reply_clear(&r->reply);
        json_decref(r->json);
        for (size_t i = 0; i < r->n_params; i++) {
                free(r->params[i].name);
                free(r->params[i].value);
        }
        for (size_t i = 0; i < CAPTURES_MAX; i++)
                free(r->captures[i]);
        free(r->body);
        free(r->uri);
        free(r);
        return NULL;
}

static Client *client_of(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

static void *on_uri(void *userdata, const char *uri, struct MHD_Connection *connection) {
        ApiServer *s = userdata;
        Request *r = calloc(1, sizeof(*r));

        if (!r)
                return NULL;
        r->uri = strdup(uri ? uri : "");
        r->client = client_of(connection);
        if (!r->uri || !r->client) {
                free(r->uri);
                free(r);
                return NULL;
        }
        r->server = s;
        r->connection = connection;
        r->client->request = r;
        s->n_requests++;
        return r;
}

static size_t on_unescape(void *userdata, struct MHD_Connection *connection, char *s) {
        return strlen(s); /* we decode ourselves */
}

static enum MHD_Result send_reply(Request *r) {
        Reply *reply = &r->reply;
        struct MHD_Response *response;
        enum MHD_Result q;
        bool changes = !r->head && !streq(r->method, "GET") && !streq(r->method, "OPTIONS");

        if (reply->stream) {
                response = TAKE_PTR(reply->stream);
        } else if (reply->body)
                response = MHD_create_response_from_buffer(reply->size, TAKE_PTR(reply->body), MHD_RESPMEM_MUST_FREE);
        else
                response = MHD_create_response_from_buffer(reply->size, (void *) (reply->body_static ? reply->body_static : ""), MHD_RESPMEM_PERSISTENT);
        if (!response)
                return MHD_NO;
        if (reply->content_type)
                (void) MHD_add_response_header(response, "Content-Type", reply->content_type);
        (void) MHD_add_response_header(response, "Cache-Control", "no-store");
        (void) MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        if (reply->etag[0])
                (void) MHD_add_response_header(response, "ETag", reply->etag);
        if (reply->allow[0])
                (void) MHD_add_response_header(response, "Allow", reply->allow);
        if (reply->retry_after_sec > 0) {
                char text[16];

                (void) snprintf(text, sizeof(text), "%u", reply->retry_after_sec);
                (void) MHD_add_response_header(response, "Retry-After", text);
        }
        if (reply->status >= 500)
                r->server->n_errors++;
        else if (reply->status >= 400)
                r->server->n_refused++;
        if (changes || reply->status == 403)
                audit_request(r, reply->status, reply->detail);
        r->client->deadline_usec = r->subscriber ? USEC_INFINITY : now_monotonic_usec() + r->server->config.request_timeout_sec * USEC_PER_SEC;
        q = MHD_queue_response(r->connection, reply->status, response);
        MHD_destroy_response(response);
        return q;
}

/* Counts a header and refuses names that are no tokens: "Content-Length : 5" is another header to us than to a proxy. */
typedef struct HeaderCheck {
        unsigned n_content_length, n_transfer_encoding, n_host;
        bool bad_name, bad_value;
} HeaderCheck;

static enum MHD_Result check_header(void *userdata, enum MHD_ValueKind kind, const char *name, const char *value) {
        static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        HeaderCheck *c = userdata;

        if (!name || !*name || strspn(name, token) != strlen(name))
                c->bad_name = true;
        else if (strcasecmp(name, "Content-Length") == 0)
                c->n_content_length++;
        else if (strcasecmp(name, "Transfer-Encoding") == 0)
                c->n_transfer_encoding++;
        else if (strcasecmp(name, "Host") == 0)
                c->n_host++;
        for (const char *p = value ? value : ""; *p; p++)
                if ((unsigned char) *p < 0x20 && *p != '\t')
                        c->bad_value = true;
        return MHD_YES;
}

static bool content_type_is_json(const char *s) {
        if (!s || strncasecmp(s, "application/json", 16) != 0)
                return false;
        s += 16;
        while (*s == ' ' || *s == '\t')
                s++;
        if (!*s)
                return true;
        if (*s++ != ';')
                return false;
        while (*s == ' ' || *s == '\t')
                s++;
        return strcasecmp(s, "charset=utf-8") == 0 || strcasecmp(s, "charset=\"utf-8\"") == 0;
}

/* Whether the library's parser needs a second look (strict.c). */
static bool parser_is_lax(void) {
        unsigned major = 0, minor = 0, patch = 0;

        return sscanf(MHD_get_version(), "%u.%u.%u", &major, &minor, &patch) != 3 || (major == 0 && minor <= 9 && patch < 77);
}

/* The head of the request as such: with one that is not plainly right nobody knows where the request ends, so the connection ends. */
static int request_check_head(Request *r, const char *method, const char *version) {
        const char *length = request_header(r, "Content-Length"), *encoding = request_header(r, "Transfer-Encoding");
        HeaderCheck c = {};

        r->has_body = encoding || (length && strspn(length, "0") != strlen(length));
        if (!streq(version, "HTTP/1.1") && !streq(version, "HTTP/1.0"))
                return reply_problem(r, 400, "invalid-request", NULL, "only HTTP/1.1 and HTTP/1.0 are spoken here");
        if (parser_is_lax()) {
                const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

                if (!info || !head_is_strict(method, info->header_size, r->uri, version))
                        return reply_problem(r, 400, "invalid-request", NULL, "the head of the request is malformed");
        }
        (void) MHD_get_connection_values(r->connection, MHD_HEADER_KIND, check_header, &c);
        if (c.bad_name || c.bad_value)
                return reply_problem(r, 400, "invalid-header", NULL, "a header is malformed");
        if (c.n_host > 1 || (c.n_host == 0 && streq(version, "HTTP/1.1")))
                return reply_problem(r, 400, "invalid-header", NULL, "there must be one Host header");
        if (c.n_content_length > 1 || c.n_transfer_encoding > 1 || (c.n_content_length > 0 && c.n_transfer_encoding > 0))
                return reply_problem(r, 400, "invalid-header", NULL, "the length of the body is said twice");
        if (encoding && (strcasecmp(encoding, "chunked") != 0 || !streq(version, "HTTP/1.1")))
                return reply_problem(r, 400, "invalid-header", NULL, "the only transfer encoding is \"chunked\", of HTTP/1.1");
        if (length && (!*length || strspn(length, "0123456789") != strlen(length)))
                return reply_problem(r, 400, "invalid-header", NULL, "Content-Length is no number");
        return 0;
}

/* What the head alone decides. Fills the reply when the request is refused; 0 or negative errno. */
static int request_begin(Request *r, const char *method, const char *version) {
        ApiServer *s = r->server;
        const char *length = request_header(r, "Content-Length");
        int k;

        (void) snprintf(r->method, sizeof(r->method), "%s", method);
        r->head = streq(method, "HEAD");
        k = request_check_head(r, method, version);
        if (k < 0 || r->reply.ready) {
                r->must_close = true;
                return k;
        }
        if (r->client->over_limit) {
                (void) reply_problem(r, 503, "too-many-connections", NULL, "this user has too many connections open");
                r->reply.retry_after_sec = 1;
                r->must_close = true;
                return 0;
        }
        if (strlen(method) >= sizeof(r->method))
                return reply_problem(r, 405, "method-not-allowed", NULL, "unknown method");
        if (r->client->peer.right < RIGHT_READ)
                return reply_problem(r, 403, "forbidden", NULL, "uid %u may not use this service: it takes membership of the group %s", r->client->peer.uid,
                                     s->config.reader_group);
        k = router_resolve(r);
        if (k != 0)
                return k < 0 ? k : 0;
        if (r->client->peer.right < r->route->right)
                return reply_problem(r, 403, "forbidden", NULL, "uid %u may read but not change: that takes membership of the group %s", r->client->peer.uid,
                                     s->config.writer_group);
        if (r->has_body) {
                if (r->route->body == BODY_NONE)
                        return reply_problem(r, 400, "unexpected-body", NULL, "this request takes no body");
                if (!content_type_is_json(request_header(r, "Content-Type")))
                        return reply_problem(r, 415, "not-json", NULL, "the body must be application/json, in UTF-8");
                if (length && (strlen(length) > 18 || strtoull(length, NULL, 10) > s->config.max_body))
                        return reply_problem(r, 413, "body-too-large", NULL, "the body may have at most %zu bytes", s->config.max_body);
        }
        return 0;
}

/* Takes a piece of the body; counts and forgets what is over the limit. 0, -E2BIG (end the connection), -ENOMEM. */
static int request_take_body(Request *r, const char *data, size_t size) {
        ApiServer *s = r->server;

        if (r->body_too_big || r->reply.ready || size > s->config.max_body - r->body_size) {
                if (!r->reply.ready)
                        r->body_too_big = true;
                r->body_discarded += size;
                return r->body_discarded > DISCARD_MAX ? -E2BIG : 0;
        }
        if (r->body_size + size > r->body_capacity) {
                size_t capacity = MIN_OF(MAX_OF(r->body_capacity * 2, MAX_OF(r->body_size + size, (size_t) 1024)), s->config.max_body);
                char *bigger;

                if (s->body_bytes - r->body_capacity + capacity > BODIES_MAX) {
                        (void) reply_problem(r, 503, "resources", NULL, "too many large requests at once");
                        r->reply.retry_after_sec = 1;
                        return 0;
                }
                bigger = realloc(r->body, capacity);
                if (!bigger)
                        return -ENOMEM;
                s->body_bytes += capacity - r->body_capacity;
                r->body = bigger;
                r->body_capacity = capacity;
        }
        memcpy(r->body + r->body_size, data, size);
        r->body_size += size;
        return 0;
}

static void request_dispatch(Request *r) {
        int k;

        r->dispatched = true;
        r->client->deadline_usec = USEC_INFINITY;
        if (r->body_too_big) {
                (void) reply_problem(r, 413, "body-too-large", NULL, "the body may have at most %zu bytes", r->server->config.max_body);
                return;
        }
        if (r->reply.ready)
                return;
        k = request_parse_body(r);
        if (k == 0)
                k = r->route->handler(r);
        else if (k > 0)
                return;
        if (k < 0)
                (void) reply_error(r, k, NULL);
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
                                  const char *data, size_t *data_size, void **request) {
        Request *r = *request;
        int k;

        if (!r)
                return MHD_NO; /* no memory at the request line */
        if (!r->started) {
                r->started = true;
                k = request_begin(r, method, version);
                if (k < 0)
                        (void) reply_error(r, k, NULL);
                /* An answer now means that the body is not read and the connection ends; without a body that would be a waste. */
                if (r->reply.ready && (r->has_body || r->must_close))
                        return send_reply(r);
                return MHD_YES;
        }
        if (*data_size > 0) {
                k = request_take_body(r, data, *data_size);
                *data_size = 0;
                return k < 0 ? MHD_NO : MHD_YES;
        }
        if (!r->dispatched) {
                request_dispatch(r);
                if (!r->reply.ready) {
                        r->suspended = true;
                        MHD_suspend_connection(connection);
                        return MHD_YES;
                }
        }
        return r->reply.ready ? send_reply(r) : MHD_YES;
}

void request_resume(Request *r) {
        if (!r->suspended)
                return; /* answered before its handler returned */
        r->suspended = false;
        MHD_resume_connection(r->connection);
        server_kick(r->server);
}

static void on_completed(void *userdata, struct MHD_Connection *connection, void **request, enum MHD_RequestTerminationCode code) {
        Request *r = *request;

        if (!r)
                return;
        r->client->deadline_usec = now_monotonic_usec() + r->server->config.request_timeout_sec * USEC_PER_SEC;
        r->client->request = NULL;
        *request = NULL;
        (void) request_free(r);
}

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
                if (!c || !info) { /* on_uri() then refuses */
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

        s->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, s,
                                   MHD_OPTION_EXTERNAL_LOGGER, on_log, s, /* first, as the library asks for */
                                   MHD_OPTION_LISTEN_SOCKET, (MHD_socket) s->listen_fd,
                                   MHD_OPTION_CONNECTION_LIMIT, s->config.max_connections,
                                   MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) CONNECTION_MEMORY,
                                   MHD_OPTION_CONNECTION_TIMEOUT, s->config.idle_timeout_sec,
                                   /* What its strict mode checks (Host, no space in the target) is checked here, with a better answer. */
                                   MHD_OPTION_STRICT_FOR_CLIENT, 0,
                                   MHD_OPTION_URI_LOG_CALLBACK, on_uri, s,
                                   MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, s,
                                   MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
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
