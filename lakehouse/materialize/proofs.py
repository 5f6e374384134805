"""Proofs on the live system: each measures one promise and says what it measured.

A proof looks at all it can afford, else at a sample that is the same for the same tables. None of them changes a table
where the promise holds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.lake import Lake
from lakehouse.ledger.batches import BatchIndex
from lakehouse.ledger.partitions import ENDED_STATES, PartitionIndex
from lakehouse.materialize.books import audit_all_books
from lakehouse.materialize.clean import clean_partition_frames
from lakehouse.materialize.index import NO_DAY
from lakehouse.materialize.lineage import Row, find_rows, having, lead_home, record_tables
from lakehouse.materialize.raw import batch_frames
from lakehouse.model.partition import Layer
from lakehouse.model.record import REJECT_REASONS
from lakehouse.query import connect, verify
from lakehouse.query.engines import Engine
from lakehouse.snapshots.batches import load_batch
from lakehouse.tables.content import content_hash

SAMPLE = 100
SEED = 7

PROVEN, FAILED, NOTHING, NOT_BUILT = "proven", "failed", "nothing to prove it on", "not built yet"
UNBUILT = {
    "versions_and_fixes": "a fix is published, rolled back and published again without loss",
    "replay_from_packs": "clean tables made from packs alone, without any network, equal the live ones",
    "ledger_rebuild": "a ledger rebuilt from tables and objects says the same as the live one",
    "restore_from_backup": "a lake restored elsewhere from its bucket holds the same rows",
    "release": "several tables change together for every reader of the front doors",
    "least_privilege": "each user of the object store is refused what it must not do",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a proof found: whether the promise holds (None where there was nothing to look at), values, and faults."""

    holds: bool | None
    values: Mapping[str, Any]
    faults: Sequence[str] = ()


Proof = Callable[[Lake, Sequence[Engine]], Measured]


def run_proofs(lake: Lake, engines: Sequence[Engine], say: Callable[[str], Any]) -> list[dict[str, Any]]:
    """Every proof with its status, measured values and seconds; those that are not built yet say so."""
    rows = []
    for name, (promise, proof) in PROOFS.items():
        say(f"proving {name}")
        began = time.perf_counter()
        try:
            found = proof(lake, engines)
        except LakehouseError as error:
            found = Measured(holds=False, values={}, faults=[str(error)])
        row = _row(name, promise, {True: PROVEN, False: FAILED, None: NOTHING}[found.holds], found)
        rows.append({**row, "seconds": round(time.perf_counter() - began, 3)})
    unbuilt = Measured(holds=None, values={})
    return rows + [_row(name, promise, NOT_BUILT, unbuilt) for name, promise in UNBUILT.items()]


def _row(name: str, promise: str, status: str, found: Measured) -> dict[str, Any]:
    return {
        "name": name,
        "promise": promise,
        "status": status,
        "measured": dict(found.values),
        "faults": list(found.faults[:10]),
    }


def prove_books(lake: Lake, _: Sequence[Engine]) -> Measured:
    audit = audit_all_books(lake)
    cleaned = [day for day in audit.days if day.cleaned]
    faults = [problem for day in cleaned for problem in day.problems]
    values = {
        "days": len(cleaned),
        "fetches": sum(day.fetches for day in cleaned),
        "outcomes": sum(sum(day.outcomes.values()) for day in cleaned),
        "rows_out": sum(day.rows_out for day in cleaned),
        "rows": sum(day.rows for day in cleaned),
        "days_not_cleaned_yet": len(audit.days) - len(cleaned),
    }
    return Measured(not faults if cleaned else None, values, faults)


def prove_way_home(lake: Lake, _: Sequence[Engine]) -> Measured:
    ids = sorted(
        {name for table in [*record_tables(lake), "clean.rejects"] for name in _column(lake, table, "fetch_id")}
    )
    chosen = _sample(ids)
    fetches = find_rows(lake, "raw.fetches", having("fetch_id", *chosen)) if chosen else []
    known = {row["fetch_id"] for row in fetches}
    faults = [f"fetch {fetch_id} is not in raw.fetches" for fetch_id in chosen if fetch_id not in known]
    verified = 0
    for home in lead_home(lake, fetches) if fetches else []:
        verified += bool((home["snapshot"] or {}).get("verified"))
        faults += [f"fetch {home['fetch']['fetch_id']}: {problem}" for problem in home["problems"]]
    values = {"rows": len(ids), "sample": len(chosen), "bodies_verified": verified}
    return Measured(not faults and verified == len(chosen) if ids else None, values, faults)


def prove_rejects(lake: Lake, _: Sequence[Engine]) -> Measured:
    columns = ["fetch_id", "reason", "snap_key"]
    rejects: list[Row] = lake.committer.scan("clean.rejects", None, columns).to_pylist()
    known = set(REJECT_REASONS) | _declared_reasons(lake)
    faults = [
        f"fetch {row['fetch_id']}: reason {row['reason']!r} is on no list"
        for row in rejects
        if row["reason"] not in known
    ]
    paged = [row for row in rejects if row["snap_key"] is not None]
    faults += [f"fetch {row['fetch_id']}: a reject without a page" for row in rejects if row["snap_key"] is None]
    chosen = _sample(sorted({row["snap_key"] for row in paged}))
    faults += [f"object {key} is not stored" for key in chosen if lake.store.head(key) is None]
    values = {"rejects": len(rejects), "with_page": len(paged), "pages_looked_up": len(chosen)}
    return Measured(not faults if rejects else None, values, faults)


def prove_engines(lake: Lake, engines: Sequence[Engine]) -> Measured:
    report = verify(lake.iceberg, engines)
    faults = [table.describe() for table in report.differences]
    rows = sum(table.readings[0].rows for table in report.tables)
    values = {"engines": list(report.engines), "tables": len(report.tables), "rows": rows}
    return Measured(not faults if report.tables else None, values, faults)


def prove_batch_twice(lake: Lake, _: Sequence[Engine]) -> Measured:
    batches = BatchIndex(lake.ledger).committed()
    if not batches:
        return Measured(None, {"batches": 0})
    faults, rows = [], 0
    chosen = [batches[number] for number in _sample(range(len(batches)), 3)]
    for row in chosen:
        for dataset, frame in batch_frames(lake, load_batch(lake.store, row.key)).items():
            table = f"raw.{dataset}"
            before = lake.committer.table(table).current_snapshot()
            commit = lake.committer.append(table, frame)
            after = lake.committer.table(table).current_snapshot()
            rows += frame.num_rows
            if commit.changed or before != after:
                faults.append(f"batch {row.batch_id} changed {table} when it was committed again")
    return Measured(not faults, {"batches": len(chosen), "rows_offered_again": rows, "rows_added": 0}, faults)


def prove_latest(lake: Lake, _: Sequence[Engine]) -> Measured:
    values: dict[str, Any] = {}
    faults = []
    with connect(lake) as db:
        for table in record_tables(lake):
            if table not in db.names:
                continue
            query = f"SELECT count(*), count(DISTINCT (source, canonical_fp)) FROM {table}_latest"  # noqa: S608
            rows, pages = db.execute(query).fetchall()[0]
            values[table] = {"rows": rows, "pages": pages}
            if rows != pages:
                faults.append(f"{table}_latest has {rows} rows for {pages} pages")
    return Measured(not faults if values else None, values, faults)


def prove_purity(lake: Lake, _: Sequence[Engine]) -> Measured:
    """The newest ended clean days, made again from raw in memory, hold what their tables hold."""
    ended = [
        info
        for table in record_tables(lake)
        for info in PartitionIndex(lake.ledger).list(Layer.CLEAN, table)
        if info.state in ENDED_STATES and info.partition.source in lake.catalog.sources
    ]
    newest = sorted(ended, key=lambda info: (info.partition.dt, info.partition.source))[-5:]
    faults, rows = [], 0
    for info in newest:
        for table, frame in clean_partition_frames(lake, info.partition.day).items():
            live = lake.committer.scan(table, [info.partition])
            rows += live.num_rows
            if content_hash(frame) != content_hash(live):
                faults.append(f"{table} {info.partition.path} made again differs from the table")
    return Measured(not faults if newest else None, {"days": len(newest), "rows": rows}, faults)


def prove_index(lake: Lake, _: Sequence[Engine]) -> Measured:
    infos = [info for info in PartitionIndex(lake.ledger).list() if info.partition.dt != NO_DAY]
    chosen = _sample(infos)
    faults = []
    for info in chosen:
        live = lake.committer.scan(info.table, [info.partition])
        if (live.num_rows, content_hash(live)) != (info.row_count, info.checksum):
            faults.append(
                f"{info.table} {info.partition.path} has {live.num_rows} rows, the index says {info.row_count}"
            )
    return Measured(not faults if infos else None, {"partitions": len(infos), "sample": len(chosen)}, faults)


def _column(lake: Lake, table: str, name: str) -> list[str]:
    values: list[str] = lake.committer.scan(table, None, [name])[name].to_pylist()
    return values


def _declared_reasons(lake: Lake) -> set[str]:
    return {rule.reason for checks in lake.catalog.checks.values() for rule in checks.rules}


def _sample(values: Sequence[Any], size: int = SAMPLE) -> list[Any]:
    return list(values) if len(values) <= size else random.Random(SEED).sample(list(values), size)  # noqa: S311


PROOFS: dict[str, tuple[str, Proof]] = {
    "books_balance": ("every fetch has one outcome, and clean rows are the sum of what they gave", prove_books),
    "every_row_leads_home": (
        "rows and rejects lead to task, worker, template and a page with its hash",
        prove_way_home,
    ),
    "rejects_have_reasons": ("every reject has a reason from the list and a stored page", prove_rejects),
    "engines_agree": ("all engines read the same rows from every table", prove_engines),
    "same_batch_twice": ("a batch that is committed again adds nothing", prove_batch_twice),
    "latest_has_no_duplicates": ("the latest view has one row a page", prove_latest),
    "clean_is_pure": ("clean partitions made again from raw, without network, hold the same rows", prove_purity),
    "index_tells_the_truth": ("the ledger's index says what the tables hold", prove_index),
}
