"""A file replaces the rows of days: strictly judged, recorded and undone like any fix, and kept by every later run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lakehouse.cli import main
from lakehouse.errors import ConfigError, ConflictError, DataError
from lakehouse.lake import Lake
from lakehouse.ledger.partitions import PartitionIndex
from lakehouse.materialize.books import audit_books
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.fix_units import apply_fixes, redo, roll_back
from lakehouse.materialize.given_rows import read_given_rows
from lakehouse.materialize.result import failed_days
from lakehouse.model.partition import Layer, Partition, SourceDay
from lakehouse.query import connect
from lakehouse.settings import Settings
from lakehouse.tables.fixes import Code, Fix, all_fixes
from tests.letters import SOURCE, authors, authors_now, hashes, lake_with, letters, publish

WORDS: dict[str, Any] = {"code": Code.SOURCE_ERROR, "reason": "the paper corrected itself", "who": "ann"}
UNDO: dict[str, Any] = {"reason": "it did not", "who": "bob"}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A lake beside a demo site."""
    with letters(tmp_path_factory.mktemp("given")) as given:
        yield given


def rows_of(lake: Lake, *days: SourceDay) -> list[Row]:
    """The rows of days as `lakehouse sql --json` prints them."""
    names = [field.name for field in lake.committer.table("clean.articles").schema().fields if field.name != "subtitle"]
    with connect(lake) as db:
        columns = ", ".join(f'"{name}"' for name in names)
        where = " OR ".join(f"dt = '{day.dt}'" for day in days)
        found = db.execute(f"SELECT {columns} FROM clean.articles WHERE {where} ORDER BY dt, url_fp").fetchall()
    return [json.loads(json.dumps(dict(zip(names, row, strict=True)), default=str)) for row in found]


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def apply_file(lake: Lake, days: list[SourceDay], path: Path) -> list[Fix]:
    return apply_fixes(lake, days, given=read_given_rows(lake, days, path), **WORDS)


def test_a_file_replaces_the_rows_of_its_days_and_is_rolled_back_like_any_fix(
    settings: Settings, tmp_path: Path
) -> None:
    days = [SourceDay(SOURCE, date(2025, 2, 1)), SourceDay(SOURCE, date(2025, 2, 2))]
    with lake_with(settings) as lake:
        publish(lake, *days)
        before = [hashes(lake, day) for day in days]
        rows = rows_of(lake, *days)
        gone = rows.pop(0)
        for row in rows:
            del row["content_hash"]
        rows[0]["title"] = rows[0]["title"] + "(更正)"
        fixes = apply_file(lake, days, write(tmp_path / "rows.jsonl", rows))
        assert {fix.unit for fix in fixes} == {fixes[0].fix_id}
        assert fixes[0].changes is not None
        counts = fixes[0].changes["clean.articles"]
        assert (counts["added"], counts["removed"], counts["changed"]) == (0, 1, 1)
        assert counts["columns"] == {"content_hash": 1, "title": 1}
        assert [one["changed"] for one in (fixes[1].changes or {}).values()] == [0] * 5
        [reject] = [
            one
            for one in lake.committer.scan("clean.rejects", [Partition(SOURCE, days[0].dt, 1)]).to_pylist()
            if one["reason"] == "taken_out"
        ]
        assert (reject["fetch_id"], reject["detail"]) == (gone["fetch_id"], WORDS["reason"])
        assert json.loads(reject["row"])["title"] == gone["title"]
        assert audit_books(lake, days).balanced
        assert rows[0]["title"] in {row["title"] for row in rows_of(lake, *days)}
        after = [hashes(lake, day) for day in days]
        assert apply_file(lake, days, tmp_path / "rows.jsonl") == fixes
        assert failed_days(materialize_clean(lake, days)) == {}
        assert [hashes(lake, day) for day in days] == after
        roll_back(lake, fixes[0].fix_id, **UNDO)
        assert [hashes(lake, day) for day in days] == before
        redo(lake, fixes[0].fix_id, **UNDO)
        assert [hashes(lake, day) for day in days] == after
        assert audit_books(lake, days).balanced


def test_rows_of_a_file_stay_until_a_fix_or_a_rollback_takes_them(settings: Settings, tmp_path: Path) -> None:
    day = SourceDay(SOURCE, date(2025, 2, 3))
    with lake_with(settings) as lake:
        publish(lake, day)
        rows = [{**row, "author": "某人"} for row in rows_of(lake, day)]
        [given] = apply_file(lake, [day], write(tmp_path / "rows.jsonl", rows))
        kept = hashes(lake, day)
    with lake_with(settings, template=2) as lake:
        [again] = apply_fixes(lake, [day], code=Code.TEMPLATE, reason="authors", who="ann")
        assert all("文 / " in name for name in authors(lake, day))
        with pytest.raises(ConflictError, match="the rows of a file, which its pages do not have"):
            roll_back(lake, again.fix_id, rerun=True, **UNDO)
        roll_back(lake, again.fix_id, **UNDO)
        assert failed_days(materialize_clean(lake, [day])) == {}
        assert hashes(lake, day) == kept
        assert authors(lake, day) == authors_now(lake, day) == {"某人"}
        note_late_pages(lake, Partition(SOURCE, day.dt, 1))
        failed = failed_days(materialize_clean(lake, [day]))
        assert "pages that came later" in failed[day]
        assert given.fix_id[:8] in failed[day]
        assert authors(lake, day) == {"某人"}


def note_late_pages(lake: Lake, partition: Partition) -> None:
    """Let the index say that raw holds other rows than before."""
    index = PartitionIndex(lake.ledger)
    info = index.get(Layer.RAW, "raw.fetches", partition)
    assert info is not None
    index.record(replace(info, checksum="f" * 32))


def test_parquet_takes_the_same_way(settings: Settings, tmp_path: Path) -> None:
    day = SourceDay(SOURCE, date(2025, 2, 4))
    with lake_with(settings) as lake:
        publish(lake, day)
        frame = lake.committer.scan("clean.articles", [Partition(SOURCE, day.dt, 1)])
        frame = frame.drop_columns([name for name in ("subtitle", "content_hash") if name in frame.column_names])
        path = tmp_path / "rows.parquet"
        pq.write_table(frame.slice(1), path)
        [fix] = apply_file(lake, [day], path)
        assert fix.changes is not None
        assert fix.changes["clean.articles"] == {"added": 0, "removed": 1, "changed": 0, "columns": {}}
        pq.write_table(frame.set_column(0, "source", [["elsewhere"] * frame.num_rows]), path)
        with pytest.raises(DataError, match=r"rows.parquet, row 0: field source: expected demo_daily, found elsewhere"):
            read_given_rows(lake, [day], path)
        path.write_bytes(b"PAR1 and nothing more")
        with pytest.raises(DataError, match="not a whole Parquet file"):
            read_given_rows(lake, [day], path)


def changed(**values: Any) -> Callable[[Row], Row]:
    return lambda row: {**row, **values}


def without(name: str) -> Callable[[Row], Row]:
    return lambda row: {key: value for key, value in row.items() if key != name}


WRONG: dict[str, tuple[Callable[[Row], Row], str]] = {
    "an extra field": (changed(colour="red"), "field colour: expected no such field, found one of that name"),
    "a missing field": (without("title"), "field title: expected string, found no such field"),
    "another type": (changed(title=7), "field title: expected string .*, found int 7"),
    "null where one must be": (changed(url=None), "field url: expected string, required, found null"),
    "a naive time": (
        changed(publish_time="2025-02-05T08:00:00"),
        "field publish_time: expected .*, found a naive time",
    ),
    "no time at all": (changed(publish_time="last week"), "field publish_time: expected .*, found str 'last week'"),
    "a fraction for a whole number": (changed(paragraphs=1.5), "field paragraphs: expected int, found Decimal"),
    "a number too large": (changed(paragraphs=2**40), "field paragraphs: expected int, found out of range"),
    "a value outside its list": (changed(time_confidence=9), r"field time_confidence: expected one of \[0, 1, 2\]"),
    "NUL": (changed(body="a\0b"), "field body: .* NUL in"),
    "a lone surrogate": (changed(body="a\ud800b"), "field body: .* lone surrogate in"),
    "infinity": (changed(body_quality=float("inf")), "not one JSON object a line .*Infinity is no number"),
    "another day": (changed(dt="2025-02-06"), "field dt: expected 2025-02-05, found 2025-02-06"),
    "another version": (changed(schema_version=2), "field schema_version: expected 1, found 2"),
    "an unknown fetch": (
        changed(fetch_id="nobody"),
        "field fetch_id: expected a fetch of demo_daily.*, found 'nobody'",
    ),
    "a wrong hash": (changed(title="new"), "field content_hash: expected '[0-9a-f]{64}', or no such field, found"),
}


@pytest.fixture(scope="module")
def judged(settings: Settings) -> Iterator[tuple[Lake, SourceDay, list[Row]]]:
    """A day to which no wrong row may come."""
    day = SourceDay(SOURCE, date(2025, 2, 5))
    with lake_with(settings) as lake:
        publish(lake, day)
        yield lake, day, rows_of(lake, day)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_row_is_named_and_nothing_is_changed(
    judged: tuple[Lake, SourceDay, list[Row]], tmp_path: Path, name: str
) -> None:
    lake, day, rows = judged
    change, words = WRONG[name]
    before = hashes(lake, day)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [rows[0], change(rows[1]), *rows[2:]]), "utf-8")
    with pytest.raises(DataError, match=rf"rows.jsonl, line 2: {words}"):
        apply_file(lake, [day], path)
    assert hashes(lake, day) == before
    assert [fix for fix in all_fixes(lake.decisions) if fix.day == day] == []


def test_files_that_cannot_be_read_say_why(judged: tuple[Lake, SourceDay, list[Row]], tmp_path: Path) -> None:
    lake, day, rows = judged
    path = tmp_path / "rows.jsonl"
    write(path, [*rows, rows[0]])
    with pytest.raises(DataError, match=rf"line {len(rows) + 1}: .* expected no second row like rows.jsonl, line 1"):
        read_given_rows(lake, [day], path)
    for text, words in {
        b"[1]\n": "line 1: expected a JSON object",
        b"{\n": "line 1: not one JSON object a line",
        b'{"url": "a", "url": "b"}\n': "line 1: .*'url' stands twice",
        b"\xff\n": "line 1: not one JSON object a line",
        b"\n": "line 1: not one JSON object a line",
    }.items():
        path.write_bytes(text)
        with pytest.raises(DataError, match=words):
            read_given_rows(lake, [day], path)
    for name, words in {
        "rows.csv": "neither Parquet",
        "none.jsonl": "No such file",
        "none.parquet": "No such file",
    }.items():
        with pytest.raises(ConfigError, match=words):
            read_given_rows(lake, [day], tmp_path / name)


def test_a_cell_of_ten_megabytes_is_a_value_like_any_other(settings: Settings, tmp_path: Path) -> None:
    day = SourceDay(SOURCE, date(2025, 2, 6))
    with lake_with(settings) as lake:
        publish(lake, day)
        before = hashes(lake, day)
        rows = rows_of(lake, day)
        rows[0] |= {"body": "大" * 3_500_000}
        del rows[0]["content_hash"]
        [fix] = apply_file(lake, [day], write(tmp_path / "rows.jsonl", rows))
        found = lake.committer.scan("clean.articles", [fix.partition], ["body"]).column("body").to_pylist()
        assert max(len(one.encode()) for one in found) == 10_500_000
        assert roll_back(lake, fix.fix_id, **UNDO)
        assert hashes(lake, day) == before


def test_the_command_takes_a_file(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = SourceDay(SOURCE, date(2025, 2, 7))
    with lake_with(settings) as lake:
        publish(lake, day)
    monkeypatch.setenv("LAKEHOUSE_HOME", str(settings.home))
    monkeypatch.setenv("LAKEHOUSE_CATALOG_DIR", str(settings.catalog_dir))
    path = tmp_path / "rows.ndjson"
    where = f"source = '{SOURCE}' and dt = '{day.dt}'"
    query = f"copy (select * exclude subtitle from clean.articles where {where}) to '{path}' (format json)"
    assert CliRunner().invoke(main, ["sql", query], catch_exceptions=False).exit_code == 0
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    write(path, [{**row, "author": "某人"} for row in rows])
    words = ["fix", "apply", "--source", SOURCE, "--dt", day.dt.isoformat(), "--code", "source_error"]
    done = CliRunner().invoke(main, [*words, "--rows", str(path), "--reason", "names", "--json"])
    assert done.exit_code == 0, done.output
    [fix] = json.loads(done.stdout)
    assert fix["changes"]["clean.articles"]["columns"] == {"author": len(rows)}
    write(path, [{**rows[0], "author": 3}])
    done = CliRunner().invoke(main, [*words, "--rows", str(path), "--reason", "names", "--json"])
    assert done.exit_code == 1
    assert "rows.ndjson, line 1: field author: expected string" in done.stderr
