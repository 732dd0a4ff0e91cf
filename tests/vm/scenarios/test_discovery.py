# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups come and go, with names that break careless programs; delegated trees; pools; units that do not exist yet."""

import contextlib
import os
import subprocess
import time
import urllib.parse

import pytest
from guest import CGROUP, api, base_slice_nsec, cgread, cgwrite, ctl, holds, run, slice_of, systemctl, unit, wait_until

POLICY = {
    "version": 1,
    "classes": [
        {"name": "gold", "priority": 900, "latency_nice": -10, "cpu": {"quota": "keep", "burst": "full"}},
        {"name": "lat", "latency_nice": -5},
        {"name": "down", "latency_nice": -5, "inherit": True},
        {"name": "half", "cpu": {"quota": {"usec": 50000}, "burst": {"percent_of_quota": 50}}},
    ],
    "rules": [
        {"name": "by-glob", "class": "lat", "match": {"unit": "rule-*.service"}},
        {"name": "by-path", "class": "lat", "match": {"cgroup": "/byhand.slice/*"}},
    ],
}


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@contextlib.contextmanager
def cgroups(*paths):
    """Groups made by hand at the root, removed after."""
    for path in paths:
        os.makedirs(f"{CGROUP}{path}", exist_ok=True)
    try:
        yield
    finally:
        for path in sorted(paths, key=len, reverse=True):
            deadline = time.monotonic() + 5
            while os.path.isdir(f"{CGROUP}{path}") and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    os.rmdir(f"{CGROUP}{path}")
                time.sleep(0.05)


def by_path(path, **more):
    return api("GET", "/v1/groups/cgroup?path=" + urllib.parse.quote(path, safe=""), **more)


@pytest.mark.limit(300)
def test_500_groups(daemon):
    """500 groups made and removed while it runs: each gets its class, and no descriptor or memory is left over."""
    daemon.start(POLICY)
    with cgroups("/byhand.slice"):
        time.sleep(1)
        fds = fd_count(daemon.pid)
        for _ in range(5):
            names = [f"/byhand.slice/g{n}" for n in range(100)]
            for name in names:
                os.mkdir(f"{CGROUP}{name}")
            wait_until(lambda: sum(1 for g in groups_below("/byhand.slice/") if g["class"] == "lat") == 100, 15, "each of 100 new groups having its class")
            for name in names:
                os.rmdir(f"{CGROUP}{name}")
            wait_until(lambda: not groups_below("/byhand.slice/"), 15, "the removed groups being forgotten")
        wait_until(lambda: fd_count(daemon.pid) <= fds + 2, 10, f"descriptors back at {fds}")
        status = daemon.status()
        assert status["ledger_records"] == 0, status


def groups_below(prefix):
    found, after = [], None
    while True:
        answer = api("GET", "/v1/groups?limit=500" + (f"&after={urllib.parse.quote(after, safe='')}" if after else ""), expect=200)
        found += [g for g in answer["groups"] if g["cgroup"].startswith(prefix)]
        after = answer["next"]
        if not after:
            return found


def test_a_burst_of_short_lived_groups(daemon):
    """Groups that vanish before they are looked at are no error."""
    daemon.start(POLICY)
    with cgroups("/byhand.slice"):
        for n in range(300):
            os.mkdir(f"{CGROUP}/byhand.slice/s{n}")
            os.rmdir(f"{CGROUP}/byhand.slice/s{n}")
        os.mkdir(f"{CGROUP}/byhand.slice/last")
        wait_until(lambda: by_path("/byhand.slice/last").status == 200, 10, "the group that stayed")
        os.rmdir(f"{CGROUP}/byhand.slice/last")
        wait_until(lambda: by_path("/byhand.slice/last").status == 404, 10, "it being forgotten")


def test_same_name_again(daemon):
    """Removed and made again under the same name is another group: nothing of the old one may be put back on it."""
    with unit("svc", "hog", "1", CPUQuota="30%", section="[Unit]\nStartLimitIntervalSec=0") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "gold")
        wait_until(lambda: svc.burst == 30000, 5, "the class")
        for _ in range(10):
            svc.restart()
        wait_until(lambda: svc.burst == 30000, 5, "the class on the tenth incarnation")
        daemon.unassign(svc)
        wait_until(lambda: svc.burst == 0, 5, "no burst after unassign")


NAMES = ["plain", "dash-ed", "per%cent", "at@sign", "with space", "ünïcödé", 'quo"te', "back\\x2dslash", "esc\x1b[31mred", "tick'n", "percent%2Fslash", "semi;$(reboot)"]


def test_strange_names(daemon):
    """Names are data: they reach the right group, the JSON stays JSON, and no control byte reaches a terminal."""
    daemon.start(POLICY)
    paths = [f"/byhand.slice/{name}" for name in NAMES]
    with cgroups("/byhand.slice", *paths):
        for path in paths:
            wait_until(lambda: by_path(path).status == 200 and by_path(path)["class"] == "lat", 10, f"{path!r} with its class")
            quoted = urllib.parse.quote(path, safe="")
            api("PUT", f"/v1/assignments/cgroup?path={quoted}", {"class": "gold"}, expect=201)
            wait_until(lambda: by_path(path)["class"] == "gold", 5, f"{path!r} with the assigned class")
            assert "\x1b" not in ctl("explain", path).out
            api("DELETE", f"/v1/assignments/cgroup?path={quoted}", expect=204)
        assert "\x1b" not in ctl("list").out
        metrics = api("GET", "/metrics", expect=200).text
        assert "\x1b" not in metrics
    assert api("PUT", "/v1/assignments/cgroup?path=" + urllib.parse.quote("/a\nb", safe=""), {"class": "gold"}).status == 400
    assert api("PUT", "/v1/assignments/cgroup?path=" + urllib.parse.quote("/a/../b", safe=""), {"class": "gold"}).status == 400
    assert api("PUT", "/v1/assignments/unit/a%0ab.service", {"class": "gold"}).status == 400


def test_strange_unit_names(daemon):
    for name in ("my-dash\\x2dapp.service", "inst@one.service"):
        with unit(name, "threads", "2", CPUQuota="20%") as u:
            if not daemon.was_started:
                daemon.start(POLICY)
            quoted = urllib.parse.quote(name, safe="")
            api("PUT", f"/v1/assignments/unit/{quoted}?wait=applied", {"class": "gold"}, expect=(200, 201))
            assert u.burst == 20000
            api("DELETE", f"/v1/assignments/unit/{quoted}?wait=applied", expect=(200, 204))
            wait_until(lambda: u.burst == 0, 5, "unassign")


def test_unit_assigned_before_it_exists(daemon):
    """A deploy script assigns first and starts later: pending, then applied within a second or two of the start."""
    daemon.start(POLICY)
    api("PUT", "/v1/assignments/unit/later.service", {"class": "gold"}, expect=201)
    assert api("GET", "/v1/assignments/unit/later.service", expect=200)["pending"]
    with unit("later", "threads", "3", CPUQuota="20%") as later:
        wait_until(lambda: later.burst == 20000, 5, "the class on the unit that was assigned before it existed")
        assert not api("GET", "/v1/assignments/unit/later.service", expect=200)["pending"]
    api("DELETE", "/v1/assignments/unit/later.service", expect=204)


def test_alias_and_template(daemon):
    with unit("real", "threads", "2", CPUQuota="20%", section="[Install]\nAlias=nick.service") as real:
        systemctl("enable", "--quiet", real.name)
        systemctl("daemon-reload")
        try:
            daemon.start(POLICY)
            api("PUT", "/v1/assignments/unit/nick.service?wait=applied", {"class": "gold"}, expect=(200, 201))
            wait_until(lambda: real.burst == 20000, 5, "the class through the alias")
            api("DELETE", "/v1/assignments/unit/nick.service?wait=applied", expect=(200, 204))
            wait_until(lambda: real.burst == 0, 5, "unassign through the alias")
        finally:
            systemctl("disable", "--quiet", real.name)
    api("PUT", "/v1/assignments/unit/worker@.service", {"class": "gold"}, expect=201)
    with unit("worker@1", "threads", "2", CPUQuota="20%") as one:
        wait_until(lambda: one.burst == 20000, 5, "the template's class on an instance")
    api("DELETE", "/v1/assignments/unit/worker@.service", expect=204)


def test_rules_and_the_units_own_word(daemon):
    with unit("rule-a", "threads", "2") as a, unit("own", "threads", "2", section="[X-CpuClass]\nClass=lat") as own, unit("none", "threads", "2") as none:
        daemon.start(POLICY)
        wait_until(lambda: daemon.group(a)["class"] == "lat" and daemon.group(a)["source"] == "rule", 5, "the rule's class")
        wait_until(lambda: daemon.group(own)["class"] == "lat" and daemon.group(own)["source"] == "unit", 5, "the unit's own word")
        assert not api("GET", "/v1/groups/unit/none.service").body.get("class")
        daemon.assign(own, "gold")
        assert daemon.group(own)["source"] == "api"
        daemon.unassign(own)
        wait_until(lambda: daemon.group(own)["source"] == "unit", 5, "back to the unit's own word")
        # A drop-in of a unit that runs already: after a reload.
        none.write_dropin("class.conf", "[X-CpuClass]\nClass=lat\n")
        wait_until(lambda: daemon.group(none)["class"] == "lat", 5, "the drop-in's class after a daemon-reload")


def test_protected(daemon):
    daemon.start(POLICY)
    answer = api("PUT", "/v1/assignments/unit/systemd-journald.service", {"class": "gold"})
    assert answer.status == 409 and "protected" in answer.text, answer
    assert api("PUT", "/v1/assignments/unit/cpuclassd.service", {"class": "gold"}).status == 409
    assert api("PUT", "/v1/assignments/unit/-.slice", {"class": "gold"}).status == 409


def test_delegated_subtree(daemon):
    """A delegated subtree is written directly; its unit is left to systemd."""
    with unit("boss", "idle", Delegate="cpu", CPUQuota="80%") as boss:
        group = boss.cgroup + "/inner"
        os.mkdir(f"{CGROUP}{group}")
        os.mkdir(f"{CGROUP}{boss.cgroup}/leaf")
        cgwrite(boss.cgroup + "/leaf", "cgroup.procs", boss.pid)
        cgwrite(boss.cgroup, "cgroup.subtree_control", "+cpu")
        daemon.start(POLICY)
        quoted = urllib.parse.quote(group, safe="")
        api("PUT", f"/v1/assignments/cgroup?path={quoted}&wait=applied", {"class": "half"}, expect=(200, 201))
        assert cgread(group, "cpu.max") == "50000 100000" and cgread(group, "cpu.max.burst") == "25000"
        assert by_path(group)["bandwidth"]["writer"] == "cgroupfs"
        systemctl("daemon-reload")
        holds(lambda: cgread(group, "cpu.max") == "50000 100000", 2, "the inner quota over a daemon-reload")
        assert boss.cpu_max == (80000, 100000)
        api("DELETE", f"/v1/assignments/cgroup?path={quoted}&wait=applied", expect=(200, 204))
        wait_until(lambda: cgread(group, "cpu.max") == "max 100000" and cgread(group, "cpu.max.burst") == "0", 5, "the inner group as it was")


def test_inherit(daemon):
    """Latency of a class with inherit reaches the groups below; without it, it does not."""
    with unit("boss", "idle", Delegate="cpu") as boss:
        os.mkdir(f"{CGROUP}{boss.cgroup}/leaf")
        cgwrite(boss.cgroup + "/leaf", "cgroup.procs", boss.pid)
        daemon.start(POLICY)
        daemon.assign(boss, "lat")
        time.sleep(1.5)
        assert slice_of(boss.pid) == base_slice_nsec()
        daemon.assign(boss, "down")
        wait_until(lambda: slice_of(boss.pid) != base_slice_nsec(), 4, "the inherited latency")
        assert by_path(boss.cgroup + "/leaf")["source"] == "inherited"
        daemon.unassign(boss)
        wait_until(lambda: slice_of(boss.pid) == base_slice_nsec(), 4, "its own slice after unassign")


def test_user_managers_units_are_left_to_it(daemon):
    """A user's systemd owns its units: reported, not written."""
    with unit("user@4242", "idle", Delegate="cpu", Slice="user-4242.slice") as manager:
        os.makedirs(f"{CGROUP}{manager.cgroup}/app.slice/x.service")
        daemon.start(POLICY)
        path = manager.cgroup + "/app.slice/x.service"
        api("PUT", "/v1/assignments/cgroup?path=" + urllib.parse.quote(path, safe=""), {"class": "half"}, expect=201)
        wait_until(lambda: by_path(path)["left_to_other_manager"], 5, "the user manager's group being reported as such")
        assert by_path(path)["bandwidth"]["status"] == "refused"
        api("DELETE", "/v1/assignments/cgroup?path=" + urllib.parse.quote(path, safe=""), expect=204)
        os.rmdir(f"{CGROUP}{path}")
        os.rmdir(f"{CGROUP}{manager.cgroup}/app.slice")


def test_threaded_group(daemon):
    """In a threaded subtree cgroup.procs answers EOPNOTSUPP: threads are covered all the same."""
    with unit("boss", "threads", "3", Delegate="cpu") as boss:
        inner = boss.cgroup + "/t"
        os.mkdir(f"{CGROUP}{inner}")
        cgwrite(inner, "cgroup.type", "threaded")
        tid = [t for t in boss.tids if t != boss.pid][0]
        cgwrite(inner, "cgroup.threads", tid)
        daemon.start(POLICY)
        api("PUT", "/v1/assignments/cgroup?path=" + urllib.parse.quote(inner, safe=""), {"class": "lat"}, expect=201)
        wait_until(lambda: slice_of(tid) != base_slice_nsec(), 5, "the slice of the thread in the threaded group")
        assert slice_of(boss.pid) == base_slice_nsec(), "the slice reached a thread of another group"
        api("DELETE", "/v1/assignments/cgroup?path=" + urllib.parse.quote(inner, safe=""), expect=204)
        wait_until(lambda: slice_of(tid) == base_slice_nsec(), 5, "its own slice again")


def test_pool(daemon):
    """`cpuclassctl run --pool`: a group of its own with the class while the command runs, nothing after it."""
    daemon.start(POLICY)
    systemctl("start", "cpuclass-pools.service")
    child = subprocess.Popen(["cpuclassctl", "run", "--pool", "build", "--class", "half", "--", "sleep", "1000"])
    try:

        def group():
            with open(f"/proc/{child.pid}/cgroup", encoding="utf-8") as f:
                return f.read().strip().partition("::")[2]

        wait_until(lambda: "cpuclass-pools.service/build" in group(), 10, "the command in its pool")
        path = group()
        wait_until(lambda: cgread(path, "cpu.max") == "50000 100000", 5, "the class's quota on the pool's group")
        systemctl("restart", "cpuclassd.service")
        daemon.wait_ready()
        assert child.poll() is None, "restarting the daemon killed the command"
    finally:
        child.kill()
        child.wait()
    wait_until(lambda: not os.path.isdir(f"{CGROUP}{path}"), 10, "the group being removed after the command")
    assert not api("GET", "/v1/assignments", expect=200)["assignments"]
    systemctl("stop", "cpuclass-pools.service")


def test_bus_restart_and_overflow_free_life(daemon):
    """The system bus restarts: the daemon finds its units again and goes on."""
    with unit("svc", "threads", "2", CPUQuota="20%") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "gold")
        systemctl("restart", "dbus.service")
        wait_until(lambda: daemon.status()["bus_connected"], 15, "the connection to systemd again")
        with unit("late", "threads", "2", CPUQuota="20%") as late:
            daemon.assign(late, "gold")
            wait_until(lambda: late.burst == 20000, 5, "a class on a unit that came after the bus restart")
        assert svc.burst == 20000
    daemon.errors_allowed = True


def test_explain_by_pid_and_unknown(daemon):
    with unit("svc", "threads", "2", CPUQuota="20%") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "gold")
        out = ctl("explain", str(svc.pid)).out
        assert "gold" in out and "svc.service" in out
        assert ctl("explain", "no-such-unit", check=False).code == 3
    run("true")
