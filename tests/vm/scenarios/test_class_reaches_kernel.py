# SPDX-License-Identifier: LGPL-2.1-or-later
"""A class becomes what the kernel enforces, and stays so whatever systemd does around it."""

import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from guest import BATCH, FIFO, IDLE, OTHER, api, base_slice_nsec, holds, run, sched_attr, sched_set, slice_of, systemctl, unit, wait_until

POLICY = {
    "version": 1,
    "classes": [
        {
            "name": "gold",
            "priority": 900,
            "latency_nice": -10,
            "cpu": {
                "quota": {"percent_of_base": 100},
                "burst": {"percent_of_quota": 100},
                "law": "static",
            },
        },
        {"name": "fixed", "priority": 500, "cpu": {"quota": {"percent_of_cpu": 50}, "burst": {"percent_of_quota": 50}, "enable_controller": True}},
        {"name": "plain", "priority": 500, "latency_nice": -5},
    ],
}


def slice_for(nice):
    weights = {-20: 88761, -10: 9548, -5: 3121, 0: 1024}
    return base_slice_nsec() * 1024 // weights[nice]


def covered(u, nice):
    """All SCHED_OTHER and SCHED_BATCH threads have the slice of the class."""
    want = max(slice_for(nice), 100_000)
    return all(abs(slice_of(t) - want) < 2000 for t in u.tids if sched_attr(t).policy in (OTHER, BATCH))


def test_quota_burst_and_slice(daemon):
    """The admin assigned a class and `systemctl show`, the cgroup files and the threads must all say so, now and after whatever systemd does."""
    with unit("svc", "threads", "4", "--policy", "other,batch", CPUQuota="30%") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "gold")
        assert svc.cpu_max == (30000, 100000)
        assert svc.burst == 30000
        assert svc.show("CPUQuotaPerSecUSec") == "300ms"
        wait_until(lambda: covered(svc, -10), 3, "the class's slice on all threads")

        for what, action in (
            ("daemon-reload", lambda: systemctl("daemon-reload")),
            ("daemon-reexec", lambda: systemctl("daemon-reexec")),
            ("set-property MemoryHigh=", lambda: svc.set_property("MemoryHigh=1G")),
            ("a restart of the unit", svc.restart),
        ):
            action()
            wait_until(lambda: svc.cpu_max == (30000, 100000) and svc.burst == 30000, 5, f"quota and burst after {what}")
            wait_until(lambda: covered(svc, -10), 5, f"the slice after {what}")
    daemon.allow("50-MemoryHigh")


def test_quota_of_the_class_is_systemds_too(daemon):
    """A class with a quota of its own: systemd must agree, so that its next reload does not take it away."""
    with unit("svc", "hog", "1") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "fixed")
        wait_until(lambda: svc.cpu_max == (50000, 100000) and svc.burst == 25000, 5, "the class's quota in the kernel")
        wait_until(lambda: svc.show("CPUQuotaPerSecUSec") == "500ms", 5, "the quota in systemctl show")
        for action in (lambda: systemctl("daemon-reload"), lambda: systemctl("daemon-reexec"), svc.restart):
            action()
            wait_until(lambda: svc.cpu_max == (50000, 100000) and svc.burst == 25000, 5, "quota and burst after it")
        daemon.unassign(svc)
        wait_until(lambda: svc.show("CPUQuotaPerSecUSec") == "infinity", 5, "no quota of ours in systemctl show after unassign")


def test_late_threads_are_covered(daemon):
    """A service that makes threads later, or gets processes moved in, must not run half of them at the wrong latency."""
    with unit("svc", "forker", "--every", "50000", "--life", "3000000", "--max", "20") as svc, unit("other", "threads", "3") as other:
        daemon.start(POLICY)
        daemon.assign(svc, "plain")
        wait_until(lambda: len(svc.tids) > 10 and covered(svc, -5), 6, "the slice on threads that came later")
        # Moved in from another unit: within a second or two.
        pid = other.pid
        with open(f"/sys/fs/cgroup{svc.cgroup}/cgroup.procs", "w", encoding="utf-8") as f:
            f.write(str(pid))
        wait_until(lambda: pid in svc.tids and abs(slice_of(pid) - max(slice_for(-5), 100_000)) < 2000, 3, "the slice on a process that was moved in")
        # And moved out again: what it had.
        with open(f"/sys/fs/cgroup{other.cgroup}/cgroup.procs", "w", encoding="utf-8") as f:
            f.write(str(pid))
        wait_until(lambda: slice_of(pid) == base_slice_nsec(), 3, "its own slice after it was moved out")


def test_users_thread_settings_stay(daemon):
    """Policy, nice, reset-on-fork and clamps of users' threads: as they were, before, during and after."""
    with unit("svc", "threads", "5", "--policy", "other,batch,idle,fifo,rr", "--nice", "3", "--reset-on-fork") as svc:
        before = {t: sched_attr(t) for t in svc.tids}

        def same_but_slice():
            for tid, old in before.items():
                new = sched_attr(tid)
                for field in ("policy", "nice", "flags", "priority", "util_min", "util_max"):
                    assert getattr(new, field) == getattr(old, field), f"{field} of thread {tid}: {old} -> {new}"
            return True

        daemon.start(POLICY)
        daemon.assign(svc, "plain")
        wait_until(lambda: covered(svc, -5), 5, "the slice")
        assert same_but_slice()
        for tid, old in before.items():
            if old.policy in (FIFO, IDLE, 2):
                assert sched_attr(tid).runtime == old.runtime, "a thread whose policy takes no slice was given one"
        holds(same_but_slice, 2, "everything but the slice staying as it was")
        daemon.unassign(svc)
        wait_until(lambda: {t: sched_attr(t) for t in svc.tids} == before, 5, "every attribute as it was before the class")


def test_renice_race(daemon):
    """Somebody renices threads while slices are being set: their nice value must win."""
    with unit("svc", "threads", "60") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "plain", wait=False)
        for nice in range(1, 8):
            for tid in svc.tids:
                sched_set(tid, nice=nice)
        wait_until(lambda: all(sched_attr(t).nice == 7 for t in svc.tids), 3, "the nice value that the user set last")
        holds(lambda: all(sched_attr(t).nice == 7 for t in svc.tids), 2, "the user's nice value staying")


def test_without_a_class_nothing_is_touched(daemon):
    """A fresh install must change nothing on the host."""
    with unit("svc", "hog", "1", CPUQuota="40%") as svc, unit("idle", "idle") as idle:
        daemon.start()
        before = (svc.cpu_max, svc.burst, [sched_attr(t) for t in svc.tids + idle.tids])
        holds(lambda: (svc.cpu_max, svc.burst, [sched_attr(t) for t in svc.tids + idle.tids]) == before, 3, "everything as it was")
        writes = daemon.writes()
        assert not any(writes.values()), writes


def test_stop_gives_everything_back(daemon):
    """`systemctl stop cpuclassd`: values that are still ours go back, what an admin changed since stays."""
    with unit("a", "threads", "3", CPUQuota="30%") as a, unit("b", "threads", "3", CPUQuota="40%") as b:
        daemon.start(POLICY)
        daemon.assign(a, "gold")
        daemon.assign(b, "gold")
        wait_until(lambda: a.burst == 30000 and b.burst == 40000 and covered(a, -10), 5, "both classes in the kernel")
        daemon.stop()
        wait_until(lambda: a.burst == 0 and b.burst == 0, 5, "no burst of ours after the stop")
        assert a.cpu_max == (30000, 100000) and b.cpu_max == (40000, 100000)
        assert all(slice_of(t) == base_slice_nsec() for t in a.tids + b.tids), "a slice of ours was left behind"


def test_foreign_value_is_left_at_stop(daemon):
    with unit("a", "threads", "3", CPUQuota="30%") as a:
        daemon.start({**POLICY, "classes": [{**POLICY["classes"][0], "drift": "hold"}]})
        daemon.assign(a, "gold")
        assert a.burst == 30000
        with open(f"/sys/fs/cgroup{a.cgroup}/cpu.max.burst", "w", encoding="utf-8") as f:
            f.write("7000")
        wait_until(lambda: daemon.group(a)["bandwidth"]["status"] == "held", 5, "the foreign write being reported")
        daemon.stop()
        assert a.burst == 7000, "an admin's value was overwritten by the stop"


def test_restart_changes_nothing(daemon):
    """An upgrade restarts the daemon: no service may notice, not one write."""
    with unit("svc", "threads", "4", CPUQuota="30%") as svc, unit("own", "hog", "1") as own:
        daemon.start(POLICY)
        daemon.assign(svc, "gold")
        daemon.assign(own, "fixed")
        wait_until(lambda: svc.burst == 30000 and covered(svc, -10) and own.show("CPUQuotaPerSecUSec") == "500ms", 5, "both classes in the kernel")
        # An upgrade: another file under the same name, then a restart.
        shutil.copy2("/usr/sbin/cpuclassd", "/usr/sbin/cpuclassd.new")
        os.rename("/usr/sbin/cpuclassd.new", "/usr/sbin/cpuclassd")
        daemon.restart()
        wait_until(lambda: daemon.group(svc)["state"] == "applied" and daemon.group(own)["state"] == "applied", 10, "both groups adopted")
        holds(lambda: svc.burst == 30000 and covered(svc, -10) and own.cpu_max == (50000, 100000), 2, "the values over a restart")
        writes = daemon.writes()
        assert not any(writes.values()), f"the restart wrote: {writes}: {daemon.decisions()}"
        # And what a former instance wrote is still known as ours.
        daemon.unassign(svc)
        daemon.unassign(own)
        wait_until(lambda: svc.burst == 0 and own.show("CPUQuotaPerSecUSec") == "infinity", 5, "the owner's values after unassign")


@pytest.mark.limit(600)
def test_kill_9_loses_nothing(daemon):
    """kill -9 at random moments, 20 times: after each restart the state is right and no answered assignment is lost."""
    rnd = random.Random(20261201)
    with unit("w1", "hog", "1", CPUQuota="30%") as w1, unit("w2", "threads", "8", CPUQuota="40%") as w2, unit("w3", "threads", "2") as w3:
        daemon.start(POLICY)
        want = {}
        for turn in range(20):
            for u in (w1, w2, w3):
                if rnd.random() < 0.6:
                    name = rnd.choice(["gold", "fixed", "plain"])
                    answer = api("PUT", f"/v1/assignments/unit/{u.name}", {"class": name})
                    assert answer.status in (200, 201), answer
                    want[u.name] = name
                elif u.name in want and rnd.random() < 0.5:
                    api("DELETE", f"/v1/assignments/unit/{u.name}", expect=204)
                    del want[u.name]
            time.sleep(rnd.random() * 0.3)
            daemon.kill_and_wait()
            have = {a["unit"]: a["class"] for a in api("GET", "/v1/assignments", expect=200)["assignments"]}
            assert have == want, f"after kill {turn + 1}: {have}, answered was {want}"
        for u in (w1, w2, w3):
            name = want.get(u.name)
            own = {"w1": (30000, 100000), "w2": (40000, 100000), "w3": ("max", 100000)}[u.name.split(".")[0]]
            quota = (min(50000, own[0]) if own[0] != "max" else 50000, 100000) if name == "fixed" else own
            burst = 0 if own[0] == "max" and name != "fixed" else {"gold": quota[0], "fixed": None, None: 0, "plain": 0}[name]
            wait_until(lambda: u.cpu_max == quota, 8, f"{u.name} at {name or 'no class'}: quota {quota}")
            if burst is not None:
                wait_until(lambda: u.burst == burst, 8, f"{u.name} at {name or 'no class'}: burst {burst}")


def test_reused_pid_is_somebody_else(daemon):
    """A process of ours ended while the daemon was dead and its number was given to another one: a restore must leave that one alone."""
    with unit("svc", "threads", "1") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "plain")
        wait_until(lambda: covered(svc, -5), 5, "the slice")
        pid, ours = svc.pid, slice_of(svc.pid)
        systemctl("kill", "--signal=KILL", "cpuclassd.service")
        systemctl("stop", "cpuclassd.service", "cpuclassd.socket")
        svc.stop()
    child = None
    try:
        for _ in range(50):
            with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as f:
                f.write(str(pid - 1))
            child = subprocess.Popen(["sleep", "1000"])
            if child.pid == pid:
                break
            child.kill()
            child.wait()
        assert child.pid == pid, "the number could not be given again"
        sched_set(pid, runtime=ours)
        run("/usr/sbin/cpuclassd", "--restore")
        assert slice_of(pid) == ours, "the slice of a process that only has the number of ours was changed"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


def test_class_changed_while_the_daemon_was_dead(daemon):
    """Killed, and the policy changed before it came back: what the new class does not want (or all, when there is none) goes back to the owner."""

    def rules(name):
        return [{"name": "svc", "class": name, "match": {"unit": "svc.service"}}]

    def die():
        systemctl("kill", "--signal=KILL", "cpuclassd.service")
        systemctl("stop", "cpuclassd.service", "cpuclassd.socket")

    with unit("svc", "threads", "3", CPUQuota="30%") as svc:
        daemon.start({**POLICY, "rules": rules("gold")})
        wait_until(lambda: svc.burst == 30000 and covered(svc, -10), 10, "the class")
        die()
        assert svc.burst == 30000
        daemon.start({**POLICY, "rules": rules("plain")})
        wait_until(lambda: svc.burst == 0 and covered(svc, -5), 10, "no burst, but the slice of the new class")
        die()
        daemon.start(POLICY)
        wait_until(lambda: all(slice_of(t) == base_slice_nsec() for t in svc.tids), 10, "the threads' own slices, now that there is no class")
        assert daemon.status()["ledger_records"] == 0
