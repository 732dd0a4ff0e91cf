/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests of the simulated host: they arrive when their source says, their parts go to idle workers or wait in line, and a request
 * is done when its last part is. */

#include "policies/sim-internal.h"

void sim_requests_fetch(SimGroup *g) {
        g->has_upcoming = g->setup->source && g->setup->source->next(g->setup->source, &g->upcoming);
}

static uint32_t open_request(SimHost *h, SimGroup *g, const SimRequest *request, uint32_t n_parts) {
        uint32_t i;

        if (g->free_open != SIM_NOBODY) {
                i = g->free_open;
                g->free_open = g->open[i].next_free;
        } else {
                if (GROW_ARRAY(g->open, g->n_open, g->open_size) < 0) {
                        h->out_of_memory = true;
                        return SIM_NOBODY;
                }
                i = g->n_open++;
        }
        g->open[i] = (SimOpenRequest) { .arrival_usec = request->arrival_usec, .n_left = n_parts, .unmeasured = request->unmeasured };
        return i;
}

static void backlog_push(SimHost *h, SimGroup *g, const SimPart *part) {
        if (g->backlog_count == g->backlog_size) {
                size_t size = g->backlog_size ? g->backlog_size * 2 : 64;
                SimPart *ring = reallocarray(g->backlog, size, sizeof(*ring));

                if (!ring) {
                        h->out_of_memory = true;
                        return;
                }
                /* What had wrapped around moves behind the old end. */
                memcpy(ring + g->backlog_size, ring, g->backlog_first * sizeof(*ring));
                g->backlog = ring;
                g->backlog_size = size;
        }
        g->backlog[(g->backlog_first + g->backlog_count++) % g->backlog_size] = *part;
}

static bool backlog_pop(SimGroup *g, SimPart *ret) {
        if (g->backlog_count == 0)
                return false;
        *ret = g->backlog[g->backlog_first];
        g->backlog_first = (g->backlog_first + 1) % g->backlog_size;
        g->backlog_count--;
        return true;
}

static void take_part(SimThread *t, const SimPart *part) {
        t->request = part->request;
        t->work_usec = MAX_OF(part->work_usec, 1u);
}

void sim_requests_arrive(SimHost *h, uint32_t group) {
        SimGroup *g = &h->groups[group];
        uint32_t n_parts = MAX_OF(g->upcoming.n_parts, 1u);
        uint32_t r = open_request(h, g, &g->upcoming, n_parts);

        if (r == SIM_NOBODY)
                return;
        for (uint32_t i = 0; i < n_parts; i++) {
                SimPart part = { .request = r, .work_usec = g->upcoming.work_usec };
                uint32_t worker = sim_list_pop(h, &g->idle);

                if (worker == SIM_NOBODY) {
                        backlog_push(h, g, &part);
                        continue;
                }
                take_part(&h->threads[worker], &part);
                sim_host_wake(h, worker);
        }
        sim_requests_fetch(g);
}

bool sim_requests_part_done(SimHost *h, uint32_t thread) {
        SimThread *t = &h->threads[thread];
        SimGroup *g = &h->groups[t->group];
        SimOpenRequest *r = &g->open[t->request];
        SimPart part;

        if (--r->n_left == 0) {
                if (!r->unmeasured) {
                        sim_histogram_add(&g->outcome->latency, h->now_usec - r->arrival_usec);
                        g->outcome->n_requests++;
                }
                r->next_free = g->free_open;
                g->free_open = t->request;
        }
        if (!backlog_pop(g, &part))
                return false;
        take_part(t, &part);
        return true;
}

void sim_requests_finish(SimHost *h, uint32_t group) {
        SimGroup *g = &h->groups[group];

        for (uint32_t i = 0; i < g->n_open; i++)
                if (g->open[i].n_left > 0 && !g->open[i].unmeasured) {
                        sim_histogram_add(&g->outcome->latency, h->now_usec - g->open[i].arrival_usec);
                        g->outcome->n_unfinished++;
                }
}
