"""Pages made to break parsers: each ends with values or a problem code, and with little work."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakehouse.model.record import REJECT_REASONS, Page, Parsed
from lakehouse.parse import parse_page
from lakehouse.specs.template import TemplateSpec

ZONE = ZoneInfo("Asia/Shanghai")
FETCHED = datetime(2024, 3, 6, tzinfo=UTC)
TEMPLATE = TemplateSpec.model_validate(
    {
        "template": "t",
        "version": 1,
        "description": "test",
        "fields": {
            "title": {"rules": [{"css": "h1"}, {"meta": "og:title"}, {"jsonld": "headline"}]},
            "publish_time": {"rules": [{"xpath": "//time"}, {"regex": r"\d{4}-\d\d-\d\d"}]},
            "body": {"rules": [{"css": "body"}], "remove": ["script", ".ad"], "then": ["strip"]},
        },
    }
)


def parse(body: bytes, template: TemplateSpec | None = None) -> Parsed:
    return parse_page(Page(body, "http://[::bad", FETCHED), template, zone=ZONE)


@pytest.mark.parametrize("template", [None, TEMPLATE], ids=["generic", "template"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "empty_body"),
        (b" \r\n\t ", "empty_body"),
        (b"%PDF-1.4\n<html>", "not_html"),
        (b"\x00" * 5000, "not_html"),
        (b"<div>" * 100_000, "parser_limit"),
        (b"<div>" * 100_000 + b"x" + b"</div>" * 100_000, "parser_limit"),
        (b"<" * 50_000_000, "parser_limit"),
        (b"<div " + b" ".join(b"a%d=1" % n for n in range(60_000)) + b">", "parser_limit"),
        (b"<p>x" * 300_000, "parser_limit"),
    ],
    ids=["nothing", "blank", "pdf", "zeros", "deep", "deep-closed", "angles", "attributes", "siblings"],
)
def test_a_page_over_the_limits_has_a_problem(body: bytes, problem: str, template: TemplateSpec | None) -> None:
    parsed = parse(body, template)
    assert parsed.problem == problem
    assert parsed.detail


HEAD = b"<title>A title of a page</title><h1>A title of a page</h1>"


@pytest.mark.parametrize("template", [None, TEMPLATE], ids=["generic", "template"])
@pytest.mark.parametrize(
    "body",
    [
        HEAD + b"<p>2024-03-05" + b" " * 500_000 + b"12:30</p>",
        HEAD + b'<meta name=pubdate content="2024-03-05' + b" " * 1900 + b'x">',
        HEAD + b'<script type="application/ld+json">' + b"[" * 200_000 + b"</script>",
        HEAD + b'<script type="application/ld+json">{}-->' + b" " * 300_000 + b"x</script>",
        HEAD + b'<div class="nav related comments">' * 1900 + b"<p>text, text and more text here.</p>" * 3000,
        HEAD + b"<p>Related:</p><div><p>Some longer text, with marks. And another sentence.</p></div>" * 3000,
        HEAD + b"<h1>A title of a page that is long</h1>" * 5000,
        b"<title>" + b"a | " * 200_000 + b"</title>",
        HEAD + b"<span>" * 1900 + b"x",
        HEAD + b"<script>" + b"ct=" * 300_000 + b"</script>",
        b"<p>&#x110000;&#0;&#xD800;&nosuch;",
        HEAD + b"<!--" * 100_000,
        HEAD + b"<![CDATA[" * 100_000,
        b"\xef\xbb\xbf<h1>\xff\xfe</h1>",
    ],
    ids="blanks meta json json-tail cues related titles bars spans script refs comments cdata bytes".split(),  # noqa: SIM905
)
def test_a_page_made_to_be_slow_is_read(body: bytes, template: TemplateSpec | None) -> None:
    parsed = parse(body, template)
    assert parsed.problem is None or parsed.problem in REJECT_REASONS
    if body.startswith(HEAD) and parsed.problem is None:
        assert parsed.values["title"] == "A title of a page"


PIECES = st.sampled_from(
    [
        *b"<p> </p> <h1> </h1> </div> <br> <!-- --> <svg><title>t</title> <textarea> <style> <title> <time/> ".split(),
        *b"</script> <![CDATA[ <x:y/> <a/href=x> &#xD800; \x00 \xff 2024-03-05T08:30".split(),
        b"<div class='related comment nav'>",
        b"<p style='display:none'>",
        b"<table><tr><td>",
        b"<script type='application/ld+json'>",
        b'{"@type":"Article","datePublished":[{}],"author":[1]}',
        b"<meta name=date content='2024-13-45'>",
        b"<meta property=og:title content=''>",
        "3小时前".encode(),
        "来源：作者：编辑：".encode(),
        "中文，正文。".encode() * 12,
        b"Some words, and a sentence. " * 6,
    ]
)  # fmt: skip


@given(st.lists(PIECES | st.binary(max_size=20), max_size=40).map(b"".join))
@example(b"<\x00p>")
def test_no_page_raises(body: bytes) -> None:
    for template in (None, TEMPLATE):
        parsed = parse(body, template)
        assert parsed.problem is None or parsed.problem in REJECT_REASONS
        assert parsed == parse(body, template)
        moment = parsed.values.get("publish_time")
        assert moment is None or (moment.tzinfo is not None and moment.year >= 1990)
        # The parser's own failures are caught and named; none is expected here.
        assert not (parsed.problem == "unreadable" and "Error" in (parsed.detail or ""))
