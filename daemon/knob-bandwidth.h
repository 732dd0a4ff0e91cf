/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Parts of the bandwidth knob that its files share (knob-bandwidth*.c). */

#include "daemon/manager-internal.h"

/* A unit's quota as systemd tells it, as a Bandwidth without burst. */
void unit_property_bandwidth(const UnitInfo *u, Bandwidth *ret);
/* What the unit's files say without our drop-in. False: not known. */
bool unit_owner_bandwidth(const UnitInfo *u, Bandwidth *ret);
/* Whether the run-time drop-in that stands there now is the one that we caused. */
bool unit_dropin_is_ours(const Manager *m, const char *unit);

/* The owner's word for this group now: adopted foreign value, owner's files, systemd's property, or what was there before us. */
void bandwidth_base(const Manager *m, const Group *g, Writer writer, const Bandwidth *live, Bandwidth *ret);

/* Equal, or the kernel stretched a short period under load (sched_cfs_period_timer scales quota, period and burst alike). */
bool bandwidth_same_or_rescaled(const Bandwidth *live, const Bandwidth *written);

/* Writes now through the group's descriptor, ledger first. Records a decision. Returns 0 or negative errno. */
int bandwidth_write_now(Manager *m, Group *g, int dir_fd, const Bandwidth *live, const Bandwidth *want, const char *trigger, const LawDecision *law);
/* Asks systemd to hold a value (from due on). */
void bandwidth_hold_property(Manager *m, Group *g, const Bandwidth *want, uint64_t due_usec);

typedef enum DriftVerdict {
        DRIFT_NONE = 0,      /* as we left it */
        DRIFT_RESET,         /* systemd put its own value back: write once more */
        DRIFT_FOREIGN,       /* somebody else wrote */
} DriftVerdict;
/* was_off: the controller was off for this group at the last look. */
DriftVerdict bandwidth_judge(const Manager *m, const Group *g, Writer writer, const Bandwidth *live, bool was_off);
/* Takes a foreign value as the owner's: the new base, and what a stop puts back. */
void bandwidth_adopt(Manager *m, Group *g, const Bandwidth *live);
/* A foreign value has just been seen: waits a moment for the end of the change, and asks systemd whether its property has changed. */
void bandwidth_settle(Manager *m, Group *g, const Bandwidth *live);
/* Counts and reports a foreign value. True: go on and write; false: leave it for now (until common.held_until_usec). */
bool bandwidth_handle_foreign(Manager *m, Group *g, const Bandwidth *live, const char *by);
