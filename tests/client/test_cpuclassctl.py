#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""cpuclassctl as a user runs it, against a socket that answers as the API does."""

import json
import os
import pty
import subprocess
import sys
import tempfile
import unittest

import data
from fake import FakeDaemon, problem

CTL = os.environ["CPUCLASSCTL"]
WEB_GROUPS = {"groups": [data.WEB], "next": None}
LIST = "GET /v1/groups?limit=500"
ALL = "GET /v1/groups?all=true&limit=500"


def environment(**more):
    e = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CPUCLASS_SOCKET", "http_proxy", "all_proxy", "ALL_PROXY")}
    e.update({"LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "xterm", **more})
    return e


def ctl(*arguments, socket=None, env=None, input=None):
    e = environment(**(env or {}))
    if socket:
        e["CPUCLASS_SOCKET"] = socket
    return subprocess.run([CTL, *arguments], env=e, input=input, capture_output=True, timeout=60)


def text(result):
    return result.stdout.decode()


def error(result):
    return result.stderr.decode()


def on_terminal(arguments, socket, columns=200, env=None):
    """Runs with standard output on a terminal of this width; gives what the terminal got."""
    import fcntl
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([CTL, *arguments], env=environment(CPUCLASS_SOCKET=socket, **(env or {})), stdout=slave, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(slave)
    got = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        got += part
    os.close(master)
    process.wait(timeout=30)
    return got


class Reading(unittest.TestCase):
    def test_list(self):
        with FakeDaemon({LIST: WEB_GROUPS}) as d:
            r = ctl("list", socket=d.socket)
            self.assertEqual(r.returncode, 0, error(r))
            row = [line for line in text(r).splitlines() if line.startswith("web.service")][0].split()
            self.assertEqual(row[:10], ["web.service", "latency-critical", "rule", "applied", "60%", "60ms", "-15", "49.5%", "12.3%", "3.2%"])

    def test_list_joins_pages(self):
        second = data.group(unit="b.service", cgroup="/b")
        with FakeDaemon({LIST: {"groups": [data.WEB], "next": "to/ken"}, "GET /v1/groups?limit=500&after=to%2Fken": {"groups": [second], "next": None}}) as d:
            r = ctl("list", "--json", socket=d.socket)
            self.assertEqual([g["unit"] for g in json.loads(text(r))["groups"]], ["web.service", "b.service"])

    def test_list_filters(self):
        url = "GET /v1/groups?class=batch&state=failed&unit=web-%2A&drift=true&all=true&limit=500"
        with FakeDaemon({url: {"groups": [], "next": None}}) as d:
            r = ctl("list", "--class", "batch", "--state", "failed", "--unit", "web-*", "--drift", "--all", socket=d.socket)
            self.assertEqual((r.returncode, text(r)), (0, "No group has a class.\n"))
            r = ctl("list", "--state", "faild", socket=d.socket)
            self.assertEqual(r.returncode, 6)
            self.assertIn('Did you mean "failed"?', error(r))

    def test_json_is_unchanged(self):
        verbs = {("status",): "GET /v1/status", ("show", "web"): "GET /v1/groups/unit/web.service", ("explain", "web"): "GET /v1/explain?unit=web.service",
                 ("doctor",): "GET /v1/host", ("classes",): "GET /v1/classes", ("assignments",): "GET /v1/assignments", ("policy", "show"): "GET /v1/policy"}
        odd = {"new member": [1, {"unit": "\u00e4\u001b[31m"}], "big": 2 ** 62}
        for arguments, key in verbs.items():
            with self.subTest(verb=arguments), FakeDaemon({key: odd}) as d:
                r = ctl(*arguments, "--json", socket=d.socket)
                self.assertEqual(r.returncode, 0, error(r))
                self.assertEqual(r.stdout, (json.dumps(odd) + "\n").encode())
                self.assertEqual(ctl("--json", *arguments, socket=d.socket).stdout, r.stdout)

    def test_show(self):
        with FakeDaemon({"GET /v1/groups/unit/web.service": data.WEB, "GET /v1/groups/cgroup?path=%2Fa%20b": data.WEB}) as d:
            r = ctl("show", "web", socket=d.socket)
            for part in ("latency-critical", "60% (60ms per 100ms), burst 60ms", "slice 105us on 11 of 12 threads", "the kernel has no core scheduling",
                         "throttled in 1 of 10 periods (12.3%)", "pressure some 3.2% full 0.1%", "raised the quota"):
                self.assertIn(part, text(r))
            self.assertEqual(ctl("show", "/a b/", socket=d.socket).returncode, 0)

    def test_show_pid_and_pod(self):
        uid = "12345678-1234-1234-1234-123456789abc"
        pod = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid.replace('-', '_')}.slice"
        odd = data.group(cgroup="/a\ufffd", cgroup_escaped="%2Fa%FF")
        groups = {"groups": [data.group(cgroup=pod + "/cri-containerd-" + "a" * 64 + ".scope"), data.group(cgroup=pod)], "next": None}
        with FakeDaemon({"GET /v1/explain?pid=77": {"group": odd}, "GET /v1/groups/cgroup?path=%2Fa%FF": odd, ALL: groups,
                         "GET /v1/groups/cgroup?path=" + pod.replace("/", "%2F"): data.WEB}) as d:
            self.assertEqual(ctl("show", "77", socket=d.socket).returncode, 0)
            r = ctl("show", f"pod:{uid.upper()}", socket=d.socket)
            self.assertEqual(r.returncode, 0, error(r))
            self.assertEqual(ctl("show", "pod:00000000-0000-0000-0000-000000000000", socket=d.socket).returncode, 3)

    def test_explain(self):
        with FakeDaemon({"GET /v1/explain?unit=web.service": data.EXPLAIN}) as d:
            r = ctl("explain", "web", socket=d.socket)
            self.assertEqual(r.returncode, 0, error(r))
            for part in ("no assignment", "rule web of /etc/cpuclass/policies.d/50-site.json", "chosen", "original", "base", "desired", "observed",
                         "50% (50ms per 100ms), burst 0", "40% of a CPU, limited by /system.slice", "by systemd, 3 times", "from 20ms to 150ms a period",
                         "demand above limit: throttled in 12.3% of the periods, used 49.5ms a period, needs 60ms", "cron.service"):
                self.assertIn(part, text(r))

    def test_explain_trouble(self):
        g = data.group(state="failed", drift=True)
        g["bandwidth"].update(status="failed", errno="EINVAL", reason="the kernel refused cpu.max", drift=data.DRIFT)
        with FakeDaemon({"GET /v1/explain?pid=77": dict(data.EXPLAIN, group=g, asked={"pid": 77}, pid_cgroup="/system.slice/web.service/x")}) as d:
            r = ctl("explain", "77", socket=d.socket)
            for part in ("EINVAL: the kernel refused cpu.max", "2 foreign changes", "by admin-property: 30000 100000", "77 is in /system.slice/web.service/x"):
                self.assertIn(part, text(r))

    def test_status(self):
        with FakeDaemon({"GET /v1/status": data.STATUS}) as d:
            r = ctl("status", socket=d.socket)
            for part in ("cpuclassd 0.1.0", "ready", "revision 4", "later.service -> batch: unit is not loaded", "last took 300us, the longest 2.1ms"):
                self.assertIn(part, text(r))

    def test_classes(self):
        with FakeDaemon({"GET /v1/classes": data.CLASSES, "GET /v1/classes/batch": data.CLASSES["classes"][0]}) as d:
            lines = text(ctl("classes", socket=d.socket)).splitlines()
            self.assertTrue(lines[1].startswith("latency-critical"), "the highest priority comes first")
            self.assertIn("50% of quota", lines[2])
            self.assertIn("cpu.burst", text(ctl("classes", "batch", socket=d.socket)))
            r = ctl("classes", "bacth", socket=d.socket)
            self.assertEqual(r.returncode, 3)
            self.assertIn('Did you mean "batch"?', error(r))

    def test_doctor(self):
        answers = {"GET /v1/host": data.HOST, "GET /v1/status": data.STATUS, "GET /v1/classes": data.CLASSES, LIST: WEB_GROUPS,
                   "GET /v1/explain?unit=web.service": data.EXPLAIN}
        with FakeDaemon(answers) as d:
            r = ctl("doctor", socket=d.socket)
            self.assertEqual(r.returncode, 0, text(r))
            for part in ("prctl answers EINVAL", "core cookies", "a kernel with CONFIG_SCHED_CORE", "Nothing is wrong.", "cron.service"):
                self.assertIn(part, text(r))
            self.assertNotIn("boot with it", text(r), "nothing needs to help where nothing is missing")
            d.answers["GET /v1/status"] = dict(data.STATUS, policy={"revision": 1, "error": "10-a.json:3: /classes: bad"})
            r = ctl("doctor", socket=d.socket)
            self.assertEqual(r.returncode, 1)
            self.assertIn("10-a.json:3", text(r))

    def test_not_found_suggests(self):
        with FakeDaemon({ALL: WEB_GROUPS}) as d:
            for verb in ("show", "explain"):
                r = ctl(verb, "wbe", socket=d.socket)
                self.assertEqual(r.returncode, 3)
                self.assertIn('Did you mean "web.service"?', error(r))

    def test_decisions(self):
        answer = {"decisions": [data.DECISION], "oldest": 1, "next_since": 41, "gap": False}
        with FakeDaemon({"GET /v1/decisions?limit=20": answer, "GET /v1/decisions?since=5&group=web.service&limit=3": answer}) as d:
            r = ctl("decisions", socket=d.socket)
            self.assertIn("web.service raised the quota", text(r))
            r = ctl("decisions", "-v", "-n", "3", "--since", "5", "--group", "web", socket=d.socket)
            self.assertIn("needs 60ms", text(r))
            for wrong in (("-n", "0"), ("-n", "1001"), ("-n", "x"), ("--since", "-1"), ("--group", "pod:1")):
                self.assertEqual(ctl("decisions", *wrong, socket=d.socket).returncode, 6)

    def test_follow_resumes(self):
        def event(id, sequence, unit, end="\n"):
            lines = [f"id: {id}", "event: decision", "data: " + json.dumps(dict(data.DECISION, sequence=sequence, unit=unit)), "", ""]
            return end.join(lines).encode()

        kept = {"decisions": [dict(data.DECISION, sequence=40, unit="kept.service")], "oldest": 1, "next_since": 40, "gap": False}
        gap = b'event: gap\ndata: {"oldest": 1}\n\n'
        streams = [b"retry: 2000\n\n" + gap + event("a-40", 40, "kept.service") + event("a-41", 41, "first.service"),
                   b": still here\n\n" + gap + event("b-1", 1, "second.service", "\r\n")]
        asked = []
        with FakeDaemon({"GET /v1/decisions?limit=20": kept}) as d:
            def events(_):
                asked.append(d.headers["GET /v1/events"].get("Last-Event-ID"))
                return streams[len(asked) - 1] if len(asked) <= len(streams) else (400, problem("invalid", 400, "enough"))
            d.answers["GET /v1/events"] = events
            r = ctl("decisions", "--follow", socket=d.socket)
        self.assertEqual(r.returncode, 6)
        for unit in ("kept", "first", "second"):
            self.assertEqual(text(r).count(f"{unit}.service raised"), 1, text(r))
        self.assertEqual(text(r).count("were missed"), 1, "only the gap of the restart is one")
        self.assertEqual(asked, ["0", "a-41", "b-1"])

class Changing(unittest.TestCase):
    ASSIGNMENT = {"unit": "web.service", "class": "batch", "owner": "api", "force": False, "overrides": {}, "expires_at": None,
                  "created_at": "2026-01-02T03:04:05.000000Z", "revision": 1, "by": "uid=0", "pending": None}

    def test_assign_sends_all(self):
        key = "PUT /v1/assignments/unit/web.service?steal=true"
        with FakeDaemon({key: (201, self.ASSIGNMENT)}) as d:
            r = ctl("assign", "web", "batch", "--quota", "150%", "--burst", "full", "--floor", "20ms", "--ceiling", "300%base", "--period", "50ms",
                    "--latency-nice", "-5", "--for", "1h30m", "--owner", "deploy", "--force", "--steal", socket=d.socket)
            self.assertEqual(r.returncode, 0, error(r))
            self.assertEqual(d.bodies[key], {
                "class": "batch", "owner": "deploy", "force": True, "expires_in_usec": 5400000000,
                "overrides": {"latency_nice": -5, "cpu": {"quota": {"percent_of_cpu": 150}, "burst": "full", "floor": {"usec": 20000},
                                                          "ceiling": {"percent_of_base": 300}, "period_usec": 50000}}})
            self.assertEqual(text(r), "web.service: batch\n")

    def test_assign_targets(self):
        for target, url in (("/a b", "cgroup?path=%2Fa%20b"), ("pod:AB-1", "pod/ab-1"), ("x.slice", "unit/x.slice")):
            key = "PUT /v1/assignments/" + url
            with self.subTest(target=target), FakeDaemon({key: (201, self.ASSIGNMENT)}) as d:
                self.assertEqual(ctl("assign", target, "batch", socket=d.socket).returncode, 0)
                self.assertEqual(d.bodies[key], {"class": "batch"})
        with FakeDaemon({}) as d:
            self.assertEqual(ctl("assign", "4711", "batch", socket=d.socket).returncode, 6)
            self.assertEqual(d.requests, [], "a wrong input asks nothing")

    def test_assign_wait(self):
        key = "PUT /v1/assignments/unit/web.service?wait=applied&timeout_usec=5000000"
        with FakeDaemon({key: {"assignment": self.ASSIGNMENT, "group": data.WEB}}) as d:
            r = ctl("assign", "web", "batch", "--wait=5s", socket=d.socket)
            self.assertIn("bandwidth    applied   60%", text(r))
            d.answers[key] = (202, {"assignment": self.ASSIGNMENT, "group": None, "pending": "unit is not loaded"})
            r = ctl("assign", "web", "batch", "--wait=5s", socket=d.socket)
            self.assertEqual(r.returncode, 0)
            self.assertIn("unit is not loaded", text(r))
            d.answers[key] = (504, problem("not-applied-in-time", 504, "the kernel does not have it yet"))
            self.assertEqual(ctl("assign", "web", "batch", "--wait=5s", socket=d.socket).returncode, 1)
            self.assertEqual(ctl("assign", "web", "batch", "--wait=61s", socket=d.socket).returncode, 6)

    def test_dry_run(self):
        key = "PUT /v1/assignments/unit/web.service?dry_run=true"
        answer = {"dry_run": True, "matched": True, "writes": [{"cgroup": "/web", "knob": "bandwidth", "writer": "systemd", "target": "CPUQuota", "value": "60%"}],
                  "affected": ["cron.service"], "notes": ["a note"]}
        with FakeDaemon({key: answer}) as d:
            r = ctl("assign", "web", "batch", "-n", socket=d.socket)
            for part in ("CPUQuota", "60%", "cron.service", "a note"):
                self.assertIn(part, text(r))

    def test_unassign(self):
        url = "/v1/assignments/unit/web.service"
        with FakeDaemon({"GET " + url: self.ASSIGNMENT, "DELETE " + url: (204, None), "GET /v1/assignments": {"assignments": [self.ASSIGNMENT]}}) as d:
            self.assertEqual(ctl("unassign", "web", socket=d.socket).returncode, 0)
            self.assertIn("DELETE " + url, d.requests)
            r = ctl("unassign", "wbe", socket=d.socket)
            self.assertEqual(r.returncode, 3)
            self.assertIn('Did you mean "web.service"?', error(r))

    def test_pause_and_resume(self):
        with FakeDaemon({"PUT /v1/pause": {"paused": True, "paused_until": None, "groups": []}, "DELETE /v1/pause?group=web.service": (204, None)}) as d:
            r = ctl("pause", "web", "--for", "10m", socket=d.socket)
            self.assertEqual(r.returncode, 0, error(r))
            self.assertEqual(d.bodies["PUT /v1/pause"], {"group": "web.service", "duration_usec": 600000000})
            self.assertEqual(ctl("resume", "web", socket=d.socket).returncode, 0)
            self.assertEqual(ctl("pause", "--for", "soon", socket=d.socket).returncode, 6)

    def test_restore(self):
        with FakeDaemon({"GET /livez": {"status": "ok"}, "POST /v1/restore": {"restored": 3, "left": 1, "paused": True}}) as d:
            self.assertIn("3 values put back, 1 left", text(ctl("restore", socket=d.socket)))

    def test_restore_without_daemon(self):
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "cpuclassd")
            with open(program, "w") as f:
                f.write('#!/bin/sh\necho "ran $*"\nexit 7\n')
            os.chmod(program, 0o755)
            r = ctl("restore", socket=os.path.join(directory, "none"), env={"CPUCLASS_DAEMON": program})
            self.assertEqual((r.returncode, text(r)), (7, "ran --restore\n"))

    def test_run(self):
        made = {"pool": "p", "cgroup": "/x/p-1", "class": "batch", "pid": 1}
        with FakeDaemon({"POST /v1/pools/p": (201, made)}) as d:
            r = ctl("run", "--pool", "p", "--class", "batch", "--", "sh", "-c", "echo $0 $$; exit 42", "--json", socket=d.socket)
            self.assertEqual(r.returncode, 42)
            name, pid = text(r).split()
            self.assertEqual(name, "--json", "the command's options are its own")
            self.assertEqual(d.bodies["POST /v1/pools/p"], {"pid": int(pid), "class": "batch"})
            self.assertEqual(ctl("run", "--pool", "p", "/does/not/exist", socket=d.socket).returncode, 127)
            self.assertEqual(ctl("run", "--pool", "p", "/etc/passwd", socket=d.socket).returncode, 126)
            self.assertEqual(ctl("run", "true", socket=d.socket).returncode, 2)
            self.assertEqual(ctl("run", "--pool", "p", socket=d.socket).returncode, 2)
            d.answers["POST /v1/pools/p"] = (409, problem("busy", 409, "no"))
            r = ctl("run", "--pool", "p", "echo", "ran", socket=d.socket)
            self.assertEqual((r.returncode, text(r)), (4, ""), "what was refused is not run")

    def test_run_starts_the_pools(self):
        """The first use of a pool starts the unit that holds them, and waits until the daemon has seen it."""
        made = {"pool": "p", "cgroup": "/x/p-1", "class": None, "pid": 1}
        asked = []
        with tempfile.TemporaryDirectory() as directory, FakeDaemon({}) as d:
            started = os.path.join(directory, "started")
            systemctl = os.path.join(directory, "systemctl")
            with open(systemctl, "w") as f:
                f.write(f'#!/bin/sh\necho noise; echo "$@" >{started}\n')
            os.chmod(systemctl, 0o755)

            def answer(_):
                asked.append(os.path.exists(started))
                return (201, made) if len(asked) > 2 else (500, problem("internal", 500, "cpuclass-pools.service does not run"))
            d.answers["POST /v1/pools/p"] = answer
            r = ctl("run", "--pool", "p", "--", "/bin/echo", "ran", socket=d.socket, env={"PATH": directory})
            self.assertEqual((r.returncode, text(r)), (0, "ran\n"), error(r))
            self.assertEqual(asked, [False, True, True])
            with open(started) as f:
                self.assertEqual(f.read(), "start cpuclass-pools.service\n")
            # where they run already, a failure is one
            os.unlink(started)
            d.answers["GET /v1/groups/unit/cpuclass-pools.service"] = data.WEB
            d.answers["POST /v1/pools/p"] = (500, problem("internal", 500, "no"))
            r = ctl("run", "--pool", "p", "--", "/bin/echo", "ran", socket=d.socket, env={"PATH": directory})
            self.assertEqual((r.returncode, text(r), os.path.exists(started)), (1, "", False))

    def test_policy_reload(self):
        with FakeDaemon({"POST /v1/policy/reload": {"revision": 5, "error": None, "files": ["a"], "classes": ["x", "y"], "n_rules": 3, "patches": {}}}) as d:
            self.assertIn("Revision 5 is in force: 2 classes, 3 rules", text(ctl("policy", "reload", socket=d.socket)))
            d.answers["POST /v1/policy/reload"] = (422, problem("policy-refused", 422, "the old policy stays", errors=[
                {"file": "/etc/x.json", "line": 12, "pointer": "/classes/0/priority", "message": "out of range", "value": "4711", "limit": "0 to 1000"}]))
            r = ctl("policy", "reload", socket=d.socket)
            self.assertEqual(r.returncode, 6)
            self.assertIn("/etc/x.json:12: /classes/0/priority: out of range: 4711 (allowed: 0 to 1000)", error(r))
            r = ctl("policy", "reload", "--json", socket=d.socket)
            self.assertEqual(json.loads(text(r))["errors"][0]["line"], 12)


class Refusals(unittest.TestCase):
    def test_statuses(self):
        for status, name, code in ((400, "invalid", 6), (403, "forbidden", 4), (404, "not-found", 3), (409, "protected", 4), (422, "unknown-class", 6), (500, "internal", 1), (507, "storage", 1)):
            with self.subTest(status=status), FakeDaemon({"PUT /v1/assignments/unit/web.service": (status, problem(name, status, "the detail"))}) as d:
                r = ctl("assign", "web", "batch", socket=d.socket)
                self.assertEqual(r.returncode, code)
                self.assertIn("the detail", error(r))

    def test_unknown_class_suggests(self):
        with FakeDaemon({"PUT /v1/assignments/unit/web.service": (422, problem("unknown-class", 422, "no class")), "GET /v1/classes": data.CLASSES}) as d:
            self.assertIn('Did you mean "latency-critical"?', error(ctl("assign", "web", "latency-critcal", socket=d.socket)))
            self.assertIn("Classes are: batch, latency-critical", error(ctl("assign", "web", "zzz", socket=d.socket)))
            self.assertNotIn("Did you mean", error(ctl("assign", "web", "batch", socket=d.socket)))

    def test_no_daemon(self):
        with tempfile.TemporaryDirectory() as directory:
            for verb in ("status", "list", "classes", "doctor", "assignments", "decisions"):
                r = ctl(verb, socket=os.path.join(directory, "none"))
                self.assertEqual(r.returncode, 5, verb)
                self.assertIn("no daemon answers", error(r))

    def test_broken_answers(self):
        import socket
        import threading

        for answer, code in ((b"", 5), (b"garbage\r\n\r\n", 1), (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 1),
                             (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n{x}", 1),
                             (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]", 0)):
            with self.subTest(answer=answer), tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "s")
                server = socket.socket(socket.AF_UNIX)
                server.bind(path)
                server.listen(1)

                def serve():
                    connection, _ = server.accept()
                    connection.recv(65536)
                    connection.sendall(answer)
                    connection.close()
                thread = threading.Thread(target=serve)
                thread.start()
                r = ctl("status", socket=path)
                thread.join()
                server.close()
                self.assertEqual(r.returncode, code, error(r))

    def test_usage(self):
        for arguments, part in ((("statsu",), 'Did you mean "status"?'), (("assign", "a"), "too few arguments"), (("list", "x"), "too many arguments"),
                                (("assign", "--quoat", "1", "a", "b"), "Did you mean --quota?"), (("list", "--class"), "needs a value"),
                                (("list", "-x"), "unknown option -x"), (("--frob",), "--frob"), (("policy", "chek"), 'Did you mean "check"?')):
            r = ctl(*arguments)
            self.assertEqual(r.returncode, 2, arguments)
            self.assertIn(part, error(r))
        self.assertEqual(ctl().returncode, 2)
        self.assertEqual(ctl("--help").returncode, 0)
        self.assertIn("Exit codes", text(ctl("--help")))
        self.assertEqual(text(ctl("help", "assign")), text(ctl("assign", "--help")))

    def test_full_disk(self):
        with FakeDaemon({LIST: WEB_GROUPS}) as d, open("/dev/full", "wb") as full:
            r = subprocess.run([CTL, "list"], env=environment(CPUCLASS_SOCKET=d.socket), stdout=full, stderr=subprocess.PIPE, timeout=30)
            self.assertEqual(r.returncode, 1)


class Policies(unittest.TestCase):
    GOOD = {"version": 1, "classes": [{"name": "mine", "priority": 10}], "rules": [{"name": "r", "class": "mine", "match": {"unit": "x.service"}}]}

    def check(self, documents, *more, alone=True):
        with tempfile.TemporaryDirectory() as directory:
            for name, document in documents.items():
                with open(os.path.join(directory, name), "w") as f:
                    f.write(document if isinstance(document, str) else json.dumps(document, indent=1))
            return ctl("policy", "check", *(["--alone"] if alone else []), directory, *more)

    def test_good(self):
        r = self.check({"10-a.json": self.GOOD, "ignored.txt": "nonsense", ".hidden.json": "nonsense"})
        self.assertEqual((r.returncode, text(r)), (0, "Good: 1 classes, 1 rules in 1 files.\n"))

    def test_later_files_see_earlier_ones(self):
        rules = {"version": 1, "rules": [{"name": "r2", "class": "mine", "match": {"unit": "y.service"}}]}
        self.assertEqual(self.check({"10-a.json": self.GOOD, "20-b.json": rules}).returncode, 0)
        self.assertEqual(self.check({"20-b.json": rules}).returncode, 6)

    def test_bad(self):
        bad = '{"version": 1,\n "classes": [\n  {"name": "mine",\n   "priority": 4711}]}'
        r = self.check({"10-a.json": self.GOOD, "20-b.json": bad})
        self.assertEqual(r.returncode, 6)
        for part in ("20-b.json:4", "/classes/0/priority", "4711"):
            self.assertIn(part, error(r))
        r = self.check({"20-b.json": bad}, "--json")
        verdict = json.loads(text(r))
        self.assertEqual((verdict["valid"], verdict["errors"][0]["pointer"], verdict["errors"][0]["line"]), (False, "/classes/0/priority", 4))

    def test_unreadable(self):
        r = ctl("policy", "check", "--alone", "/does/not/exist.json")
        self.assertEqual(r.returncode, 6)
        self.assertEqual(error(r).count("can't be read"), 1)
        self.assertEqual(self.check({"10-a.json": " " * (1 << 20) + "{}"}).returncode, 6)


class Terminals(unittest.TestCase):
    EVIL = "evil\u001b[31m\u009b1m\u202e\n%s\\x2d\u00fc.service"

    def answers(self):
        evil = data.group(unit=self.EVIL, state_reason=self.EVIL, rule=self.EVIL)
        evil["bandwidth"]["reason"] = self.EVIL
        decision = dict(data.DECISION, text=self.EVIL, unit=self.EVIL)
        return {LIST: {"groups": [evil], "next": None}, ALL: {"groups": [evil], "next": None}, "GET /v1/groups/unit/web.service": evil,
                "GET /v1/explain?unit=web.service": dict(data.EXPLAIN, group=evil, decisions=[decision], affected_siblings=[self.EVIL]),
                "GET /v1/decisions?limit=20": {"decisions": [decision], "oldest": 1, "next_since": 1, "gap": False},
                "GET /v1/status": dict(data.STATUS, pending=[dict(data.STATUS["pending"][0], unit=self.EVIL, pending=self.EVIL)]),
                "GET /v1/assignments": {"assignments": [dict(Changing.ASSIGNMENT, unit=self.EVIL, by=self.EVIL)]},
                "PUT /v1/assignments/unit/web.service": (409, problem("protected", 409, self.EVIL, errors=[{"pointer": self.EVIL, "message": self.EVIL, "value": self.EVIL}]))}

    def assert_harmless(self, got):
        for byte in got:
            self.assertTrue(byte >= 0x20 or byte in b"\r\n", f"control byte {byte:#x} in {got!r}")
        self.assertNotIn(b"\x7f", got)
        decoded = got.decode()
        for character in "\u009b\u202e":
            self.assertNotIn(character, decoded)

    def test_names_are_harmless(self):
        verbs = [["list"], ["show", "web"], ["explain", "web"], ["decisions", "-v"], ["status"], ["assignments"], ["events"], ["assign", "web", "c"]]
        with FakeDaemon(self.answers()) as d:
            d.answers["GET /v1/decisions?since=0&limit=1000"] = d.answers["GET /v1/decisions?limit=20"]
            for verb in verbs:
                with self.subTest(verb=verb):
                    r = ctl(*verb, socket=d.socket)
                    self.assert_harmless(r.stdout)
                    self.assert_harmless(r.stderr)
                    self.assertIn("evil\\x1b[31m", text(r) + error(r))
                    self.assert_harmless(on_terminal(verb, d.socket, env={"NO_COLOR": "1"}))
            got = on_terminal(["list", "--json"], d.socket, env={"NO_COLOR": "1"})
            self.assert_harmless(got)
            self.assertEqual(json.loads(got.decode().replace("\r\n", "\n"))["groups"][0]["unit"], self.EVIL)

    def test_unit_names_are_not_encoded_twice(self):
        with FakeDaemon({LIST: {"groups": [data.group(unit="dev-disk\\x2dby.swap")], "next": None}}) as d:
            self.assertIn("dev-disk\\x2dby.swap", text(ctl("list", socket=d.socket)))

    def test_colour(self):
        with FakeDaemon({LIST: WEB_GROUPS}) as d:
            self.assertIn(b"\x1b[", on_terminal(["list"], d.socket))
            self.assertNotIn(b"\x1b[", on_terminal(["list"], d.socket, env={"NO_COLOR": "1"}))
            self.assertNotIn(b"\x1b[", ctl("list", socket=d.socket).stdout)

    def test_width(self):
        name = "a-very-long-name-" * 12 + ".service"
        with FakeDaemon({LIST: {"groups": [data.group(unit=name)], "next": None}}) as d:
            self.assertIn(name, text(ctl("list", socket=d.socket)), "a pipe gets it whole")
            lines = on_terminal(["list"], d.socket, columns=80, env={"NO_COLOR": "1"}).decode().split("\r\n")
            self.assertTrue(all(len(line) <= 80 for line in lines), lines)


class Live(unittest.TestCase):
    """top on a terminal: keys, and the terminal as it was afterwards."""

    def start(self, socket, *arguments, columns=80):
        import fcntl
        import struct
        import termios

        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen([CTL, "top", "-d", "200ms", *arguments], env=environment(CPUCLASS_SOCKET=socket, NO_COLOR="1"), stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave = slave
        self.got = b""

    def wait_for(self, part, after=0):
        import select
        import time

        end = time.monotonic() + 20
        while part not in self.got[after:]:
            self.assertLess(time.monotonic(), end, f"{part!r} did not come: {self.got[after:]!r}")
            if select.select([self.master], [], [], 0.1)[0]:
                self.got += os.read(self.master, 65536)

    def press(self, keys):
        after = len(self.got)
        os.write(self.master, keys)
        return after

    def finish(self, code=0):
        import termios

        self.wait_for(b"\x1b[?1049l")
        self.assertEqual(self.process.wait(timeout=20), code)
        self.assertEqual(termios.tcgetattr(self.slave), self.before, "the terminal is as it was")
        self.assertIn(b"\x1b[?25h", self.got, "the cursor is back")
        os.close(self.slave)
        os.close(self.master)

    def answers(self):
        rows = [data.group(unit=f"unit-{i}.service", cgroup=f"/system.slice/unit-{i}.service", last_decision=None) for i in range(30)]
        return {LIST: {"groups": rows, "next": None}, "GET /v1/status": data.STATUS}

    def test_keys(self):
        with FakeDaemon(self.answers()) as d:
            self.start(d.socket, "--sort", "name")
            self.wait_for(b"unit-0.service")
            self.wait_for(b"30 rows by name")
            self.wait_for(b"rows by pressure", self.press(b"p"))
            self.wait_for(b"every 400ms", self.press(b"+"))
            self.wait_for(b">unit-1.service", self.press(b"n\x1b[B"))
            self.wait_for(b"unit-9.service", self.press(b"\x1b[F"))
            self.wait_for(b"Filter: unit-2", self.press(b"/unit-2"))
            self.wait_for(b"11 rows", self.press(b"\r"))
            self.wait_for(b"30 rows", self.press(b"\x1b"))
            self.wait_for(b"standing still", self.press(b" "))
            self.press(b"q")
            self.finish()

    def test_signals(self):
        import signal

        with FakeDaemon(self.answers()) as d:
            for n in (signal.SIGTERM, signal.SIGINT):
                self.start(d.socket)
                self.wait_for(b"unit-0.service")
                self.process.send_signal(n)
                self.finish()

    def test_resize_and_iterations(self):
        import fcntl
        import signal
        import struct
        import termios

        with FakeDaemon(self.answers()) as d:
            self.start(d.socket, "-n", "20")
            self.wait_for(b"GROUP")
            after = len(self.got)
            fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 200, 0, 0))
            self.process.send_signal(signal.SIGWINCH)
            self.wait_for(b"LAST ACTION", after)
            self.finish()

    def test_daemon_goes_and_comes(self):
        with FakeDaemon(self.answers()) as d:
            self.start(d.socket)
            self.wait_for(b"unit-0.service")
            after = len(self.got)
            d.answers["GET /v1/status"] = (503, problem("resources", 503, "no"))
            self.wait_for(b"trying again", after)
            d.answers["GET /v1/status"] = data.STATUS
            after = len(self.got)
            self.wait_for(b"cpuclassd 0.1.0", after)
            self.press(b"q")
            self.finish()

    def test_batch(self):
        with FakeDaemon(self.answers()) as d:
            r = ctl("top", socket=d.socket)
            self.assertEqual(r.returncode, 0)
            self.assertEqual(len(text(r).splitlines()), 32, "one look in a pipe")
            r = ctl("top", "-b", "-n", "2", "-d", "100ms", "--filter", "unit-7", socket=d.socket)
            self.assertEqual(text(r).count("unit-7.service"), 2)
            self.assertNotIn("\x1b", text(r))
            r = ctl("top", "-n", "2", "-d", "100ms", "--json", socket=d.socket)
            decoder, rest, n = json.JSONDecoder(), text(r), 0
            while rest.strip():
                _, end = decoder.raw_decode(rest.lstrip())
                rest = rest.lstrip()[end:]
                n += 1
            self.assertEqual(n, 2)
            for wrong in (("-d", "1ms"), ("-n", "0"), ("--sort", "cpuu"), ("--filter", "x" * 200)):
                self.assertEqual(ctl("top", *wrong, socket=d.socket).returncode, 6)
        self.assertEqual(ctl("top", socket="/none").returncode, 5)


class Locales(unittest.TestCase):
    def test_without_utf8(self):
        with FakeDaemon({LIST: {"groups": [data.group(unit="m\u06db\U0001f600.service")], "next": None}}) as d:
            r = ctl("list", socket=d.socket, env={"LC_ALL": "C"})
            self.assertTrue(r.stdout.isascii())
            self.assertIn("m\\u06db\\U0001f600.service", text(r))
            got = on_terminal(["list", "--json"], d.socket, env={"LC_ALL": "C"})
            self.assertTrue(got.isascii())
            self.assertEqual(json.loads(got.decode())["groups"][0]["unit"], "m\u06db\U0001f600.service")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
