# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nobody is fought: what systemd, an admin or a runtime sets is seen, named, and handled as the class says."""

import contextlib

from guest import api, cgwrite, ctl, holds, run, systemctl, unit, wait_until

CLASS = {"name": "gold", "priority": 900, "cpu": {"quota": "keep", "burst": {"percent_of_quota": 100}, "law": "static"}}


def policy(**more):
    return {"version": 1, "classes": [{**CLASS, **more}, {"name": "bigger", "cpu": {"quota": {"percent_of_base": 200}, "ceiling": {"percent_of_base": 300}}},
                                      {"name": "absolute", "cpu": {"quota": {"percent_of_cpu": 80}}}]}


def test_set_property_below_our_burst(daemon):
    """An admin lowers the quota below our burst. The kernel refuses that while `systemctl` says it was fine; we must give way."""
    with unit("svc", "hog", "1", CPUQuota="40%") as svc:
        daemon.start(policy())
        daemon.assign(svc, "gold")
        assert svc.burst == 40000
        svc.set_property("CPUQuota=10%")
        wait_until(lambda: svc.cpu_max == (10000, 100000), 5, "the admin's quota in the kernel")
        wait_until(lambda: svc.burst == 10000, 5, "the class's burst for that quota")
        assert daemon.group(svc)["bandwidth"]["base"]["quota_usec"] == 10000
        assert any(d["trigger"] == "owner" for d in daemon.decisions(svc)), "the change was not reported"
    daemon.allow("svc.service.d/50-CPUQuota.conf")


def test_set_property_over_our_own_quota(daemon):
    """We hold a quota in systemd ourselves and an admin sets another: theirs is the owner's word from then on."""
    with unit("svc", "hog", "1", CPUQuota="20%") as svc:
        daemon.start(policy())
        daemon.assign(svc, "bigger")
        wait_until(lambda: svc.cpu_max == (40000, 100000) and svc.show("CPUQuotaPerSecUSec") == "400ms", 5, "twice the owner's quota")
        svc.set_property("CPUQuota=15%")
        wait_until(lambda: svc.cpu_max == (30000, 100000), 6, "twice the admin's new quota")
        daemon.unassign(svc)
        wait_until(lambda: svc.cpu_max == (15000, 100000), 6, "the admin's quota after unassign")
    daemon.allow("svc.service.d/50-CPUQuota.conf")


def test_edit_after_unassign(daemon):
    """After unassign no drop-in of ours may stand between the admin's unit file and its effect."""
    with unit("svc", "hog", "1", CPUQuota="20%") as svc:
        daemon.start(policy())
        daemon.assign(svc, "bigger")
        wait_until(lambda: svc.show("CPUQuotaPerSecUSec") == "400ms", 5, "the class's quota in systemd")
        daemon.unassign(svc)
        wait_until(lambda: svc.cpu_max == (20000, 100000) and svc.show("CPUQuotaPerSecUSec") == "200ms", 6, "the owner's quota")
        text = run("systemctl", "cat", svc.name).replace("CPUQuota=20%", "CPUQuota=35%")
        with open(f"/etc/systemd/system/{svc.name}", "w", encoding="utf-8") as f:
            f.write(text)
        systemctl("daemon-reload")
        wait_until(lambda: svc.cpu_max == (35000, 100000), 5, "the edited unit file taking effect")


def test_edit_while_assigned(daemon):
    """Editing the unit file under an assigned class moves the base."""
    with unit("svc", "hog", "1", CPUQuota="20%") as svc:
        daemon.start(policy())
        daemon.assign(svc, "bigger")
        wait_until(lambda: svc.cpu_max == (40000, 100000), 5, "twice the owner's quota")
        svc.write_dropin("10-mine.conf", "[Service]\nCPUQuota=30%\n")
        wait_until(lambda: svc.cpu_max == (60000, 100000), 6, "twice the owner's new quota")


def test_override_conf_wins_at_each_reload(daemon):
    """override.conf sorts after our drop-in (systemd#16592): the owner's limit is respected as the class says, and explain tells."""
    with unit("svc", "hog", "1") as svc:
        svc.write_dropin("override.conf", "[Service]\nCPUQuota=25%\n")
        daemon.start(policy())
        daemon.assign(svc, "gold")
        wait_until(lambda: svc.cpu_max == (25000, 100000) and svc.burst == 25000, 5, "the owner's quota with the class's burst")
        # An absolute class quota above the owner's limit: the owner's limit is the ceiling.
        daemon.assign(svc, "absolute")
        wait_until(lambda: daemon.group(svc)["bandwidth"]["status"] == "applied", 5, "the class being applied")
        assert svc.cpu_max == (25000, 100000)
        assert "ceiling" in daemon.group(svc)["bandwidth"]["reason"]
        assert "ceiling" in ctl("explain", svc.name).out
        # Where the class may go above it, a reload puts the owner's back and ours is written again.
        daemon.assign(svc, "bigger")
        wait_until(lambda: svc.cpu_max == (50000, 100000), 5, "twice the owner's quota")
        systemctl("daemon-reload")
        wait_until(lambda: svc.cpu_max == (50000, 100000), 5, "ours again after the reload")
        holds(lambda: svc.cpu_max == (50000, 100000), 2, "ours staying")
        assert "override.conf" in daemon.group(svc)["bandwidth"]["reason"]


def test_every_order_of_quota_and_burst(daemon):
    """Lowering and raising quota, burst and period in every order: the API must never say what the kernel does not have."""
    with unit("svc", "hog", "1") as svc:
        daemon.start({"version": 1, "classes": [{"name": "x", "cpu": {"quota": {"usec": 50000}, "burst": "full", "enable_controller": True}}]})
        daemon.assign(svc, "x")
        values = [(50000, 100000, 50000), (10000, 100000, 10000), (10000, 50000, 0), (40000, 50000, 20000), (20000, 200000, 20000), (5000, 20000, 5000),
                  (100000, 100000, 0), (20000, 100000, 20000), (200000, 100000, 200000), (10000, 100000, 1000)]  # fmt: skip
        for a in values:
            for quota, period, burst in (a, values[(values.index(a) * 7 + 3) % len(values)]):
                answer = api(
                    "PUT", f"/v1/assignments/unit/{svc.name}?wait=applied",
                    {"class": "x", "overrides": {"cpu": {"quota": {"usec": quota}, "period_usec": period, "burst": {"usec": burst}}}},
                )  # fmt: skip
                assert answer.status == 200, answer
                seen = answer["group"]["bandwidth"]["observed"]
                kernel = {"quota_usec": svc.cpu_max[0], "period_usec": svc.cpu_max[1], "burst_usec": svc.burst}
                assert seen == kernel == {"quota_usec": quota, "period_usec": period, "burst_usec": burst}


def test_kernels_refusal_reaches_the_user(daemon):
    """A refused value must not be reported as applied: an impossible one is refused at the door, with the field."""
    with unit("svc", "hog", "1", CPUQuota="30%") as svc:
        daemon.start(policy())
        answer = api("PUT", f"/v1/assignments/unit/{svc.name}", {"class": "gold", "overrides": {"cpu": {"quota": {"usec": 999}}}})
        assert answer.status == 400 and answer["errors"][0]["pointer"].startswith("/overrides/cpu/quota"), answer
        assert "1000" in answer["errors"][0]["limit"]


def test_adopt_hold_enforce(daemon):
    for mode in ("adopt", "hold", "enforce"):
        with unit("svc", "hog", "1", CPUQuota="40%") as svc:
            if mode == "adopt":
                daemon.start(policy(drift=mode))
            else:
                daemon.write_policy(policy(drift=mode))
                daemon.reload()
            daemon.assign(svc, "gold")
            wait_until(lambda: svc.burst == 40000, 5, "the class")
            cgwrite(svc.cgroup, "cpu.max.burst", 0)
            cgwrite(svc.cgroup, "cpu.max", "20000 100000")
            if mode == "adopt":
                wait_until(lambda: svc.cpu_max == (20000, 100000) and svc.burst == 20000, 5, "the foreign quota with the class's burst for it")
            elif mode == "hold":
                wait_until(lambda: daemon.group(svc)["bandwidth"]["status"] == "held", 5, "the foreign value held")
                holds(lambda: svc.cpu_max == (20000, 100000), 2, "the foreign value left alone")
            else:
                wait_until(lambda: svc.cpu_max == (40000, 100000) and svc.burst == 40000, 5, "our value again")
            drift = daemon.group(svc)["bandwidth"]["drift"]
            assert drift["count"] >= 1 and drift["writer"] == "foreign", drift
            daemon.unassign(svc)


def test_no_write_war(daemon):
    """A runtime that rewrites cpu.max every second: bounded writes, then hold."""
    import time

    with unit("svc", "hog", "1", CPUQuota="40%") as svc:
        daemon.start(policy(drift="enforce"))
        daemon.assign(svc, "gold")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            # Two steps, as the kernel asks for; when ours comes between them the second is refused, and the runtime tries again.
            with contextlib.suppress(OSError):
                cgwrite(svc.cgroup, "cpu.max.burst", 0)
                cgwrite(svc.cgroup, "cpu.max", "20000 100000")
            time.sleep(1)
            knob = daemon.group(svc)["bandwidth"]
            if knob["status"] == "held" and "somebody else wrote it" in knob["reason"]:
                break
        assert knob["status"] == "held", knob
        assert knob["drift"]["count"] > 3 and knob["writes"] <= 40, knob
        cgwrite(svc.cgroup, "cpu.max.burst", 0)
        cgwrite(svc.cgroup, "cpu.max", "20000 100000")
        writes = knob["writes"]
        holds(lambda: svc.cpu_max == (20000, 100000), 3, "the runtime's value left alone")
        assert daemon.group(svc)["bandwidth"]["writes"] == writes


def test_siblings_keep_their_shares(daemon):
    """Two unmatched siblings keep what they had: no class turned the controller on for them."""
    with unit("one", "idle") as one, unit("two", "idle") as two, unit("svc", "idle") as svc:
        daemon.start({"version": 1, "classes": [{"name": "q", "cpu": {"quota": {"percent_of_cpu": 50}}}, {"name": "on", "cpu": {"quota": {"percent_of_cpu": 50}, "enable_controller": True}}]})
        daemon.assign(svc, "q", wait=False)
        wait_until(lambda: daemon.group(svc)["bandwidth"]["status"] == "refused", 5, "the refusal")
        assert "enable_controller" in daemon.group(svc)["bandwidth"]["reason"]
        import os

        assert not os.path.exists(f"/sys/fs/cgroup{one.cgroup}/cpu.max"), "the cpu controller was turned on although no class said so"
        preview = api("PUT", f"/v1/assignments/unit/{svc.name}?dry_run=true", {"class": "on"}, expect=200)
        assert one.name in preview["affected"] and two.name in preview["affected"], preview
        daemon.assign(svc, "on")
        wait_until(lambda: svc.cpu_max == (50000, 100000), 5, "the quota once the class enables the controller")


def test_quota_survives_the_last_other_unit(daemon):
    """The controller is on in a slice only while some unit has a CPU property; when the last other one stops, ours must not vanish."""
    with unit("svc", "idle") as svc:
        with unit("prop", "idle", CPUWeight="200"):
            daemon.start({"version": 1, "classes": [{"name": "q", "cpu": {"quota": {"percent_of_cpu": 50}, "burst": "full"}}]})
            daemon.assign(svc, "q")
            wait_until(lambda: svc.cpu_max == (50000, 100000), 5, "the class's quota")
            wait_until(lambda: svc.show("CPUQuotaPerSecUSec") == "500ms", 5, "systemd holding it")
        holds(lambda: svc.cpu_max == (50000, 100000) and svc.burst == 50000, 3, "quota and burst after the other unit stopped")
