"""Batches as the object store and the raw tables know them: every stored batch, and whether the tables hold it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date

import polars as pl

from lakehouse.lake import Lake
from lakehouse.ledger.batches import BatchRow, BatchState
from lakehouse.materialize.holdings import retired_partitions
from lakehouse.model.partition import Layer, SourceDay
from lakehouse.snapshots.batches import load_batch
from lakehouse.snapshots.objects import ObjectInfo

PREFIX = "batch/"
KEY = re.compile(r"batch/(?P<source>[^/]+)/(?P<y>\d{4})/(?P<m>\d\d)/(?P<d>\d\d)/(?P<id>[0-9a-f]{32})\.json\.zst")
KINDS = ("tasks", "entries", "fetches")


def derive_batches(lake: Lake, gone: Collection[str] = ()) -> Iterator[BatchRow]:
    """Every batch in the object store, oldest first; committed where all raw tables hold its rows.

    The table snapshots that held it are not known any more; `gone` are data files that are lost. Raises
    UnavailableError where the store does not answer.
    """
    counts = _counts(lake, gone)
    retired = {one.day for one in retired_partitions(lake).get(Layer.RAW, ())}
    for info in sorted(lake.store.list(PREFIX), key=lambda one: (one.modified, one.key)):
        found = KEY.fullmatch(info.key)
        if found is not None:
            day = SourceDay(found["source"], date(int(found["y"]), int(found["m"]), int(found["d"])))
            yield _row(lake, info, day, found["id"], counts.get(found["id"], {}), retired=day in retired)


def _row(
    lake: Lake, info: ObjectInfo, day: SourceDay, batch_id: str, held: Mapping[str, int], *, retired: bool
) -> BatchRow:
    # Fetches come last, so a batch that has some in the tables is there as a whole.
    counts = held if held.get("fetches") else load_batch(lake.store, info.key).counts
    done = retired or all(held.get(kind, 0) == counts.get(kind, 0) for kind in KINDS)
    return BatchRow(
        batch_id=batch_id,
        source=day.source,
        dt=day.dt,
        key=info.key,
        state=BatchState.COMMITTED if done else BatchState.UPLOADED,
        counts={kind: counts.get(kind, 0) for kind in KINDS},
        snapshots={},
        uploaded_at=info.modified,
        committed_at=lake.clock.now_utc() if done else None,
    )


def _counts(lake: Lake, gone: Collection[str]) -> dict[str, dict[str, int]]:
    """Rows in the raw tables, by batch and kind."""
    found: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        frame = pl.DataFrame(lake.committer.scan(f"raw.{kind}", None, ["batch_id"], without=gone))
        for batch_id, rows in frame.group_by("batch_id").len().iter_rows():
            found.setdefault(batch_id, {})[kind] = rows
    return found
