/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a raw request line to a route: the path is cut at its slashes first and each segment decoded after, once. Parameters that a route does not
 * know are refused, so that a typing error ("dryrun=true") can never turn a question into a change. */

#include "api/internal.h"

const Route api_routes[] = {
        { "GET", "/v1/status", RIGHT_READ, BODY_NONE, "", route_status },
        { "GET", "/v1/host", RIGHT_READ, BODY_NONE, "", route_host },
        { "GET", "/v1/classes", RIGHT_READ, BODY_NONE, "", route_classes },
        { "GET", "/v1/classes/*", RIGHT_READ, BODY_NONE, "", route_class_get },
        { "PUT", "/v1/classes/*", RIGHT_WRITE, BODY_REQUIRED, "", route_class_put },
        { "DELETE", "/v1/classes/*", RIGHT_WRITE, BODY_NONE, "", route_class_delete },
        { "GET", "/v1/rules", RIGHT_READ, BODY_NONE, "", route_rules_get },
        { "PUT", "/v1/rules", RIGHT_WRITE, BODY_REQUIRED, "", route_rules_put },
        { "GET", "/v1/groups", RIGHT_READ, BODY_NONE, "class state drift unit path all limit after", route_groups },
        { "GET", "/v1/groups/cgroup", RIGHT_READ, BODY_NONE, "path", route_group_cgroup },
        { "GET", "/v1/groups/unit/*", RIGHT_READ, BODY_NONE, "", route_group_unit },
        { "GET", "/v1/explain", RIGHT_READ, BODY_NONE, "unit path pid", route_explain },
        { "GET", "/v1/assignments", RIGHT_READ, BODY_NONE, "owner", route_assignments },
        { "GET", "/v1/assignments/cgroup", RIGHT_READ, BODY_NONE, "path", route_assignment_get },
        { "PUT", "/v1/assignments/cgroup", RIGHT_WRITE, BODY_REQUIRED, "path dry_run wait timeout_usec steal", route_assignment_put },
        { "DELETE", "/v1/assignments/cgroup", RIGHT_WRITE, BODY_NONE, "path dry_run wait timeout_usec", route_assignment_delete },
        { "GET", "/v1/assignments/unit/*", RIGHT_READ, BODY_NONE, "", route_assignment_get },
        { "PUT", "/v1/assignments/unit/*", RIGHT_WRITE, BODY_REQUIRED, "dry_run wait timeout_usec steal", route_assignment_put },
        { "DELETE", "/v1/assignments/unit/*", RIGHT_WRITE, BODY_NONE, "dry_run wait timeout_usec", route_assignment_delete },
        { "GET", "/v1/assignments/pod/*", RIGHT_READ, BODY_NONE, "", route_assignment_get },
        { "PUT", "/v1/assignments/pod/*", RIGHT_WRITE, BODY_REQUIRED, "dry_run wait timeout_usec steal", route_assignment_put },
        { "DELETE", "/v1/assignments/pod/*", RIGHT_WRITE, BODY_NONE, "dry_run wait timeout_usec", route_assignment_delete },
        { "GET", "/v1/owners/*/assignments", RIGHT_READ, BODY_NONE, "", route_owner_get },
        { "PUT", "/v1/owners/*/assignments", RIGHT_WRITE, BODY_REQUIRED, "", route_owner_put },
        { "GET", "/v1/decisions", RIGHT_READ, BODY_NONE, "since group limit", route_decisions },
        { "GET", "/v1/events", RIGHT_READ, BODY_NONE, "", route_events },
        { "GET", "/v1/policy", RIGHT_READ, BODY_NONE, "", route_policy_get },
        { "POST", "/v1/policy/reload", RIGHT_WRITE, BODY_OPTIONAL, "", route_policy_reload },
        { "GET", "/v1/pause", RIGHT_READ, BODY_NONE, "", route_pause_get },
        { "PUT", "/v1/pause", RIGHT_WRITE, BODY_OPTIONAL, "", route_pause_put },
        { "DELETE", "/v1/pause", RIGHT_WRITE, BODY_NONE, "group", route_pause_delete },
        { "POST", "/v1/restore", RIGHT_WRITE, BODY_OPTIONAL, "", route_restore },
        { "POST", "/v1/pools/*", RIGHT_WRITE, BODY_OPTIONAL, "", route_pool },
        { "GET", "/metrics", RIGHT_READ, BODY_NONE, "", route_metrics },
        { "GET", "/livez", RIGHT_READ, BODY_NONE, "", route_livez },
        { "GET", "/readyz", RIGHT_READ, BODY_NONE, "", route_readyz },
        { "GET", "/openapi.yaml", RIGHT_READ, BODY_NONE, "", route_openapi },
};
const size_t api_n_routes = ELEMENTSOF(api_routes);

static const char *const all_methods[] = { "GET", "PUT", "DELETE", "POST" };

/* Compares a raw path with a pattern, segment by segment. captures (may be NULL) get the decoded bytes of "*". 1: matches, 0: does not, -EINVAL: a segment
 * is badly encoded. */
static int path_matches(const char *path, size_t length, const char *pattern, char *captures[CAPTURES_MAX]) {
        const char *p = path, *end = path + length, *q = pattern;
        size_t n = 0;

        while (p < end && *q) {
                const char *p_end, *q_end;
                _cleanup_free_ char *segment = NULL;
                int k;

                if (*p != '/' || *q != '/')
                        return 0;
                p++;
                q++;
                p_end = memchr(p, '/', (size_t) (end - p));
                if (!p_end)
                        p_end = end;
                q_end = strchrnul(q, '/');
                k = uri_decode(p, (size_t) (p_end - p), false, &segment);
                if (k < 0)
                        return k;
                if (q_end - q == 1 && *q == '*') {
                        if (!*segment)
                                return 0;
                        if (captures && n < CAPTURES_MAX)
                                captures[n++] = TAKE_PTR(segment);
                } else if (strlen(segment) != (size_t) (q_end - q) || strncmp(segment, q, (size_t) (q_end - q)) != 0)
                        return 0;
                p = p_end;
                q = q_end;
        }
        return p == end && !*q;
}

static bool word_in(const char *list, const char *word) {
        size_t length = strlen(word);

        for (const char *p = list; *p;) {
                const char *end = strchrnul(p, ' ');

                if (length > 0 && (size_t) (end - p) == length && strncmp(p, word, length) == 0)
                        return true;
                p = *end ? end + 1 : end;
        }
        return false;
}

static int parse_params(Request *r, const char *query) {
        for (const char *p = query; *p;) {
                const char *end = strchrnul(p, '&'), *equals = memchr(p, '=', (size_t) (end - p));
                _cleanup_free_ char *name = NULL, *value = NULL;
                int k;

                k = uri_decode(p, (size_t) ((equals ? equals : end) - p), false, &name);
                if (k >= 0) {
                        bool is_path = streq(name, "path") || streq(name, "group");
                        const char *from = equals ? equals + 1 : end;

                        k = uri_decode(from, (size_t) (end - from), is_path, &value);
                }
                if (k == -ENOMEM)
                        return k;
                if (k < 0) {
                        DiagList list = {};

                        if (name)
                                diag_add(&list, "query", 0, name, NULL, "printable ASCII, the rest percent-encoded; no newline and no NUL", "badly encoded");
                        (void) reply_problem(r, 400, "invalid-parameter", &list, "the query is badly encoded");
                        diag_list_clear(&list);
                        return 1;
                }
                if (!word_in(r->route->params, name)) {
                        DiagList list = {};

                        diag_add(&list, "query", 0, name, NULL, *r->route->params ? r->route->params : "none", "unknown parameter");
                        (void) reply_problem(r, 400, "unknown-parameter", &list, "unknown query parameter \"%s\"", name);
                        diag_list_clear(&list);
                        return 1;
                }
                if (request_param(r, name) || r->n_params >= PARAMS_MAX) {
                        (void) reply_problem(r, 400, "invalid-parameter", NULL, "query parameter \"%s\" is given more than once", name);
                        return 1;
                }
                r->params[r->n_params++] = (Param) { .name = TAKE_PTR(name), .value = TAKE_PTR(value) };
                if (*end && !end[1]) {
                        (void) reply_problem(r, 400, "invalid-parameter", NULL, "the query ends with \"&\"");
                        return 1;
                }
                p = *end ? end + 1 : end;
        }
        return 0;
}

static void allow_methods(const char *path, size_t length, char *buffer, size_t size) {
        size_t n = 0;

        buffer[0] = 0;
        for (size_t m = 0; m < ELEMENTSOF(all_methods); m++)
                for (size_t i = 0; i < api_n_routes; i++)
                        if (streq(api_routes[i].method, all_methods[m]) && path_matches(path, length, api_routes[i].path, NULL) == 1) {
                                n += (size_t) snprintf(buffer + n, size - n, "%s%s", n > 0 ? ", " : "", m == 0 ? "GET, HEAD" : all_methods[m]);
                                break;
                        }
        if (n > 0)
                (void) snprintf(buffer + n, size - n, ", OPTIONS");
}

int router_resolve(Request *r) {
        const char *uri = r->uri ? r->uri : "", *query = strchr(uri, '?'), *method = r->head ? "GET" : r->method;
        size_t length = query ? (size_t) (query - uri) : strlen(uri);
        char allow[sizeof(r->reply.allow)];
        int k;

        if (streq(uri, "*") && streq(r->method, "OPTIONS")) {
                (void) reply_empty(r, 204);
                (void) snprintf(r->reply.allow, sizeof(r->reply.allow), "GET, HEAD, PUT, DELETE, POST, OPTIONS");
                return 1;
        }
        if (*uri != '/' || strchr(uri, '#')) {
                (void) reply_problem(r, 400, "invalid-path", NULL, "the request target must be a path that begins with \"/\"");
                return 1;
        }
        for (size_t i = 0; i < api_n_routes; i++) {
                char *captures[CAPTURES_MAX] = {};

                k = path_matches(uri, length, api_routes[i].path, streq(api_routes[i].method, method) ? captures : NULL);
                if (k == 1 && streq(api_routes[i].method, method)) {
                        r->route = &api_routes[i];
                        memcpy(r->captures, captures, sizeof(captures));
                        return query ? parse_params(r, query + 1) : 0;
                }
                for (size_t c = 0; c < CAPTURES_MAX; c++)
                        free(captures[c]);
                if (k == -EINVAL) {
                        (void) reply_problem(r, 400, "invalid-path", NULL, "the path is badly encoded: printable ASCII, the rest percent-encoded, no control characters");
                        return 1;
                }
                if (k < 0)
                        return k;
        }

        allow_methods(uri, length, allow, sizeof(allow));
        if (!allow[0])
                (void) reply_problem(r, 404, "no-such-route", NULL, "there is nothing at this path");
        else {
                if (streq(r->method, "OPTIONS"))
                        (void) reply_empty(r, 204);
                else
                        (void) reply_problem(r, 405, "method-not-allowed", NULL, "here are allowed: %s", allow);
                (void) snprintf(r->reply.allow, sizeof(r->reply.allow), "%s", allow);
        }
        return 1;
}

const char *request_param(const Request *r, const char *name) {
        for (size_t i = 0; i < r->n_params; i++)
                if (streq(r->params[i].name, name))
                        return r->params[i].value;
        return NULL;
}

static int param_problem(Request *r, const char *name, const char *value, const char *limit) {
        DiagList list = {};

        diag_add(&list, "query", 0, name, value, limit, "not a valid value");
        (void) reply_problem(r, 400, "invalid-parameter", &list, "query parameter \"%s\" must be %s", name, limit);
        diag_list_clear(&list);
        return 1;
}

int request_param_bool(Request *r, const char *name, bool *ret) {
        const char *value = request_param(r, name);

        if (!value)
                return 0;
        if (!streq(value, "true") && !streq(value, "false"))
                return param_problem(r, name, value, "true or false");
        *ret = streq(value, "true");
        return 0;
}

int request_param_u64(Request *r, const char *name, uint64_t least, uint64_t most, uint64_t *ret) {
        const char *value = request_param(r, name);
        uint64_t v = 0;
        char limit[64];

        if (!value)
                return 0;
        (void) snprintf(limit, sizeof(limit), "a whole number from %llu to %llu", (unsigned long long) least, (unsigned long long) most);
        if (!*value || strspn(value, "0123456789") != strlen(value))
                return param_problem(r, name, value, limit);
        for (const char *p = value; *p; p++)
                if (__builtin_mul_overflow(v, UINT64_C(10), &v) || __builtin_add_overflow(v, (uint64_t) (*p - '0'), &v))
                        return param_problem(r, name, value, limit);
        if (v < least || v > most)
                return param_problem(r, name, value, limit);
        *ret = v;
        return 0;
}

const char *request_header(const Request *r, const char *name) {
        return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

int request_parse_body(Request *r) {
        json_error_t error;
        DiagList list = {};

        if (r->route->body == BODY_NONE)
                return 0;
        if (r->body_size == 0 && r->route->body == BODY_OPTIONAL) {
                r->json = json_object();
                return r->json ? 0 : -ENOMEM;
        }
        r->json = json_loadb(r->body_size > 0 ? r->body : "", r->body_size, JSON_REJECT_DUPLICATES, &error);
        if (!r->json) {
                diag_add(&list, "request body", error.line > 0 ? (unsigned) error.line : 0, "", NULL, NULL, "%s", error.text);
                (void) reply_problem(r, 400, "invalid-json", &list, "the body is not valid JSON: %s", error.text);
                diag_list_clear(&list);
                return 1;
        }
        if (!json_is_object(r->json)) {
                diag_add(&list, "request body", 0, "", NULL, "an object", "wrong type");
                (void) reply_problem(r, 400, "invalid", &list, "the body must be a JSON object");
                diag_list_clear(&list);
                return 1;
        }
        return 0;
}

int request_decode(Request *r, const Field *fields, void *target) {
        DiagList list = {};
        int k = fields_decode(&(FieldReader) { .file = "request body", .list = &list }, "", r->json, fields, target);

        if (k == -EINVAL) {
                (void) reply_problem(r, 400, "invalid", &list, "the body is not as it must be");
                k = 1;
        }
        diag_list_clear(&list);
        return k;
}
