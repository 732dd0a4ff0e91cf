# SPDX-License-Identifier: LGPL-2.1-or-later
"""Assignments outlive a power loss and a reboot; what was only in the kernel does not haunt the next boot."""

from host import Disk, Guest, boot

SETUP = """
import subprocess
POLICY = {"version": 1, "classes": [{"name": "gold", "latency_nice": -10, "cpu": {"quota": "keep", "burst": "full"}}]}
d = Daemon()
d.write_policy(POLICY)
systemctl("start", "cpuclassd.socket", "cpuclassd.service")
d.wait_ready(60)
"""

FIRST = SETUP + """
with unit("svc", "threads", "3", CPUQuota="30%") as svc:
    d.assign(svc, "gold")
    wait_until(lambda: svc.burst == 30000, 10, "the class before the power loss")
    api("PUT", "/v1/assignments/unit/later.service", {"class": "gold", "owner": "deploy"}, expect=201)
    print("answered", flush=True)
    wait_until(lambda: False, 1000)
"""

SECOND = SETUP + """
have = {a["unit"]: (a["class"], a["owner"]) for a in api("GET", "/v1/assignments", expect=200)["assignments"]}
assert have == {"svc.service": ("gold", "api"), "later.service": ("gold", "deploy")}, have
assert d.status()["ledger_records"] == 0, "records of the boot before are taken for ours"
with unit("svc", "threads", "3", CPUQuota="40%") as svc:
    wait_until(lambda: svc.burst == 40000, 10, "the class applied again after the reboot, to the unit as it is now")
    d.stop()
    wait_until(lambda: svc.burst == 0, 10, "the owner's value after the stop")
print("right after the reboot", flush=True)
"""


def test_reboot_with_assignments(tmp_path):
    """What the API answered is still there after the plug was pulled, and the next boot applies it to what runs then."""
    disk = Disk(tmp_path / "state.img", "/var/lib/cpuclass")
    with Guest(python=FIRST, disks=[disk]) as guest:
        guest.expect("answered", 150)
        guest.power_loss()
    boot(python=SECOND, disks=[disk]).ok()
