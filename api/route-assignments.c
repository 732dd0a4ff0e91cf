/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Assignments: one target at a time, or all of an owner at once. A change is durable when it is answered; who asks to wait is answered when the kernel
 * has it. */

#include "api/internal.h"

#define WAIT_DEFAULT_USEC (10 * USEC_PER_SEC)
#define WAIT_MAX_USEC (60 * USEC_PER_SEC)

static void assignment_etag(const Assignment *a, char etag[64]) {
        /* the time tells versions apart when a lost store has begun to count again */
        (void) snprintf(etag, 64, "\"%llu-%llx\"", (unsigned long long) a->revision, (unsigned long long) a->created_realtime_usec);
}

static void store_etag(ApiServer *s, char etag[64]) {
        (void) snprintf(etag, 64, "\"all-%llu\"", (unsigned long long) assignments_revision(manager_assignments(s->manager)));
}

/* The target that the path or the query names. 0, or 1 with a problem. */
static int request_target(Request *r, TargetKind *ret_kind, const char **ret_target) {
        _cleanup_(diag_list_clear) DiagList list = {};
        const char *target = r->captures[0];
        TargetKind kind;

        if (startswith(r->route->path, "/v1/assignments/unit/"))
                kind = TARGET_UNIT;
        else if (startswith(r->route->path, "/v1/assignments/pod/"))
                kind = TARGET_POD;
        else {
                kind = TARGET_CGROUP;
                target = request_param(r, "path");
                if (!target) {
                        (void) reply_problem(r, 400, "invalid-parameter", NULL, "query parameter \"path\" is missing");
                        return 1;
                }
        }
        if (!target_is_valid(kind, target, "", &list)) {
                (void) reply_problem(r, 400, "invalid", &list, kind == TARGET_UNIT ? "not a full unit name, such as nginx.service" :
                                                               kind == TARGET_POD  ? "not a pod UID" :
                                                                                     "not a cgroup path, such as /system.slice/nginx.service");
                return 1;
        }
        *ret_kind = kind;
        *ret_target = target;
        return 0;
}

/* Finds an assignment, also when it is kept under another name of the unit. */
static const Assignment *find_assignment(ApiServer *s, TargetKind kind, const char *target) {
        const Assignments *all = manager_assignments(s->manager);
        const Assignment *a = assignments_get(all, kind, target);
        const Group *g;
        GroupView v = {};

        if (a || kind != TARGET_UNIT)
                return a;
        g = manager_find_group_by_unit(s->manager, target);
        if (!g)
                return NULL;
        group_view(s->manager, g, &v);
        return v.unit ? assignments_get(all, kind, v.unit) : NULL;
}

static json_t *view_of(ApiServer *s, const Assignment *a) {
        return json_assignment(a, assignment_pending_reason(s, a));
}

static int reply_assignment(Request *r, unsigned status, const Assignment *a) {
        char etag[64];
        int k;

        assignment_etag(a, etag);
        k = reply_json(r, status, view_of(r->server, a));
        if (k >= 0)
                reply_etag(r, etag);
        return k;
}

static int reply_assignments(Request *r, const char *owner) {
        const Assignments *all = manager_assignments(r->server->manager);
        json_t *a;
        char etag[64];
        int e = 0, k;

        store_etag(r->server, etag);
        if (check_preconditions(r, etag) != 0)
                return 0;
        a = json_array();
        for (size_t i = 0; i < assignments_count(all); i++) {
                const Assignment *one = assignments_at(all, i);

                if (!owner || streq(one->owner, owner))
                        e |= json_array_append_new(a, view_of(r->server, one));
        }
        k = reply_json(r, 200, json_pack("{s:o}", "assignments", json_whole(a, e)));
        if (k >= 0)
                reply_etag(r, etag);
        return k;
}

int route_assignments(Request *r) {
        return reply_assignments(r, request_param(r, "owner"));
}

int route_owner_get(Request *r) {
        return reply_assignments(r, r->captures[0]);
}

int route_assignment_get(Request *r) {
        const Assignment *a;
        const char *target;
        TargetKind kind;
        char etag[64];

        if (request_target(r, &kind, &target) != 0)
                return 0;
        a = find_assignment(r->server, kind, target);
        if (a)
                assignment_etag(a, etag);
        if (check_preconditions(r, a ? etag : NULL) != 0)
                return 0;
        if (!a)
                return reply_problem(r, 404, "not-found", NULL, "nothing is assigned to it through this API");
        return reply_assignment(r, 200, a);
}

static int reply_assign_error(Request *r, int error, const DiagList *list) {
        if (error == -ENOENT)
                return reply_problem(r, 422, "unknown-class", list, "%s",
                                     list->n_items > 0 && list->items[0].message ? list->items[0].message : "the policy has no such class");
        return reply_error(r, error, list);
}

static int reply_preview(Request *r, const Assignment *a) {
        json_t *preview = NULL;
        DiagList none = {};
        int k = manager_preview(r->server->manager, a, &preview);

        if (k < 0)
                return reply_assign_error(r, k, &none);
        if (json_object_set_new(preview, "dry_run", json_true()) < 0) {
                json_decref(preview);
                return -ENOMEM;
        }
        return reply_json(r, 200, preview);
}

/* ---- waiting ---- */

/* How bad it stands, in the words of the knob that could not be set. */
static const char *failure_reason(const GroupView *v) {
        const KnobCommon *knobs[] = { v->bandwidth ? &v->bandwidth->common : NULL, v->latency ? &v->latency->common : NULL, v->cookie ? &v->cookie->common : NULL };

        for (size_t i = 0; i < ELEMENTSOF(knobs); i++)
                if (knobs[i] && knobs[i]->status == KNOB_FAILED)
                        return knobs[i]->reason;
        return NULL;
}

static int answer_waited(Request *r, int error, const Group *g) {
        bool deleting = streq(r->method, "DELETE");
        ApiServer *s = r->server;
        const Assignment *a = NULL;
        GroupView v = {};
        TargetKind kind;
        const char *target, *failed = NULL;
        char etag[64], word[16];
        json_t *group = g ? json_group(s, g, true) : json_null();
        int k;

        if (!group)
                return -ENOMEM;
        if (g) {
                group_view(s->manager, g, &v);
                failed = failure_reason(&v);
        }
        if (error == -ETIMEDOUT && g)
                return reply_problem_with(r, 504, "not-applied-in-time", NULL, json_pack("{s:b, s:o}", "durable", 1, "group", group),
                                          "the change is stored, but the kernel did not have all of it in time");
        if ((error < 0 && error != -ETIMEDOUT) || failed)
                return reply_problem_with(r, 502, "not-applied", NULL, json_pack("{s:b, s:o, s:o}", "durable", 1, "errno", json_errno(error), "group", group),
                                          "the change is stored, but it could not be applied: %s", failed && *failed ? failed : error < 0 ? errno_word(-error, word) : "refused");
        if (deleting)
                return reply_json(r, 200, json_pack("{s:o}", "group", group));

        k = request_target(r, &kind, &target);
        if (k == 0)
                a = find_assignment(s, kind, target);
        if (!a) { /* somebody took it away while we waited */
                json_decref(group);
                return reply_problem(r, 409, "changed", NULL, "the assignment was removed while this request waited for it");
        }
        assignment_etag(a, etag);
        if (g)
                k = reply_json(r, r->success_status, json_pack("{s:o, s:o}", "assignment", json_assignment(a, NULL), "group", group));
        else {
                const char *reason = assignment_pending_reason(s, a);

                k = reply_json(r, 202, json_pack("{s:o, s:o, s:o}", "assignment", json_assignment(a, reason), "group", group, "pending", json_text(reason ? reason : "not here")));
        }
        if (k >= 0)
                reply_etag(r, etag);
        return k;
}

static void on_applied(int error, const Group *g, void *userdata) {
        Request *r = userdata;
        int k;

        r->wait_ticket = 0;
        k = answer_waited(r, error, g);
        if (k < 0)
                (void) reply_error(r, k, NULL);
        request_resume(r);
}

/* Whether and how long to wait. 0, or 1 with a problem. */
static int wait_params(Request *r, bool *ret_wait, uint64_t *ret_timeout_usec) {
        const char *wait = request_param(r, "wait");

        if (wait && !streq(wait, "applied")) {
                (void) reply_problem(r, 400, "invalid-parameter", NULL, "query parameter \"wait\" must be \"applied\"");
                return 1;
        }
        if (!wait && request_param(r, "timeout_usec")) {
                (void) reply_problem(r, 400, "invalid-parameter", NULL, "query parameter \"timeout_usec\" goes with wait=applied");
                return 1;
        }
        *ret_wait = wait != NULL;
        *ret_timeout_usec = WAIT_DEFAULT_USEC;
        return request_param_u64(r, "timeout_usec", 1000, WAIT_MAX_USEC, ret_timeout_usec);
}

static int wait_for(Request *r, TargetKind kind, const char *target, uint64_t timeout_usec) {
        const Assignment *a = find_assignment(r->server, kind, target);
        uint64_t ticket = 0;
        int k;

        if (a && assignment_pending_reason(r->server, a))
                return answer_waited(r, 0, NULL); /* nothing is there to wait for */
        k = manager_wait_applied(r->server->manager, kind, target, timeout_usec, on_applied, r, &ticket);
        if (k < 0)
                return k;
        if (r->reply.ready)
                return 0; /* it was there already */
        r->wait_ticket = ticket;
        return 1;
}

/* ---- changes ---- */

int route_assignment_put(Request *r) {
        _cleanup_(diag_list_clear) DiagList list = {};
        _cleanup_(assignment_clear) Assignment a = {};
        const Assignment *old, *stored;
        bool dry_run = false, steal = false, wait = false, created = false;
        uint64_t timeout_usec;
        const char *target;
        TargetKind kind;
        char etag[64], by[32];
        int k;

        if (request_target(r, &kind, &target) != 0 || request_param_bool(r, "dry_run", &dry_run) != 0 || request_param_bool(r, "steal", &steal) != 0 ||
            wait_params(r, &wait, &timeout_usec) != 0)
                return 0;
        old = find_assignment(r->server, kind, target);
        if (old)
                assignment_etag(old, etag);
        if (check_preconditions(r, old ? etag : NULL) != 0)
                return 0;
        k = assignment_from_json(r->json, "", kind, target, now_realtime_usec(), &a, &list);
        if (k < 0)
                return reply_error(r, k, &list);
        peer_describe(&r->client->peer, by, sizeof(by));
        k = free_and_strdup(&a.by, by);
        if (k < 0)
                return k;
        if (dry_run)
                return reply_preview(r, &a);
        k = manager_assign(r->server->manager, &a, steal, &created, &list);
        if (k < 0)
                return reply_assign_error(r, k, &list);
        r->success_status = created ? 201 : 200;
        if (wait)
                return wait_for(r, kind, target, timeout_usec);
        stored = find_assignment(r->server, kind, target);
        return stored ? reply_assignment(r, r->success_status, stored) : -EIO;
}

int route_assignment_delete(Request *r) {
        bool dry_run = false, wait = false;
        uint64_t timeout_usec;
        const Assignment *old;
        const char *target;
        TargetKind kind;
        char etag[64], by[32];
        int k;

        if (request_target(r, &kind, &target) != 0 || request_param_bool(r, "dry_run", &dry_run) != 0 || wait_params(r, &wait, &timeout_usec) != 0)
                return 0;
        old = find_assignment(r->server, kind, target);
        if (old)
                assignment_etag(old, etag);
        if (check_preconditions(r, old ? etag : NULL) != 0)
                return 0;
        if (dry_run)
                return reply_preview(r, &(Assignment) { .kind = kind, .target = (char *) target, .owner = (char *) "api" });
        if (old) {
                peer_describe(&r->client->peer, by, sizeof(by));
                k = manager_unassign(r->server->manager, kind, old->target, by);
                if (k < 0 && k != -ENOENT)
                        return reply_error(r, k, NULL);
        }
        return wait ? wait_for(r, kind, target, timeout_usec) : reply_empty(r, 204);
}

static int compare_targets(const void *x, const void *y) {
        const Assignment *a = *(const Assignment *const *) x, *b = *(const Assignment *const *) y;

        return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : strcmp(a->target, b->target);
}

/* A target that is named twice has no one class. */
static int check_twice(const Assignment *all, size_t n, DiagList *list) {
        _cleanup_free_ const Assignment **sorted = calloc(MAX_OF(n, (size_t) 1), sizeof(*sorted));

        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sorted[i] = &all[i];
        qsort(sorted, n, sizeof(*sorted), compare_targets);
        for (size_t i = 1; i < n; i++)
                if (compare_targets(&sorted[i - 1], &sorted[i]) == 0) {
                        char pointer[64];

                        (void) snprintf(pointer, sizeof(pointer), "/assignments/%zu", (size_t) (MAX_OF(sorted[i], sorted[i - 1]) - all));
                        diag_add(list, "request body", 0, pointer, sorted[i]->target, "once", "the target is named twice");
                }
        return list->n_items > 0 ? -EINVAL : 0;
}

static const Field bulk_fields[] = {
        { "assignments", FIELD_LIST, 0, 100000, FIELD_REQUIRED, .help = "all assignments of the owner" },
        {},
};

int route_owner_put(Request *r) {
        _cleanup_(diag_list_clear) DiagList list = {};
        const Assignments *stored;
        const char *owner = r->captures[0];
        json_t *array = NULL, *one, *out;
        size_t n, i, changed = 0, pruned = 0, n_read = 0;
        Assignment *all;
        char etag[64], by[32];
        uint64_t now = now_realtime_usec();
        int k = 0, e = 0;

        k = request_decode(r, bulk_fields, &array);
        if (k != 0)
                return k < 0 ? k : 0;
        if (!policy_name_is_valid(owner))
                return reply_problem(r, 400, "invalid", NULL, "not a valid owner name");
        store_etag(r->server, etag);
        if (check_preconditions(r, etag) != 0)
                return 0;
        n = json_array_size(array);
        all = calloc(MAX_OF(n, (size_t) 1), sizeof(Assignment));
        if (!all)
                return -ENOMEM;
        peer_describe(&r->client->peer, by, sizeof(by));
        json_array_foreach(array, i, one) {
                char pointer[64];
                json_t *said = json_object_get(one, "owner");
                int q;

                (void) snprintf(pointer, sizeof(pointer), "/assignments/%zu", i);
                if (said && !streq_null(json_string_value(said), owner)) {
                        diag_add(&list, "request body", 0, pointer, NULL, owner, "\"owner\" is not the owner in the path");
                        continue;
                }
                q = assignment_from_json(one, pointer, TARGET_UNIT, NULL, now, &all[n_read], &list);
                if (q == -EINVAL)
                        continue;
                if (q >= 0)
                        q = free_and_strdup(&all[n_read].owner, owner);
                if (q >= 0)
                        q = free_and_strdup(&all[n_read].by, by);
                if (q < 0) {
                        k = q;
                        break;
                }
                n_read++;
        }
        if (k == 0 && list.n_items > 0)
                k = -EINVAL;
        if (k == 0)
                k = check_twice(all, n_read, &list);
        if (k == 0)
                k = manager_replace_owner(r->server->manager, owner, all, n_read, &changed, &pruned, &list);
        for (i = 0; i < n; i++)
                assignment_clear(&all[i]);
        free(all);
        if (k == -EINVAL)
                return reply_problem(r, 400, "invalid", &list, "nothing was changed: the body is not as it must be");
        if (k < 0)
                return reply_assign_error(r, k, &list);

        stored = manager_assignments(r->server->manager);
        out = json_array();
        for (i = 0; i < assignments_count(stored); i++) {
                const Assignment *a = assignments_at(stored, i);

                if (streq(a->owner, owner))
                        e |= json_array_append_new(out, view_of(r->server, a));
        }
        store_etag(r->server, etag);
        k = reply_json(r, 200, json_pack("{s:o, s:o, s:o, s:o}", "owner", json_text(owner), "changed", json_u64(changed), "pruned", json_u64(pruned),
                                         "assignments", json_whole(out, e)));
        if (k >= 0)
                reply_etag(r, etag);
        return k;
}
