/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The process of cpuclass-pools.service: it keeps the delegated subtree alive, in a leaf of its own, and turns the cpu controller on for the pools. */

/* Moves itself into the leaf "holder" of its own cgroup, enables the cpu controller for the siblings of the leaf, tells systemd that it is ready and sleeps until
 * a signal ends it. Returns 0 or negative errno. */
int pools_hold(void);
