# SPDX-License-Identifier: LGPL-2.1-or-later
"""Units with a workload in them, started and taken away by a with statement."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile

from . import cgroup
from .wait import wait_until

LOADGEN = "/usr/lib/cpuclass-tests/loadgen"
ETC = "/etc/systemd/system"
CONTROL = "/run/systemd/system.control"


def run(*command, check=True, timeout=120, **kwargs):
    """A command's standard output, stripped. Fails with both outputs unless check is False."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **kwargs)
    if check:
        assert done.returncode == 0, f"{' '.join(command)} exited with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def systemctl(*args, check=True):
    return run("systemctl", *args, check=check)


class Unit:
    """A unit by its name; made by unit(). cpu_max, burst and stat are what the kernel has now."""

    def __init__(self, name, stats_path=None, stderr_path=None):
        self.name, self.stats_path, self.stderr_path = name, stats_path, stderr_path

    def __repr__(self):
        return f"<unit {self.name}>"

    def show(self, prop):
        """One property as systemd shows it, "" when it has none."""
        return systemctl("show", "--value", "-p", prop, "--", self.name)

    @property
    def cgroup(self):
        path = self.show("ControlGroup")
        assert path, f"{self.name} has no cgroup: it does not run"
        return path

    @property
    def pid(self):
        return int(self.show("MainPID"))

    @property
    def tids(self):
        return cgroup.threads_of(self.cgroup)

    @property
    def cpu_max(self):
        return cgroup.cpu_max(self.cgroup)

    @property
    def burst(self):
        return cgroup.burst(self.cgroup)

    @property
    def stat(self):
        return cgroup.cpu_stat(self.cgroup)

    def read(self, file):
        return cgroup.cgread(self.cgroup, file)

    def throttled_share(self, seconds):
        return cgroup.throttled_share(self.cgroup, seconds)

    def set_property(self, *assignments, runtime=True):
        """As an admin would; raises when systemctl refuses."""
        systemctl("set-property", *(["--runtime"] if runtime else []), "--", self.name, *assignments)

    def write_dropin(self, file, text, reload=True):
        folder = f"{ETC}/{self.name}.d"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/{file}", "w", encoding="utf-8") as f:
            f.write(text)
        if reload:
            systemctl("daemon-reload")

    def restart(self):
        systemctl("restart", "--", self.name)

    def start(self):
        systemctl("start", "--", self.name)

    def stop(self):
        systemctl("stop", "--", self.name)

    def kill(self, sig):
        os.kill(self.pid, sig)

    # ---- for the burst workload ----
    def report(self):
        """Asks the request server for a report: {"window", "since_mark", "backlog_usec", "cpu_usec"}, see workloads/server.h."""
        before = self._stats_stamp()
        self.kill(signal.SIGUSR1)
        wait_until(lambda: self._stats_stamp() != before, 10, f"a report of {self.name}", interval=0.05)
        with open(self.stats_path, encoding="utf-8") as f:
            return json.load(f)

    def mark(self):
        """Begins a new "since_mark" measurement."""
        self.kill(signal.SIGUSR2)

    def _stats_stamp(self):
        try:
            return os.stat(self.stats_path).st_ino
        except FileNotFoundError:
            return None


def _quote(argument):
    """One word of ExecStart=, with specifiers and variables off (systemd.service(5))."""
    text = argument.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"'


def _properties(props):
    return [f"{key}={value}" for key, values in props.items() for value in (values if isinstance(values, list) else [values])]


def _forget(name):
    """After a unit's file was made or removed: a reload, but only where systemd still has the unit in memory; else it reads the file at the next start."""
    pattern = name.replace("\\", "\\\\").replace("[", "\\[").replace("*", "\\*").replace("?", "\\?")
    if run("systemctl", "list-units", "--all", "--no-legend", "--plain", "--", pattern):
        systemctl("daemon-reload")


@contextlib.contextmanager
def unit(name, *workload, transient=False, command=None, section="", start=True, **props):
    """A service that runs loadgen with these arguments (or command), ready when the body begins; stopped and removed after.

    name may lack ".service". transient: by systemd-run; else a file in /etc/systemd/system with section as more text.
    props: properties (CPUQuota="20%", Slice="a.slice"; a list repeats one). Drop-ins that an admin or the daemon made under /run stay: the
    daemon fixture looks at them after its stop.
    """
    if "." not in name:
        name += ".service"
    folder = tempfile.mkdtemp(prefix="unit.", dir="/tmp")
    os.chmod(folder, 0o777)
    stats, ready = f"{folder}/stats", f"{folder}/ready"
    if command is None:
        command = [LOADGEN, *workload, "--ready", ready]
        if workload and workload[0] == "burst":
            command += ["--stats", stats]
    else:
        ready = None
    made = Unit(name, stats)
    try:
        if transient:
            options = [f"--property={p}" for p in _properties(props)]
            run("systemd-run", "-q", f"--unit={name}", *options, "--", *command)
        else:
            lines = ["[Service]", "ExecStart=" + " ".join(map(_quote, command)), *_properties(props), section]
            with open(f"{ETC}/{name}", "w", encoding="utf-8") as f:
                f.write("[Unit]\nDescription=Workload of a scenario\n" + "\n".join(lines) + "\n")
            _forget(name)
            if start:
                systemctl("start", "--", name)
        if ready and (start or transient):
            wait_until(lambda: os.path.exists(ready), 20, f"{name} running its workload", interval=0.02)
        yield made
    finally:
        systemctl("stop", "--", name, check=False)
        systemctl("reset-failed", "--", name, check=False)
        if not transient:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{ETC}/{name}")
            shutil.rmtree(f"{ETC}/{name}.d", ignore_errors=True)
            _forget(name)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def sliceunit(name, **props):
    """A slice unit with a file of its own; units are put into it with Slice=."""
    with open(f"{ETC}/{name}", "w", encoding="utf-8") as f:
        f.write("[Slice]\n" + "\n".join(_properties(props)) + "\n")
    systemctl("daemon-reload")
    try:
        yield Unit(name)
    finally:
        systemctl("stop", "--", name, check=False)
        os.unlink(f"{ETC}/{name}")
        systemctl("daemon-reload", check=False)
