"""Branches that show the tables of a fix as they were before or after it, made on demand for engines beside our own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from lakehouse.model.partition import Partition
from lakehouse.tables.branches import Branch, EarlierFiles, drop_branch, make_branch
from lakehouse.tables.committer import Committer
from lakehouse.tables.fixes import Fix, days_of, led_to

AGE = timedelta(days=7)


def branch_name(fix: Fix, *, before: bool) -> str:
    """`fix-3f9a1c20`, or `before-fix-3f9a1c20`; all days of a fix share it."""
    return f"{'before-' if before else ''}fix-{fix.unit[:8]}"


def branch_fix(
    committer: Committer, fixes: Sequence[Fix], fix: Fix, *, before: bool = False, age: timedelta = AGE
) -> list[Branch]:
    """A branch of each table that the fix moved, on which the partitions of all its days hold what they held after it.

    Other partitions are those of now. Upkeep drops the branches after `age`. Raises ConflictError for the state after a
    fix that was not finished, UnknownNameError for files that are gone.
    """
    earlier: dict[str, list[EarlierFiles]] = {}
    for one in days_of(fixes, fix):
        for table, state in (one.before if before else led_to(one)).items():
            partition = Partition(one.day.source, one.day.dt, state.schema_version)
            earlier.setdefault(table, []).append(EarlierFiles(partition, state.files))
    name = branch_name(fix, before=before)
    return [make_branch(committer, table, name, files, age=age) for table, files in earlier.items()]


def drop_fix_branches(committer: Committer, fix: Fix, *, before: bool = False) -> list[Branch]:
    """Drop what `branch_fix` made."""
    return [drop_branch(committer, table, branch_name(fix, before=before)) for table in fix.before]
