/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The manager's parts, shared by the files that make it up (manager-*.c, knob-*.c) and by nobody else. */

#include "daemon/cookie.h"
#include "daemon/group.h"
#include "daemon/ledger.h"
#include "daemon/log.h"
#include "daemon/manager.h"
#include "daemon/slice.h"
#include "daemon/units.h"

#define DECISION_RING 4096
#define SAMPLE_SLOW_USEC (1 * USEC_PER_SEC)       /* groups that used CPU lately */
#define SAMPLE_QUIET_USEC (5 * USEC_PER_SEC)      /* groups at rest: a foreign write wakes them through inotify */
#define WALK_USEC (USEC_PER_SEC / 2)              /* new threads are covered within a second */
#define ACTIVE_FOR_USEC (5 * USEC_PER_SEC)
#define PROPERTY_SETTLE_USEC (2 * USEC_PER_SEC)   /* a law's value goes to systemd when it has stood for this long: each set wakes PID 1 */
#define DRIFTS_PER_MINUTE 6                       /* more foreign writes than this in a minute: hold, no write war */
#define HOLD_USEC (60 * USEC_PER_SEC)
#define SETTLE_USEC (700 * USEC_PER_MSEC)         /* after a foreign write, before ours: it may be the first of several */
#define RESCAN_UNWATCHED_USEC (2 * USEC_PER_SEC)  /* when inotify watches ran out */
#define UNITS_AWAITED_USEC (10 * USEC_PER_SEC)    /* after the start: a class that only the path gives may be the wrong one */
#define PAUSES_MAX 1024

/* A pause: of everything (key NULL) or of one group or unit. */
typedef struct Pause {
        char *key;
        uint64_t until_realtime_usec;   /* 0: for good */
} Pause;

typedef struct Waiter {
        uint64_t ticket;
        TargetKind kind;
        char *target;
        uint64_t deadline_usec;
        ManagerApplied done;
        void *userdata;
} Waiter;

/* A cookie that all groups of a class, or one group, share. */
typedef struct Cookie {
        char *key;              /* "class:NAME" or "group:PATH" */
        CookieHolder *holder;
        uint64_t id;
} Cookie;

struct Manager {
        ManagerConfig config;
        sd_event *event;
        int state_fd;                   /* state directory */
        int lock_fd;
        CgroupRoot root;
        bool has_root;
        HostFacts host;
        uint64_t host_fingerprint;
        uint64_t next_host_check_usec;

        Policy *policy;
        uint64_t policy_revision;
        char *policy_error;
        json_t *runtime_policy;         /* {"version":1,"classes":[...],"rules":[...]} of the API */

        Assignments *assignments;
        Ledger *ledger;
        Units *units;
        bool units_listed;
        uint64_t units_awaited_usec;    /* until then, after the start, groups are not classified without the units; 0: no more */

        GroupTable groups;
        Group *dirty_head, *dirty_tail;
        sd_event_source *dirty_source;  /* defer: works the queue */
        sd_event_source *tick_source;
        sd_event_source *inotify_source;
        sd_event_source *reload_source; /* coalesces daemon-reloads after undos */
        int inotify_fd;
        bool watches_exhausted;
        bool rescan_wanted;
        uint64_t next_rescan_usec;
        size_t n_calls;                 /* property calls to systemd that are not answered yet */
        bool reloading;

        Cookie *cookies;
        size_t n_cookies, cookies_capacity;
        bool cookies_idle;              /* a group that had one is gone: some may have no use */

        Pause *pauses;
        size_t n_pauses, pauses_capacity;
        Waiter *waiters;
        size_t n_waiters, waiters_capacity;
        uint64_t last_ticket;
        uint64_t next_expiry_usec;      /* realtime */

        Decision ring[DECISION_RING];
        uint64_t n_decisions;
        void (*decision_handler)(const Decision *d, void *userdata);
        void *decision_userdata;

        LedgerRecord *dead;             /* thread records to forget, in one write */
        size_t n_dead, dead_capacity;
        uint64_t next_dead_flush_usec;

        bool leftovers_marked;
        bool pools_available;
        char **pool_groups;             /* paths of ours to remove when empty */
        size_t n_pool_groups, pool_groups_capacity;
        uint64_t next_orphans_usec;
        uint64_t next_pools_sweep_usec;
        uint64_t next_pools_scan_usec;  /* for groups that a former daemon made */

        /* host load between ticks */
        uint64_t cpu_busy, cpu_total, host_sampled_usec;
        uint32_t host_busy_permyriad;
        uint64_t contention_usec[1001]; /* when a group of this priority was last stalled without being throttled; 0 never */

        DaemonStatus counters;
        bool ready;
};

uint64_t clock_monotonic_usec(void);                /* CLOCK_MONOTONIC */
uint64_t clock_realtime_usec(void);

/* manager-queue */
void manager_mark_dirty(Manager *m, Group *g);
void manager_mark_all_dirty(Manager *m);
/* Moves the next tick to now, or to a time (when it would come later). */
void manager_wake(Manager *m);
void manager_wake_at(Manager *m, uint64_t usec);

/* manager-discover: the tree */
int discover_start(Manager *m);
void discover_rescan(Manager *m);
void discover_stop(Manager *m);
void discover_group_gone(Manager *m, Group *g);
/* IN_MODIFY only where a class makes us listen to the knobs. */
void discover_watch_values(Manager *m, Group *g);

/* manager-classify: class of a group and what it means */
void classify_and_plan(Manager *m, Group *g);
const UnitInfo *group_unit(const Manager *m, const Group *g);
/* The assignment that applies to a group, valid until the store changes; NULL none. */
const Assignment *group_assignment(const Manager *m, const Group *g);
/* The assignment of a unit by its name, or of its template. */
const Assignment *unit_assignment(const Manager *m, const char *id);
/* Who owns the group's settings? WRITER_NONE with a reason: another manager, or unknown for now. */
Writer group_writer(Manager *m, const Group *g, char *reason, size_t size);

/* knobs: bring the kernel to what is wanted; called when dirty and each slow tick */
void bandwidth_reconcile(Manager *m, Group *g, const char *trigger);
void bandwidth_apply_law(Manager *m, Group *g, const LawDecision *d);
void bandwidth_check_drift(Manager *m, Group *g);
void bandwidth_property_tick(Manager *m, Group *g, uint64_t now);
void bandwidth_release(Manager *m, Group *g, const char *trigger);
void bandwidth_units_changed(Manager *m, Group *g, const UnitInfo *u);
void latency_reconcile(Manager *m, Group *g, const char *trigger);
/* The group is gone: its threads have ended or moved on. */
void latency_group_gone(Manager *m, Group *g);
void cookie_group_gone(Manager *m, Group *g);
void latency_release(Manager *m, Group *g, const char *trigger);
void cookie_reconcile(Manager *m, Group *g, const char *trigger);
void cookie_release(Manager *m, Group *g, const char *trigger);
void cookies_sweep(Manager *m);         /* frees holders that no group needs */

/* manager-leftovers: marks at the start, releases at the first look that knows enough */
void leftovers_mark(Manager *m);
void leftovers_release(Manager *m, Group *g);

/* manager-tick */
int tick_start(Manager *m);
void group_sample(Manager *m, Group *g, uint64_t now);

/* decisions */
typedef struct DecisionInput {
        const char *knob, *trigger;
        int error;
        const LawDecision *law;
        Bandwidth before, after;
        int64_t before_number, after_number;
} DecisionInput;
void decide_record(Manager *m, Group *g, const DecisionInput *in, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* pauses */
int pauses_load(Manager *m);
/* Forgets pauses whose time is over: their groups get what was held back. */
void pauses_expire(Manager *m);
bool manager_is_paused(const Manager *m, const Group *g, uint64_t *ret_until_usec);

/* policy files */
int policy_load(Manager *m, DiagList *list);

/* waiters */
void waiters_check(Manager *m, uint64_t now);
/* Whether all that the class wants is in the kernel or can't be. */
bool group_is_settled(const Group *g);

/* Puts back what units that do not run have lost the reason for. */
void orphans_sweep(Manager *m, uint64_t now);

/* pools */
void pools_sweep(Manager *m);
int pools_load(Manager *m);

/* Whether the content of a run-time drop-in is what a record of ours caused. property: CPUQuota, CPUQuotaPeriodSec, CPUWeight. */
bool record_owns_dropin(const LedgerRecord *r, const char *property, const char *content);

/* restore.c: from the ledger alone */
typedef struct RestoreResult {
        size_t n_restored, n_left, n_failed;
        bool reload_due;
} RestoreResult;
void restore_records(Ledger *ledger, const CgroupRoot *root, uint64_t base_slice_nsec,
                     bool (*wanted)(const LedgerRecord *r, void *userdata), void *userdata, RestoreResult *ret);

void units_coalesced_reload(Manager *m);
