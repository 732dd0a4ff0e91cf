/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Documents and logs on disk: whole or old after a fault at any step, and damage is found, counted and kept. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/statefile.h"
#include "tests/unit/state-faults.h"

static json_t *document(int n) {
        return json_pack("{s:i, s:i, s:s}", "version", 1, "n", n, "text", "line\nwith \"quotes\" and \xc3\xa4");
}

static int number_in(int dir_fd, const char *name) {
        json_t *j;
        int n;

        assert_int_equal(state_read_json(dir_fd, name, 4096, &j, NULL, 0), 0);
        n = (int) json_integer_value(json_object_get(j, "n"));
        json_decref(j);
        return n;
}

static void test_document(void **state) {
        int dir = scratch_open();
        json_t *a = document(1), *j = NULL;
        struct stat st;
        char error[100];

        assert_int_equal(state_read_json(dir, "d", 4096, &j, NULL, 0), -ENOENT);
        assert_int_equal(state_write_json(dir, "d", a), 0);
        assert_int_equal(state_read_json(dir, "d", 4096, &j, NULL, 0), 0);
        assert_true(json_equal(a, j));
        json_decref(j);
        assert_int_equal(fstatat(dir, "d", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_false(file_exists(dir, "d.tmp"));

        j = NULL;
        assert_int_equal(state_read_json(dir, "d", 10, &j, error, sizeof(error)), -EBADMSG);
        assert_string_equal(error, "larger than 10 bytes");
        write_raw(dir, "x", "{\"version\":1, \"a\":\x1b[31m}", 24);
        assert_int_equal(state_read_json(dir, "x", 4096, &j, error, sizeof(error)), -EBADMSG);
        assert_null(strchr(error, '\x1b'));
        assert_non_null(strstr(error, "line 1"));
        write_raw(dir, "x", "{\"version\":1,\"a\":1,\"a\":2}", 25);
        assert_int_equal(state_read_json(dir, "x", 4096, &j, error, sizeof(error)), -EBADMSG);
        write_raw(dir, "x", "{\"a\":1}", 7);
        assert_int_equal(state_read_json(dir, "x", 4096, &j, error, sizeof(error)), -EBADMSG);
        assert_string_equal(error, "no \"version\"");
        write_raw(dir, "x", "", 0);
        assert_int_equal(state_read_json(dir, "x", 4096, &j, NULL, 0), -EBADMSG);

        /* Not a file of ours: a link, a pipe, a directory. */
        assert_int_equal(symlinkat("d", dir, "link"), 0);
        assert_int_equal(state_read_json(dir, "link", 4096, &j, NULL, 0), -EBADMSG);
        assert_int_equal(mkfifoat(dir, "pipe", 0600), 0);
        assert_int_equal(state_read_json(dir, "pipe", 4096, &j, NULL, 0), -EBADMSG);
        assert_int_equal(mkdirat(dir, "dir", 0700), 0);
        assert_int_equal(state_read_json(dir, "dir", 4096, &j, error, sizeof(error)), -EBADMSG);
        assert_int_equal(state_read_json(dir, "../d", 4096, &j, NULL, 0), -EINVAL);
        assert_int_equal(state_write_json(dir, "a/b", a), -EINVAL);

        json_decref(a);
        a = json_object();
        assert_int_equal(state_write_json(dir, "d", a), -EINVAL);
        assert_int_equal(number_in(dir, "d"), 1);
        json_decref(a);
        scratch_close(dir);
}

static void test_document_errors(void **state) {
        int dir = scratch_open();
        json_t *a = document(1), *b = document(2);
        unsigned n;

        assert_int_equal(state_write_json(dir, "d", a), 0);
        fault_arm(0, 0);
        assert_int_equal(state_write_json(dir, "d", a), 0);
        n = fault_steps;
        assert_true(n >= 5);
        for (unsigned i = 1; i < n; i++) { /* the last step is the directory's, when the new file has the name already */
                fault_arm(i, -ENOSPC);
                assert_int_equal(state_write_json(dir, "d", b), -ENOSPC);
                fault_disarm();
                assert_int_equal(number_in(dir, "d"), 1);
                assert_false(file_exists(dir, "d.tmp"));
        }
        fault_arm(n, -EIO);
        assert_int_equal(state_write_json(dir, "d", b), -EIO);
        fault_disarm();
        json_decref(a);
        json_decref(b);
        scratch_close(dir);
}

static void write_two(void *userdata) {
        int dir = *(int *) userdata;
        json_t *b = document(2);

        if (state_write_json(dir, "d", b) < 0)
                abort();
        json_decref(b);
}

static void test_document_crash(void **state) {
        int dir = scratch_open();
        json_t *a = document(1);
        bool died = true;

        for (unsigned i = 1; died; i++) {
                int n;

                assert_int_equal(state_write_json(dir, "d", a), 0);
                died = dies_at(i, write_two, &dir);
                n = number_in(dir, "d");
                assert_true(n == 1 || n == 2);
                if (!died)
                        assert_int_equal(n, 2);
        }
        json_decref(a);
        scratch_close(dir);
}

static void test_put_aside(void **state) {
        int dir = scratch_open();
        char text[] = "0";
        char *s;

        assert_int_equal(state_put_aside(dir, "d"), -ENOENT);
        for (int i = 1; i <= 12; i++) {
                text[0] = (char) ('a' + i);
                write_raw(dir, "d", text, 1);
                assert_int_equal(state_put_aside(dir, "d"), 0);
                assert_false(file_exists(dir, "d"));
        }
        s = read_raw(dir, "d.damaged-1", NULL);
        assert_string_equal(s, "b");
        free(s);
        s = read_raw(dir, "d.damaged-8", NULL);
        assert_string_equal(s, "i");
        free(s);
        s = read_raw(dir, "d.damaged-9", NULL);
        assert_string_equal(s, "m");
        free(s);
        assert_false(file_exists(dir, "d.damaged-10"));
        scratch_close(dir);
}

static void test_strings(void **state) {
        static const char *const cases[] = { "", "plain", "\xc3\xa4", "\xff\xfe\x01", "a\x80", "\x1b[0m", "\n" };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *j = state_string_to_json(cases[i]);
                _cleanup_free_ char *s = NULL;

                assert_non_null(j);
                assert_int_equal(state_string_from_json(j, &s), 0);
                assert_string_equal(s, cases[i]);
                json_decref(j);
        }
        for (size_t i = 0; i < 4; i++) {
                json_t *j = json_loads((const char *[]){ "{\"hex\":\"0\"}", "{\"hex\":\"zz\"}", "{\"hex\":\"00\"}", "{\"x\":1}" }[i], 0, NULL);
                char *s = NULL;

                assert_int_equal(state_string_from_json(j, &s), -EBADMSG);
                json_decref(j);
        }
}

/* ---- the log ---- */

typedef struct Seen {
        int numbers[64];
        size_t n;
} Seen;

static int see(json_t *record, void *userdata) {
        Seen *s = userdata;

        assert_true(s->n < ELEMENTSOF(s->numbers));
        s->numbers[s->n++] = (int) json_integer_value(json_object_get(record, "n"));
        return 0;
}

static json_t *records(int from, int n) {
        json_t *a = json_array();

        for (int i = 0; i < n; i++)
                json_array_append_new(a, json_pack("{s:i}", "n", from + i));
        return a;
}

static int append(StateLog *log, int from, int n) {
        json_t *a = records(from, n);
        int r = state_log_append(log, a);

        json_decref(a);
        return r;
}

static size_t damage_of(int dir, Seen *seen) {
        StateLog *log = NULL;
        size_t damaged = 99;

        *seen = (Seen){ 0 };
        assert_int_equal(state_log_open(dir, "l", see, seen, &damaged, &log), 0);
        state_log_close(log);
        return damaged;
}

static void test_log(void **state) {
        int dir = scratch_open();
        StateLog *log = NULL;
        Seen seen = { 0 };
        json_t *a;
        char *text;
        uint64_t size;

        assert_int_equal(state_log_open(dir, "l", see, &seen, NULL, &log), 0);
        assert_int_equal(seen.n, 0);
        assert_int_equal(append(log, 1, 1), 0);
        assert_int_equal(append(log, 2, 3), 0);
        assert_int_equal(append(log, 5, 0), 0);
        size = state_log_size(log);
        state_log_close(log);

        assert_int_equal(damage_of(dir, &seen), 0);
        assert_int_equal(seen.n, 4);
        for (int i = 0; i < 4; i++)
                assert_int_equal(seen.numbers[i], i + 1);
        text = read_raw(dir, "l", NULL);
        assert_int_equal(strlen(text), size);
        assert_true(startswith(text, "cpuclass-log 1\n"));
        free(text);

        assert_int_equal(state_log_open(dir, "l", see, &seen, NULL, &log), 0);
        a = records(9, 2);
        assert_int_equal(state_log_replace(log, a), 0);
        json_decref(a);
        assert_true(state_log_size(log) < size);
        assert_int_equal(append(log, 20, 1), 0);
        state_log_close(log);
        assert_int_equal(damage_of(dir, &seen), 0);
        assert_int_equal(seen.n, 3);
        assert_int_equal(seen.numbers[0], 9);
        assert_int_equal(seen.numbers[2], 20);
        scratch_close(dir);
}

static void test_log_parts(void **state) {
        int dir = scratch_open();
        StateLog *log = NULL;
        Seen seen = { 0 };
        json_t *a = records(1, 2), *b = records(3, 2);

        assert_int_equal(state_log_open(dir, "l", see, &seen, NULL, &log), 0);
        assert_int_equal(state_log_add(log, a), 0);
        assert_int_equal(state_log_add(log, b), 0);
        state_log_cancel(log);
        assert_int_equal(state_log_add(log, a), 0);
        assert_int_equal(state_log_commit(log), 0);
        fault_arm(1, -ENOSPC);
        assert_int_equal(state_log_add(log, b), -ENOSPC);
        fault_disarm();
        assert_int_equal(state_log_add(log, b), 0);
        assert_int_equal(state_log_commit(log), 0);
        state_log_close(log);
        assert_int_equal(damage_of(dir, &seen), 0);
        assert_int_equal(seen.n, 4);
        json_decref(a);
        json_decref(b);
        scratch_close(dir);
}

/* The log cut anywhere gives a beginning of the records and nothing else, and goes on well from there. */
static void test_log_torn(void **state) {
        int dir = scratch_open();
        StateLog *log = NULL;
        Seen seen = { 0 };
        _cleanup_free_ char *text = NULL;
        size_t length = 0, before = 0;

        assert_int_equal(state_log_open(dir, "l", see, &seen, NULL, &log), 0);
        for (int i = 0; i < 4; i++)
                assert_int_equal(append(log, 2 * i, 2), 0);
        state_log_close(log);
        text = read_raw(dir, "l", &length);

        for (size_t cut = 0; cut <= length; cut++) {
                write_raw(dir, "l", text, cut);
                seen = (Seen){ 0 };
                assert_int_equal(state_log_open(dir, "l", see, &seen, NULL, &log), 0);
                assert_true(seen.n % 2 == 0);
                assert_true(seen.n >= before && seen.n <= before + 2);
                before = seen.n;
                for (size_t i = 0; i < seen.n; i++)
                        assert_int_equal(seen.numbers[i], i);
                if (state_log_needs_rewrite(log)) {
                        json_t *none = json_array();

                        assert_int_equal(append(log, 50, 1), -EIO);
                        assert_int_equal(state_log_replace(log, none), 0);
                        json_decref(none);
                }
                assert_int_equal(append(log, 50, 1), 0);
                state_log_close(log);
                assert_int_equal(damage_of(dir, &seen), 0);
                assert_int_equal(seen.n, before + 1);
                assert_int_equal(seen.numbers[before], 50);
        }
        assert_int_equal(before, 8);
        scratch_close(dir);
}

/* A byte changed anywhere hides at most the line that it is in (or joins two). */
static void test_log_damage(void **state) {
        int dir = scratch_open();
        StateLog *log = NULL;
        Seen seen = { 0 };
        _cleanup_free_ char *text = NULL;
        size_t length = 0;

        assert_int_equal(state_log_open(dir, "l", see, &seen, NULL, &log), 0);
        for (int i = 0; i < 4; i++)
                assert_int_equal(append(log, i, 1), 0);
        state_log_close(log);
        text = read_raw(dir, "l", &length);

        for (size_t at = 0; at < length; at++) {
                StateLog *opened = NULL;
                char old = text[at];
                size_t damaged = 0;
                int r;

                text[at] ^= 0x15;
                write_raw(dir, "l", text, length);
                text[at] = old;
                seen = (Seen){ 0 };
                r = state_log_open(dir, "l", see, &seen, &damaged, &opened);
                if (r == -EPROTONOSUPPORT) {
                        assert_true(at < 14);
                        continue;
                }
                assert_int_equal(r, 0);
                state_log_close(opened);
                assert_true(seen.n >= 2 && seen.n <= 4);
                assert_true(damaged >= 1 || at == length - 1);
                for (size_t i = 0; i < seen.n; i++)
                        assert_in_range(seen.numbers[i], 0, 3);
        }

        /* A newer version is not guessed at. */
        write_raw(dir, "l", "cpuclass-log 2\n", 15);
        assert_int_equal(state_log_open(dir, "l", see, &seen, NULL, &log), -EPROTONOSUPPORT);
        assert_int_equal(mkfifoat(dir, "p", 0600), 0);
        assert_int_equal(state_log_open(dir, "p", see, &seen, NULL, &log), -EBADMSG);
        scratch_close(dir);
}

static int refuse(json_t *record, void *userdata) {
        return -ECANCELED;
}

static void test_log_errors(void **state) {
        int dir = scratch_open();
        StateLog *log = NULL;
        Seen seen = { 0 };
        json_t *a = records(7, 1);
        unsigned n;

        assert_int_equal(state_log_open(dir, "l", see, &seen, NULL, &log), 0);
        assert_int_equal(append(log, 1, 1), 0);

        /* The write fails: cut back, and on. */
        fault_arm(1, -ENOSPC);
        assert_int_equal(append(log, 2, 1), -ENOSPC);
        fault_disarm();
        assert_false(state_log_needs_rewrite(log));
        assert_int_equal(append(log, 3, 1), 0);

        /* The sync fails: no more appends until a rewrite. */
        fault_arm(2, -EIO);
        assert_int_equal(append(log, 4, 1), -EIO);
        fault_disarm();
        assert_true(state_log_needs_rewrite(log));
        assert_int_equal(append(log, 5, 1), -EIO);
        assert_int_equal(damage_of(dir, &seen), 0);
        assert_int_equal(seen.n, 2);

        /* The rewrite fails at each of its steps but the last: the old log is whole. */
        fault_arm(0, 0);
        assert_int_equal(state_log_replace(log, a), 0);
        n = fault_steps;
        for (unsigned i = 1; i <= n; i++) {
                fault_arm(i, -ENOSPC);
                assert_int_equal(state_log_replace(log, a), -ENOSPC);
                fault_disarm();
                assert_int_equal(damage_of(dir, &seen), 0);
                assert_int_equal(seen.n, 1);
                assert_false(file_exists(dir, "l.tmp"));
                assert_int_equal(state_log_needs_rewrite(log), i == n);
        }
        assert_int_equal(state_log_replace(log, a), 0);
        assert_int_equal(append(log, 8, 1), 0);
        json_decref(a);
        state_log_close(log);

        assert_int_equal(state_log_open(dir, "l", refuse, NULL, NULL, &log), -ECANCELED);
        scratch_close(dir);
}

typedef struct Crash {
        int dir;
        int acknowledged_fd; /* a byte for each acknowledged append */
} Crash;

static void append_many(void *userdata) {
        Crash *c = userdata;
        StateLog *log;
        Seen seen = { 0 };

        if (state_log_open(c->dir, "l", see, &seen, NULL, &log) < 0)
                abort();
        for (int i = 0; i < 6; i++) {
                if (append(log, 2 * i, 2) < 0)
                        abort();
                if (write(c->acknowledged_fd, "x", 1) != 1)
                        abort();
                if (i == 3) {
                        json_t *a = records(0, 8);

                        if (state_log_replace(log, a) < 0)
                                abort();
                        json_decref(a);
                }
        }
}

static void test_log_crash(void **state) {
        bool died = true;
        unsigned n = 0;

        for (; died; n++) {
                Crash c = { .dir = scratch_open() };
                Seen seen;
                char bytes[16];
                int pipe_fd[2];
                ssize_t acknowledged;

                assert_int_equal(pipe(pipe_fd), 0);
                c.acknowledged_fd = pipe_fd[1];
                died = dies_at(n + 1, append_many, &c);
                close(pipe_fd[1]);
                acknowledged = read(pipe_fd[0], bytes, sizeof(bytes));
                close(pipe_fd[0]);
                assert_int_equal(damage_of(c.dir, &seen), 0);
                assert_true((ssize_t) seen.n >= 2 * acknowledged);
                for (size_t i = 0; i < seen.n; i++)
                        assert_int_equal(seen.numbers[i], i);
                scratch_close(c.dir);
        }
        assert_true(n > 15);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_document),
                cmocka_unit_test(test_document_errors),
                cmocka_unit_test(test_document_crash),
                cmocka_unit_test(test_put_aside),
                cmocka_unit_test(test_strings),
                cmocka_unit_test(test_log),
                cmocka_unit_test(test_log_parts),
                cmocka_unit_test(test_log_torn),
                cmocka_unit_test(test_log_damage),
                cmocka_unit_test(test_log_errors),
                cmocka_unit_test(test_log_crash),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
