/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* cpu.max and cpu.max.burst as one ordered, verified change on a group's own descriptor.
 *
 * The kernel refuses a burst above the quota and a quota below the live burst (tg_set_cfs_bandwidth), so the order matters: lowering writes the burst
 * first, raising the quota first, and going to "max" sets the burst to 0 first. Kernels before 6.1.93 / 6.6.33 / 6.9.3 (49217ea147df)
 * divide the burst at each write of cpu.max, so the burst is always written after the quota and both are read back. Each write of cpu.max
 * refills and unthrottles the group, so nothing is written that is already right. */

#include "daemon/cgroupfs.h"

/* Reads the live setting. burst_usec is 0 where cpu.max.burst does not exist (*ret_has_burst false; may be NULL).
 * -ENOENT: the cpu controller is off for this group. */
int bandwidth_read(int dir_fd, Bandwidth *ret, bool *ret_has_burst);

/* Brings the group from whatever it has to want. Returns the number of writes made (0: it was right already), or the kernel's refusal as
 * negative errno with as much as possible of the former setting put back. *ret_observed (may be NULL) is what was read back, also on failure
 * when it could be read. -ESTALE: written without an error, but what is read back differs (somebody else writes, or the kernel adjusted). */
int bandwidth_write(int dir_fd, const Bandwidth *want, Bandwidth *ret_observed);

/* Only the burst (after systemd set the quota). The same contract; -EINVAL when it is above the live quota. */
int bandwidth_write_burst(int dir_fd, uint64_t burst_usec, Bandwidth *ret_observed);

/* The steps that bandwidth_write would take, for dry runs: each a file name and a text. Returns the number of steps (at most 4). */
typedef struct BandwidthStep {
        const char *file;   /* "cpu.max" or "cpu.max.burst" */
        char text[64];
} BandwidthStep;
size_t bandwidth_plan_steps(const Bandwidth *have, const Bandwidth *want, bool has_burst, BandwidthStep ret[4]);

/* Least quota-to-period ratio along the path from the group to the root, as (quota, period) of the group that limits; path of it in *ret_path
 * (new string; may be NULL). QUOTA_UNLIMITED when nothing limits. */
int bandwidth_effective(const CgroupRoot *root, const char *path, Bandwidth *ret, char **ret_path);
