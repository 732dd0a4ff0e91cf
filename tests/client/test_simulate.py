#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""simulate and record as a user runs them."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

import data
from fake import FakeDaemon

CTL = os.environ["CPUCLASSCTL"]
TREE = pathlib.Path(__file__).resolve().parents[2]


def ctl(*arguments, socket=None):
    e = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    if socket:
        e["CPUCLASS_SOCKET"] = socket
    return subprocess.run([CTL, *arguments], env=e, capture_output=True, text=True, timeout=60)


class Simulate(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="cpuclass-test-")
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def test_the_same_seed_gives_the_same(self):
        one, two, other = (ctl("simulate", "--generate", "bursts", "--duration", "30s", "--seed", s, "--json") for s in ("3", "3", "4"))
        self.assertEqual(one.returncode, 0, one.stderr)
        self.assertEqual(one.stdout, two.stdout)
        self.assertNotEqual(one.stdout, other.stdout)
        laws = {l["law"]: l for l in json.loads(one.stdout)["laws"]}
        self.assertEqual(list(laws), ["adaptive", "captain", "captain+burst", "koordlet", "static", "burst"])
        for law in laws.values():
            self.assertEqual(law["allocated_usec"], law["quota_time_usec"] + law["burst_usec"] + law["granted_by_writes_usec"])
            self.assertEqual(sum(law["causes"].values()), law["n_changes"])
        self.assertEqual(laws["static"]["changes"], [])
        self.assertRegex(laws["captain"]["changes"][0]["text"], r"quota (raised|lowered) from .* ms to .* ms")

    def test_the_numbers_of_a_class(self):
        r = ctl("simulate", "--generate", "square", "--duration", "60s", "--policy", str(TREE / "policies/policies.d"), "--class", "latency-critical", "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        for law in json.loads(r.stdout)["laws"]:
            for change in law["changes"]:
                if "quota_usec" in change:
                    self.assertTrue(160000 <= change["quota_usec"] <= 480000, change)  # floor and ceiling of the class, for this owner's quota

    def test_a_picture(self):
        for more in ([], ["--frontier", "--law", "adaptive,captain", "--seeds", "1"]):
            r = ctl("simulate", "--generate", "tiny", "--duration", "20s", "--plot", self.path("p.svg"), *more)
            self.assertEqual(r.returncode, 0, r.stderr)
            xml.dom.minidom.parse(self.path("p.svg"))
            os.unlink(self.path("p.svg"))
        r = ctl("simulate", "--generate", "tiny", "--duration", "20s", "--plot", self.path("no/such/p.svg"))
        self.assertEqual(r.returncode, 1)

    def test_an_outcome(self):
        r = ctl("simulate", "--outcome", "--generate", "startup", "--duration", "150s", "--seeds", "1", "--seed", "77", "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertLess(json.loads(r.stdout)["workloads"][0]["captain_allocation"], 0.85)

    def test_requests_for_a_replay(self):
        r = ctl("simulate", "--generate", "fan-out", "--duration", "10s", "--requests", self.path("q"), "--law", "static")
        self.assertEqual(r.returncode, 0, r.stderr)
        lines = [l.split() for l in open(self.path("q"))]
        times = [int(l[0]) for l in lines]
        self.assertEqual(times, sorted(times))
        self.assertTrue(30 < len(lines) < 150)
        self.assertEqual({l[1] for l in lines}, {"24"})

    def test_wrong_command_lines(self):
        for code, *arguments in (
            (2,),
            (2, "--generate", "tiny", "--trace", "x"),
            (2, "--frontier", "--outcome", "--generate", "tiny"),
            (2, "--generate", "tiny", "--class", "x"),
            (3, "--generate", "no-such"),
            (6, "--generate", "tiny", "--law", "captian"),
            (6, "--generate", "tiny", "--seed", "x"),
            (6, "--generate", "tiny", "--cpus", "0"),
            (6, "--generate", "tiny", "--duration", "0"),
            (6, "--trace", self.path("none")),
        ):
            r = ctl("simulate", *arguments)
            self.assertEqual(r.returncode, code, (arguments, r.stderr))
            self.assertTrue(r.stderr.startswith("cpuclassctl: simulate") or "none" in r.stderr, r.stderr)

    def test_record_and_replay(self):
        """What the daemon samples becomes a trace, and the trace can be played."""
        n = 0

        def answer(body):
            nonlocal n
            n += 1
            sample = dict(data.WEB["sample"], at=f"2026-01-02T03:04:{5 + n // 10:02}.{n % 10}00000Z")
            sample["total"] = dict(sample["total"], usage_usec=1000000 + n * 30000, nr_periods=100 + n)
            return data.group(sample=sample)

        with FakeDaemon({"GET /v1/groups/unit/web.service": answer, "GET /v1/host": {"n_cpus": 4, "facts": []}}) as d:
            r = ctl("record", "web", "--for", "1s", "--every", "20ms", "-o", self.path("t.jsonl"), socket=d.socket)
        self.assertEqual(r.returncode, 0, r.stderr)
        lines = [json.loads(l) for l in open(self.path("t.jsonl"))]
        self.assertEqual(lines[0]["group"], "web.service")
        self.assertEqual(lines[0]["n_cpus"], 4)
        self.assertGreater(len(lines), 10)
        for line in lines[1:]:
            self.assertEqual((line["window_usec"], line["usage_usec"], line["nr_periods"], line["quota_usec"]), (100000, 30000, 1, 60000))
        r = ctl("simulate", "--trace", self.path("t.jsonl"), "--law", "static", "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertAlmostEqual(json.loads(r.stdout)["laws"][0]["used_usec"], 30000 * (len(lines) - 1), delta=30000)

    def test_record_of_what_is_not_there(self):
        with FakeDaemon({"GET /v1/host": {"n_cpus": 4, "facts": []}}) as d:
            self.assertEqual(ctl("record", "web", "--for", "1s", socket=d.socket).returncode, 3)
        self.assertEqual(ctl("record", "web", "--for", "1s", socket=self.path("none")).returncode, 5)


if __name__ == "__main__":
    sys.exit(unittest.main())
