/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dry run of an assignment: the same planning as for real, and the steps that would follow, without taking them. */

#include "daemon/knob-bandwidth.h"
#include "daemon/knob-threads.h"

static int add_write(json_t *writes, const char *cgroup, const char *knob, const char *writer, const char *target, const char *value) {
        json_t *o = json_pack("{s:o, s:s, s:s, s:s, s:s}", "cgroup", json_stringn_nocheck(cgroup, strlen(cgroup)), "knob", knob, "writer", writer, "target", target, "value", value);

        return o ? json_array_append_new(writes, o) : -1;
}

static void note(json_t *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(json_t *notes, const char *format, ...) {
        char text[512];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        (void) json_array_append_new(notes, json_string(text));
}

static void preview_bandwidth(Manager *m, Group *g, const ServiceClass *c, Writer writer, json_t *writes, json_t *notes, bool *ret_enables) {
        _cleanup_close_ int fd = cgroup_open(&m->root, g->path);
        const UnitInfo *unit = group_unit(m, g);
        const Managed *x = g->managed;
        Bandwidth live, base, want, property;
        BandwidthStep steps[4];
        BandwidthPlan plan;
        LawConfig law;
        bool has_burst = true, off = false;
        char value[96];
        int r;

        if (!c->manages_bandwidth && !c->enable_controller)
                return;
        r = fd < 0 ? fd : bandwidth_read(fd, &live, &has_burst);
        if (r == -ENOENT) {
                off = true;
                live = (Bandwidth) { QUOTA_UNLIMITED, PERIOD_DEFAULT_USEC, 0 };
                if (!c->enable_controller) {
                        note(notes, "the cpu controller is off here and the class does not enable it: bandwidth would be refused");
                        return;
                }
                *ret_enables = true;
                if (unit)
                        (void) add_write(writes, g->path, "bandwidth", "systemd", "CPUWeight", "100");
        } else if (r < 0)
                return;
        if (x && x->bandwidth.has_base)
                base = x->bandwidth.base;
        else if (unit && writer == WRITER_SYSTEMD) {
                unit_property_bandwidth(unit, &base);
                base.burst_usec = live.burst_usec;
        } else
                base = live;
        if (!c->manages_bandwidth)
                return;
        resolve_bandwidth(c, &base, &plan);
        if (plan.unlimited) {
                note(notes, "the owner set no quota and the class is relative to it: nothing to limit or to burst");
                want = (Bandwidth) { QUOTA_UNLIMITED, live.period_usec, 0 };
        } else {
                law = (LawConfig) { .law = c->law, .targets = c->targets, .base = plan.start, .floor_usec = plan.floor_usec, .ceiling_usec = plan.ceiling_usec, .burst = plan.burst,
                                    .may_raise = c->priority >= 300 };
                law_start(&law, &want);
                if (writer == WRITER_SYSTEMD && want.quota_usec != QUOTA_UNLIMITED) {
                        want.quota_usec = quota_round_for_systemd(want.quota_usec, want.period_usec);
                        want.burst_usec = MIN_OF(want.burst_usec, want.quota_usec);
                }
        }
        if (plan.limited_by_owner)
                note(notes, "the owner's limit of %" PRIu64 " us per %" PRIu64 " us is the ceiling", base.quota_usec, base.period_usec);
        if (!off) {
                size_t n = bandwidth_plan_steps(&live, &want, has_burst, steps);

                for (size_t i = 0; i < n; i++)
                        (void) add_write(writes, g->path, "bandwidth", "cgroupfs", steps[i].file, steps[i].text);
        }
        if (unit && writer == WRITER_SYSTEMD) {
                unit_property_bandwidth(unit, &property);
                if (want.quota_usec != property.quota_usec || (want.quota_usec != QUOTA_UNLIMITED && want.period_usec != property.period_usec)) {
                        if (want.quota_usec == QUOTA_UNLIMITED)
                                (void) snprintf(value, sizeof(value), "infinity");
                        else
                                (void) snprintf(value, sizeof(value), "%" PRIu64 "us per s, period %" PRIu64 "us", quota_to_per_sec_usec(want.quota_usec, want.period_usec),
                                                want.period_usec);
                        (void) add_write(writes, g->path, "bandwidth", "systemd", "CPUQuota", value);
                }
        }
}

static void preview_latency(Manager *m, Group *g, const ServiceClass *c, json_t *writes, json_t *notes) {
        _cleanup_close_ int fd = cgroup_open(&m->root, g->path);
        _cleanup_free_ pid_t *tids = NULL;
        uint64_t want = latency_nice_to_slice_nsec(c->latency_nice, m->host.base_slice_nsec);
        size_t n = 0, differ = 0;
        char value[96];

        if (!c->has_latency_nice || fd < 0)
                return;
        if (m->host.facts[FACT_LATENCY_NICE_FILE].state == FACT_YES) {
                int64_t live = 0;
                ssize_t k = cgroup_read_file(fd, "cpu.latency.nice", value, sizeof(value));

                if (k > 0 && signed_parse(value, (size_t) k, &live) >= 0 && live != c->latency_nice) {
                        (void) snprintf(value, sizeof(value), "%d", c->latency_nice);
                        (void) add_write(writes, g->path, "latency", "cgroupfs", "cpu.latency.nice", value);
                }
                return;
        }
        if (m->host.facts[FACT_EEVDF_SLICE].state != FACT_YES) {
                note(notes, "latency: %s", m->host.facts[FACT_EEVDF_SLICE].reason);
                return;
        }
        if (group_threads(fd, &tids, &n, NULL) < 0)
                return;
        for (size_t i = 0; i < n; i++) {
                uint64_t slice;
                bool takes;

                if (slice_read(NULL, tids[i], m->host.base_slice_nsec, &slice, &takes) >= 0 && takes && slice != want)
                        differ++;
        }
        if (differ) {
                (void) snprintf(value, sizeof(value), "slice %" PRIu64 " ns on %zu threads", want, differ);
                (void) add_write(writes, g->path, "latency", "threads", "sched_setattr", value);
        }
}

int manager_preview(Manager *m, const Assignment *a, json_t **ret) {
        json_t *document = json_pack("{s:b, s:[], s:[], s:[]}", "matched", 0, "writes", "affected", "notes"), *writes, *notes, *affected;
        const ServiceClass *found = a->class_name ? policy_find_class(m->policy, a->class_name) : NULL;
        ServiceClass effective;
        bool enables = false;
        size_t n_matched = 0;

        if (!document)
                return -ENOMEM;
        writes = json_object_get(document, "writes");
        notes = json_object_get(document, "notes");
        affected = json_object_get(document, "affected");
        if (a->class_name && !found) {
                json_decref(document);
                return -ENOENT;
        }
        if (found)
                class_apply_overrides(found, &a->overrides, &effective);
        for (size_t i = 0; i < m->groups.n; i++) {
                Group *g = m->groups.items[i];
                const UnitInfo *unit = group_unit(m, g);
                bool matches = false;
                char reason[160];
                Writer writer;

                if (a->kind == TARGET_CGROUP)
                        matches = streq(g->path, a->target);
                else if (a->kind == TARGET_UNIT && unit) {
                        const UnitInfo *named = units_get(m->units, a->target);
                        const char *at = strchr(a->target, '@');

                        matches = named == unit;
                        if (!matches && at && at[1] == '.')
                                matches = strncmp(unit->id, a->target, (size_t) (at + 1 - a->target)) == 0 && endswith(unit->id, at + 1);
                } else if (a->kind == TARGET_POD) {
                        PodFacts pod;

                        matches = pod_facts_from_path(g->path, &pod) && streq(pod.pod_uid, a->target);
                }
                if (!matches)
                        continue;
                n_matched++;
                writer = group_writer(m, g, reason, sizeof(reason));
                if (writer == WRITER_NONE) {
                        note(notes, "%.100s: %s", g->path, reason);
                        continue;
                }
                if (!found) {
                        const Managed *x = g->managed;

                        if (x && x->bandwidth.has_written && !bandwidth_equal(&x->bandwidth.observed, &x->bandwidth.original)) {
                                BandwidthStep steps[4];
                                size_t n = bandwidth_plan_steps(&x->bandwidth.observed, &x->bandwidth.original, true, steps);

                                for (size_t k = 0; k < n; k++)
                                        (void) add_write(writes, g->path, "bandwidth", "cgroupfs", steps[k].file, steps[k].text);
                                if (x->property.quota_usec)
                                        (void) add_write(writes, g->path, "bandwidth", "systemd", "our drop-in", "removed, then one daemon-reload");
                        }
                        if (x && x->slice_threads.n)
                                note(notes, "%zu threads get their own slice back", x->slice_threads.n);
                        continue;
                }
                preview_bandwidth(m, g, &effective, writer, writes, notes, &enables);
                preview_latency(m, g, &effective, writes, notes);
                if (effective.core_scheduling != CORE_SCHEDULING_NONE) {
                        if (m->host.facts[FACT_CORE_SCHEDULING].state == FACT_YES || m->host.facts[FACT_CORE_TAG_FILE].state == FACT_YES)
                                (void) add_write(writes, g->path, "cookie", "threads", "core cookie", effective.core_scheduling == CORE_SCHEDULING_CLASS ? "one for the class" : "one for the group");
                        else
                                note(notes, "cookie: %s", m->host.facts[FACT_CORE_SCHEDULING].reason);
                }
                if (enables) {
                        char **names = NULL;
                        int n = group_affected_siblings(m, g, 100, &names);

                        for (int k = 0; k < n; k++) {
                                (void) json_array_append_new(affected, json_stringn_nocheck(names[k], strlen(names[k])));
                                free(names[k]);
                        }
                        free(names);
                        note(notes, "turning the cpu controller on changes the shares of every sibling in the slice");
                }
        }
        (void) json_object_set_new(document, "matched", json_boolean(n_matched > 0));
        if (n_matched == 0)
                note(notes, "nothing runs under this name now: the class would be given when it starts");
        *ret = document;
        return 0;
}
