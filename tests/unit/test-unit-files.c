/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unit files as systemd reads them, hostile ones too; which files count; and the run-time drop-ins, known, read and undone. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/units-internal.h"
#include "tests/unit/state-faults.h"

#define NONE USEC_INFINITY

static void test_syntax(void **state) {
        static const struct {
                const char *text, *class_word;
                uint64_t quota;
        } cases[] = {
                { "", NULL, NONE },
                { "[Service]\nCPUQuota=20%", NULL, 200000 },
                { "[Service]\nCPUQuota=20%\nCPUQuota=30%\n", NULL, 300000 },
                { "[Service]\nCPUQuota=20%\nCPUQuota=\n", NULL, NONE },
                { "[Service]\nCPUQuota=20%\nCPUQuota=nonsense\nCPUQuota=0%\nCPUQuota=-5%\n", NULL, 200000 },
                { "[Slice]\nCPUQuota=20%\n", NULL, NONE },
                { "[Service]\n[Install]\nCPUQuota=20%\n", NULL, NONE },
                { "[Install]\n[Service]\nCPUQuota=20%\n[Service]\nType=simple\n", NULL, 200000 },
                { "CPUQuota=20%\n", NULL, NONE },
                { "[service]\nCPUQuota=20%\n", NULL, NONE },
                { "[Service]\ncpuquota=20%\n", NULL, NONE },
                { "[Service]\n  CPUQuota \t=\t 20%  \n", NULL, 200000 },
                { "[Service]\n#CPUQuota=20%\n;CPUQuota=30%\n  # CPUQuota=40%\n", NULL, NONE },
                { "[Service]\nCPUQuota=20% # no comment here\n", NULL, NONE },
                /* continuations */
                { "[Service]\nCPUQuota=\\\n20%\n", NULL, 200000 },
                { "[Service]\nExecStart=a \\\nCPUQuota=20%\n", NULL, NONE },
                { "[Service]\nExecStart=a \\\n# a comment \\\n\nCPUQuota=20%\n", NULL, 200000 },
                { "[Service]\nExecStart=a \\\n# a comment\nCPUQuota=20%\nCPUQuota=30%\n", NULL, 300000 },
                { "[Service]\nExecStart=a \\\\\nCPUQuota=20%\n", NULL, 200000 },
                { "[Service]\nExecStart=a\\\n\\\n\\\n\nCPUQuota=20%\n", NULL, 200000 },
                { "[Service]\n# comment \\\nCPUQuota=20%\n", NULL, 200000 },
                { "[Service]\nCPUQuota=20%\\", NULL, 200000 },
                { "[Service]\\\n\nCPUQuota=20%\n", NULL, 200000 },
                /* ends of lines, a byte order mark */
                { "[Service]\r\nCPUQuota=20%\r\n", NULL, 200000 },
                { "[Service]\rCPUQuota=20%\r", NULL, 200000 },
                { "[Service]\r\nExecStart=a \\\r\nCPUQuota=30%\r\nCPUQuota=20%\r\n", NULL, 200000 },
                { "\xef\xbb\xbf[Service]\nCPUQuota=20%\n", NULL, 200000 },
                /* a broken section header ends the file, as it does for systemd */
                { "[Service]\nCPUQuota=20%\n[Service\nCPUQuota=30%\n", NULL, 200000 },
                { "[Service]\nno assignment\n=nothing\nCPUQuota=20%\n", NULL, 200000 },
                { "[]\nCPUQuota=20%\n[\n", NULL, NONE },
                /* the class word */
                { "[X-CpuClass]\nClass=batch\n", "batch", NONE },
                { "[X-CpuClass]\nClass=batch\nClass= interactive \n", "interactive", NONE },
                { "[X-CpuClass]\nClass=batch\nClass=\n", NULL, NONE },
                { "[Service]\nClass=batch\n[X-CpuClass]\nClasses=a\nCPUQuota=20%\n", NULL, NONE },
                { "[X-CpuClass]\nClass=a\x1b[31m b\xc3\xa4\n", "a?[31m?b??", NONE },
                { "[X-cpuclass]\nClass=batch\n", NULL, NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                UnitWords w;

                unit_words_init(&w);
                assert_int_equal(unit_words_parse(&w, cases[i].text, strlen(cases[i].text), "Service"), 0);
                if (!streq_null(w.class_word, cases[i].class_word) || w.quota_per_sec_usec != cases[i].quota)
                        fail_msg("case %zu: %s: class %s, quota %llu", i, cases[i].text, w.class_word ? w.class_word : "none",
                                 (unsigned long long) w.quota_per_sec_usec);
                unit_words_clear(&w);
        }
}

static void test_hostile(void **state) {
        _cleanup_free_ char *big = malloc(UNIT_FILE_MAX_BYTES);
        static const char nul[] = "[Service]\0CPUQuota=20%\0[X-CpuClass]\0Class=a\0";
        UnitWords w;

        assert_non_null(big);
        unit_words_init(&w);
        assert_int_equal(unit_words_parse(&w, nul, sizeof(nul) - 1, "Service"), 0);
        assert_int_equal(w.quota_per_sec_usec, 200000);
        assert_string_equal(w.class_word, "a");
        unit_words_clear(&w);

        /* One endless line; endless continuations (which must not cost their square); backslashes; sections; a class of a mebibyte. */
        memset(big, 'a', UNIT_FILE_MAX_BYTES);
        assert_int_equal(unit_words_parse(&w, big, UNIT_FILE_MAX_BYTES, "Service"), 0);
        for (size_t i = 0; i + 1 < UNIT_FILE_MAX_BYTES; i += 2)
                memcpy(big + i, "\\\n", 2);
        assert_int_equal(unit_words_parse(&w, big, UNIT_FILE_MAX_BYTES, "Service"), 0);
        memset(big, '\\', UNIT_FILE_MAX_BYTES);
        assert_int_equal(unit_words_parse(&w, big, UNIT_FILE_MAX_BYTES, "Service"), 0);
        memset(big, '[', UNIT_FILE_MAX_BYTES);
        assert_int_equal(unit_words_parse(&w, big, UNIT_FILE_MAX_BYTES, "Service"), 0);
        memset(big, 'x', UNIT_FILE_MAX_BYTES);
        memcpy(big, "[X-CpuClass]\nClass=", 19);
        assert_int_equal(unit_words_parse(&w, big, UNIT_FILE_MAX_BYTES, "Service"), 0);
        assert_int_equal(strlen(w.class_word), 65);
        unit_words_clear(&w);
        memset(big, 0, UNIT_FILE_MAX_BYTES);
        assert_int_equal(unit_words_parse(&w, big, UNIT_FILE_MAX_BYTES, "Service"), 0);
        assert_int_equal(unit_words_parse(&w, "", 0, "Service"), 0);
        unit_words_clear(&w);
}

static void test_quotas(void **state) {
        static const struct {
                const char *text;
                uint64_t per_sec;
        } cases[] = {
                { "20%", 200000 },   { "150%", 1500000 }, { "12.5%", 125000 },  { "12.34%", 123400 },        { "0.01%", 100 },      { "25\xe2\x80\xb0", 25000 },
                { "2.5\xe2\x80\xb0", 2500 }, { "7\xe2\x80\xb1", 700 }, { "0x10%", 160000 }, { "100000%", UINT64_C(1000000000) },
                { "", 0 }, { "20", 0 }, { "%", 0 }, { "0%", 0 }, { "0.00%", 0 }, { "-1%", 0 }, { "12.345%", 0 }, { "12.%", 0 }, { ".5%", 0 }, { "1.2.3%", 0 },
                { "20 %", 0 }, { "x20%", 0 }, { "99999999999%", 0 }, { "21474837%", 0 }, { "2.55\xe2\x80\xb0", 0 }, { "2.5\xe2\x80\xb1", 0 }, { "1e3%", 0 }, { "infinity", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t v = 0;

                if (unit_parse_quota(cases[i].text, &v) != (cases[i].per_sec != 0) || v != cases[i].per_sec)
                        fail_msg("%s: %llu", cases[i].text, (unsigned long long) v);
        }
}

static void test_time_spans(void **state) {
        static const struct {
                const char *text;
                uint64_t usec;
        } good[] = {
                { "1", USEC_PER_SEC }, { "0", 0 }, { "100ms", 100000 }, { "100 ms", 100000 }, { " 20ms ", 20000 }, { "1s 5ms", 1005000 }, { "1s5ms", 1005000 }, { "22.968ms", 22968 },
                { "0.5", 500000 }, { ".5s", 500000 }, { "5us", 5 }, { "5\xc2\xb5s", 5 }, { "5\xce\xbcs", 5 }, { "1min", 60 * USEC_PER_SEC }, { "1m", 60 * USEC_PER_SEC },
                { "2h", 7200 * USEC_PER_SEC }, { "infinity", NONE }, { " infinity ", NONE }, { "1.1234567s", 1123456 }, { "1M", 2629800 * USEC_PER_SEC }, { "1 2", 3 * USEC_PER_SEC },
        };
        static const char *const bad[] = { "", " ", "x", "-1", "1x", "1..2", "1.", "1.s", "infinity1", "99999999999999999999", "18446744073710s", "584943y", "1.2.3", "1 -1" };

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                uint64_t v = 42;

                if (!unit_parse_time_span(good[i].text, &v) || v != good[i].usec)
                        fail_msg("%s: %llu", good[i].text, (unsigned long long) v);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                uint64_t v = 42;

                if (unit_parse_time_span(bad[i], &v))
                        fail_msg("%s: %llu", bad[i], (unsigned long long) v);
        }
}

static void test_types(void **state) {
        assert_string_equal(unit_type_of("a.service")->section, "Service");
        assert_string_equal(unit_type_of("-.slice")->interface, "org.freedesktop.systemd1.Slice");
        assert_non_null(unit_type_of("a\\x2db@c.socket"));
        assert_null(unit_type_of("a.timer"));
        assert_null(unit_type_of("a/b.service"));
        assert_null(unit_type_of("a b.service"));
        assert_null(unit_type_of("@a.service"));
        assert_null(unit_type_of(".service"));
        assert_null(unit_type_of("service"));
        assert_null(unit_type_of(""));
}

/* ---- which files count ---- */

static char *path_of(const char *relative) {
        char *p;

        assert_true(asprintf(&p, "%s/%s", scratch_path, relative) > 0);
        return p;
}

static void put(const char *relative, const char *text) {
        _cleanup_free_ char *path = path_of(relative);

        for (size_t i = 1; path[i]; i++)
                if (path[i] == '/') {
                        path[i] = 0;
                        (void) mkdir(path, 0755);
                        path[i] = '/';
                }
        write_raw(AT_FDCWD, path, text, strlen(text));
}

/* Loads the files of a.service: the fragment, then drop-ins in the given order. */
static void load(UnitInfo *info, int *ret, char **search_path, const char *fragment, const char *const *dropins) {
        char *paths[20] = { NULL };
        size_t n = 0;

        *info = (UnitInfo){ .id = strdup("a.service") };
        info->names = strings_copy((char *[]){ (char *) "a.service", NULL });
        info->fragment_path = fragment ? path_of(fragment) : strdup("");
        for (; dropins[n]; n++)
                paths[n] = path_of(dropins[n]);
        info->dropin_paths = strings_copy(paths);
        for (size_t i = 0; i < n; i++)
                free(paths[i]);
        *ret = unit_files_load(info, search_path, NULL, NULL);
}

static void test_order(void **state) {
        int dir = scratch_open(), r;
        char *search[] = { path_of("control"), (char *) RUNTIME_CONTROL, (char *) RUNTIME_TRANSIENT, path_of("etc"), path_of("lib"), NULL };
        UnitInfo info;

        put("lib/a.service", "[Service]\nCPUQuota=10%\n[X-CpuClass]\nClass=one\n");
        put("etc/a.service.d/20.conf", "[Service]\nCPUQuota=20%\nCPUQuotaPeriodSec=50ms\n");
        put("lib/a.service.d/60.conf", "[X-CpuClass]\nClass=two\n");
        put("etc/service.d/70.conf", "[Service]\nCPUQuota=70%\n");
        put("control/a.service.d/50-CPUQuota.conf", "[Service]\nCPUQuota=45%\n");
        put("etc/a.service.d/50-CPUQuota.conf", "[Service]\nCPUQuota=55%\n");
        put("etc/a.service.d/override.conf", "[Service]\nCPUQuota=\n");

        load(&info, &r, search, "lib/a.service", (const char *const[]){ NULL });
        assert_int_equal(r, 0);
        assert_true(info.owner_quota_known);
        assert_int_equal(info.owner_quota_per_sec_usec, 100000);
        assert_true(info.owner_quota_period_usec == NONE);
        assert_string_equal(info.class_word, "one");
        assert_null(info.overriding_dropin);
        unit_info_clear(&info);

        /* By file name, whatever the order of the list and the directory. */
        load(&info, &r, search, "lib/a.service", (const char *const[]){ "lib/a.service.d/60.conf", "etc/a.service.d/20.conf", NULL });
        assert_int_equal(info.owner_quota_per_sec_usec, 200000);
        assert_int_equal(info.owner_quota_period_usec, 50000);
        assert_string_equal(info.class_word, "two");
        assert_null(info.overriding_dropin);
        unit_info_clear(&info);

        load(&info, &r, search, "lib/a.service", (const char *const[]){ "etc/service.d/70.conf", "etc/a.service.d/20.conf", NULL });
        assert_int_equal(info.owner_quota_per_sec_usec, 700000);
        assert_true(endswith(info.overriding_dropin, "/etc/service.d/70.conf"));
        unit_info_clear(&info);

        /* Of the same name only the directory with precedence, and one before the run-time directory beats ours. */
        load(&info, &r, search, "lib/a.service", (const char *const[]){ "etc/a.service.d/50-CPUQuota.conf", NULL });
        assert_int_equal(info.owner_quota_per_sec_usec, 550000);
        assert_null(info.overriding_dropin);
        unit_info_clear(&info);
        load(&info, &r, search, "lib/a.service", (const char *const[]){ "etc/a.service.d/50-CPUQuota.conf", "control/a.service.d/50-CPUQuota.conf", NULL });
        assert_int_equal(info.owner_quota_per_sec_usec, 450000);
        assert_true(endswith(info.overriding_dropin, "/control/a.service.d/50-CPUQuota.conf"));
        unit_info_clear(&info);

        /* A reset is a word, too. */
        load(&info, &r, search, "lib/a.service", (const char *const[]){ "etc/a.service.d/override.conf", NULL });
        assert_true(info.owner_quota_per_sec_usec == NONE);
        assert_true(endswith(info.overriding_dropin, "override.conf"));
        unit_info_clear(&info);

        /* No fragment at all, as a slice that only its units' names call for. */
        load(&info, &r, search, NULL, (const char *const[]){ NULL });
        assert_true(info.owner_quota_known);
        assert_true(info.owner_quota_per_sec_usec == NONE);
        unit_info_clear(&info);

        free(search[0]);
        free(search[3]);
        free(search[4]);
        scratch_close(dir);
}

static void test_odd_files(void **state) {
        int dir = scratch_open(), r;
        _cleanup_free_ char *pipe_path = path_of("pipe.conf"), *big = malloc(UNIT_FILE_MAX_BYTES + 2), *big_path = path_of("big.conf"), *null_path = path_of("null.conf");
        UnitInfo info;

        put("a.service", "[Service]\nCPUQuota=10%\n");
        assert_int_equal(mkfifo(pipe_path, 0600), 0);
        assert_int_equal(symlink("/dev/null", null_path), 0);
        memset(big, '\n', UNIT_FILE_MAX_BYTES + 1);
        write_raw(AT_FDCWD, big_path, big, UNIT_FILE_MAX_BYTES + 1);

        /* Gone, a pipe (that must not hold us up), a mask: they say nothing. */
        load(&info, &r, NULL, "a.service", (const char *const[]){ "gone.conf", "pipe.conf", "null.conf", NULL });
        assert_int_equal(r, 0);
        assert_true(info.owner_quota_known);
        assert_int_equal(info.owner_quota_per_sec_usec, 100000);
        unit_info_clear(&info);
        /* Too big to read: it might say anything. */
        load(&info, &r, NULL, "a.service", (const char *const[]){ "big.conf", NULL });
        assert_int_equal(r, 0);
        assert_false(info.owner_quota_known);
        unit_info_clear(&info);
        scratch_close(dir);
}

/* ---- drop-ins ---- */

#define HEAD "# This is a drop-in\n"

static void test_dropin_says(void **state) {
        static const struct {
                const char *property, *content;
                uint64_t value;
                bool says;
        } cases[] = {
                { "CPUQuota", HEAD "[Service]\nCPUQuota=33%\n", 330000, true },
                { "CPUQuota", HEAD "[Service]\nCPUQuota=33%\n", 333333, true }, /* truncated by systemd */
                { "CPUQuota", HEAD "[Service]\nCPUQuota=33%\n", 340000, false },
                { "CPUQuota", HEAD "[Service]\nCPUQuota=\n", NONE, true },
                { "CPUQuota", HEAD "[Service]\n", NONE, false },
                { "CPUQuota", HEAD "[Service]\nCPUQuota=33%\nMemoryMax=5\n", 330000, false },
                { "CPUQuota", HEAD "[Service]\nCPUQuota=33%\n[X-Other]\nA=b\n", 330000, false },
                { "CPUQuota", HEAD "[Slice]\nCPUQuota=33%\n", 330000, false },
                { "CPUQuotaPeriodSec", HEAD "[Service]\nCPUQuotaPeriodSec=50ms\n", 50000, true },
                { "CPUQuotaPeriodSec", HEAD "[Service]\nCPUQuota=50%\n", 500000, false },
                { "CPUWeight", HEAD "[Service]\nCPUWeight=100\n", 100, true },
                { "CPUWeight", HEAD "[Service]\nCPUWeight=idle\n", 100, false },
                { "MemoryMax", HEAD "[Service]\nMemoryMax=100\n", 100, false },
                { "CPUQuota", "", 330000, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                if (units_dropin_says("a.service", cases[i].property, cases[i].content, cases[i].value) != cases[i].says)
                        fail_msg("case %zu", i);
        assert_false(units_dropin_says("a.timer", "CPUQuota", "[Timer]\nCPUQuota=33%\n", 330000));
}

static void test_dropin_undo(void **state) {
        static const char relative[] = "run/systemd/system.control/a.service.d/50-CPUQuota.conf", path[] = RUNTIME_CONTROL "/a.service.d/50-CPUQuota.conf";
        static const char *const bad[] = {
                "", "/", "/etc/passwd", RUNTIME_CONTROL, RUNTIME_CONTROL "/a.service.d", RUNTIME_CONTROL "/a.service.d/", RUNTIME_CONTROL "/../a.service.d/50-CPUQuota.conf",
                RUNTIME_CONTROL "/a.service.d/../50-CPUQuota.conf", RUNTIME_CONTROL "/a.service/50-CPUQuota.conf", RUNTIME_CONTROL "/..d/50-CPUQuota.conf",
                RUNTIME_CONTROL "/a.service.d/50-MemoryMax.conf", RUNTIME_CONTROL "/a.service.d/50-.conf", RUNTIME_CONTROL "/a.service.d/50-CPUQuota", RUNTIME_CONTROL "/a.service.d/CPUQuota.conf",
                RUNTIME_CONTROL "/a.service.d/50.conf", RUNTIME_CONTROL "/a.service.d/50-CPUQuota.conf/x", RUNTIME_CONTROL "/a.timer.d/50-CPUQuota.conf", RUNTIME_CONTROL "x/a.service.d/50-CPUQuota.conf",
                "/etc/systemd/system.control/a.service.d/50-CPUQuota.conf", "run/systemd/transient/a.service.d/50-CPUQuota.conf",
        };
        int dir = scratch_open();
        char *text;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (dropin_undo(scratch_path, bad[i], "x", NULL) != -EINVAL)
                        fail_msg("%s", bad[i]);
        assert_int_equal(dropin_undo(scratch_path, NULL, "x", NULL), -EINVAL);

        /* There is none: as it was before us, unless something was. */
        assert_int_equal(dropin_undo(scratch_path, path, "ours", NULL), 2);
        assert_int_equal(dropin_undo(scratch_path, path, "ours", "theirs"), 0);

        put(relative, "somebody's");
        assert_int_equal(dropin_undo(scratch_path, path, "ours", NULL), 0);
        assert_int_equal(dropin_undo(scratch_path, path, NULL, NULL), 0);
        assert_true(file_exists(dir, relative));
        put(relative, "ours");
        assert_int_equal(dropin_undo(scratch_path, path, "ours", NULL), 1);
        assert_false(file_exists(dir, "run/systemd/system.control/a.service.d"));
        assert_true(file_exists(dir, "run/systemd/system.control"));

        /* With other settings beside it the directory stays. */
        put(relative, "ours");
        put("run/systemd/system.control/a.service.d/50-MemoryMax.conf", "x");
        assert_int_equal(dropin_undo(scratch_path, path, "ours", NULL), 1);
        assert_true(file_exists(dir, "run/systemd/system.control/a.service.d/50-MemoryMax.conf"));

        put(relative, "ours");
        assert_int_equal(dropin_undo(scratch_path, path, "ours", "theirs"), 1);
        text = read_raw(dir, relative, NULL);
        assert_string_equal(text, "theirs");
        free(text);
        assert_int_equal(dropin_undo(scratch_path, path, "ours", "theirs"), 2);
        {
                struct stat st;

                assert_int_equal(fstatat(dir, relative, &st, 0), 0);
                assert_int_equal(st.st_mode & 07777, 0644);
        }

        /* Not a file, or one that begins like ours. */
        assert_int_equal(unlinkat(dir, relative, 0), 0);
        assert_int_equal(mkdirat(dir, relative, 0755), 0);
        assert_int_equal(dropin_undo(scratch_path, path, "ours", NULL), 0);
        assert_int_equal(unlinkat(dir, relative, AT_REMOVEDIR), 0);
        write_raw(dir, relative, "ours\0more", 9);
        assert_int_equal(dropin_undo(scratch_path, path, "ours", NULL), 0);
        scratch_close(dir);
}

static void test_dropin_read(void **state) {
        int dir = scratch_open();
        char *path = NULL, *content = NULL;

        assert_int_equal(dropin_read(scratch_path, "a.service", "CPUQuota", &path, &content), -ENOENT);
        put("run/systemd/transient/a\\x2db.service.d/50-CPUQuotaPeriodSec.conf", "p");
        assert_int_equal(dropin_read(scratch_path, "a\\x2db.service", "CPUQuota", &path, &content), -ENOENT);
        assert_int_equal(dropin_read(scratch_path, "a\\x2db.service", "CPUQuotaPeriodSec", &path, &content), 0);
        assert_string_equal(path, RUNTIME_TRANSIENT "/a\\x2db.service.d/50-CPUQuotaPeriodSec.conf");
        assert_string_equal(content, "p");
        free(path);
        free(content);
        path = content = NULL;
        assert_int_equal(dropin_read(scratch_path, "../a.service", "CPUQuota", &path, &content), -EINVAL);
        assert_int_equal(dropin_read(scratch_path, "a.service", "../CPUQuota", &path, &content), -EINVAL);
        assert_int_equal(dropin_read(scratch_path, "a.service", "MemoryMax", &path, &content), -EINVAL);
        assert_null(path);
        assert_null(content);
        scratch_close(dir);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_syntax),
                cmocka_unit_test(test_hostile),
                cmocka_unit_test(test_quotas),
                cmocka_unit_test(test_time_spans),
                cmocka_unit_test(test_types),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_odd_files),
                cmocka_unit_test(test_dropin_says),
                cmocka_unit_test(test_dropin_undo),
                cmocka_unit_test(test_dropin_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
