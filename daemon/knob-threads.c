/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads come, go and move between groups while we look: a list is a snapshot, and each thread is named by its id and start time. */

#include "daemon/knob-threads.h"

#define THREADS_TEXT_MAX (8U << 20)     /* about a million threads */
#define DEAD_FLUSH_COUNT 1024
#define DEAD_FLUSH_USEC (10 * USEC_PER_SEC)

typedef struct List {
        pid_t *items;
        size_t n, capacity;
        bool zero_seen;
} List;

static int add(pid_t tid, void *userdata) {
        List *l = userdata;

        if (tid <= 0) {
                l->zero_seen = true;
                return 0;
        }
        if (GROW_ARRAY(l->items, l->n, l->capacity) < 0)
                return -ENOMEM;
        l->items[l->n++] = tid;
        return 0;
}

static int compare(const void *a, const void *b) {
        pid_t x = *(const pid_t *) a, y = *(const pid_t *) b;

        return (x > y) - (x < y);
}

int group_threads(int dir_fd, pid_t **ret, size_t *ret_n, bool *ret_zero_seen) {
        _cleanup_free_ char *text = NULL;
        List l = { 0 };
        size_t length, out = 0;
        int r = cgroup_read_all(dir_fd, "cgroup.threads", THREADS_TEXT_MAX, &text, &length);

        if (r < 0)
                return r;
        r = tids_parse(text, length, add, &l);
        if (r < 0) {
                free(l.items);
                return r;
        }
        if (l.n > 1)
                qsort(l.items, l.n, sizeof(*l.items), compare);
        for (size_t i = 0; i < l.n; i++)
                if (out == 0 || l.items[out - 1] != l.items[i])
                        l.items[out++] = l.items[i];
        *ret = l.items;
        *ret_n = out;
        if (ret_zero_seen)
                *ret_zero_seen = l.zero_seen;
        return 0;
}

bool thread_is_in_group(pid_t tid, const char *path) {
        _cleanup_free_ char *now = NULL;

        return cgroup_of_pid(tid, &now) >= 0 && streq(now, path);
}

void dead_thread(Manager *m, LedgerKind kind, const char *key, pid_t tid, uint64_t start_ticks) {
        if (GROW_ARRAY(m->dead, m->n_dead, m->dead_capacity) < 0)
                return;                      /* a record of a thread that is gone harms nobody: its start time never matches again */
        m->dead[m->n_dead] = (LedgerRecord) { .kind = kind, .key = strdup(key), .tid = tid, .start_ticks = start_ticks };
        m->n_dead++;
}

void dead_threads_flush(Manager *m, bool force) {
        uint64_t now = clock_monotonic_usec();

        if (m->n_dead == 0 || (!force && m->n_dead < DEAD_FLUSH_COUNT && now < m->next_dead_flush_usec))
                return;
        (void) ledger_drop_many(m->ledger, m->dead, m->n_dead);
        for (size_t i = 0; i < m->n_dead; i++)
                free(m->dead[i].key);
        m->n_dead = 0;
        m->next_dead_flush_usec = now + DEAD_FLUSH_USEC;
}
