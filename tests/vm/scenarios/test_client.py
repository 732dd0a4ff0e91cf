# SPDX-License-Identifier: LGPL-2.1-or-later
"""cpuclassctl as an admin at night uses it: a service is slow, something gets a class, and all is taken back."""

import json
import os
import subprocess

from guest import cgread, ctl, run, systemctl, unit, wait_until
from guest.daemon import OVERRIDE_DIR


def test_walk(daemon):
    """assign, list, show, explain, top, decisions, doctor and unassign tell of one service what the kernel and systemd have."""
    daemon.start()
    with unit("web", "hog", "2", CPUQuota="20%") as web:
        assert "burst 20ms" in ctl("assign", "web", "latency-critical", "--wait").out
        assert web.burst > 0
        row = [line for line in ctl("list").out.splitlines() if line.startswith("web.service")][0]
        assert "latency-critical" in row and "api" in row, row
        told = ctl("explain", "web").out
        for part in ("chosen", "original   20% (20ms per 100ms), burst 0", "observed", "effective", "limits", "by systemd"):
            assert part in told, told
        assert ctl("explain", str(web.pid)).out.count("web.service") >= 1
        assert ctl("show", web.cgroup).out.startswith("web.service")
        looks = ctl("top", "-b", "-n", "3", "-d", "1s").out
        assert looks.count("web.service") == 3, looks
        assert "web.service" in ctl("decisions").out
        # with two hogs under a quota there is throttling to be seen
        wait_until(lambda: json.loads(ctl("show", "web", "--json").out)["sample"]["throttled_permyriad"] > 0, 20, "throttled periods in the view")
        facts = ctl("doctor", check=False)
        assert facts.code in (0, 1) and "CONFIG_SCHED_CORE" in facts.out, facts
        ctl("unassign", "web", "--wait")
        wait_until(lambda: web.burst == 0 and web.cpu_max == (20000, 100000), 10, "the original values")
        assert ctl("explain", "nosuchunit", check=False).code == 3
        assert ctl("assign", "web", "latency-critcal", check=False).code == 6


def test_restore_with_and_without_the_daemon(daemon):
    """restore puts the original values back through the API, and after a crash without a daemon from the state on disk."""
    daemon.start()
    with unit("web", "hog", "1", CPUQuota="20%") as web:
        ctl("assign", "web", "latency-critical", "--wait")
        assert web.burst > 0
        assert "put back" in ctl("restore").out
        assert web.burst == 0
        ctl("resume")
        wait_until(lambda: web.burst > 0, 20, "the class's burst again")
        # no daemon that comes back, and no socket that would start one
        os.makedirs(OVERRIDE_DIR, exist_ok=True)
        with open(f"{OVERRIDE_DIR}/norestart.conf", "w", encoding="utf-8") as f:
            f.write("[Service]\nRestart=no\n")
        systemctl("daemon-reload")
        systemctl("kill", "--signal=KILL", "cpuclassd.service")
        wait_until(lambda: not daemon.active, 10, "the end of the daemon")
        systemctl("stop", "cpuclassd.socket")
        assert web.burst > 0
        ctl("restore")
        assert web.burst == 0
    systemctl("reset-failed", "cpuclassd.service", check=False)
    daemon.errors_allowed = True


def test_run_in_a_pool(daemon):
    """The first command in a pool starts the unit of the pools; the command gets the class, and its group goes with it."""
    daemon.start()
    try:
        process = subprocess.Popen(["cpuclassctl", "run", "--pool", "jobs", "--class", "batch", "--", "sleep", "1000"])
        wait_until(lambda: open(f"/proc/{process.pid}/cmdline", "rb").read().startswith(b"sleep") or process.poll() is not None, 30, "the command in the pool")
        assert process.poll() is None
        with open(f"/proc/{process.pid}/cgroup", encoding="utf-8") as f:
            group = f.read().strip().removeprefix("0::")
        assert group == "/cpuclass.slice/cpuclass-pools.service/jobs-1", group
        wait_until(lambda: "batch" in ctl("show", group).out, 10, "its class")
        done = subprocess.run(["cpuclassctl", "run", "--pool", "jobs", "--", "sh", "-c", "cat /proc/self/cgroup; exit 7"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (7, "0::/cpuclass.slice/cpuclass-pools.service/jobs-2\n"), done
        process.kill()
        process.wait()
        wait_until(lambda: not os.path.exists("/sys/fs/cgroup" + group), 20, "the group going away with its command")
    finally:
        systemctl("stop", "cpuclass-pools.service", check=False)
    assert "cpuclass.slice" not in run("systemctl", "list-units", "--state=failed", "--no-legend")


def test_terminal_sees_no_control_bytes(daemon):
    """A group whose name would clear the screen shows up in every view as harmless text."""
    daemon.start()
    evil = "/sys/fs/cgroup/evil\x1b[2J\u202e"
    os.mkdir(evil)
    try:
        ctl("assign", evil.removeprefix("/sys/fs/cgroup"), "batch")
        wait_until(lambda: "evil" in ctl("list").out, 10, "the group in the list")
        for arguments in (["list"], ["assignments"], ["status"], ["decisions"], ["top"], ["show", evil.removeprefix("/sys/fs/cgroup")], ["explain", evil.removeprefix("/sys/fs/cgroup")]):
            out = ctl(*arguments, env=dict(os.environ, LC_ALL="C.UTF-8")).out
            assert "\x1b" not in out and "\u202e" not in out, (arguments, out)
        ctl("unassign", evil.removeprefix("/sys/fs/cgroup"))
    finally:
        os.rmdir(evil)
    assert cgread("/", "cgroup.controllers")
