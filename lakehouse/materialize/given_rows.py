"""Rows that a person gives for days, in place of what their pages gave: judged, and the books that follow from them.

Every row still leads back to a fetch of its day. A page whose rows were taken out is rejected as `taken_out`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse.clean.dedup import content_hash as hash_of_values
from lakehouse.clean.rows import reject_of
from lakehouse.errors import ConfigError, DataError
from lakehouse.lake import Lake
from lakehouse.materialize.books import check_books
from lakehouse.materialize.clean import OUTCOMES, REJECTS
from lakehouse.materialize.days import dataset_of, record_partition
from lakehouse.materialize.fixed_tables import record_table
from lakehouse.materialize.frames import outcome_row, reject_row
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.model.record import Action, CleanDay, Outcome, OutcomeRow, Reject
from lakehouse.tables.content import content_hash
from lakehouse.tables.differences import compare_rows
from lakehouse.tables.fixes import PartitionState, read_rows
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.row_files import FileRows, Row, read_rows_file

TAKEN_OUT = "taken_out"
HASH = "content_hash"
RECORD_KEY = ("fetch_id", "url_fp")


@dataclass(frozen=True, slots=True)
class GivenRows:
    """The rows of one day; `checksum` is their content hash."""

    frame: pa.Table
    checksum: str


def read_given_rows(lake: Lake, days: Sequence[SourceDay], path: Path) -> dict[SourceDay, GivenRows]:
    """The rows of a file by day; each of `days` gets an entry, without rows where the file has none.

    `content_hash` may be missing; it is made anew for rows whose values differ from those of now. Raises ConfigError
    for a file that cannot be read and DataError for a row that fits no day, no fetch or not its schema.
    """
    datasets = {(dataset_of(lake, day), record_partition(lake, day).schema_version) for day in days}
    if len(datasets) != 1:
        raise ConfigError("a file replaces days of one source in one schema version; give one --source")
    spec = lake.catalog.schema(*datasets.pop())
    rows = read_rows_file(path, spec, optional=frozenset({HASH}))
    known = {record_partition(lake, day): day for day in days}
    fetches = _fetches(lake, list(known))
    current = _rows_now(lake, days)
    own = [field.name for field in spec.fields]
    found: dict[SourceDay, list[Row]] = {day: [] for day in days}
    seen: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows.rows):
        place = Partition(row["source"], row["dt"], row["schema_version"])
        _check_place(rows, number, place, known)
        if row["fetch_id"] not in fetches[known[place]]:
            rows.refuse(number, "fetch_id", f"a fetch of {place.day.key} that was cleaned", repr(row["fetch_id"]))
        values = {name: row[name] for name in own}
        hashed = _hash(values, current.get((place, *(row[name] for name in RECORD_KEY)), []))
        if row.get(HASH, hashed) != hashed:
            rows.refuse(number, HASH, f"{hashed!r}, or no such field", repr(row[HASH]))
        first = seen.setdefault((place, row["canonical_fp"], hashed), number)
        if first != number:
            rows.refuse(number, "canonical_fp", f"no second row like {rows.place(first)}", "the same page and content")
        found[known[place]].append({**row, HASH: hashed})
    frames = {day: to_arrow(found[day], spec) for day in days}
    return {day: GivenRows(frame, content_hash(frame)) for day, frame in frames.items()}


def _check_place(rows: FileRows, number: int, place: Partition, known: Mapping[Partition, SourceDay]) -> None:
    for name in ("source", "dt", "schema_version"):
        wanted = {getattr(one, name) for one in known}
        if getattr(place, name) not in wanted:
            rows.refuse(number, name, " or ".join(str(one) for one in sorted(wanted)[:3]), str(getattr(place, name)))


def _fetches(lake: Lake, partitions: Sequence[Partition]) -> dict[SourceDay, set[str]]:
    found: dict[SourceDay, set[str]] = {one.day: set() for one in partitions}
    for row in lake.committer.scan(OUTCOMES, partitions, ["source", "dt", "fetch_id"]).to_pylist():
        found[SourceDay(row["source"], row["dt"])].add(row["fetch_id"])
    return found


def _rows_now(lake: Lake, days: Sequence[SourceDay]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of now by partition and key."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    partitions = [record_partition(lake, day) for day in days]
    for row in lake.committer.scan(record_table(lake, days[0]), partitions).to_pylist():
        place = Partition(row["source"], row["dt"], row["schema_version"])
        found.setdefault((place, *(row[name] for name in RECORD_KEY)), []).append(row)
    return found


def _hash(values: Row, rows: Sequence[Row]) -> str:
    same = [row for row in rows if all(row.get(name) == value for name, value in values.items())]
    return str(same[0][HASH]) if same else hash_of_values(values)


def given_frames(
    lake: Lake, day: SourceDay, given: GivenRows, before: Mapping[str, PartitionState], reason: str
) -> dict[str, pa.Table]:
    """What each clean table is to hold, in the order of commits: the given rows, and books as they follow from before.

    Raises DataError for a day that was not cleaned in this schema version, InvariantError for books that don't balance.
    """
    partition, table = record_partition(lake, day), record_table(lake, day)
    frames = {name: read_rows(lake.committer, before[name], day) for name in (REJECTS, OUTCOMES, table)}
    entered = [(one["fetch_id"], one["outcome"], one["reason"], one["rows_out"]) for one in _rows(frames[OUTCOMES])]
    old = [OutcomeRow(fetch_id, Outcome(what), why, rows) for fetch_id, what, why, rows in entered]
    if not old:
        raise DataError(f"{day.key} was not cleaned as version {partition.schema_version} yet; materialize it first")
    counts = Counter(given.frame.column("fetch_id").to_pylist())
    outcomes = tuple(_outcome(one, counts[one.fetch_id]) for one in old)
    revived = {one.fetch_id for one in old if one.outcome is not Outcome.CLEAN and counts[one.fetch_id]}
    removed = compare_rows(table, frames[table], given.frame).removed
    taken = tuple(reject_of(row, "fix", Action.REJECT, TAKEN_OUT, reason) for row in removed)
    rejects = [row for row in _rows(frames[REJECTS]) if row["fetch_id"] not in revived]
    check_books(CleanDay(day.source, day.dt, tuple(_rows(given.frame)), taken, outcomes), [o.fetch_id for o in old])
    return {
        REJECTS: to_arrow([*rejects, *_reject_rows(taken, partition)], lake.catalog.table_schema(REJECTS, None)),
        OUTCOMES: to_arrow([outcome_row(o, partition) for o in outcomes], lake.catalog.table_schema(OUTCOMES, None)),
        table: given.frame,
    }


def _outcome(before: OutcomeRow, rows: int) -> OutcomeRow:
    if rows:
        return OutcomeRow(before.fetch_id, Outcome.CLEAN, None, rows)
    if before.outcome is Outcome.CLEAN:
        return OutcomeRow(before.fetch_id, Outcome.REJECTED, TAKEN_OUT, 0)
    return before


def _reject_rows(rejects: Sequence[Reject], partition: Partition) -> list[Row]:
    return [reject_row(one, partition) for one in rejects]


def _rows(frame: pa.Table) -> list[Row]:
    return list(frame.to_pylist())
