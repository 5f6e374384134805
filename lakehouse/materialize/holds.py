"""Days that a rolled back fix holds: they keep their rows, or are made with the template of before, until raw moves on.

Without this the next run would bring back what was rolled back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lakehouse.lake import Lake
from lakehouse.materialize.days import dataset_of, raw_partition, record_partition
from lakehouse.materialize.index import content_mark, partition_name
from lakehouse.model.partition import SourceDay
from lakehouse.specs.template import TemplateSpec
from lakehouse.tables.fixes import Fix, Status, all_fixes

PARENTS = ("fetches", "entries")


@dataclass(frozen=True, slots=True)
class Hold:
    """A rolled back fix that decides over a day: the template to use, and the raw content up to which rows stay."""

    fix: Fix

    @property
    def message(self) -> str:
        """What a person should know."""
        return f"kept as fix {self.fix.fix_id[:8]} was rolled back; a new fix or `lakehouse fix redo` changes it"


def raw_marks(lake: Lake, day: SourceDay) -> tuple[str, ...]:
    """The raw partitions behind a day, with the content they have by the index."""
    return tuple(content_mark(lake, f"raw.{name}", raw_partition(lake, day, name)) for name in PARENTS)


def raw_names(lake: Lake, day: SourceDay) -> tuple[str, ...]:
    """The raw partitions behind a day, by name."""
    return tuple(partition_name(f"raw.{name}", raw_partition(lake, day, name)) for name in PARENTS)


def holds_of(lake: Lake, days: Collection[SourceDay]) -> dict[SourceDay, Hold]:
    """The holds over some days: those whose newest fix of the version that the source writes was rolled back."""
    wanted = {day: (dataset_of(lake, day), record_partition(lake, day)) for day in days}
    newest: dict[SourceDay, Fix] = {}
    for fix in all_fixes(lake.decisions):
        if wanted.get(fix.day) == (fix.dataset, fix.partition):
            newest[fix.day] = fix
    return {day: Hold(fix) for day, fix in newest.items() if fix.status is Status.ROLLED_BACK and not fix.structural}


def keeps_rows(lake: Lake, day: SourceDay, hold: Hold) -> bool:
    """Whether the day's rows stay: raw holds what it held when the fix was rolled back."""
    return hold.fix.raw == raw_marks(lake, day)


def template_of(lake: Lake, day: SourceDay, hold: Hold | None) -> TemplateSpec | None:
    """The template that reads the day's pages; None is generic extraction."""
    name = lake.catalog.source(day.source).template if hold is None else hold.fix.template
    return lake.catalog.template(name) if name else None
