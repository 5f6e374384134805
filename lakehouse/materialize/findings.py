"""What reconciling finds: kinds of findings with what each means and what mends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """Kinds of findings, each with its meaning and remedy in MEANINGS."""

    INDEX_ROW_MISSING = "index_row_missing"
    INDEX_ROW_WRONG = "index_row_wrong"
    INDEX_ROW_STRAY = "index_row_stray"
    BATCH_MISSING = "batch_missing"
    BATCH_WRONG = "batch_wrong"
    BATCH_STRAY = "batch_stray"
    FILE_MISSING = "file_missing"
    FILE_UNKNOWN = "file_unknown"
    PAGE_MISSING = "page_missing"
    PAGE_UNKNOWN = "page_unknown"
    BOOKS_UNBALANCED = "books_unbalanced"
    POINTER_TO_NOTHING = "pointer_to_nothing"
    POINTERS_DIFFER = "pointers_differ"
    CATALOG_BEHIND = "catalog_behind"
    DAY_MISSING = "day_missing"
    DAY_UNFINISHED = "day_unfinished"
    SOURCE_SILENT = "source_silent"


MEANINGS: dict[Kind, tuple[str, str]] = {
    Kind.INDEX_ROW_MISSING: (
        "a table has a partition that the ledger's index does not know",
        "--repair writes the row",
    ),
    Kind.INDEX_ROW_WRONG: ("the ledger's index says other things than the tables", "--repair writes the row"),
    Kind.INDEX_ROW_STRAY: ("the ledger's index has a partition that no table has", "--repair drops the row"),
    Kind.BATCH_MISSING: ("a stored batch that the ledger does not know", "--repair writes the row"),
    Kind.BATCH_WRONG: (
        "the ledger says other things of a batch than the store and the tables",
        "--repair writes the row",
    ),
    Kind.BATCH_STRAY: ("the ledger knows a batch that the store does not have", "look for the object in a backup"),
    Kind.FILE_MISSING: (
        "a table needs a file that is gone; its rows cannot be read",
        "make the partition again: `lakehouse materialize`, or `lakehouse fix rollback` to files that are there",
    ),
    Kind.FILE_UNKNOWN: (
        "a file that no table snapshot, fix or list of upkeep knows; a failed commit may have left it",
        "`lakehouse upkeep orphans --apply` removes it",
    ),
    Kind.PAGE_MISSING: (
        "a row's page is not in the object store; the row cannot be proven or replayed",
        "bring the object back from an earlier version or a backup",
    ),
    Kind.PAGE_UNKNOWN: (
        "a stored page that no row refers to",
        "collect its source again: a lost batch is uploaded anew",
    ),
    Kind.BOOKS_UNBALANCED: (
        "outcomes do not sum to fetches, or clean rows to outcomes",
        "`lakehouse materialize` the day",
    ),
    Kind.POINTER_TO_NOTHING: (
        "readers are pointed to a version of a day that has no rows",
        "`lakehouse effective set` points them to one that has",
    ),
    Kind.POINTERS_DIFFER: ("meta.effective is not what meta.decisions say", "--repair derives it anew"),
    Kind.CATALOG_BEHIND: (
        "the Iceberg catalog and a table's CURRENT mark differ",
        "`lakehouse restore` shows the plan",
    ),
    Kind.DAY_MISSING: (
        "the schedule asked for a day and nothing of it is there",
        "a source addressed by date: `lakehouse materialize`; else the day is lost",
    ),
    Kind.DAY_UNFINISHED: ("a day was begun and its due tasks did not end", "`lakehouse materialize` the day"),
    Kind.SOURCE_SILENT: ("an enabled source never gave anything", "`lakehouse materialize` it, or disable it"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be; `mend` repairs it where that is safe."""

    kind: Kind
    subject: str
    detail: str = ""
    mend: Callable[[], object] | None = field(default=None, compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: code, subject, detail, what it means, what mends it."""
        meaning, remedy = MEANINGS[self.kind]
        return {
            "code": self.kind.value,
            "subject": self.subject,
            "detail": self.detail,
            "meaning": meaning,
            "remedy": remedy,
            "repairable": self.mend is not None,
        }
