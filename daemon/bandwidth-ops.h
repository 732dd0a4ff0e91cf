/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The two files of bandwidth.c behind functions, so that a test can be a kernel that refuses, divides, vanishes or has another writer. */

#include "daemon/bandwidth.h"

typedef struct BandwidthOps {
        /* As cgroup_read_file() and cgroup_write_file(); file is "cpu.max" or "cpu.max.burst". */
        ssize_t (*read)(const char *file, char *buffer, size_t size, void *userdata);
        int (*write)(const char *file, const char *text, void *userdata);
        void *userdata;
} BandwidthOps;

/* bandwidth_read(), bandwidth_write() and bandwidth_write_burst() on these. */
int bandwidth_read_with(const BandwidthOps *ops, Bandwidth *ret, bool *ret_has_burst);
int bandwidth_write_with(const BandwidthOps *ops, const Bandwidth *want, Bandwidth *ret_observed);
int bandwidth_write_burst_with(const BandwidthOps *ops, uint64_t burst_usec, Bandwidth *ret_observed);
