"""Branches that show a table with some partitions as they once were, for engines that read a named version.

A branch is one table snapshot beside the current one: the partitions hold copies of their earlier files, all others
what they hold now. Upkeep drops it after its age. Nothing is ever written to it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AssertRefSnapshotId, SetSnapshotRefUpdate, UpdatesAndRequirements

from lakehouse.errors import ConflictError
from lakehouse.model.partition import Partition
from lakehouse.tables.current import check_current, write_current
from lakehouse.tables.producer import ChangeFiles, LiveFiles, OneChange, live_files, swap
from lakehouse.tables.registry import versions_of
from lakehouse.tables.restore import copy_files
from lakehouse.tables.split import Key, key_of
from lakehouse.tables.tags import change_refs

if TYPE_CHECKING:
    from lakehouse.tables.committer import Committer

MAIN = "main"
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a table; `changed` says whether this call made or dropped it."""

    table: str
    name: str
    changed: bool


@dataclass(frozen=True, slots=True)
class EarlierFiles:
    """A partition and the data files that it is to hold on a branch."""

    partition: Partition
    files: Sequence[str]


class BranchFiles(ChangeFiles):
    """A table snapshot upon the current one that only a new branch names; main stays where it is."""

    branch: SetSnapshotRefUpdate

    def _commit(self) -> UpdatesAndRequirements:
        updates, requirements = super()._commit()
        named = tuple(self.branch if isinstance(one, SetSnapshotRefUpdate) else one for one in updates)
        return named, (*requirements, AssertRefSnapshotId(ref=self.branch.ref_name, snapshot_id=None))


def make_branch(
    committer: Committer, table: str, name: str, earlier: Iterable[EarlierFiles], *, age: timedelta
) -> Branch:
    """Make a branch on which some partitions hold earlier files; one that is there already is left as it is.

    A table that never had rows gets none. Raises UnknownNameError for a file that is gone, ConflictError where a
    partition carries delete files or another engine keeps changing the table.
    """
    specs = versions_of(committer.catalog, table)
    wanted = {key_of(one.partition, specs[-1]): sorted(one.files) for one in earlier}
    copies: dict[Key, list[DataFile]] = {}
    with committer.locks.hold(table):
        for _ in range(ATTEMPTS):
            loaded = committer.table(table)
            check_current(loaded)
            if name in loaded.metadata.refs or loaded.metadata.current_snapshot_id is None:
                return Branch(table, name, changed=False)
            live = live_files(loaded, list(wanted))
            # What a partition still holds needs no copy.
            other = {key for key, files in wanted.items() if files != sorted(one.file_path for one in live.files[key])}
            for key in other - copies.keys():
                copies[key] = copy_files(loaded, specs, key, wanted[key])
            added = [one for key in other for one in copies[key]]
            removed = [one for key in other for one in live.files[key]]
            try:
                _commit(loaded, live, added, removed, name=name, age=age)
            except CommitFailedException:
                continue
            write_current(loaded)
            return Branch(table, name, changed=True)
    raise ConflictError(
        f"branch {name} of {table}: another engine changed the table {ATTEMPTS} times in a row; run it again"
    )


def _commit(
    table: Table, live: LiveFiles, added: list[DataFile], removed: list[DataFile], *, name: str, age: timedelta
) -> None:
    change = OneChange(table)
    producer = BranchFiles(Operation.OVERWRITE if removed else Operation.APPEND, change, live, {})
    for data_file in added:
        producer.append_data_file(data_file)
    for data_file in removed:
        producer.delete_data_file(data_file)
    producer.branch = SetSnapshotRefUpdate(
        ref_name=name,
        type=SnapshotRefType.BRANCH,
        snapshot_id=producer.snapshot_id,
        max_ref_age_ms=int(age.total_seconds() * 1000),
        max_snapshot_age_ms=None,
        min_snapshots_to_keep=None,
    )
    swap(table, change, producer)


def drop_branch(committer: Committer, table: str, name: str) -> Branch:
    """Drop a branch; what only it needed goes with the next upkeep."""
    with committer.locks.hold(table):
        refs = committer.table(table).metadata.refs
        if name == MAIN or name not in refs or refs[name].snapshot_ref_type != "branch":
            return Branch(table, name, changed=False)
        change_refs(committer, table, lambda found: found.manage_snapshots().remove_branch(name))
        return Branch(table, name, changed=True)


def branches_to_drop(metadata: TableMetadata, now: datetime) -> set[str]:
    """Branches older than the age they were made with; one without an age stays until somebody drops it."""
    made = {one.snapshot_id: one.timestamp_ms for one in metadata.snapshots}
    return {
        name
        for name, ref in metadata.refs.items()
        if ref.snapshot_ref_type == "branch"
        and name != MAIN
        and ref.max_ref_age_ms is not None
        and made.get(ref.snapshot_id, 0) + ref.max_ref_age_ms < now.timestamp() * 1000
    }
