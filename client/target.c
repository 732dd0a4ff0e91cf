/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One grammar for all verbs: a leading slash is a cgroup path, digits are a pid, "pod:" a pod, all else a unit. */

#include <ctype.h>

#include "client/format.h"
#include "client/groups.h"
#include "client/target.h"
#include "client/text.h"
#include "policies/match.h"

/* systemd.unit(5) */
static const char *const unit_suffixes[] = {
        ".service", ".slice", ".scope", ".socket", ".mount", ".swap", ".timer", ".target", ".path", ".device", ".automount",
};
#define UNIT_NAME_MAX 255

void argument_clear(Argument *a) {
        free(a->text);
        *a = (Argument) {};
}

static bool has_unit_suffix(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(unit_suffixes); i++)
                if (endswith(name, unit_suffixes[i]) && strlen(name) > strlen(unit_suffixes[i]))
                        return true;
        return false;
}

/* Escapes what no unit name has; the set is in systemd.unit(5): letters, digits, ":-_.\", and "@" of templates. */
static char *unit_name(const char *text) {
        char *out = malloc(strlen(text) * 4 + sizeof(".service")), *o = out;

        if (!out)
                return NULL;
        for (const unsigned char *p = (const unsigned char *) text; *p; p++)
                if (*p == '/')
                        *o++ = '-';
                else if (*p < 0x80 && (isalnum(*p) || strchr(":-_.\\@", *p)))
                        *o++ = (char) *p;
                else
                        o += sprintf(o, "\\x%02x", *p);
        *o = 0;
        if (!has_unit_suffix(out))
                strcpy(o, ".service");
        return out;
}

int argument_parse(const char *text, Argument *ret, const char **ret_why) {
        ArgumentKind kind = ARGUMENT_UNIT;
        char *value;

        if (!*text) {
                *ret_why = "is empty";
                return -EINVAL;
        }
        if (*text == '/') {
                size_t n = strlen(text);

                if (strchr(text, '\n')) {
                        *ret_why = "holds a newline, which no cgroup has";
                        return -EINVAL;
                }
                kind = ARGUMENT_CGROUP;
                /* a slash at the end, as a shell's completion leaves it, means nothing */
                while (n > 1 && text[n - 1] == '/')
                        n--;
                value = strndup(text, n);
        } else if (startswith(text, "pod:")) {
                kind = ARGUMENT_POD;
                value = strdup(text + strlen("pod:"));
                for (char *p = value; p && *p; p++) {
                        *p = *p == '_' ? '-' : (char) tolower((unsigned char) *p);
                        if (!isalnum((unsigned char) *p) && *p != '-') {
                                free(value);
                                *ret_why = "is no pod UID: letters, digits and dashes";
                                return -EINVAL;
                        }
                }
                if (value && !*value) {
                        free(value);
                        *ret_why = "names no pod UID";
                        return -EINVAL;
                }
        } else if (text[strspn(text, "0123456789")] == 0) {
                if (strlen(text) > 10 || strtoull(text, NULL, 10) == 0 || strtoull(text, NULL, 10) > INT32_MAX) {
                        *ret_why = "is no process id";
                        return -EINVAL;
                }
                kind = ARGUMENT_PID;
                value = strdup(text);
        } else {
                value = unit_name(text);
                if (value && strlen(value) > UNIT_NAME_MAX) {
                        free(value);
                        *ret_why = "is longer than a unit name may be (255)";
                        return -EINVAL;
                }
        }
        if (!value)
                return -ENOMEM;
        *ret = (Argument) { kind, value };
        return 0;
}

ExitCode argument_from_command_line(const char *text, Argument *ret) {
        const char *why = "";
        int r = argument_parse(text, ret, &why);

        if (r == -ENOMEM) {
                complain("out of memory");
                return CODE_FAILURE;
        }
        if (r < 0) {
                complain("\"%s\" %s", text, why);
                hint("A group is a unit (nginx, web.slice), a cgroup path (/system.slice/...), a pid, or pod:UID.");
                return CODE_INVALID;
        }
        return CODE_OK;
}

char *argument_assignment_url(const Argument *a, ...) {
        _cleanup_free_ char *encoded = url_encode(a->text);
        char *url = NULL;
        va_list arguments;

        if (!encoded || a->kind == ARGUMENT_PID ||
            asprintf(&url, "/v1/assignments/%s%s", a->kind == ARGUMENT_UNIT ? "unit/" : a->kind == ARGUMENT_POD ? "pod/" : "cgroup?path=", encoded) < 0)
                return NULL;
        va_start(arguments, a);
        for (const char *key; url && (key = va_arg(arguments, const char *));) {
                const char *value = va_arg(arguments, const char *);
                _cleanup_free_ char *before = NULL, *value_encoded = NULL;

                if (!value)
                        continue;
                before = TAKE_PTR(url);
                value_encoded = url_encode(value);
                if (!value_encoded || asprintf(&url, "%s%c%s=%s", before, strchr(before, '?') ? '&' : '?', key, value_encoded) < 0)
                        url = NULL;
        }
        va_end(arguments);
        return url;
}

const char *argument_group(const Argument *a) {
        return a->kind == ARGUMENT_UNIT || a->kind == ARGUMENT_CGROUP ? a->text : NULL;
}

/* A group's path as a query takes it: where the path is no UTF-8, only the encoded form is exact. */
static char *group_path_encoded(const json_t *group) {
        const char *escaped = json_text(group, "cgroup_escaped"), *path = json_text(group, "cgroup");

        return escaped ? strdup(escaped) : path ? url_encode(path) : NULL;
}

/* The pod's own group: the shortest of the paths that carry its UID, percent-encoded. */
static ExitCode find_pod(const Client *c, const char *uid, char **ret_path) {
        json_t *all = NULL, *group, *found = NULL;
        size_t i, least = SIZE_MAX;
        ExitCode code = groups_request(c, (GroupsFilter) { .all = true }, false, &all);

        if (code != CODE_OK)
                return code;
        json_array_foreach(json_object_get(all, "groups"), i, group) {
                const char *path = json_text(group, "cgroup");
                PodFacts facts;

                if (path && strlen(path) < least && pod_facts_from_path(path, &facts) && strcasecmp(facts.pod_uid, uid) == 0) {
                        found = group;
                        least = strlen(path);
                }
        }
        if (found)
                *ret_path = group_path_encoded(found);
        else {
                complain("no group of pod %s on this host", uid);
                code = CODE_NOT_FOUND;
        }
        json_decref(all);
        return code;
}

void argument_hint(const Client *c, const Argument *a) {
        json_t *all = NULL, *group;
        const char **names = NULL, *nearest;
        size_t n = 0, i;

        if ((a->kind != ARGUMENT_UNIT && a->kind != ARGUMENT_CGROUP) || groups_request(c, (GroupsFilter) { .all = true }, true, &all) != CODE_OK)
                return;
        names = calloc(json_array_size(json_object_get(all, "groups")) + 1, sizeof(*names));
        if (names) {
                json_array_foreach(json_object_get(all, "groups"), i, group)
                        names[n++] = json_text(group, a->kind == ARGUMENT_UNIT ? "unit" : "cgroup");
                nearest = text_suggest(a->text, names, n);
                if (nearest)
                        hint("Did you mean \"%s\"?", nearest);
        }
        free(names);
        json_decref(all);
}

ExitCode argument_request(const Client *c, const Argument *a, bool explain, Answer *ret) {
        _cleanup_free_ char *url = NULL, *path = NULL, *encoded = NULL;
        ExitCode code = CODE_OK;
        int r;

        if (a->kind == ARGUMENT_POD)
                code = find_pod(c, a->text, &path);
        else if (a->kind == ARGUMENT_PID && !explain) {
                /* only explain knows pids: it says where the process is */
                _cleanup_answer_ Answer where = {};

                url = url_with_query("/v1/explain", "pid", a->text, NULL);
                code = url ? client_request(c, "GET", url, NULL, TIMEOUT_USUAL, &where) : CODE_FAILURE;
                if (code == CODE_OK)
                        path = group_path_encoded(json_object_get(where.json, "group"));
        } else if (a->kind == ARGUMENT_CGROUP)
                path = url_encode(a->text);
        if (code != CODE_OK)
                return code;

        free(url);
        url = NULL;
        encoded = url_encode(a->text);
        if (!encoded)
                r = -1;
        else if (path)
                r = asprintf(&url, explain ? "/v1/explain?path=%s" : "/v1/groups/cgroup?path=%s", path);
        else if (explain)
                r = asprintf(&url, a->kind == ARGUMENT_PID ? "/v1/explain?pid=%s" : "/v1/explain?unit=%s", encoded);
        else
                r = asprintf(&url, "/v1/groups/unit/%s", encoded);
        if (r < 0) {
                url = NULL;
                complain("out of memory");
                return CODE_FAILURE;
        }
        code = client_request(c, "GET", url, NULL, TIMEOUT_USUAL, ret);
        if (code == CODE_NOT_FOUND)
                argument_hint(c, a);
        return code;
}
