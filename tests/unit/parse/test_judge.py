"""A template that cannot be right is found without a page, with what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.parse import judge_template
from lakehouse.parse.functions import NAMES
from lakehouse.specs.template import TemplateSpec


def judge(field: dict[str, Any]) -> list[tuple[str, str, str]]:
    spec = TemplateSpec.model_validate(
        {"template": "t", "version": 1, "description": "test", "fields": {"title": {"rules": [{"css": "h1"}], **field}}}
    )
    return list(judge_template(spec))


def test_a_right_template_has_no_problem() -> None:
    rules = [
        {"css": "h1 > a::attr(href)"},
        {"xpath": "//h1[contains(@class, 't')]"},
        {"regex": r"(?P<x>\d+)"},
        {"jsonpath": "$.a[*].b"},
        {"meta": "og:title"},
        {"jsonld": "author.name"},
    ]
    steps = ["strip", {"join": {"by": " "}}, {"regex": {"pattern": "a+", "group": 0}}, {"nth": {"index": 1}}, "date"]
    assert judge({"rules": rules, "then": steps, "remove": [".ad"]}) == []


@pytest.mark.parametrize(
    ("field", "path", "wrong", "right"),
    [
        ({"rules": [{"css": "h1["}]}, "fields.title.rules[0].css", "not a CSS selector", "h1.title"),
        ({"rules": [{"css": "h1"}, {"xpath": "//h1["}]}, "fields.title.rules[1].xpath", "not an XPath", "//div"),
        ({"rules": [{"xpath": "re:test(., 'a')"}]}, "fields.title.rules[0].xpath", "not an XPath", ""),
        ({"rules": [{"regex": "(a"}]}, "fields.title.rules[0].regex", "not a regular expression", "escape"),
        ({"rules": [{"jsonpath": "$.["}]}, "fields.title.rules[0].jsonpath", "not a JSONPath", "$.data"),
        ({"rules": [{"css": " "}]}, "fields.title.rules[0].css", "empty", ""),
        ({"rules": [{"regex": "a", "attr": "b"}]}, "fields.title.rules[0].attr", "no node", "leave"),
        ({"remove": ["h1", ".a["]}, "fields.title.remove[1]", "not a CSS selector", ""),
        ({"then": ["strp"]}, "fields.title.then[0]", "no function 'strp'", "'strip'"),
        ({"then": ["strip", {"join": {"with": ","}}]}, "fields.title.then[1].join.with", "no argument 'with'", "by"),
        ({"then": ["replace"]}, "fields.title.then[0].replace", "'old' is missing", "old"),
        ({"then": [{"nth": {"index": "1"}}]}, "fields.title.then[0].nth.index", "is a str", "int"),
        ({"then": [{"nth": {"index": True}}]}, "fields.title.then[0].nth.index", "is a bool", "int"),
        ({"then": [{"first": {"n": 1}}]}, "fields.title.then[0].first.n", "no argument 'n'", "takes none"),
        ({"then": [{"regex": {"pattern": "("}}]}, "fields.title.then[0].regex.pattern", "not a regular", ""),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(
    field: dict[str, Any], path: str, wrong: str, right: str
) -> None:
    problems = judge(field)
    assert len(problems) == 1
    assert problems[0][0] == path
    assert wrong in problems[0][1]
    assert right in problems[0][2]


def test_all_problems_are_listed() -> None:
    assert len(judge({"rules": [{"css": "["}, {"regex": "("}], "then": ["x", "y"]})) == 4


def test_every_function_says_what_it_and_its_arguments_are() -> None:
    for name, function in NAMES.items():
        assert function.meaning, name
        assert all(argument.meaning for argument in function.arguments.values()), name
