/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Groups: the list, one of them, and everything that explains one. */

#include <fnmatch.h>

#include "api/internal.h"

#define SIBLINGS_MAX 100
#define DECISIONS_SHOWN 20

typedef struct Filter {
        const char *class_name, *state, *unit, *path;
        bool has_drift, drift;
} Filter;

static bool fits(const GroupView *v, const Filter *f) {
        if (f->class_name && !(v->service_class && streq(v->service_class->name, f->class_name)))
                return false;
        if (f->has_drift && v->drift != f->drift)
                return false;
        if (f->unit && !(v->unit && fnmatch(f->unit, v->unit, 0) == 0))
                return false;
        if (f->path && !streq(v->cgroup, f->path))
                return false;
        return !f->state || streq(group_state(v, NULL), f->state);
}

/* The list is written as text group by group: a tree of 500 whole views would be megabytes. */
int route_groups(Request *r) {
        Manager *m = r->server->manager;
        Filter f = {
                .class_name = request_param(r, "class"),
                .state = request_param(r, "state"),
                .unit = request_param(r, "unit"),
                .path = request_param(r, "path"),
                .has_drift = request_param(r, "drift") != NULL,
        };
        _cleanup_free_ char *after = NULL, *text = NULL, *next = NULL;
        size_t size = 0, n = 0;
        uint64_t limit = 100;
        bool all = false, first = true;
        const char *last = NULL;
        const Group *g;
        FILE *out;
        int k = 0;

        if (request_param_bool(r, "drift", &f.drift) != 0 || request_param_bool(r, "all", &all) != 0 || request_param_u64(r, "limit", 1, 500, &limit) != 0)
                return 0;
        if (f.state && !group_state_is_valid(f.state))
                return reply_problem(r, 400, "invalid-parameter", NULL,
                                     "query parameter \"state\" must be unmanaged, failed, pending, held, refused, paused, dry_run, degraded or applied");
        if (request_param(r, "after")) {
                k = token_decode(request_param(r, "after"), &after);
                if (k == -EINVAL)
                        return reply_problem(r, 400, "invalid-parameter", NULL, "query parameter \"after\" must be a \"next\" of an earlier answer");
                if (k < 0)
                        return k;
        }
        out = open_memstream(&text, &size);
        if (!out)
                return -ENOMEM;
        (void) fputs("{\"groups\":[", out);
        if (f.path)
                g = manager_find_group_by_cgroup(m, f.path);
        else
                g = manager_next_group_after_path(m, after, !all);
        for (; g; g = f.path ? NULL : manager_next_group(m, g, !all)) {
                GroupView v = {};
                json_t *o;

                group_view(m, g, &v);
                if (!fits(&v, &f))
                        continue;
                if (n >= limit) {
                        next = token_encode(last);
                        if (!next)
                                k = -ENOMEM;
                        break;
                }
                o = json_group_view(&v, false);
                if (!o || (!first && fputc(',', out) == EOF) || json_dumpf(o, out, JSON_COMPACT) < 0)
                        k = -ENOMEM;
                json_decref(o);
                if (k < 0)
                        break;
                first = false;
                last = v.cgroup;
                n++;
        }
        if (next)
                (void) fprintf(out, "],\"next\":\"%s\"}\n", next);
        else
                (void) fputs("],\"next\":null}\n", out);
        if (fclose(out) != 0 || k < 0)
                return -ENOMEM;
        return reply_text(r, 200, "application/json", TAKE_PTR(text), size);
}

static int reply_group(Request *r, const Group *g, const char *name) {
        if (!g) {
                _cleanup_free_ char *clean = utf8_sanitize(name);

                return reply_problem(r, 404, "not-found", NULL, "there is no group \"%s\" now", clean ? clean : "");
        }
        return reply_json(r, 200, json_group(r->server, g, true));
}

int route_group_unit(Request *r) {
        _cleanup_(diag_list_clear) DiagList list = {};

        if (!target_is_valid(TARGET_UNIT, r->captures[0], "", &list))
                return reply_problem(r, 400, "invalid", &list, "not a full unit name, such as nginx.service");
        return reply_group(r, manager_find_group_by_unit(r->server->manager, r->captures[0]), r->captures[0]);
}

int route_group_cgroup(Request *r) {
        const char *path = request_param(r, "path");
        _cleanup_(diag_list_clear) DiagList list = {};

        if (!path)
                return reply_problem(r, 400, "invalid-parameter", NULL, "query parameter \"path\" is missing");
        if (!target_is_valid(TARGET_CGROUP, path, "", &list))
                return reply_problem(r, 400, "invalid", &list, "not a cgroup path, such as /system.slice/nginx.service");
        return reply_group(r, manager_find_group_by_cgroup(r->server->manager, path), path);
}

/* ---- explain ---- */

/* The nearest group that the manager knows at or above a path. */
static const Group *nearest_group(Manager *m, const char *path) {
        _cleanup_free_ char *p = strdup(path);
        const Group *g = NULL;

        while (p && *p) {
                char *slash;

                g = manager_find_group_by_cgroup(m, p);
                if (g)
                        break;
                slash = strrchr(p, '/');
                if (!slash || slash == p)
                        break;
                *slash = 0;
        }
        return g;
}

static json_t *precedence_json(const ApiServer *s, const GroupView *v) {
        static const ClassSource order[] = { CLASS_SOURCE_API, CLASS_SOURCE_UNIT, CLASS_SOURCE_LABEL, CLASS_SOURCE_RULE, CLASS_SOURCE_INHERITED };
        const Policy *p = manager_policy(s->manager);
        bool chosen = false;
        json_t *a = json_array();
        int e = 0;

        for (size_t i = 0; i < ELEMENTSOF(order); i++) {
                _cleanup_free_ char *detail = NULL;
                const char *verdict = chosen ? "not asked" : "silent", *name = NULL;
                bool here = !chosen && order[i] == v->source && v->source != CLASS_SOURCE_NONE;

                if (here) {
                        chosen = true;
                        verdict = "chosen";
                        name = v->service_class ? v->service_class->name : v->unknown_class;
                        switch (order[i]) {
                        case CLASS_SOURCE_API:
                                if (v->assignment && asprintf(&detail, "assignment of owner %s by %s", v->assignment->owner ? v->assignment->owner : "?",
                                                              v->assignment->by ? v->assignment->by : "?") < 0)
                                        detail = NULL;
                                break;
                        case CLASS_SOURCE_RULE: {
                                size_t at = 0;

                                while (v->rule && p && at < p->n_rules && !streq(p->rules[at].name, v->rule->name))
                                        at++;
                                if (v->rule && asprintf(&detail, "rule %s, number %zu of %zu, of %s", v->rule->name, at + 1, p ? p->n_rules : 0,
                                                        v->rule->origin ? v->rule->origin : "?") < 0)
                                        detail = NULL;
                                break;
                        }
                        case CLASS_SOURCE_UNIT:
                                detail = strdup("[X-CpuClass] Class= in the unit's own files");
                                break;
                        case CLASS_SOURCE_LABEL:
                                detail = strdup("extended attribute user.cpuclass of the cgroup directory");
                                break;
                        case CLASS_SOURCE_INHERITED:
                                if (v->inherited_from && asprintf(&detail, "from %s", v->inherited_from) < 0)
                                        detail = NULL;
                                break;
                        default:
                                break;
                        }
                        if (!v->service_class && v->unknown_class) {
                                free(detail);
                                detail = strdup("names a class that the policy lacks: no lower source is asked");
                        }
                }
                e |= json_array_append_new(a, json_pack("{s:o, s:s, s:o, s:o}", "source", json_text(class_source_to_string(order[i])), "verdict", verdict,
                                                        "class", json_text(name), "detail", json_text(detail)));
        }
        return json_whole(a, e);
}

static json_t *step_json(ApiServer *s, const char *path) {
        const Group *g = manager_find_group_by_cgroup(s->manager, path);
        GroupView v = { .cgroup = path };
        json_t *o = json_object();
        int e = 0;

        if (g)
                group_view(s->manager, g, &v);
        e |= set_path(o, "cgroup", path);
        e |= json_object_set_new(o, "unit", json_text(v.unit));
        e |= json_object_set_new(o, "class", json_text(v.service_class ? v.service_class->name : NULL));
        e |= json_object_set_new(o, "source", json_text(class_source_to_string(v.source)));
        e |= json_object_set_new(o, "bandwidth", v.bandwidth ? json_bandwidth(v.bandwidth->has_observed, &v.bandwidth->observed) : json_null());
        e |= json_object_set_new(o, "latency_nice", v.latency && v.latency->common.status == KNOB_APPLIED ? json_integer(v.latency->latency_nice) : json_null());
        e |= json_object_set_new(o, "drift", json_boolean(v.drift));
        return json_whole(o, e);
}

static json_t *effective_json(ApiServer *s, const Group *g, const GroupView *v) {
        _cleanup_free_ char *limited_by = NULL, *path = strdup(v->cgroup);
        Bandwidth b = {};
        json_t *steps = json_array(), *o = json_object();
        bool has;
        int e = 0;

        if (!path)
                return json_whole(o, 1);
        has = group_effective_bandwidth(s->manager, g, &b, &limited_by) >= 0;
        for (char *p = path; *p; p++)
                if (*p == '/' && p != path) {
                        *p = 0;
                        e |= json_array_append_new(steps, step_json(s, path));
                        *p = '/';
                }
        e |= json_array_append_new(steps, step_json(s, path));
        e |= json_object_set_new(o, "bandwidth", json_bandwidth(has, &b));
        e |= set_path(o, "limited_by", limited_by);
        e |= json_object_set_new(o, "path", steps);
        return json_whole(o, e);
}

static json_t *siblings_json(ApiServer *s, const Group *g) {
        char **names = NULL;
        json_t *a = json_array();
        int e = 0;

        if (group_affected_siblings(s->manager, g, SIBLINGS_MAX, &names) < 0)
                return a;
        for (char **n = names; n && *n; n++) {
                e |= json_array_append_new(a, json_text(*n));
                free(*n);
        }
        free(names);
        return json_whole(a, e);
}

static int reply_explain(Request *r, const Group *g, json_t *asked, const char *pid_cgroup) {
        const Decision *decisions[DECISIONS_SHOWN];
        json_t *o = json_object(), *list = json_array();
        GroupView v = {};
        size_t n;
        int e = 0;

        group_view(r->server->manager, g, &v);
        n = decisions_latest(r->server, v.cgroup, v.unit, decisions, DECISIONS_SHOWN);
        for (size_t i = 0; i < n; i++)
                e |= json_array_append_new(list, json_decision(decisions[i]));
        e |= json_object_set_new(o, "asked", asked);
        if (pid_cgroup)
                e |= set_path(o, "pid_cgroup", pid_cgroup);
        e |= json_object_set_new(o, "group", json_group_view(&v, true));
        e |= json_object_set_new(o, "precedence", precedence_json(r->server, &v));
        e |= json_object_set_new(o, "effective", effective_json(r->server, g, &v));
        e |= json_object_set_new(o, "affected_siblings", siblings_json(r->server, g));
        e |= json_object_set_new(o, "decisions", list);
        return reply_json(r, 200, json_whole(o, e));
}

/* What is not here may still have an assignment that waits for it. */
static int reply_not_here(Request *r, TargetKind kind, const char *name) {
        const Assignment *a = assignments_get(manager_assignments(r->server->manager), kind, name);
        _cleanup_free_ char *clean = utf8_sanitize(name);
        const char *reason = a ? assignment_pending_reason(r->server, a) : NULL;

        return reply_problem_with(r, 404, "not-found", NULL, a ? json_pack("{s:o}", "assignment", json_assignment(a, reason)) : NULL, "there is no group \"%s\" now%s",
                                  clean ? clean : "", a ? "; its assignment waits for it" : "");
}

int route_explain(Request *r) {
        const char *unit = request_param(r, "unit"), *path = request_param(r, "path");
        Manager *m = r->server->manager;
        _cleanup_(diag_list_clear) DiagList list = {};
        _cleanup_free_ char *cgroup = NULL;
        const Group *g;
        uint64_t pid = 0;
        int k;

        if (r->n_params != 1)
                return reply_problem(r, 400, "invalid-parameter", NULL, "exactly one of the query parameters \"unit\", \"path\" and \"pid\" is needed");
        if (unit) {
                if (!target_is_valid(TARGET_UNIT, unit, "", &list))
                        return reply_problem(r, 400, "invalid", &list, "not a full unit name, such as nginx.service");
                g = manager_find_group_by_unit(m, unit);
                return g ? reply_explain(r, g, json_pack("{s:o}", "unit", json_text(unit)), NULL) : reply_not_here(r, TARGET_UNIT, unit);
        }
        if (path) {
                if (!target_is_valid(TARGET_CGROUP, path, "", &list))
                        return reply_problem(r, 400, "invalid", &list, "not a cgroup path, such as /system.slice/nginx.service");
                g = manager_find_group_by_cgroup(m, path);
                return g ? reply_explain(r, g, json_pack("{s:o}", "path", json_text(path)), NULL) : reply_not_here(r, TARGET_CGROUP, path);
        }
        if (request_param_u64(r, "pid", 1, INT32_MAX, &pid) != 0)
                return 0;
        k = cgroup_of_pid((pid_t) pid, &cgroup);
        if (k == -ESRCH || k == -ENOENT)
                return reply_problem(r, 404, "not-found", NULL, "there is no process %llu", (unsigned long long) pid);
        if (k < 0)
                return reply_error(r, k, NULL);
        g = nearest_group(m, cgroup);
        if (!g)
                return reply_not_here(r, TARGET_CGROUP, cgroup);
        return reply_explain(r, g, json_pack("{s:o}", "pid", json_u64(pid)), cgroup);
}
