from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from lakehouse.errors import FetchError
from lakehouse.fetch.exchange import Attempt, Observed, observe_failure, observe_response
from lakehouse.ledger.tasks import HeldTask, NewTask
from lakehouse.model.fetch import FetchKind, Response
from lakehouse.model.urls import url_fp
from lakehouse.specs.source import SourceSpec

NOW = datetime(2026, 3, 1, 4, tzinfo=UTC)
MakeSource = Callable[..., SourceSpec]
URL = "http://news.test/a?key=abc"


def observe(source: SourceSpec, **answer: Any) -> Observed:
    ask = NewTask("news", date(2026, 3, 1), "t", "r", FetchKind.DETAIL, URL, url_fp("http://news.test/a?key=***"))
    values = {"url": URL, "status": 200, "headers": {}, "body": b"<html><p>x</p></html>", **answer}
    return observe_response(Attempt(source, HeldTask("t" * 32, 1, ask), "w", "http"), Response(**values), NOW)


def test_the_row_of_an_answer(make_source: MakeSource) -> None:
    body = "<html><meta charset=gbk><p>正文</p>".encode("gb18030")
    seen = observe(
        make_source(), body=body, headers={"content-type": 'Text/HTML; Charset="GB2312"'}, remote_addr="93.184.216.34"
    )
    fetch = seen.fetch
    assert (fetch.media_type, fetch.charset, fetch.attempt) == ("text/html", "gb18030", 2)
    assert fetch.charset_votes["header"] == "gb18030"
    assert "正文" in seen.text
    assert (fetch.error, fetch.limited, fetch.body_bytes) == (None, None, len(body))
    assert seen.worked


def test_no_secret_is_stored_anywhere(make_source: MakeSource) -> None:
    seen = observe(
        make_source(secret_params=["key"]),
        url="http://user:pw@news.test/b?key=abc",
        redirects=(URL,),
        headers={"set-cookie": "sid=cookie1", "content-location": URL},
        request_headers={"cookie": "sid=cookie1", "referer": URL},
    )
    stored = repr(seen.fetch)
    assert not any(secret in stored for secret in ("abc", "cookie1", "user:pw"))
    assert seen.fetch.url_fp == url_fp(seen.fetch.url)
    assert seen.url == "http://user:pw@news.test/b?key=abc", "links on the page are joined to the real address"


@pytest.mark.parametrize(
    ("status", "headers", "error", "limited"),
    [
        (200, {}, None, None),
        (206, {}, None, None),
        (304, {}, None, None),
        (302, {}, "http_error", None),
        (404, {}, "http_error", None),
        (500, {}, "http_error", None),
        (503, {}, "http_error", None),
        (503, {"retry-after": "5"}, None, "rate_limited"),
        (429, {}, None, "rate_limited"),
    ],
)
def test_status_codes(
    make_source: MakeSource, status: int, headers: dict[str, str], error: str | None, limited: str | None
) -> None:
    fetch = observe(make_source(), status=status, headers=headers).fetch
    assert (fetch.status, fetch.error, fetch.limited) == (status, error, limited)


def test_a_missing_page_with_a_login_box_is_missing(make_source: MakeSource) -> None:
    seen = observe(make_source(), status=404, body=b"<html><input type=password></html>")
    assert (seen.fetch.error, seen.fetch.limited) == ("http_error", None)


def test_what_is_no_text_has_no_charset(make_source: MakeSource) -> None:
    seen = observe(make_source(), body=b"%PDF-1.4\n\x00\x01", headers={"content-type": "application/pdf"})
    assert (seen.fetch.charset, seen.text) == (None, "")
    assert observe(make_source(), body=b"").fetch.charset is None


def test_a_rendered_page_is_judged_as_people_see_it(make_source: MakeSource) -> None:
    source = make_source(fetcher="browser")
    rendered = "<html><body><p>请输入验证码</p></body></html>".encode()
    seen = observe(source, body=b"<html><div id=app></div><script></script></html>", rendered=rendered)
    assert seen.fetch.limited == "captcha"
    assert seen.fetch.rendered_sha256 is not None
    assert seen.rendered == rendered


def test_the_row_of_an_exchange_that_failed(make_source: MakeSource) -> None:
    ask = NewTask("news", date(2026, 3, 1), "t", "r", FetchKind.LIST, URL, "f" * 32)
    attempt = Attempt(make_source(secret_params=["key"]), HeldTask("t" * 32, 0, ask), "w", "http")
    seen = observe_failure(attempt, FetchError("timeout", "no answer"), 1234, NOW)
    assert (seen.fetch.error, seen.fetch.elapsed_ms, seen.fetch.status) == ("timeout", 1234, None)
    assert seen.fetch.url == "http://news.test/a?key=***"
    assert not seen.worked
