#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The demonstration, inside the guest of scripts/run: three workloads as units, classes over REST, and what the kernel makes of it.

  demo.py --port HOST_PORT [--once] [--columns N]

The figures of a unit are the kernel's own (cpu.max, cpu.stat, cpu.pressure, sched_getattr), not the daemon's view of them. Ends with 0
when the request server's median latency and its throttled share fell.
"""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/vm/lib"))

from guest import api, burst, cpu_max, cpu_stat, pressure, run, slice_of, systemctl, unit, wait_until  # noqa: E402

GUEST_PORT = 8080
PROXY = "/lib/systemd/systemd-socket-proxyd"
# All on one CPU: in the reproducible mode guest CPUs take turns, and what runs on several at once would see its time stretched.
CPU = ["--cpus", "1"]
# Demand is 40 % of a CPU for three seconds, then nothing for three: the owner's limit of 25 % holds on average, and hurts in each burst.
SERVER = ["burst", "--rate", "100", "--cpu", "4000", "--on", "3000000", "--off", "3000000", "--workers", "4", "--report", "1000000", *CPU]
QUOTA = "25%"
CYCLE = 6
CLASSES = {"web.service": "latency-critical", "report.service": "batch", "cron.service": "best-effort"}
WHAT = {
    "web.service": f"request server in bursts, CPUQuota={QUOTA}",
    "report.service": "batch hog, 2 threads",
    "cron.service": "idle service",
}


class Table:
    """Prints rows; on a terminal the next table overwrites the last one."""

    def __init__(self, columns):
        """columns: width of the terminal; 0: there is none."""
        self.live, self.columns, self.height = columns > 0, columns, 0

    def show(self, lines):
        if self.live:
            # A line that wraps would be two to overwrite.
            lines = [line[: self.columns] for line in lines]
            if self.height:
                sys.stdout.write(f"\x1b[{self.height}A\x1b[J")
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        self.height = len(lines)

    def say(self, text):
        """A line that stays."""
        print(text, flush=True)
        self.height = 0


def milliseconds(usec):
    return "-" if usec is None else f"{usec / 1000:.1f}" if usec < 100_000 else f"{usec / 1000:.0f}"


class Watch:
    """What the kernel says of a unit, with deltas since the last look."""

    def __init__(self, u):
        self.unit, self.last = u, None
        self.group, self.main = u.cgroup, u.pid

    def row(self):
        stat = cpu_stat(self.group)
        old, self.last = self.last or stat, stat
        periods = stat.get("nr_periods", 0) - old.get("nr_periods", 0)
        throttled = stat.get("nr_throttled", 0) - old.get("nr_throttled", 0)
        quota, period = cpu_max(self.group)
        saved = burst(self.group)
        figures = self.latency()
        return [
            self.unit.name,
            class_of(self.unit.name),
            "max" if quota == "max" else f"{quota * 100 // period}%",
            f"{saved * 100 // period}%" if saved else "-",
            f"{slice_of(self.main) / 1e6:.2f}",
            f"{pressure(self.group)['some']['avg10']:.0f}%",
            f"{throttled * 100 // periods}%" if periods else "-",
            milliseconds(figures and figures["p50_usec"]),
            milliseconds(figures and figures["p99_usec"]),
        ]

    def latency(self):
        """Of the last second's requests; None for units that serve none."""
        if self.unit.name != "web.service":
            return None
        with contextlib.suppress(OSError, ValueError):
            with open(self.unit.stats_path, encoding="utf-8") as f:
                latency = json.load(f)["window"]["latency"]
                return latency if latency["count"] else None
        return None


def class_of(name):
    return api("GET", f"/v1/groups/unit/{name}").body.get("class") or "-"


def format_table(rows):
    head = ["unit", "class", "quota", "burst", "slice ms", "pressure", "throttled", "p50 ms", "p99 ms"]
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    return ["  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))) for r in [head, *rows]]


def last_decision(name):
    decisions = api("GET", f"/v1/decisions?group={name}&limit=1").body.get("decisions", [])
    return decisions[-1]["text"] if decisions else ""


def watch_for(seconds, table, watches, heading):
    """Shows the table for a while: each second on a terminal, at the end otherwise."""
    end = time.monotonic() + seconds
    for w in watches:
        w.row()
    while True:
        left = end - time.monotonic()
        time.sleep(max(0.0, min(1.0, left)) if table.live else max(0.0, left))
        left = end - time.monotonic()
        if table.live or left <= 0:
            lines = ["", heading if left <= 0 else f"{heading} ({left:.0f} s)", *format_table([w.row() for w in watches])]
            decision = last_decision("web.service")
            if decision:
                lines.append(f"last decision for web.service: {decision}")
            table.show(lines)
        if left <= 0:
            table.height = 0
            return


def measure(seconds, table, watches, web, heading):
    """Latency and throttling of the request server over whole cycles of its demand."""
    web.mark()
    before = web.stat
    watch_for(seconds, table, watches, heading)
    after = web.stat
    latency = web.report()["since_mark"]["latency"]
    periods = after["nr_periods"] - before["nr_periods"]
    share = (after["nr_throttled"] - before["nr_throttled"]) / periods if periods else 0.0
    return {"p50": latency["p50_usec"], "p99": latency["p99_usec"], "throttled": share, "requests": latency["count"], "quota": cpu_max(web.cgroup)[0]}


def expose_api():
    """The API of the guest on a TCP port, for the host's curl: a socket of systemd's own proxy in front of the daemon's."""
    run("systemd-run", "-q", "--unit=demo-api", f"--socket-property=ListenStream={GUEST_PORT}", PROXY, "/run/cpuclass/api.sock")


def verdict(before, after):
    rows = [["", "before", "after"]]
    rows.append(["median latency, ms", milliseconds(before["p50"]), milliseconds(after["p50"])])
    rows.append(["p99 latency, ms", milliseconds(before["p99"]), milliseconds(after["p99"])])
    rows.append(["throttled periods", f"{before['throttled']:.0%}", f"{after['throttled']:.0%}"])
    rows.append(["requests measured", str(before["requests"]), str(after["requests"])])
    width = max(len(r[0]) for r in rows)
    text = ["", "web.service before and after it was given a class:"]
    text += [f"  {name.ljust(width)}  {a.rjust(8)}  {b.rjust(8)}" for name, a, b in rows]
    good = after["p50"] < before["p50"] and after["throttled"] < before["throttled"]
    text.append("  -> relief: median and throttled share fell" if good else "  -> NO relief: median or throttled share did not fall")
    return good, text


def demonstrate(args, table):
    systemctl("start", "cpuclassd.socket", "cpuclassd.service")
    wait_until(lambda: api("GET", "/readyz").status == 200, 30, "cpuclassd ready")
    expose_api()
    url = f"http://127.0.0.1:{args.port}"
    with contextlib.ExitStack() as stack:
        web = stack.enter_context(unit("web", *SERVER, CPUQuota=QUOTA))
        hog = stack.enter_context(unit("report", "hog", "2", *CPU))
        idle = stack.enter_context(unit("cron", "idle"))
        watches = [Watch(u) for u in (web, hog, idle)]
        table.say("Workloads, each a unit under systemd:")
        for name, text in WHAT.items():
            table.say(f"  {name:15} {text}")
        table.say(f"The guest's API is at {url} until Ctrl-C:\n  curl {url}/v1/groups\n  curl {url}/v1/explain?unit=web.service")

        before = measure(2 * CYCLE, table, watches, web, "Before: no classes")
        table.say("")
        for name, cls in CLASSES.items():
            answer = api("PUT", f"/v1/assignments/unit/{name}?wait=applied", {"class": cls})
            table.say(f"PUT /v1/assignments/unit/{name} {json.dumps({'class': cls})} -> {answer.status}")
            answer.expect(200, 201)
        watch_for(CYCLE, table, watches, "Settling")
        after = measure(2 * CYCLE, table, watches, web, "After: with classes")

        good, text = verdict(before, after)
        table.say("\n".join(text))
        if args.once:
            return 0 if good else 1
        table.say(f"\nStill running. Try:\n  curl -X PUT {url}/v1/assignments/unit/web.service -H 'Content-Type: application/json' -d '{{\"class\":\"interactive\"}}'")
        while True:
            watch_for(CYCLE if table.live else 30, table, watches, "Now")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--columns", type=int, default=0, help="width of the terminal that shows a live table")
    args = parser.parse_args()
    try:
        return demonstrate(args, Table(args.columns))
    except AssertionError as error:
        print(f"demo: {error}", flush=True)
        print(subprocess.run(["journalctl", "-q", "--no-pager", "-u", "cpuclassd", "-n", "40"], capture_output=True, text=True, check=False).stdout, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
