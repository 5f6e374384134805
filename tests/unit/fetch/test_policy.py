from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from lakehouse.errors import FetchRefused
from lakehouse.fetch.policy import (
    blank_headers,
    blank_url,
    check_address,
    check_url,
    host_allowed,
    is_public,
    judge,
    retry_after,
    slot_name,
)
from lakehouse.ledger.tasks import TaskState
from lakehouse.model.fetch import Fetch, FetchKind
from lakehouse.specs.source import Limits, SourceSpec

NOW = datetime(2026, 3, 1, 4, tzinfo=UTC)
MakeSource = Callable[..., SourceSpec]
FETCH = Fetch("1" * 32, "news", date(2026, 3, 1), "t", "w", FetchKind.DETAIL, "http", "u", "u", "f" * 32, 1, NOW)

PRIVATE = (
    "127.0.0.1 127.9.9.9 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 "
    "240.0.0.1 255.255.255.255 192.0.2.1 198.18.0.1 ::1 :: fe80::1 fc00::1 fd12::1 ff02::1 fec0::1 "
    "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:127.0.0.1 2002:7f00:1:: 2002:a00:1:: 64:ff9b::7f00:1 "
    "64:ff9b::a9fe:a9fe 64:ff9b:1::1 ::127.0.0.1 2001:db8::1 2001:0:4136:e378:8000:63bf:80ff:fffe "
)


@pytest.mark.parametrize("address", PRIVATE.split())
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:4700::1", "64:ff9b::101:101", "2002:101:101::"])
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_private_addresses_only_for_sources_that_ask_for_them(make_source: MakeSource) -> None:
    with pytest.raises(FetchRefused, match="allow_private") as caught:
        check_address("10.0.0.1", "intranet.test", make_source())
    assert caught.value.reason == "address_refused"
    check_address("10.0.0.1", "intranet.test", make_source(allow_private=True))
    check_address("fe80::1%eth0", "intranet.test", make_source(allow_private=True))
    with pytest.raises(FetchRefused):
        check_address("fe80::1%eth0", "intranet.test", make_source())
    with pytest.raises(FetchRefused):
        check_address("224.0.0.1", "all.test", make_source(allow_private=True))


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://a/", "gopher://a/", "javascript:1", "//a/", "a", "http://"]
)
def test_only_http_and_https(make_source: MakeSource, url: str) -> None:
    with pytest.raises(FetchRefused) as caught:
        check_url(url, make_source())
    assert caught.value.reason == "scheme_refused"


def test_hosts_are_allowed_with_what_lies_below_them(make_source: MakeSource) -> None:
    allowed = ("news.test", "*.cdn.test")
    assert host_allowed("news.test", allowed)
    assert host_allowed("www.news.test", allowed)
    assert host_allowed("a.cdn.test", allowed)
    assert not host_allowed("evilnews.test", allowed)
    assert not host_allowed("news.test.evil", allowed)
    assert host_allowed("anything", ())
    with pytest.raises(FetchRefused, match=r"evil\.test") as caught:
        check_url("http://evil.test@evil.test/", make_source(allowed_hosts=["news.test"]))
    assert caught.value.reason == "host_refused"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://www.news.example.com.cn/a", "example.com.cn"),
        ("https://NEWS.example.com/", "example.com"),
        ("http://127.0.0.1:8765/a", "127.0.0.1:8765"),
        ("https://127.0.0.1/", "127.0.0.1:443"),
        ("http://localhost:9/", "localhost:9"),
        ("http://[::1]:81/", "[::1]:81"),
    ],
)
def test_what_shares_one_rate_limit(url: str, name: str) -> None:
    assert slot_name(url) == name


def test_secrets_are_blanked_in_urls_and_nothing_else_changes() -> None:
    url = "https://me:pw@a.test/p?x=1&Token=abc&sig=%41&empty&token=&y=a%20b#f"
    assert blank_url(url, ("token", "sig")) == "https://***@a.test/p?x=1&Token=***&sig=***&empty&token=***&y=a%20b#f"
    assert blank_url("https://a.test/?%74oken=abc", ("token",)) == "https://a.test/?%74oken=***"
    assert blank_url("https://a.test/p?x=1", ()) == "https://a.test/p?x=1"
    assert blank_url("https://a.test/@home?q=a@b", ()) == "https://a.test/@home?q=a@b"


def test_secrets_are_blanked_in_headers() -> None:
    headers = {
        "Set-Cookie": "sid=1",
        "Authorization": "Basic x",
        "X-Api-Key": "k",
        "Location": "/next?key=abc",
        "Link": "<https://u:p@a.test/?key=abc>; rel=next",
        "Content-Type": "text/html",
    }
    kept = blank_headers(headers, ("key",))
    assert kept["content-type"] == "text/html"
    assert kept["location"] == "/next?key=***"
    assert not any(secret in str(kept) for secret in ("sid=1", "Basic", "abc", "u:p"))


def test_what_follows_from_an_answer() -> None:
    limits = Limits(attempts=3, backoff=(2.0, 8.0))

    def verdict(fetch: Fetch, may_retry: bool = True) -> tuple[str, str | None, float]:
        found = judge(fetch, limits, may_retry=may_retry, now=NOW)
        return found.state, found.reason, found.wait_s

    broken = replace(FETCH, error="timeout")
    assert verdict(replace(FETCH, status=200)) == ("done", None, 0.0)
    assert verdict(broken) == ("pending", "timeout", 2.0)
    assert verdict(replace(broken, attempt=2)) == ("pending", "timeout", 8.0)
    assert verdict(replace(broken, attempt=3)) == ("failed", "timeout", 0.0)
    assert verdict(broken, may_retry=False) == ("failed", "timeout", 0.0)
    assert verdict(replace(FETCH, error="http_error", status=502)) == ("pending", "http_error 502", 2.0)
    assert verdict(replace(FETCH, error="http_error", status=404)) == ("failed", "http_error 404", 0.0)
    assert verdict(replace(FETCH, limited="captcha", status=200)) == ("failed", "captcha", 0.0)
    assert verdict(replace(FETCH, limited="rate_limited", status=429)) == ("pending", "rate_limited 429", 2.0)


def test_a_site_that_names_a_pause_gets_it_for_the_whole_domain() -> None:
    busy = replace(FETCH, limited="rate_limited", status=429, response_headers={"retry-after": "30"})
    found = judge(busy, Limits(), may_retry=True, now=NOW)
    assert (found.state, found.wait_s, found.hold_s) == (TaskState.PENDING, 30.0, 30.0)
    last = judge(replace(busy, attempt=3), Limits(), may_retry=True, now=NOW)
    assert (last.state, last.hold_s) == (TaskState.FAILED, 30.0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("Sun, 01 Mar 2026 04:01:00 GMT", 60.0),
        ("Sun, 01 Mar 2026 03:00:00 GMT", 0.0),
        ("999999999999", 86_400.0),
        ("-5", 0.0),
        ("soon", 0.0),
        ("", 0.0),
        ("٣", 0.0),
    ],
)
def test_retry_after_is_read_with_care(text: str, seconds: float) -> None:
    assert retry_after({"retry-after": text}, NOW) == seconds
