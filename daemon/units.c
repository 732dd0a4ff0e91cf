/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of units, and the queue of those that systemd is to be asked about.
 *
 * A unit that has news waits a moment before it is asked about, so that a burst of signals costs one question, and a unit that systemd has forgotten again by then costs
 * none: asking about a unit that is not loaded makes systemd load it, announce it and forget it, and who asks at each announcement never ends. */

#include "daemon/units-internal.h"

#include <search.h>
#include <time.h>

#define ASKING_MAX 2U                             /* entries, of ENTRY_CALLS calls each: PID 1 has other things to do */
#define ACCURACY_USEC (10 * USEC_PER_MSEC)
#define AGAIN_DELAY_USEC (20 * USEC_PER_MSEC)
#define FAILURE_DELAY_USEC (2 * USEC_PER_SEC)
#define FAILURES_MAX 5U

uint64_t units_now(const Units *u) {
        uint64_t now;

        if (sd_event_now(u->event, CLOCK_MONOTONIC, &now) < 0)
                return 0;
        return now;
}

/* ---- the indexes: trees of names that point to entries ---- */

typedef struct Node {
        char *key;
        UnitEntry *entry;
} Node;

static int compare_nodes(const void *a, const void *b) {
        return strcmp(((const Node *) a)->key, ((const Node *) b)->key);
}

static UnitEntry *index_find(void *const *tree, const char *key) {
        Node like = { .key = (char *) key }, **found = tfind(&like, tree, compare_nodes);

        return found ? (*found)->entry : NULL;
}

static void node_free(void *p) {
        Node *n = p;

        free(n->key);
        free(n);
}

/* Points key to entry, whoever had it before. */
static int index_set(void **tree, const char *key, UnitEntry *entry) {
        Node *node = calloc(1, sizeof(*node)), **found;

        if (!node)
                return -ENOMEM;
        node->key = strdup(key);
        node->entry = entry;
        found = node->key ? tsearch(node, tree, compare_nodes) : NULL;
        if (!found || *found != node)
                node_free(node);
        if (!found)
                return -ENOMEM;
        (*found)->entry = entry;
        return 0;
}

/* Takes key out if it points to entry. */
static void index_unset(void **tree, const char *key, const UnitEntry *entry) {
        Node like = { .key = (char *) key }, **found = tfind(&like, tree, compare_nodes), *node;

        if (!found || (*found)->entry != entry)
                return;
        node = *found;
        (void) tdelete(&like, tree, compare_nodes);
        node_free(node);
}

static void index_names(UnitEntry *e, const UnitInfo *info, bool set) {
        const char *name = info->id;

        for (size_t i = 0; name; name = info->names ? info->names[i++] : NULL)
                if (set)
                        (void) index_set(&e->units->by_name, name, e);
                else
                        index_unset(&e->units->by_name, name, e);
}

static void index_cgroup(UnitEntry *e, const char *cgroup) {
        if (streq_null(e->cgroup_key, cgroup && cgroup[0] ? cgroup : NULL))
                return;
        if (e->cgroup_key)
                index_unset(&e->units->by_cgroup, e->cgroup_key, e);
        if (free_and_strdup(&e->cgroup_key, cgroup && cgroup[0] ? cgroup : NULL) < 0) {
                free(e->cgroup_key);
                e->cgroup_key = NULL;
        }
        if (e->cgroup_key)
                (void) index_set(&e->units->by_cgroup, e->cgroup_key, e);
}

/* ---- entries ---- */

UnitEntry *entry_find(const Units *u, const char *name) {
        return index_find(&u->by_name, name);
}

static void entry_free(UnitEntry *e) {
        entry_forget_calls(e);
        unit_info_clear(&e->info);
        unit_info_clear(&e->incoming);
        free(e->path);
        free(e->cgroup_key);
        free(e->own_quota_original);
        free(e->own_period_original);
        free(e);
}

/* Fills what a name alone can say. */
static int info_of_name(UnitInfo *info, const char *name) {
        *info = (UnitInfo){ .quota_per_sec_usec = USEC_INFINITY, .quota_period_usec = USEC_INFINITY, .cpu_weight = UINT64_MAX,
                            .owner_quota_per_sec_usec = USEC_INFINITY, .owner_quota_period_usec = USEC_INFINITY, .loading = true };
        info->id = strdup(name);
        info->names = strings_copy((char *[]){ (char *) name, NULL });
        info->cgroup = strdup("");
        info->slice = strdup("");
        info->active_state = strdup("");
        info->load_state = strdup("");
        info->user = strdup("");
        info->fragment_path = strdup("");
        info->dropin_paths = strings_copy(NULL);
        if (info->id && info->names && info->cgroup && info->slice && info->active_state && info->load_state && info->user && info->fragment_path &&
            info->dropin_paths)
                return 0;
        unit_info_clear(info);
        return -ENOMEM;
}

UnitEntry *entry_get(Units *u, const char *name) {
        UnitEntry *e = entry_find(u, name);

        if (e || !unit_type_of(name))
                return e;
        e = calloc(1, sizeof(*e));
        if (!e)
                return NULL;
        e->units = u;
        if (info_of_name(&e->info, name) < 0 || sd_bus_path_encode(SYSTEMD_UNITS_PATH, name, &e->path) < 0 || index_set(&u->by_name, name, e) < 0) {
                entry_free(e);
                return NULL;
        }
        e->next = u->entries;
        if (e->next)
                e->next->previous = e;
        u->entries = e;
        return e;
}

static void leave_listing(UnitEntry *e) {
        if (e->listing) {
                e->listing = false;
                e->units->n_listing--;
        }
}

static void queue_remove(UnitEntry *e) {
        Units *u = e->units;
        UnitEntry *previous = NULL;

        for (UnitEntry *q = u->queue_head; q; previous = q, q = q->queue_next) {
                if (q != e)
                        continue;
                if (previous)
                        previous->queue_next = e->queue_next;
                else
                        u->queue_head = e->queue_next;
                if (u->queue_tail == e)
                        u->queue_tail = previous;
                break;
        }
        e->queue_next = NULL;
}

/* Takes the entry out of whatever asking it is in. */
static void entry_halt(UnitEntry *e) {
        if (e->state == ENTRY_QUEUED)
                queue_remove(e);
        if (e->state == ENTRY_ASKING) {
                entry_forget_calls(e);
                e->units->n_asking--;
        }
        e->state = ENTRY_IDLE;
        e->again_usec = 0;
        e->n_failures = 0;
        leave_listing(e);
}

/* Takes the entry out of the table, without a word to anybody. */
static void entry_unlink(UnitEntry *e) {
        Units *u = e->units;

        entry_halt(e);
        index_names(e, &e->info, false);
        index_cgroup(e, NULL);
        if (e->previous)
                e->previous->next = e->next;
        else
                u->entries = e->next;
        if (e->next)
                e->next->previous = e->previous;
}

void entry_remove(UnitEntry *e) {
        Units *u = e->units;

        entry_unlink(e);
        if (e->published && u->handlers.removed)
                u->handlers.removed(e->info.id, u->userdata);
        entry_free(e);
}

void entries_halt(Units *u) {
        for (UnitEntry *e = u->entries; e; e = e->next)
                entry_halt(e);
        u->delay_due_usec = USEC_INFINITY;
        if (u->delay)
                (void) sd_event_source_set_enabled(u->delay, SD_EVENT_OFF);
}

/* ---- the queue ---- */

static void pump(Units *u) {
        while (u->bus && u->n_asking < ASKING_MAX && u->queue_head) {
                UnitEntry *e = u->queue_head;
                int r;

                queue_remove(e);
                e->state = ENTRY_IDLE;
                r = entry_ask(e);
                if (r < 0) {
                        /* Not sent: the connection is going down, or memory is short. The next listing brings the unit back. */
                        leave_listing(e);
                        continue;
                }
                e->state = ENTRY_ASKING;
                e->asked_usec = units_now(u);
                u->n_asking++;
                u->n_asked++;
        }
}

static void enqueue(UnitEntry *e) {
        Units *u = e->units;

        e->state = ENTRY_QUEUED;
        e->queue_next = NULL;
        if (u->queue_tail)
                u->queue_tail->queue_next = e;
        else
                u->queue_head = e;
        u->queue_tail = e;
}

static int on_delay(sd_event_source *s, uint64_t usec, void *userdata);

/* Sees to it that the timer goes off by then. */
static void arm_delay(Units *u, uint64_t due_usec) {
        if (due_usec >= u->delay_due_usec)
                return;
        u->delay_due_usec = due_usec;
        if (!u->delay) {
                if (sd_event_add_time(u->event, &u->delay, CLOCK_MONOTONIC, due_usec, ACCURACY_USEC, on_delay, u) >= 0)
                        (void) sd_event_source_set_description(u->delay, "units-delay");
                return;
        }
        (void) sd_event_source_set_time(u->delay, due_usec);
        (void) sd_event_source_set_enabled(u->delay, SD_EVENT_ONESHOT);
}

static int on_delay(sd_event_source *s, uint64_t usec, void *userdata) {
        Units *u = userdata;
        uint64_t now = units_now(u), first = USEC_INFINITY;

        u->delay_due_usec = USEC_INFINITY;
        for (UnitEntry *e = u->entries; e; e = e->next) {
                if (e->state != ENTRY_WAITING)
                        continue;
                if (e->due_usec <= now)
                        enqueue(e);
                else
                        first = MIN_OF(first, e->due_usec);
        }
        arm_delay(u, first);
        pump(u);
        return 0;
}

void entry_schedule(UnitEntry *e, uint64_t delay_usec) {
        Units *u = e->units;
        uint64_t due = units_now(u) + delay_usec;

        switch (e->state) {
        case ENTRY_ASKING:
                /* A while for the rest of the burst, however urgent. */
                due = MAX_OF(due, units_now(u) + AGAIN_DELAY_USEC);
                e->again_usec = e->again_usec ? MIN_OF(e->again_usec, due) : due;
                return;
        case ENTRY_QUEUED:
                return;
        case ENTRY_WAITING:
                if (due >= e->due_usec)
                        return;
                break;
        case ENTRY_IDLE:
                break;
        }
        if (delay_usec == 0) {
                enqueue(e);
                pump(u);
                return;
        }
        e->state = ENTRY_WAITING;
        e->due_usec = due;
        arm_delay(u, due);
}

/* ---- answers ---- */

static bool own_dropin(const char *id, const char *property, const char *content, const char **ret_original, void *userdata) {
        UnitEntry *e = userdata;
        const UnitsHandlers *h = &e->units->handlers;

        if (h->own_dropin && h->own_dropin(id, property, content, ret_original, e->units->userdata))
                return true;
        if (streq(property, "CPUQuota") ? !e->own_quota || !units_dropin_says(id, property, content, e->own_quota_per_sec_usec)
                                        : !e->own_period || !units_dropin_says(id, property, content, e->own_quota_period_usec))
                return false;
        *ret_original = streq(property, "CPUQuota") ? e->own_quota_original : e->own_period_original;
        return true;
}

/* Whether the files must be read again: others may be meant, or the ones that systemd writes itself have changed. */
static bool files_are_due(const UnitEntry *e) {
        const UnitInfo *a = &e->info, *b = &e->incoming;

        return e->read_files || !e->published || !streq_null(a->fragment_path, b->fragment_path) || !strings_equal(a->dropin_paths, b->dropin_paths) ||
               a->quota_per_sec_usec != b->quota_per_sec_usec || a->quota_period_usec != b->quota_period_usec;
}

/* Completes the incoming facts; 0 or -ENOMEM. */
static int complete_incoming(UnitEntry *e) {
        UnitInfo *in = &e->incoming;
        const char *const *const texts[] = { (const char *const *) &in->cgroup, (const char *const *) &in->slice, (const char *const *) &in->active_state,
                                             (const char *const *) &in->load_state, (const char *const *) &in->user, (const char *const *) &in->fragment_path };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (!*texts[i] && free_and_strdup((char **) texts[i], "") < 0)
                        return -ENOMEM;
        if (!in->dropin_paths && !(in->dropin_paths = strings_copy(NULL)))
                return -ENOMEM;
        if (!in->names || !in->names[0]) {
                strings_free(in->names);
                in->names = strings_copy((char *[]){ in->id, NULL });
                if (!in->names)
                        return -ENOMEM;
        }
        if (files_are_due(e))
                return unit_files_load(in, e->units->search_path, own_dropin, e);
        if (free_and_strdup(&in->class_word, e->info.class_word) < 0 || free_and_strdup(&in->overriding_dropin, e->info.overriding_dropin) < 0)
                return -ENOMEM;
        in->owner_quota_known = e->info.owner_quota_known;
        in->owner_quota_per_sec_usec = e->info.owner_quota_per_sec_usec;
        in->owner_quota_period_usec = e->info.owner_quota_period_usec;
        return 0;
}

/* had_news: signals came since it was asked about. */
static void entry_failed(UnitEntry *e, int error, bool had_news) {
        Units *u = e->units;

        if (error == -ENOENT && !had_news)
                entry_remove(e);
        else {
                leave_listing(e);
                /* A reply that did not come in time, or memory: again, a few times. When the connection is gone the next listing asks. */
                if (error != -ENOTCONN && ++e->n_failures < FAILURES_MAX)
                        entry_schedule(e, FAILURE_DELAY_USEC);
        }
        pump(u);
        listing_check_done(u);
}

/* The name we asked with turned out to be an alias: the entry becomes that of the real unit, or gives way to it. Returns true when e is gone. */
static bool take_real_name(UnitEntry *e) {
        Units *u = e->units;
        UnitEntry *real = entry_find(u, e->incoming.id);
        char *path = NULL;

        if (real == e)
                real = NULL;
        if (real || sd_bus_path_encode(SYSTEMD_UNITS_PATH, e->incoming.id, &path) < 0) {
                if (real)
                        entry_schedule(real, 0);
                entry_remove(e);
                return true;
        }
        free(e->path);
        e->path = path;
        return false;
}

void entry_finish(UnitEntry *e) {
        Units *u = e->units;
        uint64_t again_usec = e->again_usec, now = units_now(u);
        bool changed;
        int r = e->error;

        entry_forget_calls(e);
        e->state = ENTRY_IDLE;
        e->again_usec = 0;
        u->n_asking--;

        if (r >= 0 && (!e->incoming.id || !unit_type_of(e->incoming.id)))
                r = -EBADMSG;
        if (r >= 0 && !streq(e->incoming.id, e->info.id) && take_real_name(e)) {
                pump(u);
                listing_check_done(u);
                return;
        }
        if (r >= 0)
                r = complete_incoming(e);
        if (r < 0) {
                entry_failed(e, r, again_usec != 0);
                return;
        }

        e->n_failures = 0;
        e->read_files = false;
        changed = !e->published || !unit_info_equal(&e->info, &e->incoming);
        if (changed) {
                UnitInfo old = e->info;

                index_names(e, &old, false);
                e->info = e->incoming;
                e->incoming = (UnitInfo){ 0 };
                index_names(e, &e->info, true);
                index_cgroup(e, e->info.cgroup);
                unit_info_clear(&old);
                e->published = true;
        } else
                unit_info_clear(&e->incoming);
        if (again_usec) /* a listing waits for the answer to the later question */
                entry_schedule(e, e->listing || again_usec <= now ? 0 : again_usec - now);
        else
                leave_listing(e);
        pump(u);
        if (changed && u->handlers.changed)
                u->handlers.changed(&e->info, u->userdata);
        listing_check_done(u);
}

/* ---- public ---- */

const UnitInfo *units_get(const Units *u, const char *name) {
        UnitEntry *e = entry_find(u, name);

        return e ? &e->info : NULL;
}

const UnitInfo *units_by_cgroup(const Units *u, const char *cgroup) {
        UnitEntry *e = index_find(&u->by_cgroup, cgroup);

        return e ? &e->info : NULL;
}

bool units_are_connected(const Units *u) {
        return u->connected;
}

void units_refresh(Units *u, const char *name) {
        UnitEntry *e;

        if (!u->bus || u->bus_lost || u->in_reload)
                return; /* the listing that comes asks about all */
        e = entry_get(u, name);
        if (!e)
                return;
        e->read_files = true;
        entry_schedule(e, 0);
}

int units_new(sd_event *event, const char *address, const UnitsHandlers *handlers, void *userdata, Units **ret) {
        Units *u = calloc(1, sizeof(*u));
        int r;

        if (!u)
                return -ENOMEM;
        u->event = sd_event_ref(event);
        u->delay_due_usec = USEC_INFINITY;
        u->watch_fd = -1;
        u->handlers = *handlers;
        u->userdata = userdata;
        if (free_and_strdup(&u->address, address) < 0) {
                units_free(u);
                return -ENOMEM;
        }
        watch_start(u);
        r = bus_start(u);
        if (r < 0) {
                units_free(u);
                return r;
        }
        *ret = u;
        return 0;
}

Units *units_free(Units *u) {
        if (!u)
                return NULL;
        u->handlers = (UnitsHandlers){ 0 };
        calls_free(u);
        while (u->entries) {
                UnitEntry *e = u->entries;

                entry_unlink(e);
                entry_free(e);
        }
        bus_stop(u);
        watch_stop(u);
        sd_event_source_disable_unref(u->delay);
        sd_event_source_disable_unref(u->retry);
        strings_free(u->search_path);
        free(u->address);
        tdestroy(u->by_name, node_free);
        tdestroy(u->by_cgroup, node_free);
        sd_event_unref(u->event);
        free(u);
        return NULL;
}
