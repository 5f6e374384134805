"""Raw partitions: run the collector for due tasks, then commit every uploaded batch in one append a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from lakehouse.errors import LakehouseError, UnavailableError
from lakehouse.lake import Lake
from lakehouse.ledger.batches import BatchIndex, BatchRow
from lakehouse.ledger.partitions import PartitionIndex
from lakehouse.ledger.queue import Queue
from lakehouse.ledger.tasks import TaskState
from lakehouse.logs import get_log
from lakehouse.materialize.collecting import collect, describe_report
from lakehouse.materialize.days import checked_days, raw_partition
from lakehouse.materialize.frames import raw_row
from lakehouse.materialize.index import (
    RunNotes,
    describe_partition,
    record_commit,
    record_state,
    reopen_later_layers,
)
from lakehouse.materialize.marks import newest_marks, next_mark
from lakehouse.materialize.result import PartitionResult, ProgressSink, ignore_progress
from lakehouse.model.fetch import EndedTask, Entry, Fetch, FetchKind
from lakehouse.model.partition import Layer, PartitionState, SourceDay
from lakehouse.snapshots.batches import Batch, load_batch
from lakehouse.tables.normalize import to_arrow

TASK_COLUMNS = ("task_id", "name", "kind", "url_fp", "state", "reason")
DATASETS = ("tasks", "entries", "fetches")
"""In the order of their commits: whoever sees a fetch can find its task."""


def materialize_raw(
    lake: Lake, days: Iterable[SourceDay], progress: ProgressSink | None = None
) -> list[PartitionResult]:
    """Collect the due tasks of each day and commit all uploaded batches of these days, whoever uploaded them.

    Appends only; a batch that is committed already adds nothing. A day that fails keeps what it has, carries its
    error in the results, and does not stop the others. One result a table and day. Raises ConfigError for a day to
    come, UnknownNameError for an unknown source, UnavailableError where store, ledger or tables do not answer.
    """
    say = progress or ignore_progress
    notes = RunNotes(checked_days(lake, days, Layer.RAW))
    for number, day in enumerate(notes.days, start=1):
        say(f"{day.key}: collecting ({number} of {len(notes.days)})")
        _collect_day(lake, day, notes, say)
    commit_batches(lake, notes, say)
    _settle(lake, notes)
    return [
        describe_partition(lake, notes, f"raw.{dataset}", raw_partition(lake, day, dataset))
        for dataset in reversed(DATASETS)
        for day in notes.days
    ]


def _collect_day(lake: Lake, day: SourceDay, notes: RunNotes, say: ProgressSink) -> None:
    log = get_log(source=day.source, dt=day.dt.isoformat(), run=lake.run_id, worker=lake.worker_id)
    try:
        notes.messages[day] = describe_report(collect(lake, day, say))
    except UnavailableError:
        raise
    except LakehouseError as error:
        notes.errors[day] = str(error)
        log.warning("collecting failed", error=str(error))
    except Exception as error:
        # Whatever one site provokes must not stop the other sources of the run.
        notes.errors[day] = f"collecting {day.key} failed: {type(error).__name__}: {error}"
        log.exception("collecting failed")


def commit_batches(lake: Lake, notes: RunNotes, say: ProgressSink = ignore_progress) -> None:
    """Append the rows of all uploaded batches of the days, one commit a table, and mark the batches committed."""
    index = BatchIndex(lake.ledger)
    waiting = [row for day in notes.days for row in index.uploaded(day.source, day.dt)]
    loaded = [(row, frames) for row in waiting if (frames := _load(lake, row, notes)) is not None]
    if not loaded:
        return
    say(f"committing {len(loaded)} batches")
    days = sorted({SourceDay(row.source, row.dt) for row, _ in loaded})
    for day in days:
        reopen_later_layers(lake, day)
    snapshots = {}
    for dataset in DATASETS:
        frame = pa.concat_tables([frames[dataset] for _, frames in loaded])
        commit = lake.committer.append(f"raw.{dataset}", frame)
        snapshots[commit.table] = commit.snapshot_id or 0
        record_commit(lake, notes, commit, [raw_partition(lake, day, dataset) for day in days])
    for row, _ in loaded:
        index.mark_committed(row.batch_id, snapshots)


def _load(lake: Lake, row: BatchRow, notes: RunNotes) -> dict[str, pa.Table] | None:
    """The frames of a stored batch by dataset; None, and an error of its day, if it cannot be read."""
    try:
        return batch_frames(lake, load_batch(lake.store, row.key))
    except UnavailableError:
        raise
    except LakehouseError as error:
        day = SourceDay(row.source, row.dt)
        notes.errors[day] = f"batch {row.batch_id} of {day.key} cannot be committed: {error}"
        return None


def batch_frames(lake: Lake, batch: Batch) -> dict[str, pa.Table]:
    """A batch as the raw tables have it, by dataset; raises SchemaMismatch for a value that does not fit."""
    items: dict[str, Sequence[Fetch | Entry | EndedTask]] = {
        "tasks": batch.tasks,
        "entries": batch.entries,
        "fetches": batch.fetches,
    }
    frames = {}
    for dataset, rows in items.items():
        spec = lake.catalog.schema(dataset, None)
        frames[dataset] = to_arrow([raw_row(item, batch.batch_id, spec.version) for item in rows], spec)
    return frames


def _settle(lake: Lake, notes: RunNotes) -> None:
    """Decide and record how far each day has come."""
    if not notes.days:
        return
    known = newest_marks(lake, {day.source for day in notes.days})
    decisions = []
    for day in notes.days:
        counts = Queue(lake.ledger).counts(day.source, day.dt)
        notes.rows[day] = {str(state): count for state, count in counts.items()}
        notes.states[day] = _state(lake, day, notes)
        rows = {name: _rows(lake, day, name) for name in DATASETS}
        decision = next_mark(known.get(day), raw_partition(lake, day), notes.states[day], rows)
        if decision is not None:
            decisions.append(decision)
    lake.decisions.record_all(decisions)
    for dataset in DATASETS:
        for day in notes.days:
            record_state(lake, notes, f"raw.{dataset}", raw_partition(lake, day, dataset))


def _state(lake: Lake, day: SourceDay, notes: RunNotes) -> PartitionState:
    """How far a day has come, by the ledger's queue and the committed tasks."""
    if day in notes.errors:
        return PartitionState.FAILED
    if not Queue(lake.ledger).due_tasks_ended(day.source, day.dt) or BatchIndex(lake.ledger).uploaded(*_key(day)):
        return PartitionState.OPEN
    tasks = lake.committer.scan("raw.tasks", [raw_partition(lake, day, "tasks")], TASK_COLUMNS).to_pylist()
    lists, broken = judge_lists(tasks)
    if broken:
        reasons = ", ".join(sorted({task["reason"] or "unknown" for task in broken}))
        told = f"{day.key}: {len(broken)} of {lists} list pages could not be read ({reasons})"
        notes.messages[day] = f"{told}, so entries may be missing"
        if len(broken) == lists:
            notes.errors[day] = f"{told}; what was tried is in raw.fetches, run again once the site answers"
        return PartitionState.FAILED
    if any(task["kind"] != FetchKind.LIST for task in tasks) or _rows(lake, day, "entries"):
        return PartitionState.COMPLETE
    return PartitionState.EMPTY


def judge_lists(tasks: Sequence[Mapping[str, Any]]) -> tuple[int, list[Mapping[str, Any]]]:
    """How many list pages the newest tasks of a day ask for, and those that could not be read."""
    newest = {(task["name"], task["url_fp"]): task for task in sorted(tasks, key=lambda task: task["task_id"])}
    lists = [task for task in newest.values() if task["kind"] == FetchKind.LIST]
    return len(lists), [task for task in lists if task["state"] == TaskState.FAILED]


def _rows(lake: Lake, day: SourceDay, dataset: str) -> int:
    info = PartitionIndex(lake.ledger).get(Layer.RAW, f"raw.{dataset}", raw_partition(lake, day, dataset))
    return info.row_count if info else 0


def _key(day: SourceDay) -> tuple[str, date]:
    return day.source, day.dt
