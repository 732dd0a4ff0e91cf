/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Run-time drop-ins of ours on units that do not run.
 *
 * They stay while a unit is stopped, so that it starts with what its class says. But when the class is taken away meanwhile there is no group that could be released, and
 * the unit would start with our quota; and a transient unit takes its drop-ins with it, which leaves a record of nothing. So what is on record is looked through now and
 * then. */

#include "daemon/manager-internal.h"

#define ORPHANS_USEC (10 * USEC_PER_SEC)
#define ORPHANS_PER_TURN 64

/* Whether a unit that does not run may get a class when it starts. What is not known of it (slice, user, path) might match. */
static bool may_have_class(const Manager *m, const char *id, const UnitInfo *u) {
        GroupFacts facts = { .unit = id, .unit_names = u ? (const char *const *) u->names : NULL };

        if ((u && u->class_word) || unit_assignment(m, id))
                return true;
        for (size_t i = 0; i < m->policy->n_rules; i++) {
                const Rule by_name = { .match = { .unit = m->policy->rules[i].match.unit } };

                if (!by_name.match.unit || rule_matches(&by_name, &facts))
                        return true;
        }
        return false;
}

static bool is_orphan(const Manager *m, const LedgerRecord *r) {
        const UnitInfo *u = units_get(m->units, r->key);
        const Group *g = u && u->cgroup && u->cgroup[0] ? group_table_find(&m->groups, u->cgroup) : NULL;

        if (g)
                return !g->managed && !g->dirty && !g->unknown_class && !manager_is_paused(m, g, NULL);
        return units_read_dropin(r->key, r->kind == LEDGER_UNIT_WEIGHT ? "CPUWeight" : "CPUQuota", NULL, NULL) == -ENOENT || !may_have_class(m, r->key, u);
}

typedef struct Orphans {
        const Manager *manager;
        char *keys[ORPHANS_PER_TURN];
        size_t n;
} Orphans;

static int collect(const LedgerRecord *r, void *userdata) {
        Orphans *o = userdata;

        if (o->n < ORPHANS_PER_TURN && (r->kind == LEDGER_UNIT_QUOTA || r->kind == LEDGER_UNIT_WEIGHT) && is_orphan(o->manager, r) && (o->keys[o->n] = strdup(r->key)))
                o->n++;
        return 0;
}

static bool of_unit(const LedgerRecord *r, void *userdata) {
        return (r->kind == LEDGER_UNIT_QUOTA || r->kind == LEDGER_UNIT_WEIGHT) && streq(r->key, userdata);
}

void orphans_sweep(Manager *m, uint64_t now) {
        Orphans o = { .manager = m };
        RestoreResult result = { 0 };

        /* Only where all is known: a policy on disk that is refused must not take away what the one before it gave. */
        if (now < m->next_orphans_usec || !m->units_listed || m->reloading || m->n_calls > 0 || m->config.dry_run || m->policy_error || manager_is_paused(m, NULL, NULL))
                return;
        m->next_orphans_usec = now + ORPHANS_USEC;
        if (ledger_count(m->ledger, LEDGER_UNIT_QUOTA) + ledger_count(m->ledger, LEDGER_UNIT_WEIGHT) == 0)
                return;
        (void) ledger_for_each(m->ledger, _LEDGER_KIND_MAX, collect, &o);
        for (size_t i = 0; i < o.n; i++) {
                restore_records(m->ledger, &m->root, m->host.base_slice_nsec, of_unit, o.keys[i], &result);
                free(o.keys[i]);
        }
        if (result.n_restored)
                log_info("%zu settings of units that have lost their class while they did not run are the owner's again", result.n_restored);
        if (result.reload_due)
                units_coalesced_reload(m);
}
