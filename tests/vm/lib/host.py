# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests driven from this machine, for scenarios that a single boot cannot show: a reboot, a power loss, another kernel.

    def test_survives(tmp_path):
        disk = Disk(tmp_path / "state.img", "/var/lib/cpuclass")
        with Guest(python=FIRST, disks=[disk]) as guest:
            guest.expect("assigned", 60)
            guest.power_loss()
        assert boot(python=SECOND, disks=[disk]).code == 0

What a guest wrote through a shared folder survives it; what it wrote to a Disk survives only as far as it was synced.
"""

import dataclasses
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
PREAMBLE = "import sys\nsys.path.insert(0, '/src/tests/vm/lib')\nsys.dont_write_bytecode = True\nfrom guest import *\n\n"


@dataclasses.dataclass(frozen=True)
class Disk:
    """A virtio disk with ext4, made at its first use, mounted before systemd starts."""

    file: os.PathLike
    mount: str


class Guest:
    """One run of tests/vm/boot. command: shell text; python: a program in which everything from the guest library is at hand."""

    def __init__(self, command=None, python=None, kernel=None, disks=(), shares=(), ports=(), icount=False, timeout=300, append=""):
        self.folder = tempfile.TemporaryDirectory(prefix="cpuclass-vm.")
        self.lines, self.code, self._changed = [], None, threading.Condition()
        if python is not None:
            pathlib.Path(self.folder.name, "program.py").write_text(PREAMBLE + python, encoding="utf-8")
            command = "exec /usr/bin/python3 -u /vm/program.py"
        argv = [str(HERE / "boot"), "--kernel", kernel or os.environ.get("CPUCLASS_VM_KERNEL", "stock"), "-t", str(timeout)]
        argv += ["--run-dir", self.folder.name, "--append", append]
        for disk in disks:
            argv += ["--disk", f"{disk.file}:{disk.mount}"]
        for share in shares:
            argv += ["--share", str(share)]
        for port in ports:
            argv += ["--port", port]
        if icount:
            argv.append("--icount")
        self.process = subprocess.Popen([*argv, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=HERE)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            print("guest:", line, end="", flush=True)
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self.code = self.process.wait()
            self._changed.notify_all()

    @property
    def output(self):
        return "\n".join(self.lines)

    def expect(self, text, timeout=60):
        """Waits for a line of output with text in it and gives it back."""
        end = time.monotonic() + timeout
        with self._changed:
            while True:
                found = [line for line in self.lines if text in line]
                if found:
                    return found[0]
                left = end - time.monotonic()
                assert self.code is None, f"the guest ended with {self.code} before it said {text!r}:\n{self.output}"
                assert left > 0, f"the guest did not say {text!r} within {timeout} s:\n{self.output}"
                self._changed.wait(left)

    def power_loss(self):
        """QEMU dies in the middle of whatever the guest is doing: caches of the guest are gone."""
        pid = int(pathlib.Path(self.folder.name, "pid").read_text(encoding="ascii"))
        pathlib.Path(self.folder.name, "started").unlink(missing_ok=True)
        pathlib.Path(self.folder.name, "fatal").write_text("power loss\n", encoding="ascii")  # no second boot
        os.kill(pid, signal.SIGKILL)
        self.wait()

    def wait(self):
        """The exit code, as boot has it."""
        self._reader.join()
        return self.code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.wait()
        self.folder.cleanup()


@dataclasses.dataclass(frozen=True)
class Result:
    code: int
    output: str

    def ok(self):
        assert self.code == 0, f"exit {self.code}:\n{self.output}"
        return self


def boot(command=None, **kwargs):
    """Runs a guest to its end."""
    with Guest(command, **kwargs) as guest:
        code = guest.wait()
        return Result(code, guest.output)
