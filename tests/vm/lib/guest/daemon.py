# SPDX-License-Identifier: LGPL-2.1-or-later
"""cpuclassd under systemd, fresh for each test, and its command-line client."""

import glob
import json
import os
import shutil
import signal
import subprocess
import time

from . import cgroup, sched
from .rest import SOCKET, api
from .units import CONTROL, systemctl
from .wait import wait_until

SERVICE = "cpuclassd.service"
POLICY_DIR = "/etc/cpuclass/policies.d"
STATE_DIR = "/var/lib/cpuclass"
OVERRIDE_DIR = f"/run/systemd/system/{SERVICE}.d"
KNOB_FILES = ("cpu.max", "cpu.max.burst", "cpu.weight", "cpu.latency.nice", "cpu.core_tag")


class Result:
    """Of cpuclassctl: code, out, err."""

    def __init__(self, command, done):
        self.command, self.code, self.out, self.err = command, done.returncode, done.stdout, done.stderr

    def __repr__(self):
        return f"<{' '.join(self.command)}: exit {self.code}\n{self.out}{self.err}>"

    def json(self):
        return json.loads(self.out)


def ctl(*args, check=True, timeout=60, **kwargs):
    """cpuclassctl ARGS. check: the exit code must be 0."""
    command = ["cpuclassctl", *args]
    result = Result(command, subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **kwargs))
    assert not check or result.code == 0, repr(result)
    return result


def journal(unit=SERVICE, since=None, *matches):
    """Journal records (dictionaries of fields) of a unit, oldest first. since: seconds since the epoch. matches: FIELD=VALUE."""
    command = ["journalctl", "-q", "-o", "json", "--no-pager", "--all", *(["-u", unit] if unit else []), *matches]
    if since:
        command.append(f"--since=@{since:.6f}")
    subprocess.run(["journalctl", "--sync"], check=False, capture_output=True)
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def journal_text(unit=SERVICE, since=None):
    command = ["journalctl", "-q", "--no-pager", "-o", "short-precise", "-u", unit, *([f"--since=@{since:.6f}"] if since else [])]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout


def _dropins():
    return {path for top in (CONTROL, "/run/systemd/transient") for path in glob.glob(f"{glob.escape(top)}/*.d/50-CPU*.conf")}


def _thread_started(tid):
    with open(f"/proc/{tid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[19]


def snapshot():
    """Everything the daemon may touch, by identity: {("group", path, inode, file): text, ("thread", tid, start): SchedAttr, ("dropin", path): text}."""
    seen = {("dropin", path): open(path, encoding="utf-8").read() for path in _dropins()}
    for path in cgroup.walk():
        try:
            inode = os.stat(cgroup.cgpath(path)).st_ino
            for file in KNOB_FILES:
                if os.path.exists(cgroup.cgpath(path, file)):
                    seen["group", path, inode, file] = cgroup.cgread(path, file)
            # The root holds the kernel's own threads, whose slices the kernel itself changes.
            for tid in cgroup.threads_of(path) if path != "/" else ():
                seen["thread", tid, _thread_started(tid)] = sched.sched_attr(tid)
        except OSError:
            continue  # gone in between
    return seen


def differences(before, after):
    """What is on both sides and differs, and drop-ins that are new; lines for people."""
    lines = []
    for key, value in after.items():
        if key[0] == "dropin" and key not in before:
            lines.append(f"new drop-in {key[1]}:\n{value}")
        elif key in before and before[key] != value:
            lines.append(f"{' '.join(map(str, key[1:]))}: was {before[key]}, is {value}")
    return lines


class Daemon:
    """The fixture "daemon": start() it with a policy; what it does is undone and checked at the end of the test.

    allowed: callables that take a line of the leftovers and say whether the test itself made that difference.
    """

    def __init__(self):
        self.began = time.time()
        self.before = snapshot()
        self.allowed = []
        self.errors_allowed = False
        self.was_started = False

    # ---- policy ----
    def write_policy(self, document, file="50-test.json"):
        """document: an object or raw text; None removes the file. Read at the next start or reload."""
        os.makedirs(POLICY_DIR, exist_ok=True)
        path = f"{POLICY_DIR}/{file}"
        if document is None:
            os.unlink(path)
            return
        with open(path, "w", encoding="utf-8") as f:
            f.write(document if isinstance(document, str) else json.dumps(document, indent=1))

    # ---- life ----
    def start(self, policy=None, arguments=None):
        """policy: a document for /etc/cpuclass/policies.d (the shipped classes are there anyway). arguments: more of the daemon's command line."""
        if policy is not None:
            self.write_policy(policy)
        if arguments:
            os.makedirs(OVERRIDE_DIR, exist_ok=True)
            with open(f"{OVERRIDE_DIR}/arguments.conf", "w", encoding="utf-8") as f:
                f.write(f"[Service]\nExecStart=\nExecStart=/usr/sbin/cpuclassd {' '.join(arguments)}\n")
            systemctl("daemon-reload")
        self.was_started = True
        systemctl("start", "cpuclassd.socket", SERVICE)
        self.wait_ready()
        return self

    def wait_ready(self, timeout=40):
        wait_until(lambda: api("GET", "/readyz").status == 200, timeout, "/readyz answering 200")

    def restart(self):
        systemctl("restart", SERVICE)
        self.wait_ready()

    def stop(self):
        systemctl("stop", SERVICE)

    def kill(self, sig=signal.SIGKILL):
        os.kill(self.pid, sig)

    def kill_and_wait(self):
        """kill -9 and wait until systemd has brought it back."""
        old = self.pid
        self.kill()
        wait_until(lambda: self.pid not in (0, old), 40, "systemd starting cpuclassd again")
        self.wait_ready()

    def reload(self):
        systemctl("reload", SERVICE)

    @property
    def pid(self):
        return int(systemctl("show", "--value", "-p", "MainPID", SERVICE))

    @property
    def active(self):
        return systemctl("is-active", SERVICE, check=False) == "active"

    # ---- views ----
    def group(self, unit):
        """GroupView of a unit (api/README.md)."""
        return api("GET", f"/v1/groups/unit/{unit.name if hasattr(unit, 'name') else unit}", expect=200).body

    def assign(self, unit, class_name, wait=True, **more):
        """PUT of an assignment by unit name; waits until the kernel has it."""
        name = unit.name if hasattr(unit, "name") else unit
        query = "?wait=applied" if wait else ""
        return api("PUT", f"/v1/assignments/unit/{name}{query}", {"class": class_name, **more}, expect=(200, 201, 202)).body

    def unassign(self, unit, wait=True):
        name = unit.name if hasattr(unit, "name") else unit
        return api("DELETE", f"/v1/assignments/unit/{name}{'?wait=applied' if wait else ''}", expect=(200, 204)).body

    def status(self):
        return api("GET", "/v1/status", expect=200).body

    def writes(self):
        """Kernel and bus writes since its start: {"bandwidth", "thread", "bus", "file"}."""
        return self.status()["writes"]

    def decisions(self, unit=None, since=0):
        query = f"?since={since}&limit=1000" + (f"&group={unit.name if hasattr(unit, 'name') else unit}" if unit else "")
        return api("GET", f"/v1/decisions{query}", expect=200)["decisions"]

    def log(self):
        return journal_text(since=self.began)

    # ---- the end of a test ----
    def allow(self, text):
        """Leftovers with this text in them are the test's own doing."""
        self.allowed.append(lambda line: text in line)

    def leftovers(self):
        return [line for line in differences(self.before, snapshot()) if not any(ok(line) for ok in self.allowed)]

    def finish(self):
        """Stops it; returns what is wrong, as lines. Called by the fixture."""
        if not self.was_started:
            return []
        wrong = []
        failed = systemctl("is-failed", SERVICE, check=False) == "failed"
        systemctl("stop", SERVICE, check=False)
        result = systemctl("show", "--value", "-p", "Result", SERVICE)
        if failed or result != "success":
            wrong.append(f"cpuclassd.service ended with {result}")
        if not self.errors_allowed:
            errors = [r for r in journal(SERVICE, self.began, "PRIORITY=0", "PRIORITY=1", "PRIORITY=2", "PRIORITY=3") if r.get("_COMM") == "cpuclassd"]
            wrong += [f"cpuclassd logged an error: {r['MESSAGE']}" for r in errors]
        wrong += [f"left behind: {line}" for line in self.leftovers()]
        return wrong

    @staticmethod
    def wipe():
        """No daemon, no state, no policy but the shipped one, none of anybody's CPU drop-ins under /run."""
        systemctl("stop", SERVICE, "cpuclassd.socket", check=False)
        systemctl("reset-failed", SERVICE, check=False)
        for folder in (STATE_DIR, POLICY_DIR, OVERRIDE_DIR):
            for entry in glob.glob(f"{folder}/*"):
                if os.path.isdir(entry):
                    shutil.rmtree(entry)
                else:
                    os.unlink(entry)
        dropins = _dropins()
        for path in dropins:
            os.unlink(path)
        with_override = os.path.isdir(OVERRIDE_DIR)
        if with_override:
            os.rmdir(OVERRIDE_DIR)
        if dropins or with_override:
            systemctl("daemon-reload", check=False)
        if os.path.exists(SOCKET):
            os.unlink(SOCKET)
