# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the harness promises to those who use it: exit codes, quoting, a host that the guest cannot change, disks that keep what was synced."""

import os
import pathlib
import subprocess
import urllib.request

from host import HERE, Disk, Guest, boot

DURABLE = """
import os
fd = os.open("/data/kept", os.O_WRONLY | os.O_CREAT)
os.write(fd, b"synced")
os.fsync(fd)
os.fsync(os.open("/data", os.O_RDONLY))
os.write(os.open("/data/lost", os.O_WRONLY | os.O_CREAT), b"only in the guest's cache")
print("written", flush=True)
wait_until(lambda: False, 1000)
"""


def test_exit_codes_and_quoting(tmp_path):
    """The command's own code comes back, words stay words, and a time-out is 124, not a result of the command."""
    marker = tmp_path / "from guest"
    script = 'printf "%s|" "$@" "$(id -u)" "$PWD"; touch /etc/only-in-guest; echo x >"$0"; exit 7'
    argv = [str(HERE / "boot"), "--share", str(tmp_path), "--", "sh", "-c", script, str(marker), "a b", "$HOME", "it's; *"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False, cwd=HERE / "host")
    assert done.returncode == 7
    assert done.stdout == "a b|$HOME|it's; *|0|/src/tests/vm/host|"
    assert marker.read_text(encoding="ascii") == "x\n"
    assert not os.path.exists("/etc/only-in-guest")
    done = subprocess.run([str(HERE / "boot"), "-t", "3", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 124
    assert "no end within 3 s" in done.stderr


def test_a_guest_that_dies_is_not_a_failed_command():
    done = boot("echo before; echo c >/proc/sysrq-trigger; sleep 100")
    assert done.code == 125
    assert "before" in done.output
    assert "sysrq" in done.output.lower()


def test_power_loss_keeps_what_was_synced(tmp_path):
    disk = Disk(tmp_path / "disk.img", "/data")
    with Guest(python=DURABLE, disks=[disk]) as guest:
        guest.expect("written")
        guest.power_loss()
    after = boot("cat /data/kept; echo; ls /data", disks=[disk]).ok().output
    assert "synced" in after
    assert "lost" not in after.split()


def test_the_host_reaches_the_guest(tmp_path):
    with Guest("cd /tmp && echo hello >f && exec /usr/bin/python3 -u -m http.server 8000", ports=["18471:8000"]) as guest:
        guest.expect("Serving HTTP", 60)
        with urllib.request.urlopen("http://127.0.0.1:18471/f", timeout=20) as answer:
            assert answer.read() == b"hello\n"
    leftovers = [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if _mentions(p, "hostfwd=tcp:127.0.0.1:18471")]
    assert not leftovers, "QEMU outlived the scenario"


def _mentions(path, text):
    try:
        return text.encode() in path.read_bytes()
    except OSError:
        return False
