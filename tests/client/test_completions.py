#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shells' completions, typed into real interactive shells."""

import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import data
from fake import FakeDaemon

CTL = os.environ["CPUCLASSCTL"]
COMPLETIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../client/completions")
PROMPT = b"ready> "

GROUPS = [data.group(unit=u, cgroup=f"/system.slice/{u}") for u in ("nginx.service", "dev-disk\\x2dby.swap", "web@1.service", "evil $(x).service", "m\u00fcller.service")]
ANSWERS = {"GET /v1/groups?all=true&limit=500": {"groups": GROUPS, "next": None}, "GET /v1/classes": data.CLASSES,
           "GET /v1/assignments": {"assignments": [{"unit": "later.service", "class": "batch"}, {"pod_uid": "12-ab", "class": "batch"}]}}


class Shell:
    def __init__(self, command, setup, socket):
        self.directory = tempfile.TemporaryDirectory()
        os.symlink(CTL, os.path.join(self.directory.name, "cpuclassctl"))
        systemctl = os.path.join(self.directory.name, "systemctl")
        with open(systemctl, "w") as f:
            f.write("#!/bin/sh\nprintf '%s enabled -\\n' nightly.service getty@.service nginx.service\n")
        os.chmod(systemctl, 0o755)
        environment = {"PATH": self.directory.name + ":/usr/bin:/bin", "HOME": self.directory.name, "TERM": "xterm", "LC_ALL": "C.UTF-8", "CPUCLASS_SOCKET": socket, "PS1": PROMPT.decode()}
        pid, self.fd = pty.fork()
        if pid == 0:
            os.execvpe(command[0], command, environment)
        self.pid = pid
        self.got = b""
        self.send(setup + b"\n")
        self.send(b"cpuclass_args() { printf '<%s>' \"$@\"; echo; }; echo set\"\"up\n")
        self.wait_for(b"setup")

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        self.directory.cleanup()

    def send(self, text):
        os.write(self.fd, text)

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                self.got += os.read(self.fd, 65536)

    def wait_for(self, part, after=0):
        end = time.monotonic() + 20
        while part not in self.got[after:]:
            if time.monotonic() > end:
                raise AssertionError(f"{part!r} did not come: {self.got[after:]!r}")
            self.read_for(0.05)

    def complete(self, line):
        """What the arguments are after Tab: the line is run with a function in the place of cpuclassctl."""
        after = len(self.got)
        # the shell reads on only when it has completed; then to the front of the line, for the other command
        self.send(b"cpuclassctl " + line.encode() + b"\t\x01cpuclass_args \x05\n")
        self.wait_for(b"<cpuclassctl>", after)
        self.wait_for(PROMPT, self.got.index(b"<cpuclassctl>", after))
        answer = self.got[self.got.index(b"<cpuclassctl>", after) + len(b"<cpuclassctl>"):]
        return answer.split(b"\r\n")[0].decode()


class Completions:
    CASES = (
        ("assi", "<assign>|<assign>"),                       # assign and assignments: the common part
        ("unas", "<unassign>"),
        ("doc", "<doctor>"),
        ("show ngi", "<show><nginx.service>"),
        ("show web", "<show><web@1.service>"),
        ("show web@", "<show><web@1.service>"),
        ("show web@1", "<show><web@1.service>"),
        ("show --json web@1.s", "<show><--json><web@1.service>"),
        ("show dev", "<show><dev-disk\\x2dby.swap>"),        # quoted for the shell, so that the program gets the name
        ("show /system.slice/ngi", "<show></system.slice/nginx.service>"),
        ("show evil", "<show><evil>"),                       # not offered
        ("assign night", "<assign><nightly.service>"),       # systemd has its file
        ("assign getty", "<assign><getty>"),                 # a template never runs
        ("assign nginx.service lat", "<assign><nginx.service><latency-critical>"),
        ("assign nginx.service batch --lat", "<assign><nginx.service><batch><--latency-nice>"),
        ("unassign lat", "<unassign><later.service>"),
        ("classes b", "<classes><batch>"),
        ("list --class b", "<list><--class><batch>"),
        ("top --sort thr", "<top><--sort><throttled>"),
        ("policy rel", "<policy><reload>"),
        ("policy check /etc/passw", "<policy><check></etc/passwd>|<policy><check></etc/passw>"),
        ("--js", "<--json>"),
        ("run --pool p --cl", "<run><--pool><p><--class>"),
    )

    def run_cases(self, command, setup):
        with FakeDaemon(ANSWERS) as d:
            shell = Shell(command, setup, d.socket)
            try:
                for line, expected in self.CASES:
                    with self.subTest(line=line):
                        self.assertIn(shell.complete(line), expected.split("|"))
            finally:
                shell.close()


class Bash(Completions, unittest.TestCase):
    def test_cases(self):
        self.run_cases(["bash", "--norc", "--noprofile", "-i"], f"bind 'set bell-style none'; . {COMPLETIONS}/cpuclassctl.bash".encode())

    def test_pod(self):
        with FakeDaemon(ANSWERS) as d:
            shell = Shell(["bash", "--norc", "--noprofile", "-i"], f". {COMPLETIONS}/cpuclassctl.bash".encode(), d.socket)
            try:
                self.assertEqual(shell.complete("unassign pod:1"), "<unassign><pod:12-ab>")
            finally:
                shell.close()

    def test_without_daemon(self):
        shell = Shell(["bash", "--norc", "--noprofile", "-i"], f". {COMPLETIONS}/cpuclassctl.bash".encode(), "/none")
        try:
            self.assertEqual(shell.complete("stat"), "<status>")
            self.assertEqual(shell.complete("show ngi"), "<show><ngi>")
            self.assertNotIn(b"no daemon", shell.got)
        finally:
            shell.close()


@unittest.skipUnless(shutil.which("zsh"), "no zsh here")
class Zsh(Completions, unittest.TestCase):
    def test_cases(self):
        setup = f"unsetopt beep list_beep; PS1='{PROMPT.decode()}'; bindkey -e; fpath=({COMPLETIONS} $fpath); autoload -Uz compinit; compinit -u -d $HOME/dump".encode()
        self.run_cases(["zsh", "-f", "-i"], setup)


class Words(unittest.TestCase):
    def test_words(self):
        with FakeDaemon(ANSWERS) as d:
            def words(*arguments):
                r = subprocess.run([CTL, "complete", *arguments], env=dict(os.environ, CPUCLASS_SOCKET=d.socket), capture_output=True, timeout=20)
                self.assertEqual((r.returncode, r.stderr), (0, b""))
                return r.stdout.decode().split()
            self.assertEqual(words("classes", ""), ["batch", "latency-critical"])
            self.assertEqual(words("groups", ""), ["nginx.service", "dev-disk\\x2dby.swap", "web@1.service"], "what could surprise a shell is not offered")
            self.assertEqual(words("assigned", "pod"), ["pod:12-ab"])
            self.assertIn("--latency-nice", words("options", "assign", "--l"))
            self.assertNotIn("complete", words("verbs", ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
