/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who gets which class: globs, conditions, container paths, protection, and the order of sources. */

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "policies/match.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "1234abcd-12ab-34cd-56ef-1234567890ab"
#define UID_ "1234abcd_12ab_34cd_56ef_1234567890ab"
#define BURSTABLE "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"

static void test_cgroup_glob(void **state) {
        static const struct {
                const char *pattern, *path;
                bool matches;
        } cases[] = {
                { "/a", "/a", true },
                { "/a", "/ab", false },
                { "/a", "/a/b", false },
                { "/*", "/a", true },
                { "/*", "/", true },
                { "/*", "/a/b", false },
                { "/**", "/a/b/c", true },
                { "/**", "/", true },
                { "**", "/a/b", true },
                { "/a/*/c", "/a/b/c", true },
                { "/a/*/c", "/a/b/b/c", false },
                { "/a/**/c", "/a/b/b/c", true },
                { "/a/**/c", "/a/c", true },
                { "/a/**/c", "/ac", false },
                { "/a/**/c", "/a/bc", false },
                { "/a/**c", "/a/b/bc", true },
                { "/a/**", "/a", false },
                { "/a/**", "/a/", true },
                { "/a***c", "/a/b/c", true },
                { "/**/b/*/d", "/x/b/b/c/d", true },
                { "/**/b/*/d", "/x/b/b/c/e/d", false },
                { "/*a*b*", "/xaybz", true },
                { "/*a*b*", "/xbya", false },
                { "/?", "/a", true },
                { "/?", "/", false },
                { "/a?b", "/a/b", false },
                { "/a[/]b", "/a/b", false },
                { "/a[!x]b", "/a/b", false },
                { "/[a-c]x", "/bx", true },
                { "/[a-c]x", "/dx", false },
                { "/[!a-c]x", "/dx", true },
                { "/[^a-c]x", "/ax", false },
                { "/[]x]", "/]", true },
                { "/[!]]", "/]", false },
                { "/[a-]", "/-", true },
                { "/[[:digit:]][[:alpha:]]", "/7q", true },
                { "/[[:digit:]]", "/q", false },
                { "/[", "/[", true },
                { "/[a", "/[a", true },
                { "/[[]", "/[", true },
                { "/a\\x2db.service", "/a\\x2db.service", true },
                { "/a\\*", "/a*", false },
                { "/a\\*", "/a\\bc", true },
                { "/%s\x1b*", "/%s\x1b[2J", true },
                { "/\xc3\xa4*", "/\xc3\xa4\xc3\xb6", true },
                { "/user.slice/user-*.slice/session-*.scope", "/user.slice/user-1000.slice/session-3.scope", true },
                { "", "", true },
                { "", "/", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                if (cgroup_glob_matches(cases[i].pattern, cases[i].path) != cases[i].matches)
                        fail_msg("%s on %s", cases[i].pattern, cases[i].path);
}

/* Made-up patterns against the C library's matcher, where the two mean the same. */
static void test_glob_like_fnmatch(void **state) {
        static const char letters[] = "aab-]!*?[/\\", names[] = "aab-]!/[\\";
        unsigned seed = 1, taken = 0, matched = 0;

        for (unsigned n = 0; n < 300000; n++) {
                char pattern[10], name[8];
                size_t i, length = (size_t) rand_r(&seed) % 9;

                for (i = 0; i < length; i++)
                        pattern[i] = letters[(size_t) rand_r(&seed) % (sizeof(letters) - 1)];
                pattern[i] = 0;
                length = (size_t) rand_r(&seed) % 7;
                for (i = 0; i < length; i++)
                        name[i] = names[(size_t) rand_r(&seed) % (sizeof(names) - 1)];
                name[i] = 0;
                /* glibc lets an expression without its "]" match nothing, and takes "x-" ranges that run backwards as an error: both are
                 * letters or empty sets here. It needs no look where no bracket is. */
                if (strchr(pattern, '['))
                        continue;
                taken++;
                matched += fnmatch(pattern, name, FNM_NOESCAPE) == 0;
                if (unit_glob_matches(pattern, name) != (fnmatch(pattern, name, FNM_NOESCAPE) == 0))
                        fail_msg("%s on %s", pattern, name);
                if (!strstr(pattern, "**") &&
                    cgroup_glob_matches(pattern, name) != (fnmatch(pattern, name, FNM_NOESCAPE | FNM_PATHNAME) == 0))
                        fail_msg("path: %s on %s", pattern, name);
        }
        assert_true(taken > 50000 && matched > 1000);
}

/* The same for sets: well-formed ones around each byte. */
static void test_sets_like_fnmatch(void **state) {
        static const char *const sets[] = { "[a]", "[!a]", "[^a]", "[a-f]", "[!a-f]", "[]]", "[!]]", "[]a-c]", "[a-]", "[-a]", "[a\\]", "[*?]",
                                            "[[:alnum:]]", "[[:alpha:]]", "[[:blank:]]", "[[:cntrl:]]", "[[:digit:]]", "[[:graph:]]",
                                            "[[:lower:]]", "[[:print:]]", "[[:punct:]]", "[[:space:]]", "[[:upper:]]", "[[:xdigit:]]",
                                            "[![:digit:]_]", "[[:digit:]a-f_]", "[a[]", "[[]" };

        for (size_t i = 0; i < ELEMENTSOF(sets); i++)
                for (unsigned c = 1; c < 256; c++) {
                        char name[2] = { (char) c, 0 };

                        if (unit_glob_matches(sets[i], name) != (fnmatch(sets[i], name, FNM_NOESCAPE) == 0))
                                fail_msg("%s on byte %u", sets[i], c);
                        if (c != '/' && cgroup_glob_matches(sets[i], name) != unit_glob_matches(sets[i], name))
                                fail_msg("%s on byte %u of a path", sets[i], c);
                }
}

static void test_glob_is_bounded(void **state) {
        static char pattern[4098], path[4097];
        struct timespec start, end;

        for (size_t i = 0; i < 4096; i++)
                pattern[i] = i % 2 ? 'a' : '*';
        memset(path, 'a', 4096);
        path[0] = '/';
        path[4095] = 'b';
        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        assert_false(cgroup_glob_matches(pattern, path));
        for (size_t i = 0; i + 3 <= 4096; i += 3)
                memcpy(pattern + i, "**a", 3);
        assert_false(cgroup_glob_matches(pattern, path));
        memset(pattern, '[', 4096);
        assert_false(cgroup_glob_matches(pattern, path));
        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        /* 3 x 16 million steps; a backtracking matcher would not come back in this life. */
        assert_true(end.tv_sec - start.tv_sec < 20);
        memset(pattern, '*', 4097);
        assert_false(cgroup_glob_matches(pattern, path)); /* too long */
        pattern[4096] = 0;
        assert_true(cgroup_glob_matches(pattern, path));
}

static void test_pod_paths(void **state) {
        static const struct {
                const char *path, *uid, *qos, *id;
                bool own, node;
        } cases[] = {
                { BURSTABLE, UID, "burstable", "", true, false },
                { BURSTABLE "/cri-containerd-" ID ".scope", UID, "burstable", ID, true, false },
                { BURSTABLE "/cri-containerd-" ID ".scope/init.scope", UID, "burstable", ID, false, false },
                { BURSTABLE "/crio-" ID ".scope", UID, "burstable", ID, true, false },
                { BURSTABLE "/crio-conmon-" ID ".scope", UID, "burstable", "", false, false },
                { BURSTABLE "/docker-" ID ".scope", UID, "burstable", ID, true, false },
                { "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID ".scope", UID, "besteffort", ID, true, false },
                { "/kubepods.slice/kubepods-pod" UID_ ".slice", UID, "guaranteed", "", true, false },
                { "/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" ID ".scope", UID, "guaranteed", ID, true, false },
                { "/kubepods.slice/kubepods-pod0123456789abcdef0123456789abcdef.slice", "0123456789abcdef0123456789abcdef", "guaranteed", "", true, false },
                { "/kubepods/burstable/pod" UID, UID, "burstable", "", true, false },
                { "/kubepods/burstable/pod" UID "/" ID, UID, "burstable", ID, true, false },
                { "/kubepods/besteffort/pod" UID "/" ID "/sub", UID, "besteffort", ID, false, false },
                { "/kubepods/pod" UID "/" ID, UID, "guaranteed", ID, true, false },
                { "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope",
                  UID, "burstable", ID, true, false },
                { "/kubelet/kubepods/burstable/pod" UID "/" ID, UID, "burstable", ID, true, false },
                { "/system.slice/docker-" ID ".scope", "", "", ID, true, false },
                { "/machine.slice/libpod-" ID ".scope", "", "", ID, true, false },
                { "/machine.slice/libpod-" ID ".scope/container", "", "", ID, false, false },
                { "/machine.slice/libpod-conmon-" ID ".scope", "", "", "", false, false },
                { "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container", "", "", ID, false, false },
                { "/docker/" ID, "", "", ID, true, false },
                { "/docker/" ID "/kubelet/kubepods/burstable/pod" UID, "", "", ID, false, false },
                { "/libpod_parent/libpod-" ID, "", "", ID, true, false },
                { "/build/" ID, "", "", "", false, false },
                { "/kubepods.slice", "", "", "", false, true },
                { "/kubepods.slice/kubepods-burstable.slice", "", "burstable", "", false, true },
                { "/kubepods.slice/kubepods-besteffort.slice", "", "besteffort", "", false, true },
                { "/kubepods", "", "", "", false, true },
                { "/kubepods/burstable", "", "burstable", "", false, true },
                { "/kubepods/burstable/podx y", "", "burstable", "", false, true },
                { "/kubelet.slice/kubelet-kubepods.slice", "", "", "", false, true },
                { "/a.slice/a-kubepods.slice/a-kubepods-burstable.slice", "", "burstable", "", false, true },
                { "/kubelet.slice", "", "", "", false, true },
                { "/system.slice/kubepods-like.service", "", "", "", false, false },
                { "/kubelet-like.slice/docker-" ID ".scope", "", "", ID, true, false },
                { "/mykubepods.slice", "", "", "", false, false },
                { "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podNOTHEX.slice", "", "burstable", "", false, true },
                { "/system.slice/docker-" "X123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" ".scope", "", "", "", false, false },
                { "/system.slice/docker-0123456789abcdef.scope", "", "", "", false, false },
                { "/", "", "", "", false, false },
                { "", "", "", "", false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                PodFacts f;

                if (pod_facts_from_path(cases[i].path, &f) != cases[i].own || !streq(f.pod_uid, cases[i].uid) ||
                    !streq(f.qos, cases[i].qos) || !streq(f.container_id, cases[i].id))
                        fail_msg("%s: uid %s qos %s id %s", cases[i].path, f.pod_uid, f.qos, f.container_id);
                if (path_is_kubernetes_node(cases[i].path) != cases[i].node)
                        fail_msg("%s: node", cases[i].path);
        }
}

static void test_rules(void **state) {
        static const char *const aliases[] = { "web.service", "www.service", NULL };
        static const GroupFacts web = { .cgroup = "/a.slice/a-b.slice/web.service", .unit = "web.service", .unit_names = aliases,
                                        .slice = "a-b.slice", .user = "www-data", .has_uid = true, .uid = 33 };
        static const GroupFacts dash = { .cgroup = "/system.slice/my\\x2dapp@1.service", .unit = "my\\x2dapp@1.service", .slice = "system.slice" };
        static const GroupFacts session = { .cgroup = "/user.slice/user-1000.slice/session-3.scope", .unit = "session-3.scope", .slice = "user-1000.slice" };
        static const GroupFacts pod = { .cgroup = BURSTABLE "/cri-containerd-" ID ".scope" };
        static const GroupFacts inner = { .cgroup = BURSTABLE "/cri-containerd-" ID ".scope/app" };
        static const GroupFacts node = { .cgroup = "/kubepods.slice/kubepods-burstable.slice" };
        static const GroupFacts nothing = {};
        static const struct {
                RuleMatch match;
                const GroupFacts *facts;
                bool matches;
        } cases[] = {
#define M(field, value) { .field = (char *) (value) }
                { M(unit, "web.service"), &web, true },
                { M(unit, "www.service"), &web, true },
                { M(unit, "w*"), &web, true },
                { M(unit, "web"), &web, false },
                { M(unit, "my\\x2dapp@*.service"), &dash, true },
                { M(unit, "my-app@1.service"), &dash, false },
                { M(unit, "*"), &pod, false }, /* no unit */
                { M(slice, "a-b.slice"), &web, true },
                { M(slice, "a.slice"), &web, true },
                { M(slice, "-.slice"), &web, true },
                { M(slice, "b.slice"), &web, false },
                { M(slice, "a-*.slice"), &web, true },
                { M(slice, "user.slice"), &session, true },
                { M(slice, "*"), &nothing, false },
                { M(cgroup, "/a.slice/**"), &web, true },
                { M(cgroup, "/a.slice/*"), &web, false },
                { M(cgroup, "/**"), &nothing, false },
                { M(user, "www-data"), &web, true },
                { M(user, "33"), &web, true },
                { M(user, "3"), &web, false },
                { M(user, "1000"), &session, true },
                { M(user, "100"), &session, false },
                { M(user, "root"), &nothing, false },
                { M(kubernetes_qos, "burstable"), &pod, true },
                { M(kubernetes_qos, "guaranteed"), &pod, false },
                { M(kubernetes_qos, "burstable"), &node, false },
                { M(kubernetes_qos, "burstable"), &inner, false },
                { M(kubernetes_qos, "burstable"), &nothing, false },
                { M(pod_uid, UID), &pod, true },
                { M(pod_uid, UID_), &pod, true },
                { M(pod_uid, "1234ABCD-12AB-34cd-56ef-1234567890ab"), &pod, true },
                { M(pod_uid, "1234abcd"), &pod, false },
                { M(container_id, "0123456789ab"), &pod, true },
                { M(container_id, ID), &pod, true },
                { M(container_id, "1123456789ab"), &pod, false },
                { { .unit = (char *) "web.service", .user = (char *) "33", .slice = (char *) "a.slice" }, &web, true },
                { { .unit = (char *) "web.service", .user = (char *) "34" }, &web, false },
                { { .cgroup = (char *) "/kubepods.slice/**", .pod_uid = (char *) UID }, &pod, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                if (rule_matches(&(Rule) { .match = cases[i].match }, cases[i].facts) != cases[i].matches)
                        fail_msg("case %zu", i);
}

static void test_protected(void **state) {
        static const char *const names[] = { "bus.service", "dbus-broker.service", NULL };
        static const struct {
                const char *cgroup, *unit;
                bool is_protected;
        } cases[] = {
                { "/", NULL, true },
                { "/", "-.slice", true },
                { NULL, "-.slice", true },
                { "/init.scope", "init.scope", true },
                { "/system.slice/dbus.service", "dbus.service", true },
                { "/system.slice/systemd-journald.service", "systemd-journald.service", true },
                { "/system.slice/systemd-journald@web.service", "systemd-journald@web.service", true },
                { "/system.slice/systemd-logind.service", NULL, true },
                { "/system.slice/systemd-udevd.service", NULL, true },
                { "/system.slice/systemd-udevd.service/udev", NULL, true },
                { "/system.slice/kubelet.service", "kubelet.service", true },
                { "/system.slice/cpuclassd.service", NULL, true },
                { "/system.slice/cpuclass-gateway.service", NULL, true },
                { "/system.slice/cpuclass-pools.service", NULL, true },
                { "/system.slice/cpuclass-pools.service/builds", NULL, false },
                { NULL, "cpuclassd.socket", true },
                { "/kubepods.slice", "kubepods.slice", true },
                { "/kubepods.slice/kubepods-burstable.slice", NULL, true },
                { "/kubepods/besteffort", NULL, true },
                { "/kubelet.slice/kubelet-kubepods.slice", NULL, true },
                { BURSTABLE, NULL, false },
                { BURSTABLE "/cri-containerd-" ID ".scope", NULL, false },
                { BURSTABLE "/cri-containerd-" ID ".scope/x", NULL, false },
                { "/system.slice", "system.slice", false },
                { "/system.slice/nginx.service", "nginx.service", false },
                { "/system.slice/mydbus.service", "mydbus.service", false },
                { "/system.slice/dbus.service.d", NULL, false },
                { "/user.slice/user-0.slice/user@0.service", "user@0.service", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                GroupFacts f = { .cgroup = cases[i].cgroup, .unit = cases[i].unit };

                if (group_is_protected(&f) != cases[i].is_protected)
                        fail_msg("%s", cases[i].cgroup ?: cases[i].unit);
        }
        assert_true(group_is_protected(&(GroupFacts) { .unit = "bus.service", .unit_names = names }));
}

static void test_order(void **state) {
        static ServiceClass classes[] = { { .name = (char *) "api" }, { .name = (char *) "unit" }, { .name = (char *) "label" }, { .name = (char *) "rule" }, { .name = (char *) "late" } };
        static Rule rules[] = {
                { .name = (char *) "glob", .class_name = (char *) "rule", .match = { .unit = (char *) "*.service" } },
                { .name = (char *) "bus", .class_name = (char *) "late", .match = { .unit = (char *) "dbus.service" }, .force = true },
                { .name = (char *) "bad-force", .class_name = (char *) "late", .match = { .unit = (char *) "kube*.service" }, .force = true },
                { .name = (char *) "any", .class_name = (char *) "late", .match = { .cgroup = (char *) "/**" } },
                { .name = (char *) "lost", .class_name = (char *) "gone", .match = { .unit = (char *) "lost.scope" } },
        };
        static const Policy p = { classes, ELEMENTSOF(classes), rules, ELEMENTSOF(rules), NULL, 0 };
        static const struct {
                GroupFacts facts;
                const char *api;
                bool force;
                const char *class_name; /* of the class; NULL: none */
                ClassSource source;
                const char *rule, *unknown;
                bool refused;
        } cases[] = {
                { { .unit = "a.service", .unit_class = "unit", .label_class = "label" }, "api", false, "api", CLASS_SOURCE_API, NULL, NULL, false },
                { { .unit = "a.service", .unit_class = "unit", .label_class = "label" }, NULL, false, "unit", CLASS_SOURCE_UNIT, NULL, NULL, false },
                { { .unit = "a.service", .label_class = "label" }, NULL, false, "label", CLASS_SOURCE_LABEL, NULL, NULL, false },
                { { .unit = "a.service" }, NULL, false, "rule", CLASS_SOURCE_RULE, "glob", NULL, false },
                { { .unit = "a.scope", .cgroup = "/a" }, NULL, false, "late", CLASS_SOURCE_RULE, "any", NULL, false },
                { { .unit = "a.scope" }, NULL, false, NULL, CLASS_SOURCE_NONE, NULL, NULL, false },
                /* a class that is not there ends the search */
                { { .unit = "a.service", .unit_class = "unit" }, "nothing", false, NULL, CLASS_SOURCE_API, NULL, "nothing", false },
                { { .unit = "a.service", .unit_class = "nothing", .label_class = "label" }, NULL, false, NULL, CLASS_SOURCE_UNIT, NULL, "nothing", false },
                { { .unit = "a.service", .label_class = "nothing" }, NULL, false, NULL, CLASS_SOURCE_LABEL, NULL, "nothing", false },
                { { .unit = "lost.scope" }, NULL, false, NULL, CLASS_SOURCE_RULE, "lost", "gone", false },
                /* protected groups */
                { { .unit = "init.scope", .cgroup = "/init.scope" }, "api", false, NULL, CLASS_SOURCE_NONE, NULL, NULL, true },
                { { .unit = "init.scope", .cgroup = "/init.scope" }, "api", true, "api", CLASS_SOURCE_API, NULL, NULL, false },
                { { .unit = "init.scope", .cgroup = "/init.scope" }, "nothing", true, NULL, CLASS_SOURCE_API, NULL, "nothing", false },
                { { .unit = "init.scope", .unit_class = "unit" }, NULL, false, NULL, CLASS_SOURCE_NONE, NULL, NULL, true },
                { { .unit = "init.scope", .label_class = "label" }, NULL, false, NULL, CLASS_SOURCE_NONE, NULL, NULL, true },
                { { .unit = "dbus.service", .unit_class = "unit" }, NULL, false, "late", CLASS_SOURCE_RULE, "bus", NULL, false },
                { { .unit = "kubelet.service" }, NULL, false, NULL, CLASS_SOURCE_NONE, NULL, NULL, true },
                { { .cgroup = "/kubepods.slice" }, NULL, false, NULL, CLASS_SOURCE_NONE, NULL, NULL, true },
                { { .cgroup = BURSTABLE }, NULL, false, "late", CLASS_SOURCE_RULE, "any", NULL, false },
                { { .unit = "init.scope" }, NULL, false, NULL, CLASS_SOURCE_NONE, NULL, NULL, false }, /* nothing wanted it */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Classification c;

                classify_group(&p, &cases[i].facts, cases[i].api, cases[i].force, &c);
                if (!streq_null(c.service_class ? c.service_class->name : NULL, cases[i].class_name) || c.source != cases[i].source ||
                    !streq_null(c.rule ? c.rule->name : NULL, cases[i].rule) || !streq_null(c.unknown_class, cases[i].unknown) ||
                    c.refused_protected != cases[i].refused)
                        fail_msg("case %zu: source %s, refused %d", i, class_source_to_string(c.source), c.refused_protected);
        }
        assert_string_equal(class_source_to_string(CLASS_SOURCE_INHERITED), "inherited");
        assert_null(class_source_to_string(99));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cgroup_glob),
                cmocka_unit_test(test_glob_like_fnmatch),
                cmocka_unit_test(test_sets_like_fnmatch),
                cmocka_unit_test(test_glob_is_bounded),
                cmocka_unit_test(test_pod_paths),
                cmocka_unit_test(test_rules),
                cmocka_unit_test(test_protected),
                cmocka_unit_test(test_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
