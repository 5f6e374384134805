"""Versioned parse rules: `catalog/templates/<name>/v<N>.yaml`."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from lakehouse.specs.base import CodeName, Declared, Misfit

KINDS = ("css", "xpath", "regex", "jsonpath", "meta", "jsonld")


class Rule(Declared):
    """One way to find a value: exactly one of `css`, `xpath`, `regex`, `jsonpath`, `meta`, `jsonld`.

    `attr` takes an attribute instead of the text; `html: true` keeps the node's markup for block-aware text.
    """

    css: str | None = None
    xpath: str | None = None
    regex: str | None = None
    jsonpath: str | None = None
    meta: str | None = None
    jsonld: str | None = None
    attr: str | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [k for k in KINDS if getattr(self, k) is not None]
        if len(given) != 1:
            wrong = f"the rule has {' and '.join(given)}" if given else "the rule has no way to find a value"
            raise Misfit(wrong, f"give exactly one of {', '.join(KINDS)}")
        return self


class Step(Declared):
    """One post-processing step: a function of `parse/functions.py` with its arguments."""

    do: str
    args: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        """`strip` is `{do: strip}`; `{join: {by: " "}}` is `{do: join, args: {by: " "}}`."""
        if isinstance(value, str):
            return {"do": value}
        if isinstance(value, dict) and "do" not in value and len(value) == 1:
            name, args = next(iter(value.items()))
            return {"do": name, "args": args or {}}
        return value


class FieldRules(Declared):
    """Ordered rules for one field; the first that finds something wins, then `then` is applied in order."""

    rules: tuple[Rule, ...] = Field(min_length=1)
    then: tuple[Step, ...] = ()
    required: bool = False
    remove: tuple[str, ...] = Field(default=(), description="CSS selectors removed below the found node")


class TemplateSpec(Declared):
    """One version of a template."""

    template: CodeName
    version: int = Field(gt=0)
    description: str = Field(min_length=1)
    dataset: CodeName = "articles"
    fields: dict[CodeName, FieldRules] = Field(min_length=1)

    @property
    def ref(self) -> str:
        """`name@version`."""
        return f"{self.template}@{self.version}"
