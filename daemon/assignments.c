/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The store: a sorted array in memory, and the log that it was made from. A change is a line of the log first; only when that is durable does memory
 * follow, and by then all that it needs is allocated. */

#include "daemon/assignments.h"

#include <time.h>

#include "daemon/assignments-internal.h"

#define ASSIGNMENTS_FILE "assignments"
#define COMPACT_MIN_BYTES (UINT64_C(128) << 10)
#define COMPACT_RATIO 4
#define LINE_BYTES 220 /* about what an assignment takes in the log */

struct Assignments {
        StateLog *log;
        Assignment **items;      /* by kind, then target */
        size_t n_items, capacity;
        uint64_t revision;
        bool damaged;            /* while opening */
        uint64_t compact_above;  /* no compaction below this size: the last one failed */
};

void assignment_clear(Assignment *one) {
        free(one->target);
        free(one->class_name);
        free(one->owner);
        free(one->by);
        *one = (Assignment){ 0 };
}

int assignment_copy(const Assignment *one, Assignment *ret) {
        Assignment copy = *one;

        copy.target = strdup(one->target);
        copy.class_name = strdup(one->class_name);
        copy.owner = strdup(one->owner);
        copy.by = one->by ? strdup(one->by) : NULL;
        if (!copy.target || !copy.class_name || !copy.owner || (one->by && !copy.by)) {
                assignment_clear(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

static Assignment *assignment_free(Assignment *one) {
        if (one) {
                assignment_clear(one);
                free(one);
        }
        return NULL;
}

static Assignment *assignment_new_copy(const Assignment *one) {
        Assignment *copy = malloc(sizeof(*copy));

        if (copy && assignment_copy(one, copy) < 0) {
                free(copy);
                return NULL;
        }
        return copy;
}

static bool amount_equal(const Amount *a, const Amount *b) {
        return a->kind == b->kind && a->value == b->value;
}

/* Whether two say the same to the world: not who said it and when. */
static bool assignment_means(const Assignment *a, const Assignment *b) {
        const Overrides *x = &a->overrides, *y = &b->overrides;

        return streq(a->class_name, b->class_name) && streq(a->owner, b->owner) && a->force == b->force &&
               a->expires_realtime_usec == b->expires_realtime_usec && x->has_latency_nice == y->has_latency_nice &&
               (!x->has_latency_nice || x->latency_nice == y->latency_nice) && amount_equal(&x->quota, &y->quota) && x->period_usec == y->period_usec &&
               amount_equal(&x->burst, &y->burst) && amount_equal(&x->floor, &y->floor) && amount_equal(&x->ceiling, &y->ceiling);
}

/* ---- the array ---- */

static int compare(TargetKind kind, const char *target, const Assignment *item) {
        return kind != item->kind ? (kind < item->kind ? -1 : 1) : strcmp(target, item->target);
}

/* Index of the target, or where it would be. */
static size_t position(const Assignments *a, TargetKind kind, const char *target, bool *ret_found) {
        size_t low = 0, high = a->n_items;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int c = compare(kind, target, a->items[middle]);

                if (c == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (c < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        *ret_found = false;
        return low;
}

static int reserve(Assignments *a, size_t n) {
        Assignment **items;
        size_t capacity = a->capacity;

        if (a->n_items + n <= capacity)
                return 0;
        while (capacity < a->n_items + n)
                capacity = capacity ? 2 * capacity : 16;
        items = reallocarray(a->items, capacity, sizeof(*items));
        if (!items)
                return -ENOMEM;
        a->items = items;
        a->capacity = capacity;
        return 0;
}

/* Takes over one; there is room. */
static void install(Assignments *a, Assignment *one) {
        bool found;
        size_t i = position(a, one->kind, one->target, &found);

        if (found)
                assignment_free(a->items[i]);
        else {
                memmove(a->items + i + 1, a->items + i, (a->n_items - i) * sizeof(*a->items));
                a->n_items++;
        }
        a->items[i] = one;
}

static void uninstall(Assignments *a, TargetKind kind, const char *target) {
        bool found;
        size_t i = position(a, kind, target, &found);

        if (!found)
                return;
        assignment_free(a->items[i]);
        a->n_items--;
        memmove(a->items + i, a->items + i + 1, (a->n_items - i) * sizeof(*a->items));
}

/* ---- the log ---- */

static int take_line(json_t *line, void *userdata) {
        Assignments *a = userdata;
        Assignment one = { 0 }, *copy;
        uint64_t revision;
        bool delete;
        int r;

        r = assignment_from_line(line, &one, &delete, &revision);
        if (r == -EBADMSG) {
                a->damaged = true;
                return 0;
        }
        if (r < 0)
                return r;
        a->revision = MAX_OF(a->revision, revision);
        if (!one.target)
                return 0;
        if (delete) {
                uninstall(a, one.kind, one.target);
                assignment_clear(&one);
                return 0;
        }
        r = reserve(a, 1);
        copy = r < 0 ? NULL : malloc(sizeof(*copy));
        if (!copy) {
                assignment_clear(&one);
                return -ENOMEM;
        }
        *copy = one;
        install(a, copy);
        return 0;
}

typedef struct RewriteCursor {
        const Assignments *store;
        size_t next; /* 0 is the line of the revision */
} RewriteCursor;

static int next_line(void *userdata, json_t **ret) {
        RewriteCursor *c = userdata;

        if (c->next > c->store->n_items)
                return 0;
        *ret = c->next == 0 ? assignment_revision_to_line(c->store->revision) : assignment_to_line(c->store->items[c->next - 1]);
        c->next++;
        return *ret ? 1 : -ENOMEM;
}

static int compact(Assignments *a) {
        RewriteCursor cursor = { .store = a };
        int r;

        r = state_log_rewrite(a->log, next_line, &cursor);
        if (r >= 0)
                a->compact_above = 0;
        return r;
}

/* Writes the lines of one change, all or nothing. Takes over the reference; NULL is want of memory. */
static int write_durably(Assignments *a, json_t *lines) {
        int r = 0;

        if (!lines)
                return -ENOMEM;
        if (state_log_needs_rewrite(a->log))
                r = compact(a);
        if (r >= 0)
                r = state_log_append(a->log, lines);
        json_decref(lines);
        return r;
}

static void compact_when_due(Assignments *a) {
        uint64_t size = state_log_size(a->log);

        if (size < COMPACT_MIN_BYTES || size < COMPACT_RATIO * LINE_BYTES * a->n_items || size < a->compact_above)
                return;
        if (compact(a) < 0)
                a->compact_above = 2 * size;
}

static void clear_items(Assignments *a) {
        while (a->n_items > 0)
                assignment_free(a->items[--a->n_items]);
        a->revision = 0;
}

Assignments *assignments_close(Assignments *a) {
        if (!a)
                return NULL;
        state_log_close(a->log);
        clear_items(a);
        free(a->items);
        free(a);
        return NULL;
}

static void assignments_close_pointer(Assignments **a) {
        (void) assignments_close(*a);
}

int assignments_open(int state_dir_fd, bool *ret_damaged, Assignments **ret) {
        _cleanup_(assignments_close_pointer) Assignments *a = NULL;
        size_t n_damaged = 0;
        bool damaged;
        int r;

        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        r = state_log_open(state_dir_fd, ASSIGNMENTS_FILE, take_line, a, &n_damaged, &a->log);
        if (r == -EPROTONOSUPPORT || r == -EBADMSG) {
                r = state_put_aside(state_dir_fd, ASSIGNMENTS_FILE);
                if (r < 0)
                        return r;
                clear_items(a);
                r = state_log_open(state_dir_fd, ASSIGNMENTS_FILE, take_line, a, NULL, &a->log);
                damaged = true;
        } else {
                damaged = a->damaged || n_damaged > 0;
                /* The damage is only written over once it is kept; until then memory is right, and the next opening tries again. */
                if (r >= 0 && (damaged ? state_log_keep_copy(a->log) >= 0 : state_log_needs_rewrite(a->log)))
                        (void) compact(a);
        }
        if (r < 0)
                return r;
        if (ret_damaged)
                *ret_damaged = damaged;
        *ret = TAKE_PTR(a);
        return 0;
}

/* ---- changes ---- */

static uint64_t now_realtime_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

/* A change being made: new items, targets that go, and the lines that say so. */
typedef struct Change {
        json_t *lines;
        Assignment **puts;
        size_t n_puts;
        uint64_t revision;
} Change;

static void change_clear(Change *c) {
        json_decref(c->lines);
        for (size_t i = 0; i < c->n_puts; i++)
                assignment_free(c->puts[i]);
        free(c->puts);
}

static int change_begin(const Assignments *a, Change *c, size_t n_puts) {
        c->revision = a->revision;
        c->lines = json_array();
        c->puts = calloc(n_puts ? n_puts : 1, sizeof(*c->puts));
        return c->lines && c->puts ? 0 : -ENOMEM;
}

/* Adds a put where it changes something. old: what is there, NULL nothing. owner NULL: the one it names. */
static int change_put(Change *c, const Assignment *one, const Assignment *old, const char *owner) {
        Assignment wanted = *one;
        Assignment *copy;

        if (owner)
                wanted.owner = (char *) owner;
        if (old && assignment_means(&wanted, old))
                return 0;
        copy = assignment_new_copy(&wanted);
        if (!copy)
                return -ENOMEM;
        c->puts[c->n_puts++] = copy;
        copy->revision = ++c->revision;
        copy->created_realtime_usec = old ? old->created_realtime_usec : one->created_realtime_usec > 0 ? one->created_realtime_usec : now_realtime_usec();
        return json_array_append_new(c->lines, assignment_to_line(copy)) != 0 ? -ENOMEM : 1;
}

static int change_delete(Change *c, const Assignment *old) {
        return json_array_append_new(c->lines, assignment_delete_to_line(old, ++c->revision)) != 0 ? -ENOMEM : 0;
}

/* On disk, then in memory; the caller takes out what goes. */
static int change_commit(Assignments *a, Change *c) {
        int r;

        r = reserve(a, c->n_puts);
        if (r < 0)
                return r;
        r = write_durably(a, TAKE_PTR(c->lines));
        if (r < 0)
                return r;
        a->revision = c->revision;
        for (size_t i = 0; i < c->n_puts; i++)
                install(a, TAKE_PTR(c->puts[i]));
        return 0;
}

static bool assignment_is_whole(const Assignment *one) {
        return (size_t) one->kind < _TARGET_KIND_MAX && one->target && one->class_name && one->owner;
}

int assignments_put(Assignments *a, const Assignment *one, bool steal, bool *ret_created) {
        _cleanup_(change_clear) Change c = { 0 };
        const Assignment *old;
        int r;

        if (!assignment_is_whole(one))
                return -EINVAL;
        old = assignments_get(a, one->kind, one->target);
        if (old && !streq(old->owner, one->owner) && !steal)
                return -EEXIST;
        if (!old && a->n_items >= ASSIGNMENTS_MAX)
                return -ENOSPC;
        r = change_begin(a, &c, 1);
        if (r >= 0)
                r = change_put(&c, one, old, NULL);
        if (r > 0)
                r = change_commit(a, &c);
        if (r < 0)
                return r;
        if (ret_created)
                *ret_created = !old;
        compact_when_due(a);
        return 0;
}

int assignments_delete(Assignments *a, TargetKind kind, const char *target) {
        _cleanup_(change_clear) Change c = { 0 };
        const Assignment *old = assignments_get(a, kind, target);
        int r;

        if (!old)
                return 0;
        r = change_begin(a, &c, 0);
        if (r >= 0)
                r = change_delete(&c, old);
        if (r >= 0)
                r = change_commit(a, &c);
        if (r < 0)
                return r;
        /* target may be the item's own string. */
        uninstall(a, kind, target);
        compact_when_due(a);
        return 0;
}

static int compare_indirect(const void *x, const void *y) {
        const Assignment *a = *(const Assignment *const *) x, *b = *(const Assignment *const *) y;

        return compare(a->kind, a->target, b);
}

int assignments_replace_owner(Assignments *a, const char *owner, const Assignment *all, size_t n, size_t *ret_changed, size_t *ret_pruned, size_t *ret_conflict) {
        _cleanup_(change_clear) Change c = { 0 };
        _cleanup_free_ const Assignment **sorted = NULL;
        size_t n_pruned = 0, n_new = 0, n_kept = 0;
        int r;

        sorted = calloc(n ? n : 1, sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const Assignment *old;

                sorted[i] = &all[i];
                if (!all[i].target || !all[i].class_name || (size_t) all[i].kind >= _TARGET_KIND_MAX)
                        return -EINVAL;
                old = assignments_get(a, all[i].kind, all[i].target);
                n_new += !old;
                if (old && !streq(old->owner, owner)) {
                        if (ret_conflict)
                                *ret_conflict = i;
                        return -EEXIST;
                }
        }
        qsort(sorted, n, sizeof(*sorted), compare_indirect);
        for (size_t i = 1; i < n; i++)
                if (compare_indirect(&sorted[i - 1], &sorted[i]) == 0) {
                        if (ret_conflict)
                                *ret_conflict = (size_t) (MAX_OF(sorted[i - 1], sorted[i]) - all);
                        return -EINVAL;
                }

        r = change_begin(a, &c, n);
        for (size_t i = 0; i < n && r >= 0; i++)
                r = change_put(&c, &all[i], assignments_get(a, all[i].kind, all[i].target), owner);
        for (size_t i = 0; i < a->n_items && r >= 0; i++) {
                const Assignment *item = a->items[i];

                if (streq(item->owner, owner) && !bsearch(&item, sorted, n, sizeof(*sorted), compare_indirect)) {
                        r = change_delete(&c, item);
                        n_pruned++;
                }
        }
        if (r >= 0 && a->n_items + n_new - n_pruned > ASSIGNMENTS_MAX)
                r = -ENOSPC;
        if (r >= 0 && c.revision != a->revision)
                r = change_commit(a, &c);
        if (r < 0)
                return r;

        for (size_t i = 0; i < a->n_items; i++) {
                const Assignment *item = a->items[i];

                if (streq(item->owner, owner) && !bsearch(&item, sorted, n, sizeof(*sorted), compare_indirect))
                        assignment_free(a->items[i]);
                else
                        a->items[n_kept++] = a->items[i];
        }
        a->n_items = n_kept;
        if (ret_changed)
                *ret_changed = c.n_puts;
        if (ret_pruned)
                *ret_pruned = n_pruned;
        compact_when_due(a);
        return 0;
}

static bool is_expired(const Assignment *item, uint64_t now_realtime) {
        return item->expires_realtime_usec > 0 && item->expires_realtime_usec <= now_realtime;
}

int assignments_expire(Assignments *a, uint64_t now_realtime, uint64_t *ret_next_usec) {
        _cleanup_(change_clear) Change c = { 0 };
        uint64_t next = USEC_INFINITY;
        size_t n_expired = 0, n_kept = 0;
        int r;

        for (size_t i = 0; i < a->n_items; i++)
                if (is_expired(a->items[i], now_realtime))
                        n_expired++;
                else if (a->items[i]->expires_realtime_usec > 0)
                        next = MIN_OF(next, a->items[i]->expires_realtime_usec);
        if (n_expired > 0) {
                r = change_begin(a, &c, 0);
                for (size_t i = 0; i < a->n_items && r >= 0; i++)
                        if (is_expired(a->items[i], now_realtime))
                                r = change_delete(&c, a->items[i]);
                if (r >= 0)
                        r = change_commit(a, &c);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < a->n_items; i++)
                        if (is_expired(a->items[i], now_realtime))
                                assignment_free(a->items[i]);
                        else
                                a->items[n_kept++] = a->items[i];
                a->n_items = n_kept;
                compact_when_due(a);
        }
        if (ret_next_usec)
                *ret_next_usec = next;
        return (int) n_expired;
}

/* ---- questions ---- */

const Assignment *assignments_get(const Assignments *a, TargetKind kind, const char *target) {
        bool found;
        size_t i = position(a, kind, target, &found);

        return found ? a->items[i] : NULL;
}

size_t assignments_count(const Assignments *a) {
        return a->n_items;
}

const Assignment *assignments_at(const Assignments *a, size_t index) {
        return index < a->n_items ? a->items[index] : NULL;
}

uint64_t assignments_revision(const Assignments *a) {
        return a->revision;
}
