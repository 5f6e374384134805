"""A committer that is killed at the worst moments: running again gives the same rows once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakehouse.tables.committer import Committer, read_current
from tests.commit_worker import TABLE, Place, frame, partition, start_worker

BATCHES = ["a" * 32, "b" * 32]
ROWS = [(source, batch, position) for source in ("one", "two", "three") for batch in BATCHES for position in range(4)]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A lake on SQLite and file locks, and one on PostgreSQL and advisory locks."""
    database = request.getfixturevalue("pg_database") if request.param == "postgres" else None
    return Place(str(tmp_path), database)


def work(do: str) -> dict[str, Any]:
    """All rows, appended or as the content of three partitions."""
    return {"do": do, "rows": ROWS, "sources": ["one", "two", "three"]}


def found_rows(committer: Committer) -> list[tuple[str, str, int]]:
    """What the table holds."""
    found = committer.scan(TABLE, columns=["source", "batch_id", "position"]).to_pylist()
    return sorted((row["source"], row["batch_id"], row["position"]) for row in found)


@pytest.mark.parametrize("do", ["append", "replace"])
@pytest.mark.parametrize("moment", ["writing", "before", "after"])
def test_a_killed_commit_is_finished_once_by_the_next_run(place: Place, do: str, moment: str) -> None:
    committer = place.open("check")
    committer.append(TABLE, frame(committer, [("other", "c" * 32, 1)]))
    killed = start_worker(place, [work(do)], run_id="killed", die=moment)
    output, error = killed.communicate()
    assert (killed.returncode, output, error) == (-9, "", "")
    landed = sorted(ROWS) if moment == "after" else []
    assert found_rows(committer) == sorted([("other", "c" * 32, 1), *landed])

    again = start_worker(place, [work(do), work(do)], run_id="again")
    output, error = again.communicate()
    assert (again.returncode, error) == (0, "")
    assert found_rows(committer) == sorted([("other", "c" * 32, 1), *ROWS])
    table = committer.table(TABLE)
    assert len(table.snapshots()) == 2
    assert table.metadata_location.endswith(f"/{read_current(table)}")


def test_a_killed_process_lets_go_of_the_lock(place: Place) -> None:
    """The first worker dies while it holds the lock; without its release the second would wait for ten minutes."""
    committer = place.open("check")
    committer.table(TABLE)
    start_worker(place, [work("append")], run_id="killed", die="before").communicate()
    committer.locks.timeout = 20.0  # type: ignore[attr-defined]
    assert committer.append(TABLE, frame(committer, ROWS)).changed
    assert [one.rows for one in committer.append(TABLE, frame(committer, ROWS)).partitions] == [8, 8, 8]
    assert committer.scan(TABLE, [partition("one")]).num_rows == 8
