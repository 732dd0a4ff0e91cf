/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each route answers, and what it asks of the manager. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include "tests/unit/api/harness.h"

#define NGINX "/v1/assignments/unit/nginx.service"

static int setup(void **state) {
        Harness *h = calloc(1, sizeof(*h));

        harness_open(h, NULL, 25);
        *state = h;
        return 0;
}

static int teardown(void **state) {
        harness_close(*state);
        free(*state);
        return 0;
}

static void test_meta(void **state) {
        Harness *h = *state;
        Answer a;

        a = ask(h, "GET", "/v1/host", NULL);
        check_status(&a, 200);
        assert_int_equal(json_array_size(at(a.json, "facts")), _FACT_MAX);
        assert_string_equal(text_at(&a, "facts.6.name"), "core_scheduling");
        assert_string_equal(text_at(&a, "facts.6.state"), "no");
        assert_string_equal(text_at(&a, "facts.6.reason"), "the kernel was built without CONFIG_SCHED_CORE");
        assert_true(json_is_null(at(a.json, "sched_ext")));
        answer_clear(&a);

        a = ask(h, "GET", "/readyz", NULL);
        check_status(&a, 200);
        answer_clear(&a);
        h->manager->status.policy_error = "50-x.json:3: out of range";
        a = ask(h, "GET", "/readyz", NULL);
        check_problem(&a, 503, "not-ready");
        h->manager->status.policy_error = NULL;
        h->manager->status.ready = false;
        a = ask(h, "GET", "/readyz", NULL);
        check_problem(&a, 503, "not-ready");
        a = ask(h, "GET", "/livez", NULL);
        check_status(&a, 200);
        answer_clear(&a);
        a = ask(h, "GET", "/openapi.yaml", NULL);
        check_status(&a, 200);
        assert_non_null(strstr(a.body, "openapi: 3.1.0"));
        answer_clear(&a);
}

static void test_groups(void **state) {
        Harness *h = *state;
        _cleanup_free_ char *next = NULL, *target = NULL, *last = NULL;
        size_t n = 0;
        Answer a;

        /* classified ones only: batch, nginx, the strange one, 25 more */
        a = ask(h, "GET", "/v1/groups", NULL);
        check_status(&a, 200);
        assert_int_equal(json_array_size(at(a.json, "groups")), 28);
        assert_true(json_is_null(at(a.json, "next")));
        answer_clear(&a);
        a = ask(h, "GET", "/v1/groups?all=true", NULL);
        assert_int_equal(json_array_size(at(a.json, "groups")), 29);
        answer_clear(&a);

        /* page by page each comes once, in order */
        do {
                free(TAKE_PTR(target));
                assert_true(asprintf(&target, "/v1/groups?limit=9%s%s", next ? "&after=" : "", next ? next : "") > 0);
                a = ask(h, "GET", target, NULL);
                check_status(&a, 200);
                for (size_t i = 0; i < json_array_size(at(a.json, "groups")); i++, n++) {
                        const char *cgroup = json_string_value(json_object_get(json_array_get(at(a.json, "groups"), i), "cgroup"));

                        assert_true(!last || strcmp(last, cgroup) < 0);
                        free(last);
                        last = strdup(cgroup);
                }
                free(TAKE_PTR(next));
                if (json_is_string(at(a.json, "next")))
                        next = strdup(text_at(&a, "next"));
                answer_clear(&a);
        } while (next && n <= 28);
        assert_int_equal(n, 28);

        a = ask(h, "GET", "/v1/groups?class=latency-critical", NULL);
        assert_int_equal(json_array_size(at(a.json, "groups")), 1);
        assert_string_equal(text_at(&a, "groups.0.unit"), "nginx.service");
        assert_string_equal(text_at(&a, "groups.0.state"), "degraded");
        assert_string_equal(text_at(&a, "groups.0.state_reason"), "no core scheduling");
        answer_clear(&a);
        a = ask(h, "GET", "/v1/groups?state=failed", NULL);
        assert_int_equal(json_array_size(at(a.json, "groups")), 1);
        assert_string_equal(text_at(&a, "groups.0.bandwidth.errno"), "EINVAL");
        answer_clear(&a);
        a = ask(h, "GET", "/v1/groups?unit=*.service&drift=false", NULL);
        assert_int_equal(json_array_size(at(a.json, "groups")), 2);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/groups?unit=*.service&drift=true", NULL);
        assert_int_equal(json_array_size(at(a.json, "groups")), 0);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/groups?path=/system.slice/nginx.service", NULL);
        assert_int_equal(json_array_size(at(a.json, "groups")), 1);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/groups?path=/gone", NULL);
        assert_int_equal(json_array_size(at(a.json, "groups")), 0);
        answer_clear(&a);

        a = ask(h, "GET", "/v1/groups/unit/nginx.service", NULL);
        check_status(&a, 200);
        assert_string_equal(text_at(&a, "class"), "latency-critical");
        assert_string_equal(text_at(&a, "source"), "rule");
        assert_string_equal(text_at(&a, "rule"), "web");
        assert_int_equal(json_integer_value(at(a.json, "bandwidth.observed.quota_usec")), 50000);
        assert_string_equal(text_at(&a, "bandwidth.base.quota_usec"), "max");
        assert_true(json_is_null(at(a.json, "bandwidth.written")));
        assert_true(json_is_null(at(a.json, "bandwidth.errno")));
        assert_int_equal(json_integer_value(at(a.json, "latency.threads_covered")), 4);
        assert_int_equal(json_integer_value(at(a.json, "sample.total.nr_throttled")), 3);
        assert_true(json_is_null(at(a.json, "sample.total.nr_bursts"))); /* unknown, not 0 */
        assert_true(json_is_null(at(a.json, "sample.pressure.full_total_usec")));
        assert_string_equal(text_at(&a, "effective_class.name"), "latency-critical");
        answer_clear(&a);
        a = ask(h, "GET", "/v1/groups/unit/www.service", NULL); /* an alias */
        assert_string_equal(text_at(&a, "unit"), "nginx.service");
        answer_clear(&a);
        a = ask(h, "GET", "/v1/groups/unit/gone.service", NULL);
        check_problem(&a, 404, "not-found");
}

/* Names are bytes: they come out as valid JSON, and go in again exactly. */
static void test_strange_names(void **state) {
        Harness *h = *state;
        _cleanup_free_ char *escaped = NULL, *target = NULL;
        Answer a;

        a = ask(h, "GET", "/v1/groups?class=batch&limit=1", NULL);
        check_status(&a, 200);
        assert_string_equal(text_at(&a, "groups.0.cgroup"), "/a \x1b[31m\"%s\\x2d\xef\xbf\xbd\xc3\xa4");
        escaped = strdup(text_at(&a, "groups.0.cgroup_escaped"));
        assert_string_equal(escaped, "/a%20%1B%5B31m%22%25s%5Cx2d%FF%C3%A4");
        assert_null(strchr(a.body, 0x1b)); /* nothing raw for a terminal */
        answer_clear(&a);
        assert_true(asprintf(&target, "/v1/groups/cgroup?path=%s", escaped) > 0);
        a = ask(h, "GET", target, NULL);
        check_status(&a, 200);
        assert_string_equal(text_at(&a, "cgroup_escaped"), escaped);
        answer_clear(&a);
        free(TAKE_PTR(target));
        assert_true(asprintf(&target, "/v1/assignments/cgroup?path=%s", escaped) > 0);
        a = ask(h, "PUT", target, "{\"class\":\"batch\"}");
        check_status(&a, 201);
        assert_string_equal(text_at(&a, "cgroup_escaped"), escaped);
        answer_clear(&a);
        assert_non_null(assignments_get(h->manager->assignments, TARGET_CGROUP, STRANGE_CGROUP));
        free(TAKE_PTR(target));
        assert_true(asprintf(&target, "/v1/explain?path=%s", escaped) > 0);
        a = ask(h, "GET", target, NULL);
        check_status(&a, 200);
        answer_clear(&a);
        fake_decide(h->manager, STRANGE_CGROUP, "raised \xff\n\x1b[0m");
        a = ask(h, "GET", "/v1/decisions", NULL);
        check_status(&a, 200);
        assert_string_equal(text_at(&a, "decisions.0.cgroup_escaped"), escaped);
        assert_null(strchr(a.body, 0x1b));
        answer_clear(&a);
        a = ask(h, "GET", "/metrics", NULL);
        check_status(&a, 200);
        assert_non_null(strstr(a.body, "cgroup=\"/a \\\\x1b[31m\\\"%s\\\\x2d\xef\xbf\xbd\xc3\xa4\""));
        answer_clear(&a);
}

static void test_explain(void **state) {
        Harness *h = *state;
        char target[64];
        Answer a;

        fake_decide(h->manager, "/system.slice/nginx.service", "raised");
        fake_decide(h->manager, "/system.slice/batch.service", "other");
        a = ask(h, "GET", "/v1/explain?unit=nginx.service", NULL);
        check_status(&a, 200);
        assert_string_equal(text_at(&a, "group.unit"), "nginx.service");
        assert_string_equal(text_at(&a, "asked.unit"), "nginx.service");
        assert_string_equal(text_at(&a, "precedence.0.source"), "api");
        assert_string_equal(text_at(&a, "precedence.0.verdict"), "silent");
        assert_string_equal(text_at(&a, "precedence.3.source"), "rule");
        assert_string_equal(text_at(&a, "precedence.3.verdict"), "chosen");
        assert_string_equal(text_at(&a, "precedence.3.class"), "latency-critical");
        assert_string_equal(text_at(&a, "precedence.4.verdict"), "not asked");
        assert_string_equal(text_at(&a, "effective.limited_by"), "/system.slice");
        assert_string_equal(text_at(&a, "effective.path.0.cgroup"), "/system.slice");
        assert_string_equal(text_at(&a, "effective.path.1.class"), "latency-critical");
        assert_string_equal(text_at(&a, "affected_siblings.0"), "other.service");
        assert_int_equal(json_array_size(at(a.json, "decisions")), 1);
        assert_string_equal(text_at(&a, "decisions.0.law.cause"), law_cause_to_string(LAW_CAUSE_DEMAND_ABOVE_LIMIT));
        answer_clear(&a);

        a = ask(h, "GET", "/v1/explain?unit=gone.service", NULL);
        assert_null(at(a.json, "assignment"));
        check_problem(&a, 404, "not-found");
        a = ask(h, "PUT", "/v1/assignments/unit/gone.service", "{\"class\":\"batch\"}");
        check_status(&a, 201);
        assert_string_equal(text_at(&a, "pending"), "unit is not loaded");
        answer_clear(&a);
        a = ask(h, "GET", "/v1/explain?unit=gone.service", NULL);
        assert_string_equal(text_at(&a, "assignment.pending"), "unit is not loaded");
        check_problem(&a, 404, "not-found");

        a = ask(h, "GET", "/v1/explain?pid=2147483647", NULL);
        check_problem(&a, 404, "not-found");
        (void) snprintf(target, sizeof(target), "/v1/explain?pid=%d", (int) getpid());
        a = ask(h, "GET", target, NULL);
        /* no group of the fake holds this process: said, not guessed */
        assert_true(a.status == 404 || a.status == 500);
        answer_clear(&a);
}

static void test_assignment(void **state) {
        Harness *h = *state;
        _cleanup_free_ char *etag = NULL, *second = NULL, *headers = NULL;
        Answer a;

        a = ask(h, "GET", NGINX, NULL);
        check_problem(&a, 404, "not-found");
        a = ask(h, "DELETE", NGINX, NULL); /* nothing there: as good as deleted */
        check_status(&a, 204);
        answer_clear(&a);
        a = ask(h, "PUT", NGINX, "{\"class\":\"batch\",\"owner\":\"deploy\",\"overrides\":{\"latency_nice\":3},\"expires_in_usec\":60000000}");
        check_status(&a, 201);
        assert_string_equal(text_at(&a, "unit"), "nginx.service");
        assert_string_equal(text_at(&a, "class"), "batch");
        assert_string_equal(text_at(&a, "owner"), "deploy");
        assert_int_equal(json_integer_value(at(a.json, "overrides.latency_nice")), 3);
        assert_true(endswith(text_at(&a, "expires_at"), "Z"));
        assert_true(startswith(text_at(&a, "by"), "uid="));
        assert_true(json_is_null(at(a.json, "pending")));
        etag = header_of(&a, "ETag");
        assert_non_null(etag);
        answer_clear(&a);
        assert_int_equal(h->n_audits, 2);
        assert_int_equal(h->audit.status, 201);
        assert_string_equal(h->audit_method, "PUT");
        assert_string_equal(h->audit_path, NGINX);
        assert_int_equal(h->audit.uid, getuid());

        /* under an alias it is the same one */
        a = ask(h, "GET", "/v1/assignments/unit/www.service", NULL);
        check_status(&a, 200);
        second = header_of(&a, "ETag");
        assert_string_equal(etag, second);
        answer_clear(&a);
        /* conditions */
        assert_true(asprintf(&headers, "If-None-Match: %s\r\n", etag) > 0);
        a = ask_with(h, "GET", NGINX, headers, NULL);
        check_status(&a, 304);
        answer_clear(&a);
        a = ask_with(h, "PUT", NGINX, "If-None-Match: *\r\n", "{\"class\":\"batch\",\"owner\":\"deploy\"}");
        check_problem(&a, 412, "exists");
        a = ask_with(h, "PUT", NGINX, "If-Match: \"0-0\"\r\n", "{\"class\":\"latency-critical\",\"owner\":\"deploy\"}");
        check_problem(&a, 412, "changed");
        a = ask_with(h, "DELETE", NGINX, "If-Match: \"0-0\", \"1\"\r\n", NULL);
        check_problem(&a, 412, "changed");
        a = ask_with(h, "DELETE", NGINX, "If-Match: nonsense\r\n", NULL);
        check_problem(&a, 400, "invalid-header");
        free(TAKE_PTR(headers));
        assert_true(asprintf(&headers, "If-Match: W/%s\r\n", etag) > 0); /* weak is not strong */
        a = ask_with(h, "DELETE", NGINX, headers, NULL);
        check_problem(&a, 412, "changed");
        assert_string_equal(assignments_get(h->manager->assignments, TARGET_UNIT, "nginx.service")->class_name, "batch");

        free(TAKE_PTR(headers));
        assert_true(asprintf(&headers, "If-Match: \"x\", %s\r\n", etag) > 0);
        a = ask_with(h, "PUT", NGINX, headers, "{\"class\":\"latency-critical\",\"owner\":\"deploy\"}");
        check_status(&a, 200);
        free(TAKE_PTR(second));
        second = header_of(&a, "ETag");
        assert_string_not_equal(etag, second);
        answer_clear(&a);
        a = ask_with(h, "PUT", NGINX, headers, "{\"class\":\"batch\",\"owner\":\"deploy\"}"); /* of the earlier version */
        check_problem(&a, 412, "changed");

        /* another owner's */
        a = ask(h, "PUT", NGINX, "{\"class\":\"batch\",\"owner\":\"somebody\"}");
        check_problem(&a, 409, "owned-by-other");
        a = ask(h, "PUT", NGINX "?steal=true", "{\"class\":\"batch\",\"owner\":\"somebody\"}");
        check_status(&a, 200);
        answer_clear(&a);

        a = ask(h, "DELETE", NGINX, NULL);
        check_status(&a, 204);
        answer_clear(&a);
        assert_null(assignments_get(h->manager->assignments, TARGET_UNIT, "nginx.service"));
        a = ask_with(h, "DELETE", NGINX, "If-Match: *\r\n", NULL);
        check_problem(&a, 412, "changed");
}

/* The other kinds of targets. */
static void test_assignment_kinds(void **state) {
        static const char *const targets[] = { "/v1/assignments/cgroup?path=/a/b%25", "/v1/assignments/pod/0f3b2a10-1111-2222-3333-444455556666" };
        Harness *h = *state;
        Answer a;

        for (size_t i = 0; i < ELEMENTSOF(targets); i++) {
                a = ask(h, "PUT", targets[i], "{\"class\":\"batch\"}");
                check_status(&a, 201);
                answer_clear(&a);
                a = ask(h, "GET", targets[i], NULL);
                check_status(&a, 200);
                assert_string_equal(text_at(&a, "class"), "batch");
                assert_string_equal(text_at(&a, i == 0 ? "cgroup" : "pod_uid"), i == 0 ? "/a/b%" : "0f3b2a10-1111-2222-3333-444455556666");
                answer_clear(&a);
                a = ask(h, "DELETE", targets[i], NULL);
                check_status(&a, 204);
                answer_clear(&a);
        }
        assert_int_equal(assignments_count(h->manager->assignments), 0);
}

static void test_assignment_refused(void **state) {
        static const struct {
                const char *target, *body;
                unsigned status;
                const char *name, *pointer;
        } cases[] = {
                { NGINX, "{}", 400, "invalid", NULL },
                { NGINX, "{\"class\":7}", 400, "invalid", "/class" },
                { NGINX, "{\"class\":\"batch\",\"clas\":1}", 400, "invalid", "/clas" },
                { NGINX, "{\"class\":\"batch\",\"overrides\":{\"latency_nice\":-21}}", 400, "invalid", "/overrides/latency_nice" },
                { NGINX, "{\"class\":\"batch\",\"overrides\":{\"cpu\":{\"period_usec\":1}}}", 400, "invalid", "/overrides/cpu/period_usec" },
                { NGINX, "{\"class\":\"batch\",\"expires_at\":\"tomorrow\"}", 400, "invalid", "/expires_at" },
                { NGINX, "{\"class\":\"nothing\"}", 422, "unknown-class", "/class" },
                { "/v1/assignments/unit/init.scope", "{\"class\":\"batch\"}", 409, "protected", NULL },
                { NGINX "?wait=done", "{\"class\":\"batch\"}", 400, "invalid-parameter", NULL },
                { NGINX "?timeout_usec=1000", "{\"class\":\"batch\"}", 400, "invalid-parameter", NULL },
                { NGINX "?wait=applied&timeout_usec=60000001", "{\"class\":\"batch\"}", 400, "invalid-parameter", "timeout_usec" },
                { NGINX "?dry_run=1", "{\"class\":\"batch\"}", 400, "invalid-parameter", "dry_run" },
                { "/v1/assignments/cgroup", "{\"class\":\"batch\"}", 400, "invalid-parameter", NULL },
                { "/v1/assignments/cgroup?path=relative", "{\"class\":\"batch\"}", 400, "invalid", NULL },
                { "/v1/assignments/cgroup?path=/a/../b", "{\"class\":\"batch\"}", 400, "invalid", NULL },
                { "/v1/assignments/cgroup?path=/a%0Ab", "{\"class\":\"batch\"}", 400, "invalid-parameter", "path" },
                { "/v1/assignments/pod/x", "{\"class\":\"batch\"}", 400, "invalid", NULL },
        };
        static const struct {
                int fail;
                unsigned status;
                const char *name;
        } failures[] = {
                { -ENOSPC, 507, "storage" }, { -EROFS, 507, "storage" }, { -EIO, 507, "storage" }, { -ENOMEM, 503, "resources" }, { -EBADF, 500, "internal" },
        };
        Harness *h = *state;
        Answer a;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                a = ask(h, "PUT", cases[i].target, cases[i].body);
                if (cases[i].pointer && !streq(text_at(&a, "errors.0.pointer"), cases[i].pointer))
                        fail_msg("%s: %s", cases[i].body, a.body);
                check_problem(&a, cases[i].status, cases[i].name);
        }
        for (size_t i = 0; i < ELEMENTSOF(failures); i++) {
                h->manager->fail = failures[i].fail;
                a = ask(h, "PUT", NGINX, "{\"class\":\"batch\"}");
                check_problem(&a, failures[i].status, failures[i].name);
        }
        assert_int_equal(assignments_count(h->manager->assignments), 0);
        assert_int_equal(h->manager->n_commands, 0);
        a = ask(h, "PUT", "/v1/assignments/unit/init.scope", "{\"class\":\"batch\",\"force\":true}");
        check_status(&a, 201);
        answer_clear(&a);
        a = ask(h, "PUT", "/v1/assignments/pod/0f3b2a10-1111-2222-3333-444455556666", "{\"class\":\"batch\"}");
        check_status(&a, 201);
        assert_string_equal(text_at(&a, "pod_uid"), "0f3b2a10-1111-2222-3333-444455556666");
        answer_clear(&a);
}

static void test_dry_run(void **state) {
        Harness *h = *state;
        Answer a;

        a = ask(h, "PUT", NGINX "?dry_run=true", "{\"class\":\"batch\"}");
        check_status(&a, 200);
        assert_true(json_is_true(at(a.json, "dry_run")));
        assert_string_equal(text_at(&a, "affected.0"), "other.service");
        answer_clear(&a);
        a = ask(h, "PUT", NGINX "?dry_run=true", "{\"class\":\"nothing\"}");
        check_problem(&a, 422, "unknown-class");
        a = ask(h, "DELETE", NGINX "?dry_run=true", NULL);
        check_status(&a, 200);
        answer_clear(&a);
        a = ask(h, "PUT", NGINX "?dry_run=false", "{\"class\":\"batch\"}");
        check_status(&a, 201);
        answer_clear(&a);
        assert_int_equal(h->manager->n_commands, 1);
}

static void test_owner(void **state) {
        static const char *const bad[] = {
                "{}", "{\"assignments\":{}}", "{\"assignments\":[1]}", "{\"assignments\":[{\"class\":\"batch\"}]}",
                "{\"assignments\":[{\"unit\":\"a.service\",\"cgroup\":\"/a\",\"class\":\"batch\"}]}",
                "{\"assignments\":[{\"unit\":\"a.service\",\"class\":\"batch\"},{\"unit\":\"a.service\",\"class\":\"batch\"}]}",
                "{\"assignments\":[{\"unit\":\"a.service\",\"class\":\"batch\",\"owner\":\"other\"}]}",
                "{\"assignments\":[{\"unit\":\"a.service\",\"class\":\"batch\"},{\"unit\":\"b\",\"class\":\"batch\"}]}",
        };
        Harness *h = *state;
        Answer a;

        a = ask(h, "PUT", "/v1/owners/ctl/assignments",
                "{\"assignments\":[{\"unit\":\"a.service\",\"class\":\"batch\"},{\"cgroup\":\"/b\",\"class\":\"batch\"},{\"unit\":\"c.service\",\"class\":\"batch\",\"owner\":\"ctl\"}]}");
        check_status(&a, 200);
        assert_int_equal(json_integer_value(at(a.json, "changed")), 3);
        assert_int_equal(json_array_size(at(a.json, "assignments")), 3);
        assert_non_null(strcasestr(a.head, "ETag: "));
        answer_clear(&a);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                a = ask(h, "PUT", "/v1/owners/ctl/assignments", bad[i]);
                if (a.status != 400 || json_array_size(at(a.json, "errors")) == 0)
                        fail_msg("%s: %u %s", bad[i], a.status, a.body);
                answer_clear(&a);
        }
        a = ask_with(h, "PUT", "/v1/owners/ctl/assignments", "If-Match: \"all-0\"\r\n", "{\"assignments\":[]}");
        check_problem(&a, 412, "changed");
        assert_int_equal(assignments_count(h->manager->assignments), 3);
        a = ask(h, "PUT", "/v1/owners/ctl/assignments", "{\"assignments\":[{\"unit\":\"a.service\",\"class\":\"latency-critical\"}]}");
        check_status(&a, 200);
        assert_int_equal(json_integer_value(at(a.json, "changed")), 1);
        assert_int_equal(json_integer_value(at(a.json, "pruned")), 2);
        answer_clear(&a);
        a = ask(h, "PUT", "/v1/owners/thief/assignments", "{\"assignments\":[{\"unit\":\"a.service\",\"class\":\"batch\"}]}");
        check_problem(&a, 409, "owned-by-other");
        a = ask(h, "GET", "/v1/owners/ctl/assignments", NULL);
        assert_int_equal(json_array_size(at(a.json, "assignments")), 1);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/assignments?owner=nobody", NULL);
        assert_int_equal(json_array_size(at(a.json, "assignments")), 0);
        answer_clear(&a);
        a = ask(h, "PUT", "/v1/owners/a%20b/assignments", "{\"assignments\":[]}");
        check_problem(&a, 400, "invalid");
}

static void test_policy(void **state) {
        Harness *h = *state;
        _cleanup_free_ char *etag = NULL, *text = NULL, *headers = NULL;
        Answer a;

        a = ask(h, "GET", "/v1/policy", NULL);
        check_status(&a, 200);
        assert_int_equal(json_integer_value(at(a.json, "revision")), 7);
        assert_string_equal(text_at(&a, "files.0"), "test.json");
        assert_int_equal(json_array_size(at(a.json, "files")), 1);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/classes", NULL);
        assert_int_equal(json_array_size(at(a.json, "classes")), 2);
        assert_int_equal(json_integer_value(at(a.json, "classes.1.n_groups")), 27);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/classes/batch", NULL);
        check_status(&a, 200);
        etag = header_of(&a, "ETag");
        /* what GET gives can be PUT again */
        text = json_dumps(at(a.json, "class"), 0);
        answer_clear(&a);
        assert_true(asprintf(&headers, "If-Match: %s\r\n", etag) > 0);
        a = ask_with(h, "PUT", "/v1/classes/batch", headers, text);
        check_status(&a, 200);
        answer_clear(&a);
        a = ask_with(h, "PUT", "/v1/classes/batch", headers, "{\"latency_nice\":5}");
        check_status(&a, 200);
        assert_int_equal(json_integer_value(at(a.json, "class.latency_nice")), 5);
        answer_clear(&a);
        a = ask_with(h, "PUT", "/v1/classes/batch", headers, "{\"latency_nice\":6}");
        check_problem(&a, 412, "changed");
        a = ask(h, "PUT", "/v1/classes/mine", "{\"name\":\"mine\",\"latency_nice\":1}");
        check_status(&a, 201);
        assert_string_equal(text_at(&a, "origin"), "api");
        answer_clear(&a);
        a = ask(h, "PUT", "/v1/classes/mine", "{\"name\":\"yours\"}");
        assert_string_equal(text_at(&a, "errors.0.pointer"), "/name");
        check_problem(&a, 400, "invalid");
        a = ask(h, "PUT", "/v1/classes/mine", "{\"latency_nice\":-30,\"x\":1}");
        assert_true(json_array_size(at(a.json, "errors")) >= 2);
        check_problem(&a, 400, "invalid");
        a = ask(h, "PUT", "/v1/classes/Bad%20Name", "{}");
        check_problem(&a, 400, "invalid");
        a = ask(h, "DELETE", "/v1/classes/latency-critical", NULL);
        check_problem(&a, 409, "defined-by-file");
        a = ask(h, "DELETE", "/v1/classes/none", NULL);
        check_status(&a, 204);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/classes/none", NULL);
        check_problem(&a, 404, "not-found");

        a = ask(h, "GET", "/v1/rules", NULL);
        check_status(&a, 200);
        assert_string_equal(text_at(&a, "rules.0.rule.name"), "web");
        answer_clear(&a);
        a = ask_with(h, "PUT", "/v1/rules", "If-Match: \"x\"\r\n", "{\"rules\":[]}");
        check_problem(&a, 412, "changed");
        assert_false(h->manager->put_rules_called);
        a = ask(h, "PUT", "/v1/rules", "{\"rules\":[]}");
        check_status(&a, 200);
        answer_clear(&a);
        assert_true(h->manager->put_rules_called);

        a = ask(h, "POST", "/v1/policy/reload", NULL);
        check_status(&a, 200);
        answer_clear(&a);
        h->manager->fail = -EINVAL;
        a = ask(h, "POST", "/v1/policy/reload", "{}");
        assert_string_equal(text_at(&a, "errors.0.file"), "/etc/cpuclass/policies.d/50-x.json");
        assert_int_equal(json_integer_value(at(a.json, "errors.0.line")), 3);
        assert_string_equal(text_at(&a, "errors.0.limit"), "-20 to 19");
        check_problem(&a, 422, "policy-refused");
        a = ask(h, "POST", "/v1/policy/reload", "{\"x\":1}");
        check_problem(&a, 400, "invalid");
}

static void test_decisions(void **state) {
        Harness *h = *state;
        Answer a;

        a = ask(h, "GET", "/v1/decisions", NULL);
        check_status(&a, 200);
        assert_int_equal(json_array_size(at(a.json, "decisions")), 0);
        answer_clear(&a);
        for (int i = 0; i < 200; i++) /* the ring keeps the last 64: 137..200 */
                fake_decide(h->manager, i % 2 ? "/system.slice/nginx.service" : "/gone", "x");
        a = ask(h, "GET", "/v1/decisions?limit=3", NULL);
        assert_int_equal(json_integer_value(at(a.json, "decisions.0.sequence")), 198);
        assert_int_equal(json_integer_value(at(a.json, "decisions.2.sequence")), 200);
        assert_int_equal(json_integer_value(at(a.json, "next_since")), 200);
        assert_int_equal(json_integer_value(at(a.json, "oldest")), 137);
        assert_true(json_is_false(at(a.json, "gap")));
        answer_clear(&a);
        a = ask(h, "GET", "/v1/decisions?since=150&limit=2", NULL);
        assert_int_equal(json_integer_value(at(a.json, "decisions.0.sequence")), 151);
        assert_int_equal(json_integer_value(at(a.json, "next_since")), 152);
        assert_true(json_is_false(at(a.json, "gap")));
        answer_clear(&a);
        a = ask(h, "GET", "/v1/decisions?since=0", NULL);
        assert_true(json_is_true(at(a.json, "gap")));
        assert_int_equal(json_array_size(at(a.json, "decisions")), 64);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/decisions?since=200", NULL);
        assert_int_equal(json_array_size(at(a.json, "decisions")), 0);
        assert_int_equal(json_integer_value(at(a.json, "next_since")), 200);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/decisions?since=5000", NULL); /* of another life of the daemon */
        assert_true(json_is_true(at(a.json, "gap")));
        assert_int_equal(json_array_size(at(a.json, "decisions")), 64);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/decisions?group=nginx.service", NULL);
        assert_int_equal(json_array_size(at(a.json, "decisions")), 32);
        answer_clear(&a);
        a = ask(h, "GET", "/v1/decisions?group=/gone&since=190", NULL); /* what is gone still has its past */
        assert_int_equal(json_array_size(at(a.json, "decisions")), 5);
        assert_int_equal(json_integer_value(at(a.json, "next_since")), 200);
        answer_clear(&a);
}

static void test_pause(void **state) {
        Harness *h = *state;
        Answer a;

        a = ask(h, "PUT", "/v1/pause", "{\"group\":\"nginx.service\",\"duration_usec\":600000000}");
        check_status(&a, 200);
        assert_true(json_is_false(at(a.json, "paused")));
        assert_string_equal(text_at(&a, "groups.0.unit"), "nginx.service");
        answer_clear(&a);
        a = ask(h, "PUT", "/v1/pause", "{\"group\":\"gone.service\"}");
        check_problem(&a, 404, "not-found");
        a = ask(h, "PUT", "/v1/pause", NULL);
        check_status(&a, 200);
        assert_true(json_is_true(at(a.json, "paused")));
        answer_clear(&a);
        a = ask(h, "DELETE", "/v1/pause?group=nginx", NULL);
        check_problem(&a, 400, "invalid");
        a = ask(h, "DELETE", "/v1/pause", NULL);
        check_status(&a, 204);
        answer_clear(&a);
        assert_false(h->manager->status.paused);
}

static void test_pool(void **state) {
        Harness *h = *state;
        _cleanup_free_ char *body = NULL;
        Answer a;

        a = ask(h, "POST", "/v1/pools/web-1", "{\"class\":\"batch\"}");
        check_status(&a, 201);
        assert_int_equal(json_integer_value(at(a.json, "pid")), getpid());
        assert_string_equal(text_at(&a, "cgroup"), "/system.slice/cpuclassd.service/web-1-1");
        answer_clear(&a);
        assert_string_equal(h->manager->last, "pool web-1 batch");
        a = ask(h, "POST", "/v1/pools/Web", "{}");
        check_problem(&a, 400, "invalid");
        a = ask(h, "POST", "/v1/pools/web", "{\"pid\":2147483647}");
        check_problem(&a, 404, "not-found");
        a = ask(h, "POST", "/v1/pools/web", "{\"pid\":0}");
        check_problem(&a, 400, "invalid");
        h->manager->fail = -ENOENT;
        a = ask(h, "POST", "/v1/pools/web", "{\"class\":\"nothing\"}");
        check_problem(&a, 422, "unknown-class");
        h->manager->fail = -EOPNOTSUPP;
        a = ask(h, "POST", "/v1/pools/web", NULL);
        check_problem(&a, 501, "not-possible");
}

static void test_metrics(void **state) {
        Harness *h = *state;
        _cleanup_free_ char *lines = NULL;
        char *save = NULL, family[128] = "";
        Answer a;

        a = ask(h, "GET", "/metrics", NULL);
        check_status(&a, 200);
        assert_non_null(strcasestr(a.head, "Content-Type: text/plain; version=0.0.4"));
#define NGINX_LABELS "{cgroup=\"/system.slice/nginx.service\",unit=\"nginx.service\",class=\"latency-critical\"}"
        assert_non_null(strstr(a.body, "\ncpuclass_cpu_usage_seconds_total" NGINX_LABELS " 1.234567\n"));
        assert_non_null(strstr(a.body, "\ncpuclass_cpu_cfs_throttled_periods_total" NGINX_LABELS " 3\n"));
        assert_non_null(strstr(a.body, "\ncpuclass_pressure_cpu_waiting_seconds_total" NGINX_LABELS " 1.500000\n"));
        assert_non_null(strstr(a.body, "\ncpuclass_cpu_quota_cpus" NGINX_LABELS " 0.5\n"));
        assert_non_null(strstr(a.body, "\ncpuclass_slice_seconds" NGINX_LABELS " 0.000300000\n"));
        assert_null(strstr(a.body, "cpuclass_cpu_cfs_burst_periods_total{")); /* the kernel lacks it */
        assert_non_null(strstr(a.body, "\ncpuclass_host_feature{feature=\"core_scheduling\"} 0\n"));
        assert_non_null(strstr(a.body, "\ncpuclass_ready 1\n"));
        /* each family once, its samples together, under its HELP and TYPE */
        lines = strdup(a.body);
        for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (startswith(line, "# HELP ")) {
                        char help[160];

                        assert_int_equal(sscanf(line, "# HELP %127s", family), 1);
                        (void) snprintf(help, sizeof(help), "# HELP %s ", family);
                        assert_ptr_equal(strstr(strstr(a.body, help) + 1, help), NULL);
                } else if (startswith(line, "# TYPE "))
                        assert_true(startswith(line + 7, family));
                else
                        assert_true(startswith(line, family));
        }
        answer_clear(&a);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_meta), T(test_groups), T(test_strange_names), T(test_explain), T(test_assignment), T(test_assignment_kinds), T(test_assignment_refused), T(test_dry_run), T(test_owner),
                T(test_policy), T(test_decisions), T(test_pause), T(test_pool), T(test_metrics),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
