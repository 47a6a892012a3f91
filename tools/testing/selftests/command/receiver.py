# SPDX-License-Identifier: GPL-2.0
"""A receiver of OTLP on the loopback, which keeps accepted batches."""

import http.server
import socket
import threading

import otlp


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Receiver:
    """
    Accepts all requests except those with these numbers, which it answers with 503. It can go
    away, and return.
    """

    def __init__(self, port, unavailable=()):
        self.port, self.unavailable = port, unavailable
        self.bodies, self.requests, self.paths = [], 0, set()
        self.server = None
        self.begin()

    def begin(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if receiver.server is not self.server:
                    # The receiver went away while the connection was kept: close it without an
                    # answer.
                    self.close_connection = True
                    return
                receiver.requests += 1
                receiver.paths.add(self.path)
                if receiver.requests in receiver.unavailable:
                    self.send_response(503)
                else:
                    receiver.bodies.append((self.headers["content-type"], body))
                    self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        """Goes away: connections are refused."""
        server, self.server = self.server, None
        server.shutdown()
        server.server_close()

    def take(self):
        """Returns the bodies received since the last call."""
        bodies, self.bodies = self.bodies, []
        return bodies


def metrics(bodies):
    """All metrics of requests: each a type and bytes."""
    for kind, body in bodies:
        request = otlp.from_json(body) if kind == "application/json" else otlp.from_protobuf(body)
        for resource in request["resourceMetrics"]:
            for scope in resource["scopeMetrics"]:
                yield from scope["metrics"]
