/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The ledger: what every knob was before we first wrote it, and what we wrote last. Before the first write to a knob its original is on disk, so that a
 * stop, a crash or an uninstall can put back every value that is still ours and leave what somebody else has changed since.
 *
 * One record per knob and object. Objects are keyed by unit name (systemd knobs), inode and path (cgroupfs knobs), thread id and start time
 * (threads). All belong to one boot: records of another boot id are dropped at open, the kernel has forgotten those values. */

#include <sys/types.h>

#include "daemon/statefile.h"
#include "policies/resolve.h"

typedef enum LedgerKind {
        LEDGER_UNIT_QUOTA = 0,   /* systemd property (drop-in); key: unit */
        LEDGER_BANDWIDTH,        /* cpu.max + burst through cgroupfs; key: path + inode */
        LEDGER_LATENCY_FILE,     /* cpu.latency.nice; key: path + inode */
        LEDGER_CORE_TAG,         /* cpu.core_tag; key: path + inode */
        LEDGER_THREAD_SLICE,     /* key: tid + start time */
        LEDGER_THREAD_COOKIE,    /* key: tid + start time (leader of the process for process scope) */
        LEDGER_SWITCH,           /* host-wide switch (sysctl, scheduler feature); key: name */
        LEDGER_UNIT_WEIGHT,      /* CPUWeight property held to keep the controller on; key: unit */
        _LEDGER_KIND_MAX,
} LedgerKind;

typedef struct LedgerRecord {
        LedgerKind kind;
        char *key;               /* unit name, cgroup path or switch name; for threads: cgroup path it was found in */
        uint64_t inode;          /* cgroupfs kinds */
        pid_t tid;               /* thread kinds */
        uint64_t start_ticks;    /* thread kinds */
        /* values; which are used depends on the kind */
        Bandwidth original;      /* UNIT_QUOTA: the owner's; BANDWIDTH */
        Bandwidth written;
        Bandwidth previous;      /* what we had written before that: a crash in between leaves it in the kernel, and it is ours too; all 0: nothing */
        bool has_written;
        int64_t original_number; /* nice, tag, slice in ns, switch value, weight */
        int64_t written_number;
        int64_t previous_number; /* as `previous`; 0: nothing */
        char *original_text;     /* UNIT_QUOTA: content of the drop-in that was there before us (NULL: none); SWITCH by name */
        char *written_text;      /* UNIT_QUOTA: content of our drop-in as systemd wrote it; SWITCH */
        char *dropin_path;       /* UNIT_QUOTA: where it is */
        /* UNIT_QUOTA: the same for the drop-in of the period (CPUQuotaPeriodSec), where we set one; NULL path: we did not. */
        char *period_original_text;
        char *period_written_text;
        char *period_dropin_path;
} LedgerRecord;

typedef struct Ledger Ledger;

/* Opens the ledger in the state directory. boot_id decides what is stale (*ret_stale counts dropped records, *ret_damaged unreadable lines; may be NULL).
 * 0 or negative errno. A damaged file is kept aside (NAME.damaged-N), never deleted, and what can be read of it stays in force; one that a newer version wrote is
 * put aside whole and counts as one. On a read-only file system it can be read, and each change answers -EROFS. */
int ledger_open(int state_dir_fd, const char *boot_id, size_t *ret_stale, size_t *ret_damaged, Ledger **ret);
Ledger *ledger_close(Ledger *l);

/* Finds a record; NULL when there is none. Valid until the next change of the ledger. key may be NULL for thread kinds. */
const LedgerRecord *ledger_find(const Ledger *l, LedgerKind kind, const char *key, uint64_t inode, pid_t tid, uint64_t start_ticks);

/* Adds or replaces records (same kind and key) and makes them durable in one go. Records are copied. On failure nothing changed. -EINVAL: a record without the
 * key that its kind needs. */
int ledger_put(Ledger *l, const LedgerRecord *records, size_t n);
/* Notes what was written, durably only at the next put, drop or sync: after a crash the live value is compared with both. Only the written fields, paths of
 * drop-ins included, are taken from record. -ENOENT without such a record. */
int ledger_note_written(Ledger *l, const LedgerRecord *record);
/* Forgets a record (durable). 0 also when there is none. */
int ledger_drop(Ledger *l, const LedgerRecord *record);
/* The same for many, with one write. */
int ledger_drop_many(Ledger *l, const LedgerRecord *records, size_t n);
/* Makes pending notes durable. */
int ledger_sync(Ledger *l);

/* Calls fn for each record (any kind: kind = _LEDGER_KIND_MAX). fn must not change the ledger. */
int ledger_for_each(const Ledger *l, LedgerKind kind, int (*fn)(const LedgerRecord *r, void *userdata), void *userdata);
size_t ledger_count(const Ledger *l, LedgerKind kind);
const char *ledger_kind_to_string(LedgerKind k);
