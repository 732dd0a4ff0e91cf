# SPDX-License-Identifier: LGPL-2.1-or-later
"""The units as they are installed: the sandbox, and what their mere presence changes."""

import os
import re

from guest import LOADGEN, cgread, run, systemctl, unit

SANDBOX = os.path.join(os.path.dirname(LOADGEN), "sandbox")
PROBE = "/run/systemd/system/cpuclass-probe.service"


def installed(name):
    return systemctl("show", "--value", "-p", "FragmentPath", "--", name)


def test_sandbox_lets_through_what_is_needed_and_no_more():
    """In the sandbox of cpuclassd.service the daemon's work is possible; writing elsewhere, the network, and other rights are not."""
    with unit("theirs", "hog", "1", User="nobody", Delegate="cpu") as theirs, open(installed("cpuclassd.service"), encoding="utf-8") as f:
        group = theirs.cgroup + "/below"
        leaf = theirs.cgroup + "/leaf"
        os.mkdir("/sys/fs/cgroup" + leaf)
        for pid in cgread(theirs.cgroup, "cgroup.procs").split():
            run("sh", "-c", f"echo {pid} >/sys/fs/cgroup{leaf}/cgroup.procs")
        run("sh", "-c", f"echo +cpu >/sys/fs/cgroup{theirs.cgroup}/cgroup.subtree_control")
        os.mkdir("/sys/fs/cgroup" + group)
        run("chown", "-R", "nobody", "/sys/fs/cgroup" + group)
        text = re.sub(r"(?m)^(Requires|Wants)=.*\n|^ExecReload=.*\n|^WatchdogSec=.*\n|^Restart=.*\n", "", f.read())
        text = re.sub(r"(?m)^Type=.*$", "Type=oneshot", text)
        text = re.sub(r"(?m)^ExecStart=.*$", f"ExecStart={SANDBOX} {theirs.pid} {group}\nStandardOutput=file:/run/cpuclass-probe.out", text)
        with open(PROBE, "w", encoding="utf-8") as probe:
            probe.write(text)
        os.makedirs("/run/systemd/system.control", exist_ok=True)
        try:
            systemctl("daemon-reload")
            systemctl("start", "cpuclass-probe.service")
            with open("/run/cpuclass-probe.out", encoding="utf-8") as out:
                results = dict(line.split() for line in out)
        finally:
            os.unlink(PROBE)
            systemctl("daemon-reload")
    needed = {name: result for name, result in results.items() if name.startswith("must:")}
    forbidden = {name: result for name, result in results.items() if name.startswith("never:")}
    assert len(needed) >= 17 and len(forbidden) >= 11, results
    assert {n: r for n, r in needed.items() if r != "ok"} == {}
    assert {n: r for n, r in forbidden.items() if r == "ok"} == {}


def test_nothing_is_switched_on_by_being_installed():
    """The socket and the slice of an idle installation leave the cpu controller of the host's slices as it is."""
    before = {path: cgread(path, "cgroup.subtree_control") for path in ("/", "/system.slice")}
    systemctl("start", "cpuclassd.socket")
    try:
        assert os.stat("/run/cpuclass/api.sock").st_mode & 0o777 == 0o660
        assert run("stat", "-c", "%U:%G", "/run/cpuclass/api.sock") == "root:cpuclass"
        assert {path: cgread(path, "cgroup.subtree_control") for path in before} == before
    finally:
        systemctl("stop", "cpuclassd.socket")
    assert not os.path.exists("/run/cpuclass/api.sock")
