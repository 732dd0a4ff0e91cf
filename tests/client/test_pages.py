#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The man pages say what the programs take: verbs, options, policy fields, exit codes."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

CTL = os.environ["CPUCLASSCTL"]
TREE = pathlib.Path(__file__).resolve().parents[2]
MAN = TREE / "docs/man"


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def words(*arguments):
    return output(CTL, "complete", *arguments).split()


class Pages(unittest.TestCase):
    def test_verbs_and_options(self):
        page = (MAN / "cpuclassctl.1.scd").read_text()
        for verb in words("verbs", ""):
            entry = re.search(rf"(?m)^(.*, )?\*{verb}( \w+)?\*.*$", page)
            self.assertIsNotNone(entry, f"no entry for {verb}")
            text = "".join(re.findall(rf"(?m)^(?:.*, )?\*{verb}\b.*$", page))
            for option in words("options", verb, ""):
                if option not in ("--help", "--json", "--wait"):
                    self.assertIn(option, text, f"{verb} in the page")
        for option in ("--json", "--socket", "--help", "--version"):
            self.assertIn(f"*{option}*", page)

    def test_nothing_is_only_in_the_page(self):
        page = (MAN / "cpuclassctl.1.scd").read_text()
        known = set("--json --socket --help --version --restore".split())
        for verb in words("verbs", ""):
            known |= set(words("options", verb, ""))
        self.assertEqual({o for o in re.findall(r"--[a-z][a-z-]+", page) if o not in known}, set())

    def test_daemon_options(self):
        page = (MAN / "cpuclassd.8.scd").read_text()
        source = (TREE / "daemon/main.c").read_text()
        options = set(re.findall(r"\{ \"([a-z-]+)\", (?:no|required)_argument", source))
        self.assertGreater(len(options), 5)
        for option in options:
            self.assertIn(f"*--{option}", page)

    def test_policy_fields(self):
        page = (MAN / "cpuclass-policy.5.scd").read_text()
        fields = re.findall(r"(?m)^\| `([a-z_]+)` \|", (TREE / "policies/README.md").read_text())
        self.assertGreater(len(fields), 25)
        for field in fields:
            self.assertRegex(page, rf"\*{field}\*|## {field}", f"the field {field}")
        for word in re.findall(r"`\"([a-z]+)\"`", (TREE / "policies/README.md").read_text()):
            self.assertIn(f'"{word}"', page)

    def test_catalogue(self):
        """Every message id of the daemon is explained, once, with fields that the daemon sends."""
        ids = ["".join(m.split(",")) for m in re.findall(r"SD_ID128_MAKE\(([0-9a-f,]+)\)", (TREE / "daemon/log.h").read_text())]
        text = (TREE / "packaging/cpuclass.catalog").read_text()
        self.assertGreater(len(ids), 5)
        self.assertEqual(sorted(re.findall(r"(?m)^-- ([0-9a-f]{32})$", text)), sorted(ids))
        sources = "".join(p.read_text() for d in ("daemon", "api") for p in (TREE / d).glob("*.c"))
        for field in set(re.findall(r"@([A-Z_]+)@", text)):
            self.assertIn(f'"{field}"', sources)

    def test_lines(self):
        for page in MAN.glob("*.scd"):
            for line in page.read_text().splitlines():
                self.assertLessEqual(len(line), 250, page)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
