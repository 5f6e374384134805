"""Days that a fix holds: the next run must not bring back what was rolled back, nor lose the rows that a file gave.

A rolled back fix keeps the day's rows until raw moves on; then the day is made with the template of before. Rows of a
file stay until another fix or a rollback takes them; pages that came later are then named as an error.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lakehouse.lake import Lake
from lakehouse.materialize.days import dataset_of, raw_partition, record_partition
from lakehouse.materialize.index import RAW_PARENTS, content_mark
from lakehouse.model.partition import SourceDay
from lakehouse.specs.template import TemplateSpec
from lakehouse.tables.fixes import Fix, Status, all_fixes


@dataclass(frozen=True, slots=True)
class Hold:
    """The fix that decides over a day: the template to use, and the raw content up to which rows stay."""

    fix: Fix

    @property
    def given(self) -> bool:
        """Whether the day's rows are those of a file."""
        return self.fix.status is Status.APPLIED

    @property
    def message(self) -> str:
        """What a person should know."""
        if self.given:
            return f"kept as fix {self.fix.fix_id[:8]} gave the rows of a file; a new fix or its rollback changes it"
        return f"kept as fix {self.fix.fix_id[:8]} was rolled back; a new fix or `lakehouse fix redo` changes it"


def raw_marks(lake: Lake, day: SourceDay) -> tuple[str, ...]:
    """The raw partitions behind a day, with the content they have by the index."""
    return tuple(content_mark(lake, f"raw.{name}", raw_partition(lake, day, name)) for name in RAW_PARENTS)


def holds_of(lake: Lake, days: Collection[SourceDay]) -> dict[SourceDay, Hold]:
    """The holds over some days: of the newest fix of the version that the source writes where it was rolled back, of
    the newest that stands where a file gave its rows.
    """
    wanted = {day: (dataset_of(lake, day), record_partition(lake, day)) for day in days}
    newest: dict[SourceDay, Fix] = {}
    standing: dict[SourceDay, Fix] = {}
    for fix in all_fixes(lake.decisions):
        if wanted.get(fix.day) == (fix.dataset, fix.partition):
            newest[fix.day] = fix
            if fix.status is not Status.ROLLED_BACK:
                standing[fix.day] = fix
    rolled = {day: fix for day, fix in newest.items() if fix.status is Status.ROLLED_BACK and not fix.structural}
    given = {day: fix for day, fix in standing.items() if fix.status is Status.APPLIED and fix.given is not None}
    return {day: Hold(fix) for day, fix in (rolled | given).items()}


def keeps_rows(lake: Lake, day: SourceDay, hold: Hold) -> bool:
    """Whether the day's rows stay: a file gave them, or raw holds what it held when the fix was rolled back."""
    return hold.given or is_up_to_date(lake, day, hold)


def is_up_to_date(lake: Lake, day: SourceDay, hold: Hold) -> bool:
    """Whether raw holds what it held when the fix was last moved."""
    return hold.fix.raw == raw_marks(lake, day)


def template_of(lake: Lake, day: SourceDay, hold: Hold | None) -> TemplateSpec | None:
    """The template that reads the day's pages; None is generic extraction."""
    name = lake.catalog.source(day.source).template if hold is None else hold.fix.template
    return lake.catalog.template(name) if name else None
