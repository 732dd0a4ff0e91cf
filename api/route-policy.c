/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Classes and rules: what files define can be read here, what the API defines can also be put and deleted. */

#include "api/internal.h"

int route_classes(Request *r) {
        const Policy *p = manager_policy(r->server->manager);
        _cleanup_free_ size_t *counts = NULL;
        char etag[64];
        json_t *a, *hashed;
        int e = 0;

        if (!p)
                return reply_json(r, 200, json_pack("{s:[]}", "classes"));
        counts = count_groups(r->server, p);
        if (!counts)
                return -ENOMEM;
        a = json_array();
        hashed = json_array();
        for (size_t i = 0; i < p->n_classes; i++) {
                json_t *view = json_class_view(&p->classes[i], counts[i]);

                e |= json_array_append(hashed, json_object_get(view, "class")); /* without what is no part of the class */
                e |= json_array_append_new(a, view);
        }
        etag_of_json(hashed, etag);
        json_decref(hashed);
        a = json_whole(a, e);
        if (!a)
                return -ENOMEM;
        if (check_preconditions(r, etag) != 0) {
                json_decref(a);
                return 0;
        }
        e = reply_json(r, 200, json_pack("{s:o}", "classes", a));
        if (e >= 0)
                reply_etag(r, etag);
        return e;
}

/* The class that the path names; NULL with a problem when the name can't be one. *ret_etag is set when it exists. */
static int find_class(Request *r, const ServiceClass **ret, char etag[64]) {
        const Policy *p = manager_policy(r->server->manager);
        const ServiceClass *c;
        json_t *document;

        if (!policy_name_is_valid(r->captures[0])) {
                DiagList list = {};

                diag_add(&list, "path", 0, NULL, r->captures[0], NULL, "not a valid class name");
                (void) reply_problem(r, 400, "invalid", &list, "not a valid class name");
                diag_list_clear(&list);
                return 1;
        }
        c = p ? policy_find_class(p, r->captures[0]) : NULL;
        if (c) {
                document = class_to_json(c);
                if (!document)
                        return -ENOMEM;
                etag_of_json(document, etag);
                json_decref(document);
        }
        *ret = c;
        return 0;
}

static int reply_class(Request *r, unsigned status) {
        const Policy *p = manager_policy(r->server->manager);
        const ServiceClass *c = NULL;
        _cleanup_free_ size_t *counts = NULL;
        char etag[64];
        int k;

        k = find_class(r, &c, etag);
        if (k != 0)
                return k < 0 ? k : 0;
        if (!c)
                return reply_problem(r, 404, "not-found", NULL, "there is no class \"%s\"", r->captures[0]);
        counts = count_groups(r->server, p);
        if (!counts)
                return -ENOMEM;
        k = reply_json(r, status, json_class_view(c, counts[c - p->classes]));
        if (k >= 0)
                reply_etag(r, etag);
        return k;
}

int route_class_get(Request *r) {
        const ServiceClass *c = NULL;
        char etag[64];
        int k;

        k = find_class(r, &c, etag);
        if (k != 0)
                return k < 0 ? k : 0;
        if (check_preconditions(r, c ? etag : NULL) != 0)
                return 0;
        return reply_class(r, 200);
}

int route_class_put(Request *r) {
        _cleanup_(diag_list_clear) DiagList list = {};
        const ServiceClass *c = NULL;
        bool created = false;
        json_t *name;
        char etag[64];
        int k;

        k = find_class(r, &c, etag);
        if (k != 0)
                return k < 0 ? k : 0;
        if (check_preconditions(r, c ? etag : NULL) != 0)
                return 0;
        name = json_object_get(r->json, "name");
        if (name && !streq_null(json_string_value(name), r->captures[0])) {
                _cleanup_free_ char *text = json_dumps(name, JSON_ENCODE_ANY | JSON_COMPACT);

                diag_add(&list, "request body", 0, "/name", text, r->captures[0], "is not the name in the path");
                return reply_problem(r, 400, "invalid", &list, "the name in the body is not the name in the path");
        }
        if (!name && json_object_set_new(r->json, "name", json_text(r->captures[0])) < 0)
                return -ENOMEM;
        k = manager_put_class(r->server->manager, r->captures[0], r->json, &created, &list);
        if (k < 0)
                return reply_error(r, k, &list);
        return reply_class(r, created ? 201 : 200);
}

int route_class_delete(Request *r) {
        _cleanup_(diag_list_clear) DiagList list = {};
        const ServiceClass *c = NULL;
        char etag[64];
        int k;

        k = find_class(r, &c, etag);
        if (k != 0)
                return k < 0 ? k : 0;
        if (check_preconditions(r, c ? etag : NULL) != 0)
                return 0;
        k = manager_delete_class(r->server->manager, r->captures[0], &list);
        if (k == -EPERM)
                return reply_problem(r, 409, "defined-by-file", &list, "the class is defined by %s: edit the file and reload", c && c->origin ? c->origin : "a file");
        if (k == -EINVAL || k == -EBUSY)
                return reply_problem(r, 409, "in-use", &list, "%s", list.n_items > 0 && list.items[0].message ? list.items[0].message : "the policy needs this class");
        if (k < 0 && k != -ENOENT)
                return reply_error(r, k, &list);
        return reply_empty(r, 204);
}

static int reply_rules(Request *r, bool conditional) {
        json_t *rules = json_rules(r->server);
        char etag[64];
        int k;

        if (!rules)
                return -ENOMEM;
        etag_of_json(rules, etag);
        if (conditional && check_preconditions(r, etag) != 0) {
                json_decref(rules);
                return 0;
        }
        k = reply_json(r, 200, rules);
        if (k >= 0)
                reply_etag(r, etag);
        return k;
}

int route_rules_get(Request *r) {
        return reply_rules(r, true);
}

static const Field rules_fields[] = {
        { "rules", FIELD_LIST, 0, 10000, FIELD_REQUIRED, .help = "the rules that the API defines, in their order" },
        {},
};

int route_rules_put(Request *r) {
        _cleanup_(diag_list_clear) DiagList list = {};
        json_t *rules = NULL, *now;
        char etag[64];
        int k;

        k = request_decode(r, rules_fields, &rules);
        if (k != 0)
                return k < 0 ? k : 0;
        now = json_rules(r->server);
        if (!now)
                return -ENOMEM;
        etag_of_json(now, etag);
        json_decref(now);
        if (check_preconditions(r, etag) != 0)
                return 0;
        k = manager_put_rules(r->server->manager, rules, &list);
        if (k < 0)
                return reply_error(r, k, &list);
        return reply_rules(r, false);
}

int route_policy_get(Request *r) {
        return reply_json(r, 200, json_policy(r->server));
}

int route_policy_reload(Request *r) {
        _cleanup_(diag_list_clear) DiagList list = {};
        int k;

        k = request_decode(r, (Field[]) { {} }, NULL);
        if (k != 0)
                return k < 0 ? k : 0;
        api_server_refresh_groups(r->server);
        k = manager_reload_policy(r->server->manager, &list);
        if (k == -EINVAL)
                return reply_problem(r, 422, "policy-refused", &list, "the policy on disk has errors, the old one stays in force");
        if (k < 0)
                return reply_error(r, k, &list);
        return reply_json(r, 200, json_policy(r->server));
}
