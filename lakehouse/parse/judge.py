"""Whether a template can be right, judged without a page."""

from __future__ import annotations

from collections.abc import Iterator

import lxml.etree
import regex
from cssselect import SelectorError
from jsonpath_ng.exceptions import JSONPathError

from lakehouse.parse.functions import NAMES, Argument, Function
from lakehouse.parse.rules import compiled_jsonpath, compiled_xpath, css_as_xpath, rule_kind
from lakehouse.specs.base import near_names
from lakehouse.specs.template import FieldRules, Step, TemplateSpec

Finding = tuple[str, str, str]
EXPRESSIONS_WITHOUT_ATTR = ("regex", "jsonpath", "meta", "jsonld")


def judge_template(spec: TemplateSpec) -> Iterator[Finding]:
    """Problems of a template as (YAML path, what is wrong, what would be right)."""
    for name, field in spec.fields.items():
        path = f"fields.{name}"
        yield from _judge_rules(path, field)
        for number, selector in enumerate(field.remove):
            yield from _judge_css(f"{path}.remove[{number}]", selector)
        for number, step in enumerate(field.then):
            yield from _judge_step(f"{path}.then[{number}]", step)


def _judge_rules(path: str, field: FieldRules) -> Iterator[Finding]:
    for number, rule in enumerate(field.rules):
        kind, expression = rule_kind(rule)
        where = f"{path}.rules[{number}].{kind}"
        if not expression.strip():
            yield where, "the expression is empty", f"write a {kind} expression"
        elif kind == "css":
            yield from _judge_css(where, expression)
        elif kind == "xpath":
            yield from _judge_xpath(where, expression)
        elif kind == "regex":
            yield from _judge_regex(where, expression)
        elif kind == "jsonpath":
            yield from _judge_jsonpath(where, expression)
        if rule.attr is not None and kind in EXPRESSIONS_WITHOUT_ATTR:
            yield (
                f"{path}.rules[{number}].attr",
                f"a {kind} rule has no node to take an attribute of",
                "leave `attr` out",
            )


def _judge_css(where: str, selector: str) -> Iterator[Finding]:
    try:
        compiled_xpath(css_as_xpath(selector))
    except (SelectorError, lxml.etree.XPathError, ValueError) as error:
        yield where, f"{selector!r} is not a CSS selector: {error}", "write one such as h1.title or a::attr(href)"


def _judge_xpath(where: str, expression: str) -> Iterator[Finding]:
    try:
        compiled_xpath(expression)(lxml.etree.Element("html"))
    except (lxml.etree.XPathError, ValueError) as error:
        yield where, f"{expression!r} is not an XPath: {error}", "write one such as //div[@id='content']//p"


def _judge_regex(where: str, pattern: str) -> Iterator[Finding]:
    try:
        regex.compile(pattern)
    except regex.error as error:
        yield where, f"{pattern!r} is not a regular expression: {error}", "escape what is meant literally with \\"


def _judge_jsonpath(where: str, expression: str) -> Iterator[Finding]:
    try:
        compiled_jsonpath(expression)
    except (JSONPathError, ValueError, AttributeError, TypeError) as error:
        yield where, f"{expression!r} is not a JSONPath: {error}", "write one such as $.data.items[*].title"


def _judge_step(where: str, step: Step) -> Iterator[Finding]:
    function = NAMES.get(step.do)
    if function is None:
        yield where, f"there is no function {step.do!r}", near_names(step.do, NAMES, "functions")
        return
    for name, value in step.args.items():
        argument = function.arguments.get(name)
        if argument is None:
            yield f"{where}.{step.do}.{name}", f"{step.do} has no argument {name!r}", _wanted(step.do, function, name)
        else:
            yield from _judge_argument(f"{where}.{step.do}.{name}", value, argument)
    for name, argument in function.arguments.items():
        if argument.required and name not in step.args:
            yield f"{where}.{step.do}", f"argument {name!r} is missing", f"give {name}: {argument.meaning}"


def _judge_argument(where: str, value: object, argument: Argument) -> Iterator[Finding]:
    wrong_type = not isinstance(value, argument.types) or (isinstance(value, bool) and bool not in argument.types)
    if wrong_type:
        wanted = " or ".join(kind.__name__ for kind in argument.types)
        yield where, f"{value!r} is a {type(value).__name__}", f"give a {wanted}: {argument.meaning}"
    elif argument.pattern and isinstance(value, str):
        yield from _judge_regex(where, value)


def _wanted(name: str, function: Function, given: str) -> str:
    if not function.arguments:
        return f"{name} takes none"
    return near_names(given, function.arguments, "arguments")
