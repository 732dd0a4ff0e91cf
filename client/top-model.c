/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon gives totals with the time of their sample; a rate is the difference of two of them over the difference of their times, so neither the
 * interval of top nor that of the daemon matters. */

#include "client/format.h"
#include "client/top-model.h"

#define RECENT_USEC (5 * USEC_PER_SEC)   /* how long a step of the law counts as "raising" */

static void row_free(TopRow *r) {
        if (!r)
                return;
        free(r->cgroup);
        free(r->unit);
        free(r->class_name);
        free(r->action);
        free(r);
}

void top_model_clear(TopModel *m) {
        for (size_t i = 0; i < m->n_rows; i++)
                row_free(m->rows[i]);
        free(m->rows);
        *m = (TopModel) {};
}

const char *top_row_name(const TopRow *row) {
        return row->unit ? row->unit : row->cgroup;
}

/* value per second of the time between two samples */
static uint64_t per_second(uint64_t value, uint64_t usec) {
        return usec == 0 ? 0 : (uint64_t) ((__uint128_t) value * USEC_PER_SEC / usec);
}

/* How far a counter moved; 0 when it went back (the group is another one now). */
static uint64_t moved(uint64_t *last, uint64_t now) {
        uint64_t d = now > *last ? now - *last : 0;

        *last = now;
        return d;
}

static void update_rates(TopRow *r, const json_t *sample) {
        const json_t *total = json_object_get(sample, "total"), *pressure = json_object_get(sample, "pressure"), *window = json_object_get(sample, "window");
        uint64_t at = 0, usec, usage, throttled_usec, periods, throttled, burst, some, full, window_usec = json_number_or(sample, "window_usec", 0);
        bool first = r->at_usec == 0;

        r->has_sample = json_is_object(sample) && json_time(sample, "at", &at);
        if (!r->has_sample || at <= r->at_usec)
                return;
        usec = at - r->at_usec;
        r->at_usec = at;
        usage = moved(&r->total_usage_usec, json_number_or(total, "usage_usec", 0));
        throttled_usec = moved(&r->total_throttled_usec, json_number_or(total, "throttled_usec", 0));
        periods = moved(&r->total_periods, json_number_or(total, "nr_periods", 0));
        throttled = moved(&r->total_throttled, json_number_or(total, "nr_throttled", 0));
        burst = moved(&r->total_burst_usec, json_number_or(total, "burst_usec", 0));
        some = moved(&r->total_some_usec, json_number_or(pressure, "some_total_usec", 0));
        full = moved(&r->total_full_usec, json_number_or(pressure, "full_total_usec", 0));
        r->has_pressure = json_is_object(pressure);
        if (first) {
                r->use_permyriad = json_number_or(sample, "usage_permyriad_of_cpu", 0);
                r->throttled_permyriad = json_number_or(sample, "throttled_permyriad", 0);
                r->throttled_usec_per_sec = per_second(json_number_or(window, "throttled_usec", 0), window_usec);
                r->burst_usec_per_sec = per_second(json_number_or(window, "burst_usec", 0), window_usec);
                r->some_permyriad = json_number_or(pressure, "some_avg10_permyriad", 0);
                r->full_permyriad = json_number_or(pressure, "full_avg10_permyriad", 0);
                return;
        }
        r->use_permyriad = per_second(usage, usec) / 100;
        r->throttled_permyriad = periods > 0 ? throttled * 10000 / periods : 0;
        r->throttled_usec_per_sec = per_second(throttled_usec, usec);
        r->burst_usec_per_sec = per_second(burst, usec);
        r->some_permyriad = MIN_OF(per_second(some, usec) / 100, UINT64_C(10000));
        r->full_permyriad = MIN_OF(per_second(full, usec) / 100, UINT64_C(10000));
}

static TopController controller_of(const json_t *group, uint64_t now_usec) {
        static const struct {
                const char *state;
                TopController controller;
        } states[] = { { "failed", CONTROLLER_FAILED }, { "pending", CONTROLLER_PENDING }, { "held", CONTROLLER_HELD }, { "paused", CONTROLLER_PAUSED } };
        const json_t *decision = json_object_get(group, "last_decision");
        Bandwidth before, after;
        uint64_t at;

        if (json_flag(group, "paused"))
                return CONTROLLER_PAUSED;
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (streq_null(json_text(group, "state"), states[i].state))
                        return states[i].controller;
        if (!json_text(group, "law"))
                return CONTROLLER_NONE;
        if (streq_null(json_text(decision, "trigger"), "law") && json_time(decision, "at", &at) && at + RECENT_USEC > now_usec &&
            json_bandwidth(decision, "before", &before) && json_bandwidth(decision, "after", &after) && before.quota_usec != after.quota_usec)
                return after.quota_usec > before.quota_usec ? CONTROLLER_RAISING : CONTROLLER_LOWERING;
        return CONTROLLER_STEADY;
}

static void update_second(TopRow *r, uint64_t now_usec) {
        uint64_t second = now_usec / USEC_PER_SEC;
        TopSecond *s = &r->seconds[second % TOP_SECONDS];

        if (s->second != second)
                *s = (TopSecond) { .second = second };
        s->use_permyriad = (uint32_t) MAX_OF((uint64_t) s->use_permyriad, MIN_OF(r->use_permyriad, (uint64_t) UINT32_MAX));
        s->throttled = s->throttled || r->throttled_permyriad > 0;
}

static int update_row(TopRow *r, const json_t *group, uint64_t now_usec) {
        const json_t *latency = json_object_get(group, "latency"), *decision = json_object_get(group, "last_decision");
        const char *cookie = json_text(json_object_get(group, "cookie"), "cookie_id");
        size_t n = cookie ? strlen(cookie) : 0;

        if (free_and_strdup(&r->unit, json_text(group, "unit")) < 0 || free_and_strdup(&r->class_name, json_text(group, "class")) < 0 ||
            free_and_strdup(&r->action, json_text(decision, "text")) < 0)
                return -ENOMEM;
        r->action_at_usec = 0;
        (void) json_time(decision, "at", &r->action_at_usec);
        r->has_bandwidth = json_bandwidth(json_object_get(group, "bandwidth"), "observed", &r->bandwidth);
        r->drift = json_flag(group, "drift");
        r->slice_nsec = json_number_or(latency, "slice_nsec", 0);
        /* the hash's low digits tell cookies apart best */
        (void) snprintf(r->cookie, sizeof(r->cookie), "%.4s", n > 4 ? cookie + n - 4 : cookie ? cookie : "");
        r->controller = controller_of(group, now_usec);
        update_rates(r, json_object_get(group, "sample"));
        if (r->has_sample)
                update_second(r, now_usec);
        return 0;
}

static int by_path(const void *a, const void *b) {
        return strcmp((*(TopRow *const *) a)->cgroup, (*(TopRow *const *) b)->cgroup);
}

static TopRow *find(const TopModel *m, size_t n, const char *cgroup) {
        TopRow key = { .cgroup = (char *) cgroup }, *p = &key, **found;

        found = n > 0 ? bsearch(&p, m->rows, n, sizeof(*m->rows), by_path) : NULL;
        return found ? *found : NULL;
}

int top_model_update(TopModel *m, const json_t *groups, uint64_t now_usec) {
        size_t n_before = m->n_rows, kept = 0, i;
        json_t *group;
        int r = 0;

        m->generation++;
        json_array_foreach((json_t *) groups, i, group) {
                const char *cgroup = json_text(group, "cgroup");
                TopRow *row = cgroup ? find(m, n_before, cgroup) : NULL;

                if (!cgroup)
                        continue;
                if (!row) {
                        row = calloc(1, sizeof(*row));
                        if (!row || free_and_strdup(&row->cgroup, cgroup) < 0 || GROW_ARRAY(m->rows, m->n_rows, m->capacity) < 0) {
                                row_free(row);
                                r = -ENOMEM;
                                break;
                        }
                        m->rows[m->n_rows++] = row;
                }
                row->generation = m->generation;
                r = update_row(row, group, now_usec);
                if (r < 0)
                        break;
        }
        for (i = 0; i < m->n_rows; i++)
                if (m->rows[i]->generation == m->generation)
                        m->rows[kept++] = m->rows[i];
                else
                        row_free(m->rows[i]);
        m->n_rows = kept;
        if (kept > 1)
                qsort(m->rows, kept, sizeof(*m->rows), by_path);
        return r;
}

static const char *const sort_words[_SORT_MAX] = {
        [SORT_CPU] = "cpu", [SORT_THROTTLED] = "throttled", [SORT_PRESSURE] = "pressure", [SORT_QUOTA] = "quota",
        [SORT_CLASS] = "class", [SORT_NAME] = "name", [SORT_AGE] = "age",
};

const char *top_sort_to_string(TopSort s) {
        return sort_words[s];
}

int top_sort_from_string(const char *word, TopSort *ret) {
        for (size_t i = 0; i < _SORT_MAX; i++)
                if (streq(sort_words[i], word)) {
                        *ret = (TopSort) i;
                        return 0;
                }
        return -EINVAL;
}

/* The largest first for numbers, the alphabet for words; equal ones by path, so that rows do not jump. */
static int compare(const void *a, const void *b, void *userdata) {
        const TopRow *x = *(TopRow *const *) a, *y = *(TopRow *const *) b;
        const TopFilter *f = userdata;
        uint64_t p = 0, q = 0;
        int order = 0;

        switch (f->sort) {
        case SORT_THROTTLED:
                p = x->throttled_permyriad, q = y->throttled_permyriad;
                break;
        case SORT_PRESSURE:
                p = x->some_permyriad, q = y->some_permyriad;
                break;
        case SORT_QUOTA:
                p = x->has_bandwidth ? x->bandwidth.quota_usec / MAX_OF(x->bandwidth.period_usec / 1000, (uint64_t) 1) : 0;
                q = y->has_bandwidth ? y->bandwidth.quota_usec / MAX_OF(y->bandwidth.period_usec / 1000, (uint64_t) 1) : 0;
                break;
        case SORT_AGE:
                p = x->action_at_usec, q = y->action_at_usec;
                break;
        case SORT_CLASS:
                order = strcmp(x->class_name ? x->class_name : "\xff", y->class_name ? y->class_name : "\xff");
                break;
        case SORT_NAME:
                order = strcmp(top_row_name(x), top_row_name(y));
                break;
        default:
                p = x->use_permyriad, q = y->use_permyriad;
        }
        order = order != 0 ? order : (p < q) - (p > q);
        if (f->reverse)
                order = -order;
        return order != 0 ? order : strcmp(x->cgroup, y->cgroup);
}

static bool passes(const TopRow *r, const char *text) {
        return !text || !*text || strcasestr(r->cgroup, text) || (r->unit && strcasestr(r->unit, text)) || (r->class_name && strcasestr(r->class_name, text));
}

static bool contains(const TopRow *above, const TopRow *row) {
        size_t n = strlen(above->cgroup);

        return startswith(row->cgroup, above->cgroup) && (row->cgroup[n] == '/' || streq(above->cgroup, "/")) && row->cgroup[n] != 0;
}

/* Rows in path order: how many of those before it contain each. A stack of the last row of each depth is enough. */
static void fill_depths(TopRow **rows, size_t n) {
        TopRow *stack[64];
        unsigned depth = 0;

        for (size_t i = 0; i < n; i++) {
                while (depth > 0 && !contains(stack[depth - 1], rows[i]))
                        depth--;
                rows[i]->depth = depth;
                if (depth < ELEMENTSOF(stack))
                        stack[depth++] = rows[i];
        }
}

/* In a tree what is below a group stands behind it: "/a/b" before "/a-b", although "-" sorts before "/". */
static int by_tree(const void *a, const void *b) {
        const char *x = (*(TopRow *const *) a)->cgroup, *y = (*(TopRow *const *) b)->cgroup;

        for (; *x && *x == *y; x++, y++)
                ;
        return (*x == '/' ? 1 : (unsigned char) *x) - (*y == '/' ? 1 : (unsigned char) *y);
}

TopRow **top_model_select(TopModel *m, const TopFilter *filter, size_t *ret_n) {
        TopRow **rows = calloc(m->n_rows + 1, sizeof(*rows));
        size_t n = 0;

        if (!rows)
                return NULL;
        for (size_t i = 0; i < m->n_rows; i++)
                if (passes(m->rows[i], filter->text))
                        rows[n++] = m->rows[i];
        if (filter->tree) {
                qsort(rows, n, sizeof(*rows), by_tree);
                fill_depths(rows, n);
        } else {
                qsort_r(rows, n, sizeof(*rows), compare, (void *) filter);
                for (size_t i = 0; i < n; i++)
                        rows[i]->depth = 0;
        }
        *ret_n = n;
        return rows;
}
