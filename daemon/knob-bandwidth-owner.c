/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose value is it? The owner's word behind a group's bandwidth, and what to do about a foreign write. */

#include "daemon/knob-bandwidth.h"

static void from_per_sec(uint64_t per_sec_usec, uint64_t period_usec, Bandwidth *ret) {
        uint64_t period = period_usec == USEC_INFINITY || period_usec == 0 ? PERIOD_DEFAULT_USEC : period_usec;

        /* systemd moves the period into the kernel's range, and stretches it where the quota would be below 1 ms (cgroup_cpu_adjust_period). */
        period = CLAMP_TO(period, PERIOD_MIN_USEC, PERIOD_MAX_USEC);
        if (per_sec_usec != USEC_INFINITY && per_sec_usec > 0) {
                uint64_t least = (QUOTA_MIN_USEC * USEC_PER_SEC + per_sec_usec - 1) / per_sec_usec;

                period = MIN_OF(MAX_OF(period, least), PERIOD_MAX_USEC);
        }
        *ret = (Bandwidth) {
                .quota_usec = per_sec_usec == USEC_INFINITY ? QUOTA_UNLIMITED : quota_from_per_sec_usec(per_sec_usec, period),
                .period_usec = period,
        };
}

void unit_property_bandwidth(const UnitInfo *u, Bandwidth *ret) {
        from_per_sec(u->quota_per_sec_usec, u->quota_period_usec, ret);
}

bool unit_owner_bandwidth(const UnitInfo *u, Bandwidth *ret) {
        if (!u->owner_quota_known)
                return false;
        from_per_sec(u->owner_quota_per_sec_usec, u->owner_quota_period_usec, ret);
        return true;
}

bool record_owns_dropin(const LedgerRecord *r, const char *property, const char *content) {
        bool period = streq(property, "CPUQuotaPeriodSec");
        const char *written = period ? r->period_written_text : r->written_text;

        if (written && streq(written, content))
                return true;
        if (written && !written[0])
                return false;                /* noted as somebody else's */
        /* A crash came between the call and the note: what systemd would have written for our value is ours, as is what we had before. */
        if (period)
                return units_dropin_says(r->key, property, content, r->written.period_usec);
        if (r->kind == LEDGER_UNIT_WEIGHT)
                return units_dropin_says(r->key, property, content, (uint64_t) r->written_number);
        return units_dropin_says(r->key, property, content,
                                 r->written.quota_usec == QUOTA_UNLIMITED ? USEC_INFINITY : quota_to_per_sec_usec(r->written.quota_usec, r->written.period_usec));
}

bool unit_dropin_is_ours(const Manager *m, const char *unit) {
        const LedgerRecord *record = ledger_find(m->ledger, LEDGER_UNIT_QUOTA, unit, 0, 0, 0);
        _cleanup_free_ char *path = NULL, *content = NULL;

        return record && units_read_dropin(unit, "CPUQuota", &path, &content) >= 0 && record_owns_dropin(record, "CPUQuota", content);
}

void bandwidth_base(const Manager *m, const Group *g, Writer writer, const Bandwidth *live, Bandwidth *ret) {
        const Managed *x = g->managed;
        const BandwidthKnob *b = &x->bandwidth;
        const UnitInfo *unit;

        if (x->foreign_base.quota_usec) {
                *ret = x->foreign_base;
                ret->burst_usec = b->original.burst_usec;
                return;
        }
        unit = writer == WRITER_SYSTEMD ? group_unit(m, g) : NULL;
        if (!unit) {
                *ret = b->has_original ? b->original : *live;
                return;
        }
        if (x->property.quota_usec || ledger_find(m->ledger, LEDGER_UNIT_QUOTA, unit->id, 0, 0, 0)) {
                /* systemd's property is ours (or was asked for): the owner's word is in the files. */
                const LedgerRecord *record = ledger_find(m->ledger, LEDGER_UNIT_QUOTA, unit->id, 0, 0, 0);

                if (!unit_owner_bandwidth(unit, ret))
                        *ret = record ? record->original : b->original;
        } else
                unit_property_bandwidth(unit, ret);
        ret->burst_usec = b->original.burst_usec;
}

bool bandwidth_same_or_rescaled(const Bandwidth *live, const Bandwidth *written) {
        uint64_t stretched, tolerance;

        if (bandwidth_equal(live, written))
                return true;
        if (live->quota_usec == QUOTA_UNLIMITED || written->quota_usec == QUOTA_UNLIMITED || live->period_usec <= written->period_usec ||
            written->period_usec == 0)
                return false;
        /* The same ratio of quota to period, within one percent. */
        stretched = (uint64_t) ((__uint128_t) written->quota_usec * live->period_usec / written->period_usec);
        tolerance = stretched / 100 + 1;
        return live->quota_usec + tolerance >= stretched && live->quota_usec <= stretched + tolerance;
}

DriftVerdict bandwidth_judge(const Manager *m, const Group *g, Writer writer, const Bandwidth *live, bool was_off) {
        const Managed *x = g->managed;
        const BandwidthKnob *b = &x->bandwidth;

        if (bandwidth_same_or_rescaled(live, &b->written))
                return DRIFT_NONE;
        if (writer == WRITER_SYSTEMD) {
                const UnitInfo *unit = group_unit(m, g);
                Bandwidth property;

                /* Between our write and systemd's own, or in a reload, what stands there is on its way. */
                if (m->reloading || x->property_busy)
                        return DRIFT_RESET;
                /* The controller went off and on again: everything starts from nothing. */
                if (was_off)
                        return DRIFT_RESET;
                /* systemd never writes a burst: where only that differs, somebody else did. */
                if (live->burst_usec != b->written.burst_usec)
                        return DRIFT_FOREIGN;
                if (unit) {
                        unit_property_bandwidth(unit, &property);
                        if (live->quota_usec == property.quota_usec &&
                            (live->period_usec == property.period_usec || live->quota_usec == QUOTA_UNLIMITED))
                                return DRIFT_RESET;
                }
                if (x->property.quota_usec && live->quota_usec == x->property.quota_usec && live->period_usec == x->property.period_usec)
                        return DRIFT_RESET;
        }
        return DRIFT_FOREIGN;
}

static void describe_drift(BandwidthKnob *b, const Bandwidth *live) {
        if (live->quota_usec == QUOTA_UNLIMITED)
                (void) snprintf(b->common.drift_value, sizeof(b->common.drift_value), "max %" PRIu64 ", burst %" PRIu64, live->period_usec, live->burst_usec);
        else
                (void) snprintf(b->common.drift_value, sizeof(b->common.drift_value), "%" PRIu64 " %" PRIu64 ", burst %" PRIu64, live->quota_usec,
                                live->period_usec, live->burst_usec);
}

/* Another writer may be in the middle of a change of several steps (burst first, then quota): let it finish before anything of ours is written. */
void bandwidth_settle(Manager *m, Group *g, const Bandwidth *live) {
        BandwidthKnob *b = &g->managed->bandwidth;
        const UnitInfo *unit = group_unit(m, g);
        uint64_t now = clock_monotonic_usec();

        if (unit)
                units_refresh(m->units, unit->id);
        describe_drift(b, live);
        b->common.held_until_usec = now + SETTLE_USEC;
        b->settling = true;
        b->common.status = KNOB_HELD;
        (void) snprintf(b->common.reason, sizeof(b->common.reason), "somebody else has just written %s: waiting for the end of it", b->common.drift_value);
        manager_wake(m);
}

static void hold(BandwidthKnob *b, uint64_t now) {
        b->settling = false;
        b->common.held_until_usec = now + HOLD_USEC;
        b->common.status = KNOB_HELD;
        (void) snprintf(b->common.reason, sizeof(b->common.reason), "left as somebody else wrote it (%s) for %u s", b->common.drift_value,
                        (unsigned) (HOLD_USEC / USEC_PER_SEC));
}

void bandwidth_adopt(Manager *m, Group *g, const Bandwidth *live) {
        Managed *x = g->managed;
        BandwidthKnob *b = &x->bandwidth;
        LedgerRecord record = { .kind = LEDGER_BANDWIDTH, .key = g->path, .inode = g->inode, .has_written = true, .written = *live };

        x->foreign_base = *live;
        x->law_running = false;    /* its config has a new base: start anew */
        if (b->has_written && live->burst_usec != b->written.burst_usec)
                b->original.burst_usec = live->burst_usec;
        /* At a stop this value, not the one before it, is what the owner wants back. */
        b->original.quota_usec = live->quota_usec;
        b->original.period_usec = live->period_usec;
        b->written = *live;
        b->has_written = true;
        record.original = b->original;
        if (!m->config.dry_run)
                (void) ledger_put(m->ledger, &record, 1);
}

bool bandwidth_handle_foreign(Manager *m, Group *g, const Bandwidth *live, const char *by) {
        Managed *x = g->managed;
        BandwidthKnob *b = &x->bandwidth;
        uint64_t now = clock_monotonic_usec();
        bool too_often;
        const char *what;

        if (now - x->drift_window_start_usec > 60 * USEC_PER_SEC) {
                x->drift_window_start_usec = now;
                x->drift_window_count = 0;
        }
        too_often = ++x->drift_window_count > DRIFTS_PER_MINUTE;
        b->common.n_drifts++;
        b->common.last_drift_usec = now;
        (void) snprintf(b->common.drift_writer, sizeof(b->common.drift_writer), "%s", by);
        describe_drift(b, live);
        switch (x->effective.drift) {
        case DRIFT_ENFORCE:
                what = too_often ? "written too often by somebody else: held" : "writing ours again (enforce)";
                break;
        case DRIFT_HOLD:
                what = "left for a while (hold)";
                break;
        case DRIFT_ADOPT:
        default:
                what = too_often ? "written too often by somebody else: held" : "taken as the new base (adopt)";
                break;
        }
        decide_record(m, g, &(DecisionInput) { .knob = "bandwidth", .trigger = "drift", .before = b->has_written ? b->written : *live, .after = *live },
                      "%s wrote %s; %s", streq(by, "admin-property") ? "somebody set the unit's property and" : "somebody", b->common.drift_value, what);
        if (x->effective.drift == DRIFT_HOLD || too_often) {
                hold(b, now);
                return false;
        }
        if (x->effective.drift == DRIFT_ADOPT)
                bandwidth_adopt(m, g, live);
        return true;
}
