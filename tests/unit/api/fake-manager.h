/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* A manager without a kernel: it has a real policy, some made-up groups, and does as the test says. */

#include <systemd/sd-event.h>

#include "daemon/manager.h"

#define FAKE_DECISIONS 64

struct Group {
        Manager *manager;
        char *cgroup;
        char *unit;
        const char *class_name;
        ClassSource source;
        BandwidthKnob bandwidth;
        LatencyKnob latency;
        CookieKnob cookie;
        GroupSample sample;
        bool paused, drift, is_protected;
};

typedef enum FakeWait { FAKE_WAIT_NOW = 0, FAKE_WAIT_SOON, FAKE_WAIT_NEVER } FakeWait;

struct Manager {
        sd_event *event;
        int state_fd;
        Assignments *assignments;
        Policy *policy;
        HostFacts facts;
        DaemonStatus status;
        Group *groups;               /* in path order */
        size_t n_groups;
        Decision ring[FAKE_DECISIONS];
        uint64_t n_decisions, oldest;
        void (*on_decision)(const Decision *d, void *userdata);
        void *on_decision_userdata;
        /* what the test wants */
        int fail;                    /* the next command answers this */
        FakeWait wait;
        int wait_error;
        /* what was asked */
        unsigned n_commands;         /* commands that got through */
        char last[256];
        /* a wait in progress */
        ManagerApplied done;
        void *done_userdata;
        TargetKind done_kind;
        char *done_target;
        uint64_t ticket;
        void (*restored)(size_t, size_t, void *);
        void *restored_userdata;
        sd_event_source *soon;
        unsigned n_cancelled;
        bool put_rules_called;
};

/* Groups: /system.slice, /system.slice/batch.service (batch; its quota failed), /system.slice/nginx.service (latency-critical), one with strange
 * bytes, and n_more plain ones. */
Manager *fake_manager_new(sd_event *event, const char *state_dir, size_t n_more);
Manager *fake_manager_free(Manager *m);
/* Takes a decision about a group and tells the subscriber. */
void fake_decide(Manager *m, const char *cgroup, const char *text);

#define STRANGE_CGROUP "/a \x1b[31m\"%s\\x2d\xff\xc3\xa4"
