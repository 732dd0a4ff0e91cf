# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scheduling attributes of threads through the system calls themselves: what the kernel says, not what a tool makes of it."""

import ctypes
import dataclasses
import os
import struct
import threading

OTHER, FIFO, RR, BATCH, IDLE, DEADLINE = 0, 1, 2, 3, 5, 6
RESET_ON_FORK, KEEP_POLICY, KEEP_PARAMS, UTIL_MIN, UTIL_MAX = 0x01, 0x08, 0x10, 0x20, 0x40

_SETATTR, _GETATTR = 314, 315  # x86-64
_PR_SCHED_CORE, _PR_SCHED_CORE_GET = 62, 0
_libc = ctypes.CDLL(None, use_errno=True)
# struct sched_attr, SCHED_ATTR_SIZE_VER1 (include/uapi/linux/sched/types.h)
_FORMAT = "=IIQiIQQQII"


@dataclasses.dataclass(frozen=True)
class SchedAttr:
    policy: int
    flags: int
    nice: int
    priority: int
    runtime: int  # nanoseconds; the slice of SCHED_OTHER and SCHED_BATCH threads
    deadline: int
    period: int
    util_min: int
    util_max: int


def sched_attr(tid):
    """Raises ProcessLookupError for a thread that is gone."""
    buffer = ctypes.create_string_buffer(struct.calcsize(_FORMAT))
    if _libc.syscall(_GETATTR, tid, buffer, len(buffer), 0) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), str(tid))
    return SchedAttr(*struct.unpack(_FORMAT, buffer.raw)[1:])


def sched_set(tid, **changes):
    """Sets some attributes and sends all others back as they were read."""
    attr = dataclasses.replace(sched_attr(tid), **changes)
    raw = struct.pack(_FORMAT, struct.calcsize(_FORMAT), *dataclasses.astuple(attr))
    if _libc.syscall(_SETATTR, tid, raw, 0) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), str(tid))


def slice_of(tid):
    """Nanoseconds; what a thread without a custom slice reports is base_slice_nsec()."""
    return sched_attr(tid).runtime


def base_slice_nsec():
    """The host's default slice, as a fresh thread with no slice of its own reports it. 0 on kernels that report none (before 6.12)."""
    found = []

    def look():
        # A slice is inherited: the asking thread may have one.
        if sched_attr(0).runtime:
            sched_set(0, runtime=0)
        found.append(sched_attr(0).runtime)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


def core_cookie(tid):
    """The kernel's hashed id of the thread's core-scheduling cookie, 0: none. OSError EINVAL: the kernel has no core scheduling; ENODEV: no SMT."""
    cookie = ctypes.c_ulong()
    if _libc.prctl(_PR_SCHED_CORE, _PR_SCHED_CORE_GET, tid, 0, ctypes.byref(cookie)) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), str(tid))
    return cookie.value
