# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cgroup tree as the kernel has it. Paths are those of /proc/PID/cgroup ("/system.slice/x.service")."""

import os
import time

CGROUP = "/sys/fs/cgroup"


def cgpath(path, file=""):
    return os.path.join(CGROUP, path.lstrip("/"), file)


def cgread(path, file):
    with open(cgpath(path, file), encoding="utf-8") as f:
        return f.read().strip()


def cgwrite(path, file, text):
    """One write; the kernel's refusal comes as OSError."""
    fd = os.open(cgpath(path, file), os.O_WRONLY)
    try:
        os.write(fd, str(text).encode())
    finally:
        os.close(fd)


def cpu_max(path):
    """(quota in microseconds or "max", period in microseconds)."""
    quota, period = cgread(path, "cpu.max").split()
    return (quota if quota == "max" else int(quota)), int(period)


def burst(path):
    return int(cgread(path, "cpu.max.burst"))


def cpu_stat(path):
    return {key: int(value) for key, value in (line.split() for line in cgread(path, "cpu.stat").splitlines())}


def pressure(path):
    """{"some": {"avg10": float, ..., "total": int}, "full": ...}."""
    result = {}
    for line in cgread(path, "cpu.pressure").splitlines():
        kind, *fields = line.split()
        pairs = (field.split("=") for field in fields)
        result[kind] = {k: int(v) if k == "total" else float(v) for k, v in pairs}
    return result


def threads_of(path):
    return [int(tid) for tid in cgread(path, "cgroup.threads").split()]


def throttled_share(path, seconds):
    """Share of the periods of the next seconds in which the group was throttled, 0.0 to 1.0."""
    before = cpu_stat(path)
    time.sleep(seconds)
    after = cpu_stat(path)
    periods = after["nr_periods"] - before["nr_periods"]
    return (after["nr_throttled"] - before["nr_throttled"]) / periods if periods else 0.0


def walk():
    """All groups, parents first."""
    for folder, _, _ in os.walk(CGROUP):
        yield "/" + os.path.relpath(folder, CGROUP).removeprefix(".")
