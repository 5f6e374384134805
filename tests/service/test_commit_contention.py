"""Many processes on one table: nothing is lost, nothing is doubled, no failure reaches a caller."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.commit_worker import TABLE, Place, frame, partition, start_worker

PROCESSES = 8
COMMITS = 25
SHARED_BATCHES = [uuid4().hex for _ in range(COMMITS)]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A lake on SQLite and file locks, and one on PostgreSQL and advisory locks."""
    database = request.getfixturevalue("pg_database") if request.param == "postgres" else None
    return Place(str(tmp_path), database)


def work_of(worker: int) -> list[dict[str, Any]]:
    """25 commits: own batches, batches that two workers commit, own partitions, one partition that all replace."""
    work: list[dict[str, Any]] = []
    for number in range(COMMITS):
        match number % 5:
            case 0:
                work.append(append("appended", uuid4().hex))
            case 1:
                work.append(append("appended", SHARED_BATCHES[number + worker // 2]))
            case 2 | 3:
                work.append(replace({f"own_{worker}": f"{worker}-{number}"}))
            case _:
                work.append(replace({"shared": f"{worker}-{number}", f"pair_{worker}": f"{worker}-{number}"}))
    return work


def append(source: str, batch: str) -> dict[str, Any]:
    """A batch of three rows."""
    return {"do": "append", "rows": [(source, batch, position) for position in range(3)]}


def replace(content: dict[str, str]) -> dict[str, Any]:
    """Partitions with three rows each that carry the given mark."""
    rows = [(source, mark, position) for source, mark in content.items() for position in range(3)]
    return {"do": "replace", "sources": list(content), "rows": rows}


@pytest.mark.timeout(1800)
def test_eight_processes_make_200_commits_to_one_table(place: Place) -> None:
    committer = place.open("check")
    committer.table(TABLE)
    works = [work_of(worker) for worker in range(PROCESSES)]
    processes = [start_worker(place, work, run_id=f"worker-{number}") for number, work in enumerate(works)]
    outputs = [process.communicate() for process in processes]
    assert [(process.returncode, error) for process, (_, error) in zip(processes, outputs, strict=True)] == [
        (0, "")
    ] * PROCESSES
    commits = [json.loads(line) for output, _ in outputs for line in output.splitlines()]
    assert len(commits) == PROCESSES * COMMITS

    table = committer.table(TABLE)
    written = [one["snapshot"] for one in commits if one["changed"]]
    assert len(set(written)) == len(written), "two callers were told of one table snapshot"
    lineage, snapshot = [], table.current_snapshot()
    while snapshot is not None:
        lineage.append(snapshot.snapshot_id)
        parent = snapshot.parent_snapshot_id
        snapshot = table.snapshot_by_id(parent) if parent else None
    assert sorted(lineage) == sorted(written), "a commit was lost, or one was made that nobody was told of"

    rows = committer.scan(TABLE, columns=["source", "batch_id", "position"]).to_pylist()
    counts = Counter((row["source"], row["batch_id"], row["position"]) for row in rows)
    assert set(counts.values()) == {1}, "rows were doubled"
    given = {row[1] for work in works for one in work if one["do"] == "append" for row in one["rows"]}
    assert {batch for source, batch, _ in counts if source == "appended"} == given
    assert sum(source == "appended" for source, _, _ in counts) == 3 * len(given)
    for worker in range(PROCESSES):
        assert {batch for source, batch, _ in counts if source == f"own_{worker}"} == {f"{worker}-{COMMITS - 2}"}
        assert {batch for source, batch, _ in counts if source == f"pair_{worker}"} == {f"{worker}-{COMMITS - 1}"}
    last = {batch for source, batch, _ in counts if source == "shared"}
    assert len(last) == 1
    assert last <= {f"{worker}-{COMMITS - 1}" for worker in range(PROCESSES)}


@pytest.mark.timeout(1200)
def test_a_reader_never_finds_a_partition_empty_while_it_is_replaced(place: Place) -> None:
    committer = place.open("reader")
    committer.replace(TABLE, frame(committer, [("news", "0", position) for position in range(3)]), [partition("news")])
    process = start_worker(place, [replace({"news": str(number)}) for number in range(1, 51)], run_id="writer")
    seen: Counter[tuple[int, int]] = Counter()
    while process.poll() is None:
        marks = committer.scan(TABLE, [partition("news")], ["batch_id"]).column("batch_id").to_pylist()
        seen[len(marks), len(set(marks))] += 1
        time.sleep(0.01)
    output, error = process.communicate()
    assert (process.returncode, error) == (0, "")
    assert len(output.splitlines()) == 50
    assert set(seen) == {(3, 1)}, "a reader saw a partition empty, or a mix of two states"
    assert seen.total() > 20
