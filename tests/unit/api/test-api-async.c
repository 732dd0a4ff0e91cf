/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers that come later, events as they happen, and who may do what. */

#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/wait.h>

#include "tests/unit/api/harness.h"

#define NGINX "/v1/assignments/unit/nginx.service"
#define BATCH "/v1/assignments/unit/batch.service"

static int setup(void **state) {
        Harness *h = calloc(1, sizeof(*h));

        harness_open(h, &(ApiConfig) { .max_subscribers = 3, .heartbeat_sec = 1, .reader_group = "users", .writer_group = "games", .max_connections_per_uid = 3 }, 0);
        *state = h;
        return 0;
}

static int teardown(void **state) {
        harness_close(*state);
        free(*state);
        return 0;
}

/* ---- waiting ---- */

static void test_wait(void **state) {
        Harness *h = *state;
        Answer a;

        for (FakeWait w = FAKE_WAIT_NOW; w <= FAKE_WAIT_SOON; w++) {
                h->manager->wait = w;
                a = ask(h, "PUT", NGINX "?wait=applied", "{\"class\":\"latency-critical\"}");
                check_status(&a, w == FAKE_WAIT_NOW ? 201 : 200);
                assert_string_equal(text_at(&a, "assignment.class"), "latency-critical");
                assert_int_equal(json_integer_value(at(a.json, "group.bandwidth.observed.quota_usec")), 50000);
                assert_non_null(strcasestr(a.head, "ETag: "));
                answer_clear(&a);
        }
        a = ask(h, "DELETE", NGINX "?wait=applied&timeout_usec=1000000", NULL);
        check_status(&a, 200);
        assert_string_equal(text_at(&a, "group.unit"), "nginx.service");
        answer_clear(&a);

        /* a target that is not here */
        a = ask(h, "PUT", "/v1/assignments/unit/gone.service?wait=applied", "{\"class\":\"batch\"}");
        check_status(&a, 202);
        assert_true(json_is_null(at(a.json, "group")));
        assert_string_equal(text_at(&a, "pending"), "unit is not loaded");
        answer_clear(&a);
        assert_true(h->manager->done_target == NULL || !streq(h->manager->done_target, "gone.service")); /* not waited for */
        h->manager->wait_error = -ETIMEDOUT;
        a = ask(h, "PUT", "/v1/assignments/cgroup?path=/gone&wait=applied", "{\"class\":\"batch\"}");
        check_status(&a, 202);
        answer_clear(&a);
        a = ask(h, "DELETE", "/v1/assignments/cgroup?path=/gone&wait=applied", NULL);
        check_status(&a, 200);
        assert_true(json_is_null(at(a.json, "group")));
        answer_clear(&a);
        h->manager->wait_error = 0;
        /* the kernel refused: an error, and the user sees which */
        a = ask(h, "PUT", BATCH "?wait=applied", "{\"class\":\"batch\"}");
        assert_true(json_is_true(at(a.json, "durable")));
        assert_string_equal(text_at(&a, "group.bandwidth.errno"), "EINVAL");
        assert_non_null(strstr(text_at(&a, "detail"), "the kernel refused the quota"));
        check_problem(&a, 502, "not-applied");
        h->manager->wait_error = -ETIMEDOUT;
        a = ask(h, "PUT", NGINX "?wait=applied", "{\"class\":\"batch\"}");
        assert_true(json_is_true(at(a.json, "durable")));
        assert_string_equal(text_at(&a, "group.unit"), "nginx.service");
        check_problem(&a, 504, "not-applied-in-time");
        assert_int_equal(h->audit.status, 504);
        h->manager->wait_error = -EACCES;
        a = ask(h, "PUT", NGINX "?wait=applied", "{\"class\":\"batch\"}");
        assert_string_equal(text_at(&a, "errno"), "EACCES");
        check_problem(&a, 502, "not-applied");
}

/* Others are served meanwhile; an end of the server in the middle is no crash. */
static void test_wait_and_end(void **state) {
        Harness *h = *state;
        Answer a;
        int fd = dial(h);

        h->manager->wait = FAKE_WAIT_NEVER;
        assert_true(say(h, fd, "PUT " NGINX "?wait=applied HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"class\":\"batch\"}"));
        (void) pump(h, -1, 20000);
        assert_non_null(h->manager->done);
        a = ask(h, "GET", NGINX, NULL);
        check_status(&a, 200);
        answer_clear(&a);
        h->server = api_server_free(h->server);
        assert_int_equal(h->manager->n_cancelled, 1);
        assert_null(h->manager->done);
        (void) close(fd);
}

static void test_restore(void **state) {
        Harness *h = *state;
        Answer a;

        for (FakeWait w = FAKE_WAIT_NOW; w <= FAKE_WAIT_SOON; w++) {
                h->manager->wait = w;
                a = ask(h, "POST", "/v1/restore", NULL);
                check_status(&a, 200);
                assert_int_equal(json_integer_value(at(a.json, "restored")), 3);
                assert_int_equal(json_integer_value(at(a.json, "left")), 1);
                answer_clear(&a);
                assert_true(h->manager->status.paused);
        }
        h->manager->fail = -EROFS;
        a = ask(h, "POST", "/v1/restore", NULL);
        check_problem(&a, 507, "storage");
        a = ask(h, "POST", "/v1/restore", "{\"now\":true}");
        check_problem(&a, 400, "invalid");
}

/* The request ends (with the server) before the manager is done: its callback must find nobody, quietly. */
static void test_restore_and_end(void **state) {
        Harness *h = *state;
        int fd = dial(h);

        h->manager->wait = FAKE_WAIT_SOON;
        assert_true(say(h, fd, "POST /v1/restore HTTP/1.1\r\nHost: x\r\n\r\n"));
        while (!h->manager->restored)
                assert_true(sd_event_run(h->event, 1000) >= 0);
        h->server = api_server_free(h->server);
        (void) pump(h, -1, 50000);
        assert_null(h->manager->restored); /* it was called */
        (void) close(fd);
}

/* ---- events ---- */

/* Opens a stream and reads its head. */
static int subscribe(Harness *h, const char *headers) {
        _cleanup_free_ char *request = NULL;
        char c, head[1024] = "";
        int fd = dial(h);

        assert_true(asprintf(&request, "GET /v1/events HTTP/1.1\r\nHost: x\r\n%s\r\n", headers) > 0);
        assert_true(say(h, fd, request));
        while (!endswith(head, "\r\n\r\n")) {
                assert_true(pump(h, fd, 20 * USEC_PER_SEC));
                assert_int_equal(recv(fd, &c, 1, 0), 1);
                head[strlen(head)] = c;
                assert_true(strlen(head) < sizeof(head) - 1);
        }
        assert_true(startswith(head, "HTTP/1.1 200"));
        assert_non_null(strcasestr(head, "Content-Type: text/event-stream"));
        return fd;
}

/* Reads until the stream has shown a text; chunk framing stays in. */
static char *listen_for(Harness *h, int fd, const char *text) {
        static char data[1024 * 1024];
        size_t size = 0;

        for (;;) {
                ssize_t n;

                if (!pump(h, fd, 20 * USEC_PER_SEC))
                        fail_msg("did not come: %s; so far: %.*s", text, (int) size, data);
                n = recv(fd, data + size, sizeof(data) - 1 - size, MSG_DONTWAIT);
                if (n <= 0)
                        fail_msg("the stream ended before: %s; so far: %.*s", text, (int) size, data);
                size += (size_t) n;
                data[size] = 0;
                if (strstr(data, text))
                        return data;
        }
}

static void test_events(void **state) {
        Harness *h = *state;
        _cleanup_free_ char *id = NULL, *headers = NULL;
        char *seen, *p;
        int fd, again;

        fake_decide(h->manager, "/a", "earlier");
        fd = subscribe(h, "");
        (void) listen_for(h, fd, "retry: ");
        fake_decide(h->manager, "/a", "first\nevent: forged\n\xff");
        fake_decide(h->manager, STRANGE_CGROUP, "second");
        seen = listen_for(h, fd, "\"second\"");
        assert_null(strstr(seen, "earlier"));
        assert_null(strstr(seen, "\nevent: forged"));
        assert_non_null(strstr(seen, "event: decision\ndata: {"));
        p = strstr(seen, "id: ");
        assert_non_null(p);
        id = strndup(p + 4, strcspn(p + 4, "\n"));
        (void) listen_for(h, fd, ": still here");
        (void) listen_for(h, fd, ": still here"); /* and again */
        (void) close(fd);

        /* go on after the first of the two */
        assert_true(asprintf(&headers, "Last-Event-ID: %s\r\n", id) > 0);
        again = subscribe(h, headers);
        seen = listen_for(h, again, "\"second\"");
        assert_null(strstr(seen, "forged"));
        assert_null(strstr(seen, "event: gap"));
        (void) close(again);
        /* of another life, and nonsense: all there is, and it is said */
        static const char *const others[] = { "123-2", "", "x", "60a24181e4000-99999999999999999999", "-1", "60a24181e4000-2x" };
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                free(TAKE_PTR(headers));
                assert_true(asprintf(&headers, "Last-Event-ID: %s\r\n", others[i]) > 0);
                again = subscribe(h, headers);
                seen = listen_for(h, again, "\"second\"");
                assert_non_null(strstr(seen, "event: gap\ndata: {\"oldest\":1}"));
                assert_non_null(strstr(seen, "earlier"));
                (void) close(again);
                (void) pump(h, -1, 20000);
                fake_decide(h->manager, "/a", "more"); /* so that the closed one is noticed */
                (void) pump(h, -1, 20000);
        }
}

/* One that reads nothing costs its buffer; when it reads again it is told what it missed. */
static void test_slow_subscriber(void **state) {
        Harness *h = *state;
        char text[4096];
        int slow = subscribe(h, ""), quick = subscribe(h, "");

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        for (int i = 0; i < 1000; i++) {
                fake_decide(h->manager, "/a", text);
                if (i % 8 == 0) {
                        char sink[65536];

                        (void) pump(h, -1, 2000);
                        while (recv(quick, sink, sizeof(sink), MSG_DONTWAIT) > 0)
                                (void) pump(h, -1, 500);
                }
        }
        (void) listen_for(h, slow, "event: gap");
        (void) close(slow);
        (void) close(quick);
}

static void test_subscriber_limit(void **state) {
        Harness *h = *state;
        int fds[3];
        Answer a;

        for (size_t i = 0; i < 3; i++)
                fds[i] = subscribe(h, "");
        a = ask(h, "GET", "/v1/events", NULL);
        assert_non_null(strcasestr(a.head, "Retry-After: "));
        check_problem(&a, 503, "too-many-subscribers");
        a = ask(h, "GET", "/v1/status", NULL);
        assert_int_equal(json_integer_value(at(a.json, "api.subscribers")), 3);
        answer_clear(&a);
        /* a place is free again once one has gone; the next heartbeats notice */
        (void) close(fds[0]);
        for (int i = 0; i < 40; i++) {
                (void) pump(h, -1, 100000);
                a = ask(h, "GET", "/v1/status", NULL);
                if (json_integer_value(at(a.json, "api.subscribers")) == 2)
                        break;
                answer_clear(&a);
        }
        assert_int_equal(json_integer_value(at(a.json, "api.subscribers")), 2);
        answer_clear(&a);
        fds[0] = subscribe(h, "");
        /* the server ends while they listen */
        h->server = api_server_free(h->server);
        for (size_t i = 0; i < 3; i++)
                (void) close(fds[i]);
        fake_decide(h->manager, "/a", "nobody is told");
}

/* ---- rights ---- */

static void test_rights(void **state) {
        static const struct {
                const char *method, *target, *body;
        } changes[] = {
                { "PUT", NGINX, "{\"class\":\"batch\"}" }, { "PUT", NGINX "?dry_run=true", "{\"class\":\"batch\"}" }, { "DELETE", NGINX, NULL },
                { "PUT", "/v1/assignments/cgroup?path=/a", "{\"class\":\"batch\"}" }, { "DELETE", "/v1/assignments/pod/x", NULL },
                { "PUT", "/v1/owners/x/assignments", "{\"assignments\":[]}" }, { "PUT", "/v1/classes/x", "{}" }, { "DELETE", "/v1/classes/x", NULL },
                { "PUT", "/v1/rules", "{\"rules\":[]}" }, { "POST", "/v1/policy/reload", NULL }, { "PUT", "/v1/pause", "{}" }, { "DELETE", "/v1/pause", NULL },
                { "POST", "/v1/restore", NULL }, { "POST", "/v1/pools/x", NULL },
        };
        static const char *const reads[] = {
                "/v1/status", "/v1/host", "/v1/classes", "/v1/classes/batch", "/v1/rules", "/v1/groups", "/v1/groups/unit/nginx.service", "/v1/explain?unit=nginx.service",
                "/v1/assignments", "/v1/owners/x/assignments", "/v1/decisions", "/v1/policy", "/v1/pause", "/metrics", "/livez", "/readyz", "/openapi.yaml",
        };
        Harness *h = *state;
        Answer a;

        for (h->right = 0; h->right <= 1; h->right++)
                for (size_t i = 0; i < ELEMENTSOF(changes); i++) {
                        unsigned before = h->n_audits;

                        a = ask(h, changes[i].method, changes[i].target, changes[i].body);
                        check_problem(&a, 403, "forbidden");
                        assert_int_equal(h->n_audits, before + 1);
                        assert_int_equal(h->audit.status, 403);
                }
        for (h->right = 0; h->right <= 1; h->right++)
                for (size_t i = 0; i < ELEMENTSOF(reads); i++) {
                        a = ask(h, "GET", reads[i], NULL);
                        check_status(&a, h->right == 1 ? 200 : 403);
                        answer_clear(&a);
                        a = ask(h, "HEAD", reads[i], NULL);
                        check_status(&a, h->right == 1 ? 200 : 403);
                        answer_clear(&a);
                }
        /* who may not even read is not told what there is */
        h->right = 0;
        a = ask(h, "GET", "/nothing", NULL);
        check_problem(&a, 403, "forbidden");
        a = ask(h, "OPTIONS", "/v1/pause", NULL);
        check_problem(&a, 403, "forbidden");
        assert_int_equal(h->manager->n_commands, 0);
}

/* A peer of another user and groups, as the kernel tells it: status of a GET and of a PUT. */
static void ask_as(Harness *h, uid_t uid, gid_t gid, gid_t other, unsigned ret[2]) {
        int pipes[2];
        pid_t pid;

        assert_int_equal(pipe(pipes), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                static const char *const requests[] = { "GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                                                        "PUT /v1/pause HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" };

                if (setgroups(other != (gid_t) -1, &other) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
                        _exit(1);
                for (size_t i = 0; i < 2; i++) {
                        char answer[16] = "";
                        struct sockaddr_un un = { .sun_family = AF_UNIX };
                        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

                        strcpy(un.sun_path, h->socket);
                        if (connect(fd, (struct sockaddr *) &un, sizeof(un)) < 0 || send(fd, requests[i], strlen(requests[i]), 0) < 0 || recv(fd, answer, 12, MSG_WAITALL) != 12)
                                _exit(1);
                        if (write(pipes[1], answer + 9, 3) != 3)
                                _exit(1);
                        (void) close(fd);
                }
                _exit(0);
        }
        (void) close(pipes[1]);
        for (size_t i = 0; i < 2; i++) {
                char text[4] = "";

                assert_true(pump(h, pipes[0], 20 * USEC_PER_SEC));
                if (read(pipes[0], text, 3) != 3)
                        fail_msg("the peer could not ask");
                ret[i] = (unsigned) strtoul(text, NULL, 10);
        }
        (void) close(pipes[0]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_peer_credentials(void **state) {
        static const struct {
                uid_t uid;
                const char *group, *other;
                unsigned get, put;
        } cases[] = {
                { 0, "nogroup", NULL, 200, 200 },    { 65534, "nogroup", NULL, 403, 403 },     { 65534, "nogroup", "mail", 403, 403 }, { 65534, "users", NULL, 200, 403 },
                { 65534, "nogroup", "users", 200, 403 }, { 65534, "games", NULL, 200, 200 }, { 65534, "nogroup", "games", 200, 200 },
        };
        Harness *h = *state;

        if (geteuid() != 0 || !getgrnam("users") || !getgrnam("games") || !getgrnam("mail") || !getgrnam("nogroup"))
                skip();
        h->right = -1;
        assert_int_equal(chmod(h->directory, 0755), 0);
        assert_int_equal(chmod(h->socket, 0666), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                unsigned got[2];

                ask_as(h, cases[i].uid, getgrnam(cases[i].group)->gr_gid, cases[i].other ? getgrnam(cases[i].other)->gr_gid : (gid_t) -1, got);
                if (got[0] != cases[i].get || got[1] != cases[i].put)
                        fail_msg("case %zu: GET %u, PUT %u", i, got[0], got[1]);
                assert_int_equal(h->audit.uid, cases[i].uid);
        }
}

/* One user's connections leave room for others; root's are not counted against it. */
static void test_connections_of_one_user(void **state) {
        Harness *h = *state;
        unsigned statuses[2];
        pid_t pid;
        int pipes[2];
        char c;
        Answer a;

        if (geteuid() != 0)
                skip();
        assert_int_equal(chmod(h->directory, 0755), 0);
        assert_int_equal(chmod(h->socket, 0666), 0);
        assert_int_equal(pipe(pipes), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                if (setresuid(65534, 65534, 65534) < 0)
                        _exit(1);
                for (int i = 0; i < 3; i++) {
                        struct sockaddr_un un = { .sun_family = AF_UNIX };
                        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

                        strcpy(un.sun_path, h->socket);
                        if (connect(fd, (struct sockaddr *) &un, sizeof(un)) < 0)
                                _exit(1);
                }
                if (write(pipes[1], "x", 1) != 1)
                        _exit(1);
                (void) pause();
                _exit(0);
        }
        assert_true(pump(h, pipes[0], 20 * USEC_PER_SEC));
        assert_int_equal(read(pipes[0], &c, 1), 1);
        (void) pump(h, -1, 20000);
        ask_as(h, 65534, 65534, (gid_t) -1, statuses);
        assert_int_equal(statuses[0], 503);
        ask_as(h, 65533, 65534, (gid_t) -1, statuses);
        assert_int_equal(statuses[0], 200);
        for (int i = 0; i < 5; i++) {
                a = ask(h, "GET", "/livez", NULL);
                check_status(&a, 200);
                answer_clear(&a);
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        (void) close(pipes[0]);
        (void) close(pipes[1]);
}

static void test_socket(void **state) {
        Harness *h = *state;
        ApiServer *second = NULL;
        struct stat st;
        ApiConfig c = h->config;
        char path[160];
        FILE *f;

        assert_int_equal(stat(h->socket, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0660);
        if (geteuid() == 0 && getgrnam("users"))
                assert_int_equal(st.st_gid, getgrnam("users")->gr_gid);
        /* somebody serves there */
        assert_int_equal(api_server_new(h->event, h->manager, -1, &c, &second), -EADDRINUSE);
        assert_int_equal(stat(h->socket, &st), 0);
        /* a file that is no socket is not ours to remove */
        (void) snprintf(path, sizeof(path), "%s/file", h->directory);
        f = fopen(path, "we");
        assert_non_null(f);
        assert_int_equal(fclose(f), 0);
        c.socket_path = path;
        assert_true(api_server_new(h->event, h->manager, -1, &c, &second) < 0);
        assert_int_equal(stat(path, &st), 0);
        assert_true(S_ISREG(st.st_mode));
        /* what a crash left is taken over */
        h->server = api_server_free(h->server);
        assert_true(stat(h->socket, &st) < 0);
        {
                struct sockaddr_un un = { .sun_family = AF_UNIX };
                int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
                Answer a;

                strcpy(un.sun_path, h->socket);
                assert_int_equal(bind(fd, (struct sockaddr *) &un, sizeof(un)), 0);
                (void) close(fd);
                assert_int_equal(api_server_new(h->event, h->manager, -1, &h->config, &h->server), 0);
                a = ask(h, "GET", "/livez", NULL);
                check_status(&a, 200);
                answer_clear(&a);
        }
}

/* Socket activation: the descriptor is used, the file is systemd's. */
static void test_activation(void **state) {
        Harness *h = *state;
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        struct stat st;
        int fd;
        Answer a;

        h->server = api_server_free(h->server);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        strcpy(un.sun_path, h->socket);
        assert_int_equal(bind(fd, (struct sockaddr *) &un, sizeof(un)), 0);
        assert_int_equal(listen(fd, 8), 0);
        h->config.socket_path = NULL;
        assert_int_equal(api_server_new(h->event, h->manager, fd, &h->config, &h->server), 0);
        a = ask(h, "GET", "/v1/status", NULL);
        check_status(&a, 200);
        answer_clear(&a);
        h->server = api_server_free(h->server);
        assert_int_equal(stat(h->socket, &st), 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_wait), T(test_wait_and_end), T(test_restore), T(test_restore_and_end), T(test_events), T(test_slow_subscriber), T(test_subscriber_limit),
                T(test_rights), T(test_peer_credentials), T(test_connections_of_one_user), T(test_socket), T(test_activation),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
