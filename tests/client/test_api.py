#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""cpuclassctl against the daemon's real API server (its manager has no kernel): requests and answers fit each other."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

CTL = os.environ["CPUCLASSCTL"]
STRANGE = "/a \\x1b[31m\"%s\\x2d\\xff\u00e4"   # as it is shown: the control byte and the one that is no UTF-8 are escaped


class Api(unittest.TestCase):
    MORE = 0

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="cpuclass-test-")
        self.server = subprocess.Popen([os.environ["APISERVER"], self.directory.name, str(self.MORE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(self.server.stdout.readline(), b"ready\n")

    def tearDown(self):
        self.server.stdin.close()
        self.assertEqual(self.server.wait(timeout=20), 0)
        self.server.stdout.close()
        self.directory.cleanup()

    def decide(self):
        self.server.stdin.write(b"decide\n")
        self.server.stdin.flush()

    def ctl(self, *arguments, code=0):
        e = dict(os.environ, CPUCLASS_SOCKET=os.path.join(self.directory.name, "api.sock"), LC_ALL="C.UTF-8", TZ="UTC")
        r = subprocess.run([CTL, *arguments], env=e, capture_output=True, timeout=60)
        self.assertEqual(r.returncode, code, (arguments, r.stdout, r.stderr))
        self.assertFalse(b"\x1b" in r.stdout + r.stderr)
        return (r.stdout + r.stderr).decode()

    def test_reading(self):
        self.assertIn("ready", self.ctl("status"))
        self.assertIn("nginx.service", self.ctl("list"))
        self.assertNotIn("system.slice\n", self.ctl("list"))
        self.assertIn("system.slice ", self.ctl("list", "--all"))
        self.assertIn("batch.service", self.ctl("list", "--state", "failed", "--class", "batch", "--unit", "batch*"))
        self.assertIn("No group", self.ctl("list", "--drift"))
        shown = self.ctl("show", "nginx")
        for part in ("50% (50ms per 100ms), burst 25ms", "nice -10, slice 300us on 4 of 4 threads", "no core scheduling"):
            self.assertIn(part, shown)
        self.assertIn("captain", self.ctl("classes"))
        self.assertIn("cpu.law", self.ctl("classes", "latency-critical"))
        self.assertIn("CONFIG_SCHED_CORE", self.ctl("doctor", code=1))
        self.assertIn("batch.service: the kernel refused the quota", self.ctl("doctor", code=1))
        self.assertIn("web", self.ctl("policy", "show"))
        self.assertIn("Nothing is assigned", self.ctl("assignments"))
        self.assertIn("Did you mean \"nginx.service\"", self.ctl("show", "nignx", code=3))
        self.assertIn("Did you mean \"batch\"", self.ctl("classes", "bacth", code=3))

    def test_explain(self):
        explained = self.ctl("explain", "nginx")
        for part in ("rule", "chosen", "latency-critical", "effective"):
            self.assertIn(part, explained)
        self.assertIn("EINVAL: the kernel refused the quota", self.ctl("explain", "batch"))
        self.ctl("explain", "no-such-unit", code=3)
        self.ctl("explain", "/no/such/group", code=3)
        self.ctl("explain", "2147483647", code=3)

    def test_strange_group(self):
        listed = self.ctl("list")
        self.assertIn("/a \\x1b[31m\"%s\\x2d\ufffd\u00e4", listed)
        path = b"/a \x1b[31m\"%s\\x2d\xff\xc3\xa4"
        self.assertIn("label", self.ctl("explain", os.fsdecode(path)))
        self.assertIn("label", self.ctl("show", os.fsdecode(path)))

    def test_assign(self):
        answer = self.ctl("assign", "later", "batch", "--quota", "150%", "--burst", "50%", "--floor", "20ms", "--ceiling", "200%base", "--period", "50ms",
                          "--latency-nice", "-5", "--for", "1h", "--owner", "deploy")
        self.assertRegex(answer, r"^later\.service: batch, ends in (59m [0-9]+s|1h), waits: unit is not loaded\n$")
        rows = self.ctl("assignments", "--owner", "deploy")
        for part in ("later.service", "deploy", "percent_of_cpu", "uid="):
            self.assertIn(part, rows)
        self.assertIn("Nothing", self.ctl("assignments", "--owner", "other"))
        self.ctl("assign", "later", "batch", "--owner", "somebody", code=4)
        self.ctl("assign", "later", "batch", "--owner", "somebody", "--steal")
        self.assertIn("Did you mean \"batch\"", self.ctl("assign", "later", "bathc", code=6))
        self.ctl("assign", "init.scope", "batch", code=4)
        self.ctl("assign", "init.scope", "batch", "--force")
        self.assertIn("/overrides/cpu/burst", self.ctl("assign", "later", "batch", "--burst", "150%", code=6))
        self.ctl("assign", "/some/path", "batch")
        self.ctl("assign", "pod:12345678-1234-1234-1234-123456789ABC", "batch")
        self.ctl("unassign", "pod:12345678_1234_1234_1234_123456789abc")
        self.ctl("unassign", "/some/path")
        self.assertEqual(self.ctl("unassign", "later"), "later.service: no longer assigned\n")
        self.ctl("unassign", "later", code=3)

    def test_wait_and_dry_run(self):
        self.assertIn("other.service", self.ctl("assign", "nginx", "batch", "--dry-run"))
        self.assertIn("Nothing is assigned", self.ctl("assignments"))
        self.assertIn("bandwidth    applied", self.ctl("assign", "nginx", "latency-critical", "--wait"))
        self.assertIn("other.service", self.ctl("unassign", "nginx", "-n"))
        self.ctl("unassign", "nginx", "--wait=2s")

    def test_pause(self):
        self.assertIn("nginx.service is paused", self.ctl("pause", "nginx", "--for", "10m"))
        self.assertIn("Everything is paused", self.ctl("pause"))
        self.assertIn("paused", self.ctl("status"))
        self.ctl("resume")
        self.ctl("resume", "nginx")
        self.ctl("pause", "nginxx", code=3)

    def test_restore(self):
        self.assertIn("3 values put back, 1 left", self.ctl("restore"))

    def test_policy_reload(self):
        self.assertIn("2 classes, 1 rules", self.ctl("policy", "reload"))

    def test_run(self):
        self.assertEqual(self.ctl("run", "--pool", "jobs", "--class", "batch", "--", "echo", "ran"), "ran\n")
        self.ctl("run", "--pool", "NOT/fit", "echo", code=6)

    def test_decisions(self):
        self.assertIn("Nothing has been changed", self.ctl("decisions"))
        for _ in range(3):
            self.decide()
            time.sleep(0.05)
        self.assertEqual(self.ctl("decisions").count("raised the quota"), 3)
        self.assertEqual(self.ctl("decisions", "--since", "2", "--group", "/system.slice/nginx.service").count("raised"), 1)
        self.assertIn("throttled in 25.0%", self.ctl("decisions", "-v", "-n", "1"))
        self.assertEqual(self.ctl("events").count("decision"), 3)

    def test_follow(self):
        self.decide()
        e = dict(os.environ, CPUCLASS_SOCKET=os.path.join(self.directory.name, "api.sock"), LC_ALL="C.UTF-8")
        process = subprocess.Popen([CTL, "events", "--follow", "--json"], env=e, stdout=subprocess.PIPE)
        try:
            self.assertEqual(json.loads(process.stdout.readline())["sequence"], 1)
            for sequence in (2, 3):
                self.decide()
                self.assertEqual(json.loads(process.stdout.readline())["sequence"], sequence)
        finally:
            process.terminate()
            process.wait(timeout=20)
            process.stdout.close()

    def test_top(self):
        lines = self.ctl("top").splitlines()
        self.assertEqual(len(lines), 5)
        self.assertIn("50.0", [line for line in lines if line.startswith("nginx")][0])

    def test_complete(self):
        self.assertEqual(self.ctl("complete", "classes", ""), "latency-critical\nbatch\n")
        self.assertIn("nginx.service", self.ctl("complete", "groups", "ng"))


class ManyGroups(Api):
    MORE = 1200

    def test_pages(self):
        self.assertEqual(len(json.loads(self.ctl("list", "--json"))["groups"]), 1203)
        self.assertEqual(len(self.ctl("top").splitlines()), 1205)


# what Api tests is the same with many groups
for name in [n for n in dir(Api) if n.startswith("test_")]:
    setattr(ManyGroups, name, None)

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
