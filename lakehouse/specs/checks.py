"""Quality checks with an action each: `catalog/checks/<name>.yaml`; URL rules: `catalog/url_rules.yaml`."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from lakehouse.model.record import REJECT_REASONS, Action
from lakehouse.specs.base import CodeName, Declared, Misfit, near_names


class Check(Declared):
    """One check on a parsed row.

    `field` must be present (`present: true`) or lie within `min`/`max`, both included, or above `above`, which is not
    (length for text and lists, value for numbers). A row outside gets `action` with `reason` (a code of
    `model.record.REJECT_REASONS`, or a flag name for `flag`).
    """

    field: CodeName
    reason: CodeName
    action: Action
    present: bool = False
    min: float | None = None
    above: float | None = None
    max: float | None = None

    @model_validator(mode="after")
    def _judges_something(self) -> Self:
        if not self.present and self.min is None and self.above is None and self.max is None:
            raise Misfit("the check demands nothing", "give `present: true`, `min`, `above` or `max`")
        low = max((bound for bound in (self.min, self.above) if bound is not None), default=None)
        if low is not None and self.max is not None and low > self.max:
            raise Misfit(f"no value lies between {low:g} and {self.max:g}", "swap `min` and `max`")
        if self.action is not Action.FLAG and self.reason not in REJECT_REASONS:
            hint = near_names(self.reason, REJECT_REASONS, "reasons")
            raise Misfit(f"{self.reason!r} is not a reason code", hint, ("reason",))
        return self

    def passes(self, value: Any) -> bool:
        """Whether `value` passes; a missing one (None) fails `present` alone, so do blank text and an empty list."""
        if value is None:
            return not self.present
        if isinstance(value, str | list | tuple | dict):
            if self.present and not (value.strip() if isinstance(value, str) else value):
                return False
            measure: float = len(value)
        elif isinstance(value, int | float):
            measure = value
        else:
            return True
        return (
            (self.min is None or measure >= self.min)
            and (self.above is None or measure > self.above)
            and (self.max is None or measure <= self.max)
        )


class ChecksSpec(Declared):
    """A named, ordered list of checks."""

    checks: CodeName
    description: str = Field(min_length=1)
    rules: tuple[Check, ...] = Field(min_length=1)


class UrlRules(Declared):
    """What two URLs may differ in and still name one page; gives `canonical_fp`."""

    version: int = Field(gt=0)
    drop_params: tuple[str, ...] = Field(
        default=(), description="names of query and path parameters in any case; a trailing * matches any rest"
    )
    drop_www: bool = True
    one_scheme: bool = True
    drop_trailing_slash: bool = True
    drop_fragment: bool = True

    @field_validator("drop_params")
    @classmethod
    def _names_are_plain(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for at, name in enumerate(value):
            if not name.rstrip("*") or "*" in name[:-1] or set(name) & set("&=?#;/ "):
                raise Misfit(
                    f"{name!r} is not a parameter name", "give a name such as spm, or a beginning such as utm_*", (at,)
                )
        return value
