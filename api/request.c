/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One request, from its request line (the only moment at which the library shows the undecoded URI) to the completion callback. What can be refused by its
 * head is refused before its body is read. A handler answers at once, or later: then the connection is suspended until somebody calls
 * request_resume(). */

#include "api/internal.h"

#define BODIES_MAX (8 * 1024 * 1024)       /* bytes of all requests together */
#define DISCARD_MAX (8 * 1024 * 1024)      /* bytes of a chunked body over the limit, so that the 413 can be read */

Request *request_free(Request *r) {
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

void *request_on_uri(void *userdata, const char *uri, struct MHD_Connection *connection) {
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

size_t request_on_unescape(void *userdata, struct MHD_Connection *connection, char *s) {
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

enum MHD_Result request_on_data(void *userdata, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
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

void request_on_completed(void *userdata, struct MHD_Connection *connection, void **request, enum MHD_RequestTerminationCode code) {
        Request *r = *request;

        if (!r)
                return;
        r->client->deadline_usec = now_monotonic_usec() + r->server->config.request_timeout_sec * USEC_PER_SEC;
        r->client->request = NULL;
        *request = NULL;
        (void) request_free(r);
}
