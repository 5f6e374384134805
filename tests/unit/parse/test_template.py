"""The template engine: kinds of rules, order, steps, evidence, problems."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lakehouse.model.record import Page, Parsed, TimeConfidence
from lakehouse.parse import parse_page
from lakehouse.specs.template import TemplateSpec

ZONE = ZoneInfo("Asia/Shanghai")
FETCHED = datetime(2024, 3, 6, 12, tzinfo=ZONE)
PAGE = """<!doctype html><html><head><title>Title - Site</title><meta name="Author" content="Meta Author">
<script type="application/ld+json">{"@graph":[{"@type":"NewsArticle","headline":"LD title","datePublished":
"2024-03-04T09:00:00Z","author":[{"name":"Ann"},{"name":"Bo"}]}]}</script></head>
<body><h1 class="t"> The  <b>title</b> </h1><div class="meta">time: 2024-03-05 08:30 | by: Li</div>
<div id="c"><p>One.</p><p>Two <a href="/x?a=1">link</a>.</p><div class="ad">Buy</div><p>浏览：1,234次</p></div>
<ul><li>a</li><li> b </li><li></li></ul></body></html>"""


def parse(fields: dict[str, Any], body: str | bytes = PAGE, **page: Any) -> Parsed:
    spec = TemplateSpec.model_validate({"template": "t", "version": 2, "description": "test", "fields": fields})
    data = body.encode() if isinstance(body, str) else body
    return parse_page(Page(data, "http://site.example/a/", FETCHED, **page), spec, zone=ZONE)


def value(rule: dict[str, Any], *steps: Any, name: str = "field", **field: Any) -> Any:
    return parse({name: {"rules": [rule], "then": list(steps), **field}}).values.get(name)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"css": "h1.t"}, "The title"),
        ({"css": "a", "attr": "href"}, "/x?a=1"),
        ({"css": "a::attr(href)"}, "/x?a=1"),
        ({"css": "#c p::text"}, "One."),
        ({"xpath": "//h1"}, "The title"),
        ({"xpath": "string(//title)"}, "Title - Site"),
        ({"xpath": "count(//li)"}, "3"),
        ({"xpath": "//a/@href"}, "/x?a=1"),
        ({"regex": r"by: (\w+)"}, "Li"),
        ({"regex": r"by: \w+"}, "by: Li"),
        ({"meta": "author"}, "Meta Author"),
        ({"jsonld": "headline"}, "LD title"),
        ({"jsonld": "author.name"}, "Ann"),
        ({"jsonpath": "$['@graph'][0].headline"}, "LD title"),
    ],
)
def test_every_kind_of_rule_finds(rule: dict[str, Any], expected: str) -> None:
    assert value(rule) == expected


@pytest.mark.parametrize(
    ("rule", "steps", "expected"),
    [
        ({"css": "li"}, ["all"], ["a", "b"]),
        ({"css": "li"}, ["last"], "b"),
        ({"css": "li"}, [{"nth": {"index": -1}}], "b"),
        ({"css": "li"}, [{"join": {"by": "+"}}], "a+b"),
        ({"css": "li"}, ["lines"], "a\nb"),
        ({"css": "li"}, [{"nth": {"index": 9}}], None),
        ({"css": ".meta"}, [{"regex": {"pattern": r"by: (\w+)"}}], "Li"),
        ({"css": ".meta"}, [{"regex": {"pattern": "none"}}, {"default": {"value": "?"}}], "?"),
        ({"css": ".meta"}, [{"after": {"mark": "by:"}}], "Li"),
        (
            {"css": ".meta"},
            [{"before": {"mark": "|"}}, {"remove_prefix": {"prefix": ["x", "time:"]}}],
            "2024-03-05 08:30",
        ),
        ({"css": "title"}, [{"remove_suffix": {"suffix": " - Site"}}, "upper"], "TITLE"),
        ({"css": "title"}, [{"replace": {"old": " - Site"}}, "lower"], "title"),
        ({"css": "title"}, [{"sub": {"pattern": "[aeiou]", "by": "_"}}], "T_tl_ - S_t_"),
        ({"css": "title"}, [{"split": {"by": " - "}}, "last"], "Site"),
        ({"css": "#c p:last-child"}, ["int"], 1234),
        ({"css": "#c p:last-child"}, ["decimal"], Decimal(1234)),
        ({"css": "#c p:last-child"}, ["float"], 1234.0),
        ({"css": "a::attr(href)"}, ["absolute_url"], "http://site.example/x?a=1"),
        ({"css": "#c"}, [{"drop": {"pattern": "^Buy|浏览"}}], "One.\nTwo link."),
        ({"regex": "&amp;|<title>(.*?)</title>"}, ["strip", {"strip": {"chars": "e"}}], "Title - Sit"),
    ],
)
def test_every_step_does_what_it_says(rule: dict[str, Any], steps: list[Any], expected: Any) -> None:
    assert value(rule, *steps) == expected


def test_numbers_may_carry_chinese_units() -> None:
    found = parse({"views": {"rules": [{"css": "p"}], "then": [{"decimal": {"units": True}}]}}, "<p>阅读 1.5万 次</p>")
    assert found.values["views"] == Decimal(15000)


def test_the_body_is_all_lines_without_what_is_removed() -> None:
    assert value({"css": "#c"}, name="body", remove=[".ad", "a"]) == "One.\nTwo .\n浏览：1,234次"
    assert value({"css": "#c p"}, name="body") == "One.\nTwo link.\n浏览：1,234次"


def test_removing_for_one_field_leaves_the_page_whole_for_others() -> None:
    parsed = parse({"body": {"rules": [{"css": "#c"}], "remove": ["p"]}, "other": {"rules": [{"css": "#c p"}]}})
    assert parsed.values == {"body": "Buy", "other": "One."}


def test_publish_time_is_read_without_a_step_and_has_a_confidence() -> None:
    parsed = parse({"publish_time": {"rules": [{"css": ".meta"}]}})
    assert parsed.values["publish_time"] == datetime(2024, 3, 5, 8, 30, tzinfo=ZONE)
    assert parsed.values["time_confidence"] is TimeConfidence.ABSOLUTE


def test_a_form_of_its_own_is_read_with_a_format() -> None:
    parsed = parse(
        {"publish_time": {"rules": [{"css": "p"}], "then": [{"date": {"format": "%d@%m@%Y"}}]}}, "<p>05@03@2024</p>"
    )
    assert parsed.values["publish_time"] == datetime(2024, 3, 5, tzinfo=ZONE)


def test_a_time_that_cannot_be_is_unknown_and_never_now() -> None:
    parsed = parse({"title": {"rules": [{"css": "h1"}]}, "publish_time": {"rules": [{"regex": "Two"}]}})
    assert parsed.values["publish_time"] is None
    assert parsed.values["time_confidence"] is TimeConfidence.UNKNOWN


def test_rules_are_tried_in_order_and_the_evidence_names_the_one_that_won() -> None:
    parsed = parse({"title": {"rules": [{"css": ".none"}, {"xpath": "//h1"}, {"meta": "author"}]}})
    assert parsed.values["title"] == "The title"
    evidence = parsed.evidence["title"]
    assert evidence.rule == "xpath: //h1"
    assert evidence.node == "/html/body/h1"
    assert evidence.raw == "The title"


def test_a_rule_whose_value_the_steps_drop_gives_way_to_the_next() -> None:
    rules = [{"css": "h1"}, {"css": ".meta"}]
    parsed = parse({"n": {"rules": rules, "then": [{"regex": {"pattern": r"by: (\w+)"}}]}})
    assert parsed.values["n"] == "Li"


def test_what_is_missing_is_a_problem_with_names() -> None:
    parsed = parse({"title": {"rules": [{"css": "h1"}]}, "body": {"rules": [{"css": ".no"}], "required": True}})
    assert (parsed.problem, parsed.values["title"]) == ("required_missing", "The title")
    assert "body" in (parsed.detail or "")
    assert parse({"a": {"rules": [{"css": ".no"}]}}).problem == "template_no_match"


def test_json_pages_are_read_by_jsonpath() -> None:
    fields = {
        "title": {"rules": [{"jsonpath": "$.data.items[0].title"}]},
        "publish_time": {"rules": [{"jsonpath": "$..ts"}]},
    }
    parsed = parse(fields, '{"data": {"items": [{"title": "T", "ts": 1709598600}]}}', media_type="application/json")
    assert parsed.problem is None
    assert parsed.values["title"] == "T"
    assert parsed.values["publish_time"] == datetime(2024, 3, 5, 8, 30, tzinfo=ZONE)


def test_a_regex_that_would_not_end_is_stopped() -> None:
    parsed = parse({"x": {"rules": [{"regex": r"(a|aa)+$"}]}}, "<p>" + "a" * 5000 + "b</p>")
    assert parsed.problem == "parser_limit"
    assert "x" in (parsed.detail or "")


def test_entities_in_regex_matches_are_characters() -> None:
    assert parse({"x": {"rules": [{"regex": "<p>(.*?)</p>"}]}}, "<p>A &amp; B</p>").values["x"] == "A & B"


def test_gbk_pages_are_read_like_any_other() -> None:
    body = "<meta charset=gb2312><h1>标题：今天</h1>".encode("gbk")
    assert parse({"title": {"rules": [{"css": "h1"}]}}, body).values["title"] == "标题：今天"
