/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prometheus text (exposition format 0.0.4). Names follow cAdvisor's container_* where they exist, in base units. Only groups with a class are
 * shown, at most GROUPS_MAX of them, so that a host with ten thousand cgroups makes no ten thousand series. */

#include "api/internal.h"

#define GROUPS_MAX 1000

typedef enum Family {
        F_USAGE, F_PERIODS, F_THROTTLED_PERIODS, F_THROTTLED, F_BURST_PERIODS, F_BURST, F_WAITING, F_STALLED, F_FORCE_IDLE,
        F_QUOTA, F_PERIOD, F_BURST_LIMIT, F_SLICE, F_LATENCY_NICE, F_THREADS, F_THREADS_COVERED, F_STATE, F_DRIFTS, F_WRITES,
        _FAMILY_MAX,
} Family;

static const struct {
        const char *name, *type, *help;
} families[_FAMILY_MAX] = {
        [F_USAGE] = { "cpuclass_cpu_usage_seconds_total", "counter", "CPU time used by the group" },
        [F_PERIODS] = { "cpuclass_cpu_cfs_periods_total", "counter", "Bandwidth periods that have elapsed" },
        [F_THROTTLED_PERIODS] = { "cpuclass_cpu_cfs_throttled_periods_total", "counter", "Bandwidth periods in which the group was throttled" },
        [F_THROTTLED] = { "cpuclass_cpu_cfs_throttled_seconds_total", "counter", "Time throttled, summed over CPUs" },
        [F_BURST_PERIODS] = { "cpuclass_cpu_cfs_burst_periods_total", "counter", "Bandwidth periods in which the group used burst" },
        [F_BURST] = { "cpuclass_cpu_cfs_burst_seconds_total", "counter", "CPU time used above the quota" },
        [F_WAITING] = { "cpuclass_pressure_cpu_waiting_seconds_total", "counter", "Time in which some task of the group waited for a CPU" },
        [F_STALLED] = { "cpuclass_pressure_cpu_stalled_seconds_total", "counter", "Time in which all tasks of the group waited for a CPU" },
        [F_FORCE_IDLE] = { "cpuclass_core_sched_force_idle_seconds_total", "counter", "Time in which core scheduling kept a CPU idle for the group" },
        [F_QUOTA] = { "cpuclass_cpu_quota_cpus", "gauge", "CPU quota in the kernel, in CPUs; +Inf without a limit" },
        [F_PERIOD] = { "cpuclass_cpu_period_seconds", "gauge", "Bandwidth period in the kernel" },
        [F_BURST_LIMIT] = { "cpuclass_cpu_burst_limit_seconds", "gauge", "Burst in the kernel" },
        [F_SLICE] = { "cpuclass_slice_seconds", "gauge", "EEVDF slice that the class wants for the threads; 0 is the default one" },
        [F_LATENCY_NICE] = { "cpuclass_latency_nice", "gauge", "Latency nice that the class wants" },
        [F_THREADS] = { "cpuclass_threads", "gauge", "Threads seen in the group" },
        [F_THREADS_COVERED] = { "cpuclass_threads_covered", "gauge", "Threads that have the slice" },
        [F_STATE] = { "cpuclass_group_state", "gauge", "1 for the state that the group is in" },
        [F_DRIFTS] = { "cpuclass_drifts_total", "counter", "Foreign writes seen" },
        [F_WRITES] = { "cpuclass_group_writes_total", "counter", "Writes for the group, by knob" },
};

typedef struct Buffer {
        FILE *file;
        char *text;
        size_t size;
} Buffer;

/* A label's value: backslash, quote and newline escaped, valid UTF-8; other control bytes as \\xNN, so that `curl` can't upset a terminal. */
static char *label(const char *s) {
        _cleanup_free_ char *clean = utf8_sanitize(s ? s : "");
        char *out, *p;

        if (!clean)
                return NULL;
        out = p = malloc(strlen(clean) * 5 + 1);
        if (!out)
                return NULL;
        for (const char *q = clean; *q; q++) {
                if (((unsigned char) *q < 0x20 && *q != '\n') || *q == 0x7f) {
                        p += sprintf(p, "\\\\x%02x", (unsigned char) *q);
                        continue;
                }
                if (*q == '\\' || *q == '"' || *q == '\n')
                        *p++ = '\\';
                *p++ = *q == '\n' ? 'n' : *q;
        }
        *p = 0;
        return out;
}

/* µs as seconds, exactly. */
static void put_usec(FILE *f, const char *name, const char *labels, uint64_t usec) {
        (void) fprintf(f, "%s{%s} %llu.%06llu\n", name, labels, (unsigned long long) (usec / USEC_PER_SEC), (unsigned long long) (usec % USEC_PER_SEC));
}

static void put_number(FILE *f, const char *name, const char *labels, int64_t n) {
        (void) fprintf(f, "%s{%s} %lld\n", name, labels, (long long) n);
}

static void put_group(Buffer *b, const GroupView *v, const char *labels) {
        const GroupSample *s = v->sample;

#define PUT(family, kind, ...) put_##kind(b[family].file, families[family].name, labels, __VA_ARGS__)
        if (s && s->at_usec > 0) {
                PUT(F_USAGE, usec, s->total.usage_usec);
                if (s->total.has_bandwidth) {
                        PUT(F_PERIODS, number, (int64_t) s->total.nr_periods);
                        PUT(F_THROTTLED_PERIODS, number, (int64_t) s->total.nr_throttled);
                        PUT(F_THROTTLED, usec, s->total.throttled_usec);
                }
                if (s->total.has_bursts) {
                        PUT(F_BURST_PERIODS, number, (int64_t) s->total.nr_bursts);
                        PUT(F_BURST, usec, s->total.burst_usec);
                }
                if (s->total.has_force_idle)
                        PUT(F_FORCE_IDLE, usec, s->total.force_idle_usec);
                if (s->has_pressure) {
                        PUT(F_WAITING, usec, s->pressure.some_total_usec);
                        if (s->pressure.has_full)
                                PUT(F_STALLED, usec, s->pressure.full_total_usec);
                }
        }
        if (v->bandwidth) {
                const BandwidthKnob *k = v->bandwidth;

                if (k->has_observed && k->observed.period_usec > 0) {
                        if (k->observed.quota_usec == QUOTA_UNLIMITED)
                                (void) fprintf(b[F_QUOTA].file, "%s{%s} +Inf\n", families[F_QUOTA].name, labels);
                        else
                                (void) fprintf(b[F_QUOTA].file, "%s{%s} %.6g\n", families[F_QUOTA].name, labels,
                                               (double) k->observed.quota_usec / (double) k->observed.period_usec);
                        PUT(F_PERIOD, usec, k->observed.period_usec);
                        PUT(F_BURST_LIMIT, usec, k->observed.burst_usec);
                }
        }
        if (v->latency && v->latency->common.status != KNOB_UNMANAGED) {
                PUT(F_LATENCY_NICE, number, v->latency->latency_nice);
                if (!v->latency->by_file) {
                        (void) fprintf(b[F_SLICE].file, "%s{%s} %llu.%09llu\n", families[F_SLICE].name, labels, (unsigned long long) (v->latency->slice_nsec / 1000000000),
                                       (unsigned long long) (v->latency->slice_nsec % 1000000000));
                        PUT(F_THREADS, number, v->latency->n_threads);
                        PUT(F_THREADS_COVERED, number, v->latency->n_covered);
                }
        }
#undef PUT
        (void) fprintf(b[F_STATE].file, "%s{%s,state=\"%s\"} 1\n", families[F_STATE].name, labels, group_state(v, NULL));
        const struct {
                const char *name;
                const KnobCommon *common;
        } knobs[] = {
                { "bandwidth", v->bandwidth ? &v->bandwidth->common : NULL },
                { "latency", v->latency ? &v->latency->common : NULL },
                { "cookie", v->cookie ? &v->cookie->common : NULL },
        };
        for (size_t i = 0; i < ELEMENTSOF(knobs); i++)
                if (knobs[i].common) {
                        (void) fprintf(b[F_DRIFTS].file, "%s{%s,knob=\"%s\"} %llu\n", families[F_DRIFTS].name, labels, knobs[i].name,
                                       (unsigned long long) knobs[i].common->n_drifts);
                        (void) fprintf(b[F_WRITES].file, "%s{%s,knob=\"%s\"} %llu\n", families[F_WRITES].name, labels, knobs[i].name,
                                       (unsigned long long) knobs[i].common->n_writes);
                }
}

static void put_head(FILE *f, const char *name, const char *type, const char *help) {
        (void) fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_daemon(FILE *f, ApiServer *s, size_t n_left_out) {
        const HostFacts *h = manager_host_facts(s->manager);
        _cleanup_free_ char *version = NULL;
        DaemonStatus d = {};

        manager_status(s->manager, &d);
        const struct {
                const char *name, *type, *help;
                uint64_t value;
        } plain[] = {
                { "cpuclass_ready", "gauge", "1 when the first scan is done and a policy is in force", d.ready },
                { "cpuclass_paused", "gauge", "1 while everything is paused", d.paused },
                { "cpuclass_dry_run", "gauge", "1 when nothing is written", d.dry_run },
                { "cpuclass_bus_connected", "gauge", "1 while systemd answers", d.bus_connected },
                { "cpuclass_policy_refused", "gauge", "1 while an earlier policy is in force because the one on disk has errors", d.policy_error != NULL },
                { "cpuclass_policy_revision", "gauge", "Revision of the policy in force", d.policy_revision },
                { "cpuclass_groups_seen", "gauge", "Control groups known", d.n_groups_seen },
                { "cpuclass_groups_classified", "gauge", "Groups that have a class", d.n_groups_classified },
                { "cpuclass_groups_drift", "gauge", "Groups with a foreign value", d.n_drift },
                { "cpuclass_groups_failed", "gauge", "Groups with a knob that could not be set", d.n_failed },
                { "cpuclass_groups_left_out", "gauge", "Groups with a class that are not shown here", n_left_out },
                { "cpuclass_assignments_pending", "gauge", "Assignments whose target is not here", d.n_pending },
                { "cpuclass_ledger_records", "gauge", "Original values kept", d.n_ledger },
                { "cpuclass_threads_tracked", "gauge", "Threads that are looked after", d.n_threads_tracked },
                { "cpuclass_rescans_total", "counter", "Full scans of the tree", d.n_rescans },
                { "cpuclass_overflows_total", "counter", "Overflows of the queue of tree events", d.n_overflows },
                { "cpuclass_ticks_total", "counter", "Turns of the control loop", d.n_ticks },
                { "cpuclass_decisions_total", "counter", "Decisions taken", d.n_decisions },
                { "cpuclass_api_requests_total", "counter", "Requests to this API", s->n_requests },
                { "cpuclass_api_refused_total", "counter", "Requests that were refused", s->n_refused },
                { "cpuclass_api_errors_total", "counter", "Requests that failed", s->n_errors },
                { "cpuclass_api_connections", "gauge", "Open connections", s->n_clients },
                { "cpuclass_api_subscribers", "gauge", "Subscribers of the event stream", s->n_subscribers },
        };
        const struct {
                const char *kind;
                uint64_t value;
        } writes[] = { { "bandwidth", d.n_writes_bandwidth }, { "thread", d.n_writes_thread }, { "bus", d.n_writes_bus }, { "file", d.n_writes_file } };

        version = label(d.version);
        put_head(f, "cpuclass_build_info", "gauge", "Version of the daemon");
        (void) fprintf(f, "cpuclass_build_info{version=\"%s\"} 1\n", version ? version : "");
        for (size_t i = 0; i < ELEMENTSOF(plain); i++) {
                put_head(f, plain[i].name, plain[i].type, plain[i].help);
                (void) fprintf(f, "%s %llu\n", plain[i].name, (unsigned long long) plain[i].value);
        }
        put_head(f, "cpuclass_writes_total", "counter", "Writes to the kernel and to systemd");
        for (size_t i = 0; i < ELEMENTSOF(writes); i++)
                (void) fprintf(f, "cpuclass_writes_total{kind=\"%s\"} %llu\n", writes[i].kind, (unsigned long long) writes[i].value);
        put_head(f, "cpuclass_tick_last_seconds", "gauge", "Duration of the last turn");
        (void) fprintf(f, "cpuclass_tick_last_seconds %llu.%06llu\n", (unsigned long long) (d.last_tick_usec / USEC_PER_SEC), (unsigned long long) (d.last_tick_usec % USEC_PER_SEC));
        put_head(f, "cpuclass_tick_worst_seconds", "gauge", "Longest turn since the start");
        (void) fprintf(f, "cpuclass_tick_worst_seconds %llu.%06llu\n", (unsigned long long) (d.worst_tick_usec / USEC_PER_SEC), (unsigned long long) (d.worst_tick_usec % USEC_PER_SEC));
        put_head(f, "cpuclass_host_feature", "gauge", "1 when the host has the feature, 0 when it has not or does not enforce it");
        for (FactId i = 0; i < _FACT_MAX; i++)
                if (h->facts[i].state != FACT_UNKNOWN)
                        (void) fprintf(f, "cpuclass_host_feature{feature=\"%s\"} %d\n", fact_name(i), h->facts[i].state == FACT_YES);
}

int route_metrics(Request *r) {
        Manager *m = r->server->manager;
        Buffer buffers[_FAMILY_MAX] = {}, all = {};
        size_t n = 0, left_out = 0;
        int k = 0;

        all.file = open_memstream(&all.text, &all.size);
        if (!all.file)
                k = -ENOMEM;
        for (Family f = 0; f < _FAMILY_MAX && k == 0; f++) {
                buffers[f].file = open_memstream(&buffers[f].text, &buffers[f].size);
                if (!buffers[f].file)
                        k = -ENOMEM;
        }
        for (const Group *g = k == 0 ? manager_next_group(m, NULL, true) : NULL; g; g = manager_next_group(m, g, true)) {
                _cleanup_free_ char *cgroup = NULL, *unit = NULL, *class_name = NULL, *labels = NULL;
                GroupView v = {};

                group_view(m, g, &v);
                if (!v.service_class)
                        continue;
                if (n++ >= GROUPS_MAX) {
                        left_out++;
                        continue;
                }
                cgroup = label(v.cgroup);
                unit = label(v.unit);
                class_name = label(v.service_class->name);
                if (!cgroup || !unit || !class_name || asprintf(&labels, "cgroup=\"%s\",unit=\"%s\",class=\"%s\"", cgroup, unit, class_name) < 0) {
                        labels = NULL;
                        k = -ENOMEM;
                        break;
                }
                put_group(buffers, &v, labels);
        }
        if (k == 0)
                put_daemon(all.file, r->server, left_out);
        for (Family f = 0; f < _FAMILY_MAX; f++) {
                if (buffers[f].file && fclose(buffers[f].file) != 0)
                        k = -ENOMEM;
                if (k == 0 && buffers[f].size > 0) {
                        put_head(all.file, families[f].name, families[f].type, families[f].help);
                        (void) fwrite(buffers[f].text, 1, buffers[f].size, all.file);
                }
                free(buffers[f].text);
        }
        if (all.file && fclose(all.file) != 0)
                k = -ENOMEM;
        if (k < 0) {
                free(all.text);
                return k;
        }
        return reply_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", all.text, all.size);
}
