"""`<table>/metadata/CURRENT` names the metadata file that is real: the last whose swap in the catalog was seen.

Losers of a swap leave files that look the same, and an Iceberg catalog restored from a backup names an older one.
"""

from __future__ import annotations

from pyiceberg.table import Table

from lakehouse.errors import ConflictError
from lakehouse.tables.filesystem import read_text, write_text


def write_current(table: Table) -> None:
    """Write `CURRENT`. Call it under the table's lock."""
    write_text(table.io, _current_location(table), file_name(table.metadata_location) + "\n")


def read_current(table: Table) -> str | None:
    """The file name in `CURRENT`; None where there is none."""
    text = read_text(table.io, _current_location(table))
    return None if text is None else text.strip()


def check_current(table: Table) -> None:
    """Refuse to change a table whose catalog entry is older than the table; call it under the table's lock.

    Such an entry comes from a restored backup: a commit on it would make the lost ones look like garbage. Raises
    ConflictError where `CURRENT` names a metadata file that is neither in the table's log nor older than it.
    """
    name = read_current(table)
    if name is None or _knows(table, name):
        return
    # A committer that lost its lock may have been overtaken since it loaded the table; the swap judges that case.
    if _knows(table.catalog.load_table(table.name()), name):
        return
    raise ConflictError(
        f"{'.'.join(table.name())}: metadata/CURRENT names {name}, and the Iceberg catalog stands at "
        f"{file_name(table.metadata_location)}. The catalog's database was probably restored from a backup; run "
        "`lakehouse restore` first. Nothing was changed"
    )


def _knows(table: Table, name: str) -> bool:
    log = {file_name(entry.metadata_file) for entry in table.metadata.metadata_log}
    newest = file_name(table.metadata_location)
    return name in log | {newest} or metadata_version(name) < metadata_version(newest)


def file_name(location: str) -> str:
    """The last part of a location."""
    return location.rpartition("/")[2]


def _current_location(table: Table) -> str:
    return f"{table.metadata_location.rpartition('/')[0]}/CURRENT"


def metadata_version(name: str) -> int:
    """The number at the beginning of a metadata file's name; 0 where there is none."""
    number = name.partition("-")[0]
    return int(number) if number.isdigit() else 0
