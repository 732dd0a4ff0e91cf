/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Policy documents: what is built, what is refused and how it reads, how documents merge, and that what we ship and
 * document is true. */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policies/document.h"
#include "policies/schema.h"

static PolicyDocument document(const char *file, const char *text) {
        return (PolicyDocument) { .file = file, .text = text, .length = strlen(text) };
}

static int build(const char *text, Policy **ret, DiagList *list) {
        PolicyDocument d = document("f", text);

        return policy_build(&d, 1, ret, list);
}

static char *read_source(const char *name) {
        const char *root = getenv("CPUCLASS_SOURCE_DIR");
        _cleanup_free_ char *path = NULL;
        _cleanup_fclose_ FILE *f = NULL;
        char *text = NULL;
        size_t size = 0;

        assert_non_null(root);
        assert_true(asprintf(&path, "%s/%s", root, name) > 0);
        f = fopen(path, "re");
        if (!f)
                fail_msg("%s: %s", path, strerror(errno));
        assert_true(getdelim(&text, &size, 0, f) > 0);
        return text;
}

static void test_class(void **state) {
        _cleanup_(policy_free_pointer) Policy *p = NULL;
        const ServiceClass *c;
        DiagList list = {};

        assert_int_equal(build("{\"version\":1,\"classes\":[{\"name\":\"full\",\"description\":\"d\",\"comment\":\"c\",\"priority\":0,"
                               "\"latency_nice\":0,\"core_scheduling\":\"group\",\"cpu\":{\"quota\":{\"percent_of_base\":100},"
                               "\"period_usec\":1000,\"burst\":{\"percent_of_quota\":50},\"floor\":{\"usec\":2000},"
                               "\"ceiling\":{\"percent_of_cpu\":400},\"law\":\"adaptive\",\"targets\":{\"throttled_permyriad\":1,"
                               "\"strictness\":4},\"enable_controller\":true},\"drift\":\"enforce\",\"inherit\":true},"
                               "{\"name\":\"empty\"},{\"name\":\"controller\",\"cpu\":{\"enable_controller\":true}},"
                               "{\"name\":\"law\",\"cpu\":{\"law\":\"static\"}}]}", &p, &list), 0);
        assert_int_equal(list.n_items, 0);
        assert_int_equal(p->n_classes, 4);
        c = policy_find_class(p, "full");
        assert_non_null(c);
        assert_string_equal(c->description, "d");
        assert_string_equal(c->origin, "f");
        assert_int_equal(c->priority, 0);
        assert_true(c->has_latency_nice && c->manages_bandwidth && c->enable_controller && c->inherit);
        assert_int_equal(c->latency_nice, 0);
        assert_int_equal(c->core_scheduling, CORE_SCHEDULING_GROUP);
        assert_int_equal(c->quota.kind, AMOUNT_PERCENT_OF_BASE);
        assert_int_equal(c->quota.value, 100);
        assert_int_equal(c->period_usec, 1000);
        assert_int_equal(c->burst.kind, AMOUNT_PERCENT_OF_QUOTA);
        assert_int_equal(c->floor.kind, AMOUNT_USEC);
        assert_int_equal(c->floor.value, 2000);
        assert_int_equal(c->ceiling.kind, AMOUNT_PERCENT_OF_CPU);
        assert_int_equal(c->law, LAW_ADAPTIVE);
        assert_int_equal(c->targets.throttled_permyriad, 1);
        assert_int_equal(c->targets.strictness, 4);
        assert_int_equal(c->drift, DRIFT_ENFORCE);

        c = policy_find_class(p, "empty");
        assert_int_equal(c->priority, 500);
        assert_false(c->has_latency_nice || c->manages_bandwidth || c->enable_controller || c->inherit);
        assert_int_equal(c->core_scheduling, CORE_SCHEDULING_NONE);
        assert_int_equal(c->quota.kind, AMOUNT_KEEP);
        assert_int_equal(c->burst.kind, AMOUNT_UNSET);
        assert_int_equal(c->law, LAW_STATIC);
        assert_int_equal(c->drift, DRIFT_ADOPT);
        assert_false(policy_find_class(p, "controller")->manages_bandwidth);
        assert_true(policy_find_class(p, "law")->manages_bandwidth);
        assert_null(policy_find_class(p, "ful"));
}

static void test_rule(void **state) {
        _cleanup_(policy_free_pointer) Policy *p = NULL;
        DiagList list = {};

        assert_int_equal(build("{\"version\":1,\"classes\":[{\"name\":\"c\"}],\"rules\":[{\"name\":\"r\",\"class\":\"c\",\"comment\":\"x\","
                               "\"match\":{\"unit\":\"dbus.service\",\"slice\":\"*\",\"cgroup\":\"/**\",\"user\":\"0\","
                               "\"kubernetes_qos\":\"besteffort\",\"pod_uid\":\"ab-cd_ef\",\"container_id\":\"0123456789ab\"},\"force\":true}],"
                               "\"patches\":{\"latency-nice\":\"on\",\"b\":\"off\",\"slice-us\":5000}}", &p, &list), 0);
        assert_int_equal(p->n_rules, 1);
        assert_string_equal(p->rules[0].match.unit, "dbus.service");
        assert_string_equal(p->rules[0].match.container_id, "0123456789ab");
        assert_string_equal(p->rules[0].class_name, "c");
        assert_true(p->rules[0].force);
        assert_int_equal(p->n_patches, 3);
        assert_string_equal(p->patches[2].id, "slice-us");
        assert_string_equal(p->patches[2].state, "5000");
}

#define DOC(rest) "{\"version\":1," rest "}"
#define CLASS(rest) DOC("\"classes\":[{\"name\":\"c\"," rest "}]")
#define CPU(rest) CLASS("\"cpu\":{" rest "}")
#define RULE(rest) DOC("\"classes\":[{\"name\":\"c\"}],\"rules\":[{\"name\":\"r\"," rest "}]")
#define MATCH(rest) RULE("\"class\":\"c\",\"match\":{" rest "}")
#define C "f:1: /classes/0/cpu"
#define FLOOR_LIMIT "{\"percent_of_base\": 1 to 10000}, {\"percent_of_cpu\": 1 to 1000000} or {\"usec\": 1000 to 8796093022207}"

/* One mistake a case: exactly one diagnosis, word for word. */
static void test_mistakes(void **state) {
        static const struct {
                const char *text, *line;
        } cases[] = {
                { "{}", "f:1: /version: missing: allowed: integer, 1 to 1" },
                { "{\"version\":2,\"future\":[]}",
                  "f:1: /version: not a version of the policy language that this program knows: value 2, allowed: 1" },
                { "{\"version\":\"1\"}", "f:1: /version: wrong type: value \"1\", allowed: integer, 1 to 1" },
                { DOC("\"classes\":{}"), "f:1: /classes: wrong type: value {}, allowed: array, 0 to 256 elements" },
                { DOC("\"classes\":[1]"), "f:1: /classes/0: wrong type: value 1, allowed: an object" },
                { DOC("\"classes\":[{}]"), "f:1: /classes/0/name: missing: allowed: string, 1 to 64 bytes" },
                { DOC("\"class\":[]"), "f:1: /class: unknown key; did you mean \"classes\"?" },
                { DOC("\"classes\":[{\"name\":\"Web\"}]"), "f:1: /classes/0/name: not a valid value: value \"Web\", "
                  "allowed: a-z, 0-9, '.', '_' and '-', with a letter or digit first" },
                { DOC("\"classes\":[{\"name\":\"c\"},\n{\"name\":\"c\"}]"),
                  "f:2: /classes/1/name: this document has the class already, as number 1: value \"c\"" },
                { CLASS("\"priority\":1001"), "f:1: /classes/0/priority: out of range: value 1001, allowed: integer, 0 to 1000" },
                { CLASS("\"latency_nice\":20"), "f:1: /classes/0/latency_nice: out of range: value 20, allowed: integer, -20 to 19" },
                { CLASS("\"latency-nice\":2"), "f:1: /classes/0/latency-nice: unknown key; did you mean \"latency_nice\"?" },
                { CLASS("\"drift\":\"enforced\""), "f:1: /classes/0/drift: unknown word; did you mean \"enforce\"?: value \"enforced\", "
                  "allowed: \"adopt\", \"enforce\" or \"hold\"" },
                { CLASS("\"inherit\":false,\"inherit\":true"), "f:1: /classes/0/inherit: this key appears twice in its object" },
                { CPU("\"period_usec\":999"), C "/period_usec: out of range: value 999, allowed: integer, 1000 to 1000000" },
                { CPU("\"quota\":50"), C "/quota: an amount needs a unit: value 50, allowed: \"keep\", \"max\", " FLOOR_LIMIT },
                { CPU("\"quota\":\"full\""), C "/quota: not an amount that this field takes: value \"full\", allowed: \"keep\", \"max\", " FLOOR_LIMIT },
                { CPU("\"quota\":{}"), C "/quota: an amount has exactly one unit: value {}, allowed: \"keep\", \"max\", " FLOOR_LIMIT },
                { CPU("\"quota\":{\"percent_of_quota\":50}"), C "/quota: not an amount that this field takes: "
                  "value {\"percent_of_quota\":50}, allowed: \"keep\", \"max\", " FLOOR_LIMIT },
                { CPU("\"quota\":{\"usec\":999}"), C "/quota/usec: out of range: value 999, allowed: integer, 1000 to 8796093022207" },
                { CPU("\"quota\":{\"percent_of_cpu\":12.5}"), C "/quota/percent_of_cpu: wrong type: value 12.5, allowed: integer, 1 to 1000000" },
                { CPU("\"quota\":{\"percent_of_base\":0}"), C "/quota/percent_of_base: out of range: value 0, allowed: integer, 1 to 10000" },
                { CPU("\"burst\":{\"percent_of_quota\":101}"), C "/burst/percent_of_quota: out of range: value 101, allowed: integer, 0 to 100" },
                { CPU("\"burst\":\"max\""), C "/burst: not an amount that this field takes: value \"max\", allowed: \"keep\", \"full\", "
                  "{\"percent_of_quota\": 0 to 100} or {\"usec\": 0 to 8796093022207}" },
                { CPU("\"floor\":\"max\""), C "/floor: not an amount that this field takes: value \"max\", allowed: " FLOOR_LIMIT },
                { CPU("\"ceiling\":\"keep\""), C "/ceiling: not an amount that this field takes: value \"keep\", allowed: \"max\", " FLOOR_LIMIT },
                { CPU("\"quota\":{\"usec\":5000},\"burst\":{\"usec\":5001}"),
                  C "/burst: above the quota (the kernel refuses it): value {\"usec\":5001}, allowed: at most the {\"usec\":5000}" },
                { CPU("\"quota\":\"max\",\"burst\":\"full\""), C "/burst: a burst needs a limit that it goes beyond: value \"full\", "
                  "allowed: none, or a quota or ceiling other than \"max\"" },
                { CPU("\"quota\":\"max\",\"ceiling\":\"max\",\"burst\":{\"usec\":1}"), C "/burst: a burst needs a limit that it goes beyond: "
                  "value {\"usec\":1}, allowed: none, or a quota or ceiling other than \"max\"" },
                { CPU("\"quota\":\"max\",\"floor\":{\"usec\":5000}"), C "/floor: a floor needs a limit that moves: value {\"usec\":5000}, "
                  "allowed: none, or a quota or ceiling other than \"max\"" },
                { CPU("\"quota\":\"max\",\"law\":\"captain\""), C "/law: this law needs a limit to work on: value \"captain\", "
                  "allowed: \"static\", or a quota or ceiling other than \"max\"" },
                { CPU("\"floor\":{\"percent_of_base\":50},\"ceiling\":{\"percent_of_base\":40},\"quota\":{\"percent_of_cpu\":1}"),
                  C "/floor: above the ceiling: value {\"percent_of_base\":50}, allowed: at most the {\"percent_of_base\":40}" },
                { CPU("\"floor\":{\"percent_of_base\":101}"),
                  C "/floor: above the quota: value {\"percent_of_base\":101}, allowed: at most the \"keep\"" },
                { CPU("\"ceiling\":{\"percent_of_base\":99}"),
                  C "/ceiling: below the quota: value {\"percent_of_base\":99}, allowed: at least the \"keep\"" },
                { CPU("\"law\":\"burst\",\"burst\":{\"percent_of_quota\":50}"),
                  C "/burst: the law \"burst\" makes it the quota: value {\"percent_of_quota\":50}, allowed: \"full\" or none" },
                { CPU("\"targets\":{\"strictness\":1}"),
                  C "/targets: the law \"static\" has no targets: allowed: a law of \"koordlet\", \"captain\" or \"adaptive\"" },
                { CPU("\"law\":\"captain\",\"targets\":{\"throttled_permyriad\":10001}"),
                  C "/targets/throttled_permyriad: out of range: value 10001, allowed: integer, 1 to 10000" },
                { RULE("\"class\":\"d\",\"match\":{\"unit\":\"a\"}"), "f:1: /rules/0/class: unknown class; did you mean \"c\"?: value \"d\"" },
                { RULE("\"class\":\"other\",\"match\":{\"unit\":\"a\"}"), "f:1: /rules/0/class: unknown class: value \"other\"" },
                { RULE("\"class\":\"c\""), "f:1: /rules/0/match: missing: allowed: an object" },
                { RULE("\"match\":{\"unit\":\"a\"}"), "f:1: /rules/0/class: missing: allowed: string, 1 to 64 bytes" },
                { MATCH(""), "f:1: /rules/0/match: would match every group: value {}, allowed: at least one condition" },
                { MATCH("\"unit\":\"\""), "f:1: /rules/0/match/unit: must not be empty: value \"\", allowed: string, 1 to 255 bytes" },
                { MATCH("\"unit\":\"a/b\""), "f:1: /rules/0/match/unit: not a valid value: value \"a/b\", "
                  "allowed: a unit name or glob, without '/' and line breaks" },
                { MATCH("\"unit\":\"a\\nb\""), "f:1: /rules/0/match/unit: not a valid value: value \"a\\nb\", "
                  "allowed: a unit name or glob, without '/' and line breaks" },
                { MATCH("\"slice\":\"system\""), "f:1: /rules/0/match/slice: not a valid value: value \"system\", "
                  "allowed: a slice name that ends in \".slice\", or a glob, without '/' and line breaks" },
                { MATCH("\"cgroup\":\"system.slice\""), "f:1: /rules/0/match/cgroup: not a valid value: value \"system.slice\", "
                  "allowed: a path from the cgroup root, with '/' first" },
                { MATCH("\"cgroup\":\"/a\\n\""), "f:1: /rules/0/match/cgroup: not a valid value: value \"/a\\n\", allowed: no line breaks" },
                { MATCH("\"user\":\"a/b\""), "f:1: /rules/0/match/user: not a valid value: value \"a/b\", allowed: a user name or numeric uid" },
                { MATCH("\"kubernetes_qos\":\"Burstable\""), "f:1: /rules/0/match/kubernetes_qos: not a valid value: value \"Burstable\", "
                  "allowed: \"guaranteed\", \"burstable\" or \"besteffort\"" },
                { MATCH("\"pod_uid\":\"x\""), "f:1: /rules/0/match/pod_uid: not a valid value: value \"x\", "
                  "allowed: hex digits with dashes or underscores" },
                { MATCH("\"container_id\":\"0123456789\""), "f:1: /rules/0/match/container_id: wrong length: value \"0123456789\", "
                  "allowed: string, 12 to 64 bytes" },
                { MATCH("\"container_id\":\"0123456789AB\""), "f:1: /rules/0/match/container_id: not a valid value: value \"0123456789AB\", "
                  "allowed: 12 to 64 lower-case hex digits" },
                { RULE("\"class\":\"c\",\"force\":true,\"match\":{\"unit\":\"dbus*.service\",\"user\":\"0\"}"),
                  "f:1: /rules/0/force: takes protected groups by their exact name only: allowed: an exact \"unit\" or \"cgroup\" in \"match\"" },
                { DOC("\"patches\":{\"a\":true}"), "f:1: /patches/a: not a state of a patch: value true, allowed: \"on\", \"off\" or an integer from 0" },
                { DOC("\"patches\":{\"A b\":\"on\"}"), "f:1: /patches/A b: not the id of a patch: "
                  "allowed: a-z, 0-9, '.', '_' and '-', with a letter or digit first" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *line = NULL;
                Policy *p = (Policy *) cases; /* a failure must leave it alone */
                DiagList list = {};

                if (build(cases[i].text, &p, &list) != -EINVAL)
                        fail_msg("was taken: %s", cases[i].text);
                assert_ptr_equal(p, cases);
                line = diag_to_string(&list.items[0]);
                assert_string_equal(line, cases[i].line);
                if (list.n_items != 1)
                        fail_msg("%zu diagnoses for %s", list.n_items, cases[i].text);
                diag_list_clear(&list);
        }
}

static void test_consistent(void **state) {
        static const char *const cases[] = {
                CPU("\"quota\":{\"usec\":5000},\"burst\":{\"usec\":5000}"),
                CPU("\"quota\":\"max\",\"burst\":{\"usec\":0}"),
                CPU("\"quota\":\"max\",\"burst\":\"full\",\"ceiling\":{\"percent_of_base\":300},\"law\":\"captain\""),
                CPU("\"floor\":{\"percent_of_base\":100},\"ceiling\":{\"percent_of_base\":100}"),
                CPU("\"floor\":{\"percent_of_cpu\":300},\"ceiling\":{\"percent_of_base\":100}"),
                CPU("\"law\":\"burst\",\"burst\":\"full\""),
                CPU(""),
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_free_pointer) Policy *p = NULL;
                DiagList list = {};

                if (build(cases[i], &p, &list) < 0)
                        fail_msg("refused: %s", cases[i]);
        }
}

static void test_all_are_reported(void **state) {
        PolicyDocument d[] = {
                document("a", "{\"version\":1,\n\"classes\":[{\"name\":\"c\",\"priority\":-1},\n{\"name\":\"d\",\"x\":1}]}"),
                document("b", "{\"version\":1,\n\"version\":1,\n\"rules\":[{\"name\":\"r\",\n\"class\":\"c\",\"match\":{}},\n3]}"),
                document("c", "{\"version\":1,"),
                document("d", "{\"version\":1,\"rules\":[{\"name\":\"q\",\"class\":\"nowhere\",\"match\":{\"unit\":\"a\"}}],\"patches\":3}"),
        };
        /* "nowhere" is no mistake of its own: document c may have it. */
        static const char *const lines[] = {
                "a:2: /classes/0/priority: out of range: value -1, allowed: integer, 0 to 1000",
                "a:3: /classes/1/x: unknown key",
                "b:2: /version: this key appears twice in its object",
                "b:4: /rules/0/match: would match every group: value {}, allowed: at least one condition",
                "b:5: /rules/1: wrong type: value 3, allowed: an object",
                NULL, /* the end of a text has no field to name */
                "d:1: /patches: wrong type: value 3, allowed: object, 0 to 256 members",
        };
        Policy *p = NULL;
        DiagList list = {};

        assert_int_equal(policy_build(d, ELEMENTSOF(d), &p, &list), -EINVAL);
        for (size_t i = 0; i < list.n_items; i++) {
                _cleanup_free_ char *line = diag_to_string(&list.items[i]);

                assert_true(i < ELEMENTSOF(lines));
                if (!lines[i])
                        assert_true(startswith(line, "c:1: not valid JSON: "));
                else
                        assert_string_equal(line, lines[i]);
        }
        assert_int_equal(list.n_items, ELEMENTSOF(lines));
        diag_list_clear(&list);
}

static void test_merge(void **state) {
        PolicyDocument d[] = {
                document("a", "{\"version\":1,\"classes\":[{\"name\":\"one\",\"priority\":1},{\"name\":\"two\",\"latency_nice\":3}],"
                              "\"rules\":[{\"name\":\"x\",\"class\":\"one\",\"match\":{\"unit\":\"a\"}},{\"name\":\"y\",\"class\":\"two\",\"match\":{\"unit\":\"b\"}}],"
                              "\"patches\":{\"p\":\"on\"}}"),
                document("b", "{\"version\":1,\"classes\":[{\"name\":\"three\"},{\"name\":\"one\",\"priority\":2}],"
                              "\"rules\":[{\"name\":\"z\",\"class\":\"three\",\"match\":{\"unit\":\"c\"}},{\"name\":\"x\",\"class\":\"three\",\"match\":{\"user\":\"u\"}}],"
                              "\"patches\":{\"p\":\"off\",\"q\":1}}"),
        };
        PolicyDocument later[] = { d[0], document("c", "{\"version\":1,\"rules\":[{\"name\":\"n\",\"class\":\"one\",\"match\":{\"unit\":\"a\"}},\n"
                                                       "{\"name\":\"x\",\"class\":\"on\",\"match\":{\"unit\":\"a\"}}]}") };
        _cleanup_(policy_free_pointer) Policy *p = NULL;
        _cleanup_free_ char *line = NULL;
        Policy *none = NULL;
        DiagList list = {};

        assert_int_equal(policy_build(d, 2, &p, &list), 0);
        assert_int_equal(p->n_classes, 3);
        assert_string_equal(p->classes[0].name, "one");
        assert_int_equal(p->classes[0].priority, 2);
        assert_string_equal(p->classes[0].origin, "b");
        assert_string_equal(p->classes[1].origin, "a");
        assert_string_equal(p->classes[2].name, "three");
        assert_int_equal(p->n_rules, 3);
        assert_string_equal(p->rules[0].name, "x");
        assert_string_equal(p->rules[0].origin, "b");
        assert_null(p->rules[0].match.unit);
        assert_string_equal(p->rules[1].name, "y");
        assert_string_equal(p->rules[2].name, "z");
        assert_int_equal(p->n_patches, 2);
        assert_string_equal(p->patches[0].state, "off");

        /* The mistake of a rule that replaced another is in the later file, at the place it has there. */
        assert_int_equal(policy_build(later, 2, &none, &list), -EINVAL);
        assert_int_equal(list.n_items, 1);
        line = diag_to_string(&list.items[0]);
        assert_string_equal(line, "c:2: /rules/1/class: unknown class; did you mean \"one\"?: value \"on\"");
        diag_list_clear(&list);

        assert_int_equal(policy_build(NULL, 0, &none, &list), 0);
        assert_int_equal(none->n_classes, 0);
        policy_free(none);
}

static void assert_same_class(const ServiceClass *a, const ServiceClass *b) {
        json_auto_t *x = class_to_json(a), *y = class_to_json(b);

        assert_true(json_equal(x, y));
        assert_int_equal(a->manages_bandwidth, b->manages_bandwidth);
        assert_int_equal(a->has_latency_nice, b->has_latency_nice);
        assert_memory_equal(&a->quota, &b->quota, sizeof(a->quota));
        assert_memory_equal(&a->burst, &b->burst, sizeof(a->burst));
        assert_memory_equal(&a->floor, &b->floor, sizeof(a->floor));
        assert_memory_equal(&a->ceiling, &b->ceiling, sizeof(a->ceiling));
        assert_memory_equal(&a->targets, &b->targets, sizeof(a->targets));
        assert_int_equal(a->law, b->law);
        assert_int_equal(a->period_usec, b->period_usec);
}

/* A policy, said again in its own words, is the same policy. */
static void assert_round_trip(const Policy *p) {
        json_auto_t *o = json_pack("{s:i,s:[],s:[]}", "version", POLICY_VERSION, "classes", "rules");
        _cleanup_(policy_free_pointer) Policy *again = NULL;
        _cleanup_free_ char *text = NULL;
        DiagList list = {};

        for (size_t i = 0; i < p->n_classes; i++)
                assert_int_equal(json_array_append_new(json_object_get(o, "classes"), class_to_json(&p->classes[i])), 0);
        for (size_t i = 0; i < p->n_rules; i++)
                assert_int_equal(json_array_append_new(json_object_get(o, "rules"), rule_to_json(&p->rules[i])), 0);
        text = json_dumps(o, 0);
        if (build(text, &again, &list) < 0)
                fail_msg("%s: %s", list.items[0].pointer, list.items[0].message);
        assert_int_equal(again->n_classes, p->n_classes);
        assert_int_equal(again->n_rules, p->n_rules);
        for (size_t i = 0; i < p->n_classes; i++)
                assert_same_class(&p->classes[i], &again->classes[i]);
        for (size_t i = 0; i < p->n_rules; i++) {
                json_auto_t *x = rule_to_json(&p->rules[i]), *y = rule_to_json(&again->rules[i]);

                assert_true(json_equal(x, y));
                assert_int_equal(p->rules[i].force, again->rules[i].force);
        }
}

static void test_round_trip(void **state) {
        _cleanup_(policy_free_pointer) Policy *p = NULL;
        DiagList list = {};

        assert_int_equal(build("{\"version\":1,\"classes\":[{\"name\":\"a\",\"latency_nice\":-3,\"cpu\":{\"law\":\"captain\",\"floor\":{\"usec\":1000},"
                               "\"ceiling\":\"max\",\"burst\":{\"percent_of_quota\":0},\"targets\":{\"throttled_permyriad\":7}},\"drift\":\"hold\"},"
                               "{\"name\":\"b\",\"cpu\":{\"period_usec\":5000}},{\"name\":\"c\"},{\"name\":\"d\",\"cpu\":{\"quota\":\"max\"}},"
                               "{\"name\":\"e\",\"cpu\":{\"law\":\"burst\",\"enable_controller\":true}}],\"rules\":[{\"name\":\"r\",\"class\":\"a\","
                               "\"match\":{\"cgroup\":\"/a\\\\x2d\\u001b\\\"\"},\"force\":true}]}", &p, &list), 0);
        assert_round_trip(p);
}

/* Reads all documents of a source directory, in name order, each to free. */
static size_t read_directory(const char *name, PolicyDocument *d, size_t size) {
        const char *root = getenv("CPUCLASS_SOURCE_DIR");
        _cleanup_free_ char *path = NULL;
        struct dirent **entries = NULL;
        size_t count = 0;
        int n;

        assert_true(asprintf(&path, "%s/%s", root, name) > 0);
        n = scandir(path, &entries, NULL, alphasort);
        assert_true(n >= 0);
        for (int i = 0; i < n; i++) {
                if (endswith(entries[i]->d_name, ".json")) {
                        _cleanup_free_ char *file = NULL;

                        assert_true(count < size);
                        assert_true(asprintf(&file, "%s/%s", name, entries[i]->d_name) > 0);
                        d[count].text = read_source(file);
                        d[count].length = strlen(d[count].text);
                        d[count++].file = TAKE_PTR(file);
                }
                free(entries[i]);
        }
        free(entries);
        return count;
}

static void free_documents(PolicyDocument *d, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free((char *) d[i].file);
                free((char *) d[i].text);
        }
}

static void test_shipped(void **state) {
        static const char *const names[] = { "latency-critical", "interactive", "standard", "batch", "best-effort", "isolated" };
        PolicyDocument d[32] = {};
        size_t shipped = read_directory("policies/policies.d", d, 16), n = shipped + read_directory("policies/examples", d + shipped, 16);
        _cleanup_(policy_free_pointer) Policy *p = NULL, *all = NULL;
        DiagList list = {};

        assert_true(shipped >= 1 && n > shipped);
        if (policy_build(d, shipped, &p, &list) < 0)
                fail_msg("%s", diag_to_string(&list.items[0]));
        assert_int_equal(p->n_classes, ELEMENTSOF(names));
        assert_int_equal(p->n_rules, 0); /* a fresh install touches nothing */
        assert_int_equal(p->n_patches, 0);
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const ServiceClass *c = policy_find_class(p, names[i]);

                assert_non_null(c);
                assert_true(strlen(c->description) > 10);
                assert_false(c->enable_controller);
        }
        assert_true(policy_find_class(p, "latency-critical")->priority > policy_find_class(p, "interactive")->priority);
        assert_true(policy_find_class(p, "interactive")->priority > policy_find_class(p, "standard")->priority);
        assert_true(policy_find_class(p, "standard")->priority > policy_find_class(p, "batch")->priority);
        assert_true(policy_find_class(p, "batch")->priority > policy_find_class(p, "best-effort")->priority);
        assert_int_equal(policy_find_class(p, "isolated")->core_scheduling, CORE_SCHEDULING_GROUP);
        assert_round_trip(p);
        /* Every example stands on the shipped classes alone. */
        for (size_t i = shipped; i < n; i++) {
                PolicyDocument pair[17];
                Policy *one = NULL;

                memcpy(pair, d, shipped * sizeof(*d));
                pair[shipped] = d[i];
                if (policy_build(pair, shipped + 1, &one, &list) < 0)
                        fail_msg("%s", diag_to_string(&list.items[0]));
                assert_true(one->n_rules > 0);
                policy_free(one);
        }
        assert_int_equal(policy_build(d, n, &all, &list), 0);
        assert_round_trip(all);
        free_documents(d, n);
}

/* The page names each field of each table with its bounds, and its example is a policy. */
static void test_readme(void **state) {
        _cleanup_free_ char *page = read_source("policies/README.md"), *example = NULL;
        const char *start = strstr(page, "```json\n"), *end;
        _cleanup_(policy_free_pointer) Policy *p = NULL;
        DiagList list = {};

        for (size_t i = 0; i < n_schema_tables; i++)
                for (const Field *f = schema_tables[i].fields; f->name; f++) {
                        _cleanup_free_ char *row = NULL;
                        char limit[256];

                        if (startswith(schema_tables[i].name, "overrides"))
                                assert_true(asprintf(&row, "`%s`", f->name) > 0);
                        else if (f->type == FIELD_WORD || f->type == FIELD_CUSTOM || f->check)
                                assert_true(asprintf(&row, "| `%s` | ", f->name) > 0);
                        else
                                assert_true(asprintf(&row, "| `%s` | %s%s |", f->name, field_limit(f, limit, sizeof(limit)),
                                                     f->flags & FIELD_REQUIRED ? ", required" : "") > 0);
                        if (!strstr(page, row))
                                fail_msg("%s is not in the page: %s", schema_tables[i].name, row);
                        for (const char *const *w = f->words; w && *w; w++) {
                                _cleanup_free_ char *word = NULL;

                                assert_true(asprintf(&word, "`\"%s\"`", *w) > 0);
                                if (!strstr(page, word))
                                        fail_msg("%s is not in the page", word);
                        }
                        assert_true(f->help && f->help[0]);
                }
        assert_non_null(start);
        start += strlen("```json\n");
        end = strstr(start, "```");
        example = strndup(start, end - start);
        if (build(example, &p, &list) < 0)
                fail_msg("%s", diag_to_string(&list.items[0]));
        assert_int_equal(p->n_classes, 1);
        assert_int_equal(p->n_rules, 2);
}

static void test_names(void **state) {
        char name[POLICY_NAME_MAX + 2];

        memset(name, 'a', sizeof(name));
        name[POLICY_NAME_MAX] = 0;
        assert_true(policy_name_is_valid(name));
        name[POLICY_NAME_MAX] = 'a';
        name[POLICY_NAME_MAX + 1] = 0;
        assert_false(policy_name_is_valid(name));
        assert_true(policy_name_is_valid("0a.b_c-d"));
        assert_false(policy_name_is_valid("") || policy_name_is_valid("-a") || policy_name_is_valid(".") || policy_name_is_valid("A") ||
                     policy_name_is_valid("a b") || policy_name_is_valid("a/b") || policy_name_is_valid("\xc3\xa4"));
}

static void test_words(void **state) {
        LawKind law = LAW_STATIC;

        for (LawKind l = 0; l < _LAW_KIND_MAX; l++) {
                assert_int_equal(law_kind_from_string(law_kind_to_string(l), &law), 0);
                assert_int_equal(law, l);
        }
        assert_int_equal(law_kind_from_string("magic", &law), -EINVAL);
        assert_null(law_kind_to_string(_LAW_KIND_MAX));
        assert_null(drift_mode_to_string(99));
        assert_null(core_scheduling_to_string(99));
        assert_string_equal(drift_mode_to_string(DRIFT_ADOPT), "adopt");
        assert_string_equal(drift_mode_to_string(DRIFT_ENFORCE), "enforce");
        assert_string_equal(drift_mode_to_string(DRIFT_HOLD), "hold");
        assert_string_equal(core_scheduling_to_string(CORE_SCHEDULING_CLASS), "class");
        assert_string_equal(law_kind_to_string(LAW_CAPTAIN), "captain");
}

static void test_overrides(void **state) {
        json_auto_t *o = json_loads("{\"latency_nice\":-5,\"cpu\":{\"quota\":{\"usec\":30000},\"period_usec\":50000,\"burst\":\"full\","
                                    "\"floor\":{\"usec\":20000},\"ceiling\":\"max\"}}", 0, NULL), *again = NULL;
        ServiceClass c = { .name = (char *) "c", .quota = { AMOUNT_KEEP, 0 }, .law = LAW_BURST, .priority = 7 }, v;
        Overrides w = {}, none = {};
        DiagList list = {};

        assert_true(overrides_is_empty(&w));
        assert_int_equal(overrides_from_json(o, "/overrides", &w, &list), 0);
        assert_false(overrides_is_empty(&w));
        again = overrides_to_json(&w);
        assert_true(json_equal(o, again));
        class_apply_overrides(&c, &w, &v);
        assert_true(v.has_latency_nice && v.manages_bandwidth);
        assert_int_equal(v.latency_nice, -5);
        assert_int_equal(v.quota.value, 30000);
        assert_int_equal(v.period_usec, 50000);
        assert_int_equal(v.ceiling.kind, AMOUNT_MAX);
        assert_int_equal(v.priority, 7);
        assert_int_equal(v.law, LAW_BURST);
        assert_ptr_equal(v.name, c.name);
        w.burst = (Amount) { AMOUNT_USEC, 5 };
        class_apply_overrides(&c, &w, &v);
        assert_int_equal(v.law, LAW_STATIC);
        class_apply_overrides(&c, &none, &v);
        assert_false(v.has_latency_nice || v.manages_bandwidth);
        assert_int_equal(v.quota.kind, AMOUNT_KEEP);
        json_decref(again);
        again = overrides_to_json(&none);
        assert_int_equal(json_object_size(again), 0);
}

static void test_override_mistakes(void **state) {
        static const struct {
                const char *text, *line;
        } cases[] = {
                { "[]", "/o: wrong type: value [], allowed: an object" },
                { "{\"latency_nice\":-21}", "/o/latency_nice: out of range: value -21, allowed: integer, -20 to 19" },
                { "{\"priority\":1}", "/o/priority: unknown key" },
                { "{\"cpu\":{\"law\":\"captain\"}}", "/o/cpu/law: unknown key" },
                { "{\"cpu\":{\"quota\":{\"usec\":2000},\"burst\":{\"usec\":3000}}}",
                  "/o/cpu/burst: above the quota (the kernel refuses it): value {\"usec\":3000}, allowed: at most the {\"usec\":2000}" },
                { "{\"cpu\":{\"quota\":\"max\",\"burst\":\"full\"}}", NULL }, /* the class may have a ceiling */
                { "{\"cpu\":{\"floor\":{\"percent_of_base\":150}}}", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_auto_t *o = json_loads(cases[i].text, 0, NULL);
                Overrides v = { .latency_nice = 77 };
                _cleanup_free_ char *line = NULL;
                DiagList list = {};
                int r = overrides_from_json(o, "/o", &v, &list);

                if (!cases[i].line) {
                        assert_int_equal(r, 0);
                        continue;
                }
                assert_int_equal(r, -EINVAL);
                assert_int_equal(v.latency_nice, 77);
                assert_int_equal(list.n_items, 1);
                line = diag_to_string(&list.items[0]);
                assert_string_equal(line, cases[i].line);
                diag_list_clear(&list);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_class),
                cmocka_unit_test(test_rule),
                cmocka_unit_test(test_mistakes),
                cmocka_unit_test(test_consistent),
                cmocka_unit_test(test_all_are_reported),
                cmocka_unit_test(test_merge),
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_shipped),
                cmocka_unit_test(test_readme),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_overrides),
                cmocka_unit_test(test_override_mistakes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
