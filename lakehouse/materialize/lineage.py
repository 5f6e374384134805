"""The way home: from a fetch, a URL or a content hash to row, task, worker, template version, page and evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from pyiceberg.expressions import BooleanExpression, In

from lakehouse.errors import SnapshotCorrupt, UnknownNameError
from lakehouse.lake import Lake
from lakehouse.materialize.entries import entry_words
from lakehouse.materialize.pages import is_parsed, load_page, parse_chunk, parse_job
from lakehouse.model.urls import url_fp
from lakehouse.specs.base import split_ref

FETCH_ID = re.compile(r"[0-9a-f]{32}")
HASH = re.compile(r"[0-9a-f]{16,128}")

Row = dict[str, Any]


def find_fetches(lake: Lake, wanted: str) -> list[Row]:
    """Rows of `raw.fetches` that a fetch id, a URL or the content hash of a record names, oldest first.

    Raises UnknownNameError for text that names none.
    """
    found: list[Row] = []
    if "://" in wanted:
        found = find_rows(lake, "raw.fetches", having("url_fp", url_fp(wanted)))
    elif FETCH_ID.fullmatch(wanted):
        found = find_rows(lake, "raw.fetches", having("fetch_id", wanted))
    if not found and HASH.fullmatch(wanted):
        ids = sorted({row["fetch_id"] for row in _records(lake, having("content_hash", wanted))})
        found = find_rows(lake, "raw.fetches", having("fetch_id", *ids)) if ids else []
    if not found:
        raise UnknownNameError(
            f"nothing leads home from {wanted[:200]!r}: it is no fetch id, no fetched URL and no content hash of a "
            "record; look for one in the columns fetch_id, url and content_hash of clean.articles"
        )
    return sorted(found, key=lambda row: str(row["fetch_id"]))


def lead_home(lake: Lake, fetches: Sequence[Row]) -> list[Row]:
    """Everything about each fetch, ready for JSON: outcome, records, rejects, task, template, snapshot, evidence.

    `snapshot.verified` says whether the stored body still has the hash that was recorded; `evidence` comes from
    parsing it again. `problems` lists what does not lead home, each a sentence.
    """
    here = having("fetch_id", *{fetch["fetch_id"] for fetch in fetches})
    around = _Around(
        records=_by("fetch_id", _records(lake, here)),
        rejects=_by("fetch_id", find_rows(lake, "clean.rejects", here)),
        outcomes=_by("fetch_id", find_rows(lake, "clean.outcomes", here)),
        tasks=_by("task_id", find_rows(lake, "raw.tasks", having("task_id", *{row["task_id"] for row in fetches}))),
        entries=_by("url_fp", find_rows(lake, "raw.entries", having("url_fp", *{row["url_fp"] for row in fetches}))),
    )
    return [_home(lake, fetch, around) for fetch in fetches]


@dataclass(frozen=True, slots=True)
class _Around:
    """Rows around some fetches, by the id that leads to them."""

    records: dict[str, list[Row]]
    rejects: dict[str, list[Row]]
    outcomes: dict[str, list[Row]]
    tasks: dict[str, list[Row]]
    entries: dict[str, list[Row]]


def _by(name: str, rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found


def _home(lake: Lake, fetch: Row, around: _Around) -> Row:
    problems: list[str] = []
    fetch_id = fetch["fetch_id"]
    records, rejects = around.records.get(fetch_id, []), around.rejects.get(fetch_id, [])
    tasks = around.tasks.get(fetch["task_id"], [])
    if not tasks:
        problems.append(f"task {fetch['task_id']} is not in raw.tasks")
    home: Row = {
        "fetch": fetch,
        "outcome": next(iter(around.outcomes.get(fetch_id, [])), None),
        "records": records,
        "rejects": rejects,
        "task": tasks[0] if tasks else None,
        "worker": fetch["worker_id"],
        "template": _template(lake, records + rejects, problems),
        "snapshot": _snapshot(lake, fetch, problems),
    }
    entries = [row for row in around.entries.get(fetch["url_fp"], []) if row["source"] == fetch["source"]]
    home["evidence"] = _evidence(lake, fetch, home, entries, problems)
    return {**home, "problems": problems}


def find_rows(lake: Lake, table: str, where: BooleanExpression) -> list[Row]:
    """Rows of a table that fit."""
    rows: list[Row] = lake.committer.table(table).scan(row_filter=where).to_arrow().to_pylist()
    return rows


def having(column: str, *values: str) -> BooleanExpression:
    """Rows whose `column` is one of `values`."""
    return In(column, values)  # type: ignore[call-arg]  # the model takes its fields by position


def record_tables(lake: Lake) -> list[str]:
    """Tables of clean records."""
    return sorted(specs[-1].table for specs in lake.catalog.schemas.values() if specs[-1].frame == "record")


def _records(lake: Lake, where: BooleanExpression) -> list[Row]:
    return [row for table in record_tables(lake) for row in find_rows(lake, table, where)]


def _template(lake: Lake, rows: Sequence[Row], problems: list[str]) -> str | None:
    """`name@version` of the rules that made the rows; a template that is gone from the catalog is a problem."""
    if not rows:
        return None
    name, version = str(rows[0]["template"]).partition("@")[0], rows[0]["template_version"]
    ref = f"{name}@{version}"
    if name != "generic" and ref not in lake.catalog.templates:
        problems.append(f"template {ref} is not in the catalog")
    return ref


def _snapshot(lake: Lake, fetch: Row, problems: list[str]) -> Row | None:
    """The stored body that was parsed, read back and hashed again."""
    key = fetch["rendered_key"] or fetch["snap_key"]
    if key is None:
        return None
    sha256 = fetch["rendered_sha256"] if fetch["rendered_key"] else fetch["content_sha256"]
    found: Row = {"key": key, "sha256": sha256, "verified": False, "bytes": None, "error": None}
    try:
        found["bytes"] = len(load_page(lake.store, fetch, {}).body)
        found["verified"] = True
    except (UnknownNameError, SnapshotCorrupt) as error:
        found["error"] = str(error)
        problems.append(str(error))
    return found


def _evidence(lake: Lake, fetch: Row, home: Row, entries: Sequence[Row], problems: list[str]) -> Row | None:
    """What parsing the page again finds for each field, and where on the page."""
    source = lake.catalog.sources.get(fetch["source"])
    if source is None or not is_parsed(fetch) or not (home["snapshot"] or {}).get("verified"):
        return None
    ref = home["template"] if home["template"] in lake.catalog.templates else source.template
    template = lake.catalog.template(ref) if ref and split_ref(ref)[0] != "generic" else None
    words = entry_words([row for row in entries if row["dt"] == fetch["dt"]])
    page = load_page(lake.store, fetch, words.get(fetch["url_fp"], {}))
    parsed = parse_chunk([page], parse_job(source, template, lake.clock.zone))[0]
    for record in home["records"]:
        problems += _differences(record, parsed.values)
    return {
        "parsed_with": parsed.template,
        "problem": parsed.problem,
        "fields": {
            name: {"value": value, **(asdict(parsed.evidence[name]) if name in parsed.evidence else {})}
            for name, value in parsed.values.items()
        },
    }


def _differences(record: Row, values: Mapping[str, Any]) -> list[str]:
    """Fields whose value on the page is not the one in the row, white space and forms of characters aside."""
    return [
        f"{name} of the record is not what the page gives now"
        for name, value in values.items()
        if name in record and _essence(record[name]) != _essence(value)
    ]


def _essence(value: Any) -> Any:
    import unicodedata

    if isinstance(value, str):
        letters = unicodedata.normalize("NFKC", value)
        return "".join(char for char in letters if char.isalnum()) or None
    return value.timestamp() if isinstance(value, datetime) else value
