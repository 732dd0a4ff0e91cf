/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a former instance left on groups whose class no longer wants it: it was killed after a change was answered and before it was carried out.
 *
 * At the start every group that the ledger names is marked. When such a group is looked at for the first time and systemd's units are known, the knobs that its class
 * does not want (all, when it has none) are put back from the ledger. */

#include "daemon/manager-internal.h"

static int mark(const LedgerRecord *r, void *userdata) {
        Manager *m = userdata;
        const UnitInfo *u;
        Group *g = NULL;

        if (r->kind == LEDGER_UNIT_QUOTA || r->kind == LEDGER_UNIT_WEIGHT) {
                u = m->units ? units_get(m->units, r->key) : NULL;
                g = u && u->cgroup && u->cgroup[0] ? group_table_find(&m->groups, u->cgroup) : NULL;
        } else if (r->key && r->key[0] == '/')
                g = group_table_find(&m->groups, r->key);
        if (g)
                g->leftovers = true;
        return 0;
}

void leftovers_mark(Manager *m) {
        (void) ledger_for_each(m->ledger, _LEDGER_KIND_MAX, mark, m);
}

typedef struct Unwanted {
        const Group *group;
        const char *unit;
        bool bandwidth, latency, cookie;
} Unwanted;

static bool is_unwanted(const LedgerRecord *r, void *userdata) {
        const Unwanted *w = userdata;

        switch (r->kind) {
        case LEDGER_BANDWIDTH:
                return w->bandwidth && streq(r->key, w->group->path) && r->inode == w->group->inode;
        case LEDGER_UNIT_QUOTA:
        case LEDGER_UNIT_WEIGHT:
                return w->bandwidth && w->unit && streq(r->key, w->unit);
        case LEDGER_LATENCY_FILE:
        case LEDGER_THREAD_SLICE:
                return w->latency && streq(r->key, w->group->path);
        case LEDGER_CORE_TAG:
        case LEDGER_THREAD_COOKIE:
                return w->cookie && streq(r->key, w->group->path);
        default:
                return false;
        }
}

void leftovers_release(Manager *m, Group *g) {
        const ServiceClass *c = g->managed && g->managed->service_class ? &g->managed->effective : NULL;
        const UnitInfo *unit = group_unit(m, g);
        Unwanted w = {
                .group = g, .unit = unit ? unit->id : NULL,
                .bandwidth = !c || (!c->manages_bandwidth && !c->enable_controller),
                .latency = !c || !c->has_latency_nice,
                .cookie = !c || c->core_scheduling == CORE_SCHEDULING_NONE,
        };
        RestoreResult result = { 0 };

        if (!g->leftovers || m->config.dry_run || (!m->units_listed && !m->config.no_systemd) || g->unknown_class || manager_is_paused(m, g, NULL))
                return;
        g->leftovers = false;
        restore_records(m->ledger, &m->root, m->host.base_slice_nsec, is_unwanted, &w, &result);
        if (result.n_restored)
                decide_record(m, g, &(DecisionInput) { .knob = "bandwidth", .trigger = "start" },
                              "%zu values that an earlier instance left and the class does not want are the owner's again", result.n_restored);
        if (result.reload_due)
                units_coalesced_reload(m);
}
