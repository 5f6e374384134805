"""The template engine: ordered rules for each field, then steps, with evidence for every value."""

from __future__ import annotations

from typing import Any

import lxml.etree

from lakehouse.model.record import Evidence, Parsed, TimeConfidence
from lakehouse.parse.functions import NAMES, StepContext
from lakehouse.parse.rules import MAX_RAW, PageView, find_values, rule_kind
from lakehouse.parse.times import FoundTime
from lakehouse.specs.template import FieldRules, TemplateSpec

MAX_ELEMENTS = 150_000
MANY_LINES = frozenset({"body"})
ONE_LINE = frozenset({"title", "author", "origin"})


def parse_by_template(
    text: str, root: lxml.etree._Element | None, template: TemplateSpec, context: StepContext
) -> Parsed:
    """Values of a page by a template; missing required fields and pages that match nothing carry a problem."""
    if root is not None and sum(1 for _ in zip(root.iter(), range(MAX_ELEMENTS + 1), strict=False)) > MAX_ELEMENTS:
        return _problem(template, "parser_limit", f"the page has more than {MAX_ELEMENTS} elements")
    view = PageView(text, root)
    values: dict[str, Any] = {}
    evidence: dict[str, Evidence] = {}
    for name, field in template.fields.items():
        try:
            value, proof = _field_value(name, field, view, context)
        except TimeoutError:
            return _problem(template, "parser_limit", f"a regex of field {name} took too long")
        if isinstance(value, FoundTime):
            value = _take_time(name, value, values)
        values[name] = value
        if proof is not None:
            evidence[name] = proof
    if "publish_time" in template.fields:
        values.setdefault("time_confidence", TimeConfidence.UNKNOWN)
    problem, detail = _judge(template, values)
    return Parsed(values, evidence, template.ref, template.version, problem, detail)


def _take_time(name: str, found: FoundTime, values: dict[str, Any]) -> Any:
    if name == "publish_time":
        values["time_confidence"] = found.confidence
    return found.value


def _judge(template: TemplateSpec, values: dict[str, Any]) -> tuple[str | None, str | None]:
    present = {name for name in template.fields if values.get(name) not in (None, "", [])}
    if not present:
        return "template_no_match", f"no rule of {template.ref} found anything"
    missing = [name for name, field in template.fields.items() if field.required and name not in present]
    if missing:
        return "required_missing", f"{template.ref} found no {', '.join(missing)}"
    return None, None


def _problem(template: TemplateSpec, problem: str, detail: str) -> Parsed:
    return Parsed({}, {}, template.ref, template.version, problem, detail)


def _field_value(name: str, field: FieldRules, view: PageView, context: StepContext) -> tuple[Any, Evidence | None]:
    """The value of the first rule that still has one after the steps, with its evidence."""
    for rule in field.rules:
        found = find_values(rule, view, field.remove)
        value = _finished(name, _after_steps([item.text for item in found], field, context), context)
        if value is not None:
            kind, expression = rule_kind(rule)
            raw = "\n".join(item.text for item in found)[:MAX_RAW]
            return value, Evidence(f"{kind}: {expression}", found[0].node if found else None, raw)
    return None, None


def _after_steps(values: list[Any], field: FieldRules, context: StepContext) -> list[Any]:
    for step in field.then:
        function = NAMES.get(step.do)
        if function is not None:
            values = function.apply(values, context, **step.args)
    return values


def _finished(name: str, values: list[Any], context: StepContext) -> Any:
    """One value: all lines of a body, the first that tells a time for `publish_time`, else the first."""
    values = [value for value in values if value not in (None, "", [])]
    if not values:
        return None
    if name == "publish_time":
        return next((time for value in values if (time := _as_time(value, context)) is not None), None)
    if name in MANY_LINES and all(isinstance(value, str) for value in values):
        return "\n".join(values).strip() or None
    value = values[0]
    if name in ONE_LINE and isinstance(value, str):
        value = " ".join(value.split())
    return value.strip() or None if isinstance(value, str) else value


def _as_time(value: Any, context: StepContext) -> FoundTime | None:
    return value if isinstance(value, FoundTime) else context.times.stamp(str(value))
