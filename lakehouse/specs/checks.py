"""Quality checks with an action each: `catalog/checks/<name>.yaml`; URL rules: `catalog/url_rules.yaml`."""

from __future__ import annotations

from pydantic import Field

from lakehouse.model.record import Action
from lakehouse.specs.base import CodeName, Declared


class Check(Declared):
    """One check on a parsed row.

    `field` must lie within `min`/`max` (length for text and lists, value for numbers) or be present (`present: true`);
    a row outside gets `action` with `reason` (a code of `model.record.REJECT_REASONS`, or a flag name for `flag`).
    """

    field: CodeName
    reason: CodeName
    action: Action
    present: bool = False
    min: float | None = None
    max: float | None = None


class ChecksSpec(Declared):
    """A named, ordered list of checks."""

    checks: CodeName
    description: str = Field(min_length=1)
    rules: tuple[Check, ...] = Field(min_length=1)


class UrlRules(Declared):
    """What two URLs may differ in and still name one page; gives `canonical_fp`."""

    version: int = Field(gt=0)
    drop_params: tuple[str, ...] = Field(default=(), description="parameter names; a trailing * matches any rest")
    drop_www: bool = True
    one_scheme: bool = True
    drop_trailing_slash: bool = True
    drop_fragment: bool = True
