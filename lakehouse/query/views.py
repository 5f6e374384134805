"""The SQL of the views that stand beside every table of records; the same words for DuckDB and Trino.

`<table>_effective` holds the rows of the schema version that readers get by default, `<table>_latest` the newest
revision of each page among them: a filter on `source` prunes files, a filter on `dt` means that the newest revision
lies on that day. `<table>_compat` holds the rows of all versions under the newest names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakehouse.query.casts import cast_sql
from lakehouse.query.shapes import Shape
from lakehouse.tables.versions import CompatField, VersionFields, compat_fields

EFFECTIVE_TABLE = "meta.effective"
RECORD_COLUMNS = frozenset(
    {"source", "dt", "schema_version", "canonical_fp", "content_hash", "collect_time", "fetch_id", "url_fp"}
)
VIEW_SUFFIXES = ("_effective", "_latest", "_compat")


def may_hold_records(table: str) -> bool:
    """Whether a table's name allows that it holds clean records."""
    return table.startswith("clean.")


def holds_records(table: str, columns: Collection[str]) -> bool:
    """Whether a table holds clean records and so gets the views."""
    return may_hold_records(table) and set(columns) >= RECORD_COLUMNS


def table_of(name: str) -> str:
    """The table that a view stands beside; the name itself where it is no view's."""
    return next((name.removesuffix(suffix) for suffix in VIEW_SUFFIXES if name.endswith(suffix)), name)


def quoted(name: str) -> str:
    """`raw.fetches` as `"raw"."fetches"`."""
    return ".".join(f'"{part}"' for part in name.split("."))


def literal(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def view_sql(name: str, rows: str, pointers: str | None, shape: Shape) -> str:
    """The SQL of the view `name`; `rows` is what to read its table from, `pointers` the effective versions."""
    table = table_of(name)
    if name.endswith("_compat"):
        return compat_sql(rows, shape.columns, shape.versions)
    effective = effective_sql(table.partition(".")[2], rows, pointers, shape.columns)
    return effective if name.endswith("_effective") else latest_sql(f"({effective})", shape.columns)


def effective_sql(dataset: str, rows: str, pointers: str | None, columns: Sequence[str]) -> str:
    """Rows of the effective version of each source and day; `rows` and `pointers` are what to read them from.

    The inner join, unlike a semi-join, lets both engines derive filters for the table's partitions.
    """
    names = ", ".join(f't."{column}"' for column in columns)
    if pointers is None:
        return f"SELECT {names} FROM {rows} t WHERE false"
    return (
        f"SELECT {names} FROM {rows} t JOIN (SELECT DISTINCT source, dt, schema_version "
        f"FROM {pointers} WHERE dataset = {literal(dataset)}) e "
        "ON t.source = e.source AND t.dt = e.dt AND t.schema_version = e.schema_version"
    )


def latest_sql(effective: str, columns: Sequence[str]) -> str:
    """The newest revision per source and page among the effective rows."""
    names = ", ".join(f'"{column}"' for column in columns)
    return (
        f"SELECT {names} FROM (SELECT *, row_number() OVER (PARTITION BY source, canonical_fp "
        f"ORDER BY collect_time DESC, fetch_id DESC, url_fp, content_hash) AS _age FROM {effective} f) r WHERE _age = 1"
    )


def compat_sql(rows: str, columns: Sequence[str], versions: Sequence[VersionFields]) -> str:
    """The rows of all versions under the newest names; a field that a row's version does not have is null.

    Columns of the frame come as they are, so that filters on source, day and version prune as in the table.
    """
    fields = {field.name: field for field in compat_fields(versions)}
    superseded = {name for one in versions for name in one.types} - fields.keys()
    parts = [
        f'{_expression(fields[name])} AS "{name}"' if name in fields else f't."{name}"'
        for name in columns
        if name not in superseded
    ]
    return f"SELECT {', '.join(parts)} FROM {rows} t"


def _expression(field: CompatField) -> str:
    own, *others = field.readings
    if not others:
        return f't."{field.name}"'
    cases = [f'WHEN t.schema_version IN ({_list(own.versions)}) THEN t."{own.column}"']
    for reading in others:
        value = cast_sql(f't."{reading.column}"', reading.tree, field.tree)
        if value is not None:
            cases.append(f"WHEN t.schema_version IN ({_list(reading.versions)}) THEN {value}")
    return f"CASE {' '.join(cases)} END"


def _list(versions: Sequence[int]) -> str:
    return ", ".join(map(str, versions))
