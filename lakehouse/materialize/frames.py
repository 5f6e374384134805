"""Rows of the model as the tables have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from typing import Any

import pyarrow as pa

from lakehouse.errors import SchemaMismatch
from lakehouse.model.fetch import EndedTask, Entry, Fetch
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.model.record import Action, CleanDay, Outcome, OutcomeRow, Reject
from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.normalize import to_arrow

Row = dict[str, Any]


def raw_row(item: Fetch | Entry | EndedTask, batch_id: str, schema_version: int) -> Row:
    """A fetch, entry or ended task as its raw table has it."""
    values = {field.name: _plain(getattr(item, field.name)) for field in fields(item)}
    return {**values, "schema_version": schema_version, "batch_id": batch_id}


def reject_row(reject: Reject, partition: Partition) -> Row:
    """A reject as `clean.rejects` has it."""
    values = {field.name: _plain(getattr(reject, field.name)) for field in fields(reject)}
    row = {name: _storable(value) for name, value in reject.row.items()}
    return {**_keys(partition), **values, "row": row, "detail": _storable(reject.detail)}


def outcome_row(outcome: OutcomeRow, partition: Partition) -> Row:
    """An outcome as `clean.outcomes` has it."""
    return {**_keys(partition), **{name: _plain(value) for name, value in asdict(outcome).items()}}


def _keys(partition: Partition) -> Row:
    return {"source": partition.source, "dt": partition.dt, "schema_version": partition.schema_version}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


@dataclass(frozen=True, slots=True)
class FittedDay:
    """A day whose rows all fit their schema, and the clean rows as a frame."""

    day: CleanDay
    frame: pa.Table

    @property
    def source_day(self) -> SourceDay:
        """Which source and day."""
        return SourceDay(self.day.source, self.day.dt)


def fit_day(day: CleanDay, spec: SchemaSpec) -> FittedDay:
    """Rows that do not fit the schema become rejects `value_misfit`; the books follow.

    A fetch that loses all of its rows counts as rejected. A field that a template does not read is null.
    """
    unread = {field.name: None for field in spec.fields if not field.required}
    day = replace(day, rows=tuple({**unread, **row} for row in day.rows))
    misfits = _misfits(day.rows, spec)
    if not misfits:
        return FittedDay(day, to_arrow(day.rows, spec))
    kept = tuple(row for number, row in enumerate(day.rows) if number not in misfits)
    lost = [(day.rows[number], error) for number, error in misfits.items()]
    rejects = (*day.rejects, *(_misfit_reject(row, error) for row, error in lost))
    fitted = CleanDay(
        day.source,
        day.dt,
        kept,
        tuple(sorted(rejects, key=lambda reject: reject.fetch_id)),
        _outcomes_after(day.outcomes, [row["fetch_id"] for row, _ in lost]),
    )
    return FittedDay(fitted, to_arrow(kept, spec))


def _misfits(rows: Sequence[Mapping[str, Any]], spec: SchemaSpec, first: int = 0) -> dict[int, str]:
    """Which rows do not fit, by number, and why; halves the rows until it stands before single ones."""
    try:
        to_arrow(rows, spec)
    except SchemaMismatch as error:
        if len(rows) == 1:
            return {first: str(error)}
        half = len(rows) // 2
        return {**_misfits(rows[:half], spec, first), **_misfits(rows[half:], spec, first + half)}
    return {}


def _misfit_reject(row: Mapping[str, Any], detail: str) -> Reject:
    return Reject(
        stage="schema",
        action=Action.REJECT,
        reason="value_misfit",
        detail=detail,
        row=row,
        fetch_id=row["fetch_id"],
        url_fp=row["url_fp"],
        task_id=row["task_id"],
        template=row["template"],
        template_version=row["template_version"],
        collect_time=row["collect_time"],
        snap_key=row["snap_key"],
    )


def _storable(value: Any) -> Any:
    """A value that any JSON column takes; what is none becomes text without NUL and surrogates."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    text = value if isinstance(value, str) else str(value)
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")


def _outcomes_after(outcomes: Sequence[OutcomeRow], lost: Iterable[str]) -> tuple[OutcomeRow, ...]:
    missing: dict[str, int] = {}
    for fetch_id in lost:
        missing[fetch_id] = missing.get(fetch_id, 0) + 1
    changed = []
    for outcome in outcomes:
        left = outcome.rows_out - missing.get(outcome.fetch_id, 0)
        if left == outcome.rows_out:
            changed.append(outcome)
        elif left > 0:
            changed.append(OutcomeRow(outcome.fetch_id, outcome.outcome, outcome.reason, left))
        else:
            changed.append(OutcomeRow(outcome.fetch_id, Outcome.REJECTED, "value_misfit", 0))
    return tuple(changed)
