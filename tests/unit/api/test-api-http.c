/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The API against bad HTTP: what must be refused, how, and that a server still answers after it. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include "tests/unit/api/harness.h"

static int setup(void **state) {
        Harness *h = calloc(1, sizeof(*h));

        harness_open(h, &(ApiConfig) { .max_connections = 32 }, 0);
        *state = h;
        return 0;
}

static int setup_hasty(void **state) {
        Harness *h = calloc(1, sizeof(*h));

        harness_open(h, &(ApiConfig) { .request_timeout_sec = 1, .idle_timeout_sec = 1 }, 0);
        *state = h;
        return 0;
}

static int teardown(void **state) {
        Harness *h = *state;
        Answer a;

        /* whatever came before: it still answers */
        a = ask(h, "GET", "/livez", NULL);
        check_status(&a, 200);
        answer_clear(&a);
        harness_close(h);
        free(h);
        return 0;
}

static void test_routing(void **state) {
        static const char *const unknown[] = {
                "/", "/v1", "/v1/", "/v2/status", "/v1/status/", "//v1/status", "/v1//status", "/v1/classes/", "/v1/classes/a/b", "/v1/./status", "/v1/x/../status",
                "/V1/status", "/v1/assignments/unit/", "/v1/assignments/other/x.service", "/v1/groups/unit/a%2Fb/c", "/metrics/x", "/v1/owners//assignments",
        };
        Harness *h = *state;
        Answer a;

        a = ask(h, "GET", "/v1/status", NULL);
        check_status(&a, 200);
        assert_true(json_is_true(at(a.json, "ready")));
        assert_non_null(strcasestr(a.head, "Cache-Control: no-store"));
        answer_clear(&a);
        /* encoded letters are letters */
        a = ask(h, "GET", "/v1/%73tatus", NULL);
        check_status(&a, 200);
        answer_clear(&a);
        for (size_t i = 0; i < ELEMENTSOF(unknown); i++) {
                a = ask(h, "GET", unknown[i], NULL);
                check_problem(&a, 404, "no-such-route");
        }
}

static void test_bad_paths(void **state) {
        static const char *const bad[] = {
                "/v1/classes/%", "/v1/classes/%4", "/v1/classes/%zz", "/v1/classes/a%00b", "/v1/classes/a%0Ab", "/v1/classes/a%1Bb", "/v1/classes/a%7Fb",
                "/v1/classes/\xc3\xa4", "/v1/classes/a\x01", "/v1/classes/..", "/v1/classes/%2e%2e", "/v1/classes/a%2Fb", "/v1/groups/unit/..%2F..%2Fetc",
                "/v1/groups/unit/no-suffix", "/v1/assignments/pod/%20", "/v1/status#x",
                "http://x/v1/status", "v1/status", "x",
                "/v1/groups/cgroup?path=%0A", "/v1/groups/cgroup?path=/a%0Ab", "/v1/groups/cgroup?path=/a%00b", "/v1/groups/cgroup?path=/../x", "/v1/groups/cgroup?path=a",
                "/v1/groups/cgroup?path=", "/v1/groups/cgroup", "/v1/groups/cgroup?path=/a%2", "/v1/explain?pid=1&unit=a.service", "/v1/explain",
                "/v1/groups?limit=0", "/v1/groups?limit=501", "/v1/groups?limit=1e2", "/v1/groups?limit=-1", "/v1/groups?limit=99999999999999999999", "/v1/groups?limit=",
                "/v1/groups?drift=yes", "/v1/groups?state=fine", "/v1/groups?after=*", "/v1/groups?after=A", "/v1/groups?limit=1&limit=1", "/v1/groups?limit=1&",
        };
        Harness *h = *state;
        Answer a;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                a = ask(h, "GET", bad[i], NULL);
                if (a.status != 400)
                        fail_msg("%s: %u", bad[i], a.status);
                assert_true(json_is_string(at(a.json, "detail")));
                answer_clear(&a);
        }
        a = ask(h, "GET", "/v1/groups?dryrun=true", NULL);
        assert_string_equal(text_at(&a, "errors.0.pointer"), "dryrun");
        check_problem(&a, 400, "unknown-parameter");
        /* a typing error must not turn a question into a change */
        a = ask(h, "PUT", "/v1/assignments/unit/nginx.service?dryrun=true", "{\"class\":\"batch\"}");
        check_problem(&a, 400, "unknown-parameter");
        assert_int_equal(h->manager->n_commands, 0);
}

static void test_methods(void **state) {
        static const struct {
                const char *method, *path, *allow;
        } cases[] = {
                { "POST", "/v1/status", "GET, HEAD, OPTIONS" },
                { "PATCH", "/v1/classes/x", "GET, HEAD, PUT, DELETE, OPTIONS" },
                { "DELETE", "/v1/rules", "GET, HEAD, PUT, OPTIONS" },
                { "GET", "/v1/restore", "POST, OPTIONS" },
                { "BREW", "/v1/pause", "GET, HEAD, PUT, DELETE, OPTIONS" },
                { "get", "/v1/status", "GET, HEAD, OPTIONS" },
                { "CONNECT", "/v1/status", "GET, HEAD, OPTIONS" },
                { "AVERYLONGMETHODTHATNOBODYHASHEARDOF", "/v1/status", NULL },
        };
        Harness *h = *state;
        char *allow;
        Answer a;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                a = ask(h, cases[i].method, cases[i].path, NULL);
                allow = header_of(&a, "Allow");
                if (cases[i].allow)
                        assert_string_equal(allow, cases[i].allow);
                free(allow);
                check_problem(&a, 405, "method-not-allowed");
        }
        a = ask(h, "OPTIONS", "/v1/pause", NULL);
        check_status(&a, 204);
        allow = header_of(&a, "Allow");
        assert_string_equal(allow, "GET, HEAD, PUT, DELETE, OPTIONS");
        free(allow);
        answer_clear(&a);
        a = ask(h, "OPTIONS", "*", NULL);
        check_status(&a, 204);
        answer_clear(&a);
        a = ask(h, "OPTIONS", "/nothing", NULL);
        check_problem(&a, 404, "no-such-route");
        /* HEAD: the headers of GET and no body; hear_kind() would see a body as a second answer */
        a = ask(h, "HEAD", "/v1/classes", NULL);
        check_status(&a, 200);
        assert_non_null(strcasestr(a.head, "ETag: "));
        answer_clear(&a);
        a = ask(h, "HEAD", "/v1/nothing", NULL);
        check_status(&a, 404);
        answer_clear(&a);
        a = ask(h, "HEAD", "/v1/events", NULL);
        check_status(&a, 200);
        answer_clear(&a);
        /* a HEAD of what only POST has */
        a = ask(h, "HEAD", "/v1/restore", NULL);
        check_status(&a, 405);
        answer_clear(&a);
        assert_int_equal(h->manager->n_commands, 0);
}

/* Each must be refused and the connection ended: what follows on it must not become a request. */
static void test_smuggling(void **state) {
#define PUT_HEAD "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
#define SECOND "DELETE /v1/pause HTTP/1.1\r\nHost: x\r\n\r\n"
        static const char *const forms[] = {
                PUT_HEAD "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Content-Length: 2\r\nContent-Length: 44\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length: 2, 2\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length: +2\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length: -2\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length: 0x2\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length: 2 \r\nTransfer-Encoding : chunked\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length : 2\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length\t: 2\r\n\r\n{}" SECOND,
                PUT_HEAD "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Transfer-Encoding: identity\r\n\r\n{}" SECOND,
                PUT_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Transfer-Encoding: \x0b"
                         "chunked\r\n\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Content-Length: 99999999999999999999999\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length: 18446744073709551617\r\n\r\n{}" SECOND,
                "PUT /v1/pause HTTP/1.0\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECOND,
                "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" SECOND,
                "GET /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 44\r\n\r\n" SECOND,
                PUT_HEAD "X\xff: 1\r\nContent-Length: 2\r\n\r\n{}" SECOND,
                PUT_HEAD ": empty\r\nContent-Length: 2\r\n\r\n{}" SECOND,
                PUT_HEAD ": ends the headers of the library\r\nContent-Length: 44\r\n\r\n" SECOND,
                PUT_HEAD "X: y\nContent-Length: 2\r\n\r\n{}" SECOND,
                PUT_HEAD "X: y\n\n" SECOND,
                PUT_HEAD "X: y\r\n\n" SECOND,
                PUT_HEAD "Content-Length:\r\n 2\r\n\r\n{}" SECOND,
                PUT_HEAD "Content-Length: 4\r\n 4\r\n\r\n{}" SECOND,
                PUT_HEAD "X: y\r\n Content-Length: 2\r\n\r\n{}" SECOND,
                PUT_HEAD "no colon\r\nContent-Length: 2\r\n\r\n{}" SECOND,
                PUT_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n" SECOND,
                PUT_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n" SECOND,
        };
        Harness *h = *state;

        for (size_t i = 0; i < ELEMENTSOF(forms); i++) {
                Answer a = raw(h, forms[i]);

                if (a.status != 0 && (a.status < 400 || a.status >= 500))
                        fail_msg("form %zu: %u", i, a.status);
                if (h->manager->n_commands != 0)
                        fail_msg("form %zu got through: %s", i, h->manager->last);
                answer_clear(&a);
        }
}

/* A NUL ends a string, but not a line. */
static void test_nul(void **state) {
        static const char *const forms[] = {
                "PUT /v1/pause@ HTTP/1.1\r\nHost: x\r\n\r\n",
                "PUT /v1/pause?@x HTTP/1.1\r\nHost: x\r\n\r\n",
                "PUT@ /v1/pause HTTP/1.1\r\nHost: x\r\n\r\n",
                "PUT /v1/pause HTTP/1.1@\r\nHost: x\r\n\r\n",
                "PUT /v1/pause HTTP/1.1\r\nHost: x@\r\n\r\n",
                "PUT /v1/pause HTTP/1.1\r\nHost: x\r\n@\r\nContent-Length: 2\r\n\r\n{}",
                "PUT /v1/pause HTTP/1.1\r\nHost: x\r\n@X: y\r\nContent-Length: 2\r\n\r\n{}",
                "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nX@: y\r\n\r\n",
                "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nX: y@z\r\n\r\n",
        };
        Harness *h = *state;

        for (size_t i = 0; i < ELEMENTSOF(forms); i++) {
                _cleanup_free_ char *request = strdup(forms[i]);
                int fd = dial(h);
                Answer a;

                *strchr(request, '@') = 0;
                (void) say_bytes(h, fd, request, strlen(forms[i]));
                a = hear(h, fd);
                (void) close(fd);
                if ((a.status != 0 && a.status != 400) || h->manager->n_commands != 0)
                        fail_msg("form %zu: %u", i, a.status);
                answer_clear(&a);
        }
}

static void test_request_line(void **state) {
        static const char *const forms[] = {
                "GET /v1/status HTTP/1.1\r\n\r\n", /* no Host */
                "GET /v1/status HTTP/2.0\r\nHost: x\r\n\r\n",
                "GET /v1/status HTTP/1.9\r\nHost: x\r\n\r\n",
                "GET /v1/status HTTP/0.9\r\nHost: x\r\n\r\n",
                "GET /v1/status FTP/1.1\r\nHost: x\r\n\r\n",
                "GET /v1/status\r\nHost: x\r\n\r\n",
                "GET /v1/ status HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET  HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET\r\n\r\n",
                "\x16\x03\x01\x02\r\n\r\n", /* TLS */
                " GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n",
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        };
        Harness *h = *state;

        for (size_t i = 0; i < ELEMENTSOF(forms); i++) {
                Answer a = raw(h, forms[i]);

                if (a.status != 0 && (a.status < 400 || a.status > 505))
                        fail_msg("form %zu: %u", i, a.status);
                answer_clear(&a);
        }
}

static void test_huge(void **state) {
        Harness *h = *state;
        size_t size = 256 * 1024;
        _cleanup_free_ char *filler = malloc(size + 1), *request = NULL;
        Answer a;

        memset(filler, 'a', size);
        filler[size] = 0;
        assert_true(asprintf(&request, "GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Filler: %s\r\n\r\n", filler) > 0);
        a = raw(h, request);
        assert_true(a.status == 0 || a.status == 431);
        answer_clear(&a);
        free(request);
        assert_true(asprintf(&request, "GET /v1/classes/%s HTTP/1.1\r\nHost: x\r\n\r\n", filler) > 0);
        a = raw(h, request);
        assert_true(a.status == 0 || a.status == 414);
        answer_clear(&a);
        free(request);
        /* many small headers */
        request = calloc(1, size + 256);
        strcpy(request, "GET /v1/status HTTP/1.1\r\nHost: x\r\n");
        for (char *p = request + strlen(request); p < request + size; p += strlen(p))
                strcpy(p, "A: b\r\n");
        strcat(request, "\r\n");
        a = raw(h, request);
        assert_true(a.status == 0 || a.status == 431);
        answer_clear(&a);
        /* a path as long as the kernel allows, every byte encoded, still fits */
        free(request);
        request = calloc(1, 3 * 4096 + 64);
        strcpy(request, "/v1/groups/cgroup?path=/");
        for (size_t i = 0; i < 250; i++)
                strcat(request, "%C3%A4%C3%A4%C3%A4%C3%A4%C3%A4%C3%A4%C3%A4%2F");
        request[strlen(request) - 3] = 0;
        a = ask(h, "GET", request, NULL);
        check_problem(&a, 404, "not-found");
}

static void test_body_limit(void **state) {
        Harness *h = *state;
        size_t limit = 1024 * 1024;
        _cleanup_free_ char *body = malloc(9 * limit + 1024);
        char head[256];
        Answer a;
        int fd;

        /* exactly at the limit: taken (white space around an object is JSON) */
        memset(body, ' ', limit);
        memcpy(body, "{}", 2);
        body[limit] = 0;
        a = ask(h, "PUT", "/v1/pause", body);
        check_status(&a, 200);
        answer_clear(&a);
        assert_int_equal(h->manager->n_commands, 1);
        /* one more: refused by the header alone */
        body[limit] = ' ';
        body[limit + 1] = 0;
        a = ask(h, "PUT", "/v1/pause", body);
        check_problem(&a, 413, "body-too-large");
        a = ask_with(h, "PUT", "/v1/pause", "Expect: 100-continue\r\n", body);
        check_problem(&a, 413, "body-too-large");

        /* chunked: known only when it has come */
        fd = dial(h);
        assert_true(say(h, fd, "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"));
        (void) snprintf(head, sizeof(head), "%zx\r\n", limit);
        memset(body, ' ', limit + 1);
        memcpy(body, "{}", 2);
        assert_true(say(h, fd, head) && say_bytes(h, fd, body, limit) && say(h, fd, "\r\n0\r\n\r\n"));
        a = hear(h, fd);
        check_status(&a, 200);
        answer_clear(&a);
        /* the same connection goes on, with one byte more */
        assert_true(say(h, fd, "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"));
        (void) snprintf(head, sizeof(head), "%zx\r\n", limit + 1);
        assert_true(say(h, fd, head) && say_bytes(h, fd, body, limit + 1) && say(h, fd, "\r\n0\r\n\r\n"));
        a = hear(h, fd);
        check_problem(&a, 413, "body-too-large");
        (void) close(fd);

        /* one that never ends is cut off */
        fd = dial(h);
        assert_true(say(h, fd, "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"));
        (void) snprintf(head, sizeof(head), "%zx\r\n", limit);
        memset(body, ' ', limit);
        for (int i = 0; i < 64; i++)
                if (!say(h, fd, head) || !say_bytes(h, fd, body, limit) || !say(h, fd, "\r\n")) {
                        assert_true(i >= 8);
                        break;
                } else
                        assert_true(i < 63);
        (void) close(fd);
        assert_int_equal(h->manager->n_commands, 2);
}

/* Bodies of many requests at once stay within one budget. */
static void test_body_budget(void **state) {
        Harness *h = *state;
        size_t limit = 1024 * 1024, n_refused = 0;
        _cleanup_free_ char *body = malloc(limit);
        char head[256];
        int fds[16];

        memset(body, ' ', limit);
        memcpy(body, "{}", 2);
        (void) snprintf(head, sizeof(head), "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", limit);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
                fds[i] = dial(h);
                assert_true(say(h, fds[i], head) && say_bytes(h, fds[i], body, limit - 1));
        }
        (void) pump(h, -1, 50000);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
                Answer a;

                assert_true(say(h, fds[i], " "));
                a = hear(h, fds[i]);
                if (a.status == 503)
                        n_refused++;
                else
                        check_status(&a, 200);
                answer_clear(&a);
                (void) close(fds[i]);
        }
        assert_true(n_refused >= 1 && n_refused < ELEMENTSOF(fds));
}

static void test_bad_bodies(void **state) {
        static const char *const bodies[] = {
                "", "{", "[]", "1", "null", "\"x\"", "{}x", "{\"group\":\"a.service\",\"group\":\"b.service\"}", "{\"group\":1}", "{\"group\":\"\"}", "{\"grupp\":\"a.service\"}",
                "{\"duration_usec\":1.5}", "{\"duration_usec\":-1}", "{\"duration_usec\":0}", "{\"duration_usec\":99999999999999999999}", "{\"duration_usec\":true}",
                "{\"group\":\"a\\nb.service\"}", "{\"group\":\"/a\\nb\"}", "{\"group\":\"a\\u0000b\"}", "{\"group\":\"../x\"}", "{\"group\":\"\xff.service\"}",
        };
        Harness *h = *state;
        _cleanup_free_ char *deep = malloc(400001);
        Answer a;

        for (size_t i = 1; i < ELEMENTSOF(bodies); i++) {
                a = ask(h, "PUT", "/v1/pause", bodies[i]);
                if (a.status != 400)
                        fail_msg("%s: %u", bodies[i], a.status);
                assert_true(json_array_size(at(a.json, "errors")) > 0);
                answer_clear(&a);
        }
        a = ask(h, "PUT", "/v1/pause", "{\"duration_usec\":0,\"x\":1}");
        assert_int_equal(json_array_size(at(a.json, "errors")), 2); /* all at once */
        check_problem(&a, 400, "invalid");
        /* where a body is required */
        a = ask(h, "PUT", "/v1/classes/x", "");
        check_problem(&a, 400, "invalid-json");
        a = ask(h, "PUT", "/v1/classes/x", NULL);
        check_problem(&a, 400, "invalid-json");
        /* nesting as deep as the body allows */
        for (int kind = 0; kind < 2; kind++) {
                if (kind == 0)
                        memset(deep, '[', 400000);
                else
                        for (size_t i = 0; i + 5 <= 400000; i += 5)
                                memcpy(deep + i, "{\"a\":", 5);
                deep[400000] = 0;
                a = ask(h, "PUT", "/v1/classes/x", deep);
                check_problem(&a, 400, "invalid-json");
        }
        assert_int_equal(h->manager->n_commands, 0);
}

static void test_content_type(void **state) {
        static const struct {
                const char *header;
                unsigned status;
        } cases[] = {
                { "Content-Type: application/json\r\n", 200 }, { "Content-Type: APPLICATION/JSON ; charset=UTF-8\r\n", 200 }, { "", 415 },
                { "Content-Type: text/plain\r\n", 415 }, { "Content-Type: application/x-www-form-urlencoded\r\n", 415 }, { "Content-Type: application/jsonx\r\n", 415 },
                { "Content-Type: application/json; charset=utf-16\r\n", 415 }, { "Content-Type: multipart/form-data; boundary=x\r\n", 415 },
        };
        Harness *h = *state;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *request = NULL;
                Answer a;

                assert_true(asprintf(&request, "PUT /v1/pause HTTP/1.1\r\nHost: x\r\n%sContent-Length: 2\r\n\r\n{}", cases[i].header) > 0);
                a = raw(h, request);
                if (a.status != cases[i].status)
                        fail_msg("%s: %u", cases[i].header, a.status);
                answer_clear(&a);
        }
}

/* Clients that go away at any point, and clients that never come to it. */
static void test_early_close(void **state) {
        static const char request[] = "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        Harness *h = *state;
        Answer a;

        for (size_t n = 0; n <= sizeof(request) - 1; n++) {
                int fd = dial(h);

                assert_true(say_bytes(h, fd, request, n));
                if (n % 2 || n == sizeof(request) - 1)
                        (void) pump(h, -1, 2000);
                (void) close(fd);
                (void) pump(h, -1, 1000);
        }
        /* only the whole one counted */
        assert_int_equal(h->manager->n_commands, 1);
        /* an answer that nobody reads */
        for (int i = 0; i < 20; i++) {
                int fd = dial(h);

                assert_true(say(h, fd, "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n"));
                (void) close(fd);
        }
        (void) pump(h, -1, 20000);
        a = ask(h, "GET", "/v1/status", NULL);
        check_status(&a, 200);
        assert_int_equal(json_integer_value(at(a.json, "api.connections")), 1);
        answer_clear(&a);
}

static void test_slow_clients(void **state) {
        Harness *h = *state;
        uint64_t start = test_now_usec();
        int idle = dial(h), drip = dial(h), reader = dial(h);
        char byte;
        ssize_t n;
        Answer a;

        /* says nothing; says a byte now and then; asks for much and reads nothing */
        assert_true(say(h, drip, "GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Slow: "));
        for (int i = 0; i < 200; i++)
                if (!say(h, reader, "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n"))
                        break;
        while (test_now_usec() - start < 15 * USEC_PER_SEC) {
                (void) pump(h, -1, 100000);
                if (!say(h, drip, "a"))
                        break;
        }
        assert_true(test_now_usec() - start < 15 * USEC_PER_SEC); /* the drip was cut */
        n = recv(idle, &byte, 1, MSG_DONTWAIT);
        assert_int_equal(n, 0); /* and the idle one */
        start = test_now_usec();
        do {
                (void) pump(h, -1, 100000);
                a = ask(h, "GET", "/v1/status", NULL);
                n = (ssize_t) json_integer_value(at(a.json, "api.connections"));
                answer_clear(&a);
        } while (n > 1 && test_now_usec() - start < 20 * USEC_PER_SEC);
        assert_int_equal(n, 1); /* and the one that does not read */
        (void) close(idle);
        (void) close(drip);
        (void) close(reader);
}

static void test_keep_alive(void **state) {
        Harness *h = *state;
        int fd = dial(h);
        Answer a;

        /* one connection serves good and bad requests, as long as their bodies were read */
        for (int i = 0; i < 3; i++) {
                assert_true(say(h, fd, "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"));
                a = hear(h, fd);
                check_status(&a, 200);
                answer_clear(&a);
                assert_true(say(h, fd, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"));
                a = hear(h, fd);
                check_problem(&a, 404, "no-such-route");
                assert_true(say(h, fd, "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"));
                a = hear(h, fd);
                check_problem(&a, 400, "invalid");
        }
        /* two at once are answered in turn */
        assert_true(say(h, fd, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        (void) pump(h, -1, 20000);
        (void) close(fd);
}

static void test_connection_limit(void **state) {
        Harness *h = *state;
        int fds[40];
        Answer a;

        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                fds[i] = dial(h);
        (void) pump(h, -1, 20000);
        /* those beyond wait until others go (at the latest by the time-out) */
        for (size_t i = 0; i < 32; i++)
                (void) close(fds[i]);
        for (size_t i = 32; i < ELEMENTSOF(fds); i++) {
                assert_true(say(h, fds[i], "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"));
                a = hear(h, fds[i]);
                check_status(&a, 200);
                answer_clear(&a);
                (void) close(fds[i]);
        }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_routing), T(test_bad_paths), T(test_methods), T(test_smuggling), T(test_request_line), T(test_nul), T(test_huge), T(test_body_limit), T(test_body_budget),
                T(test_bad_bodies), T(test_content_type), T(test_early_close), cmocka_unit_test_setup_teardown(test_slow_clients, setup_hasty, teardown), T(test_keep_alive), T(test_connection_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
