"""Stored pages are read with their hash checked; what cannot be read is data, and many pages use all cores."""

from __future__ import annotations

import hashlib
import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lakehouse.errors import DataError
from lakehouse.materialize import pages
from lakehouse.materialize.pages import PageParser, ParseJob, is_parsed, load_page
from lakehouse.snapshots.bodies import BodyInfo, put_packed_body
from lakehouse.snapshots.codec import compress
from lakehouse.snapshots.stores import DirectoryStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
JOB = ParseJob(template=None, zone=ZoneInfo("Asia/Shanghai"), language="en")
TEXT = "The mayor opened the new bridge on Sunday. Many people came to see it, and the band played until dark. "


def body_of(number: int) -> bytes:
    """An article's page."""
    return (
        f"<html><head><title>Bridge number {number} opened</title></head><body><article><h1>Bridge number {number} "
        f"opened</h1><p>{TEXT * 3}</p><p>Number {number}. {TEXT * 2}</p></article></body></html>"
    ).encode()


def keep(store: DirectoryStore, key: str, body: bytes) -> str:
    """Store a body; gives its hash."""
    sha256 = hashlib.sha256(body).hexdigest()
    put_packed_body(store, key, compress(body), BodyInfo(sha256, NOON, "text/html", "utf-8"))
    return sha256


def row(number: int, **changed: Any) -> dict[str, Any]:
    """A row of `raw.fetches` for a detail page."""
    return {
        "fetch_id": f"f{number}",
        "kind": "detail",
        "error": None,
        "limited": None,
        "status": 200,
        "url": f"http://town.example/{number}",
        "final_url": None,
        "url_fp": f"u{number}",
        "media_type": "text/html",
        "charset": "utf-8",
        "collect_time": NOON,
        "snap_key": f"snap/town/{number}.zst",
        "content_sha256": hashlib.sha256(body_of(number)).hexdigest(),
        "rendered_key": None,
        "rendered_sha256": None,
        **changed,
    }


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    """A store with page 0."""
    store = DirectoryStore(tmp_path / "objects")
    keep(store, "snap/town/0.zst", body_of(0))
    return store


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"kind": "list"}, False),
        ({"error": "timeout"}, False),
        ({"limited": "captcha"}, False),
        ({"status": 304}, False),
        ({"snap_key": None}, False),
        ({"snap_key": None, "rendered_key": "snap/r.zst"}, True),
    ],
)
def test_only_fetches_with_a_page_are_parsed(changed: dict[str, Any], expected: bool) -> None:
    assert is_parsed(row(0, **changed)) is expected


def test_a_page_is_read_and_parsed(store: DirectoryStore) -> None:
    with PageParser(store, 1) as parser:
        [parsed] = parser.parse([row(0)], {}, JOB)
    assert parsed.problem is None
    assert "Bridge number 0" in parsed.values["title"]
    assert "the band played until dark" in parsed.values["body"]


def test_the_rendered_page_is_preferred(store: DirectoryStore) -> None:
    sha256 = keep(store, "snap/town/0-rendered.zst", body_of(7))
    page = load_page(store, row(0, rendered_key="snap/town/0-rendered.zst", rendered_sha256=sha256, charset="gbk"), {})
    assert (page.body, page.charset) == (body_of(7), "utf-8")


def test_a_missing_body_is_a_reject_of_its_own_page_only(store: DirectoryStore) -> None:
    with PageParser(store, 2) as parser:
        good, gone = parser.parse([row(0), row(1)], {}, JOB)
    assert (good.problem, gone.problem) == (None, "snapshot_missing")
    assert "snap/town/1.zst" in str(gone.detail)


def test_a_body_with_another_hash_is_never_parsed(store: DirectoryStore) -> None:
    with PageParser(store, 1) as parser:
        [parsed] = parser.parse([row(0, content_sha256="0" * 64)], {}, JOB)
    assert (parsed.problem, dict(parsed.values)) == ("snapshot_corrupt", {})


def test_damaged_bytes_are_never_parsed(store: DirectoryStore, tmp_path: Path) -> None:
    stored = next(path for path in (tmp_path / "objects").rglob("0.zst*") if path.is_file() and path.suffix == ".zst")
    data = bytearray(stored.read_bytes())
    data[len(data) // 2] ^= 0xFF
    stored.chmod(0o644)
    stored.write_bytes(bytes(data))
    with PageParser(store, 1) as parser:
        [parsed] = parser.parse([row(0)], {}, JOB)
    assert parsed.problem == "snapshot_corrupt"


def test_many_pages_are_parsed_by_processes_in_the_same_order(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 70):
        keep(store, f"snap/town/{number}.zst", body_of(number))
    rows = [row(number) for number in range(70)]
    with PageParser(store, 70) as parser:
        alone = list(parser.parse(rows, {}, JOB))
    monkeypatch.setattr(pages, "PARALLEL_FROM", 60)
    with PageParser(store, 70, cores=2) as parser:
        assert parser._pool is not None
        together = list(parser.parse(rows, {}, JOB))
    assert alone == together
    assert [parsed.values["title"] for parsed in together] == [f"Bridge number {number} opened" for number in range(70)]


def test_few_pages_start_no_processes(store: DirectoryStore) -> None:
    with PageParser(store, pages.PARALLEL_FROM - 1) as parser:
        assert parser._pool is None


def die(*_: object) -> None:
    """A parser that takes its process along."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_page_that_kills_its_process_fails_its_day_and_no_other(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(0, fetch_id=f"f{number}") for number in range(64)]
    monkeypatch.setattr(pages, "PARALLEL_FROM", 60)
    with PageParser(store, 64, cores=2) as parser:
        monkeypatch.setattr(pages, "parse_chunk", die)
        with pytest.raises(DataError, match="died"):
            list(parser.parse(rows, {}, JOB))
        monkeypatch.undo()
        assert [parsed.problem for parsed in parser.parse(rows, {}, JOB)] == [None] * 64
