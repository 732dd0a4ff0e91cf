/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What was decided, from the manager's ring: the latest, or all since a sequence number. */

#include "api/internal.h"

#define BATCH 128

static bool decision_fits(const Decision *d, const char *cgroup, const char *unit) {
        if (!cgroup && !unit)
                return true;
        return (cgroup && streq_null(d->cgroup, cgroup)) || (unit && streq_null(d->unit, unit));
}

uint64_t decisions_newest(ApiServer *s) {
        DaemonStatus d = {};

        manager_status(s->manager, &d);
        return d.n_decisions;
}

size_t decisions_latest(ApiServer *s, const char *cgroup, const char *unit, const Decision **ret, size_t max) {
        const Decision *batch[BATCH];
        uint64_t since = 0, oldest;
        size_t n, total = 0;

        /* one pass with a ring of max; a rotation at its end puts the oldest first */
        while ((n = manager_decisions(s->manager, since, NULL, batch, BATCH, &oldest)) > 0) {
                for (size_t i = 0; i < n; i++) {
                        since = batch[i]->sequence;
                        if (decision_fits(batch[i], cgroup, unit))
                                ret[total++ % max] = batch[i];
                }
                if (n < BATCH)
                        break;
        }
        if (total <= max)
                return total;
        for (size_t turn = total % max; turn > 0; turn--) {
                const Decision *first = ret[0];

                memmove(ret, ret + 1, (max - 1) * sizeof(*ret));
                ret[max - 1] = first;
        }
        return max;
}

int route_decisions(Request *r) {
        Manager *m = r->server->manager;
        const char *group = request_param(r, "group"), *cgroup = NULL, *unit = NULL;
        _cleanup_free_ const Decision **list = NULL;
        _cleanup_free_ char *path = NULL;
        uint64_t limit = 100, since = 0, oldest = 0, next, newest = decisions_newest(r->server);
        const Decision *batch[BATCH];
        bool gap = false;
        json_t *a, *o;
        size_t n = 0;
        int e = 0;

        if (request_param_u64(r, "limit", 1, 1000, &limit) != 0 || request_param_u64(r, "since", 0, INT64_MAX, &since) != 0)
                return 0;
        if (group) {
                const Group *g = *group == '/' ? manager_find_group_by_cgroup(m, group) : manager_find_group_by_unit(m, group);
                GroupView v = {};

                if (g) {
                        group_view(m, g, &v);
                        path = strdup(v.cgroup);
                        if (!path)
                                return -ENOMEM;
                }
                /* what is gone still has its past */
                cgroup = path ? path : *group == '/' ? group : NULL;
                unit = *group == '/' ? NULL : v.unit ? v.unit : group;
        }
        list = calloc(limit, sizeof(*list));
        if (!list)
                return -ENOMEM;
        (void) manager_decisions(m, 0, NULL, batch, 1, &oldest);
        if (!request_param(r, "since")) {
                n = decisions_latest(r->server, cgroup, unit, list, limit);
                next = newest;
        } else {
                if (since > newest) {
                        gap = true;
                        since = 0;
                } else
                        gap = oldest > 0 && since + 1 < oldest;
                next = since;
                while (n < limit) {
                        uint64_t ignored;
                        size_t k = manager_decisions(m, next, NULL, batch, BATCH, &ignored);

                        for (size_t i = 0; i < k && n < limit; i++) {
                                next = batch[i]->sequence;
                                if (decision_fits(batch[i], cgroup, unit))
                                        list[n++] = batch[i];
                        }
                        if (k < BATCH)
                                break;
                }
        }
        a = json_array();
        for (size_t i = 0; i < n; i++)
                e |= json_array_append_new(a, json_decision(list[i]));
        a = json_whole(a, e);
        o = json_pack("{s:o, s:o, s:o, s:b}", "decisions", a, "oldest", json_u64(oldest), "next_since", json_u64(next), "gap", gap);
        return reply_json(r, 200, o);
}
