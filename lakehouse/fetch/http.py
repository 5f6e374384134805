"""Exchanges with httpx: redirects followed by hand so that each hop is checked, bodies bounded while they arrive."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urljoin

import httpx

from lakehouse.errors import FetchError, FetchRefused
from lakehouse.fetch.client import USER_AGENT
from lakehouse.fetch.decoding import ACCEPTED, decode_content
from lakehouse.fetch.network import Deadline, GuardedBackend, GuardedTransport, Resolve, named_error, resolve_name
from lakehouse.fetch.policy import blank_url, check_address, check_url
from lakehouse.model.fetch import Request, Response
from lakehouse.specs.source import Limits, SourceSpec

REDIRECTS = frozenset({301, 302, 303, 307, 308})
CHUNK = 65_536
URL_BYTES = "!#$%&'()*+,/:;=?@[]~"
HEADERS = {
    "user-agent": USER_AGENT,
    "accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "accept-language": "zh-CN,zh;q=0.9,en;q=0.8",
    "accept-encoding": ACCEPTED,
}


@dataclass(slots=True)
class Spent:
    """Time on the wire so far; waiting for a rate-limit slot is not part of it."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One hop: httpx's response, its decoded body, and the address it came from."""

    response: httpx.Response
    body: bytes
    peer: str | None


class HttpClient:
    """One source's exchanges. `before_hop(url)` is called before each request and may wait or refuse."""

    name = "http"

    def __init__(
        self,
        source: SourceSpec,
        *,
        max_body_bytes: int,
        before_hop: Callable[[str], None],
        resolve: Resolve = resolve_name,
    ) -> None:
        self._source = source
        self._max_body_bytes = max_body_bytes
        self._before_hop = before_hop
        self._deadline = Deadline()
        backend = GuardedBackend(self._deadline, lambda address, host: check_address(address, host, source), resolve)
        self._client = httpx.Client(
            transport=GuardedTransport(backend), headers=HEADERS, trust_env=False, follow_redirects=False
        )

    def fetch(self, request: Request, limits: Limits) -> Response:
        """The answer to `request` after redirects; see FetchClient."""
        url = request.url
        redirects: list[str] = []
        spent = Spent()
        while True:
            check_url(url, self._source)
            self._before_hop(url)
            answer = self._exchange(url, request, limits, spent)
            target = _redirect_target(answer.response, url)
            if target is None:
                return _as_response(answer, url, redirects, spent)
            redirects.append(url)
            if len(redirects) > limits.max_redirects:
                raise FetchRefused(
                    "too_many_redirects",
                    f"refused to follow more than {limits.max_redirects} redirects from {self._shown(request.url)}",
                )
            url = target

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _exchange(self, url: str, request: Request, limits: Limits, spent: Spent) -> Answer:
        timeout = httpx.Timeout(limits.read_timeout, connect=limits.connect_timeout)
        started = time.monotonic()
        self._deadline.at = started + limits.total_timeout - spent.seconds
        try:
            with self._client.stream("GET", url, headers=dict(request.headers), timeout=timeout) as response:
                peer = _peer(response)
                return Answer(response, self._read_body(response, limits), peer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise named_error(error, self._shown(url)) from error
        except (ValueError, RuntimeError, KeyError) as error:
            raise FetchError("protocol_error", f"exchange broken off at {self._shown(url)}: {error!r}") from error
        finally:
            spent.seconds += time.monotonic() - started

    def _read_body(self, response: httpx.Response, limits: Limits) -> bytes:
        limit = min(limits.max_body_bytes or self._max_body_bytes, self._max_body_bytes)
        declared = response.headers.get("content-length", "")
        if declared.isdigit() and int(declared[:18]) > limit:
            raise FetchRefused("too_large", f"refused a body of {declared[:18]} bytes; the limit is {limit}")
        pieces, size = [], 0
        for piece in response.iter_raw(CHUNK):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise FetchRefused("too_large", f"refused a body over {limit} bytes")
        return decode_content(b"".join(pieces), response.headers.get("content-encoding", ""), limit)

    def _shown(self, url: str) -> str:
        return blank_url(url, self._source.secret_params)


def _redirect_target(response: httpx.Response, url: str) -> str | None:
    """Where a redirect leads, from the raw bytes of its Location: those that are not ASCII are percent-encoded."""
    if response.status_code not in REDIRECTS:
        return None
    raw = next((value for name, value in response.headers.raw if name.lower() == b"location"), None)
    if not raw or not raw.strip():
        return None
    return urljoin(url, quote(raw.strip(), safe=URL_BYTES))


def _peer(response: httpx.Response) -> str | None:
    stream = response.extensions.get("network_stream")
    address = stream.get_extra_info("server_addr") if stream is not None else None
    return str(address[0]) if address else None


def _as_response(answer: Answer, url: str, redirects: list[str], spent: Spent) -> Response:
    return Response(
        url=url,
        status=answer.response.status_code,
        headers=dict(answer.response.headers.items()),
        body=answer.body,
        redirects=tuple(redirects),
        remote_addr=answer.peer,
        elapsed_ms=round(spent.seconds * 1000),
        request_headers=dict(answer.response.request.headers.items()),
    )
