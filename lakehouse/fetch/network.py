"""Connections for httpx that go only to checked addresses and end at a deadline.

The name is resolved here, the addresses are judged, and the socket is opened to the judged address itself: what the
name means a moment later no longer matters. Every read and write also ends at the deadline of the exchange, so a site
that sends one byte now and then holds nobody.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import httpcore
import httpx

from lakehouse.errors import FetchError

Resolve = Callable[[str, int], list[str]]
CheckAddress = Callable[[str, str], None]


def resolve_name(host: str, port: int) -> list[str]:
    """The addresses of a host name, as the system resolves it."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


class Deadline:
    """When the exchange at hand must be over, on the monotonic clock."""

    def __init__(self) -> None:
        self.at = float("inf")

    def cap(self, timeout: float | None, late: type[Exception]) -> float:
        """`timeout`, or what is left if that is less; raises `late` when nothing is left."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise late("the exchange took longer than its total timeout")
        return left if timeout is None else min(timeout, left)


class GuardedBackend(httpcore.NetworkBackend):
    """Resolves, checks, and connects to the checked address."""

    def __init__(self, deadline: Deadline, check_address: CheckAddress, resolve: Resolve) -> None:
        self._deadline = deadline
        self._check_address = check_address
        self._resolve = resolve
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """A stream to the first address of `host` that may be connected to and answers."""
        addresses = self._addresses(host, port, self._deadline.cap(timeout, httpcore.ConnectTimeout))
        for address in addresses:
            self._check_address(address, host)
        last: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            left = self._deadline.cap(timeout, httpcore.ConnectTimeout)
            try:
                stream = self._sockets.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
            else:
                return GuardedStream(stream, self._deadline)
        raise last

    def _addresses(self, host: str, port: int, timeout: float) -> list[str]:
        pool = ThreadPoolExecutor(1, thread_name_prefix="resolve")
        try:
            return pool.submit(self._resolve, host, port).result(timeout)
        except FutureTimeout:
            raise httpcore.ConnectTimeout(f"{host} was not resolved in {timeout:.0f} s") from None
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
        finally:
            pool.shutdown(wait=False)


class GuardedStream(httpcore.NetworkStream):
    """A stream whose every step ends at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Up to `max_bytes` bytes."""
        return self._stream.read(max_bytes, self._deadline.cap(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of `buffer`."""
        self._stream.write(buffer, self._deadline.cap(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """The same stream, encrypted; the certificate is checked against the name, not the address."""
        left = self._deadline.cap(timeout, httpcore.ConnectTimeout)
        return GuardedStream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """What the socket says of itself."""
        return self._stream.get_extra_info(info)


class GuardedTransport(httpx.HTTPTransport):
    """httpx's own transport over the guarded backend; proxies of the environment are not used."""

    def __init__(self, backend: GuardedBackend) -> None:
        certificates = httpx.create_ssl_context(trust_env=False)
        super().__init__(verify=certificates, trust_env=False, http2=True)
        # httpx has no public way to a network backend; a test holds this private name to its meaning.
        self._pool = httpcore.ConnectionPool(
            ssl_context=certificates,
            http1=True,
            http2=True,
            max_connections=8,
            max_keepalive_connections=4,
            keepalive_expiry=15.0,
            network_backend=backend,
        )


def named_error(error: httpx.HTTPError | httpx.InvalidURL, url: str) -> FetchError:
    """A failed exchange as FetchError with its reason code."""
    if isinstance(error, httpx.TimeoutException):
        return FetchError("timeout", f"no answer in time from {url}: {type(error).__name__}")
    if isinstance(error, httpx.ConnectError):
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLError):
                return FetchError("tls_failed", f"no trusted connection to {url}: {error}")
            cause = cause.__cause__ or cause.__context__
        return FetchError("connect_failed", f"cannot connect for {url}: {error}")
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
        return FetchError("scheme_refused", f"cannot ask for {url}: {error}")
    return FetchError("protocol_error", f"exchange broken off at {url}: {type(error).__name__}: {error}")
