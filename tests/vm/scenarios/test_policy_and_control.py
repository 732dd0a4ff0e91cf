# SPDX-License-Identifier: LGPL-2.1-or-later
"""Policy files, reload, pause, dry run, rights, feedback: what an admin does with the daemon."""

import json
import os
import subprocess
import time

import pytest
from guest import api, api_as, base_slice_nsec, core_cookie, ctl, holds, journal, run, slice_of, systemctl, throttled_share, unit, wait_until

GOLD = {"name": "gold", "priority": 900, "latency_nice": -10, "cpu": {"quota": "keep", "burst": "full", "law": "static"}}
POLICY = {"version": 1, "classes": [GOLD]}


def test_reload_is_atomic(daemon):
    """One bad document keeps the old policy and says file, line, pointer, value, limit; mending it puts the new one in force."""
    with unit("svc", "threads", "2", CPUQuota="20%") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "gold")
        assert svc.burst == 20000
        daemon.write_policy({"version": 1, "classes": [{"name": "silver", "latency_nice": -40}]}, file="60-bad.json")
        daemon.write_policy({"version": 1, "classes": [{**GOLD, "cpu": {"quota": "keep", "burst": {"percent_of_quota": 50}}}]})
        began = time.time()
        daemon.reload()
        assert svc.burst == 20000, "half of a bad policy came into force"
        answer = api("POST", "/v1/policy/reload")
        assert answer.status == 422, answer
        error = answer["errors"][0]
        assert error["file"].endswith("60-bad.json") and error["pointer"] == "/classes/0/latency_nice" and error["value"] == "-40", error
        assert "-20" in error["limit"] and "19" in error["limit"]
        lines = [r["MESSAGE"] for r in journal("cpuclassd.service", began)]
        assert any("60-bad.json" in line and "/classes/0/latency_nice" in line for line in lines), lines
        check = ctl("policy", "check", "/etc/cpuclass/policies.d/60-bad.json", check=False)
        assert check.code == 6 and "/classes/0/latency_nice" in check.out + check.err, check
        daemon.write_policy(None, file="60-bad.json")
        ctl("policy", "reload")
        wait_until(lambda: svc.burst == 10000, 5, "the mended policy in force")
    daemon.errors_allowed = True


def test_pause_and_resume(daemon):
    """During a benchmark nothing may be written; after it everything is as the policy says."""
    with unit("svc", "threads", "2", CPUQuota="20%") as svc:
        daemon.start(POLICY)
        ctl("pause", "svc.service", "--for", "10m")
        daemon.assign(svc, "gold", wait=False)
        holds(lambda: svc.burst == 0, 2, "nothing written while paused")
        assert daemon.group(svc)["paused"]
        daemon.restart()
        holds(lambda: svc.burst == 0, 2, "the pause surviving a restart of the daemon")
        ctl("resume", "svc.service")
        wait_until(lambda: svc.burst == 20000, 5, "the class after resume")
        ctl("pause", "--for", "1s")
        assert daemon.status()["paused"]
        wait_until(lambda: not daemon.status()["paused"], 5, "the pause ending by itself")


def test_dry_run(daemon):
    """--dry-run decides and records, and writes nothing."""
    with unit("svc", "threads", "2", CPUQuota="20%") as svc:
        daemon.start(POLICY, arguments=["--dry-run"])
        daemon.assign(svc, "gold", wait=False)
        wait_until(lambda: any(d["dry_run"] for d in daemon.decisions(svc)), 5, "a recorded decision")
        holds(lambda: svc.burst == 0 and slice_of(svc.pid) == base_slice_nsec(), 2, "nothing written")


def test_restore(daemon):
    """`cpuclassctl restore`, with the daemon and without."""
    with unit("svc", "threads", "2", CPUQuota="20%") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "gold")
        wait_until(lambda: svc.burst == 20000 and slice_of(svc.pid) != base_slice_nsec(), 5, "the class")
        ctl("restore")
        wait_until(lambda: svc.burst == 0 and slice_of(svc.pid) == base_slice_nsec(), 5, "the owner's values")
        holds(lambda: svc.burst == 0, 2, "and they stay: a restore pauses")
        ctl("resume")
        wait_until(lambda: svc.burst == 20000, 5, "the class after resume")
        # Killed for good: restore works from what is on disk.
        systemctl("kill", "--signal=KILL", "cpuclassd.service")
        systemctl("stop", "cpuclassd.service", "cpuclassd.socket")
        assert svc.burst in (0, 20000)
        run("/usr/sbin/cpuclassd", "--restore")
        assert svc.burst == 0 and slice_of(svc.pid) == base_slice_nsec()


def test_who_may_do_what(daemon):
    """Members of cpuclass read, cpuclass-admin (and root) write, others get nothing."""
    daemon.start(POLICY)
    for user, groups in (("reader", "cpuclass"), ("writer", "cpuclass,cpuclass-admin"), ("stranger", "")):
        run("useradd", "-M", *(["-G", groups] if groups else []), user, check=False)
    assert api_as("reader", "GET", "/v1/classes").status == 200
    answer = api_as("reader", "PUT", "/v1/assignments/unit/x.service", {"class": "gold"})
    assert answer.status == 403, answer
    assert api_as("reader", "POST", "/v1/policy/reload").status == 403
    assert api_as("writer", "PUT", "/v1/assignments/unit/x.service", {"class": "gold"}).status == 201
    assert api_as("writer", "DELETE", "/v1/assignments/unit/x.service").status == 204
    assert api_as("stranger", "GET", "/v1/classes") is None
    refused = [r for r in journal("cpuclassd.service", daemon.began) if "403" in r.get("MESSAGE", "") or "CPUCLASS_STATUS" in r and r["CPUCLASS_STATUS"] == "403"]
    assert refused, "a refused write left no line in the audit"


def test_declarative_bulk(daemon):
    """A controller's reconcile loop: PUT all it wants, and what it no longer names is pruned; others' assignments stay."""
    with unit("a", "threads", "1", CPUQuota="20%") as a, unit("b", "threads", "1", CPUQuota="20%") as b, unit("c", "threads", "1", CPUQuota="20%") as c:
        daemon.start(POLICY)
        daemon.assign(c, "gold")
        put = lambda names: api("PUT", "/v1/owners/agent/assignments", {"assignments": [{"unit": n, "class": "gold"} for n in names]}, expect=200)  # noqa: E731
        put([a.name, b.name])
        wait_until(lambda: a.burst == b.burst == 20000, 5, "both classes")
        answer = put([b.name])
        assert answer["pruned"] == 1
        wait_until(lambda: a.burst == 0 and b.burst == 20000 and c.burst == 20000, 5, "the pruned one back, the others as they were")
        assert put([b.name])["changed"] == 0
        put([])
        wait_until(lambda: b.burst == 0, 5, "all of this owner's pruned")


def test_expiry(daemon):
    with unit("svc", "threads", "1", CPUQuota="20%") as svc:
        daemon.start(POLICY)
        daemon.assign(svc, "gold", expires_in_usec=2_000_000)
        assert svc.burst == 20000
        wait_until(lambda: svc.burst == 0, 6, "the owner's value after the assignment expired")
        assert api("GET", f"/v1/assignments/unit/{svc.name}").status == 404


def test_conditional_requests(daemon):
    daemon.start(POLICY)
    first = api("PUT", "/v1/assignments/unit/x.service", {"class": "gold"}, expect=201)
    tag = first.headers["etag"]
    assert api("PUT", "/v1/assignments/unit/x.service", {"class": "gold"}, {"If-Match": '"nonsense"'}).status == 412
    again = api("PUT", "/v1/assignments/unit/x.service", {"class": "gold"}, {"If-Match": tag})
    assert again.status == 200 and again.headers["etag"] == tag, "an idempotent PUT changed the revision"
    api("DELETE", "/v1/assignments/unit/x.service", expect=204)
    api("DELETE", "/v1/assignments/unit/x.service", expect=204)


def test_second_instance_refuses(daemon):
    daemon.start(POLICY)
    done = subprocess.run(["/usr/sbin/cpuclassd", "--socket=/run/second.sock"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 3 and "nother cpuclassd" in done.stderr, done


def test_isolated_on_a_stock_kernel(daemon):
    """Without core scheduling `isolated` works but for the cookie, and says so."""
    with unit("svc", "threads", "2", CPUQuota="40%") as svc:
        try:
            core_cookie(0)
            pytest.skip("this kernel has core scheduling")
        except OSError:
            pass
        daemon.start()
        daemon.assign(svc, "isolated")
        view = daemon.group(svc)
        assert view["cookie"]["status"] == "absent" and view["cookie"]["reason"], view
        assert view["state"] == "degraded", view["state"]
        out = ctl("doctor", check=False).out
        assert "CONFIG_SCHED_CORE" in out, out


@pytest.mark.own_kernel
def test_cookies(daemon):
    """On a kernel with core scheduling: cookies hold, follow new threads, and clear."""
    policy = {"version": 1, "classes": [{"name": "alone", "core_scheduling": "group"}, {"name": "together", "core_scheduling": "class"}]}
    with unit("a", "forker", "--every", "100000", "--life", "2000000", "--max", "8", "--processes") as a, unit("b", "threads", "3") as b:
        daemon.start(policy)
        daemon.assign(a, "alone")
        daemon.assign(b, "alone")

        def cookies(u):
            return {core_cookie(t) for t in u.tids}

        wait_until(lambda: len(cookies(a)) == 1 and 0 not in cookies(a) and len(cookies(b)) == 1 and 0 not in cookies(b), 6, "a cookie on every thread")
        assert cookies(a) != cookies(b), "two groups share a core"
        daemon.assign(a, "together")
        daemon.assign(b, "together")
        wait_until(lambda: cookies(a) == cookies(b) and 0 not in cookies(a) and len(cookies(a)) == 1, 6, "one cookie for the class")
        before = cookies(b)
        daemon.restart()
        wait_until(lambda: daemon.group(b)["cookie"]["status"] == "applied", 6, "adoption after a restart")
        assert cookies(b) == before, "a restart made a new cookie"
        daemon.unassign(a)
        daemon.unassign(b)
        wait_until(lambda: cookies(a) == cookies(b) == {0}, 6, "no cookie after unassign")


@pytest.mark.icount
def test_relief_for_a_throttled_service(daemon):
    """A bursty service under a small quota: with the law its throttled share and its p99 fall, the ceiling holds, explain has the decision."""
    policy = {"version": 1, "classes": [{"name": "served", "priority": 900, "cpu": {"quota": "keep", "burst": "full", "ceiling": {"percent_of_base": 300}, "law": "captain"}}]}
    # Demand is 40 % of a CPU for three seconds, then nothing for three: the limit of 25 % holds on average and hurts in each burst.
    server = ["burst", "--rate", "100", "--cpu", "4000", "--on", "3000000", "--off", "3000000", "--workers", "4", "--cpus", "1"]
    with unit("web", *server, CPUQuota="25%") as web:
        daemon.start(policy)

        def measure():
            web.mark()
            share = throttled_share(web.cgroup, 12)
            return share, web.report()["since_mark"]["latency"]["p99_usec"]

        share_before, p99_before = measure()
        assert share_before > 0.3, f"the workload was meant to be throttled, was in {share_before:.0%} of the periods"
        daemon.assign(web, "served")
        wait_until(lambda: web.cpu_max[0] > 25000, 15, "a raised quota")
        wait_until(lambda: web.show("CPUQuotaPerSecUSec") != "250ms", 15, "systemctl show following the law")
        time.sleep(6)
        share_after, p99_after = measure()
        assert share_after < share_before / 2, f"throttled share {share_before:.0%} before, {share_after:.0%} after"
        assert p99_after < p99_before / 2, f"p99 {p99_before} us before, {p99_after} us after"
        assert web.cpu_max[0] <= 75000, "the ceiling of 300 % was broken"
        decisions = [d for d in daemon.decisions(web) if d["trigger"] == "law"]
        assert decisions and decisions[-1]["law"]["cause"], decisions
        assert "quota" in ctl("explain", web.name).out.lower()


def test_sandbox_and_unit(daemon):
    """The unit is hardened, speaks AF_UNIX only, and its watchdog is fed."""
    daemon.start(POLICY)
    assert systemctl("show", "--value", "-p", "WatchdogUSec", "cpuclassd.service") not in ("", "0", "infinity")
    out = run("systemd-analyze", "security", "--no-pager", "cpuclassd.service", check=False)
    level = float(next(line for line in out.splitlines() if "Overall exposure" in line).split(":")[1].split()[0])
    assert level <= 2.0, level
    inodes = {os.readlink(f"/proc/{daemon.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{daemon.pid}/fd")}
    assert not any(s.startswith("socket:") and s[8:-1] in open("/proc/net/tcp", encoding="utf-8").read() for s in inodes)


def test_json_everywhere(daemon):
    daemon.start(POLICY)
    for verb in (["status"], ["list"], ["classes"], ["doctor"], ["decisions"]):
        json.loads(ctl(*verb, "--json", check=False).out)
