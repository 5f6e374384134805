"""The HTTP client against a server that misbehaves in every way it can."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from lakehouse.errors import FetchError, FetchRefused
from lakehouse.fetch import policy
from lakehouse.fetch.http import HttpClient
from lakehouse.fetch.network import Deadline, GuardedBackend, GuardedTransport, Resolve, resolve_name
from lakehouse.model.fetch import FetchKind, Request, Response
from lakehouse.specs.source import SourceSpec
from tests.nasty_site import NastySite, Visit, bomb, endless, redirect

LIMITS = {"connect_timeout": 2, "read_timeout": 0.5, "total_timeout": 1.5, "max_redirects": 3}


@pytest.fixture
def site() -> Iterator[NastySite]:
    with_pages = NastySite()
    yield with_pages
    with_pages.close()


@pytest.fixture
def fetch(site: NastySite) -> Iterator[Callable[..., Response]]:
    clients = []

    def go(url: str, resolve: Resolve = resolve_name, hops: list[str] | None = None, **changes: Any) -> Response:
        task = {"name": "t", "url": url, "cron": "0 0 * * *"}
        values = {"allow_private": True, "limits": LIMITS, **changes}
        source = SourceSpec.model_validate(
            {"source": "news", "name": "n", "entry_url": "http://news.test/", "tasks": [task], **values}
        )
        before = hops.append if hops is not None else lambda _: None
        client = HttpClient(source, max_body_bytes=500_000, before_hop=before, resolve=resolve)
        clients.append(client)
        full = url if "://" in url else site.url + url
        return client.fetch(Request(full, FetchKind.DETAIL), source.limits)

    yield go
    for client in clients:
        client.close()


def reason_of(fetch: Callable[..., Response], url: str, *resolve: Resolve, **changes: Any) -> str:
    with pytest.raises(FetchError) as caught:
        fetch(url, *resolve, **changes)
    return caught.value.reason


def test_a_page_comes_with_all_that_is_kept_of_it(site: NastySite, fetch: Callable[..., Response]) -> None:
    body = "<html><p>正文</p>".encode("gb18030")
    site.pages["/a"] = lambda visit: visit.reply(body, content_type="text/html; charset=gbk", x_one="1")
    answer = fetch("/a?q=1")
    assert (answer.status, answer.body, answer.url) == (200, body, site.url + "/a?q=1")
    assert (answer.remote_addr, answer.headers["x-one"]) == ("127.0.0.1", "1")
    assert "crawl-lakehouse" in answer.request_headers["user-agent"]
    assert site.visits[0].headers["accept-encoding"] == "gzip, deflate"


def test_redirects_are_followed_and_each_hop_is_announced(site: NastySite, fetch: Callable[..., Response]) -> None:
    site.pages |= {"/1": redirect("/2"), "/2": redirect(site.url + "/3#x", 301), "/3": "<p>here"}
    hops: list[str] = []
    answer = fetch("/1", hops=hops)
    assert answer.url.partition("#")[0] == site.url + "/3"
    assert answer.redirects == (site.url + "/1", site.url + "/2")
    assert len(hops) == 3


def test_redirects_end(site: NastySite, fetch: Callable[..., Response]) -> None:
    site.pages |= {
        "/loop": redirect("/loop"),
        "/none": redirect(""),
        "/not": lambda visit: visit.reply("x", status=304),
    }
    assert reason_of(fetch, "/loop") == "too_many_redirects"
    assert len(site.visits) == 4
    assert fetch("/none").status == 302
    assert fetch("/not").status == 304


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("file:///etc/passwd", "scheme_refused"),
        ("ftp://127.0.0.1/x", "scheme_refused"),
        ("javascript:alert(1)", "scheme_refused"),
        ("http://evil.test/", "host_refused"),
        ("//evil.test/", "host_refused"),
        ("http://127.0.0.1@evil.test/", "host_refused"),
    ],
)
def test_redirects_out_of_what_is_allowed_are_refused(
    site: NastySite, fetch: Callable[..., Response], location: str, reason: str
) -> None:
    site.pages["/go"] = redirect(location)
    assert reason_of(fetch, "/go", allowed_hosts=["127.0.0.1"]) == reason


def test_a_location_that_is_not_utf8_is_followed_as_its_bytes(site: NastySite, fetch: Callable[..., Response]) -> None:
    site.pages["/go"] = redirect("/新闻?k=中".encode("gb18030"))
    site.pages["/%D0%C2%CE%C5"] = "<p>found"
    assert fetch("/go").body == b"<p>found"
    assert site.paths()[-1] == "/%D0%C2%CE%C5?k=%D6%D0"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "127.1", "0x7f.1"]
)
def test_private_addresses_are_refused_however_they_are_written(
    site: NastySite, fetch: Callable[..., Response], host: str
) -> None:
    with pytest.raises(FetchRefused) as caught:
        fetch(f"http://{host}:{site.port}/", allow_private=False)
    assert caught.value.reason in {"address_refused", "scheme_refused"}
    assert site.visits == []


def test_a_name_that_means_a_private_address_is_refused(site: NastySite, fetch: Callable[..., Response]) -> None:
    url = f"http://news.test:{site.port}/"
    assert reason_of(fetch, url, lambda *_: ["127.0.0.1"], allow_private=False) == "address_refused"
    mixed: Resolve = lambda *_: ["93.184.216.34", "10.0.0.1"]  # noqa: E731
    assert reason_of(fetch, url, mixed, allow_private=False) == "address_refused"
    assert site.visits == []


def test_a_redirect_to_a_private_address_is_refused(
    site: NastySite, fetch: Callable[..., Response], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "is_public", lambda ip: ip == ipaddress.ip_address("127.0.0.1"))
    inner = NastySite({"/secret": "<p>inside"}, host="127.0.0.2")
    site.pages["/go"] = redirect(inner.url + "/secret")
    assert reason_of(fetch, "/go", allow_private=False) == "address_refused"
    assert inner.visits == []
    inner.close()


def test_a_name_that_changes_its_meaning_after_the_check_gains_nothing(
    site: NastySite, fetch: Callable[..., Response], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "is_public", lambda ip: ip == ipaddress.ip_address("127.0.0.1"))
    inner = NastySite({"/": "<p>inside"}, host="127.0.0.2")
    site.pages["/"] = "<p>outside"
    answers = iter([["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2"]])
    url = f"http://rebind.test:{site.port}/"
    assert fetch(url, lambda *_: next(answers), allow_private=False).body == b"<p>outside"
    assert site.visits[0].headers["host"] == f"rebind.test:{site.port}"
    assert inner.visits == []
    inner.close()


def slow_headers(visit: Visit) -> None:
    visit.drip(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 4000)


def slow_body(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n")
    visit.drip(b"y" * 4000)


def silent(visit: Visit) -> None:
    time.sleep(3)


@pytest.mark.parametrize(("answer", "at_most"), [(slow_headers, 1.5), (slow_body, 1.5), (silent, 0.5)])
def test_slow_sites_are_left_when_their_time_is_over(
    site: NastySite, fetch: Callable[..., Response], answer: Callable[[Visit], None], at_most: float
) -> None:
    site.pages["/"] = answer
    started = time.monotonic()
    assert reason_of(fetch, "/") == "timeout"
    assert time.monotonic() - started < at_most + 3


def test_bodies_without_measure_stop_at_the_limit(site: NastySite, fetch: Callable[..., Response]) -> None:
    site.pages |= {
        "/endless": endless,
        "/bomb": bomb(),
        "/says": lambda visit: visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"),
        "/fits": lambda visit: visit.reply(b"x" * 500_000),
    }
    assert reason_of(fetch, "/endless") == "too_large"
    assert reason_of(fetch, "/bomb") == "too_large"
    assert reason_of(fetch, "/says") == "too_large"
    assert reason_of(fetch, "/fits", limits={**LIMITS, "max_body_bytes": 499_999}) == "too_large"
    assert len(fetch("/fits").body) == 500_000


def short(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this")


def huge_headers(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\n")
    for number in range(100_000):
        visit.send(f"x-{number}: {'y' * 200}\r\n".encode())


@pytest.mark.parametrize(
    "answer",
    [
        short,
        huge_headers,
        Visit.reset,
        lambda visit: visit.send(b"this is not HTTP at all\r\n\r\n"),
        lambda _: None,
        lambda visit: visit.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nnonsense"),
        lambda visit: visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!"),
        lambda visit: visit.send(b"HTTP/1.1 200 OK\r\nbad header\x00: 1\r\n\r\n"),
    ],
)
def test_broken_exchanges_are_named(
    site: NastySite, fetch: Callable[..., Response], answer: Callable[[Visit], None]
) -> None:
    site.pages["/"] = answer
    assert reason_of(fetch, "/") == "protocol_error"


def test_a_content_type_that_lies_is_kept_as_it_came(site: NastySite, fetch: Callable[..., Response]) -> None:
    site.pages["/"] = lambda visit: visit.reply("<html>", content_type="image/png; charset=\xff\xfe")
    assert fetch("/").body == b"<html>"


def test_nobody_at_home(fetch: Callable[..., Response]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert reason_of(fetch, f"http://127.0.0.1:{port}/") == "connect_failed"
    assert reason_of(fetch, "http://no-such-name.invalid/") == "connect_failed"


def test_a_site_that_speaks_no_tls(fetch: Callable[..., Response]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(10)
                connection.sendall(b"HTTP/1.1 400 no TLS here\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        assert reason_of(fetch, f"https://127.0.0.1:{server.getsockname()[1]}/") == "tls_failed"


def test_a_name_that_is_never_resolved_times_out(fetch: Callable[..., Response]) -> None:
    def resolve(host: str, port: int) -> list[str]:
        time.sleep(2)
        return []

    limits = {**LIMITS, "connect_timeout": 0.3}
    assert reason_of(fetch, "http://slow.test/", resolve, limits=limits) == "timeout"


def test_secrets_are_not_in_messages(site: NastySite, fetch: Callable[..., Response]) -> None:
    site.pages["/"] = Visit.reset
    with pytest.raises(FetchError) as caught:
        fetch("/?key=abc123", secret_params=["key"])
    assert "abc123" not in str(caught.value)
    assert "key=***" in str(caught.value)


def test_httpx_sends_through_the_guarded_backend() -> None:
    """Contract with a private name of httpx: requests go through `_pool`, and nothing else opens sockets."""
    asked: list[tuple[str, int]] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        raise OSError("nobody")

    backend = GuardedBackend(Deadline(), lambda *_: None, resolve)
    with httpx.Client(transport=GuardedTransport(backend), trust_env=False) as client:
        for url in ("http://a.test/", "https://b.test/"):
            with pytest.raises(httpx.ConnectError):
                client.get(url)
    assert asked == [("a.test", 80), ("b.test", 443)]
