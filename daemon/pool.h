/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Groups of our own: `cpuclassctl run --pool NAME -- CMD` gets one in the subtree that systemd delegated to us. This is the one file behind which
 * libcgroup works: creating, moving into and deleting groups. Never in the loop's ticks (it re-reads the mount table at each call). */

#include <sys/types.h>

#include "policies/util.h"

/* Starts libcgroup. Returns 0 or negative errno (-ENOSYS: no cgroup2 mount known to it). Safe to call again. */
int pool_init(void);
/* Where libcgroup sees the unified hierarchy mounted: new string. Discovery at start; compared with what we found. */
int pool_mountpoint(char **ret);
/* Makes the group (parents too), path relative to the mount, e.g. "cpuclass.slice/cpuclass-pools.service/web-1". The cpu controller is on in it if the deepest
 * group of the path that exists already has it: nothing is switched on above that group. 0, -EEXIST, -EBUSY (that group has processes of its
 * own and can't hand a controller down), -EINVAL (an absolute path, ".."), negative errno. */
int pool_create_group(const char *path);
/* Moves a process (all its threads) into the group and sees that it is there. -ENOENT (no such group), -ESRCH, negative errno. */
int pool_move(const char *path, pid_t pid);
/* Deletes the group and what is below it; -EBUSY while it has processes. -ENOENT when it is gone already. */
int pool_delete_group(const char *path);
/* Whether a pool name is fit: [a-z0-9][a-z0-9._-]{0,63}. */
bool pool_name_is_valid(const char *name);
