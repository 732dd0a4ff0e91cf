/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each host fact is called and what it means to an admin: what is lost without it, what would bring it. */

#include "daemon/host.h"

static const struct {
        const char *name, *loss, *remedy;
} texts[_FACT_MAX] = {
        [FACT_CGROUP2] = {
                "cgroup2",
                "No group can be seen or managed.",
                "Mount the unified hierarchy: boot systemd with systemd.unified_cgroup_hierarchy=1.",
        },
        [FACT_CPU_CONTROLLER] = {
                "cpu_controller",
                "Quotas and bursts (cpu.max) can't be set; latency and core scheduling still work.",
                "Take the cpu controller off cgroup v1: boot with systemd.unified_cgroup_hierarchy=1 or cgroup_no_v1=cpu, and without cgroup_disable=cpu.",
        },
        [FACT_BURST] = {
                "burst",
                "Bursts are left out; quotas still work.",
                "A kernel of 5.14 or later with CONFIG_CFS_BANDWIDTH.",
        },
        [FACT_PRESSURE] = {
                "pressure",
                "Control laws see throttling but not contention; nobody gives way to a stalled group.",
                "A kernel with CONFIG_PSI, booted with psi=1 and without cgroup_disable=pressure.",
        },
        [FACT_EEVDF_SLICE] = {
                "eevdf_slice",
                "Latency nice has no effect, unless the kernel has cpu.latency.nice.",
                "A kernel of 6.12 or later, or 6.1 with our latency-nice patch.",
        },
        [FACT_LATENCY_NICE_FILE] = {
                "latency_nice_file",
                "Latency nice is set thread by thread (where slices are honoured) and does not weigh between groups.",
                "A kernel with our latency-nice patch.",
        },
        [FACT_CORE_SCHEDULING] = {
                "core_scheduling",
                "Classes with core scheduling share cores with everybody; their other settings work.",
                "A kernel with CONFIG_SCHED_CORE on a machine with SMT on. No stock Debian kernel has it.",
        },
        [FACT_CORE_TAG_FILE] = {
                "core_tag_file",
                "Cookies are given thread by thread or process by process, a moment after a thread appears.",
                "A kernel with CONFIG_SCHED_CORE and our core-tag patch.",
        },
        [FACT_SMT] = {
                "smt",
                "Core scheduling has nothing to do: a core runs one thread at a time anyway.",
                "Nothing is needed. To share cores again, switch SMT on (firmware, nosmt, /sys/devices/system/cpu/smt/control).",
        },
        [FACT_BANDWIDTH_LOSS] = {
                "bandwidth_loss",
                "Throttling by lost runtime can't be told from throttling by demand, except by usage below the quota.",
                "A kernel with our bandwidth statistics patch.",
        },
        [FACT_SCHED_EXT_OFF] = {
                "sched_ext_off",
                "The running sched_ext scheduler may ignore quotas, weights and slices; cookies are not used beside it.",
                "Stop the sched_ext scheduler.",
        },
        [FACT_SYSTEMD] = {
                "systemd",
                "Units are not managed; only groups by path in subtrees that are delegated to us.",
                "systemd as PID 1 and its system bus.",
        },
        [FACT_HOST_NAMESPACES] = {
                "host_namespaces",
                "Threads and groups of the host can't be named from here.",
                "Run the daemon in the host's pid and cgroup namespaces (a container: hostPID, cgroup namespace of the host).",
        },
        [FACT_SCHEDSTATS] = {
                "schedstats",
                "Forced idle time, the price of core scheduling, is not counted.",
                "sysctl kernel.sched_schedstats=1",
        },
};

const char *fact_name(FactId id) {
        return texts[id].name;
}

const char *fact_state_to_string(FactState s) {
        static const char *const words[] = { "unknown", "yes", "no", "not enforced" };

        return words[s];
}

const char *fact_loss(FactId id) {
        return texts[id].loss;
}

const char *fact_remedy(FactId id) {
        return texts[id].remedy;
}
