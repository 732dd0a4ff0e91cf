# SPDX-License-Identifier: LGPL-2.1-or-later
"""A daemon's socket that answers what a test says, and remembers what it was asked."""

import http.server
import json
import os
import socketserver
import tempfile
import threading


class FakeDaemon:
    """answers: {"METHOD /path?query": answer}; an answer is a JSON value, (status, JSON value), or a function of the body that gives either,
    or bytes for an event stream (sent, then the connection ends). Unknown requests get a 404 problem."""

    def __init__(self, answers):
        self.answers = dict(answers)
        self.requests = []
        self.bodies = {}
        self.headers = {}
        self._directory = tempfile.TemporaryDirectory(prefix="cpuclass-test-")
        self.socket = os.path.join(self._directory.name, "api.sock")
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def address_string(self):
                return "unix"

            def log_message(self, *arguments):
                pass

            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                key = f"{self.command} {self.path}"
                fake.requests.append(key)
                fake.bodies[key] = body
                fake.headers[key] = dict(self.headers)
                answer = fake.answers.get(key)
                if callable(answer):
                    answer = answer(body)
                if isinstance(answer, bytes):
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Connection", "close")
                    self.end_headers()
                    self.wfile.write(answer)
                    self.close_connection = True
                    return
                if answer is None:
                    answer = (404, problem("not-found", 404, "there is no such thing"))
                status, value = answer if isinstance(answer, tuple) else (200, answer)
                text = b"" if value is None else (json.dumps(value) + "\n").encode()
                self.send_response(status)
                if status != 204:
                    self.send_header("Content-Type", "application/problem+json" if status >= 400 else "application/json")
                    self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if status != 204:
                    self.wfile.write(text)

            do_GET = do_PUT = do_DELETE = do_POST = answer

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

        self._server = Server(self.socket, Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._server.shutdown()
        self._server.server_close()
        self._directory.cleanup()


def problem(name, status, detail, **more):
    return {"type": f"urn:cpuclass:problem:{name}", "title": "Title", "status": status, "detail": detail, "instance": "/", **more}
