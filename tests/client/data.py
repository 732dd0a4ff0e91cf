# SPDX-License-Identifier: LGPL-2.1-or-later
"""Answers in the shapes of api/README.md."""

import copy

BW_MAX = {"quota_usec": "max", "period_usec": 100000, "burst_usec": 0}
BW_HALF = {"quota_usec": 50000, "period_usec": 100000, "burst_usec": 0}
BW_FULL = {"quota_usec": 60000, "period_usec": 100000, "burst_usec": 60000}

NO_DRIFT = {"count": 0, "last_at": None, "writer": None, "value": None, "held_until": None}
DRIFT = {"count": 2, "last_at": "2026-01-02T03:04:05.000000Z", "writer": "admin-property", "value": "30000 100000", "held_until": None}

DECISION = {
    "sequence": 41, "at": "2026-01-02T03:04:05.000000Z", "cgroup": "/system.slice/web.service", "unit": "web.service", "class": "latency-critical",
    "knob": "bandwidth", "trigger": "law", "dry_run": False, "errno": None, "text": "raised the quota from 50 % to 60 %: throttled in 12 % of the periods",
    "before": BW_HALF, "after": BW_FULL,
    "law": {"cause": "demand_above_limit", "throttled_permyriad": 1234, "usage_per_period_usec": 49500, "need_usec": 60000,
            "quota_usec": 60000, "burst_usec": 60000, "latency_nice": None},
}


def knob(status, **more):
    return {"status": status, "reason": None, "errno": None, "writer": "systemd", "writes": 3, "last_write_at": "2026-01-02T03:04:05.000000Z",
            "drift": NO_DRIFT, **more}


WEB = {
    "cgroup": "/system.slice/web.service", "inode": 4711, "unit": "web.service", "slice": "system.slice", "populated": True,
    "class": "latency-critical", "source": "rule", "rule": "web", "inherited_from": None, "unknown_class": None, "assignment": None,
    "state": "applied", "state_reason": None, "protected": False, "left_to_other_manager": False, "unmanaged_reason": None,
    "paused": False, "paused_until": None, "drift": False,
    "bandwidth": knob("applied", controller_off=False, original=BW_MAX, base=BW_HALF, desired=BW_FULL, observed=BW_FULL, written=BW_FULL,
                      plan={"start": BW_HALF, "floor_usec": 20000, "ceiling_usec": 150000, "unlimited": False, "limited_by_owner": False}),
    "latency": knob("applied", mechanism="slice", latency_nice=-15, slice_nsec=105000, threads=12, threads_covered=11, threads_other_policy=1,
                    threads_failed=0, races=2),
    "cookie": knob("absent", writer="none", writes=0, reason="the kernel has no core scheduling", mechanism="threads", cookie_id=None, threads=0,
                   threads_covered=0, threads_failed=0),
    "sample": {"at": "2026-01-02T03:04:05.000000Z", "window_usec": 100000, "usage_permyriad_of_cpu": 4950, "throttled_permyriad": 1234,
               "total": {"usage_usec": 1000000, "nr_periods": 100, "nr_throttled": 12, "throttled_usec": 300000, "nr_bursts": 3, "burst_usec": 4000,
                         "force_idle_usec": None, "parked_usec": None, "lost_usec": None},
               "pressure": {"some_total_usec": 5, "full_total_usec": 6, "some_avg10_permyriad": 321, "full_avg10_permyriad": 12},
               "window": {"usage_usec": 49500, "nr_periods": 10, "nr_throttled": 1, "throttled_usec": 3, "nr_bursts": 0, "burst_usec": 0, "some_usec": 1,
                          "full_usec": 1, "force_idle_usec": None, "ancestor_throttled": False}},
    "law": "captain", "last_decision": DECISION,
    "effective_class": None,
}


def group(**more):
    g = copy.deepcopy(WEB)
    g.update(more)
    return g


EXPLAIN = {
    "group": WEB, "asked": {"unit": "web.service"},
    "precedence": [
        {"source": "api", "verdict": "silent", "class": None, "detail": "no assignment"},
        {"source": "unit", "verdict": "silent", "class": None, "detail": "no [X-CpuClass] in its files"},
        {"source": "label", "verdict": "silent", "class": None, "detail": "no label"},
        {"source": "rule", "verdict": "chosen", "class": "latency-critical", "detail": "rule web of /etc/cpuclass/policies.d/50-site.json"},
        {"source": "inherited", "verdict": "not asked", "class": None, "detail": ""},
    ],
    "effective": {"bandwidth": {"quota_usec": 40000, "period_usec": 100000, "burst_usec": 0}, "limited_by": "/system.slice",
                  "path": [{"cgroup": "/system.slice", "unit": "system.slice", "class": None, "source": "none",
                            "bandwidth": {"quota_usec": 40000, "period_usec": 100000, "burst_usec": 0}, "latency_nice": None, "drift": False},
                           {"cgroup": "/system.slice/web.service", "unit": "web.service", "class": "latency-critical", "source": "rule",
                            "bandwidth": BW_FULL, "latency_nice": -15, "drift": False}]},
    "affected_siblings": ["cron.service"], "decisions": [DECISION],
}

STATUS = {
    "version": "0.1.0", "started_at": "2026-01-02T03:04:05.000000Z", "ready": True, "dry_run": False, "paused": False, "paused_until": None, "bus_connected": True,
    "groups": {"seen": 100, "classified": 3, "pending": 1, "drift": 0, "failed": 0}, "writes": {"bandwidth": 9, "thread": 40, "bus": 3, "file": 6},
    "rescans": 1, "overflows": 0, "ticks": 1234, "last_tick_usec": 300, "worst_tick_usec": 2100, "ledger_records": 12, "threads_tracked": 11,
    "policy": {"revision": 4, "error": None}, "decisions": 41,
    "pending": [{"unit": "later.service", "class": "batch", "owner": "api", "force": False, "overrides": {}, "expires_at": None,
                 "created_at": "2026-01-02T03:04:05.000000Z", "revision": 1, "by": "uid=0", "pending": "unit is not loaded"}],
    "api": {"connections": 1, "subscribers": 0, "requests": 7, "refused": 0},
}

CLASSES = {"classes": [
    {"class": {"name": "batch", "description": "Throughput", "priority": 200, "latency_nice": 6, "core_scheduling": "none",
               "cpu": {"quota": "keep", "burst": {"percent_of_quota": 50}, "law": "static", "enable_controller": False}, "drift": "adopt"}, "origin": "10-classes.json", "n_groups": 1},
    {"class": {"name": "latency-critical", "description": "Seen by users", "priority": 900, "latency_nice": -15, "core_scheduling": "none",
               "cpu": {"quota": {"percent_of_cpu": 50}, "burst": "full", "ceiling": {"percent_of_base": 300}, "law": "captain", "enable_controller": True}, "drift": "adopt"},
     "origin": "10-classes.json", "n_groups": 2},
]}

HOST = {
    "kernel_release": "6.12.48", "boot_id": "b", "n_cpus": 4, "base_slice_nsec": 2800000, "bandwidth_slice_usec": 5000, "sched_ext": None,
    "facts": [{"name": "cgroup2", "state": "yes", "reason": None, "loss": "everything", "remedy": "boot with it"},
              {"name": "core_scheduling", "state": "no", "reason": "prctl answers EINVAL", "loss": "core cookies", "remedy": "a kernel with CONFIG_SCHED_CORE"}],
}
