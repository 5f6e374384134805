"""What a commit wants to do, planned anew each time the table has moved: append, replace, restore.

A plan names the data files to add and to remove. Files that a plan needs are written once and kept for the next plan,
so planning under the lock is cheap where nothing relevant has changed since the files were written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import StringType

from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.content import MODULUS, content_hash
from lakehouse.tables.names import FileName, How, fingerprint_ids, parse_name
from lakehouse.tables.producer import LiveFiles
from lakehouse.tables.restore import copy_files
from lakehouse.tables.scan import read_file
from lakehouse.tables.split import Key, Slice, file_frames
from lakehouse.tables.writer import NewFile, write_files

SUMMARY_IDS = 32
FOLD_AT = 64
KNOWN_FILES = 4096

Where = TypeVar("Where")
Place = tuple[Key, frozenset[str], tuple[str, ...]]
"""Where appended rows go: the partition, the ids it holds already, and the files that are folded into the new one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Data files to add and to remove."""

    added: list[DataFile] = field(default_factory=list)
    removed: list[DataFile] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.added or self.removed)


class Change(Protocol):
    """A change of some partitions of one table."""

    operation: str
    keys: Sequence[Key]

    def plan(self, table: Table, live: LiveFiles) -> Plan:
        """What is to be added and removed, given what the partitions hold now; writes what is to be added."""

    def fingerprint(self) -> Mapping[str, str]:
        """What the snapshot summary says of the change."""

    def written(self) -> list[DataFile]:
        """All data files that any plan wrote."""


class FileFacts:
    """What data files hold, known from their names where this project wrote them, else read once."""

    def __init__(self, specs: tuple[SchemaSpec, ...]) -> None:
        self.specs = specs
        self._checksums: LRUCache[str, str] = LRUCache(KNOWN_FILES)
        self._ids: LRUCache[tuple[str, str], frozenset[str]] = LRUCache(KNOWN_FILES)

    def checksum(self, table: Table, data_file: DataFile) -> str:
        """The content hash of the file's rows."""
        path = data_file.file_path
        name = parse_name(path)
        found = self._checksums.get(path) if name is None else name.checksum
        if found is None:
            found = content_hash(self.rows(table, data_file))
            self._checksums[path] = found
        return found

    def rows(self, table: Table, data_file: DataFile) -> pa.Table:
        """All rows of the file."""
        return read_file(table, self.specs, data_file, [one.name for one in table.schema().fields])

    def ids(self, table: Table, data_file: DataFile, column: str) -> frozenset[str]:
        """The distinct values of an id column in the file."""
        name = parse_name(data_file.file_path)
        if name is not None and name.how is How.BATCH:
            return frozenset({name.fingerprint})
        key = (data_file.file_path, column)
        found = self._ids.get(key)
        if found is None:
            found = frozenset(pc.unique(read_file(table, self.specs, data_file, [column]).column(column)).to_pylist())
            self._ids[key] = found
        return found

    def sum_of(self, table: Table, files: Collection[DataFile]) -> int:
        """The content hash of some files together, as a number."""
        return sum(int(self.checksum(table, one), 16) for one in files) % MODULUS


class Append:
    """Add the rows whose id their partition does not hold yet; all rows where no id column is given."""

    operation = "append"

    def __init__(self, slices: Sequence[Slice], id_column: str | None, facts: FileFacts) -> None:
        self.keys: Sequence[Key] = [one.key for one in slices]
        self._slices = slices
        self._column = id_column
        self._facts = facts
        self._ids = {one.key: _ids_of(one, id_column) for one in slices}
        self._files: dict[Place, list[DataFile]] = {}
        self._written: list[DataFile] = []

    def plan(self, table: Table, live: LiveFiles) -> Plan:
        """Write and add what is new; where a table without partitions has many small files, fold them into one."""
        wanted: dict[Place, Slice] = {}
        for part in self._slices:
            files = live.files[part.key]
            present = self._present(table, files, self._ids[part.key])
            if present == self._ids[part.key] and present:
                continue
            fold = files if part.key == () and len(files) >= FOLD_AT else []
            wanted[part.key, present, tuple(one.file_path for one in fold)] = part
        missing = {place: part for place, part in wanted.items() if place not in self._files}
        parts = {place: self._rows(table, live, place, part) for place, part in missing.items()}
        names = {place: FileName(*fingerprint_ids(_ids_of(one, self._column)), "") for place, one in parts.items()}
        _write_parts(table, parts, names, self._files, self._written)
        folded = [one for place in wanted if place[2] for one in live.files[place[0]]]
        return Plan([one for place in wanted for one in self._files[place]], folded)

    def fingerprint(self) -> Mapping[str, str]:
        """All ids as one fingerprint, and the ids themselves where they are few."""
        ids = sorted(frozenset[str]().union(*self._ids.values()))
        summary = {"lakehouse.fingerprint": fingerprint_ids(ids)[1]}
        return summary | ({"lakehouse.batches": ",".join(ids)} if len(ids) <= SUMMARY_IDS else {})

    def written(self) -> list[DataFile]:
        """All data files that any plan wrote."""
        return self._written

    def _present(self, table: Table, files: Sequence[DataFile], ids: frozenset[str]) -> frozenset[str]:
        found: set[str] = set()
        if self._column is None:
            return frozenset()
        for one in files:
            if ids <= found:
                break
            if _may_hold(one, table, self._column, ids):
                found |= ids & self._facts.ids(table, one, self._column)
        return frozenset(found)

    def _rows(self, table: Table, live: LiveFiles, place: Place, part: Slice) -> Slice:
        """The rows to write at a place: those not present yet, and those of the files that are folded."""
        _, present, fold = place
        if not present and not fold:
            return part
        frame = part.frame
        if present:
            known = pa.array(sorted(present), pa.string())
            frame = frame.filter(pc.invert(pc.is_in(frame.column(self._column), known)))
        if fold:
            older = [self._facts.rows(table, one) for one in live.files[part.key]]
            frame = pa.concat_tables([*older, frame], promote_options="default")
        return Slice(part.key, frame, int(content_hash(frame), 16))


class Replace:
    """Make partitions hold exactly these rows."""

    operation = "replace"

    def __init__(self, slices: Sequence[Slice], keys: Sequence[Key], facts: FileFacts) -> None:
        self.keys = keys
        self._slices = {one.key: one for one in slices}
        self._facts = facts
        self._files: dict[Key, list[DataFile]] = {}
        self._written: list[DataFile] = []

    def plan(self, table: Table, live: LiveFiles) -> Plan:
        """Replace the partitions whose content differs."""
        different = [key for key in self.keys if self._differs(table, live.files[key], self._slices.get(key))]
        missing = {key: self._slices[key] for key in different if key in self._slices and key not in self._files}
        names = {key: FileName(How.STATE, f"{part.checksum:032x}", "") for key, part in missing.items()}
        _write_parts(table, missing, names, self._files, self._written)
        return Plan(
            [one for key in different for one in self._files.get(key, [])],
            [one for key in different for one in live.files[key]],
        )

    def fingerprint(self) -> Mapping[str, str]:
        """The content hash of all rows."""
        return {"lakehouse.fingerprint": f"{sum(one.checksum for one in self._slices.values()) % MODULUS:032x}"}

    def written(self) -> list[DataFile]:
        """All data files that any plan wrote."""
        return self._written

    def _differs(self, table: Table, files: Sequence[DataFile], part: Slice | None) -> bool:
        rows, checksum = (0, 0) if part is None else (part.frame.num_rows, part.checksum)
        if rows != sum(one.record_count for one in files):
            return True
        return checksum != self._facts.sum_of(table, files)


class Restore:
    """Make a partition hold the rows of earlier data files, copied to new names."""

    operation = "restore"

    def __init__(self, key: Key, paths: Sequence[str], facts: FileFacts) -> None:
        self.keys: Sequence[Key] = [key]
        self._key = key
        self._paths = paths
        self._facts = facts
        self._copies: list[DataFile] | None = None

    def plan(self, table: Table, live: LiveFiles) -> Plan:
        """Copy the files, then replace what the partition holds, unless it holds the same rows."""
        if self._copies is None:
            self._copies = copy_files(table, self._facts.specs, self._key, self._paths)
        now = live.files[self._key]
        same_rows = sum(one.record_count for one in now) == sum(one.record_count for one in self._copies)
        if same_rows and self._facts.sum_of(table, now) == self._facts.sum_of(table, self._copies):
            return Plan()
        return Plan(self._copies, now)

    def fingerprint(self) -> Mapping[str, str]:
        """How many files were restored."""
        return {"lakehouse.restored-files": str(len(self._paths))}

    def written(self) -> list[DataFile]:
        """The copies."""
        return self._copies or []


def _write_parts(
    table: Table,
    parts: Mapping[Where, Slice],
    names: Mapping[Where, FileName],
    files: dict[Where, list[DataFile]],
    written: list[DataFile],
) -> None:
    """Write each part under its name, and note the data files by place."""
    places, new = [], []
    for place, part in parts.items():
        frames = file_frames(part)
        for frame in frames:
            checksum = f"{part.checksum:032x}" if len(frames) == 1 else content_hash(frame)
            new.append(NewFile(part.key, frame, replace(names[place], checksum=checksum).new()))
            places.append(place)
    for place, data_file in zip(places, write_files(table, new), strict=True):
        files.setdefault(place, []).append(data_file)
        written.append(data_file)


def _ids_of(part: Slice, column: str | None) -> frozenset[str]:
    return frozenset() if column is None else frozenset(pc.unique(part.frame.column(column)).to_pylist())


def _may_hold(data_file: DataFile, table: Table, column: str, ids: frozenset[str]) -> bool:
    """Whether the file's bounds leave room for one of the ids."""
    field = table.schema().find_field(column)
    lower = (data_file.lower_bounds or {}).get(field.field_id)
    upper = (data_file.upper_bounds or {}).get(field.field_id)
    if lower is None or upper is None:
        return True
    first, last = (from_bytes(StringType(), bound) for bound in (lower, upper))
    return any(first <= one <= last for one in ids)
