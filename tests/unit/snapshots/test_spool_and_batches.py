from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.errors import SnapshotCorrupt, UnavailableError
from lakehouse.model.fetch import EndedTask, Entry, Fetch, FetchKind
from lakehouse.model.partition import SourceDay
from lakehouse.snapshots import batches
from lakehouse.snapshots.batches import Batch, Books, load_batch, upload_pending
from lakehouse.snapshots.bodies import read_body
from lakehouse.snapshots.codec import decode
from lakehouse.snapshots.rows import row_as_json, row_from_json
from lakehouse.snapshots.spool import Spool
from lakehouse.snapshots.stores import DirectoryStore

DAY = date(2026, 3, 1)
WHEN = datetime(2026, 3, 1, 4, tzinfo=UTC)
MakeFetch = Callable[..., Fetch]


class Ledger:
    """What uploading tells the ledger, in the order of its coming."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.registered: dict[str, str] = {}
        self.fails = False

    @property
    def books(self) -> Books:
        return Books(self.settle, self.ended, self.register)

    def settle(self, after: Mapping[str, Any]) -> None:
        self.heard.append(f"settle {after['task_id']}")

    def ended(self, afters: Sequence[Mapping[str, Any]]) -> list[EndedTask]:
        return [ended_task(after["task_id"]) for after in afters]

    def register(self, batch_id: str, source: str, dt: date, key: str, counts: Mapping[str, int]) -> None:
        if self.fails:
            raise UnavailableError("ledger is down")
        self.heard.append(f"register {batch_id}")
        self.registered[batch_id] = key


def ended_task(task_id: str) -> EndedTask:
    return EndedTask(
        source="news",
        dt=DAY,
        task_id=task_id,
        parent_task_id=None,
        name="column",
        kind=FetchKind.DETAIL,
        url="http://a/",
        url_fp="f" * 32,
        state="done",
        reason=None,
        attempts=1,
        worker_id="w",
        history=({"at": WHEN.isoformat(), "state": "done"},),
        created_at=WHEN,
        ended_at=WHEN,
    )


def entry(number: int) -> Entry:
    return Entry("news", DAY, "t", "f" * 32, 1, number, f"http://a/{number}", "e" * 32, {"title": "标题"}, WHEN)


def write(spool: Spool, fetch: Fetch, body: bytes | None = b"<html>", **more: Any) -> None:
    spool.write(fetch, body, after={"task_id": fetch.task_id}, **more)


def test_rows_survive_json(make_fetch: MakeFetch) -> None:
    fetch = make_fetch(1, charset_votes={"header": "gbk"}, response_headers={"a": "b"})
    assert row_from_json(Fetch, row_as_json(fetch)) == fetch
    assert row_from_json(Entry, row_as_json(entry(1))) == entry(1)
    assert row_from_json(EndedTask, row_as_json(ended_task("t"))) == ended_task("t")


def test_a_spooled_fetch_is_read_back_whole(spool: Spool, make_fetch: MakeFetch) -> None:
    fetch = make_fetch(1)
    spool.write(fetch, b"served", b"rendered", entries=[entry(1)], after={"state": "done"})
    (record,) = spool.pending("news", DAY)
    assert (record.fetch, record.entries, record.after) == (fetch, (entry(1),), {"state": "done"})
    served, rendered = record.read_packed()
    assert (decode(served or b""), decode(rendered or b"")) == (b"served", b"rendered")
    assert spool.days() == [SourceDay("news", DAY)]
    assert spool.pending("other", DAY) == []


@given(cut=st.integers(1, 400))
def test_a_record_cut_off_anywhere_never_counts(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    spool = Spool(tmp_path_factory.mktemp("spool"))
    fetch = Fetch(
        "1" * 32, "news", DAY, "t", "w", FetchKind.DETAIL, "http", "http://a/", "http://a/", "f" * 32, 1, WHEN
    )
    path = spool.write(fetch, b"body" * 50).path
    path.write_bytes(path.read_bytes()[:-cut])
    assert spool.pending("news", DAY) == []
    assert spool.set_aside_torn("news", DAY) == [path.name]
    assert spool.set_aside_torn("news", DAY) == []


def test_files_left_half_written_by_the_dead_are_reported_and_by_the_living_are_not(
    spool: Spool, make_fetch: MakeFetch
) -> None:
    path = spool.write(make_fetch(1), b"body").path
    path.with_name(f"{'2' * 32}.fetch.4999999.ab.part").write_bytes(b"{")
    path.with_name(f"{'3' * 32}.fetch.{os.getpid()}.ab.part").write_bytes(b"{")
    assert spool.set_aside_torn("news", DAY) == [f"{'2' * 32}.fetch.4999999.ab.part"]
    assert len(spool.pending("news", DAY)) == 1


def test_uploading_stores_bodies_then_manifest_then_registers_then_clears(
    spool: Spool, store: DirectoryStore, make_fetch: MakeFetch
) -> None:
    ledger = Ledger()
    write(spool, make_fetch(1), entries=[entry(1)])
    write(spool, make_fetch(2, rendered_sha256=make_fetch(2, b"dom").content_sha256), rendered=b"dom")
    write(spool, make_fetch(3, error="timeout", content_sha256=None), None)
    (batch_id,) = upload_pending(spool, store, ledger.books, "news", DAY)
    batch = load_batch(store, ledger.registered[batch_id])
    assert batch.counts == {"fetches": 3, "entries": 1, "tasks": 3}
    first, second, third = batch.fetches
    assert read_body(store, first.snap_key or "", first.content_sha256) == b"<html>"
    assert read_body(store, second.rendered_key or "", second.rendered_sha256) == b"dom"
    assert (third.snap_key, third.rendered_key) == (None, None)
    assert store.get(second.rendered_key or "").metadata["encoding"] == "utf-8"
    assert ledger.heard[-1] == f"register {batch_id}"
    assert spool.days() == []
    assert upload_pending(spool, store, ledger.books, "news", DAY) == []


def test_a_batch_is_named_by_what_it_holds(make_fetch: MakeFetch) -> None:
    one, two = make_fetch(1), make_fetch(2)
    batch = Batch.of("news", DAY, [one, two], [entry(1)], [ended_task("t")])
    assert Batch.of("news", DAY, [two, one], [entry(1)], [ended_task("t")]).batch_id == batch.batch_id
    others = [
        Batch.of("news", DAY, [one], [entry(1)], [ended_task("t")]),
        Batch.of("news", DAY, [one, two], [entry(2)], [ended_task("t")]),
        Batch.of("news", DAY, [one, two], [entry(1)]),
        Batch.of("news", date(2026, 3, 2), [one, two], [entry(1)], [ended_task("t")]),
    ]
    assert batch.batch_id not in {other.batch_id for other in others}
    assert Batch.from_bytes(batch.to_bytes()) == batch


def test_a_manifest_that_was_tampered_with_is_corrupt(make_fetch: MakeFetch) -> None:
    batch = Batch.of("news", DAY, [make_fetch(1)])
    forged = replace(batch, fetches=(make_fetch(2),))
    for data in (forged.to_bytes(), b"{}", b"no json", batch.to_bytes()[:-4]):
        with pytest.raises(SnapshotCorrupt):
            Batch.from_bytes(data)


def test_a_second_try_uploads_the_same_batch_although_more_was_spooled(
    spool: Spool, store: DirectoryStore, make_fetch: MakeFetch
) -> None:
    ledger = Ledger()
    write(spool, make_fetch(1))
    ledger.fails = True
    with pytest.raises(UnavailableError):
        upload_pending(spool, store, ledger.books, "news", DAY)
    (first,) = [info.key for info in store.list("batch/")]
    write(spool, make_fetch(2))
    ledger.fails = False
    ids = upload_pending(spool, store, ledger.books, "news", DAY)
    assert len(ids) == 2
    assert ledger.registered[ids[0]] == first
    fetches = [fetch.fetch_id for key in ledger.registered.values() for fetch in load_batch(store, key).fetches]
    assert sorted(fetches) == [make_fetch(1).fetch_id, make_fetch(2).fetch_id]


def test_dying_while_clearing_does_not_upload_again(
    spool: Spool, store: DirectoryStore, make_fetch: MakeFetch, tmp_path: Path
) -> None:
    ledger = Ledger()
    write(spool, make_fetch(1))
    write(spool, make_fetch(2))
    folder = tmp_path / "spool/news/2026-03-01"
    left = {path.name: path.read_bytes() for path in folder.glob("*.fetch")}
    (batch_id,) = upload_pending(spool, store, ledger.books, "news", DAY)
    manifest = store.get(ledger.registered[batch_id]).data
    (folder / f"{batch_id}.done").write_bytes(manifest)
    name = sorted(left)[1]
    (folder / name).write_bytes(left[name])
    assert spool.days() == [SourceDay("news", DAY)]
    assert upload_pending(spool, store, ledger.books, "news", DAY) == []
    assert spool.days() == []


def test_batches_stay_small(
    spool: Spool, store: DirectoryStore, make_fetch: MakeFetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MAX_FETCHES", 3)
    monkeypatch.setattr(batches, "MAX_BYTES", 100_000)
    ledger = Ledger()
    for number in range(7):
        write(spool, make_fetch(number), os.urandom(60_000) if number > 3 else b"x")
    keys = [ledger.registered[i] for i in upload_pending(spool, store, ledger.books, "news", DAY)]
    assert [len(load_batch(store, key).fetches) for key in keys] == [3, 2, 1, 1]


def test_a_record_damaged_on_disk_is_set_aside_and_the_rest_goes_up(
    spool: Spool, store: DirectoryStore, make_fetch: MakeFetch
) -> None:
    ledger = Ledger()
    write(spool, make_fetch(1))
    bad = spool.write(make_fetch(2), b"body" * 10).path
    data = bytearray(bad.read_bytes())
    data[-1] ^= 255
    bad.write_bytes(data)
    (batch_id,) = upload_pending(spool, store, ledger.books, "news", DAY)
    assert [f.fetch_id for f in load_batch(store, ledger.registered[batch_id]).fetches] == [make_fetch(1).fetch_id]
    assert bad.with_name(bad.name + ".torn").exists()


def test_a_spool_that_cannot_be_written_is_unavailable(tmp_path: Path, make_fetch: MakeFetch) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UnavailableError, match="cannot spool a page of news"):
        Spool(tmp_path / "file").write(make_fetch(1), b"body")
