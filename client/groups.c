/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/format.h"
#include "client/groups.h"

ExitCode groups_request(const Client *c, GroupsFilter filter, bool quiet, json_t **ret) {
        _cleanup_free_ char *next = NULL;
        json_t *all = NULL;
        ExitCode code;

        do {
                _cleanup_answer_ Answer a = {};
                _cleanup_free_ char *url = url_with_query("/v1/groups", "class", filter.service_class, "state", filter.state, "unit", filter.unit,
                                                          "drift", filter.drift, "all", filter.all ? "true" : NULL, "limit", "500", "after", next, NULL);

                if (!url)
                        code = CODE_FAILURE;
                else if (quiet) {
                        code = http_call(c, "GET", url, NULL, TIMEOUT_USUAL, true, &a);
                        if (code == CODE_OK && a.status != 200)
                                code = CODE_FAILURE;
                } else
                        code = client_request(c, "GET", url, NULL, TIMEOUT_USUAL, &a);
                if (code == CODE_OK && free_and_strdup(&next, json_text(a.json, "next")) < 0)
                        code = CODE_FAILURE;
                if (code != CODE_OK) {
                        if (all)
                                json_decref(all);
                        return code;
                }
                if (!all)
                        all = json_incref(a.json);
                else
                        (void) json_array_extend(json_object_get(all, "groups"), json_object_get(a.json, "groups"));
        } while (next);
        if (!all)
                return CODE_FAILURE;
        (void) json_object_set_new(all, "next", json_null());
        *ret = all;
        return CODE_OK;
}
