/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Assignments: what the API said, durable. One per target; each has an owner (who may prune it in bulk) and an optional expiry.
 * Also the runtime policy documents that the API stored. */

#include "daemon/statefile.h"
#include "policies/policy.h"

typedef enum TargetKind { TARGET_UNIT = 0, TARGET_CGROUP, TARGET_POD, _TARGET_KIND_MAX } TargetKind;

typedef struct Assignment {
        TargetKind kind;
        char *target;            /* unit id, cgroup path, pod UID (with dashes, lower case) */
        char *class_name;
        char *owner;             /* "api" when the client gave none */
        bool force;
        Overrides overrides;
        uint64_t expires_realtime_usec; /* 0: never */
        uint64_t created_realtime_usec;
        uint64_t revision;       /* grows with each change of the store; the ETag of this assignment */
        char *by;                /* who: "uid=0" or "uid=1000(user)" */
} Assignment;

typedef struct Assignments Assignments;

#define ASSIGNMENTS_MAX 65536
#define ASSIGNMENT_LIFE_MAX_USEC (UINT64_C(10) * 366 * 86400 * USEC_PER_SEC) /* an expiry lies at most ten years ahead */

/* Opens the store in the state directory. A damaged file is kept aside (*ret_damaged true, may be NULL) and what can be read of it stays in force; one that a newer version
 * wrote is put aside whole. On a read-only file system it can be read, and each change answers -EROFS. 0 or negative errno. */
int assignments_open(int state_dir_fd, bool *ret_damaged, Assignments **ret);
Assignments *assignments_close(Assignments *a);

/* Changes are durable when these return 0; on a negative errno nothing changed, in memory or on disk. Everything is copied.
 * put: *ret_created true when it is new; a put that changes nothing (but "by") writes nothing and keeps the revision; a change keeps the time of creation.
 * revision and, where the caller gives 0, created_realtime_usec are set here. A put of another owner's target is -EEXIST unless steal; -ENOSPC beyond ASSIGNMENTS_MAX. */
int assignments_put(Assignments *a, const Assignment *one, bool steal, bool *ret_created);
int assignments_delete(Assignments *a, TargetKind kind, const char *target);
/* All assignments of an owner at once, all or nothing: puts these (whatever owner they name), prunes the rest of that owner. *ret_pruned and *ret_changed are counts. -EEXIST
 * with *ret_conflict (index) when a target belongs to another owner, -EINVAL with it when two name the same target. The ret_ pointers may be NULL. */
int assignments_replace_owner(Assignments *a, const char *owner, const Assignment *all, size_t n, size_t *ret_changed, size_t *ret_pruned, size_t *ret_conflict);
/* Drops what has expired; returns how many, or negative errno. *ret_next_usec: when the next one expires (USEC_INFINITY: none). */
int assignments_expire(Assignments *a, uint64_t now_realtime_usec, uint64_t *ret_next_usec);

const Assignment *assignments_get(const Assignments *a, TargetKind kind, const char *target);
size_t assignments_count(const Assignments *a);
const Assignment *assignments_at(const Assignments *a, size_t index);   /* ordered by kind, then target */
uint64_t assignments_revision(const Assignments *a);

void assignment_clear(Assignment *one);
/* A deep copy; -ENOMEM. */
int assignment_copy(const Assignment *one, Assignment *ret);
const char *target_kind_to_string(TargetKind k);
int target_kind_from_string(const char *s, TargetKind *ret);

/* JSON form of the API: {"unit"|"cgroup"|"pod_uid", "class", "owner", "force", "overrides", "expires_at", "created_at", "revision", "by"}; null for what there is none of. A cgroup path that is
 * not UTF-8 has U+FFFD for each such byte, and then "cgroup_escaped" with the path percent-encoded. New reference; NULL without memory. */
json_t *assignment_to_json(const Assignment *a);
/* Reads the body of a PUT: class (required), owner, force, overrides, expires_in_usec or expires_at (RFC 3339 UTC); diagnoses for whatever is wrong. kind and target come from the
 * URL when target is not NULL, else from the body (bulk). now_realtime_usec turns expires_in into a time. The result is to be cleared with assignment_clear(). */
int assignment_from_json(json_t *o, const char *pointer, TargetKind kind, const char *target, uint64_t now_realtime_usec, Assignment *ret, DiagList *list);
/* Owners are 1 to 64 of A-Z a-z 0-9 . _ : @ -, a letter or digit first. */
bool owner_is_valid(const char *owner);
/* A time as RFC 3339 in UTC, with a fraction of 6 digits only where there is one; buffer of at least 32 bytes. And back: "Z" or "+00:00", fraction of 1 to 9 digits
 * (cut to microseconds); false for anything else. */
const char *time_to_rfc3339(uint64_t realtime_usec, char *buffer, size_t size);
bool time_from_rfc3339(const char *text, uint64_t *ret_realtime_usec);
/* Whether a target is well formed (unit names as systemd's unit_name_is_valid incl. templates, of the types that have a cgroup; cgroup paths absolute, no "..", no newline, no NUL, at most 4096
 * bytes; pod UIDs). Adds a diagnosis otherwise. */
bool target_is_valid(TargetKind kind, const char *target, const char *pointer, DiagList *list);
