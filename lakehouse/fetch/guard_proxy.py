"""The only way out for a browser: a proxy on the loopback that connects to checked addresses and nothing else.

Intercepting requests inside the browser misses redirects and lets a name mean another address a moment later. Here the
name is resolved once, judged, and the socket goes to the judged address; TLS stays between browser and site.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import socketserver
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from lakehouse.errors import FetchError, FetchRefused
from lakehouse.fetch.network import Resolve, resolve_name

MAX_HEAD = 65_536
CHUNK = 65_536
IDLE_S = 60.0
HOP_HEADERS = (b"proxy-connection:", b"proxy-authorization:", b"connection:")


class GuardProxy:
    """Serves until closed. `refused` holds why a host was refused; `addresses` where a host really was."""

    def __init__(
        self,
        check_address: Callable[[str, str], None],
        *,
        connect_timeout: float,
        max_download: int,
        resolve: Resolve = resolve_name,
    ) -> None:
        self._check_address = check_address
        self._connect_timeout = connect_timeout
        self._resolve = resolve
        self.max_download = max_download
        self.refused: dict[str, FetchRefused] = {}
        self.addresses: dict[str, str] = {}
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.proxy = self
        threading.Thread(target=self._server.serve_forever, name="guard-proxy", daemon=True).start()

    @property
    def address(self) -> str:
        """`http://127.0.0.1:port`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop serving; connections that are open end by themselves."""
        self._server.shutdown()
        self._server.server_close()

    def connect(self, host: str, port: int) -> socket.socket:
        """A socket to a checked address of `host`; raises FetchRefused or OSError."""
        last: OSError = OSError(f"{host} has no address")
        for address in self._resolve(host, port):
            try:
                self._check_address(address, host)
            except FetchRefused as error:
                self.refused[host] = error
                raise
            try:
                opened = socket.create_connection((address, port), self._connect_timeout)
            except OSError as error:
                last = error
            else:
                self.addresses[host] = address
                return opened
        raise last


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    proxy: GuardProxy

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks off is the browser's business."""


class _Connection(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        """Answer one CONNECT or one plain request."""
        self.request.settimeout(IDLE_S)
        head, rest = _read_head(self.request)
        if not head:
            return
        try:
            host, port, first = _target(head)
            remote = self.server.proxy.connect(host, port)
        except FetchError:
            self.request.sendall(b"HTTP/1.1 403 Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        except (OSError, ValueError, UnicodeError):
            self.request.sendall(b"HTTP/1.1 502 Unreachable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        with remote:
            if first is None:
                self.request.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            remote.sendall((first or b"") + rest)
            _relay(self.request, remote, self.server.proxy.max_download)


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(CHUNK)
        data += piece
        if not piece or len(data) > MAX_HEAD:
            return b"", b""
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _target(head: bytes) -> tuple[str, int, bytes | None]:
    """Host, port, and the head to send on (None for CONNECT)."""
    line, *headers = head.split(b"\r\n")
    method, target, _ = line.split(b" ", 2)
    if method == b"CONNECT":
        parts = urlsplit(f"//{target.decode('ascii')}")
        return parts.hostname or "", parts.port or 443, None
    parts = urlsplit(target.decode("ascii"))
    if parts.scheme != "http":
        raise ValueError("only http and https leave this way")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [header for header in headers if not header.lower().startswith(HOP_HEADERS)]
    lines = [method + b" " + path.encode() + b" HTTP/1.1", *kept, b"Connection: close", b"", b""]
    return parts.hostname or "", parts.port or 80, b"\r\n".join(lines)


def _relay(client: socket.socket, remote: socket.socket, max_download: int) -> None:
    """Pass bytes both ways until one side ends, nothing moves for IDLE_S, or too much came down."""
    downloaded = 0
    with selectors.DefaultSelector() as ready, contextlib.suppress(OSError):
        ready.register(client, selectors.EVENT_READ, remote)
        ready.register(remote, selectors.EVENT_READ, client)
        while downloaded <= max_download and (events := ready.select(IDLE_S)):
            for key, _ in events:
                source: socket.socket = key.fileobj  # type: ignore[assignment]
                piece = source.recv(CHUNK)
                if not piece:
                    return
                key.data.sendall(piece)
                downloaded += len(piece) if source is remote else 0
