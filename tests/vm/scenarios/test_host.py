# SPDX-License-Identifier: LGPL-2.1-or-later
"""The guest is the host that all other scenarios take for granted; and the tools they use work."""

import os
import time

import pytest
from guest import (
    BATCH,
    FIFO,
    OTHER,
    RESET_ON_FORK,
    base_slice_nsec,
    cgread,
    core_cookie,
    holds,
    journal,
    measuring,
    run,
    sched_attr,
    sched_set,
    slice_of,
    systemctl,
    throttled_share,
    unit,
    wait_until,
)


def test_is_a_real_host():
    """systemd is PID 1 on cgroup v2 with the cpu controller, PSI and SMT, and nothing of it has failed."""
    assert os.readlink("/proc/1/exe").endswith("systemd")
    assert "cpu" in cgread("/", "cgroup.controllers").split()
    assert "some" in cgread("/system.slice", "cpu.pressure")
    assert run("cat", "/sys/devices/system/cpu/smt/active") == "1"
    assert systemctl("is-system-running", check=False) == "running", systemctl("--failed")
    assert run("getent", "group", "cpuclass", "cpuclass-admin")


def test_quota_throttles_a_hog():
    with unit("hog", "hog", "2", CPUQuota="20%") as hog:
        assert hog.cpu_max == (20000, 100000)
        share = throttled_share(hog.cgroup, 3)
        assert share > 0.8, f"two hogs under 20 % were throttled in only {share:.0%} of the periods"
        before = hog.stat["usage_usec"]
        time.sleep(5)
        used = (hog.stat["usage_usec"] - before) / 5e6
        assert 0.15 < used < 0.25, f"used {used:.0%} of a CPU under a quota of 20 %"


def test_transient_units_and_journal():
    began = time.time()
    with unit("once", command=["/bin/sh", "-c", "echo here I am; exec sleep 1000"], transient=True) as once:
        wait_until(lambda: [r for r in journal(once.name, began) if r.get("MESSAGE") == "here I am"], 10, "the unit's line in the journal")
        holds(lambda: once.show("ActiveState") == "active", 1, "the unit running")
    assert systemctl("show", "--value", "-p", "LoadState", "once.service") == "not-found"


def test_threads_and_their_attributes():
    with unit("mixed", "threads", "4", "--policy", "other,batch,fifo", "--nice", "3", "--reset-on-fork") as mixed:
        attrs = [sched_attr(tid) for tid in mixed.tids]
        assert sorted(a.policy for a in attrs) == [OTHER, OTHER, FIFO, BATCH]
        assert all(a.flags & RESET_ON_FORK for a in attrs)
        assert all(a.nice == 3 for a in attrs if a.policy != FIFO)
        base = base_slice_nsec()
        assert base > 0
        assert slice_of(mixed.pid) == base
        sched_set(mixed.pid, runtime=500_000)
        assert slice_of(mixed.pid) == 500_000
        assert sched_attr(mixed.pid).nice == 3


def test_request_server_reports():
    with unit("web", "burst", "--rate", "50", "--cpu", "500") as web:
        web.mark()
        time.sleep(2)
        report = web.report()
        assert 50 <= report["since_mark"]["latency"]["count"] <= 150
        assert report["since_mark"]["latency"]["p50_usec"] >= 400


@pytest.mark.icount
def test_figures_are_reproducible():
    """In the reproducible mode the same requests next to the same hogs take the same time, whatever else the machine below does."""
    seen = []
    for _ in range(2):
        with unit("web", "burst", "--rate", "100", "--cpu", "1000", "--cpus", "1") as web, unit("hog", "hog", "3", "--cpus", "1"):
            with measuring():
                time.sleep(2)
                web.mark()
                time.sleep(8)
            latency = web.report()["since_mark"]["latency"]
            assert 600 < latency["count"] < 1000
            seen.append(latency)
    for key in ("p50_usec", "p90_usec"):
        first, second = seen[0][key], seen[1][key]
        assert abs(first - second) <= 0.1 * first, (key, seen)


@pytest.mark.own_kernel
def test_own_kernel_has_core_scheduling():
    assert core_cookie(0) == 0
