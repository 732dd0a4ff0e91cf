/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Traces are outside input: every number is checked against what can be, and an error names the line. */

#include "policies/sim-random.h"
#include "policies/sim-trace.h"

#define DAY_USEC (24 * 3600 * USEC_PER_SEC)

/* Fields of a sample. A trace of more than a year or of more CPUs than the simulator has is a mistake, and a window longer than an hour is no sample. */
static const struct {
        const char *key;
        size_t offset;
        uint64_t least, most;
} fields[] = {
        { "t_usec", offsetof(SimTraceSample, at_usec), 0, 366 * DAY_USEC },
        { "window_usec", offsetof(SimTraceSample, window_usec), 1, 3600 * USEC_PER_SEC },
        { "usage_usec", offsetof(SimTraceSample, usage_usec), 0, 3600 * USEC_PER_SEC * SIM_CPUS_MAX },
        { "nr_periods", offsetof(SimTraceSample, nr_periods), 0, 3600 * 1000 },
        { "nr_throttled", offsetof(SimTraceSample, nr_throttled), 0, 3600 * 1000 },
        { "throttled_usec", offsetof(SimTraceSample, throttled_usec), 0, 3600 * USEC_PER_SEC * SIM_CPUS_MAX },
        { "period_usec", offsetof(SimTraceSample, live) + offsetof(Bandwidth, period_usec), PERIOD_MIN_USEC, PERIOD_MAX_USEC },
        { "burst_usec", offsetof(SimTraceSample, live) + offsetof(Bandwidth, burst_usec), 0, QUOTA_MAX_USEC },
};

static void complain_value(DiagList *list, const char *file, unsigned line, const char *key, const json_t *value, uint64_t least, uint64_t most) {
        _cleanup_free_ char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        char pointer[64], limit[64];

        (void) snprintf(pointer, sizeof(pointer), "/%s", key);
        (void) snprintf(limit, sizeof(limit), "%llu to %llu", (unsigned long long) least, (unsigned long long) most);
        diag_add(list, file, line, pointer, text, limit, value ? "not a whole number within bounds" : "missing");
}

static bool read_number(json_t *o, const char *key, uint64_t least, uint64_t most, uint64_t *ret) {
        json_t *v = json_object_get(o, key);

        if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t) json_integer_value(v) < least || (uint64_t) json_integer_value(v) > most)
                return false;
        *ret = (uint64_t) json_integer_value(v);
        return true;
}

static int parse_sample(json_t *o, const char *file, unsigned line, SimTraceSample *ret, DiagList *list) {
        SimTraceSample s = {};
        json_t *quota = json_object_get(o, "quota_usec");

        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                if (!read_number(o, fields[i].key, fields[i].least, fields[i].most, (uint64_t *) ((char *) &s + fields[i].offset))) {
                        complain_value(list, file, line, fields[i].key, json_object_get(o, fields[i].key), fields[i].least, fields[i].most);
                        return -EINVAL;
                }
        if (json_is_string(quota) && streq(json_string_value(quota), "max"))
                s.live.quota_usec = QUOTA_UNLIMITED;
        else if (!read_number(o, "quota_usec", QUOTA_MIN_USEC, QUOTA_MAX_USEC, &s.live.quota_usec)) {
                complain_value(list, file, line, "quota_usec", quota, QUOTA_MIN_USEC, QUOTA_MAX_USEC);
                return -EINVAL;
        }
        *ret = s;
        return 0;
}

static int parse_header(json_t *o, const char *file, unsigned line, SimTrace *ret, DiagList *list) {
        uint64_t version, n_cpus;

        if (!read_number(o, "cpuclass_trace", SIM_TRACE_VERSION, SIM_TRACE_VERSION, &version)) {
                complain_value(list, file, line, "cpuclass_trace", json_object_get(o, "cpuclass_trace"), SIM_TRACE_VERSION, SIM_TRACE_VERSION);
                return -EINVAL;
        }
        if (!read_number(o, "n_cpus", 1, SIM_CPUS_MAX, &n_cpus)) {
                complain_value(list, file, line, "n_cpus", json_object_get(o, "n_cpus"), 1, SIM_CPUS_MAX);
                return -EINVAL;
        }
        ret->n_cpus = (uint32_t) n_cpus;
        return free_and_strdup(&ret->group, json_string_value(json_object_get(o, "group")));
}

/* Samples must follow each other: a window can't begin before the last one ended. */
static int add_sample(SimTrace *t, const SimTraceSample *s, const char *file, unsigned line, DiagList *list) {
        uint64_t last = t->n_samples > 0 ? t->samples[t->n_samples - 1].at_usec : 0;

        if (s->at_usec < s->window_usec || s->at_usec - s->window_usec < last) {
                diag_add(list, file, line, "/t_usec", NULL, NULL, "this window begins before the last one ended");
                return -EINVAL;
        }
        if (GROW_ARRAY(t->samples, t->n_samples, t->capacity) < 0)
                return -ENOMEM;
        t->samples[t->n_samples++] = *s;
        return 0;
}

static int parse_line(SimTrace *t, const char *text, size_t length, const char *file, unsigned line, DiagList *list) {
        json_error_t error;
        json_t *o = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        SimTraceSample s;
        int r;

        if (!json_is_object(o)) {
                diag_add(list, file, line, "", NULL, NULL, "not a JSON object: %s", o ? "another type" : error.text);
                json_decref(o);
                return -EINVAL;
        }
        if (t->n_cpus == 0)
                r = parse_header(o, file, line, t, list);
        else {
                r = parse_sample(o, file, line, &s, list);
                if (r >= 0)
                        r = add_sample(t, &s, file, line, list);
        }
        json_decref(o);
        return r;
}

int sim_trace_parse(const char *file, const char *text, size_t length, SimTrace *ret, DiagList *list) {
        SimTrace t = {};
        unsigned line = 0;
        int r = 0;

        for (size_t at = 0; at < length && r >= 0;) {
                const char *end = memchr(text + at, '\n', length - at);
                size_t n = end ? (size_t) (end - (text + at)) : length - at;

                line++;
                /* A last line without its newline was cut while it was written: the rest is good. */
                if (n > 0 && (end || t.n_samples == 0))
                        r = parse_line(&t, text + at, n, file, line, list);
                at += n + 1;
        }
        if (r >= 0 && t.n_samples == 0) {
                diag_add(list, file, 0, "", NULL, NULL, "holds no samples");
                r = -EINVAL;
        }
        if (r < 0) {
                sim_trace_clear(&t);
                return r;
        }
        *ret = t;
        return 0;
}

void sim_trace_clear(SimTrace *t) {
        free(t->group);
        free(t->samples);
        *t = (SimTrace) {};
}

json_t *sim_trace_header(const char *group, uint32_t n_cpus, const char *recorded_at) {
        return json_pack("{s:i, s:s?, s:i, s:s?}", "cpuclass_trace", SIM_TRACE_VERSION, "group", group, "n_cpus", (int) n_cpus, "recorded_at", recorded_at);
}

json_t *sim_trace_sample_to_json(const SimTraceSample *s) {
        json_t *o = json_object();
        int e = o ? 0 : -1;

        for (size_t i = 0; i < ELEMENTSOF(fields) && e == 0; i++)
                e = json_object_set_new(o, fields[i].key, json_integer((json_int_t) * (const uint64_t *) ((const char *) s + fields[i].offset)));
        if (e == 0)
                e = json_object_set_new(o, "quota_usec", s->live.quota_usec == QUOTA_UNLIMITED ?
                                        json_string("max") : json_integer((json_int_t) s->live.quota_usec));
        if (e != 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}

uint64_t sim_trace_duration_usec(const SimTrace *t) {
        return t->n_samples == 0 ? 0 : t->samples[t->n_samples - 1].at_usec;
}

uint32_t sim_trace_throttled_permyriad(const SimTrace *t) {
        uint64_t n = 0;

        for (size_t i = 0; i < t->n_samples; i++)
                n += t->samples[i].nr_throttled > 0;
        return t->n_samples == 0 ? 0 : (uint32_t) (n * 10000 / t->n_samples);
}

/* ---- a trace as requests ---- */

typedef struct TraceSource {
        SimSource source;              /* first: a source is cast to its trace */
        const SimTrace *trace;
        SimRandom random;
        uint64_t work_usec;
        size_t sample;
        uint64_t n_pieces, piece;      /* of this sample */
} TraceSource;

/* Pieces lie in equal steps of the window, each at a random place of its step: in order, and not all at the same moment. */
static bool trace_next(SimSource *source, SimRequest *ret) {
        TraceSource *s = (TraceSource *) source;

        for (; s->sample < s->trace->n_samples; s->sample++, s->piece = 0) {
                const SimTraceSample *t = &s->trace->samples[s->sample];
                uint64_t step, offset, rest;

                s->n_pieces = (t->usage_usec + s->work_usec - 1) / s->work_usec;
                if (s->piece >= s->n_pieces)
                        continue;
                step = MAX_OF(t->window_usec / s->n_pieces, UINT64_C(1));
                offset = MIN_OF(s->piece * step + sim_random_next(&s->random) % step, t->window_usec - 1);
                rest = t->usage_usec - s->piece * s->work_usec;
                *ret = (SimRequest) {
                        .arrival_usec = t->at_usec - t->window_usec + offset,
                        .n_parts = 1,
                        .work_usec = (uint32_t) MIN_OF(rest, s->work_usec),
                };
                s->piece++;
                return true;
        }
        return false;
}

static void trace_free(SimSource *s) {
        free(s);
}

SimSource *sim_trace_source_new(const SimTrace *t, uint64_t work_usec, uint64_t seed) {
        TraceSource *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        *s = (TraceSource) {
                .source = { trace_next, trace_free },
                .trace = t,
                .random = sim_random_stream(seed, 99),
                .work_usec = CLAMP_TO(work_usec, UINT64_C(1), UINT64_C(1000000)),
        };
        return &s->source;
}
