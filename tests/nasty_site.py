"""A local web server that misbehaves on demand: each path is a function that speaks raw HTTP to the visitor."""

from __future__ import annotations

import contextlib
import gzip
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Answer = Callable[["Visit"], None]


@dataclass
class Visit:
    """One request: its path with query, headers in lower case, and the means to answer."""

    path: str
    headers: dict[str, str]
    connection: socket.socket
    site: NastySite
    at: float = field(default_factory=time.monotonic)

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def reply(self, body: bytes | str = b"", status: int = 200, **headers: str) -> None:
        """A whole answer; header names have _ for -."""
        data = body.encode() if isinstance(body, str) else body
        names = {"content_type": "text/html; charset=utf-8", "content_length": str(len(data)), **headers}
        lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in names.items())]
        self.send("\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1") + data)

    def drip(self, data: bytes, pause: float = 0.05) -> None:
        """One byte now and then, until the visitor has had enough."""
        for byte in data:
            self.send(bytes([byte]))
            time.sleep(pause)

    def reset(self) -> None:
        """Break the connection off rudely."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class NastySite:
    """Serves until closed. `pages` maps a path to its answer (text is HTML); `visits` lists all requests in order."""

    def __init__(self, pages: dict[str, Answer | str] | None = None, host: str = "127.0.0.1") -> None:
        self.pages: dict[str, Answer | str] = {"/robots.txt": lambda visit: visit.reply(status=404), **(pages or {})}
        self.visits: list[Visit] = []
        self._server = _Server((host, 0), _Handler)
        self._server.site = self
        self.host = host
        self.port: int = self._server.server_address[1]
        self.url = f"http://{host}:{self.port}"
        threading.Thread(target=lambda: self._server.serve_forever(0.02), daemon=True).start()

    def paths(self) -> list[str]:
        """Paths asked for, robots.txt aside."""
        return [visit.path for visit in self.visits if visit.path != "/robots.txt"]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    block_on_close = False
    site: NastySite


class _Handler(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            self.request.settimeout(20)
            data = b""
            while b"\r\n\r\n" not in data:
                piece = self.request.recv(65536)
                if not piece:
                    return
                data += piece
            first, *lines = data.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
            headers = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
            visit = Visit(first.split(" ")[1], headers, self.request, self.server.site)
            site = self.server.site
            site.visits.append(visit)
            answer = site.pages.get(visit.path.partition("?")[0])
            if answer is None:
                visit.reply("gone", status=404)
            elif isinstance(answer, str):
                visit.reply(answer)
            else:
                answer(visit)


def bomb(megabytes: int = 200) -> Answer:
    """A small gzip body that claims to be a large page."""
    body = gzip.compress(b"0" * 1_000_000) * megabytes
    return lambda visit: visit.reply(body, content_encoding="gzip")


def endless(visit: Visit) -> None:
    """A body that never ends, as fast as it can be taken."""
    visit.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n")
    while True:
        visit.send(b"x" * 65536)


def redirect(location: str | bytes, status: int = 302) -> Answer:
    """A redirect whose Location is sent byte by byte as given."""
    raw = location.encode() if isinstance(location, str) else location
    head = f"HTTP/1.1 {status} Moved\r\ncontent-length: 0\r\nconnection: close\r\nlocation: ".encode()
    return lambda visit: visit.send(head + raw + b"\r\n\r\n")
