"""How the files of a partition should lie: which are put together, and which rows go into a file of their own hour.

Pure judgement from what manifests say of files: sizes and the bounds of the time column. Not here: reading or writing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import TimestamptzType

from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.columns import sort_keys
from lakehouse.tables.names import How, parse_name
from lakehouse.tables.split import Key

CLUSTER_COLUMNS = ("collect_time", "publish_time")
HOUR = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Known = tuple[datetime | None, datetime | None]
"""The least and the greatest time in a file; None where the manifest does not say or all are null."""


@dataclass(frozen=True, slots=True)
class LayoutRules:
    """When files are put together; sizes in bytes of stored files.

    A partition is worked on from `min_files` small files on; its files are read at most `piece_bytes` at a time. From
    `cluster_bytes` or `cluster_files` on it is clustered: a file for each hour of the table's time column.
    """

    min_files: int = 8
    small_bytes: int = 8 << 20
    piece_bytes: int = 32 << 20
    cluster_bytes: int = 5_000_000_000
    cluster_files: int = 500


@dataclass(frozen=True, slots=True)
class Span:
    """Instants from `start` to before `end`; None is open. `nulls` says that rows without a time belong to it."""

    start: datetime | None = None
    end: datetime | None = None
    nulls: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that are read together: those of `files`, within `span` where it is given. `hours` cuts them by hour."""

    files: tuple[DataFile, ...]
    span: Span | None = None
    hours: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """What is to be done to one partition: nothing where there are no pieces. `files` are those that go."""

    files: tuple[DataFile, ...] = ()
    pieces: tuple[Piece, ...] = ()
    clustered: bool = False

    @property
    def paths(self) -> frozenset[str]:
        """Where the files that go lie."""
        return frozenset(one.file_path for one in self.files)


def time_column(spec: SchemaSpec) -> str | None:
    """The column whose hours a table is clustered by; None where it has none that it is sorted by."""
    names = [name for name, _ in sort_keys(spec)]
    return next((name for name in CLUSTER_COLUMNS if name in names and spec.partitioned == "source_dt_version"), None)


def time_field(table: Table, spec: SchemaSpec) -> int | None:
    """The field id of `time_column` in a table."""
    name = time_column(spec)
    return None if name is None else table.schema().find_field(name).field_id


def plan_layout(files: Sequence[DataFile], key: Key, column: int | None, rules: LayoutRules) -> Layout:
    """How the files of a partition are put together; `column` is the field id of the time column."""
    if column is not None and (_is_big(files, rules) or any(_is_placed(one) for one in files)):
        return _plan_hours(files, key, column, rules)
    small = [one for one in files if one.file_size_in_bytes < rules.small_bytes]
    if len(small) < max(rules.min_files, 2):
        return Layout()
    pieces = tuple(Piece(tuple(some)) for some in _bins(small, rules.piece_bytes) if len(some) > 1)
    return Layout(tuple(one for piece in pieces for one in piece.files), pieces)


def window_of(key: Key) -> tuple[datetime, datetime]:
    """Between which instants rows get files by the hour: the day, whatever its zone, and what surrounds it."""
    day: date = key[1]
    start = datetime.combine(day, time(), UTC) - timedelta(days=1)
    return start, start + timedelta(days=3)


def _is_big(files: Sequence[DataFile], rules: LayoutRules) -> bool:
    return len(files) >= rules.cluster_files or _bytes(files) > rules.cluster_bytes


def _is_placed(data_file: DataFile) -> bool:
    name = parse_name(data_file.file_path)
    return name is not None and name.how is How.HOUR


def _plan_hours(files: Sequence[DataFile], key: Key, column: int, rules: LayoutRules) -> Layout:
    """Files that came since the partition was clustered go into the hours of their rows, with what is small there."""
    loose = [one for one in files if not _is_placed(one)]
    small: dict[datetime | None, list[DataFile]] = {}
    for one in files:
        if _is_placed(one) and one.file_size_in_bytes < rules.small_bytes:
            small.setdefault(_hour_of(one, key, column), []).append(one)
    crowded = [some for some in small.values() if len(some) >= rules.min_files]
    many = len(loose) >= rules.min_files or _bytes(loose) >= rules.small_bytes
    if not many and not crowded:
        return Layout()
    if many:
        spans = [_bounds(one, column) for one in loose]
        touched = [
            some
            for some in small.values()
            if any(_overlap(span, _bounds(one, column)) for one in some for span in spans)
        ]
        crowded = [some for some in small.values() if some in crowded or some in touched]
    sources = (*(loose if many else ()), *(one for some in crowded for one in some))
    return Layout(sources, tuple(_cut(sources, key, column, rules)), clustered=True)


def _cut(files: Sequence[DataFile], key: Key, column: int, rules: LayoutRules) -> Iterator[Piece]:
    """Pieces of whole hours, none of them more to read than `piece_bytes` if an hour allows it."""
    if _bytes(files) <= rules.piece_bytes:
        yield Piece(tuple(files), hours=True)
        return
    bounds = [_bounds(one, column) for one in files]
    first, last = window_of(key)
    edges = {first + number * HOUR for number in range((last - first) // HOUR + 1)}
    edges |= {_floor(lower) for lower, _ in bounds if lower is not None}
    starts: list[datetime] = []
    waiting = 0.0
    for edge, following in pairwise(sorted(edges)):
        share = sum(_share(one, span, edge, following) for one, span in zip(files, bounds, strict=True))
        if waiting and waiting + share > rules.piece_bytes:
            starts.append(edge)
            waiting = 0.0
        waiting += share
    for start, end in pairwise([None, *starts, None]):
        span = Span(start, end, nulls=start is None)
        inside = [one for one, known in zip(files, bounds, strict=True) if _may_have(one, known, span, column)]
        if inside:
            yield Piece(tuple(inside), span, hours=True)


def _share(data_file: DataFile, span: Known, start: datetime, end: datetime) -> float:
    """About how many bytes of a file lie between two instants, its rows spread evenly over its bounds."""
    lower, upper = span
    if lower is None or upper is None:
        return 0.0
    inside = min(upper, end) - max(lower, start)
    if inside < timedelta():
        return 0.0
    return data_file.file_size_in_bytes * (inside / (upper - lower) if upper > lower else 1.0)


def _may_have(data_file: DataFile, known: Known, span: Span, column: int) -> bool:
    lower, upper = known
    if lower is None or upper is None:
        return True
    if span.nulls and (data_file.null_value_counts or {}).get(column) != 0:
        return True
    return (span.end is None or lower < span.end) and (span.start is None or upper >= span.start)


def _overlap(one: Known, other: Known) -> bool:
    if None in one or None in other:
        return True
    return bool(one[0] < other[1] + HOUR and other[0] < one[1] + HOUR)  # type: ignore[operator]


def _hour_of(data_file: DataFile, key: Key, column: int) -> datetime | None:
    """The hour that a file of a clustered partition holds; one instant for all that lies before, one for all after."""
    lower, _ = _bounds(data_file, column)
    first, last = window_of(key)
    return None if lower is None else min(max(_floor(lower), first - HOUR), last)


def _bounds(data_file: DataFile, column: int) -> Known:
    lower = (data_file.lower_bounds or {}).get(column)
    upper = (data_file.upper_bounds or {}).get(column)
    if lower is None or upper is None:
        return None, None
    return _instant(lower), _instant(upper)


def _instant(value: bytes) -> datetime:
    microseconds: Any = from_bytes(TimestamptzType(), value)
    return EPOCH + timedelta(microseconds=microseconds)


def _floor(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)


def _bytes(files: Iterable[DataFile]) -> int:
    return sum(one.file_size_in_bytes for one in files)


def _bins(files: Sequence[DataFile], most: int) -> list[list[DataFile]]:
    """Runs of files, in the order they came, whose bytes together stay within `most`."""
    bins: list[list[DataFile]] = [[]]
    for one in files:
        if bins[-1] and _bytes(bins[-1]) + one.file_size_in_bytes > most:
            bins.append([])
        bins[-1].append(one)
    return bins
