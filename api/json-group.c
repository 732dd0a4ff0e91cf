/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A group as JSON: whose it is, which class it has and why, and for each knob what was, what is wanted, what the kernel has, and who last wrote. */

#include "api/internal.h"

const char *knob_status_to_string(KnobStatus s) {
        static const char *const names[] = {
                [KNOB_UNMANAGED] = "unmanaged",
                [KNOB_PENDING] = "pending",
                [KNOB_APPLIED] = "applied",
                [KNOB_UNLIMITED] = "unlimited",
                [KNOB_REFUSED] = "refused",
                [KNOB_FAILED] = "failed",
                [KNOB_ABSENT] = "absent",
                [KNOB_HELD] = "held",
                [KNOB_PAUSED] = "paused",
                [KNOB_DRY_RUN] = "dry_run",
        };

        return (size_t) s < ELEMENTSOF(names) ? names[s] : "unknown";
}

const char *writer_to_string(Writer w) {
        static const char *const names[] = {
                [WRITER_NONE] = "none",
                [WRITER_SYSTEMD] = "systemd",
                [WRITER_CGROUPFS] = "cgroupfs",
                [WRITER_THREADS] = "threads",
        };

        return (size_t) w < ELEMENTSOF(names) ? names[w] : "unknown";
}

static const char *const states[] = { "unmanaged", "failed", "pending", "held", "refused", "paused", "dry_run", "degraded", "applied" };

bool group_state_is_valid(const char *s) {
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (streq(states[i], s))
                        return true;
        return false;
}

const char *group_state(const GroupView *v, const char **ret_reason) {
        /* the worst first */
        static const struct {
                KnobStatus status;
                const char *state;
        } order[] = {
                { KNOB_FAILED, "failed" },
                { KNOB_PENDING, "pending" },
                { KNOB_HELD, "held" },
                { KNOB_REFUSED, "refused" },
                { KNOB_PAUSED, "paused" },
                { KNOB_DRY_RUN, "dry_run" },
                { KNOB_ABSENT, "degraded" },
        };
        const KnobCommon *knobs[] = {
                v->bandwidth ? &v->bandwidth->common : NULL,
                v->latency ? &v->latency->common : NULL,
                v->cookie ? &v->cookie->common : NULL,
        };
        const char *reason = v->unmanaged_reason;

        if (!v->service_class) {
                if (ret_reason)
                        *ret_reason = reason;
                return "unmanaged";
        }
        for (size_t i = 0; i < ELEMENTSOF(order); i++)
                for (size_t k = 0; k < ELEMENTSOF(knobs); k++)
                        if (knobs[k] && knobs[k]->status == order[i].status) {
                                if (ret_reason)
                                        *ret_reason = knobs[k]->reason[0] ? knobs[k]->reason : reason;
                                return order[i].state;
                        }
        if (ret_reason)
                *ret_reason = reason;
        return v->paused ? "paused" : "applied";
}

static int set_knob(json_t *o, const KnobCommon *k) {
        json_t *drift;
        int e = 0;

        drift = json_pack("{s:o, s:o, s:o, s:o, s:o}", "count", json_u64(k->n_drifts), "last_at", json_time_monotonic(k->last_drift_usec),
                          "writer", json_text(k->drift_writer[0] ? k->drift_writer : NULL), "value", json_text(k->drift_value[0] ? k->drift_value : NULL),
                          "held_until", json_time_monotonic(k->held_until_usec));
        e |= json_object_set_new(o, "status", json_text(knob_status_to_string(k->status)));
        e |= json_object_set_new(o, "reason", json_text(k->reason[0] ? k->reason : NULL));
        e |= json_object_set_new(o, "errno", json_errno(k->error));
        e |= json_object_set_new(o, "writer", json_text(writer_to_string(k->writer)));
        e |= json_object_set_new(o, "writes", json_u64(k->n_writes));
        e |= json_object_set_new(o, "last_write_at", json_time_monotonic(k->last_write_usec));
        e |= json_object_set_new(o, "drift", drift);
        return e;
}

static json_t *bandwidth_json(const BandwidthKnob *b, bool full) {
        json_t *o;
        int e = 0;

        if (!b)
                return json_null();
        o = json_object();
        e |= set_knob(o, &b->common);
        e |= json_object_set_new(o, "controller_off", json_boolean(b->controller_off));
        e |= json_object_set_new(o, "original", json_bandwidth(b->has_original, &b->original));
        e |= json_object_set_new(o, "base", json_bandwidth(b->has_base, &b->base));
        e |= json_object_set_new(o, "desired", json_bandwidth(b->has_desired, &b->desired));
        e |= json_object_set_new(o, "observed", json_bandwidth(b->has_observed, &b->observed));
        e |= json_object_set_new(o, "written", json_bandwidth(b->has_written, &b->written));
        if (full)
                e |= json_object_set_new(o, "plan", json_pack("{s:o, s:o, s:o, s:b, s:b}", "start", json_bandwidth(b->has_desired, &b->plan.start),
                                                              "floor_usec", json_u64(b->plan.floor_usec), "ceiling_usec", json_quota(b->plan.ceiling_usec),
                                                              "unlimited", b->plan.unlimited, "limited_by_owner", b->plan.limited_by_owner));
        return json_whole(o, e);
}

static json_t *latency_json(const LatencyKnob *l) {
        json_t *o;
        int e = 0;

        if (!l)
                return json_null();
        o = json_object();
        e |= set_knob(o, &l->common);
        e |= json_object_set_new(o, "mechanism", json_text(l->by_file ? "file" : "slice"));
        e |= json_object_set_new(o, "latency_nice", l->common.status == KNOB_UNMANAGED ? json_null() : json_integer(l->latency_nice));
        e |= json_object_set_new(o, "slice_nsec", l->by_file ? json_null() : json_u64(l->slice_nsec));
        e |= json_object_set_new(o, "threads", json_integer(l->n_threads));
        e |= json_object_set_new(o, "threads_covered", json_integer(l->n_covered));
        e |= json_object_set_new(o, "threads_other_policy", json_integer(l->n_other_policy));
        e |= json_object_set_new(o, "threads_failed", json_integer(l->n_failed));
        e |= json_object_set_new(o, "races", json_u64(l->n_races));
        return json_whole(o, e);
}

static json_t *cookie_json(const CookieKnob *c) {
        char id[24] = "";
        json_t *o;
        int e = 0;

        if (!c)
                return json_null();
        o = json_object();
        if (c->cookie_id != 0)
                (void) snprintf(id, sizeof(id), "%016llx", (unsigned long long) c->cookie_id);
        e |= set_knob(o, &c->common);
        e |= json_object_set_new(o, "mechanism", json_text(c->by_file ? "file" : "threads"));
        e |= json_object_set_new(o, "cookie_id", json_text(id[0] ? id : NULL));
        e |= json_object_set_new(o, "threads", json_integer(c->n_threads));
        e |= json_object_set_new(o, "threads_covered", json_integer(c->n_covered));
        e |= json_object_set_new(o, "threads_failed", json_integer(c->n_failed));
        return json_whole(o, e);
}

/* A counter that the kernel may lack: then it is unknown, not 0. */
static json_t *counter(bool has, uint64_t v) {
        return has ? json_u64(v) : json_null();
}

static json_t *sample_json(const GroupSample *s) {
        const CpuStat *t;
        const LawSample *d;
        json_t *o, *total, *pressure, *window;
        int e = 0;

        if (!s || s->at_usec == 0)
                return json_null();
        t = &s->total;
        d = &s->delta;
        total = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "usage_usec", json_u64(t->usage_usec),
                          "nr_periods", counter(t->has_bandwidth, t->nr_periods), "nr_throttled", counter(t->has_bandwidth, t->nr_throttled),
                          "throttled_usec", counter(t->has_bandwidth, t->throttled_usec), "nr_bursts", counter(t->has_bursts, t->nr_bursts),
                          "burst_usec", counter(t->has_bursts, t->burst_usec), "force_idle_usec", counter(t->has_force_idle, t->force_idle_usec),
                          "parked_usec", counter(t->has_loss, t->parked_usec), "lost_usec", counter(t->has_loss, t->lost_usec));
        if (s->has_pressure)
                pressure = json_pack("{s:o, s:o, s:i, s:o}", "some_total_usec", json_u64(s->pressure.some_total_usec),
                                     "full_total_usec", counter(s->pressure.has_full, s->pressure.full_total_usec),
                                     "some_avg10_permyriad", (int) s->pressure.some_avg10_permyriad,
                                     "full_avg10_permyriad", s->pressure.has_full ? json_integer(s->pressure.full_avg10_permyriad) : json_null());
        else
                pressure = json_null();
        window = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "usage_usec", json_u64(d->usage_usec),
                           "nr_periods", counter(t->has_bandwidth, d->nr_periods), "nr_throttled", counter(t->has_bandwidth, d->nr_throttled),
                           "throttled_usec", counter(t->has_bandwidth, d->throttled_usec), "nr_bursts", counter(d->has_bursts, d->nr_bursts),
                           "burst_usec", counter(d->has_bursts, d->burst_usec), "some_usec", counter(d->has_pressure, d->some_usec),
                           "full_usec", counter(d->has_pressure, d->full_usec), "force_idle_usec", counter(d->has_force_idle, d->force_idle_usec),
                           "ancestor_throttled", d->ancestor_throttled);
        o = json_object();
        e |= json_object_set_new(o, "at", json_time_monotonic(s->at_usec));
        e |= json_object_set_new(o, "window_usec", json_u64(s->window_usec));
        e |= json_object_set_new(o, "usage_permyriad_of_cpu", json_integer(s->usage_permyriad_of_cpu));
        e |= json_object_set_new(o, "throttled_permyriad", json_integer(s->throttled_permyriad));
        e |= json_object_set_new(o, "total", total);
        e |= json_object_set_new(o, "pressure", pressure);
        e |= json_object_set_new(o, "window", window);
        return json_whole(o, e);
}

json_t *json_group_view(const GroupView *v, bool full) {
        const char *reason = NULL, *state = group_state(v, &reason);
        json_t *o = json_object();
        int e = 0;

        e |= set_path(o, "cgroup", v->cgroup);
        e |= json_object_set_new(o, "inode", json_u64(v->inode));
        e |= json_object_set_new(o, "unit", json_text(v->unit));
        e |= json_object_set_new(o, "slice", json_text(v->slice));
        e |= json_object_set_new(o, "populated", json_boolean(v->populated));
        e |= json_object_set_new(o, "class", json_text(v->service_class ? v->service_class->name : NULL));
        e |= json_object_set_new(o, "source", json_text(class_source_to_string(v->source)));
        e |= json_object_set_new(o, "rule", json_text(v->rule ? v->rule->name : NULL));
        e |= json_object_set_new(o, "inherited_from", json_text(v->inherited_from));
        e |= json_object_set_new(o, "unknown_class", json_text(v->unknown_class));
        e |= json_object_set_new(o, "assignment", v->assignment ? json_assignment(v->assignment, NULL) : json_null());
        e |= json_object_set_new(o, "state", json_text(state));
        e |= json_object_set_new(o, "state_reason", json_text(reason));
        e |= json_object_set_new(o, "protected", json_boolean(v->is_protected));
        e |= json_object_set_new(o, "left_to_other_manager", json_boolean(v->left_to_other_manager));
        e |= json_object_set_new(o, "unmanaged_reason", json_text(v->unmanaged_reason));
        e |= json_object_set_new(o, "paused", json_boolean(v->paused));
        e |= json_object_set_new(o, "paused_until", v->paused ? json_time_monotonic(v->paused_until_usec) : json_null());
        e |= json_object_set_new(o, "drift", json_boolean(v->drift));
        e |= json_object_set_new(o, "bandwidth", bandwidth_json(v->bandwidth, full));
        e |= json_object_set_new(o, "latency", latency_json(v->latency));
        e |= json_object_set_new(o, "cookie", cookie_json(v->cookie));
        e |= json_object_set_new(o, "sample", sample_json(v->sample));
        e |= json_object_set_new(o, "law", json_text(v->law_state ? law_kind_to_string(v->law_config.law) : NULL));
        e |= json_object_set_new(o, "last_decision", v->last_decision ? json_decision(v->last_decision) : json_null());
        if (full)
                e |= json_object_set_new(o, "effective_class", v->service_class ? class_to_json(&v->effective_class) : json_null());
        return json_whole(o, e);
}

json_t *json_group(ApiServer *s, const Group *g, bool full) {
        GroupView v = {};

        group_view(s->manager, g, &v);
        return json_group_view(&v, full);
}
