"""The SQL of the views that stand beside every table of records.

`<table>_effective` holds the rows of the schema version that readers get by default, `<table>_latest` the newest
revision of each page among them: a filter on `source` prunes files, a filter on `dt` means that the newest revision
lies on that day.
"""

from __future__ import annotations

from collections.abc import Collection

EFFECTIVE_TABLE = "meta.effective"
RECORD_COLUMNS = frozenset(
    {"source", "dt", "schema_version", "canonical_fp", "content_hash", "collect_time", "fetch_id", "url_fp"}
)
VIEW_SUFFIXES = ("_effective", "_latest")


def may_hold_records(table: str) -> bool:
    """Whether a table's name allows that it holds clean records."""
    return table.startswith("clean.")


def holds_records(table: str, columns: Collection[str]) -> bool:
    """Whether a table holds clean records and so gets the views."""
    return may_hold_records(table) and set(columns) >= RECORD_COLUMNS


def quoted(name: str) -> str:
    """`raw.fetches` as `"raw"."fetches"`."""
    return ".".join(f'"{part}"' for part in name.split("."))


def literal(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def effective_sql(table: str) -> str:
    """Rows of the effective version of each source and day; runs in DuckDB and in Trino.

    The inner join, unlike a semi-join, lets both engines derive filters for the table's partitions.
    """
    dataset = literal(table.partition(".")[2])
    return (
        f"SELECT t.* FROM {quoted(table)} t JOIN (SELECT DISTINCT source, dt, schema_version "
        f"FROM {quoted(EFFECTIVE_TABLE)} WHERE dataset = {dataset}) e "
        "ON t.source = e.source AND t.dt = e.dt AND t.schema_version = e.schema_version"
    )


def latest_sql(table: str, columns: Collection[str]) -> str:
    """The newest revision per source and page among the effective rows; runs in DuckDB and in Trino."""
    names = ", ".join(f'"{column}"' for column in columns)
    return (
        f"SELECT {names} FROM (SELECT *, row_number() OVER (PARTITION BY source, canonical_fp "
        "ORDER BY collect_time DESC, fetch_id DESC, url_fp, content_hash) AS _age "
        f"FROM {quoted(table + '_effective')}) r WHERE _age = 1"
    )
