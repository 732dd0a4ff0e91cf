# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernel-facing modules by themselves on the guest's kernel: what a fake tree on the build host can't refuse, the real one does."""

import pathlib
import subprocess

import pytest

TESTS = pathlib.Path("/usr/lib/cpuclass-tests")


def run_module_test(name, codes=(0,), timeout=170):
    done = subprocess.run([TESTS / f"test-{name}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)
    print(done.stdout)
    assert done.returncode in codes, f"test-{name} ended with {done.returncode}"
    return done.stdout


def test_cgroup_modules():
    """Bandwidth in every order of quota, period and burst, the walk while groups come and go, threaded groups, labels, pools."""
    run_module_test("kernel")


def test_slice_module():
    """Slices on threads of every policy, reset-on-fork and nice kept, under a storm of renices."""
    assert "SKIPPED ] test_real_other\n" not in run_module_test("slice")


@pytest.mark.own_kernel
def test_cookie_module():
    """Cookies by thread and by process, adopted, cleared, held by many."""
    run_module_test("cookie")


def test_cookie_module_without_support():
    """A kernel without core scheduling says so in every call, and no thread is left behind (77: that passed, and there is no more to test)."""
    run_module_test("cookie", codes=(0, 77))


def test_units_module():
    """systemd's units: the table through reloads, re-exec and a bus that dies; the quota written and undone; the owner's word told from ours; why we are stopped."""
    run_module_test("units-live", timeout=560)
