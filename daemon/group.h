/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* One control group as the manager knows it, and the ordered table of all of them.
 *
 * Every cgroup on the host has a small object (path, inode, watch); what a class needs (knobs, samples, law) hangs off `managed`, which only
 * groups with a class have. Inside daemon/ only: the API sees views. */

#include "daemon/bandwidth.h"
#include "daemon/view.h"

/* One thread that carries something of ours. */
typedef struct TrackedThread {
        pid_t tid;
        uint64_t start_ticks;
        int64_t original;    /* slice in ns before us; 0 default */
        bool verified;       /* looked at in this round of verification */
} TrackedThread;

typedef struct ThreadSet {
        TrackedThread *items; /* sorted by tid */
        size_t n, capacity;
} ThreadSet;

/* What only a classified group has. */
typedef struct Managed {
        const ServiceClass *service_class;  /* in the policy in force */
        ServiceClass effective;             /* overrides applied; strings are the class's */
        Classification classification;
        char *inherited_from;
        bool left_to_other_manager;
        char unmanaged_reason[160];

        BandwidthKnob bandwidth;
        LatencyKnob latency;
        CookieKnob cookie;
        ThreadSet slice_threads;
        ThreadSet cookie_threads;

        /* bandwidth through systemd */
        Bandwidth property;                 /* what we last asked systemd for; quota 0: nothing */
        Bandwidth property_wanted;          /* what it should hold */
        bool property_busy;                 /* a call is in flight */
        bool weight_held;                   /* CPUWeight= is ours */
        bool weight_busy;
        uint64_t property_due_usec;         /* when to tell systemd what the law has moved to */
        bool resync;                        /* systemd put its own value back: write ours once more */
        Bandwidth foreign_base;             /* adopted foreign value; quota 0: none */
        uint64_t drift_window_start_usec;
        uint32_t drift_window_count;
        uint64_t slice_window_start_usec;   /* the same for slices that somebody else sets: walks in which one was seen */
        uint32_t slice_window_count;

        /* law */
        bool law_running;
        LawConfig law_config;
        LawState law_state;
        Bandwidth law_value;                /* where the law stands; quota 0: at the start */
        uint64_t ancestors_throttled;       /* sum of the ancestors' nr_throttled, plus 1; 0 not read yet */

        GroupSample sample;
        bool sample_valid;                  /* sample.total holds a previous reading */
        uint64_t last_active_usec;          /* used CPU, throttled or stalled */
        uint64_t next_sample_usec;
        uint64_t next_walk_usec;
        int stat_fd, pressure_fd, max_fd;   /* cached where a moving law reads every 100 ms; else -1 */
        const Decision *last_decision;      /* in the ring; NULL when it has been overwritten */
        uint64_t last_decision_sequence;
        uint64_t paused_until_usec;         /* 0 not paused */
} Managed;

struct Group {
        char *path;
        uint64_t inode;
        int watch;              /* inotify watch descriptor; -1 none */
        bool seen;              /* mark of a rescan */
        bool dirty;             /* waits in the queue */
        bool leftovers;         /* the ledger of a former instance names it; not yet compared with its class */
        Group *next_dirty;
        char *label;            /* xattr user.cpuclass; NULL none */
        bool has_owner_uid;
        uint32_t owner_uid;
        Managed *managed;       /* NULL: no class */
        bool is_protected;      /* a source wanted it, but it is protected */
        char *unknown_class;
};

/* Table in path order (strcmp). */
typedef struct GroupTable {
        Group **items;
        size_t n, capacity;
        Group **by_watch;       /* sorted by watch descriptor */
        size_t n_by_watch, capacity_by_watch;
} GroupTable;

int group_new(const char *path, uint64_t inode, Group **ret);
Group *group_free(Group *g);
/* Gives the group its managed part (idempotent). */
int group_make_managed(Group *g);
/* Drops it: descriptors closed, tracked threads forgotten. */
void group_drop_managed(Group *g);

int group_table_add(GroupTable *t, Group *g);               /* -EEXIST when the path is there */
Group *group_table_find(const GroupTable *t, const char *path);
/* Index of the first group whose path is >= path. */
size_t group_table_lower_bound(const GroupTable *t, const char *path);
void group_table_remove(GroupTable *t, Group *g);           /* takes it out; does not free */
int group_table_set_watch(GroupTable *t, Group *g, int watch);
Group *group_table_find_watch(const GroupTable *t, int watch);
void group_table_clear(GroupTable *t);                      /* frees all groups */

/* Whether path lies below ancestor ("/" is above all but itself). */
bool path_is_below(const char *path, const char *ancestor);
/* Parent of a path: new string; NULL for "/". */
char *path_parent(const char *path);

TrackedThread *thread_set_find(const ThreadSet *s, pid_t tid);
/* Adds (or returns the existing) entry; NULL without memory. */
TrackedThread *thread_set_add(ThreadSet *s, pid_t tid);
void thread_set_remove_at(ThreadSet *s, size_t index);
void thread_set_clear(ThreadSet *s);
