/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* What the daemon shows of itself: read-only views for the API. Pointers in a view are valid until the loop turns. */

#include "daemon/assignments.h"
#include "daemon/host.h"
#include "policies/law.h"
#include "policies/match.h"

typedef struct Manager Manager;
typedef struct Group Group;

typedef enum KnobStatus {
        KNOB_UNMANAGED = 0,  /* the class says nothing of it: not touched */
        KNOB_PENDING,        /* wanted, not in the kernel yet */
        KNOB_APPLIED,        /* the kernel has what is wanted (read back) */
        KNOB_UNLIMITED,      /* the base is "max" and the quota relative to it: nothing to set */
        KNOB_REFUSED,        /* we will not do it, see reason (controller off, protected, another manager's, owner's word) */
        KNOB_FAILED,         /* the kernel or systemd refused, see error and reason */
        KNOB_ABSENT,         /* this host lacks what it needs, see reason */
        KNOB_HELD,           /* a foreign value is left in place for now */
        KNOB_PAUSED,
        KNOB_DRY_RUN,        /* --dry-run: decided, not written */
} KnobStatus;

typedef enum Writer { WRITER_NONE = 0, WRITER_SYSTEMD, WRITER_CGROUPFS, WRITER_THREADS } Writer;

typedef struct KnobCommon {
        KnobStatus status;
        Writer writer;
        int error;                    /* last errno (positive), 0 none */
        char reason[192];             /* for people; "" none */
        uint64_t last_write_usec;     /* monotonic; 0 never */
        uint64_t n_writes;            /* kernel or bus writes since start */
        /* drift */
        uint64_t n_drifts;
        uint64_t last_drift_usec;
        char drift_writer[32];        /* "systemd-reload", "admin-property", "foreign"; "" none */
        char drift_value[64];         /* what was found */
        uint64_t held_until_usec;     /* 0: not held */
} KnobCommon;

typedef struct BandwidthKnob {
        KnobCommon common;
        bool has_original, has_base, has_desired, has_observed, has_written;
        Bandwidth original;           /* before we first wrote */
        Bandwidth base;               /* the owner's word now */
        Bandwidth desired;
        Bandwidth observed;
        Bandwidth written;
        BandwidthPlan plan;
        bool controller_off;          /* no cpu.max here */
        bool settling;                /* held for a moment only: a foreign change may have more steps */
} BandwidthKnob;

typedef struct LatencyKnob {
        KnobCommon common;
        int latency_nice;             /* wanted now (the law may move it) */
        bool by_file;                 /* cpu.latency.nice; else slices per thread */
        uint64_t slice_nsec;          /* slice mechanism: wanted slice; 0 default */
        uint32_t n_threads;           /* seen in the last walk */
        uint32_t n_covered;           /* have it */
        uint32_t n_other_policy;      /* take none (FIFO, RR, DEADLINE, IDLE) */
        uint32_t n_failed;
        uint64_t n_races;             /* concurrent changes that were put right */
        int64_t original_nice;        /* file mechanism */
} LatencyKnob;

typedef struct CookieKnob {
        KnobCommon common;
        bool by_file;                 /* cpu.core_tag */
        uint64_t cookie_id;           /* hashed id; 0 none */
        uint32_t n_threads, n_covered, n_failed;
} CookieKnob;

typedef struct GroupSample {          /* last sampled values and differences over the last window */
        uint64_t at_usec;             /* monotonic; 0 never */
        uint64_t window_usec;
        CpuStat total;
        bool has_pressure;
        CpuPressure pressure;
        LawSample delta;
        uint32_t usage_permyriad_of_cpu;    /* 10000 = one CPU */
        uint32_t throttled_permyriad;       /* throttled periods of all in the window */
} GroupSample;

/* A decision: what was done to which group and why. Kept in a ring of the host and shown by /v1/decisions. */
typedef struct Decision {
        uint64_t sequence;            /* 1, 2, 3, ... since the daemon's start */
        uint64_t realtime_usec;
        uint64_t monotonic_usec;
        char *cgroup;
        char *unit;                   /* NULL when the group is none */
        char *class_name;
        const char *knob;             /* "bandwidth", "latency", "cookie", "switch" */
        const char *trigger;          /* "assign", "law", "drift", "reload", "restore", "thread", "owner", "expire", "start" */
        bool dry_run;
        int error;                    /* 0 fine, positive errno */
        LawCause cause;               /* when trigger is "law" */
        LawDecision law;              /* its numbers */
        Bandwidth before, after;      /* bandwidth */
        int64_t before_number, after_number;  /* latency nice, tag, switch */
        char *text;                   /* one sentence for people */
} Decision;

typedef struct GroupView {
        const char *cgroup;
        uint64_t inode;
        const char *unit;             /* NULL: not a unit's own group */
        const char *slice;
        bool populated;
        const ServiceClass *service_class;  /* NULL: not touched */
        ServiceClass effective_class;       /* with overrides applied */
        ClassSource source;
        const Rule *rule;                   /* source RULE */
        const Assignment *assignment;       /* source API */
        const char *inherited_from;         /* path; source INHERITED */
        const char *unknown_class;          /* some source named a class that the policy lacks */
        bool is_protected;
        bool left_to_other_manager;         /* user manager, kubelet, container's own systemd */
        const char *unmanaged_reason;       /* NULL or why nothing is done */
        bool paused;
        uint64_t paused_until_usec;         /* monotonic; USEC_INFINITY: for good */
        bool drift;                         /* any knob drifted and is held or was put right in the last minute */
        const BandwidthKnob *bandwidth;
        const LatencyKnob *latency;
        const CookieKnob *cookie;
        const GroupSample *sample;
        LawConfig law_config;
        const LawState *law_state;          /* NULL when no law runs */
        const Decision *last_decision;      /* NULL none */
} GroupView;

typedef struct PendingView {          /* an assignment whose target is not here */
        const Assignment *assignment;
        const char *reason;           /* "unit is not loaded", "cgroup does not exist" ... */
} PendingView;

typedef struct DaemonStatus {
        const char *version;
        uint64_t started_realtime_usec;
        bool ready;                   /* first scan done, policy loaded */
        bool dry_run;
        bool paused;
        uint64_t paused_until_usec;
        bool bus_connected;
        size_t n_groups_seen;         /* all cgroups */
        size_t n_groups_classified;
        size_t n_pending;
        size_t n_drift;
        size_t n_failed;              /* groups with a failed knob */
        uint64_t n_writes_bandwidth, n_writes_thread, n_writes_bus, n_writes_file;
        uint64_t n_rescans, n_overflows;
        uint64_t n_ticks, last_tick_usec, worst_tick_usec;
        size_t n_ledger;
        size_t n_threads_tracked;
        const char *policy_error;     /* NULL: the policy on disk is the one in force; else why the last reload was refused */
        uint64_t policy_revision;
        uint64_t n_decisions;
} DaemonStatus;
