"""A year of a dataset in four schema versions, and what its views must show, told in plain Python.

A field is added and one dropped (v2), one gets another type under a new name (v3), one is renamed (v4). Two days are
written under two versions; the newer one is effective on one of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from shutil import copytree
from typing import Any
from uuid import uuid4

import pyarrow as pa
import yaml

from lakehouse.lake import Lake, open_lake
from lakehouse.model.partition import Partition
from lakehouse.query.frames import to_plain
from lakehouse.settings import Settings
from lakehouse.tables.effective import Effective, set_effective, set_first_effective
from lakehouse.tables.normalize import to_arrow

ROOT = Path(__file__).parents[1]
SOURCES = ("bids_north", "bids_south")
DAYS = [dt.date(2024, month, 15) for month in range(1, 13)]
TWICE = {DAYS[4]: 3, DAYS[8]: 4}
MOVED = DAYS[4]
TITLE: dict[str, Any] = {"name": "title", "type": "string", "description": "What is asked for", "required": True}
HEADLINE = {**TITLE, "name": "headline", "supersedes": "title"}
PRICE = {"name": "price", "type": "string", "description": "As it was written"}
AMOUNT = {"name": "amount", "type": "decimal(18,2)", "description": "Price", "unit": "yuan", "supersedes": "price"}
NOTE = {"name": "note", "type": "string", "description": "What stands below"}
BIDDERS = {"name": "bidders", "type": "list<struct<name: string, rank: int>>", "description": "Who offered"}
DEADLINE = {"name": "deadline", "type": "date", "description": "Last day for an offer"}
FIELDS: dict[int, list[dict[str, Any]]] = {
    1: [TITLE, PRICE, NOTE, BIDDERS],
    2: [TITLE, PRICE, BIDDERS, DEADLINE],
    3: [TITLE, AMOUNT, BIDDERS, DEADLINE],
    4: [HEADLINE, AMOUNT, BIDDERS, DEADLINE],
}
WRITTEN = ["120000.50", "0", "-3.5", "面议", "1e5", "007", "12.345", None, "9999999999999999.99", "10000000000000000"]
EXACT = {"120000.50": "120000.50", "0": "0.00", "-3.5": "-3.50", "9999999999999999.99": "9999999999999999.99"}
COMPAT = ("source", "dt", "schema_version", "url_fp", "note", "bidders", "deadline", "amount", "headline")


def version_of(day: dt.date) -> int:
    """The version that sources write on a day: a new one each quarter."""
    return (day.month + 2) // 3


@contextmanager
def evolved_lake(settings: Settings, folder: Path) -> Iterator[tuple[Lake, str]]:
    """A lake with the year in it, written version by version, and its table."""
    dataset = f"bids_{uuid4().hex[:8]}"
    catalog = folder / "catalog"
    copytree(ROOT / "catalog", catalog)
    for version, fields in FIELDS.items():
        _declare(catalog, dataset, version, fields)
        with open_lake(settings.model_copy(update={"catalog_dir": catalog})) as lake:
            _write(lake, dataset, version)
    with open_lake(settings.model_copy(update={"catalog_dir": catalog})) as lake:
        moved = [Effective(dataset, source, MOVED, TWICE[MOVED]) for source in SOURCES]
        set_effective(lake.committer, lake.decisions, moved, reason="amounts are numbers now", who="ann")
        yield lake, f"clean.{dataset}"


def _declare(catalog: Path, dataset: str, version: int, fields: list[dict[str, Any]]) -> None:
    declared = {
        "dataset": dataset,
        "version": version,
        "layer": "clean",
        "table": f"clean.{dataset}",
        "description": "Bidding notices.",
        "changes": f"Version {version} of the story.",
        "reviewed_by": "maintainers",
        "frame": "record",
        "sort": ["url_fp"],
        "fields": fields,
    }
    path = catalog / "schemas" / dataset / f"v{version}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(declared, allow_unicode=True), encoding="utf-8")


def _write(lake: Lake, dataset: str, version: int) -> None:
    days = [day for day in DAYS if version_of(day) == version or TWICE.get(day) == version]
    partitions = [Partition(source, day, version) for source in SOURCES for day in days]
    rows = [{**_frame(one, at), **_own(one, at)} for one in partitions for at in range(len(WRITTEN))]
    table = f"clean.{dataset}"
    lake.committer.replace(table, to_arrow(rows, lake.catalog.table_schema(table, version)), partitions)
    set_first_effective(lake.committer, lake.decisions, dataset, partitions)


def _frame(one: Partition, at: int) -> dict[str, Any]:
    """A record's frame: the first two pages of a source come again every month."""
    page = f"{one.source}-{at}" if at < 2 else f"{one.source}-{one.dt}-{at}"
    return {
        "source": one.source,
        "dt": one.dt,
        "schema_version": one.schema_version,
        "url": f"https://example.org/{page}",
        "url_fp": page,
        "canonical_fp": page,
        "url_rules_version": 1,
        "content_hash": f"{page}-{one.schema_version}",
        "tags": ["b", "a"] if at % 2 else None,
        "flags": [],
        "fetch_id": f"{one.dt}-{one.schema_version}-{at}",
        "task_id": "task",
        "template": "bids@1",
        "template_version": 1,
        "collect_time": dt.datetime.combine(one.dt, dt.time(4, at), dt.UTC),
        "snap_key": None,
    }


def _own(one: Partition, at: int) -> dict[str, Any]:
    """The dataset's fields of a row, those that its version has."""
    written = WRITTEN[at]
    values = {
        "title": f"标题 {at}",
        "headline": f"标题 {at}",
        "price": written,
        "amount": Decimal(EXACT[written]) if written in EXACT else None,
        "note": None if at % 3 else f"note {at}",
        "bidders": [{"name": "甲", "rank": 1}, {"name": None, "rank": at}] if at % 2 else None,
        "deadline": one.dt + dt.timedelta(days=at),
    }
    return {field["name"]: values[field["name"]] for field in FIELDS[one.schema_version]}


def expected_rows(view: str) -> list[dict[str, Any]]:
    """The rows of `_effective`, `_latest` or `_compat` under the newest names, worked out without any engine."""
    both = [(day, version) for day in DAYS for version in sorted({version_of(day), TWICE.get(day, 0)}) if version]
    chosen = both if view == "_compat" else [(day, v) for day, v in both if v == _effective_version(day)]
    places = [(Partition(source, *one), at) for source in SOURCES for one in chosen for at in range(len(WRITTEN))]
    if view == "_latest":
        newest = {_frame(*place)["canonical_fp"]: place for place in sorted(places, key=lambda p: (p[0].dt, p[1]))}
        places = list(newest.values())
    return [_expected(*place) for place in places]


def _effective_version(day: dt.date) -> int:
    return TWICE[day] if day == MOVED else version_of(day)


def _expected(one: Partition, at: int) -> dict[str, Any]:
    row = {**_frame(one, at), **_own(one, at)}
    written = row.get("price")
    row["headline"] = row.get("headline", row.get("title"))
    row["amount"] = row.get("amount", Decimal(EXACT[written]) if written in EXACT else None)
    return {name: row.get(name) for name in COMPAT}


def compat_schema(lake: Lake, table: str) -> pa.Schema:
    """The Arrow schema of the columns that the tests compare."""
    whole = to_plain(lake.iceberg.load_table(table).schema().as_arrow())
    return pa.schema([pa.field(name, whole.field(name).type) for name in COMPAT])


def query_of(view: str, table: str) -> str:
    """The columns under their newest names from a view; `_effective` and `_latest` have the table's own columns."""
    if view == "_compat":
        return f"SELECT {', '.join(COMPAT)} FROM {table}_compat"
    known = f"SELECT source, dt, schema_version, url_fp FROM {table}{view}"
    names = ", ".join(f"c.{name}" for name in COMPAT)
    keys = " AND ".join(f"c.{key} = k.{key}" for key in ("source", "dt", "schema_version", "url_fp"))
    return f"SELECT {names} FROM {table}_compat c JOIN ({known}) k ON {keys}"
