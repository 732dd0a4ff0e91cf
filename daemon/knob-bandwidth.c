/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bandwidth: from the class and the owner's word to cpu.max and cpu.max.burst.
 *
 * Level-triggered: each call reads what the kernel has, finds out whose value that is, works out what is wanted, and writes only the difference. For a unit the
 * value is written to the kernel at once (a throttled service can't wait for PID 1) and then given to systemd as a run-time property, so that
 * `systemctl show` agrees and a reload puts back ours. */

#include "daemon/knob-bandwidth.h"

static void set_status(KnobCommon *c, KnobStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void set_status(KnobCommon *c, KnobStatus status, const char *format, ...) {
        va_list ap;

        c->status = status;
        va_start(ap, format);
        (void) vsnprintf(c->reason, sizeof(c->reason), format, ap);
        va_end(ap);
}

static void law_config_make(const Manager *m, const Group *g, const BandwidthPlan *plan, LawConfig *ret) {
        const ServiceClass *c = &g->managed->effective;

        *ret = (LawConfig) {
                .law = c->law,
                .targets = c->targets,
                .base = plan->start,
                .floor_usec = plan->floor_usec,
                .ceiling_usec = plan->ceiling_usec,
                .burst = plan->burst,
                .may_raise = c->priority >= 300,     /* batch and below: a hog is always throttled and would climb to its ceiling */
                .has_latency_nice = c->has_latency_nice,
                .latency_nice = c->latency_nice,
                .priority = c->priority,
                .n_cpus = m->host.n_cpus,
        };
}

static bool law_config_same(const LawConfig *a, const LawConfig *b) {
        return a->law == b->law && a->targets.throttled_permyriad == b->targets.throttled_permyriad &&
               a->targets.strictness == b->targets.strictness && bandwidth_equal(&a->base, &b->base) && a->floor_usec == b->floor_usec &&
               a->ceiling_usec == b->ceiling_usec && a->burst.kind == b->burst.kind && a->burst.value == b->burst.value &&
               a->may_raise == b->may_raise && a->has_latency_nice == b->has_latency_nice && a->latency_nice == b->latency_nice &&
               a->priority == b->priority && a->n_cpus == b->n_cpus;
}

static void cached_fds_close(Managed *x) {
        if (x->stat_fd >= 0)
                (void) close(x->stat_fd);
        if (x->pressure_fd >= 0)
                (void) close(x->pressure_fd);
        if (x->max_fd >= 0)
                (void) close(x->max_fd);
        x->stat_fd = x->pressure_fd = x->max_fd = -1;
}

/* Starts, restarts or stops the law. adopted: the kernel already has a value that is ours (a restart of the daemon): go on from there. */
static void law_update(Manager *m, Group *g, const BandwidthPlan *plan, const Bandwidth *adopted) {
        Managed *x = g->managed;
        LawConfig config;

        law_config_make(m, g, plan, &config);
        if (plan->unlimited || !law_is_moving(config.law)) {
                if (x->law_running)
                        cached_fds_close(x);
                x->law_running = false;
                x->law_config = config;
                law_start(&config, &x->law_value);
                return;
        }
        if (x->law_running && law_config_same(&config, &x->law_config))
                return;
        x->law_config = config;
        law_reset(&x->law_config, &x->law_state);
        law_start(&x->law_config, &x->law_value);
        if (adopted && adopted->quota_usec >= plan->floor_usec && adopted->quota_usec <= plan->ceiling_usec &&
            adopted->period_usec == plan->start.period_usec)
                x->law_value = *adopted;
        x->law_running = true;
        x->next_sample_usec = 0;
        manager_wake(m);
}

/* What is wanted now: the plan's start, or where the law stands. */
static void desired_now(const Group *g, Writer writer, const BandwidthPlan *plan, uint64_t period_usec, Bandwidth *ret) {
        const Managed *x = g->managed;

        *ret = plan->start;
        ret->period_usec = period_usec;
        if (!plan->unlimited && x->law_value.quota_usec) {
                ret->quota_usec = x->law_value.quota_usec;
                /* The law's value is of the period that was live then, which the kernel may have stretched. */
                if (ret->quota_usec != QUOTA_UNLIMITED && x->law_value.period_usec && x->law_value.period_usec != ret->period_usec)
                        ret->quota_usec = MAX_OF((uint64_t) ((__uint128_t) ret->quota_usec * ret->period_usec / x->law_value.period_usec), QUOTA_MIN_USEC);
                ret->burst_usec = ret->quota_usec == QUOTA_UNLIMITED ? 0 : MIN_OF(x->law_value.burst_usec, ret->quota_usec);
        }
        if (writer == WRITER_SYSTEMD && ret->quota_usec != QUOTA_UNLIMITED) {
                uint64_t rounded = quota_round_for_systemd(ret->quota_usec, ret->period_usec);

                if (rounded != ret->quota_usec) {
                        ret->quota_usec = rounded;
                        ret->burst_usec = MIN_OF(ret->burst_usec, rounded);
                }
        }
}

static void controller_off(Manager *m, Group *g, Writer writer) {
        Managed *x = g->managed;
        BandwidthKnob *b = &x->bandwidth;
        Bandwidth base = { QUOTA_UNLIMITED, PERIOD_DEFAULT_USEC, 0 }, want;

        b->controller_off = true;
        b->has_observed = false;
        if (!m->has_root || !m->root.has_cpu) {
                set_status(&b->common, KNOB_ABSENT, "this host has no cgroup v2 cpu controller");
                return;
        }
        if (!x->effective.enable_controller) {
                set_status(&b->common, KNOB_REFUSED,
                           "the cpu controller is off here and the class does not say enable_controller (it would change the shares of every sibling)");
                return;
        }
        if (writer != WRITER_SYSTEMD) {
                set_status(&b->common, KNOB_REFUSED, "the cpu controller is off in this delegated subtree: its manager has to turn it on");
                return;
        }
        b->common.writer = WRITER_SYSTEMD;
        b->base = base;
        b->has_base = true;
        resolve_bandwidth(&x->effective, &base, &b->plan);
        law_update(m, g, &b->plan, NULL);
        desired_now(g, writer, &b->plan, b->plan.start.period_usec, &want);
        b->desired = want;
        b->has_desired = true;
        if (manager_is_paused(m, g, NULL)) {
                set_status(&b->common, KNOB_PAUSED, "paused: the cpu controller is off and stays so until it is resumed");
                return;
        }
        set_status(&b->common, m->config.dry_run ? KNOB_DRY_RUN : KNOB_PENDING, "turning the cpu controller on through systemd");
        bandwidth_hold_property(m, g, &want, clock_monotonic_usec());
}

static bool paused_or_dry(Manager *m, Group *g, Writer writer, const Bandwidth *live, const Bandwidth *want, const char *trigger) {
        BandwidthKnob *b = &g->managed->bandwidth;

        if (manager_is_paused(m, g, NULL)) {
                set_status(&b->common, KNOB_PAUSED, "paused: %s", "nothing is written until it is resumed");
                return true;
        }
        if (m->config.dry_run) {
                bool news = b->common.status != KNOB_DRY_RUN || !b->has_written || !bandwidth_equal(&b->written, want);

                set_status(&b->common, KNOB_DRY_RUN, "dry run: decided, not written");
                /* `written` remembers what would have been written, so that the same thing is said once. */
                b->written = *want;
                b->has_written = true;
                if (news)
                        decide_record(m, g, &(DecisionInput) { .knob = "bandwidth", .trigger = trigger, .before = *live, .after = *want },
                                      "would set quota %" PRIu64 " us of %" PRIu64 " us, burst %" PRIu64 " us through %s",
                                      want->quota_usec, want->period_usec, want->burst_usec, writer == WRITER_SYSTEMD ? "systemd" : "cgroupfs");
                return true;
        }
        return false;
}

/* Whether quota and burst are each one of the values that a record names. */
static bool left_by_a_crash(const LedgerRecord *r, const Bandwidth *live) {
        const Bandwidth *known[] = { &r->written, &r->previous, &r->original };
        bool quota = false, burst = live->burst_usec == 0;

        for (size_t i = 0; i < ELEMENTSOF(known); i++) {
                quota = quota || (live->quota_usec == known[i]->quota_usec && live->period_usec == known[i]->period_usec);
                burst = burst || live->burst_usec == known[i]->burst_usec;
        }
        return quota && burst;
}

void bandwidth_reconcile(Manager *m, Group *g, const char *trigger) {
        Managed *x = g->managed;
        BandwidthKnob *b = &x->bandwidth;
        _cleanup_close_ int fd = -1;
        Bandwidth live, base, want, property;
        const LedgerRecord *record;
        const UnitInfo *unit;
        char reason[160];
        bool was_off = b->controller_off, has_burst, base_moved, adopted = false, hold_over = false, settled = false, fresh_original = false;
        DriftVerdict verdict;
        Writer writer;
        uint64_t now = clock_monotonic_usec();
        int r;

        if (!x->effective.manages_bandwidth && (b->has_written || x->property.quota_usec || (x->weight_held && !x->effective.enable_controller)))
                bandwidth_release(m, g, trigger);
        if (!x->effective.manages_bandwidth && !x->effective.enable_controller) {
                set_status(&b->common, KNOB_UNMANAGED, "%s", "");
                x->law_running = false;
                return;
        }
        writer = group_writer(m, g, reason, sizeof(reason));
        if (writer == WRITER_NONE) {
                set_status(&b->common, m->units_listed ? KNOB_REFUSED : KNOB_PENDING, "%s", reason);
                x->left_to_other_manager = m->units_listed;
                (void) snprintf(x->unmanaged_reason, sizeof(x->unmanaged_reason), "%s", reason);
                return;
        }
        x->left_to_other_manager = false;
        x->unmanaged_reason[0] = 0;
        b->common.writer = writer;
        fd = cgroup_open(&m->root, g->path);
        if (fd < 0)
                return;                      /* it vanished: the tree will say so */
        r = bandwidth_read(fd, &live, &has_burst);
        if (r == -ENOENT) {
                controller_off(m, g, writer);
                return;
        }
        if (r < 0) {
                if (r != -ENODEV)
                        set_status(&b->common, KNOB_FAILED, "reading cpu.max failed: %s", strerror(-r));
                return;
        }
        b->controller_off = false;
        if (m->host.facts[FACT_BURST].state == FACT_UNKNOWN && host_probe_group(fd, &m->host))
                log_fields(LOG_INFO, MESSAGE_HOST_FACT, "The first group with the cpu controller: its files are known now", NULL);
        b->observed = live;
        b->has_observed = true;
        record = ledger_find(m->ledger, LEDGER_BANDWIDTH, g->path, g->inode, 0, 0);
        if (record && !b->has_written && record->has_written && !m->config.dry_run) {
                /* A restart of the daemon: what stands there may be ours. */
                b->written = record->written;
                b->has_written = true;
                b->original = record->original;
                b->has_original = true;
                adopted = bandwidth_same_or_rescaled(&live, &record->written);
                if (!adopted && left_by_a_crash(record, &live)) {
                        /* It ended between the ledger and the kernel, or between two steps of a change: nobody else has written. */
                        b->written = live;
                        adopted = true;
                }
        }
        if (!b->has_original) {
                b->original = live;
                b->has_original = true;
                fresh_original = true;
        }
        unit = writer == WRITER_SYSTEMD ? group_unit(m, g) : NULL;
        if (unit && !x->property.quota_usec && unit_dropin_is_ours(m, unit->id)) {
                record = ledger_find(m->ledger, LEDGER_UNIT_QUOTA, unit->id, 0, 0, 0);
                if (record)
                        x->property = record->written;
        }
        if (b->common.held_until_usec) {
                if (now < b->common.held_until_usec) {
                        if (!b->settling)
                                set_status(&b->common, KNOB_HELD, "left as somebody else wrote it (%s) for %" PRIu64 " s more", b->common.drift_value,
                                   (b->common.held_until_usec - now) / USEC_PER_SEC + 1);
                        return;
                }
                b->common.held_until_usec = 0;
                settled = b->settling;
                hold_over = !settled;
                if (hold_over)
                        x->drift_window_count = 0;
                b->settling = false;
        }

        /* Whose value is it that the kernel has now? */
        if (!m->config.dry_run && !manager_is_paused(m, g, NULL)) {
                verdict = b->has_written ? bandwidth_judge(m, g, writer, &live, was_off) : DRIFT_NONE;
                if (verdict == DRIFT_FOREIGN && hold_over) {
                        /* The hold is over: adopt what stands there, or take it back, once. */
                        if (x->effective.drift == DRIFT_ADOPT)
                                bandwidth_adopt(m, g, &live);
                        trigger = "drift";
                } else if (verdict == DRIFT_FOREIGN && !settled) {
                        bandwidth_settle(m, g, &live);
                        return;
                } else if (verdict == DRIFT_FOREIGN && !bandwidth_handle_foreign(m, g, &live, "foreign"))
                        return;
                if (verdict == DRIFT_RESET) {
                        trigger = "reload";
                        (void) snprintf(b->common.drift_writer, sizeof(b->common.drift_writer), "systemd-reload");
                }
        }

        bandwidth_base(m, g, writer, &live, &base);
        base_moved = b->has_base && !(b->base.quota_usec == base.quota_usec && b->base.period_usec == base.period_usec);
        if (base_moved)
                trigger = "owner";
        b->base = base;
        b->has_base = true;
        if (fresh_original && unit) {
                /* A restarted unit begins with our own drop-in's value: the original is what its owner says. */
                b->original.quota_usec = base.quota_usec;
                b->original.period_usec = base.period_usec;
        }
        if (!x->effective.manages_bandwidth) {
                /* Only the controller is wanted (a latency file, accounting): hold it with a weight. */
                b->desired = live;
                set_status(&b->common, KNOB_UNMANAGED, "%s", "");
                bandwidth_hold_property(m, g, &(Bandwidth) { QUOTA_UNLIMITED, PERIOD_DEFAULT_USEC, 0 }, now);
                return;
        }
        resolve_bandwidth(&x->effective, &base, &b->plan);
        law_update(m, g, &b->plan, adopted ? &live : NULL);
        desired_now(g, writer, &b->plan, b->plan.start.period_usec, &want);
        if (b->plan.unlimited)
                want = (Bandwidth) { QUOTA_UNLIMITED, live.period_usec, 0 };
        if (!has_burst)
                want.burst_usec = 0;
        b->desired = want;
        b->has_desired = true;
        if (paused_or_dry(m, g, writer, &live, &want, trigger))
                return;
        if (!bandwidth_equal(&live, &want) && !(b->has_written && bandwidth_equal(&b->written, &want) && bandwidth_same_or_rescaled(&live, &want))) {
                r = bandwidth_write_now(m, g, fd, &live, &want, trigger, NULL);
                if (r < 0)
                        return;
        } else if (!b->has_written) {
                /* It was right already. From here on another value is somebody's newer word (a container runtime sets its limit after the mkdir), not one to write over. */
                b->written = live;
                b->has_written = true;
        }
        if (unit) {
                unit_property_bandwidth(unit, &property);
                if (x->effective.enable_controller || want.quota_usec != property.quota_usec ||
                    (want.quota_usec != QUOTA_UNLIMITED && want.period_usec != property.period_usec))
                        bandwidth_hold_property(m, g, &want, x->law_running && streq(trigger, "law") ? now + PROPERTY_SETTLE_USEC : now);
        }
        if (b->plan.unlimited)
                set_status(&b->common, KNOB_UNLIMITED, "the owner set no quota, and the class is relative to it: nothing to limit or to burst");
        else if (b->plan.limited_by_owner)
                set_status(&b->common, KNOB_APPLIED, "the owner's limit of %" PRIu64 " us of %" PRIu64 " us is the ceiling", base.quota_usec, base.period_usec);
        else if (unit && unit->overriding_dropin)
                set_status(&b->common, KNOB_APPLIED, "%.120s sorts after our drop-in: written again after each reload", unit->overriding_dropin);
        else
                set_status(&b->common, KNOB_APPLIED, "%s", "");
        b->common.error = 0;
}

void bandwidth_apply_law(Manager *m, Group *g, const LawDecision *d) {
        Managed *x = g->managed;
        BandwidthKnob *b = &x->bandwidth;
        _cleanup_close_ int fd = -1;
        Bandwidth live, want;

        if (!d->changed || b->common.held_until_usec || !b->has_desired || b->controller_off)
                return;
        fd = cgroup_open(&m->root, g->path);
        if (fd < 0 || bandwidth_read(fd, &live, NULL) < 0)
                return;
        x->law_value.quota_usec = d->quota_usec;
        x->law_value.burst_usec = d->burst_usec;
        x->law_value.period_usec = live.period_usec;
        desired_now(g, b->common.writer, &b->plan, live.period_usec, &want);
        b->desired = want;
        if (bandwidth_equal(&live, &want))
                return;
        if (paused_or_dry(m, g, b->common.writer, &live, &want, "law"))
                return;
        if (bandwidth_write_now(m, g, fd, &live, &want, "law", d) >= 0 && b->common.writer == WRITER_SYSTEMD)
                bandwidth_hold_property(m, g, &want, clock_monotonic_usec() + PROPERTY_SETTLE_USEC);
}

void bandwidth_check_drift(Manager *m, Group *g) {
        Managed *x = g->managed;
        BandwidthKnob *b = &x->bandwidth;
        _cleanup_close_ int fd = -1;
        Bandwidth live;
        int r;

        if (!x->effective.manages_bandwidth && !x->effective.enable_controller)
                return;
        fd = cgroup_open(&m->root, g->path);
        if (fd < 0)
                return;
        r = bandwidth_read(fd, &live, NULL);
        if (r == -ENOENT) {
                if (!b->controller_off || b->common.status == KNOB_PENDING)
                        manager_mark_dirty(m, g);
                return;
        }
        if (r < 0)
                return;
        if (b->controller_off || !b->has_observed || !bandwidth_equal(&live, &b->observed) ||
            (b->common.held_until_usec && clock_monotonic_usec() >= b->common.held_until_usec) || b->common.status == KNOB_PENDING)
                manager_mark_dirty(m, g);
        b->observed = live;
        b->has_observed = true;
}

/* The drop-in under our name holds the owner's word now: that is what an undo must leave. The period's drop-in may still be ours. */
static void remember_owners_dropin(Manager *m, const char *unit, const Bandwidth *property) {
        const LedgerRecord *old = ledger_find(m->ledger, LEDGER_UNIT_QUOTA, unit, 0, 0, 0);
        _cleanup_free_ char *path = NULL, *content = NULL, *period_path = NULL, *period_content = NULL, *period_original = NULL;
        LedgerRecord record = { .kind = LEDGER_UNIT_QUOTA, .key = (char *) unit, .original = *property, .written_text = (char *) "", .has_written = true };

        if (!old)
                return;
        record.written = old->written;
        if (units_read_dropin(unit, "CPUQuota", &path, &content) >= 0) {
                record.dropin_path = path;
                record.original_text = content;
        }
        if (units_read_dropin(unit, "CPUQuotaPeriodSec", &period_path, &period_content) >= 0) {
                record.period_dropin_path = period_path;
                if (record_owns_dropin(old, "CPUQuotaPeriodSec", period_content)) {
                        period_original = old->period_original_text ? strdup(old->period_original_text) : NULL;
                        record.period_written_text = period_content;
                        record.period_original_text = period_original;
                } else {
                        record.period_written_text = (char *) "";
                        record.period_original_text = period_content;
                }
        }
        (void) ledger_put(m->ledger, &record, 1);
}

/* An admin (or whoever else talks to systemd) set CPUQuota= on a unit whose quota was ours. */
static void owner_took_property(Manager *m, Group *g, const UnitInfo *u, const Bandwidth *property) {
        Managed *x = g->managed;
        BandwidthKnob *b = &x->bandwidth;
        LedgerRecord record = { .kind = LEDGER_BANDWIDTH, .key = g->path, .inode = g->inode };
        Bandwidth live = *property, former_base = b->base;
        bool had_base = b->has_base;

        x->property = x->property_wanted = (Bandwidth) { 0 };
        remember_owners_dropin(m, u->id, property);
        live.burst_usec = b->written.burst_usec;
        /* One call to systemd is a whole change: nothing to wait for. */
        b->common.held_until_usec = 0;
        b->settling = false;
        if (!bandwidth_handle_foreign(m, g, &live, "admin-property"))
                return;
        if (x->effective.drift == DRIFT_ENFORCE) {
                if (had_base)
                        x->foreign_base = former_base;
                return;
        }
        b->original.quota_usec = property->quota_usec;
        b->original.period_usec = property->period_usec;
        x->law_running = false;
        /* The property is the base by itself now. Our own value may still be in the kernel, which refuses a quota below our burst. */
        x->foreign_base = (Bandwidth) { 0 };
        if (b->has_observed) {
                record.original = b->original;
                record.written = b->written = b->observed;
                record.has_written = true;
                (void) ledger_put(m->ledger, &record, 1);
        }
}

void bandwidth_units_changed(Manager *m, Group *g, const UnitInfo *u) {
        Managed *x = g->managed;
        Bandwidth property;

        if (!x || x->property_busy || !x->property.quota_usec) {
                manager_mark_dirty(m, g);
                return;
        }
        unit_property_bandwidth(u, &property);
        if (property.quota_usec == x->property.quota_usec &&
            (property.quota_usec == QUOTA_UNLIMITED || property.period_usec == x->property.period_usec)) {
                manager_mark_dirty(m, g);
                return;
        }
        if (unit_dropin_is_ours(m, u->id)) {
                /* Our drop-in stands, but systemd has another value: a drop-in that sorts after ours won at a reload. Ask once more. */
                x->property = (Bandwidth) { 0 };
                x->resync = true;
        } else {
                /* Somebody set the property: the drop-in under our name is theirs now, and so is the value. */
                owner_took_property(m, g, u, &property);
        }
        manager_mark_dirty(m, g);
}
