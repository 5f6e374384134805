"""Compaction: the same rows in fewer files, proven by count and content hash before the commit.

A change like append and replace, which the committer commits as one table snapshot. Old files stay for an observation
period: they are written down with the day from which they may go. Not here: which files are put together (`layout`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And, BooleanExpression, GreaterThanOrEqual, IsNull, LessThan, Or
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table

from lakehouse.errors import InvariantError
from lakehouse.tables.changes import FileFacts, Plan
from lakehouse.tables.content import MODULUS, content_hash
from lakehouse.tables.layout import Layout, LayoutRules, Piece, Span, plan_layout, time_column, time_field, window_of
from lakehouse.tables.names import FileName, How, fingerprint_ids, parse_name
from lakehouse.tables.producer import LiveFiles
from lakehouse.tables.scan import ALL_ROWS, read_tasks
from lakehouse.tables.split import Key, Slice, file_frames, split_frame
from lakehouse.tables.writer import NewFile, write_files

HOUR_MICROSECONDS = 3_600_000_000
Announce = Callable[[Table, Sequence[DataFile]], None]


class Compact:
    """Put small files of partitions together; `announce` is told which files go before anything is committed."""

    operation = "compact"

    def __init__(self, keys: Sequence[Key], rules: LayoutRules, facts: FileFacts, announce: Announce) -> None:
        self.keys = keys
        self._rules = rules
        self._facts = facts
        self._announce = announce
        self._files: dict[frozenset[str], list[DataFile]] = {}
        self._written: list[DataFile] = []

    def plan(self, table: Table, live: LiveFiles) -> Plan:
        """Write what the small files of each partition hold into fewer; partitions that would gain nothing stay."""
        plan, fresh = Plan(), False
        for key in self.keys:
            layout = plan_layout(live.files[key], key, time_field(table, self._facts.specs[-1]), self._rules)
            if not layout.pieces:
                continue
            if layout.paths not in self._files:
                self._files[layout.paths] = self._rewrite(table, key, layout)
                fresh = True
            added = self._files[layout.paths]
            if layout.clustered or len(added) < len(layout.files):
                plan.added.extend(added)
                plan.removed.extend(layout.files)
        if fresh and plan.removed:
            self._announce(table, plan.removed)
        return plan

    def fingerprint(self) -> Mapping[str, str]:
        """How many files the rows were put into."""
        return {"lakehouse.compacted-files": str(sum(len(one) for one in self._files))}

    def written(self) -> list[DataFile]:
        """All data files that any plan wrote."""
        return self._written

    def _rewrite(self, table: Table, key: Key, layout: Layout) -> list[DataFile]:
        """The files that hold the rows of a partition's small files, read back and compared."""
        known = [name for one in layout.files if (name := parse_name(one.file_path)) is not None]
        fingerprint = fingerprint_ids({name.fingerprint for name in known})[1]
        made: list[DataFile] = []
        for piece in layout.pieces:
            new = []
            for frame in self._frames(table, key, piece):
                how = How.HOUR if layout.clustered else How.COMPACT
                new.append(NewFile(key, frame, FileName(how, fingerprint, content_hash(frame)).new()))
            written = write_files(table, new)
            self._written.extend(written)
            made.extend(written)
        self._check(table, key, layout.files, made)
        return made

    def _frames(self, table: Table, key: Key, piece: Piece) -> Iterator[pa.Table]:
        """The rows of a piece, sorted, one frame a file."""
        column = time_column(self._facts.specs[-1])
        tasks = [FileScanTask(one) for one in piece.files]
        names = [one.name for one in table.schema().fields]
        rows = read_tasks(table, self._facts.specs, tasks, names, _filter(piece.span, column or ""))
        for part in split_frame(rows, self._facts.specs[-1]):
            if part.key != key:
                raise InvariantError(f"a file of {_place(table, key)} holds rows of {part.key}; nothing was changed")
            frames = _by_hour(part.frame, column, key) if piece.hours and column else [part.frame]
            for frame in frames:
                yield from file_frames(Slice(key, frame, 0))

    def _check(self, table: Table, key: Key, old: Sequence[DataFile], new: Sequence[DataFile]) -> None:
        """Rows and content hash of what goes and, read back from the store, of what comes."""
        before = sum(one.record_count for one in old), self._facts.sum_of(table, old)
        sums = [int(content_hash(self._facts.rows(table, one)), 16) for one in new]
        after = sum(one.record_count for one in new), sum(sums) % MODULUS
        if before != after:
            raise InvariantError(
                f"compaction of {_place(table, key)} would not keep the rows: {before[0]} rows with hash "
                f"{before[1]:032x} became {after[0]} with {after[1]:032x}. Nothing was changed; "
                "`lakehouse verify` shows whether all files can be read"
            )


def _place(table: Table, key: Key) -> str:
    return f"{'/'.join(map(str, key)) or 'all rows'} of {'.'.join(table.name())}"


def _filter(span: Span | None, column: str) -> BooleanExpression:
    if span is None:
        return ALL_ROWS
    parts: list[BooleanExpression] = []
    if span.start is not None:
        parts.append(GreaterThanOrEqual(term=column, value=span.start.isoformat()))
    if span.end is not None:
        parts.append(LessThan(term=column, value=span.end.isoformat()))
    inside = And(*parts) if len(parts) == 2 else parts[0] if parts else ALL_ROWS
    return Or(IsNull(term=column), inside) if span.nulls and parts else inside


def _by_hour(frame: pa.Table, column: str, key: Key) -> Iterator[pa.Table]:
    """The frame cut into hours; rows before and after the day's surroundings, and those without a time, lie apart."""
    first, last = (_hour_number(instant) for instant in window_of(key))
    hours = pc.divide(frame.column(column).cast(pa.int64()), HOUR_MICROSECONDS)
    hours = pc.max_element_wise(pc.min_element_wise(hours, last, skip_nulls=False), first - 1, skip_nulls=False)
    for value in pc.unique(hours).to_pylist():
        yield frame.filter(pc.is_null(hours) if value is None else pc.equal(hours, value))


def _hour_number(instant: datetime) -> int:
    return int(instant.timestamp()) // 3600
