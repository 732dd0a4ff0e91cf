# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measuring in the reproducible mode (tests/vm/boot --icount), where guest time counts instructions.

An idle guest jumps to its next timer there, so a wait for the host (a page of a program that comes over 9p) would show as seconds. Outside of measurements
a process that wakes all the time bounds the jumps (guest/prepare). Inside, it is stopped, and what runs is in memory beforehand.
"""

import contextlib
import glob
import os
import signal

CLOCK_PID = "/vm/clock.pid"


def reproducible():
    return os.path.exists("/vm/icount")


def preload():
    """Reads every file that any process has mapped, so that no page of it has to come from the host later."""
    files = set()
    for maps in glob.glob("/proc/[0-9]*/maps"):
        with contextlib.suppress(OSError), open(maps, encoding="utf-8", errors="replace") as f:
            files.update(fields[5].strip() for fields in (line.split(None, 5) for line in f) if len(fields) == 6 and fields[5].startswith("/"))
    for file in files:
        with contextlib.suppress(OSError), open(file, "rb", buffering=0) as f:
            while f.read(1 << 20):
                pass


@contextlib.contextmanager
def measuring():
    """The body is a measurement: start and warm up the workloads before it. Without --icount it only preloads."""
    preload()
    pid = None
    if os.path.exists(CLOCK_PID):
        with open(CLOCK_PID, encoding="ascii") as f:
            pid = int(f.read())
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if pid is not None:
            os.kill(pid, signal.SIGCONT)
