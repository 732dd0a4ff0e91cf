/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* All pages of GET /v1/groups as one document. */

#include "client/http.h"

typedef struct GroupsFilter {
        const char *service_class;
        const char *state;
        const char *unit;    /* glob */
        const char *drift;   /* "true", "false", NULL both */
        bool all;            /* also groups without a class and a reason */
} GroupsFilter;

/* {"groups":[...], "next":null}: one page as it came, more pages joined. New reference. */
ExitCode groups_request(const Client *c, GroupsFilter filter, bool quiet, json_t **ret);
