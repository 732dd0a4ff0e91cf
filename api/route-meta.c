/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of the daemon itself: status, host facts, health, the reference of this API. */

#include "api/internal.h"

extern const char openapi_yaml[];
extern const size_t openapi_yaml_size;

int route_status(Request *r) {
        return reply_json(r, 200, json_status(r->server));
}

int route_host(Request *r) {
        return reply_json(r, 200, json_host(r->server));
}

int route_livez(Request *r) {
        return reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
}

int route_readyz(Request *r) {
        DaemonStatus d = {};

        manager_status(r->server->manager, &d);
        if (!d.ready)
                return reply_problem(r, 503, "not-ready", NULL, "the first scan is not done yet");
        if (d.policy_error)
                return reply_problem(r, 503, "not-ready", NULL, "the policy on disk was refused, an earlier one is in force: %s", d.policy_error);
        return reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
}

int route_openapi(Request *r) {
        return reply_static(r, 200, "application/yaml", openapi_yaml, openapi_yaml_size);
}
