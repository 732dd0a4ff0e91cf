# SPDX-License-Identifier: LGPL-2.1-or-later
"""The REST API over its unix socket."""

import http.client
import json
import socket
import subprocess

SOCKET = "/run/cpuclass/api.sock"


class Response:
    """status, headers (lower-case keys), text, and body: the parsed JSON where it is JSON, else the text."""

    def __init__(self, asked, status, headers, text):
        self.asked, self.status, self.text = asked, status, text
        self.headers = {k.lower(): v for k, v in headers.items()}
        self.body = text
        if "json" in self.headers.get("content-type", "") and text:
            self.body = json.loads(text)

    def __repr__(self):
        return f"<{self.asked}: {self.status} {self.text[:1000]}>"

    def __getitem__(self, key):
        return self.body[key]

    def expect(self, *statuses):
        assert self.status in statuses, f"{self.asked} answered {self.status}, expected {' or '.join(map(str, statuses))}: {self.text[:2000]}"
        return self


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def _encode(body, headers):
    headers = dict(headers or {})
    if body is None:
        return None, headers
    headers.setdefault("Content-Type", "application/json")
    if isinstance(body, bytes):
        return body, headers
    return (body if isinstance(body, str) else json.dumps(body)).encode(), headers


def api(method, path, body=None, headers=None, expect=None, timeout=30, path_to_socket=SOCKET):
    """One request as root. body: an object (sent as JSON), text or bytes. expect: a status or several that are asserted."""
    data, headers = _encode(body, headers)
    connection = _Connection(path_to_socket, timeout)
    try:
        connection.request(method, path, body=data, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        response = Response(f"{method} {path}", answer.status, dict(answer.getheaders()), text)
    finally:
        connection.close()
    if expect is not None:
        response.expect(*(expect if isinstance(expect, (tuple, list)) else (expect,)))
    return response


def api_as(user, method, path, body=None, headers=None):
    """The same as another user of the host, with that user's groups. None when the user cannot even open the socket."""
    data, headers = _encode(body, headers)
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "curl", "-sS", "-i", "--unix-socket", SOCKET]
    command += ["-X", method, f"http://localhost{path}"]
    for key, value in headers.items():
        command += ["-H", f"{key}: {value}"]
    if data is not None:
        command += ["--data-binary", "@-"]
    done = subprocess.run(command, input=data or b"", capture_output=True, timeout=60, check=False)
    if done.returncode == 7:
        return None
    assert done.returncode == 0, done.stderr.decode()
    head, _, text = done.stdout.decode("utf-8", "replace").partition("\r\n\r\n")
    lines = head.split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    return Response(f"{user}: {method} {path}", int(lines[0].split()[1]), fields, text)
