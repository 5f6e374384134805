"""A partition as it was at some point: now, in a table snapshot, at a tag or time, before or after a fix.

Table snapshots reach as far back as upkeep keeps them; tags and fixes as long as they stand.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import pyarrow as pa
from pyiceberg.table.metadata import TableMetadata

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError, UnknownNameError
from lakehouse.model.partition import Partition
from lakehouse.tables.committer import Committer
from lakehouse.tables.decisions import Decisions
from lakehouse.tables.fixes import Fix, all_fixes, find_fix, read_rows
from lakehouse.tables.registry import versions_of
from lakehouse.tables.scan import scan_rows
from lakehouse.tables.split import key_of
from lakehouse.tables.tags import state_before

FORMS = "now, snapshot:ID, tag:NAME, version:N, before-fix:ID, fix:ID, or a time such as 2025-03-01T08:00"


def read_at(committer: Committer, decisions: Decisions, table: str, partition: Partition, point: str) -> pa.Table:
    """The rows of a partition at `point`, see FORMS; `version:N` is the same day in another schema version, now.

    Raises ConfigError for a point that cannot be read, UnknownNameError for one that is not there (any more).
    """
    kind, _, name = point.partition(":")
    if point == "now":
        return committer.scan(table, [partition])
    if kind == "version" and name.isdecimal():
        return committer.scan(table, [Partition(partition.source, partition.dt, int(name))])
    if kind in {"fix", "before-fix"}:
        fix = find_fix(all_fixes(decisions), name)
        return _rows_of_fix(committer, fix, table, partition, before=kind == "before-fix")
    loaded, specs = committer.table(table), versions_of(committer.catalog, table)
    snapshot_id = snapshot_at(loaded.metadata, table, point, decisions.clock)
    return scan_rows(loaded, specs, {key_of(partition, specs[-1])}, snapshot_id=snapshot_id)


def _rows_of_fix(committer: Committer, fix: Fix, table: str, partition: Partition, *, before: bool) -> pa.Table:
    states = fix.before if before else (fix.after or {})
    known = states.get(table)
    if known is None or (fix.day, known.schema_version) != (partition.day, partition.schema_version):
        raise UnknownNameError(
            f"fix {fix.fix_id[:8]} says nothing of {table} of {partition.path}; it is about {fix.partition.path}"
            + (f" of {', '.join(states)}" if states else " and was never finished")
        )
    return read_rows(committer, known, fix.day)


def snapshot_at(metadata: TableMetadata, table: str, point: str, clock: Clock) -> int:
    """The table snapshot of a point: `snapshot:ID`, `tag:NAME`, or a time.

    Raises ConfigError for a point that is no time, UnknownNameError for one that is not there (any more).
    """
    kind, _, name = point.partition(":")
    known = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    if kind == "snapshot" and name.isdecimal():
        return _kept(int(name), known, point)
    if kind == "tag":
        found = metadata.refs.get(name)
        if found is None:
            raise UnknownNameError(f"there is no tag {name!r}; there are {', '.join(sorted(metadata.refs))}")
        return found.snapshot_id
    try:
        moment = datetime.fromisoformat(point)
    except ValueError:
        raise ConfigError(f"{point!r} names no point in a table's history; write {FORMS}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=clock.zone)
    past = state_before(metadata, moment.timestamp() * 1000 + 1)
    if past is None:
        raise UnknownNameError(
            f"{table} has no table snapshot of {moment}: it had no rows yet, or upkeep has expired it; tags and fixes "
            "reach further back"
        )
    return past


def _kept(snapshot_id: int, known: Collection[int], point: str) -> int:
    if snapshot_id not in known:
        raise UnknownNameError(
            f"the table snapshot of {point} is not kept any more; tags and fixes reach further back than snapshots"
        )
    return snapshot_id
