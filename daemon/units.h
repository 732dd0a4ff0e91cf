/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* systemd's units, seen and steered over D-Bus: a table of loaded units that have a cgroup, kept true by signals, and the one writer for what
 * systemd owns. Everything is asynchronous; nothing blocks the loop. When the bus goes away it comes back by itself and the table is listed anew. */

#include <systemd/sd-event.h>

#include "policies/resolve.h"
#include "policies/util.h"

typedef struct Units Units;

/* A unit as systemd tells it. Strings belong to the table and change only between callbacks. */
typedef struct UnitInfo {
        char *id;                    /* canonical name */
        char **names;                /* id and aliases, NULL-terminated */
        char *cgroup;                /* ControlGroup, "" when it has none now */
        char *slice;                 /* its slice unit, "" for none */
        char *active_state;          /* active, inactive, ... */
        char *load_state;            /* loaded, not-found, masked */
        char *user;                  /* User= of a service, "" none */
        char *fragment_path;
        char **dropin_paths;         /* NULL-terminated, in systemd's order */
        bool transient;
        bool delegate;               /* Delegate= */
        uint64_t quota_per_sec_usec; /* CPUQuotaPerSecUSec: USEC_INFINITY none */
        uint64_t quota_period_usec;  /* CPUQuotaPeriodUSec: USEC_INFINITY default */
        uint64_t cpu_weight;         /* UINT64_MAX: not set */
        /* read from the unit's files: */
        char *class_word;            /* [X-CpuClass] Class=, last assignment wins; NULL none */
        bool owner_quota_known;
        uint64_t owner_quota_per_sec_usec; /* CPUQuota= as the files say without our own drop-in: USEC_INFINITY none */
        uint64_t owner_quota_period_usec;
        char *overriding_dropin;     /* a drop-in that sorts after ours and sets CPUQuota=; NULL none */
        bool loading;                /* known by name only: its properties have never been here yet, and all the rest is empty */
} UnitInfo;

typedef struct UnitsHandlers {
        void (*connected)(void *userdata);                            /* the first listing is complete, or complete again after a reconnect */
        void (*disconnected)(void *userdata);
        void (*changed)(const UnitInfo *unit, void *userdata);        /* new, or any of the above changed */
        void (*removed)(const char *id, void *userdata);              /* unloaded */
        void (*reloading)(bool active, void *userdata);               /* daemon-reload or reexec begins / has ended, and all units are known anew */
        /* Is this content of a unit's run-time drop-in ours? Asked whenever the unit's files are read; property is "CPUQuota" or "CPUQuotaPeriodSec". When it is, *ret_original
         * gets what stood there before us (borrowed, NULL: no file), and that counts as the owner's word. May be NULL: then only what this Units object has set itself is ours,
         * with nothing before it. */
        bool (*own_dropin)(const char *id, const char *property, const char *content, const char **ret_original, void *userdata);
} UnitsHandlers;

/* Starts. systemd may not be there: connected() comes when it is. address NULL: the system bus. Handlers may call everything below, but not units_free(). */
int units_new(sd_event *event, const char *address, const UnitsHandlers *handlers, void *userdata, Units **ret);
/* Calls that are still open end without their callback. */
Units *units_free(Units *u);

/* Lookups in the table; NULL when not there. name may be an alias. */
const UnitInfo *units_get(const Units *u, const char *name);
const UnitInfo *units_by_cgroup(const Units *u, const char *cgroup);
bool units_are_connected(const Units *u);
/* Asks systemd for this unit's properties again (a unit that a cgroup announced before its signal came). */
void units_refresh(Units *u, const char *name);

/* Called once with 0 or a negative errno (-ENOENT no such unit, -ENOTCONN, -EACCES, -EINVAL, -ETIMEDOUT, -EIO with message set). message is for people and may hold any bytes; may be NULL.
 * Where the function that starts a call returns a negative errno itself (-ENOTCONN, -EINVAL, -ENOMEM), done is not called. */
typedef void (*UnitsDone)(int error, const char *message, void *userdata);

/* Sets CPUQuota= at run time (SetUnitProperties, runtime = true, CPUQuotaPerSecUSec + CPUQuotaPeriodUSec). The reply says that systemd took it; the kernel's file
 * follows within a moment: the caller polls it. quota_usec QUOTA_UNLIMITED: infinity. period_usec 0: not set, and the quota is of PERIOD_DEFAULT_USEC. Round the quota
 * first (quota_round_for_systemd): nothing is rounded here. */
int units_set_quota(Units *u, const char *id, uint64_t quota_usec, uint64_t period_usec, UnitsDone done, void *userdata);
/* Sets CPUWeight= at run time, to hold the cpu controller on. */
int units_set_weight(Units *u, const char *id, uint64_t weight, UnitsDone done, void *userdata);

/* Content of the run-time drop-in that systemd keeps for a property ("CPUQuota", "CPUQuotaPeriodSec", "CPUWeight"), before or after us. New strings; -ENOENT: none.
 * Looks where systemd puts them: /run/systemd/system.control/UNIT.d/ and /run/systemd/transient/UNIT.d/. */
int units_read_dropin(const char *id, const char *property, char **ret_path, char **ret_content);
/* Undo: removes our drop-in (only if its content still equals written) or puts original back, for property; no reload yet. Returns 1 when a
 * file changed (a reload is due), 2 when the file already is as it was before us (undone before a crash, perhaps without the reload: one is due where systemd still says our value),
 * 0 when what is there is somebody else's (or written is NULL), negative errno (-EINVAL: not the path of such a drop-in). */
int units_undo_dropin(const char *path, const char *written, const char *original);
/* Whether a drop-in says just what systemd writes for this value of a property and no more: to know our own again after a crash came between the call and the note of the content.
 * value: CPUQuotaPerSecUSec (USEC_INFINITY none), the period, or the weight. */
bool units_dropin_says(const char *id, const char *property, const char *content, uint64_t value);
/* One daemon-reload (Manager.Reload), after a batch of undos. done is called after systemd has reloaded. */
int units_reload(Units *u, UnitsDone done, void *userdata);

/* Why are we being stopped? From the job of our own unit and the manager's state. */
typedef enum StopReason { STOP_REASON_UNKNOWN = 0, STOP_REASON_STOP, STOP_REASON_RESTART, STOP_REASON_SHUTDOWN } StopReason;
/* Synchronous with a short time-out (we are ending): unit NULL finds our own through our cgroup. */
int units_stop_reason(const char *unit, StopReason *ret);

/* Canonical id for a name (alias, template instance): LoadUnit + Id. done gets 0 and id in *result through units_resolve_result; here as its own callback type. */
typedef void (*UnitsResolved)(int error, const char *id, const char *load_state, void *userdata);
int units_resolve(Units *u, const char *name, UnitsResolved done, void *userdata);
