/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of any bytes as a pattern, a cgroup path, and the values of a rule and of a group. Nothing here has an error to
 * return: it must answer, in bounded time, and agree with itself. */

#include "policies/match.h"
#include "tests/fuzz/fuzz.h"

#define LINES_MAX 8

/* A matcher that is too simple to be wrong, for patterns without brackets and short enough for its backtracking. */
static bool simple(const char *p, const char *s, bool levels) {
        if (!*p)
                return !*s;
        if (*p == '*') {
                size_t stars = strspn(p, "*");

                if (simple(p + stars, s, levels))
                        return true;
                return *s && (!levels || stars > 1 || *s != '/') && simple(p, s + 1, levels);
        }
        if (levels && startswith(p, "/**/") && simple(p + 3, s, levels))
                return true;
        if (*p == '?')
                return *s && !(levels && *s == '/') && simple(p + 1, s + 1, levels);
        return *p == *s && simple(p + 1, s + 1, levels);
}

static void check_glob(const char *pattern, const char *name) {
        bool path = cgroup_glob_matches(pattern, name), unit = unit_glob_matches(pattern, name);

        /* Levels only take away, but for the level that may be none, and for a set with a slash, which is none in a path. */
        must(!path || unit || strstr(pattern, "/**/") || strchr(pattern, '['));
        if (!strchr(pattern, '[') && strlen(pattern) <= 12 && strlen(name) <= 24) {
                must(path == simple(pattern, name, true));
                must(unit == simple(pattern, name, false));
        }
        must(unit_glob_matches("*", name) && cgroup_glob_matches("**", name));
        if (!strpbrk(name, "*?[") && strlen(name) <= 4096)
                must(unit_glob_matches(name, name) && cgroup_glob_matches(name, name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = malloc(size + 1), *lines[LINES_MAX] = {}, *p = text;
        const char *names[2] = {};
        PodFacts pod;

        must(text);
        memcpy(text, data, size);
        text[size] = 0;
        for (size_t i = 0; i < LINES_MAX && p; i++) {
                lines[i] = strsep(&p, "\n");
        }
        if (lines[0] && lines[1])
                check_glob(lines[0], lines[1]);
        if (lines[1]) {
                GroupFacts facts = { .cgroup = lines[1], .unit = lines[2], .slice = lines[3], .user = lines[4], .unit_class = lines[6],
                                     .has_uid = size % 2, .uid = (uint32_t) size, .unit_names = names };
                ServiceClass class_ = { .name = (char *) "c" };
                Rule rule = { .name = (char *) "r", .class_name = (char *) "c", .force = size % 3 == 0,
                              .match = { .cgroup = lines[0], .unit = size % 5 ? NULL : lines[5], .user = size % 7 ? NULL : lines[5],
                                         .slice = size % 11 ? NULL : lines[5], .pod_uid = size % 13 ? NULL : lines[5] } };
                Policy policy = { &class_, 1, &rule, 1, NULL, 0 };
                Classification c;

                names[0] = lines[5];
                classify_group(&policy, &facts, lines[7], size % 2, &c);
                must(!c.service_class || !c.unknown_class);
                must(!c.service_class || !c.refused_protected);
                must((c.source == CLASS_SOURCE_RULE) == (c.rule != NULL));
                must(c.rule == NULL || rule_matches(&rule, &facts));
                must(c.source != CLASS_SOURCE_UNIT || !group_is_protected(&facts));
                if (pod_facts_from_path(lines[1], &pod))
                        must(!path_is_kubernetes_node(lines[1]) && (pod.pod_uid[0] || pod.container_id[0]));
                must(strlen(pod.pod_uid) < sizeof(pod.pod_uid) && strlen(pod.container_id) < sizeof(pod.container_id));
                must(!pod.pod_uid[0] || pod.qos[0]);
        }
        free(text);
        return 0;
}
