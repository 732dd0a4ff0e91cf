/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* A real server on a unix socket in a temporary directory, and raw HTTP to it, all on one thread: while a client waits, the loop turns. */

#include <cmocka.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "api/api.h"
#include "tests/unit/api/fake-manager.h"
#include "tests/unit/files.h"

typedef struct Harness {
        char directory[64];
        char socket[128];
        sd_event *event;
        Manager *manager;
        ApiServer *server;
        ApiConfig config;
        int right;                   /* of all peers; -1: ask the kernel */
        unsigned n_audits;
        ApiAudit audit;              /* the last line */
        char audit_path[520], audit_method[16];
} Harness;

typedef struct Answer {
        unsigned status;             /* 0: the connection ended without an answer */
        char *head;                  /* status line and headers */
        char *body;
        size_t size;                 /* of the body, without chunk framing */
        json_t *json;                /* when the body is */
} Answer;

static inline void on_audit(const ApiAudit *line, void *userdata) {
        Harness *h = userdata;

        h->n_audits++;
        h->audit = *line;
        (void) snprintf(h->audit_path, sizeof(h->audit_path), "%s", line->path);
        (void) snprintf(h->audit_method, sizeof(h->audit_method), "%s", line->method);
}

static inline int on_rights(uid_t uid, void *userdata) {
        return ((Harness *) userdata)->right;
}

static inline void harness_open(Harness *h, const ApiConfig *config, size_t n_more) {
        *h = (Harness) { .right = 2 };
        if (config)
                h->config = *config;
        temporary_directory(h->directory);
        (void) snprintf(h->socket, sizeof(h->socket), "%s/api.sock", h->directory);
        assert_int_equal(sd_event_new(&h->event), 0);
        h->manager = fake_manager_new(h->event, h->directory, n_more);
        h->config.socket_path = h->socket;
        h->config.audit = on_audit;
        h->config.audit_userdata = h;
        h->config.rights = on_rights;
        assert_int_equal(api_server_new(h->event, h->manager, -1, &h->config, &h->server), 0);
}

static inline void harness_close(Harness *h) {
        h->server = api_server_free(h->server);
        h->manager = fake_manager_free(h->manager);
        sd_event_unref(h->event);
        temporary_directory_remove(h->directory);
}

static inline uint64_t test_now_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / 1000;
}

/* Turns the loop for a while, at most until a descriptor can be read. */
static inline bool pump(Harness *h, int fd, uint64_t usec) {
        uint64_t end = test_now_usec() + usec;

        for (;;) {
                struct pollfd p = { .fd = fd, .events = POLLIN };

                assert_true(sd_event_run(h->event, 1000) >= 0);
                if (fd >= 0 && poll(&p, 1, 0) > 0)
                        return true;
                if (test_now_usec() >= end)
                        return false;
        }
}

static inline int dial(Harness *h) {
        union {
                struct sockaddr_un un;
                struct sockaddr sa;
        } a = { .un.sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        strcpy(a.un.sun_path, h->socket);
        assert_true(fd >= 0);
        assert_int_equal(connect(fd, &a.sa, sizeof(a.un)), 0);
        return fd;
}

/* Sends all, turning the loop while the socket is full. False when the server has gone. */
static inline bool say_bytes(Harness *h, int fd, const char *data, size_t size) {
        while (size > 0) {
                ssize_t n = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno == EAGAIN) {
                        assert_true(sd_event_run(h->event, 1000) >= 0);
                        continue;
                }
                if (n < 0)
                        return false;
                data += n;
                size -= (size_t) n;
        }
        return true;
}

static inline bool say(Harness *h, int fd, const char *text) {
        return say_bytes(h, fd, text, strlen(text));
}

static inline void answer_clear(Answer *a) {
        free(a->head);
        free(a->body);
        json_decref(a->json);
        *a = (Answer) {};
}

/* Whether the bytes so far hold a whole answer; *ret_used is its length. */
static inline bool answer_parse(const char *data, size_t size, bool ended, bool no_body, Answer *ret, size_t *ret_used) {
        const char *blank = memmem(data, size, "\r\n\r\n", 4), *p;
        size_t head, left;

        if (!blank)
                return false;
        head = (size_t) (blank - data) + 4;
        left = size - head;
        ret->head = strndup(data, head);
        ret->status = (unsigned) strtoul(ret->head + 9, NULL, 10);
        if (no_body || ret->status == 204 || ret->status == 304) {
                ret->body = strdup("");
                *ret_used = head;
                return true;
        }
        p = strcasestr(ret->head, "\r\nContent-Length: ");
        if (p) {
                ret->size = strtoul(p + 18, NULL, 10);
                if (left < ret->size)
                        goto unfinished;
                ret->body = strndup(data + head, ret->size);
                *ret_used = head + ret->size;
        } else if (strcasestr(ret->head, "\r\nTransfer-Encoding: chunked")) {
                size_t at = head;

                ret->body = calloc(1, left + 1);
                for (;;) {
                        const char *line = memmem(data + at, size - at, "\r\n", 2);
                        size_t n;

                        if (!line)
                                goto unfinished;
                        n = strtoul(data + at, NULL, 16);
                        at = (size_t) (line - data) + 2;
                        if (size - at < n + 2)
                                goto unfinished;
                        memcpy(ret->body + ret->size, data + at, n);
                        ret->size += n;
                        at += n + 2;
                        if (n == 0)
                                break;
                }
                *ret_used = at;
        } else {
                if (!ended)
                        goto unfinished;
                ret->size = left;
                ret->body = strndup(data + head, left);
                *ret_used = size;
        }
        return true;
unfinished:
        free(ret->head);
        free(ret->body);
        *ret = (Answer) {};
        return false;
}

/* Waits for one whole answer, at most twenty seconds. */
static inline Answer hear_kind(Harness *h, int fd, bool no_body) {
        static char data[4 * 1024 * 1024];
        size_t size = 0, used = 0;
        bool ended = false;
        Answer a = {};

        while (!answer_parse(data, size, ended, no_body, &a, &used)) {
                ssize_t n;

                if (ended)
                        return (Answer) {};
                if (!pump(h, fd, 20 * USEC_PER_SEC))
                        fail_msg("no answer in twenty seconds; so far: %.*s", (int) size, data);
                n = recv(fd, data + size, sizeof(data) - size, MSG_DONTWAIT);
                if (n < 0 && errno == EAGAIN)
                        continue;
                if (n <= 0)
                        ended = true;
                else
                        size += (size_t) n;
                assert_true(size < sizeof(data));
        }
        /* Nothing beyond it: no second answer. The library's own error pages repeat their header (0.9.75) before it closes the connection. */
        if (used != size && (a.status < 400 || !strcasestr(a.head, "Connection: close") || !strstr(a.body, "HTTP/1.1 4") || memmem(data, size, "HTTP/1.1 2", 10)))
                fail_msg("a second answer: %.*s", (int) size, data);
        if (a.size > 0 && strcasestr(a.head, "json\r\n")) {
                json_error_t error;

                a.json = json_loadb(a.body, a.size, JSON_REJECT_DUPLICATES, &error);
                if (!a.json)
                        fail_msg("invalid JSON: %s: %s", error.text, a.body);
        }
        return a;
}

static inline Answer hear(Harness *h, int fd) {
        return hear_kind(h, fd, false);
}

/* One raw request on a connection of its own. */
static inline Answer raw(Harness *h, const char *request) {
        int fd = dial(h);
        Answer a;

        (void) say(h, fd, request);
        a = hear(h, fd);
        (void) close(fd);
        return a;
}

/* Where CPUCLASS_RECORD names a file, each request and its answer goes there as a line of JSON: check-openapi.py holds them against the reference. */
static inline void record(const char *method, const char *target, const char *body, const Answer *a) {
        const char *file = getenv("CPUCLASS_RECORD");
        const char *type = a->head ? strcasestr(a->head, "\r\nContent-Type: ") : NULL;
        json_t *o;
        FILE *f;

        if (!file || a->status == 0)
                return;
        o = json_pack("{s:s%, s:s%, s:s*, s:i, s:s%, s:O*}", "method", method, strlen(method), "target", target, strcspn(target, "\x80\xff"), "request", body, "status", (int) a->status,
                      "type", type ? type + 16 : "", type ? strcspn(type + 16, "\r;") : (size_t) 0, "answer", a->json);
        f = fopen(file, "ae");
        assert_non_null(f);
        if (o) {
                assert_int_equal(json_dumpf(o, f, JSON_COMPACT), 0);
                (void) fputc('\n', f);
        }
        json_decref(o);
        assert_int_equal(fclose(f), 0);
}

/* The usual kind of request; headers are whole lines with CRLF, body may be NULL. */
static inline Answer ask_with(Harness *h, const char *method, const char *target, const char *headers, const char *body) {
        _cleanup_free_ char *request = NULL;
        int fd = dial(h);
        Answer a;

        if (body)
                assert_true(asprintf(&request, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s", method, target, headers,
                                     strlen(body), body) > 0);
        else
                assert_true(asprintf(&request, "%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n", method, target, headers) > 0);
        (void) say(h, fd, request);
        a = hear_kind(h, fd, streq(method, "HEAD"));
        record(method, target, body, &a);
        (void) close(fd);
        return a;
}

static inline Answer ask(Harness *h, const char *method, const char *target, const char *body) {
        return ask_with(h, method, target, "", body);
}

/* Member by dotted path ("group.bandwidth.status", numbers index arrays); NULL when it is not there. */
static inline json_t *at(json_t *o, const char *path) {
        _cleanup_free_ char *copy = strdup(path);
        char *save = NULL;

        for (char *p = strtok_r(copy, ".", &save); p && o; p = strtok_r(NULL, ".", &save))
                o = json_is_array(o) ? json_array_get(o, strtoul(p, NULL, 10)) : json_object_get(o, p);
        return o;
}

static inline const char *text_at(const Answer *a, const char *path) {
        const char *s = json_string_value(at(a->json, path));

        return s ? s : "(none)";
}

static inline char *header_of(const Answer *a, const char *name) {
        _cleanup_free_ char *key = NULL;
        const char *p, *end;

        assert_true(asprintf(&key, "\r\n%s: ", name) > 0);
        p = strcasestr(a->head, key);
        if (!p)
                return NULL;
        p += strlen(key);
        end = strstr(p, "\r\n");
        return strndup(p, (size_t) (end - p));
}

/* The answer is a problem of this status and kind, and complete. */
static inline void check_problem(Answer *a, unsigned status, const char *name) {
        char type[128];

        (void) snprintf(type, sizeof(type), "urn:cpuclass:problem:%s", name);
        if (a->status != status || !a->json || !streq(text_at(a, "type"), type))
                fail_msg("expected %u %s, got %u: %s", status, name, a->status, a->body ? a->body : "(nothing)");
        assert_non_null(strcasestr(a->head, "Content-Type: application/problem+json"));
        assert_int_equal(json_integer_value(at(a->json, "status")), status);
        assert_true(json_is_string(at(a->json, "title")));
        assert_true(json_is_string(at(a->json, "detail")));
        assert_true(json_is_string(at(a->json, "instance")));
        answer_clear(a);
}

static inline void check_status(Answer *a, unsigned status) {
        if (a->status != status)
                fail_msg("expected %u, got %u: %s", status, a->status, a->body ? a->body : "(nothing)");
}
