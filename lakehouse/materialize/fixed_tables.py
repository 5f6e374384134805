"""The partitions of a day that a fix moves together: what they hold, what changed in them, how they are brought back.

Not here: in which order a fix does what (`fixing`), and how it is recorded (`tables.fixes`).
"""

from __future__ import annotations

from collections import Counter

from lakehouse.errors import ConflictError
from lakehouse.lake import Lake
from lakehouse.materialize.clean import OUTCOMES, REJECTS, materialize_clean
from lakehouse.materialize.days import dataset_of
from lakehouse.materialize.feature import feature_partition, feature_tables, settle_features
from lakehouse.materialize.index import RunNotes, record_commit
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.tables.differences import RowCounts, compare_rows
from lakehouse.tables.fixes import Fix, PartitionState, States, bring_back, read_rows, read_state

GENERIC = "generic@"


def record_table(lake: Lake, day: SourceDay) -> str:
    """The table that holds the day's records."""
    return lake.catalog.schema(dataset_of(lake, day), None).table


def read_states(lake: Lake, day: SourceDay, partition: Partition) -> dict[str, PartitionState]:
    """What each table of a day holds, in the order in which they are brought back."""
    places = {REJECTS: partition, OUTCOMES: partition, record_table(lake, day): partition}
    places |= {table: feature_partition(lake, table, day) for table in feature_tables(lake, day)}
    return {table: read_state(lake.committer, table, where) for table, where in places.items()}


def count_changes(lake: Lake, day: SourceDay, before: States, after: States) -> dict[str, RowCounts]:
    """How many rows were added, removed and changed, by table."""
    return {table: _count(lake, day, before[table], after[table]) for table in after}


def _count(lake: Lake, day: SourceDay, before: PartitionState, after: PartitionState) -> RowCounts:
    if before.checksum == after.checksum and before.rows == after.rows:
        return RowCounts(0, 0, 0)
    old, new = (read_rows(lake.committer, state, day) for state in (before, after))
    return compare_rows(before.table, old, new).counts()


def template_before(lake: Lake, day: SourceDay, partition: Partition) -> str | None:
    """The template that most rows of a partition came from; None is generic extraction."""
    names = Counter(lake.committer.scan(record_table(lake, day), [partition], ["template"]).column(0).to_pylist())
    if not names:
        return lake.catalog.source(day.source).template
    name = names.most_common(1)[0][0]
    return None if name is None or name.startswith(GENERIC) else str(name)


def check_unmoved(lake: Lake, fix: Fix, what: str, *, way_out: str) -> None:
    """Every table holds what the fix found or what it led to: then nothing that came later is lost."""
    after = fix.after or {}
    for table, before in fix.before.items():
        where = Partition(fix.day.source, fix.day.dt, before.schema_version)
        now = read_state(lake.committer, table, where)
        if (now.rows, now.checksum) not in {(one.rows, one.checksum) for one in (before, after.get(table, before))}:
            raise ConflictError(
                f"cannot {what} fix {fix.fix_id[:8]}: {table} of {fix.day.key} has changed since; {way_out}"
            )


def check_replaceable(lake: Lake, fix: Fix) -> None:
    """Raise ConflictError where a partition carries delete files of another engine, before anything is recorded."""
    for table, state in fix.before.items():
        lake.committer.files(table, Partition(fix.day.source, fix.day.dt, state.schema_version))


def bring_all_back(lake: Lake, fix: Fix, states: States) -> None:
    """Make the day's tables hold these states by copies; a structural fix left the clean ones of before alone."""
    notes = RunNotes((fix.day,))
    for table, state in states.items():
        if fix.structural and table.startswith("clean."):
            continue
        commit = bring_back(lake.committer, state, fix.day)
        where = Partition(fix.day.source, fix.day.dt, state.schema_version)
        record_commit(lake, notes, commit, [where])
    if not fix.structural:
        materialize_clean(lake, [fix.day])
    settle_features(lake, fix.day)
