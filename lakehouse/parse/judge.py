"""Whether a template can be right, judged without a page."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.specs.template import TemplateSpec


def judge_template(spec: TemplateSpec) -> Iterator[tuple[str, str, str]]:
    """Problems of a template as (YAML path, what is wrong, what would be right)."""
    return iter(())
