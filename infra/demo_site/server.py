"""The site on a port of this machine."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from infra.demo_site.reply import Replies, Reply
from infra.demo_site.site import Site

HOST = "127.0.0.1"
DEFAULT_PORT = 8765
SERVER_NAME = "Yunting/1"


class SiteServer(ThreadingHTTPServer):
    """Serves one site; `port` 0 takes a free one."""

    daemon_threads = True

    def __init__(self, site: Replies, port: int = 0, *, verbose: bool = False) -> None:
        self.site = site
        self.verbose = verbose
        super().__init__((HOST, port), SiteHandler)

    @property
    def url(self) -> str:
        """`http://127.0.0.1:<port>`."""
        return f"http://{HOST}:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news; anything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class SiteHandler(BaseHTTPRequestHandler):
    """GET and HEAD give pages, `POST /_reset` makes the site forget what was read."""

    protocol_version = "HTTP/1.1"
    server: SiteServer

    def version_string(self) -> str:
        return SERVER_NAME

    def do_GET(self) -> None:
        self._send(self.server.site.reply(self.path))

    def do_HEAD(self) -> None:
        self._send(self.server.site.reply(self.path, counts=False), head=True)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/_reset":
            self.server.site.reset()
            self._send(Reply(b"", HTTPStatus.NO_CONTENT))
        else:
            self._send(Reply(b"only GET here\n", HTTPStatus.METHOD_NOT_ALLOWED, "text/plain"))

    def _send(self, reply: Reply, *, head: bool = False) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.media_type)
        if reply.status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(reply.body) if reply.promised is None else reply.promised))
        for name, value in reply.headers:
            self.send_header(name, value)
        self.end_headers()
        if not head:
            self.wfile.write(reply.body)
        if reply.promised is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        if self.server.verbose:
            super().log_message(format, *args)


@contextmanager
def run_site(site: Replies | None = None, port: int = 0) -> Iterator[SiteServer]:
    """The site on `port` (0: a free one) for as long as the block runs; raises OSError if the port is taken."""
    server = SiteServer(site or Site(), port)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="demo-site", daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
