/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Walking the threads of a group: what the latency and the cookie knob share. */

#include "daemon/manager-internal.h"

/* The tids in the group's own cgroup.threads, sorted, each once. New array; -ENODEV / -ENOENT when the group has gone. zero_seen: a thread of
 * a foreign pid namespace showed as 0. */
int group_threads(int dir_fd, pid_t **ret, size_t *ret_n, bool *ret_zero_seen);

/* Whether a thread is in this group now (reads /proc). */
bool thread_is_in_group(pid_t tid, const char *path);

/* Puts a thread record on the list of those to forget with the next flush. */
void dead_thread(Manager *m, LedgerKind kind, const char *key, pid_t tid, uint64_t start_ticks);
/* Forgets what has piled up, when it is due. */
void dead_threads_flush(Manager *m, bool now);
