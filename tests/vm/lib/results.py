# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of scenarios, written one line each as they end, so that a guest that dies takes nothing with it.

As a pytest plugin it writes to $CPUCLASS_RESULTS and prints progress; as a module of the runner it reads the lines back and turns them
into JUnit XML. A line: {"id", "outcome": passed|failed|skipped, "seconds", "text"}; a line {"id", "begin": true} comes before it.
"""

import json
import os
import time
import xml.etree.ElementTree as ET


class Recorder:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")
        self.at = {}

    def write(self, **line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def pytest_runtest_logstart(self, nodeid, location):
        self.at[nodeid] = {"start": time.monotonic(), "outcome": "passed", "text": ""}
        self.write(id=nodeid, begin=True)
        print(f"RUN   {nodeid}", flush=True)

    def pytest_runtest_logreport(self, report):
        entry = self.at[report.nodeid]
        if report.failed:
            entry["outcome"] = "failed"
            entry["text"] += f"[{report.when}] {report.longreprtext}\n"
            for title, content in report.sections:
                entry["text"] += f"---- {title}\n{content}\n"
        elif report.skipped and entry["outcome"] == "passed":
            entry["outcome"] = "skipped"
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            entry["text"] = reason.removeprefix("Skipped: ")

    def pytest_runtest_logfinish(self, nodeid, location):
        entry = self.at.pop(nodeid)
        seconds = round(time.monotonic() - entry["start"], 2)
        self.write(id=nodeid, outcome=entry["outcome"], seconds=seconds, text=entry["text"])
        word = {"passed": "ok", "failed": "FAIL", "skipped": "skip"}[entry["outcome"]]
        print(f"{word:5} {nodeid} ({seconds:.1f} s)", flush=True)
        if entry["outcome"] == "failed":
            print("\n".join("      " + line for line in entry["text"].splitlines()), flush=True)
        elif entry["outcome"] == "skipped":
            print("      " + entry["text"], flush=True)


def pytest_configure(config):
    path = os.environ.get("CPUCLASS_RESULTS")
    if path:
        config.pluginmanager.register(Recorder(path), "cpuclass-recorder")


def read(path):
    """(results by id, id that was running when the file ended or None)."""
    results, running = {}, None
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for text in lines:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue  # torn by a guest that died
                if line.get("begin"):
                    running = line["id"]
                else:
                    results[line["id"]] = line
                    running = None
    except FileNotFoundError:
        pass
    return results, running


def counts(results):
    outcomes = [r["outcome"] for r in results]
    return {word: outcomes.count(word) for word in ("passed", "failed", "skipped")}


def _xml_text(text):
    return "".join(c if c in "\n\t" or ord(c) >= 32 else "\N{REPLACEMENT CHARACTER}" for c in text)


def write_junit(path, name, results):
    n = counts(results)
    suite = ET.Element(
        "testsuite",
        name=name,
        tests=str(len(results)),
        failures=str(n["failed"]),
        skipped=str(n["skipped"]),
        errors="0",
        time=f"{sum(r['seconds'] for r in results):.2f}",
    )
    for r in results:
        where, _, test = r["id"].rpartition("::")
        case = ET.SubElement(suite, "testcase", classname=where or name, name=test or r["id"], time=f"{r['seconds']:.2f}")
        if r["outcome"] == "failed":
            last = (r["text"].strip().splitlines() or ["failed"])[0]
            ET.SubElement(case, "failure", message=_xml_text(last)).text = _xml_text(r["text"])
        elif r["outcome"] == "skipped":
            ET.SubElement(case, "skipped", message=_xml_text(r["text"]))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
