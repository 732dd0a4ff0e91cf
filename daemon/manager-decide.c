/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The answer to "why did it act?": each change is one record in a ring, one line in the journal, one event for the API. */

#include "daemon/manager-internal.h"

static void decision_clear(Decision *d) {
        free(d->cgroup);
        free(d->unit);
        free(d->class_name);
        free(d->text);
        *d = (Decision) { 0 };
}

void decide_record(Manager *m, Group *g, const DecisionInput *in, const char *format, ...) {
        Decision *d = &m->ring[m->n_decisions % DECISION_RING];
        const UnitInfo *unit = g ? group_unit(m, g) : NULL;
        _cleanup_free_ char *message = NULL;
        char error_text[16];
        va_list ap;

        decision_clear(d);
        d->sequence = ++m->n_decisions;
        d->realtime_usec = clock_realtime_usec();
        d->monotonic_usec = clock_monotonic_usec();
        d->cgroup = g ? strdup(g->path) : NULL;
        d->unit = unit ? strdup(unit->id) : NULL;
        d->class_name = g && g->managed && g->managed->service_class ? strdup(g->managed->service_class->name) : NULL;
        d->knob = in->knob;
        d->trigger = in->trigger;
        d->dry_run = m->config.dry_run;
        d->error = in->error < 0 ? -in->error : in->error;
        if (in->law) {
                d->law = *in->law;
                d->cause = in->law->cause;
        }
        d->before = in->before;
        d->after = in->after;
        d->before_number = in->before_number;
        d->after_number = in->after_number;
        va_start(ap, format);
        if (vasprintf(&d->text, format, ap) < 0)
                d->text = NULL;
        va_end(ap);
        if (g && g->managed) {
                g->managed->last_decision = d;
                g->managed->last_decision_sequence = d->sequence;
        }

        if (asprintf(&message, "%s%s: %s", m->config.dry_run ? "[dry run] " : "", d->unit ? d->unit : d->cgroup ? d->cgroup : "host",
                     d->text ? d->text : "") < 0)
                message = NULL;
        (void) snprintf(error_text, sizeof(error_text), "%d", d->error);
        /* A law acts often: its lines are for those who ask (--verbose), the ring and the API have them anyway. */
        log_fields(d->error ? LOG_WARNING : streq(in->trigger, "law") || streq(in->trigger, "thread") ? LOG_DEBUG : LOG_INFO,
                   d->error ? MESSAGE_WRITE_FAILED : MESSAGE_DECISION, message ? message : "decision",
                   "CPUCLASS_CGROUP", d->cgroup, "CPUCLASS_UNIT", d->unit, "CPUCLASS_CLASS", d->class_name,
                   "CPUCLASS_KNOB", d->knob, "CPUCLASS_TRIGGER", d->trigger, "ERRNO", d->error ? error_text : NULL, NULL);
        if (m->decision_handler)
                m->decision_handler(d, m->decision_userdata);
}

size_t manager_decisions(const Manager *m, uint64_t since, const char *cgroup, const Decision **ret, size_t max, uint64_t *ret_oldest) {
        uint64_t oldest = m->n_decisions > DECISION_RING ? m->n_decisions - DECISION_RING + 1 : 1;
        size_t n = 0;

        if (ret_oldest)
                *ret_oldest = oldest;
        for (uint64_t s = since + 1 > oldest ? since + 1 : oldest; s <= m->n_decisions && n < max; s++) {
                const Decision *d = &m->ring[(s - 1) % DECISION_RING];

                if (cgroup && !streq_null(d->cgroup, cgroup))
                        continue;
                ret[n++] = d;
        }
        return n;
}

void manager_set_decision_handler(Manager *m, void (*fn)(const Decision *d, void *userdata), void *userdata) {
        m->decision_handler = fn;
        m->decision_userdata = userdata;
}
