# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios that run on this machine and boot guests themselves."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.dont_write_bytecode = True


def pytest_configure(config):
    config.addinivalue_line("markers", "own_kernel: needs the project's own kernel (core scheduling, our patches)")
    config.addinivalue_line("markers", "icount: compares latencies, so it runs in the reproducible mode")
