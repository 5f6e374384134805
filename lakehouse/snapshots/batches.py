"""Batches: fetches committed together, with their entries and ended tasks, and the order in which they are uploaded.

What a batch holds is fixed on disk first, so a second try uploads the same batch. Then: bodies, manifest object,
ledger row, and only then the spool files go. Whoever dies in between leaves work that the next run finishes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Self

from lakehouse.errors import SnapshotCorrupt
from lakehouse.logs import get_log
from lakehouse.model.fetch import EndedTask, Entry, Fetch
from lakehouse.snapshots.bodies import BodyInfo, put_packed_body
from lakehouse.snapshots.codec import compress, decode
from lakehouse.snapshots.keys import RENDERED, SERVED, batch_key, snapshot_key
from lakehouse.snapshots.objects import SHA256, ObjectStore
from lakehouse.snapshots.rows import row_as_json, row_from_json
from lakehouse.snapshots.spool import Spool, SpoolRecord

FORMAT = 1
MAX_FETCHES = 500
MAX_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Batch:
    """What is committed together. `batch_id` is the fingerprint of the identities of all rows."""

    batch_id: str
    source: str
    dt: date
    fetches: tuple[Fetch, ...]
    entries: tuple[Entry, ...]
    tasks: tuple[EndedTask, ...]

    @classmethod
    def of(
        cls,
        source: str,
        dt: date,
        fetches: Sequence[Fetch],
        entries: Sequence[Entry] = (),
        tasks: Sequence[EndedTask] = (),
    ) -> Self:
        """A batch of these rows, with its id."""
        identities = sorted(
            [f"fetch {fetch.fetch_id}" for fetch in fetches]
            + [f"entry {entry.task_id} {entry.page_no} {entry.position} {entry.url_fp}" for entry in entries]
            + [f"task {task.task_id}" for task in tasks]
        )
        batch_id = hashlib.sha256("\n".join([source, dt.isoformat(), *identities]).encode()).hexdigest()[:32]
        return cls(batch_id, source, dt, tuple(fetches), tuple(entries), tuple(tasks))

    @property
    def counts(self) -> dict[str, int]:
        """Rows by kind."""
        return {"fetches": len(self.fetches), "entries": len(self.entries), "tasks": len(self.tasks)}

    def to_bytes(self) -> bytes:
        """The manifest: JSON, zstd."""
        return compress(self.to_json())

    def to_json(self) -> bytes:
        """The manifest before compression; the same batch always gives the same bytes."""
        value = {
            "format": FORMAT,
            "batch_id": self.batch_id,
            "source": self.source,
            "dt": self.dt.isoformat(),
            "fetches": [row_as_json(row) for row in self.fetches],
            "entries": [row_as_json(row) for row in self.entries],
            "tasks": [row_as_json(row) for row in self.tasks],
        }
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The inverse of `to_bytes`; raises SnapshotCorrupt for bytes that are no batch or not the batch they name."""
        try:
            value = json.loads(decode(data))
            if value["format"] != FORMAT:
                raise SnapshotCorrupt(f"batch manifest has format {value['format']}; this version reads {FORMAT}")
            batch = cls.of(
                value["source"],
                date.fromisoformat(value["dt"]),
                [row_from_json(Fetch, row) for row in value["fetches"]],
                [row_from_json(Entry, row) for row in value["entries"]],
                [row_from_json(EndedTask, row) for row in value["tasks"]],
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SnapshotCorrupt(f"{len(data)} bytes are no batch manifest: {error}") from error
        if batch.batch_id != value["batch_id"]:
            raise SnapshotCorrupt(f"batch manifest {value['batch_id']} holds the rows of another batch")
        return batch


def load_batch(store: ObjectStore, key: str) -> Batch:
    """The batch whose manifest is stored under `key`; raises UnknownNameError if absent, else SnapshotCorrupt."""
    try:
        return Batch.from_bytes(store.get(key).data)
    except SnapshotCorrupt as error:
        raise SnapshotCorrupt(f"object {key}: {error}") from error


@dataclass(frozen=True, slots=True)
class Books:
    """What uploading asks of the ledger.

    `settle` applies a record's `after` (again is harmless); `ended` gives the tasks that these `after`s ended;
    `register(batch_id, source, dt, key, counts)` notes a stored batch (again is harmless).
    """

    settle: Callable[[Mapping[str, Any]], object]
    ended: Callable[[Sequence[Mapping[str, Any]]], Sequence[EndedTask]]
    register: Callable[[str, str, date, str, Mapping[str, int]], None]


def upload_pending(spool: Spool, store: ObjectStore, books: Books, source: str, dt: date) -> list[str]:
    """Upload and register everything that is spooled for a day; gives the ids of the batches, old tries included."""
    with spool.lock(source, dt):
        for plan in spool.cleared_plans(source, dt):
            batch = Batch.from_bytes(plan.read_bytes())
            spool.clear(source, dt, plan, [fetch.fetch_id for fetch in batch.fetches])
        done = [_finish(spool, store, books, plan) for plan in spool.plans(source, dt)]
        records = _whole(spool, spool.pending(source, dt))
        for record in records:
            books.settle(record.after)
        for group in _groups(records):
            batch = _batch_of(group, books, source, dt)
            plan = spool.plan(source, dt, batch.batch_id, batch.to_bytes())
            done.append(_finish(spool, store, books, plan))
    return done


def _finish(spool: Spool, store: ObjectStore, books: Books, plan: Path) -> str:
    batch = Batch.from_bytes(plan.read_bytes())
    for fetch in batch.fetches:
        _store_bodies(spool.record(batch.source, batch.dt, fetch.fetch_id), fetch, store)
    key = batch_key(batch.source, batch.dt, batch.batch_id)
    manifest = batch.to_json()
    store.put(
        key,
        compress(manifest),
        content_type="application/zstd",
        metadata={SHA256: hashlib.sha256(manifest).hexdigest(), "media-type": "application/json"},
    )
    books.register(batch.batch_id, batch.source, batch.dt, key, batch.counts)
    spool.clear(batch.source, batch.dt, plan, [fetch.fetch_id for fetch in batch.fetches])
    get_log(source=batch.source).info("batch uploaded", batch=batch.batch_id, dt=batch.dt.isoformat(), **batch.counts)
    return batch.batch_id


def _store_bodies(record: SpoolRecord, fetch: Fetch, store: ObjectStore) -> None:
    served, rendered = record.read_packed()
    if served is not None and fetch.snap_key is not None and fetch.content_sha256 is not None:
        about = BodyInfo(fetch.content_sha256, fetch.collect_time, fetch.media_type, fetch.charset)
        put_packed_body(store, fetch.snap_key, served, about)
    if rendered is not None and fetch.rendered_key is not None and fetch.rendered_sha256 is not None:
        about = BodyInfo(fetch.rendered_sha256, fetch.collect_time, "text/html", "utf-8")
        put_packed_body(store, fetch.rendered_key, rendered, about)


def _batch_of(records: Sequence[SpoolRecord], books: Books, source: str, dt: date) -> Batch:
    entries = [entry for record in records for entry in record.entries]
    tasks = books.ended([record.after for record in records])
    return Batch.of(source, dt, [_with_keys(record) for record in records], entries, tasks)


def _with_keys(record: SpoolRecord) -> Fetch:
    served, rendered = record.lengths
    return replace(
        record.fetch,
        snap_key=None if served is None else snapshot_key(record.fetch, SERVED),
        rendered_key=None if rendered is None else snapshot_key(record.fetch, RENDERED),
    )


def _whole(spool: Spool, records: Sequence[SpoolRecord]) -> list[SpoolRecord]:
    whole = []
    for record in records:
        try:
            record.read_packed()
            whole.append(record)
        except SnapshotCorrupt as error:
            spool.set_aside(record.path)
            get_log(source=record.fetch.source, task=record.fetch.task_id).error("spool file set aside", why=str(error))
    return whole


def _groups(records: Sequence[SpoolRecord]) -> Iterator[list[SpoolRecord]]:
    group: list[SpoolRecord] = []
    size = 0
    for record in records:
        if group and (len(group) >= MAX_FETCHES or size + record.size > MAX_BYTES):
            yield group
            group, size = [], 0
        group.append(record)
        size += record.size
    if group:
        yield group
