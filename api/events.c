/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decisions as they happen: server-sent events.
 *
 * A subscriber is a position in the manager's ring of decisions, not a queue: a slow one costs nothing but its buffer of a few events, and when the
 * ring has gone on without it, it is told that something is missing. While there is nothing to send its connection is suspended. */

#include "api/internal.h"

#define BATCH 8
#define RETRY_MSEC 2000

struct Subscriber {
        ApiServer *server;
        Request *request;
        uint64_t sequence;           /* the last that was put into the buffer */
        bool gap;                    /* something before is missing: say so first */
        bool suspended;
        bool beat;                   /* a heartbeat is due */
        char *buffer;
        size_t size, offset;
        Subscriber *next, **link;
};

/* An id tells which life of the daemon its sequence belongs to. */
static uint64_t epoch(ApiServer *s) {
        DaemonStatus d = {};

        manager_status(s->manager, &d);
        return d.started_realtime_usec;
}

static int write_event(FILE *out, const char *id, const char *event, json_t *data) {
        _cleanup_free_ char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;

        json_decref(data);
        if (!text)
                return -ENOMEM;
        /* JSON on one line: a newline inside is "\n" with a backslash, so that data can't end the event */
        return fprintf(out, "%s%s%sevent: %s\ndata: %s\n\n", id ? "id: " : "", id ? id : "", id ? "\n" : "", event, text) < 0 ? -ENOMEM : 0;
}

/* Puts what has come since into the empty buffer. */
static int fill(Subscriber *u) {
        const Decision *batch[BATCH];
        uint64_t oldest = 0;
        size_t n = manager_decisions(u->server->manager, u->sequence, NULL, batch, BATCH, &oldest);
        char id[64];
        FILE *out;
        int k = 0;

        free(u->buffer);
        u->buffer = NULL;
        u->size = u->offset = 0;
        if (n > 0 && batch[0]->sequence > u->sequence + 1)
                u->gap = true;
        if (n == 0 && !u->gap && !u->beat)
                return 0;
        out = open_memstream(&u->buffer, &u->size);
        if (!out)
                return -ENOMEM;
        if (u->gap)
                k = write_event(out, NULL, "gap", json_pack("{s:o}", "oldest", json_u64(oldest)));
        else if (n == 0)
                (void) fputs(": still here\n\n", out);
        u->gap = u->beat = false;
        for (size_t i = 0; i < n && k >= 0; i++) {
                (void) snprintf(id, sizeof(id), "%llx-%llu", (unsigned long long) epoch(u->server), (unsigned long long) batch[i]->sequence);
                k = write_event(out, id, "decision", json_decision(batch[i]));
                u->sequence = batch[i]->sequence;
        }
        return fclose(out) != 0 || k < 0 ? -ENOMEM : 0;
}

static ssize_t on_read(void *userdata, uint64_t position, char *buffer, size_t max) {
        Subscriber *u = userdata;
        size_t n;

        if (u->offset >= u->size && fill(u) < 0)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (u->offset >= u->size) {
                u->suspended = true;
                MHD_suspend_connection(u->request->connection);
                return 0;
        }
        n = MIN_OF(max, u->size - u->offset);
        memcpy(buffer, u->buffer + u->offset, n);
        u->offset += n;
        return (ssize_t) n;
}

static void wake(Subscriber *u) {
        if (!u->suspended)
                return;
        u->suspended = false;
        MHD_resume_connection(u->request->connection);
        server_kick(u->server);
}

void events_decision(const Decision *d, void *userdata) {
        ApiServer *s = userdata;

        for (Subscriber *u = s->subscribers; u; u = u->next)
                wake(u);
}

static int on_heartbeat(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiServer *s = userdata;

        for (Subscriber *u = s->subscribers; u; u = u->next) {
                u->beat = true;
                wake(u);
        }
        if (s->subscribers) {
                (void) sd_event_source_set_time_relative(source, s->config.heartbeat_sec * USEC_PER_SEC);
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        return 0;
}

void events_forget(Request *r) {
        Subscriber *u = TAKE_PTR(r->subscriber);

        *u->link = u->next;
        if (u->next)
                u->next->link = u->link;
        u->server->n_subscribers--;
        free(u->buffer);
        free(u);
}

void events_stop(ApiServer *s) {
        for (Subscriber *u = s->subscribers; u; u = u->next)
                wake(u);
}

/* "EPOCH-SEQUENCE" of this life: where to go on. Anything else: from the oldest, with a gap. */
static void resume_from(Subscriber *u, const char *last_id) {
        unsigned long long life = 0, sequence = 0;
        int end = 0;

        if (sscanf(last_id, "%16llx-%20llu%n", &life, &sequence, &end) == 2 && !last_id[end] && life == epoch(u->server) && sequence <= decisions_newest(u->server)) {
                u->sequence = sequence;
                return;
        }
        u->sequence = 0;
        u->gap = true;
}

int route_events(Request *r) {
        ApiServer *s = r->server;
        const char *last_id = request_header(r, "Last-Event-ID");
        struct MHD_Response *response;
        Subscriber *u;
        int k;

        if (r->head) {
                (void) reply_empty(r, 200);
                r->reply.content_type = "text/event-stream";
                return 0;
        }
        if (s->n_subscribers >= s->config.max_subscribers) {
                (void) reply_problem(r, 503, "too-many-subscribers", NULL, "%u subscribers are connected, and that is the limit", s->n_subscribers);
                r->reply.retry_after_sec = 10;
                return 0;
        }
        if (!s->heartbeat) {
                k = sd_event_add_time_relative(s->event, &s->heartbeat, CLOCK_MONOTONIC, s->config.heartbeat_sec * USEC_PER_SEC, 0, on_heartbeat, s);
                if (k < 0)
                        return k;
                (void) sd_event_source_set_description(s->heartbeat, "api-heartbeat");
        } else if (s->n_subscribers == 0) {
                (void) sd_event_source_set_time_relative(s->heartbeat, s->config.heartbeat_sec * USEC_PER_SEC);
                (void) sd_event_source_set_enabled(s->heartbeat, SD_EVENT_ONESHOT);
        }
        u = calloc(1, sizeof(*u));
        if (!u)
                return -ENOMEM;
        u->server = s;
        u->request = r;
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, on_read, u, NULL);
        if (!response || asprintf(&u->buffer, "retry: %u\n\n", RETRY_MSEC) < 0) {
                if (response)
                        MHD_destroy_response(response);
                free(u);
                return -ENOMEM;
        }
        u->size = strlen(u->buffer);
        if (last_id)
                resume_from(u, last_id);
        else
                u->sequence = decisions_newest(s);
        u->next = s->subscribers;
        if (u->next)
                u->next->link = &u->next;
        u->link = &s->subscribers;
        s->subscribers = u;
        s->n_subscribers++;
        r->subscriber = u;
        (void) reply_empty(r, 200);
        r->reply.content_type = "text/event-stream";
        r->reply.stream = response;
        return 0;
}
