"""Tables whose place in the Iceberg catalog was lost, or is that of an old backup, found again by `CURRENT` marks.

A metadata file that lost a swap looks like one that won. `CURRENT` names the last one that is known to have won; every
commit that a caller was told of is in it. What nothing decides is named and left to a person.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from pyarrow.fs import FileInfo, FileSelector, FileType
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.io import FileIO
from pyiceberg.table import StaticTable

from lakehouse.errors import ConflictError, UnknownNameError
from lakehouse.tables.current import file_name, metadata_version, write_current
from lakehouse.tables.filesystem import GZIP, read_bytes, read_text, resolve
from lakehouse.tables.iceberg import LakehouseCatalog
from lakehouse.tables.locks import TableLocks

METADATA_FILE = re.compile(r"[0-9]+-[0-9a-f-]{36}(\.gz)?\.metadata\.json")


class Act(StrEnum):
    """What restoring does with a table."""

    NOTHING = "nothing"
    REGISTER = "register"
    FORWARD = "move forward"
    MARK = "write CURRENT"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One table: what the catalog says, what its folder says, and what follows.

    `catalog` and `chosen` are names of metadata files; `others` could be meant as well.
    """

    table: str
    act: Act
    why: str
    catalog: str | None
    chosen: str | None
    others: tuple[str, ...] = field(default=())


def plan_recovery(iceberg: LakehouseCatalog, picks: Mapping[str, str] | None = None) -> list[TablePlan]:
    """What restoring would do with each table of the catalog and of the warehouse, by name; nothing changes.

    `picks` names a metadata file for tables where a person decides. Raises UnknownNameError for a pick that is not
    there, OSError where the store does not answer.
    """
    picks = picks or {}
    known = iceberg.locations()
    found = dict(_table_folders(iceberg))
    strangers = sorted(set(picks) - set(found))
    if strangers:
        raise UnknownNameError(f"--pick names {strangers[0]}, which has no folder in the warehouse")
    return [
        _plan(iceberg, table, known.get(table), found.get(table), picks.get(table))
        for table in sorted({*known, *found})
    ]


def recover(iceberg: LakehouseCatalog, locks: TableLocks, plan: TablePlan) -> None:
    """Do what a plan says, under the table's lock; raises ConflictError where the table has moved since."""
    if plan.act in {Act.NOTHING, Act.UNDECIDED} or plan.chosen is None:
        return
    with locks.hold(plan.table):
        now = iceberg.locations().get(plan.table)
        if (None if now is None else file_name(now)) != plan.catalog:
            raise ConflictError(f"{plan.table} has moved since the plan was made; nothing was changed: plan again")
        location = f"{_folder(iceberg, plan.table)}/metadata/{plan.chosen}"
        if now is None:
            with suppress(NamespaceAlreadyExistsError):
                iceberg.create_namespace(plan.table.partition(".")[0])
            iceberg.register_table(plan.table, location)
        elif plan.act is Act.FORWARD:
            iceberg.point(plan.table, now, location)
        write_current(iceberg.load_table(plan.table))


def require_no_lost_table(iceberg: LakehouseCatalog, table: str) -> None:
    """Refuse to make a table anew where its folder holds one that the catalog has lost; raises ConflictError."""
    folder = _folder(iceberg, table)
    if read_text(iceberg.file_io(folder), f"{folder}/metadata/CURRENT") is not None:
        raise ConflictError(
            f"{table} is not in the Iceberg catalog, but {folder} holds its data: the catalog's database was probably "
            "lost. Run `lakehouse restore` first; a new table here would hide what was collected. Nothing was changed"
        )


def _plan(
    iceberg: LakehouseCatalog, table: str, location: str | None, folder: str | None, pick: str | None
) -> TablePlan:
    known = None if location is None else file_name(location)
    if folder is None:
        return TablePlan(
            table, Act.UNDECIDED, "the catalog names it, but its folder has no metadata files", known, None
        )
    io = iceberg.file_io(folder)
    names = sorted(_names(io, folder), key=lambda name: (metadata_version(name), name))
    mark = (read_text(io, f"{folder}/metadata/CURRENT") or "").strip() or None
    if pick is not None:
        if pick not in names:
            raise UnknownNameError(f"{table} has no metadata file {pick}; it has {', '.join(names[-3:])}")
        return _chosen(table, known, pick, "picked", names)
    if mark is None:
        why = "it has no CURRENT mark, so its newest metadata file may belong to a commit that was lost"
        act = Act.NOTHING if known in names else Act.UNDECIDED
        return TablePlan(
            table, act, "as the catalog has it" if known in names else why, known, known, tuple(names[-3:])
        )
    if mark not in names:
        return TablePlan(table, Act.UNDECIDED, f"CURRENT names {mark}, which is gone", known, None, tuple(names[-3:]))
    if known in names and known != mark and mark in _log(io, f"{folder}/metadata/{known}"):
        return TablePlan(table, Act.MARK, "the catalog is right and CURRENT a commit behind", known, known)
    return _chosen(table, known, mark, "CURRENT", names)


def _chosen(table: str, known: str | None, chosen: str, by: str, names: list[str]) -> TablePlan:
    newer = tuple(n for n in names if metadata_version(n) >= metadata_version(chosen) and n != chosen)
    if known is None:
        return TablePlan(table, Act.REGISTER, f"not in the catalog; {by}", None, chosen, newer)
    if known == chosen:
        return TablePlan(table, Act.NOTHING, "as the catalog has it", known, chosen)
    if by != "picked" and metadata_version(known) > metadata_version(chosen):
        why = f"the catalog stands at {known}, which does not come from {chosen}, the one that CURRENT names"
        return TablePlan(table, Act.UNDECIDED, why, known, None, (known, chosen))
    return TablePlan(table, Act.FORWARD, f"the catalog is behind; {by}", known, chosen, newer)


def _table_folders(iceberg: LakehouseCatalog) -> Iterator[tuple[str, str]]:
    """Every table folder below the warehouse that has metadata files of a table, by `namespace.name`."""
    warehouse = iceberg.properties["warehouse"].rstrip("/")
    io = iceberg.file_io(warehouse)
    for namespace in _folders(io, warehouse):
        for name in _folders(io, f"{warehouse}/{namespace}"):
            folder = f"{warehouse}/{namespace}/{name}"
            if any(_is_table(io, folder, one) for one in _names(io, folder)[:1]):
                yield f"{namespace}.{name}", folder


def _is_table(io: FileIO, folder: str, name: str) -> bool:
    """Views have metadata files too."""
    data = read_bytes(io, f"{folder}/metadata/{name}") or b""
    return b'"table-uuid"' in (gzip.decompress(data) if data.startswith(GZIP) else data)


def _folder(iceberg: LakehouseCatalog, table: str) -> str:
    namespace, _, name = table.partition(".")
    return f"{iceberg.properties['warehouse'].rstrip('/')}/{namespace}/{name}"


def _log(io: FileIO, location: str) -> set[str]:
    """Names of the metadata files that one says came before it."""
    metadata = StaticTable.from_metadata(location, dict(io.properties)).metadata
    return {file_name(entry.metadata_file) for entry in metadata.metadata_log}


def _names(io: FileIO, folder: str) -> list[str]:
    return [info.base_name for info in _entries(io, f"{folder}/metadata") if METADATA_FILE.fullmatch(info.base_name)]


def _folders(io: FileIO, location: str) -> list[str]:
    return sorted(info.base_name for info in _entries(io, location) if info.type is FileType.Directory)


def _entries(io: FileIO, location: str) -> list[FileInfo]:
    files, path = resolve(io, location)
    found: list[FileInfo] = files.get_file_info(FileSelector(path, recursive=False, allow_not_found=True))
    return found
