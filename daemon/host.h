/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Host facts: what this kernel and this machine can do, found out by doing, never by version. Each fact is yes, no with the reason, or not enforced
 * with the reason; a missing feature is a fact, not a failure. Probed again when CPUs, SMT or sched_ext change. */

#include "daemon/cgroupfs.h"

typedef enum FactState { FACT_UNKNOWN = 0, FACT_YES, FACT_NO, FACT_NOT_ENFORCED } FactState;

typedef enum FactId {
        FACT_CGROUP2 = 0,       /* a cgroup2 mount */
        FACT_CPU_CONTROLLER,    /* its cpu controller: cpu.max */
        FACT_BURST,             /* cpu.max.burst */
        FACT_PRESSURE,          /* cpu.pressure readable with content */
        FACT_EEVDF_SLICE,       /* custom slices are honoured */
        FACT_LATENCY_NICE_FILE, /* cpu.latency.nice (our patch) */
        FACT_CORE_SCHEDULING,   /* PR_SCHED_CORE works */
        FACT_CORE_TAG_FILE,     /* cpu.core_tag (our patch) */
        FACT_SMT,               /* more than one thread a core online */
        FACT_BANDWIDTH_LOSS,    /* our patch's fields in cpu.stat */
        FACT_SCHED_EXT_OFF,     /* no sched_ext scheduler runs; NOT_ENFORCED with its name when one does */
        FACT_SYSTEMD,           /* systemd is PID 1 and its bus answers (set by the manager) */
        FACT_HOST_NAMESPACES,   /* we are in the host's pid and cgroup namespace */
        FACT_SCHEDSTATS,        /* kernel.sched_schedstats is 1: force-idle time is counted */
        _FACT_MAX,
} FactId;

typedef struct HostFact {
        FactState state;
        char reason[160];        /* why it is not, in words for an admin; "" when yes */
} HostFact;

typedef struct HostFacts {
        HostFact facts[_FACT_MAX];
        uint32_t n_cpus;               /* online */
        uint64_t base_slice_nsec;      /* default EEVDF slice */
        uint64_t bandwidth_slice_usec; /* kernel.sched_cfs_bandwidth_slice_us; 0 unknown */
        char kernel_release[96];
        char boot_id[40];
        char sched_ext_name[64];       /* "" when none runs */
        bool sched_ext_partial;        /* it has only the threads that asked for it */
} HostFacts;

/* Probes all. sysroot is "" on a real host, a directory with a fake /proc and /sys for tests (then the probes by system call are skipped and stay
 * unknown). root may be NULL when there is no cgroup2 mount. Never fails: what can't be found out is FACT_UNKNOWN or FACT_NO with a reason. */
void host_probe(const char *sysroot, const CgroupRoot *root, HostFacts *ret);

/* The facts that only a group with the cpu controller on can tell (burst, latency nice file, core tag file, bandwidth loss): where no group had it at the probe,
 * they are unknown until the manager shows one. dir_fd is such a group's directory; without cpu.max in it nothing changes. Returns whether a fact changed. */
bool host_probe_group(int dir_fd, HostFacts *facts);

/* Name as in the API ("eevdf_slice"), what is lost without it and what would bring it (for doctor; constant strings). */
const char *fact_name(FactId id);
const char *fact_state_to_string(FactState s);
const char *fact_loss(FactId id);
const char *fact_remedy(FactId id);

/* Cheap check whether a new probe is due: a fingerprint of online CPUs, SMT control and sched_ext state. */
uint64_t host_fingerprint(const char *sysroot);

/* Busy and total jiffies summed over CPUs from /proc/stat (iowait and idle are not busy). */
int host_cpu_times(const char *sysroot, uint64_t *ret_busy, uint64_t *ret_total);
