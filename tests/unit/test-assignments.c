/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Assignments: who may replace whose, all or nothing, never lost, and a request's mistakes named. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/assignments.h"
#include "tests/unit/state-faults.h"

#define NOW (UINT64_C(1800000000) * USEC_PER_SEC + 5)

static Assignment unit(const char *target, const char *class_name, const char *owner) {
        return (Assignment){ .kind = TARGET_UNIT, .target = (char *) target, .class_name = (char *) class_name, .owner = (char *) owner,
                             .created_realtime_usec = NOW, .by = (char *) "uid=0" };
}

static Assignments *open_store(int dir) {
        Assignments *a = NULL;
        bool damaged = true;

        assert_int_equal(assignments_open(dir, &damaged, &a), 0);
        assert_false(damaged);
        return a;
}

static Assignments *reopen(int dir, Assignments *a) {
        uint64_t revision = assignments_revision(a);
        size_t n = assignments_count(a);

        assignments_close(a);
        a = open_store(dir);
        assert_int_equal(assignments_revision(a), revision);
        assert_int_equal(assignments_count(a), n);
        return a;
}

static void test_put(void **state) {
        int dir = scratch_open();
        Assignments *a = open_store(dir);
        Assignment one = unit("a.service", "batch", "api"), other = one, cgroup = one;
        const Assignment *got;
        bool created = false;
        uint64_t revision;

        assert_int_equal(assignments_put(a, &one, false, &created), 0);
        assert_true(created);
        got = assignments_get(a, TARGET_UNIT, "a.service");
        assert_string_equal(got->class_name, "batch");
        assert_int_equal(got->created_realtime_usec, NOW);
        revision = got->revision;
        assert_true(revision > 0);

        /* The same again is no change; another word is. */
        one.by = (char *) "uid=7";
        one.created_realtime_usec = NOW + 1;
        assert_int_equal(assignments_put(a, &one, false, &created), 0);
        assert_false(created);
        assert_int_equal(assignments_get(a, TARGET_UNIT, "a.service")->revision, revision);
        one.overrides.quota = (Amount){ AMOUNT_PERCENT_OF_CPU, 50 };
        one.overrides.has_latency_nice = true;
        one.overrides.latency_nice = -3;
        assert_int_equal(assignments_put(a, &one, false, &created), 0);
        got = assignments_get(a, TARGET_UNIT, "a.service");
        assert_true(got->revision > revision);
        assert_int_equal(got->created_realtime_usec, NOW);
        assert_string_equal(got->by, "uid=7");

        other.owner = (char *) "k8s";
        assert_int_equal(assignments_put(a, &other, false, NULL), -EEXIST);
        assert_string_equal(assignments_get(a, TARGET_UNIT, "a.service")->owner, "api");
        assert_int_equal(assignments_put(a, &other, true, NULL), 0);
        assert_string_equal(assignments_get(a, TARGET_UNIT, "a.service")->owner, "k8s");

        /* Another kind of target of the same text, and bytes that are no text. */
        cgroup.kind = TARGET_CGROUP;
        cgroup.target = (char *) "/a\xff\x1b %n.service";
        cgroup.expires_realtime_usec = NOW + 77;
        cgroup.force = true;
        assert_int_equal(assignments_put(a, &cgroup, false, &created), 0);
        assert_true(created);

        a = reopen(dir, a);
        got = assignments_get(a, TARGET_CGROUP, cgroup.target);
        assert_non_null(got);
        assert_true(got->force);
        assert_int_equal(got->expires_realtime_usec, NOW + 77);
        got = assignments_get(a, TARGET_UNIT, "a.service");
        assert_int_equal(got->overrides.quota.kind, AMOUNT_UNSET);
        assert_string_equal(got->owner, "k8s");

        revision = assignments_revision(a);
        assert_int_equal(assignments_delete(a, TARGET_UNIT, "b.service"), 0);
        assert_int_equal(assignments_revision(a), revision);
        assert_int_equal(assignments_delete(a, TARGET_UNIT, assignments_get(a, TARGET_UNIT, "a.service")->target), 0);
        assert_true(assignments_revision(a) > revision);
        a = reopen(dir, a);
        assert_null(assignments_get(a, TARGET_UNIT, "a.service"));
        one.class_name = NULL;
        assert_int_equal(assignments_put(a, &one, false, NULL), -EINVAL);
        assignments_close(a);
        scratch_close(dir);
}

static void test_order(void **state) {
        int dir = scratch_open();
        Assignments *a = open_store(dir);

        for (unsigned i = 0; i < 200; i++) {
                char name[40];
                Assignment one = unit(name, "batch", "api");

                one.kind = (TargetKind) (i % 2);
                (void) snprintf(name, sizeof(name), one.kind == TARGET_UNIT ? "u%03u.service" : "/g%03u", (i * 37) % 200);
                assert_int_equal(assignments_put(a, &one, false, NULL), 0);
        }
        a = reopen(dir, a);
        assert_int_equal(assignments_count(a), 200);
        for (size_t i = 1; i < 200; i++) {
                const Assignment *x = assignments_at(a, i - 1), *y = assignments_at(a, i);

                assert_true(x->kind < y->kind || (x->kind == y->kind && strcmp(x->target, y->target) < 0));
                assert_ptr_equal(assignments_get(a, y->kind, y->target), y);
        }
        assert_null(assignments_at(a, 200));
        assignments_close(a);
        scratch_close(dir);
}

static void test_owner(void **state) {
        int dir = scratch_open();
        Assignments *a = open_store(dir);
        Assignment first[] = { unit("c.service", "batch", "x"), unit("a.service", "batch", "x"), unit("b.service", "batch", "x") };
        Assignment second[] = { unit("b.service", "batch", "x"), unit("d.service", "batch", "x"), unit("a.service", "interactive", "x") };
        Assignment twice[] = { unit("e.service", "batch", "x"), unit("f.service", "batch", "x"), unit("e.service", "interactive", "x") };
        Assignment foreign = unit("z.service", "batch", "somebody");
        size_t changed, pruned, conflict = 99;
        uint64_t revision;

        assert_int_equal(assignments_put(a, &foreign, false, NULL), 0);
        assert_int_equal(assignments_replace_owner(a, "k8s", first, 3, &changed, &pruned, &conflict), 0);
        assert_int_equal(changed, 3);
        assert_int_equal(pruned, 0);
        assert_string_equal(assignments_get(a, TARGET_UNIT, "a.service")->owner, "k8s");
        revision = assignments_get(a, TARGET_UNIT, "b.service")->revision;

        assert_int_equal(assignments_replace_owner(a, "k8s", second, 3, &changed, &pruned, &conflict), 0);
        assert_int_equal(changed, 2);
        assert_int_equal(pruned, 1);
        a = reopen(dir, a);
        assert_int_equal(assignments_count(a), 4);
        assert_null(assignments_get(a, TARGET_UNIT, "c.service"));
        assert_int_equal(assignments_get(a, TARGET_UNIT, "b.service")->revision, revision);
        assert_string_equal(assignments_get(a, TARGET_UNIT, "a.service")->class_name, "interactive");

        /* Refused as a whole. */
        revision = assignments_revision(a);
        first[1] = foreign;
        assert_int_equal(assignments_replace_owner(a, "k8s", first, 3, &changed, &pruned, &conflict), -EEXIST);
        assert_int_equal(conflict, 1);
        assert_int_equal(assignments_replace_owner(a, "k8s", twice, 3, &changed, &pruned, &conflict), -EINVAL);
        assert_int_equal(conflict, 2);
        assert_int_equal(assignments_revision(a), revision);
        assert_int_equal(assignments_count(a), 4);

        assert_int_equal(assignments_replace_owner(a, "k8s", second, 3, &changed, &pruned, NULL), 0);
        assert_int_equal(changed + pruned, 0);
        assert_int_equal(assignments_revision(a), revision);
        assert_int_equal(assignments_replace_owner(a, "k8s", NULL, 0, &changed, &pruned, NULL), 0);
        assert_int_equal(pruned, 3);
        a = reopen(dir, a);
        assert_int_equal(assignments_count(a), 1);
        assignments_close(a);
        scratch_close(dir);
}

static void test_expiry(void **state) {
        int dir = scratch_open();
        Assignments *a = open_store(dir);
        uint64_t next = 0;

        for (unsigned i = 0; i < 5; i++) {
                char name[20];
                Assignment one = unit(name, "batch", "api");

                (void) snprintf(name, sizeof(name), "u%u.service", i);
                one.expires_realtime_usec = i == 0 ? 0 : NOW + i;
                assert_int_equal(assignments_put(a, &one, false, NULL), 0);
        }
        assert_int_equal(assignments_expire(a, NOW, &next), 0);
        assert_int_equal(next, NOW + 1);
        assert_int_equal(assignments_expire(a, NOW + 2, &next), 2);
        assert_int_equal(next, NOW + 3);
        a = reopen(dir, a);
        assert_int_equal(assignments_count(a), 3);
        fault_arm(1, -ENOSPC);
        assert_int_equal(assignments_expire(a, NOW + 9, &next), -ENOSPC);
        fault_disarm();
        assert_int_equal(assignments_count(a), 3);
        assert_int_equal(assignments_expire(a, NOW + 9, &next), 2);
        assert_true(next == USEC_INFINITY);
        assert_int_equal(assignments_count(a), 1);
        assignments_close(a);
        scratch_close(dir);
}

static void test_errors(void **state) {
        int dir = scratch_open();
        Assignments *a = open_store(dir);
        Assignment one = unit("a.service", "batch", "api"), two = unit("a.service", "interactive", "api"), three = unit("c.service", "batch", "api");
        uint64_t revision;

        assert_int_equal(assignments_put(a, &one, false, NULL), 0);
        revision = assignments_revision(a);
        for (unsigned step = 1; step <= 2; step++) { /* the write, the sync */
                bool created = true;

                fault_arm(step, -ENOSPC);
                assert_int_equal(assignments_put(a, &two, false, &created), -ENOSPC);
                fault_disarm();
                assert_string_equal(assignments_get(a, TARGET_UNIT, "a.service")->class_name, "batch");
                fault_arm(1, -EIO);
                assert_int_equal(assignments_delete(a, TARGET_UNIT, "a.service"), -EIO);
                assert_int_equal(assignments_replace_owner(a, "api", &three, 1, NULL, NULL, NULL), 0);
                fault_disarm();
                assert_int_equal(assignments_replace_owner(a, "api", &one, 1, NULL, NULL, NULL), 0);
                assert_int_equal(assignments_count(a), 1);
        }
        assert_true(assignments_revision(a) > revision);
        assert_int_equal(assignments_put(a, &two, false, NULL), 0);
        a = reopen(dir, a);
        assert_string_equal(assignments_get(a, TARGET_UNIT, "a.service")->class_name, "interactive");
        assignments_close(a);
        scratch_close(dir);
}

static void test_damage(void **state) {
        int dir = scratch_open();
        Assignments *a = open_store(dir);
        Assignment one = unit("a.service", "batch", "api"), two = unit("b.service", "batch", "api");
        size_t length = 0;
        bool damaged = false;
        char *text;

        assert_int_equal(assignments_put(a, &one, false, NULL), 0);
        assert_int_equal(assignments_put(a, &two, false, NULL), 0);
        assignments_close(a);
        text = read_raw(dir, "assignments", &length);
        text[40] ^= 1;
        write_raw(dir, "assignments", text, length);
        free(text);
        assert_int_equal(assignments_open(dir, &damaged, &a), 0);
        assert_true(damaged);
        assert_int_equal(assignments_count(a), 1);
        assert_non_null(assignments_get(a, TARGET_UNIT, "b.service"));
        assignments_close(a);
        assert_true(file_exists(dir, "assignments.damaged-1"));
        assignments_close(open_store(dir));
        write_raw(dir, "assignments", "cpuclass-log 2\n", 15);
        assert_int_equal(assignments_open(dir, &damaged, &a), 0);
        assert_true(damaged);
        assert_int_equal(assignments_count(a), 0);
        assignments_close(a);
        assert_true(file_exists(dir, "assignments.damaged-2"));
        scratch_close(dir);
}

/* Puts, deletes and bulks in a fixed order; each that was acknowledged is a byte. */
typedef struct Crash {
        int dir;
        int acknowledged_fd;
} Crash;

#define CRASH_STEPS 700

static void crash_step(Assignments *a, unsigned i) {
        char name[20] = "", class_name[20] = "";
        Assignment one = unit(name, class_name, "api"), all[2] = { unit("x.service", class_name, "bulk"), unit(name, class_name, "bulk") };
        int r;

        (void) snprintf(class_name, sizeof(class_name), "c%u", i);
        (void) snprintf(name, sizeof(name), "u%u.service", i % 7);
        if (i % 10 == 3)
                r = assignments_delete(a, TARGET_UNIT, name);
        else if (i % 10 == 6) {
                (void) snprintf(name, sizeof(name), "v%u.service", i);
                r = assignments_replace_owner(a, "bulk", all, 2, NULL, NULL, NULL);
        } else
                r = assignments_put(a, &one, false, NULL);
        if (r < 0)
                abort();
}

static char *summary(const Assignments *a) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        for (size_t i = 0; i < assignments_count(a); i++)
                fprintf(f, "%s=%s/%s ", assignments_at(a, i)->target, assignments_at(a, i)->class_name, assignments_at(a, i)->owner);
        fclose(f);
        return text;
}

static void crash_life(void *userdata) {
        const Crash *c = userdata;
        Assignments *a = NULL;

        if (assignments_open(c->dir, NULL, &a) < 0)
                abort();
        for (unsigned i = 0; i < CRASH_STEPS; i++) {
                crash_step(a, i);
                if (write(c->acknowledged_fd, "x", 1) != 1)
                        abort();
        }
}

static void test_crash(void **state) {
        char *expected[CRASH_STEPS + 1];
        bool died = true;
        unsigned n_deaths = 0;

        {
                int dir = scratch_open();
                Assignments *a = open_store(dir);

                expected[0] = strdup("");
                for (unsigned i = 0; i < CRASH_STEPS; i++) {
                        crash_step(a, i);
                        expected[i + 1] = summary(a);
                }
                assignments_close(a);
                scratch_close(dir);
        }
        for (unsigned at = 1; died; at += at < 60 ? 1 : 13) {
                Crash c = { .dir = scratch_open() };
                _cleanup_free_ char *found = NULL;
                char bytes[CRASH_STEPS + 1];
                int pipe_fd[2];
                ssize_t n;
                Assignments *a;

                assert_int_equal(pipe(pipe_fd), 0);
                c.acknowledged_fd = pipe_fd[1];
                died = dies_at(at, crash_life, &c);
                n_deaths += died;
                close(pipe_fd[1]);
                n = read(pipe_fd[0], bytes, sizeof(bytes));
                close(pipe_fd[0]);
                a = open_store(c.dir);
                found = summary(a);
                if (!streq(found, expected[n]) && (n == CRASH_STEPS || !streq(found, expected[n + 1])))
                        fail_msg("died at step %u, acknowledged %zd: %s", at, n, found);
                assignments_close(a);
                scratch_close(c.dir);
        }
        assert_true(n_deaths > 100);
        for (unsigned i = 0; i <= CRASH_STEPS; i++)
                free(expected[i]);
}

/* ---- JSON ---- */

static int parse(const char *text, const char *target, Assignment *ret, DiagList *list) {
        json_t *o = json_loads(text, JSON_DECODE_ANY, NULL);
        int r;

        assert_non_null(o);
        r = assignment_from_json(o, "/assignments/3", TARGET_UNIT, target, NOW, ret, list);
        json_decref(o);
        return r;
}

static void test_from_json(void **state) {
        static const struct {
                const char *text, *target, *pointer;
        } bad[] = {
                { "{}", "a.service", "/assignments/3/class" },
                { "{\"class\":\"Batch\"}", "a.service", "/assignments/3/class" },
                { "{\"class\":\"batch\",\"unit\":\"a.service\"}", "a.service", "/assignments/3/unit" },
                { "{\"class\":\"batch\",\"owner\":\"a b\"}", "a.service", "/assignments/3/owner" },
                { "{\"class\":\"batch\",\"owner\":\"\"}", "a.service", "/assignments/3/owner" },
                { "{\"class\":\"batch\",\"force\":1}", "a.service", "/assignments/3/force" },
                { "{\"class\":\"batch\",\"expires_in_usec\":0}", "a.service", "/assignments/3/expires_in_usec" },
                { "{\"class\":\"batch\",\"expires_in_usec\":-1}", "a.service", "/assignments/3/expires_in_usec" },
                { "{\"class\":\"batch\",\"expires_in_usec\":9223372036854775807}", "a.service", "/assignments/3/expires_in_usec" },
                { "{\"class\":\"batch\",\"expires_in_usec\":1.5}", "a.service", "/assignments/3/expires_in_usec" },
                { "{\"class\":\"batch\",\"expires_at\":\"2020-01-01T00:00:00Z\"}", "a.service", "/assignments/3/expires_at" },
                { "{\"class\":\"batch\",\"expires_at\":\"2099-01-01T00:00:00Z\"}", "a.service", "/assignments/3/expires_at" },
                { "{\"class\":\"batch\",\"expires_at\":\"tomorrow\"}", "a.service", "/assignments/3/expires_at" },
                { "{\"class\":\"batch\",\"expires_at\":\"2028-01-01T00:00:00Z\",\"expires_in_usec\":5}", "a.service", "/assignments/3/expires_at" },
                { "{\"class\":\"batch\",\"overrides\":{\"cpu\":{\"quota\":50}}}", "a.service", "/assignments/3/overrides/cpu/quota" },
                { "{\"class\":\"batch\",\"overrides\":[]}", "a.service", "/assignments/3/overrides" },
                { "{\"class\":\"batch\"}", NULL, "/assignments/3" },
                { "{\"class\":\"batch\",\"unit\":\"a.service\",\"cgroup\":\"/a\"}", NULL, "/assignments/3" },
                { "{\"class\":\"batch\",\"unit\":\"a\\nb.service\"}", NULL, "/assignments/3/unit" },
                { "{\"class\":\"batch\",\"cgroup\":\"/a/../b\"}", NULL, "/assignments/3/cgroup" },
                { "{\"class\":\"batch\",\"cgroup\":\"/a\\nb\"}", NULL, "/assignments/3/cgroup" },
                { "{\"class\":\"batch\",\"pod_uid\":\"XYZ\"}", NULL, "/assignments/3/pod_uid" },
                { "{\"class\":\"batch\"}", "a\nb.service", "/assignments/3" },
                { "[]", "a.service", "/assignments/3" },
                { "\"x\"", NULL, "/assignments/3" },
        };
        DiagList list = { 0 };
        Assignment a = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                if (parse(bad[i].text, bad[i].target, &a, &list) != -EINVAL)
                        fail_msg("accepted: %s", bad[i].text);
                if (list.n_items < 1 || !streq(list.items[0].pointer, bad[i].pointer))
                        fail_msg("%s: %s", bad[i].text, list.n_items ? list.items[0].pointer : "no diagnosis");
                assert_null(a.target);
                diag_list_clear(&list);
        }

        assert_int_equal(parse("{\"class\":\"batch\"}", "a@.service", &a, &list), 0);
        assert_string_equal(a.target, "a@.service");
        assert_string_equal(a.owner, "api");
        assert_int_equal(a.created_realtime_usec, NOW);
        assert_int_equal(a.expires_realtime_usec, 0);
        assignment_clear(&a);
        assert_int_equal(parse("{\"class\":\"batch\",\"pod_uid\":\"0a1b2c3d-0000-1111-2222-333344445555\",\"owner\":\"k8s:a@b\",\"force\":true,"
                               "\"expires_in_usec\":60000000,\"overrides\":{\"latency_nice\":-5,\"cpu\":{\"quota\":{\"percent_of_cpu\":50}}}}",
                               NULL, &a, &list), 0);
        assert_int_equal(a.kind, TARGET_POD);
        assert_true(a.force);
        assert_int_equal(a.expires_realtime_usec, NOW + 60 * USEC_PER_SEC);
        assert_int_equal(a.overrides.quota.value, 50);
        assignment_clear(&a);
        assert_int_equal(parse("{\"class\":\"batch\",\"expires_at\":\"2028-02-29T23:59:59.25Z\",\"overrides\":null}", "a.service", &a, &list), 0);
        assert_int_equal(a.expires_realtime_usec, UINT64_C(1835481599250000));
        assignment_clear(&a);
        assert_int_equal(list.n_items, 0);
}

static void test_to_json(void **state) {
        Assignment a = unit("a.service", "batch", "api");
        char *text;
        json_t *j;

        a.expires_realtime_usec = UINT64_C(1835481599250000);
        a.revision = 12;
        j = assignment_to_json(&a);
        text = json_dumps(j, JSON_SORT_KEYS | JSON_COMPACT);
        assert_string_equal(text, "{\"by\":\"uid=0\",\"class\":\"batch\",\"created_at\":\"2027-01-15T08:00:00.000005Z\",\"expires_at\":\"2028-02-29T23:59:59.250000Z\","
                                  "\"force\":false,\"overrides\":null,\"owner\":\"api\",\"revision\":12,\"unit\":\"a.service\"}");
        free(text);
        json_decref(j);

        a.kind = TARGET_CGROUP;
        a.target = (char *) "/\xc3\xa4 \xff%\xe2\x82/b";
        j = assignment_to_json(&a);
        assert_string_equal(json_string_value(json_object_get(j, "cgroup")), "/\xc3\xa4 \xef\xbf\xbd%\xef\xbf\xbd\xef\xbf\xbd/b");
        assert_string_equal(json_string_value(json_object_get(j, "cgroup_escaped")), "/%C3%A4%20%FF%25%E2%82/b");
        json_decref(j);
}

static void test_times(void **state) {
        static const char *const bad[] = { "", "2028-02-30T00:00:00Z", "2027-02-29T00:00:00Z", "2028-13-01T00:00:00Z", "2028-01-01T24:00:00Z", "2028-01-01T00:60:00Z",
                                           "2028-01-01T00:00:60Z", "2028-01-01 00:00:00Z", "2028-01-01T00:00:00", "2028-01-01T00:00:00.Z",
                                           "2028-01-01T00:00:00+01:00", "2028-01-01T00:00:00Zx", "1969-12-31T23:59:59Z", "2028-1-01T00:00:00Z", "2028-01-01T00:00:00.0123456789Z" };
        uint64_t t = 42;
        char buffer[32];

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(time_from_rfc3339(bad[i], &t));
        assert_int_equal(t, 42);
        assert_true(time_from_rfc3339("1970-01-01T00:00:01+00:00", &t));
        assert_int_equal(t, USEC_PER_SEC);
        assert_true(time_from_rfc3339("2100-03-01T00:00:00.123456789Z", &t));
        assert_string_equal(time_to_rfc3339(t, buffer, sizeof(buffer)), "2100-03-01T00:00:00.123456Z");
        assert_string_equal(time_to_rfc3339(USEC_PER_SEC, buffer, sizeof(buffer)), "1970-01-01T00:00:01Z");
        assert_true(strlen(time_to_rfc3339(UINT64_MAX, buffer, sizeof(buffer))) < sizeof(buffer));
}

static void test_targets(void **state) {
        static const struct {
                TargetKind kind;
                const char *target;
                bool valid;
        } cases[] = {
                { TARGET_UNIT, "a.service", true },      { TARGET_UNIT, "a@.service", true },      { TARGET_UNIT, "a@b.service", true },
                { TARGET_UNIT, "a@b@c.service", true },  { TARGET_UNIT, "-.slice", true },         { TARGET_UNIT, "a\\x2db.slice", true },
                { TARGET_UNIT, "a:b_c-d.scope", true },  { TARGET_UNIT, "a.b.socket", true },      { TARGET_UNIT, "@a.service", false },
                { TARGET_UNIT, "a", false },             { TARGET_UNIT, ".service", false },       { TARGET_UNIT, "a.timer", false },
                { TARGET_UNIT, "a b.service", false },   { TARGET_UNIT, "a/b.service", false },    { TARGET_UNIT, "a%i.service", false },
                { TARGET_UNIT, "\xc3\xa4.service", false }, { TARGET_UNIT, "a\n.service", false }, { TARGET_UNIT, "", false },
                { TARGET_UNIT, "a.service\x1b", false }, { TARGET_CGROUP, "/", true },             { TARGET_CGROUP, "/a", true },
                { TARGET_CGROUP, "/a/b c%\x1b\xff", true }, { TARGET_CGROUP, "/...", true },       { TARGET_CGROUP, "/.a", true },
                { TARGET_CGROUP, "", false },            { TARGET_CGROUP, "a", false },            { TARGET_CGROUP, "/a/", false },
                { TARGET_CGROUP, "//a", false },         { TARGET_CGROUP, "/a//b", false },        { TARGET_CGROUP, "/.", false },
                { TARGET_CGROUP, "/a/..", false },       { TARGET_CGROUP, "/../a", false },        { TARGET_CGROUP, "/a\nb", false },
                { TARGET_POD, "0a1b2c3d-0000-1111-2222-333344445555", true }, { TARGET_POD, "0a1b2c3d000011112222333344445555", true },
                { TARGET_POD, "0A1b2c3d-0000-1111-2222-333344445555", false }, { TARGET_POD, "0a1b2c3d-0000-1111-2222-33334444555", false },
                { TARGET_POD, "0a1b2c3d_0000_1111_2222_333344445555", false }, { TARGET_POD, "", false }, { TARGET_POD, "0a1b2c3d-0000-1111-2222-3333444455556", false },
                { _TARGET_KIND_MAX, "x", false },
        };
        char long_name[400];
        DiagList list = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                if (target_is_valid(cases[i].kind, cases[i].target, "/p", &list) != cases[i].valid)
                        fail_msg("%s", cases[i].target);
                assert_int_equal(list.n_items, !cases[i].valid);
                diag_list_clear(&list);
        }
        memset(long_name, 'a', sizeof(long_name));
        strcpy(long_name + 247, ".service"); /* 255 bytes */
        assert_true(target_is_valid(TARGET_UNIT, long_name, "", &list));
        long_name[247] = 'a';
        strcpy(long_name + 248, ".service");
        assert_false(target_is_valid(TARGET_UNIT, long_name, "", &list));
        long_name[0] = '/';
        long_name[248] = long_name[256] = 'a';
        long_name[257] = 0;
        assert_false(target_is_valid(TARGET_CGROUP, long_name, "", &list)); /* a name of 256 bytes */
        diag_list_clear(&list);

        assert_true(owner_is_valid("k8s") && owner_is_valid("node-agent@host:1"));
        assert_false(owner_is_valid("") || owner_is_valid("-a") || owner_is_valid("a/b") || owner_is_valid("a b"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_put),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_owner),
                cmocka_unit_test(test_expiry),
                cmocka_unit_test(test_errors),
                cmocka_unit_test(test_damage),
                cmocka_unit_test(test_crash),
                cmocka_unit_test(test_from_json),
                cmocka_unit_test(test_to_json),
                cmocka_unit_test(test_times),
                cmocka_unit_test(test_targets),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
