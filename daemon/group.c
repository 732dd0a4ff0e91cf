/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table is a sorted array: lookups are binary searches, paging and subtrees are ranges, and ten thousand pointers move in microseconds. */

#include "daemon/group.h"

int group_new(const char *path, uint64_t inode, Group **ret) {
        Group *g = calloc(1, sizeof(*g));

        if (!g)
                return -ENOMEM;
        g->path = strdup(path);
        if (!g->path) {
                free(g);
                return -ENOMEM;
        }
        g->inode = inode;
        g->watch = -1;
        *ret = g;
        return 0;
}

int group_make_managed(Group *g) {
        if (g->managed)
                return 0;
        g->managed = calloc(1, sizeof(*g->managed));
        if (!g->managed)
                return -ENOMEM;
        g->managed->stat_fd = g->managed->pressure_fd = g->managed->max_fd = -1;
        return 0;
}

void group_drop_managed(Group *g) {
        Managed *m = g->managed;

        if (!m)
                return;
        if (m->stat_fd >= 0)
                (void) close(m->stat_fd);
        if (m->pressure_fd >= 0)
                (void) close(m->pressure_fd);
        if (m->max_fd >= 0)
                (void) close(m->max_fd);
        thread_set_clear(&m->slice_threads);
        thread_set_clear(&m->cookie_threads);
        free(m->inherited_from);
        free(m);
        g->managed = NULL;
}

Group *group_free(Group *g) {
        if (!g)
                return NULL;
        group_drop_managed(g);
        free(g->label);
        free(g->unknown_class);
        free(g->path);
        free(g);
        return NULL;
}

size_t group_table_lower_bound(const GroupTable *t, const char *path) {
        size_t lo = 0, hi = t->n;

        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;

                if (strcmp(t->items[mid]->path, path) < 0)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo;
}

Group *group_table_find(const GroupTable *t, const char *path) {
        size_t i = group_table_lower_bound(t, path);

        return i < t->n && streq(t->items[i]->path, path) ? t->items[i] : NULL;
}

int group_table_add(GroupTable *t, Group *g) {
        size_t i = group_table_lower_bound(t, g->path);

        if (i < t->n && streq(t->items[i]->path, g->path))
                return -EEXIST;
        if (GROW_ARRAY(t->items, t->n, t->capacity) < 0)
                return -ENOMEM;
        memmove(t->items + i + 1, t->items + i, (t->n - i) * sizeof(*t->items));
        t->items[i] = g;
        t->n++;
        return 0;
}

static size_t watch_lower_bound(const GroupTable *t, int watch) {
        size_t lo = 0, hi = t->n_by_watch;

        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;

                if (t->by_watch[mid]->watch < watch)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo;
}

Group *group_table_find_watch(const GroupTable *t, int watch) {
        size_t i = watch_lower_bound(t, watch);

        return i < t->n_by_watch && t->by_watch[i]->watch == watch ? t->by_watch[i] : NULL;
}

int group_table_set_watch(GroupTable *t, Group *g, int watch) {
        size_t i;

        if (g->watch == watch)
                return 0;
        if (g->watch >= 0) {
                i = watch_lower_bound(t, g->watch);
                if (i < t->n_by_watch && t->by_watch[i] == g) {
                        memmove(t->by_watch + i, t->by_watch + i + 1, (t->n_by_watch - i - 1) * sizeof(*t->by_watch));
                        t->n_by_watch--;
                }
                g->watch = -1;
        }
        if (watch < 0)
                return 0;
        i = watch_lower_bound(t, watch);
        if (i < t->n_by_watch && t->by_watch[i]->watch == watch) {
                /* The kernel gave the number of a directory that is gone: the older owner has lost it. */
                t->by_watch[i]->watch = -1;
                t->by_watch[i] = g;
                g->watch = watch;
                return 0;
        }
        if (GROW_ARRAY(t->by_watch, t->n_by_watch, t->capacity_by_watch) < 0)
                return -ENOMEM;
        memmove(t->by_watch + i + 1, t->by_watch + i, (t->n_by_watch - i) * sizeof(*t->by_watch));
        t->by_watch[i] = g;
        t->n_by_watch++;
        g->watch = watch;
        return 0;
}

void group_table_remove(GroupTable *t, Group *g) {
        size_t i = group_table_lower_bound(t, g->path);

        (void) group_table_set_watch(t, g, -1);
        if (i < t->n && t->items[i] == g) {
                memmove(t->items + i, t->items + i + 1, (t->n - i - 1) * sizeof(*t->items));
                t->n--;
        }
}

void group_table_clear(GroupTable *t) {
        for (size_t i = 0; i < t->n; i++)
                (void) group_free(t->items[i]);
        free(t->items);
        free(t->by_watch);
        *t = (GroupTable) { 0 };
}

bool path_is_below(const char *path, const char *ancestor) {
        size_t n = strlen(ancestor);

        if (streq(ancestor, "/"))
                return path[0] == '/' && path[1];
        return strncmp(path, ancestor, n) == 0 && path[n] == '/';
}

char *path_parent(const char *path) {
        const char *slash = strrchr(path, '/');

        if (!slash || streq(path, "/"))
                return NULL;
        return slash == path ? strdup("/") : strndup(path, (size_t) (slash - path));
}

static size_t thread_lower_bound(const ThreadSet *s, pid_t tid) {
        size_t lo = 0, hi = s->n;

        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;

                if (s->items[mid].tid < tid)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo;
}

TrackedThread *thread_set_find(const ThreadSet *s, pid_t tid) {
        size_t i = thread_lower_bound(s, tid);

        return i < s->n && s->items[i].tid == tid ? s->items + i : NULL;
}

TrackedThread *thread_set_add(ThreadSet *s, pid_t tid) {
        size_t i = thread_lower_bound(s, tid);

        if (i < s->n && s->items[i].tid == tid)
                return s->items + i;
        if (GROW_ARRAY(s->items, s->n, s->capacity) < 0)
                return NULL;
        memmove(s->items + i + 1, s->items + i, (s->n - i) * sizeof(*s->items));
        s->items[i] = (TrackedThread) { .tid = tid };
        s->n++;
        return s->items + i;
}

void thread_set_remove_at(ThreadSet *s, size_t index) {
        memmove(s->items + index, s->items + index + 1, (s->n - index - 1) * sizeof(*s->items));
        s->n--;
}

void thread_set_clear(ThreadSet *s) {
        free(s->items);
        *s = (ThreadSet) { 0 };
}
