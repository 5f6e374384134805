"""Which table snapshots and tags an expiry drops, and the metadata commit that drops them.

Not here: locks, and what happens to the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import Field
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    ValidatableTableRequirement,
)

from lakehouse.tables.branches import branches_to_drop
from lakehouse.tables.tags import MOST_TAGS, day_tags_to_drop

KEEP_UNTAGGED = 50
KEEP_TAGS = MOST_TAGS


@dataclass(frozen=True, slots=True)
class Expiry:
    """What an expiry drops from a table's metadata, branches included, and how many table snapshots and tags stay."""

    table: str
    snapshots: tuple[int, ...]
    tags: tuple[str, ...]
    snapshots_left: int
    tags_left: int
    branches: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to drop."""
        return not (self.snapshots or self.tags or self.branches)


class RefsUnchanged(ValidatableTableRequirement):
    """Branches and tags are those that the expiry was planned with: a tag made meanwhile is never dropped with it."""

    type: Literal["assert-refs-unchanged"] = Field(default="assert-refs-unchanged")
    refs: dict[str, int]

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        """Raise CommitFailedException where they changed."""
        if base_metadata is None or _refs(base_metadata) != self.refs:
            raise CommitFailedException("branches or tags changed since the expiry was planned")


def plan_expiry(metadata: TableMetadata, table: str, *, keep_untagged: int, keep_tags: int, now: datetime) -> Expiry:
    """Old day tags, branches past their age, and all but the newest `keep_untagged` of the untagged table snapshots.

    Heads of branches that stay do so whatever their age, and count.
    """
    tags = {name for name, ref in metadata.refs.items() if ref.snapshot_ref_type == "tag"}
    dropped = day_tags_to_drop(tags, now, keep_tags)
    tagged = {metadata.refs[name].snapshot_id for name in tags - dropped}
    branches = branches_to_drop(metadata, now)
    standing = {name for name, ref in metadata.refs.items() if ref.snapshot_ref_type == "branch"} - branches
    heads = {metadata.refs[name].snapshot_id for name in standing} - tagged
    rest = [s for s in metadata.snapshots if s.snapshot_id not in tagged | heads]
    rest.sort(key=lambda s: (s.sequence_number or 0, s.timestamp_ms), reverse=True)
    expired = tuple(s.snapshot_id for s in rest[max(keep_untagged - len(heads), 0) :])
    left = len(metadata.snapshots) - len(expired)
    return Expiry(
        table, expired, tuple(sorted(dropped)), left, len(tags) - len(dropped), branches=tuple(sorted(branches))
    )


def commit_expiry(table: Table, plan: Expiry) -> None:
    """Drop what was planned in one metadata commit; raises CommitFailedException where the table's refs changed."""
    metadata = table.metadata
    gone = set(plan.snapshots)
    updates: list[Any] = [RemoveSnapshotRefUpdate(ref_name=name) for name in (*plan.tags, *plan.branches)]
    updates += [
        RemovePartitionStatisticsUpdate(snapshot_id=statistics.snapshot_id)
        for statistics in metadata.partition_statistics
        if statistics.snapshot_id in gone
    ]
    if gone:
        updates.append(RemoveSnapshotsUpdate(snapshot_ids=list(plan.snapshots)))
    requirement: Any = RefsUnchanged(refs=_refs(metadata))
    table._do_commit(updates=tuple(updates), requirements=(requirement,))  # noqa: SLF001  no public call does both


def _refs(metadata: TableMetadata) -> dict[str, int]:
    return {name: ref.snapshot_id for name, ref in metadata.refs.items()}
