# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fixtures of the scenarios that run inside the guest."""

import os
import pathlib
import re
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.dont_write_bytecode = True

from guest.daemon import SERVICE, Daemon, journal_text  # noqa: E402

SPLAT = re.compile(r"BUG:|WARNING:|Oops|general protection|KASAN|possible (recursive|circular) locking|soft lockup|hung task", re.I)
DEFAULT_LIMIT = 180


def pytest_configure(config):
    config.addinivalue_line("markers", "own_kernel: needs the project's own kernel (core scheduling, our patches)")
    config.addinivalue_line("markers", "icount: compares latencies, so it runs in the reproducible mode")
    config.addinivalue_line("markers", f"limit(seconds): may take this long (default {DEFAULT_LIMIT})")
    config.addinivalue_line("markers", "splat: the kernel log may hold warnings")


@pytest.fixture(autouse=True)
def _in_guest():
    assert os.environ.get("CPUCLASS_VM"), "scenarios change units and policies of the host they run on: use tests/vm/run"


@pytest.fixture(autouse=True)
def _limit(request):
    """A scenario that hangs fails by itself and leaves the others their time."""
    marker = request.node.get_closest_marker("limit")
    seconds = marker.args[0] if marker else DEFAULT_LIMIT

    def ring(*_):
        pytest.fail(f"no end within {seconds} s", pytrace=True)

    old = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


@pytest.fixture(autouse=True)
def _kernel_log(request):
    """No scenario may leave a warning of the kernel behind."""
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(fd, 0, os.SEEK_END)
    yield
    lines = []
    try:
        while True:
            lines.append(os.read(fd, 8192).decode("utf-8", "replace").partition(";")[2].splitlines()[0])
    except OSError:
        pass  # EAGAIN: the end; EPIPE: overwritten meanwhile
    finally:
        os.close(fd)
    bad = [line for line in lines if SPLAT.search(line)]
    if bad and not request.node.get_closest_marker("splat"):
        pytest.fail("the kernel complained: " + "\n".join(lines[max(0, lines.index(bad[0]) - 2) :][:40]), pytrace=False)


@pytest.fixture
def daemon(request):
    """A Daemon that is not started, on a clean host. At the end it is stopped and must have left nothing behind, logged no error, not died."""
    Daemon.wipe()
    d = Daemon()
    request.node.cpuclass_daemon = d
    yield d
    wrong = d.finish()
    failed_already = getattr(request.node, "cpuclass_failed", False)
    if wrong and not failed_already:
        pytest.fail("\n".join(wrong), pytrace=False)
    Daemon.wipe()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure comes with what the daemon said meanwhile."""
    report = (yield).get_result()
    d = getattr(item, "cpuclass_daemon", None)
    if report.failed:
        item.cpuclass_failed = True
        if d is not None and report.when in ("call", "teardown"):
            lines = journal_text(SERVICE, d.began).splitlines()
            text = "\n".join(lines[-80:]) or "(nothing)"
            report.sections.append((f"journal of {SERVICE} since the scenario began", text))
