/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The writes of the bandwidth knob: the kernel's files at once, systemd's property after, and the way back. */

#include "daemon/knob-bandwidth.h"

static void describe(const Bandwidth *v, char *buffer, size_t size) {
        if (v->quota_usec == QUOTA_UNLIMITED)
                (void) snprintf(buffer, size, "max");
        else
                (void) snprintf(buffer, size, "%" PRIu64 "/%" PRIu64 " us, burst %" PRIu64, v->quota_usec, v->period_usec, v->burst_usec);
}

int bandwidth_write_now(Manager *m, Group *g, int dir_fd, const Bandwidth *live, const Bandwidth *want, const char *trigger, const LawDecision *law) {
        Managed *x = g->managed;
        BandwidthKnob *b = &x->bandwidth;
        LedgerRecord record = {
                .kind = LEDGER_BANDWIDTH, .key = g->path, .inode = g->inode,
                .original = b->original, .written = *want, .has_written = true,
                .previous = b->has_written ? b->written : (Bandwidth) { 0 },
        };
        char before[96], after[96], why[192] = "";
        Bandwidth observed = *live;
        int r;

        /* Before the value is in the kernel, the ledger knows both what was there and what is coming: whichever a crash leaves is known. */
        r = ledger_put(m->ledger, &record, 1);
        if (r < 0) {
                b->common.error = -r;
                b->common.status = KNOB_FAILED;
                (void) snprintf(b->common.reason, sizeof(b->common.reason), "nothing was written: the ledger can't be kept (%s)", strerror(-r));
                return r;
        }
        r = bandwidth_write(dir_fd, want, &observed);
        if (r == -ESTALE && bandwidth_same_or_rescaled(&observed, want))
                r = 1;                       /* the kernel stretched a short period */
        b->observed = observed;
        b->has_observed = true;
        describe(live, before, sizeof(before));
        describe(want, after, sizeof(after));
        if (r < 0) {
                bool news = b->common.error != -r || b->common.status != KNOB_FAILED;

                if (r == -ENODEV || r == -ENOENT)
                        return r;            /* the group has gone */
                b->common.error = -r;
                b->common.status = KNOB_FAILED;
                (void) snprintf(b->common.reason, sizeof(b->common.reason), "%s",
                                r == -EINVAL ? "the kernel refused it as invalid (a parent's limit, or real-time rules)" :
                                r == -ESTALE ? "written, but the kernel shows something else: somebody else writes too" : strerror(-r));
                if (r == -ESTALE) {
                        /* Another writer came between: its value is not ours. It is judged at the next look. */
                        b->written = *want;
                        manager_wake(m);
                } else {
                        record.written = b->written = observed;
                        (void) ledger_put(m->ledger, &record, 1);
                }
                b->has_written = true;
                if (news)
                        decide_record(m, g, &(DecisionInput) { .knob = "bandwidth", .trigger = trigger, .error = -r, .before = *live, .after = observed, .law = law },
                                      "%s could not be set: %s", after, strerror(-r));
                return r;
        }
        if (law)
                law_decision_describe(law, live, why, sizeof(why));
        b->common.error = 0;
        b->common.n_writes += (uint64_t) r;
        b->common.last_write_usec = clock_monotonic_usec();
        m->counters.n_writes_bandwidth += (uint64_t) r;
        b->written = *want;
        b->has_written = true;
        if (r > 0)
                decide_record(m, g, &(DecisionInput) { .knob = "bandwidth", .trigger = trigger, .before = *live, .after = observed, .law = law },
                              "%s -> %s%s%s", before, after, why[0] ? ": " : "", why);
        return 0;
}

/* A call to systemd that is under way: the group may be gone when it answers, so it is found again by path and inode. */
typedef struct PropertyCall {
        Manager *manager;
        char *path, *unit;
        uint64_t inode;
        bool weight;
        Bandwidth asked, owner;
        char *original_text, *period_original_text;   /* the record may be dropped before the answer comes */
} PropertyCall;

static void property_call_free(PropertyCall *c) {
        free(c->path);
        free(c->unit);
        free(c->original_text);
        free(c->period_original_text);
        free(c);
}

static PropertyCall *property_call_new(Manager *m, const Group *g, const UnitInfo *unit) {
        PropertyCall *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->manager = m;
        c->inode = g->inode;
        c->path = strdup(g->path);
        c->unit = strdup(unit->id);
        if (!c->path || !c->unit) {
                property_call_free(c);
                return NULL;
        }
        return c;
}

static bool of_unit(const LedgerRecord *r, void *userdata) {
        return (r->kind == LEDGER_UNIT_QUOTA || r->kind == LEDGER_UNIT_WEIGHT) && streq(r->key, userdata);
}

/* The answer came after the unit had lost its class (or the daemon is putting everything back): what systemd has just written goes away again. */
static void undo_late(Manager *m, char *id) {
        RestoreResult result = { 0 };

        restore_records(m->ledger, &m->root, m->host.base_slice_nsec, of_unit, id, &result);
        if (result.reload_due)
                units_coalesced_reload(m);
}

static void property_done(int error, const char *message, void *userdata) {
        PropertyCall *c = userdata;
        Manager *m = c->manager;
        Group *g = group_table_find(&m->groups, c->path);
        LedgerRecord record = { .kind = c->weight ? LEDGER_UNIT_WEIGHT : LEDGER_UNIT_QUOTA, .key = c->unit, .original = c->owner,
                                .written = c->asked, .has_written = true, .written_number = 100 };
        _cleanup_free_ char *path = NULL, *content = NULL, *period_path = NULL, *period_content = NULL;

        m->n_calls--;
        if (g && (g->inode != c->inode || !g->managed))
                g = NULL;
        if (g && c->weight)
                g->managed->weight_busy = false;
        else if (g)
                g->managed->property_busy = false;
        if (error < 0) {
                if (g) {
                        BandwidthKnob *b = &g->managed->bandwidth;

                        b->common.error = -error;
                        if (b->controller_off) {
                                b->common.status = KNOB_FAILED;
                                (void) snprintf(b->common.reason, sizeof(b->common.reason), "systemd refused: %.150s", message ? message : strerror(-error));
                        }
                        g->managed->property_due_usec = clock_monotonic_usec() + 30 * USEC_PER_SEC;
                        decide_record(m, g, &(DecisionInput) { .knob = "bandwidth", .trigger = "systemd", .error = -error, .after = c->asked },
                                      "systemd refused %s: %s", c->weight ? "CPUWeight=" : "CPUQuota=", message ? message : strerror(-error));
                }
                property_call_free(c);
                return;
        }
        m->counters.n_writes_bus++;
        if (units_read_dropin(c->unit, c->weight ? "CPUWeight" : "CPUQuota", &path, &content) >= 0) {
                const LedgerRecord *old = ledger_find(m->ledger, record.kind, c->unit, 0, 0, 0);

                record.dropin_path = path;
                record.written_text = content;
                record.original_text = old ? old->original_text : c->original_text;
                if (!c->weight && c->asked.quota_usec != QUOTA_UNLIMITED &&
                    units_read_dropin(c->unit, "CPUQuotaPeriodSec", &period_path, &period_content) >= 0) {
                        record.period_dropin_path = period_path;
                        record.period_written_text = period_content;
                        record.period_original_text = old ? old->period_original_text : c->period_original_text;
                }
                (void) ledger_put(m->ledger, &record, 1);
        }
        if (g) {
                g->managed->bandwidth.common.error = 0;
                if (c->weight)
                        g->managed->weight_held = true;
                else
                        g->managed->property = c->asked;
                manager_mark_dirty(m, g);
        } else {
                const Group *now = manager_find_group_by_unit(m, c->unit);

                if (now && now->managed)
                        manager_mark_dirty(m, (Group *) now);     /* the unit was restarted meanwhile: the new group adopts it */
                else
                        undo_late(m, c->unit);
        }
        property_call_free(c);
}

/* Before systemd is asked the first time, what was under the name of the drop-in is on record. */
static int remember_unit(Manager *m, const UnitInfo *unit, bool weight, const Bandwidth *owner, const Bandwidth *asked) {
        LedgerKind kind = weight ? LEDGER_UNIT_WEIGHT : LEDGER_UNIT_QUOTA;
        LedgerRecord record = { .kind = kind, .key = unit->id, .original = *owner, .written = *asked, .written_number = 100 };
        _cleanup_free_ char *path = NULL, *content = NULL, *period_path = NULL, *period_content = NULL;

        const LedgerRecord *old = ledger_find(m->ledger, kind, unit->id, 0, 0, 0);

        if (old) {
                /* Until systemd has answered and the new content is noted, both the old content and a drop-in that says the new value are ours. */
                record.original = old->original;
                record.original_text = old->original_text;
                record.written_text = old->written_text && old->written_text[0] ? old->written_text : NULL;
                record.dropin_path = old->dropin_path;
                record.period_original_text = old->period_original_text;
                record.period_written_text = old->period_written_text && old->period_written_text[0] ? old->period_written_text : NULL;
                record.period_dropin_path = old->period_dropin_path;
                return ledger_put(m->ledger, &record, 1);
        }
        if (units_read_dropin(unit->id, weight ? "CPUWeight" : "CPUQuota", &path, &content) >= 0) {
                record.dropin_path = path;
                record.original_text = content;
        }
        if (!weight && units_read_dropin(unit->id, "CPUQuotaPeriodSec", &period_path, &period_content) >= 0) {
                record.period_dropin_path = period_path;
                record.period_original_text = period_content;
        }
        return ledger_put(m->ledger, &record, 1);
}

/* What a release in the meantime would take away with the record. */
static int keep_originals(const Manager *m, PropertyCall *c) {
        const LedgerRecord *r = ledger_find(m->ledger, c->weight ? LEDGER_UNIT_WEIGHT : LEDGER_UNIT_QUOTA, c->unit, 0, 0, 0);
        int k = r ? free_and_strdup(&c->original_text, r->original_text) : 0;

        return k < 0 || !r ? k : free_and_strdup(&c->period_original_text, r->period_original_text);
}

void bandwidth_hold_property(Manager *m, Group *g, const Bandwidth *want, uint64_t due_usec) {
        Managed *x = g->managed;

        if (m->config.dry_run)
                return;
        if (x->property_wanted.quota_usec == want->quota_usec && x->property_wanted.period_usec == want->period_usec && x->property_due_usec)
                return;      /* on its way already */
        x->property_wanted = *want;
        x->property_due_usec = due_usec ? due_usec : 1;
        if (due_usec <= clock_monotonic_usec())
                bandwidth_property_tick(m, g, clock_monotonic_usec());
}

void bandwidth_property_tick(Manager *m, Group *g, uint64_t now) {
        Managed *x = g->managed;
        const UnitInfo *unit;
        PropertyCall *call;
        Bandwidth property, owner;
        int r;

        if (!x->property_due_usec || now < x->property_due_usec || x->property_busy || x->weight_busy || m->reloading || m->config.dry_run)
                return;
        unit = group_unit(m, g);
        if (!unit || !units_are_connected(m->units) || manager_is_paused(m, g, NULL))
                return;
        unit_property_bandwidth(unit, &property);
        if (!unit_owner_bandwidth(unit, &owner) || !x->property.quota_usec)
                owner = property;

        if (x->effective.enable_controller && !x->weight_held && unit->cpu_weight == UINT64_MAX) {
                /* The controller stays on in the slice as long as a unit there has a CPU property: hold one of our own, at the default weight. A record may be there already: of
                 * a transient unit of the same name, whose drop-ins went with it. */
                call = property_call_new(m, g, unit);
                if (call)
                        call->weight = true;
                if (!call || remember_unit(m, unit, true, &owner, &(Bandwidth) { 0 }) < 0 || keep_originals(m, call) < 0) {
                        if (call)
                                property_call_free(call);
                        x->property_due_usec = now + USEC_PER_SEC;
                        return;
                }
                call->owner = owner;
                x->weight_busy = true;
                r = units_set_weight(m->units, unit->id, 100, property_done, call);
                if (r < 0) {
                        x->weight_busy = false;
                        property_call_free(call);
                        x->property_due_usec = now + USEC_PER_SEC;
                } else
                        m->n_calls++;
                return;
        }
        x->property_due_usec = 0;
        if (!x->effective.manages_bandwidth)
                return;                      /* only the controller is wanted: the quota is the owner's */
        if (!x->resync && x->property_wanted.quota_usec == property.quota_usec &&
            (property.quota_usec == QUOTA_UNLIMITED || x->property_wanted.period_usec == property.period_usec))
                return;
        call = property_call_new(m, g, unit);
        if (!call || remember_unit(m, unit, false, &owner, &x->property_wanted) < 0 || keep_originals(m, call) < 0) {
                if (call)
                        property_call_free(call);
                x->property_due_usec = now + USEC_PER_SEC;
                return;
        }
        x->resync = false;
        call->asked = x->property_wanted;
        call->owner = owner;
        x->property_busy = true;
        r = units_set_quota(m->units, unit->id, x->property_wanted.quota_usec,
                            x->property_wanted.quota_usec == QUOTA_UNLIMITED ? 0 : x->property_wanted.period_usec, property_done, call);
        if (r < 0) {
                x->property_busy = false;
                property_call_free(call);
                x->property_due_usec = now + USEC_PER_SEC;
        } else
                m->n_calls++;
}

static bool of_this_group(const LedgerRecord *r, void *userdata) {
        const Group *g = ((void **) userdata)[0];
        const char *unit = ((void **) userdata)[1];

        switch (r->kind) {
        case LEDGER_BANDWIDTH:
                return r->inode == g->inode && streq(r->key, g->path);
        case LEDGER_UNIT_QUOTA:
        case LEDGER_UNIT_WEIGHT:
                return unit && streq(r->key, unit);
        default:
                return false;
        }
}

void bandwidth_release(Manager *m, Group *g, const char *trigger) {
        Managed *x = g->managed;
        BandwidthKnob *b = &x->bandwidth;
        const UnitInfo *unit = group_unit(m, g);
        void *context[2] = { g, unit ? unit->id : NULL };
        RestoreResult result = { 0 };
        Bandwidth before = b->observed;

        if (m->config.dry_run)
                return;
        restore_records(m->ledger, &m->root, m->host.base_slice_nsec, of_this_group, context, &result);
        if (result.n_restored || result.reload_due)
                decide_record(m, g, &(DecisionInput) { .knob = "bandwidth", .trigger = trigger, .before = before, .after = b->original },
                              "the owner's own setting is back%s", result.reload_due ? " (our drop-in is removed, systemd reloads)" : "");
        else if (result.n_left)
                decide_record(m, g, &(DecisionInput) { .knob = "bandwidth", .trigger = trigger, .before = before, .after = before },
                              "left as it is: somebody else has changed it since");
        if (result.reload_due)
                units_coalesced_reload(m);
        x->property = x->property_wanted = x->foreign_base = (Bandwidth) { 0 };
        x->property_due_usec = 0;
        x->weight_held = false;
        x->law_running = false;
        b->has_written = b->has_base = b->has_desired = b->has_original = false;
}
