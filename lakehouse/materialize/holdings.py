"""What the tables hold of each partition, read from manifests and file names: the truth behind the index.

`gone` are data files, by plain path, that are known to be lost: their rows count as not there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date

import polars as pl
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import ManifestEntry
from pyiceberg.table import Table

from lakehouse.lake import Lake
from lakehouse.ledger.partitions import PartitionIndex
from lakehouse.materialize.index import indexed_partition
from lakehouse.materialize.retention import KIND as RETENTION
from lakehouse.model.partition import Layer, Partition
from lakehouse.tables.changes import FileFacts
from lakehouse.tables.content import EMPTY_HASH
from lakehouse.tables.producer import all_entries
from lakehouse.tables.registry import versions_of
from lakehouse.tables.split import partition_of

DAY = ["source", "dt"]
VERSION = [*DAY, "schema_version"]


@dataclass(frozen=True, slots=True)
class Holding:
    """Files, rows, bytes and content hash of a partition; `snapshot_id` is the table snapshot that last added to it."""

    files: int
    rows: int
    bytes: int
    checksum: str
    snapshot_id: int | None


NOTHING = Holding(0, 0, 0, EMPTY_HASH, None)


def read_holdings(lake: Lake, table: str) -> dict[Partition, Holding]:
    """Every partition of a table that has rows, under its key in the index; nothing for a table that is not there."""
    try:
        found = lake.iceberg.load_table(table)
    except NoSuchTableError:
        return {}
    specs = versions_of(lake.catalog, table)
    facts, newest = FileFacts(specs), specs[-1].version
    holdings = {}
    for key, entries in all_entries(found)[0].items():
        one = partition_of(key)
        # A table that is not partitioned by version is indexed under its newest.
        partition = replace(one, schema_version=one.schema_version or newest)
        holdings[indexed_partition(lake, table, partition)] = _holding(found, facts, entries)
    return holdings


def _holding(table: Table, facts: FileFacts, entries: list[ManifestEntry]) -> Holding:
    files = [entry.data_file for entry in entries]
    newest = max(entries, key=lambda entry: entry.sequence_number or 0)
    return Holding(
        len(files),
        sum(one.record_count for one in files),
        sum(one.file_size_in_bytes for one in files),
        f"{facts.sum_of(table, files):032x}",
        newest.snapshot_id,
    )


def retired_partitions(lake: Lake) -> dict[Layer, set[Partition]]:
    """Partitions that retention has emptied, by layer, as the decisions say."""
    found: dict[Layer, set[Partition]] = {}
    for one in lake.decisions.all(RETENTION):
        payload, source = one.decision.payload, one.decision.source or ""
        layer = Layer(payload["table"].partition(".")[0])
        days = zip(payload["days"], payload["versions"], strict=True)
        found.setdefault(layer, set()).update(Partition(source, date.fromisoformat(day), n) for day, n in days)
    return found


def covered(lake: Lake, gone: Collection[str] = ()) -> set[Partition]:
    """Partitions of `clean.outcomes` that speak of just the fetches that raw holds of their day."""
    fetches = _fingerprints(_scan(lake, "raw.fetches", [*DAY, "fetch_id"], gone), DAY, ["fetch_id"])
    outcomes = _fingerprints(_scan(lake, "clean.outcomes", [*VERSION, "fetch_id"], gone), VERSION, ["fetch_id"])
    return _partitions(outcomes.join(fetches, on=[*DAY, "rows", "mark"], how="semi"))


def promised_rows(lake: Lake, gone: Collection[str] = ()) -> Mapping[Partition, int]:
    """Clean rows that the outcomes of each partition promise."""
    outcomes = _scan(lake, "clean.outcomes", [*VERSION, "rows_out"], gone)
    summed = outcomes.group_by(VERSION).agg(pl.col("rows_out").sum())
    return {Partition(source, dt, version): int(rows) for source, dt, version, rows in summed.iter_rows()}


def computed(lake: Lake, records: str, features: str, gone: Collection[str] = ()) -> set[Partition]:
    """Partitions of a table of records whose rows are just those that a feature table holds features of."""
    columns = ["url_fp", "fetch_id", "content_hash"]
    clean = _fingerprints(_scan(lake, records, [*VERSION, *columns], gone), VERSION, columns)
    made = _fingerprints(_scan(lake, features, [*DAY, *columns], gone), DAY, columns)
    return _partitions(clean.join(made, on=[*DAY, "rows", "mark"], how="semi"))


def _scan(lake: Lake, table: str, columns: list[str], gone: Collection[str]) -> pl.DataFrame:
    return pl.DataFrame(lake.committer.scan(table, None, columns, without=gone))


def _fingerprints(frame: pl.DataFrame, by: list[str], columns: list[str]) -> pl.DataFrame:
    """Number of rows and an order-free mark of some columns, by group."""
    return frame.group_by(by).agg(rows=pl.len(), mark=pl.concat_str(columns, separator=" ").hash().sum())


def _partitions(frame: pl.DataFrame) -> set[Partition]:
    return {Partition(source, dt, version) for source, dt, version in frame.select(VERSION).iter_rows()}


def refresh_sizes(lake: Lake, table: str, partitions: Collection[Partition]) -> None:
    """Let the index say how some partitions lie now; for work that moves rows between files and changes none."""
    index, layer = PartitionIndex(lake.ledger), Layer(table.partition(".")[0])
    held = read_holdings(lake, table) if partitions else {}
    for one in partitions:
        key = indexed_partition(lake, table, one)
        known, holding = index.get(layer, table, key), held.get(key)
        if known is not None and holding is not None:
            moved = replace(known, file_count=holding.files, byte_size=holding.bytes)
            index.record(replace(moved, table_snapshot_id=holding.snapshot_id))
