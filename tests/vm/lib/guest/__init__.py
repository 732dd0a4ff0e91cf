# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a scenario needs to look at a host and to put something on it. Only the standard library; runs in the guest.

    from guest import api, ctl, unit, wait_until

    def test_relief(daemon):
        daemon.start()
        with unit("web", "hog", "2", CPUQuota="20%") as web:
            api("PUT", f"/v1/assignments/unit/{web.name}", {"class": "latency-critical"}, expect=201)
            wait_until(lambda: web.burst > 0, 10, "the class's burst in the kernel")
"""

from .cgroup import CGROUP, burst, cgread, cgwrite, cpu_max, cpu_stat, pressure, threads_of, throttled_share
from .daemon import Daemon, ctl, journal
from .measure import measuring, reproducible
from .rest import Response, api, api_as
from .sched import (
    BATCH,
    FIFO,
    IDLE,
    OTHER,
    RESET_ON_FORK,
    RR,
    SchedAttr,
    base_slice_nsec,
    core_cookie,
    sched_attr,
    sched_set,
    slice_of,
)
from .units import LOADGEN, Unit, run, sliceunit, systemctl, unit
from .wait import holds, wait_until

__all__ = [
    "BATCH", "CGROUP", "Daemon", "FIFO", "IDLE", "LOADGEN", "OTHER", "RESET_ON_FORK", "RR", "Response", "SchedAttr", "Unit",
    "api", "api_as", "base_slice_nsec", "burst", "cgread", "cgwrite", "core_cookie", "cpu_max", "cpu_stat", "ctl", "holds",
    "journal", "measuring", "pressure", "reproducible", "run", "sched_attr", "sched_set", "slice_of", "sliceunit", "systemctl", "threads_of",
    "throttled_share", "unit", "wait_until",
]  # fmt: skip
