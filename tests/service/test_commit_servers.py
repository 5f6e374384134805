"""The committer on PostgreSQL and MinIO: server-side copies, advisory locks, servers that go away in the middle."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from infra.launcher import Servers
from lakehouse.errors import ConflictError, UnavailableError
from lakehouse.lake import s3_properties
from lakehouse.settings import Settings
from lakehouse.tables.committer import Committer, read_current
from lakehouse.tables.content import content_hash
from lakehouse.tables.locks import PostgresLocks, lock_key
from tests.commit_worker import TABLE, Place, frame, partition, start_worker
from tests.s3_server import S3

BATCH = "a" * 32
ROWS = [(source, BATCH, position) for source in ("one", "two") for position in range(4)]


@pytest.fixture
def place(server_settings: Settings, pg_database: str, fresh_warehouse: str, tmp_path: Path) -> Place:
    """A lake with its catalog in PostgreSQL and its files in MinIO."""
    user, secret = server_settings.pipeline_access_key, server_settings.pipeline_secret_key
    return Place(str(tmp_path), pg_database, fresh_warehouse, s3_properties(server_settings, user, secret))


def test_append_replace_and_restore_in_a_bucket(place: Place) -> None:
    committer = place.open("run")
    assert committer.append(TABLE, frame(committer, ROWS)).changed
    assert not committer.append(TABLE, frame(committer, ROWS)).changed
    before = committer.scan(TABLE)
    old = [one.path for one in committer.files(TABLE, partition("one"))]
    assert old[0].startswith("s3://")
    committer.replace(TABLE, frame(committer, [("one", "b" * 32, 9)]), [partition("one")])
    commit = committer.restore(TABLE, partition("one"), old)
    assert commit.changed
    (restored,) = committer.files(TABLE, partition("one"))
    assert restored.path not in old
    assert restored.bytes == committer.table(TABLE).io.new_input(restored.path).__len__()
    assert content_hash(committer.scan(TABLE)) == content_hash(before)
    table = committer.table(TABLE)
    assert table.metadata_location.endswith(f"/{read_current(table)}")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_commit_to_a_bucket_is_finished_once(place: Place, moment: str) -> None:
    committer = place.open("check")
    work = [{"do": "append", "rows": ROWS}]
    assert start_worker(place, work, run_id="killed", die=moment).communicate() == ("", "")
    commit = committer.append(TABLE, frame(committer, ROWS))
    assert commit.changed == (moment == "before")
    assert committer.scan(TABLE).num_rows == len(ROWS)
    table = committer.table(TABLE)
    assert table.metadata_location.endswith(f"/{read_current(table)}")


def test_an_advisory_lock_excludes_and_is_freed(pg_database: str) -> None:
    engine = create_engine(pg_database)
    holder, other = PostgresLocks(engine), PostgresLocks(engine, timeout=0.2)
    with holder.hold(TABLE):
        with holder.hold(TABLE):
            pass
        with pytest.raises(ConflictError, match=r"cannot lock table raw\.entries.*pg_locks"), other.hold(TABLE):
            pass
        with other.hold("raw.fetches"):
            pass
    with other.hold(TABLE):
        pass
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")).scalar() == 0
    engine.dispose()


def test_waiting_for_a_lock_takes_no_connection_of_the_holder(pg_database: str) -> None:
    engine = create_engine(pg_database, pool_size=1, max_overflow=0, pool_timeout=5)
    locks = PostgresLocks(engine)
    order: list[int] = []

    def work(number: int) -> None:
        with locks.hold(TABLE), engine.connect() as connection:
            order.append(connection.execute(text("SELECT CAST(:number AS int)"), {"number": number}).scalar_one())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(order) == list(range(8))
    engine.dispose()


def test_a_lock_whose_connection_is_cut_leaves_the_swap_as_backstop(place: Place) -> None:
    """Another committer gets the lock and commits; the first one plans again and both changes stand."""
    assert place.database is not None
    first, second = place.open("first"), place.open("second")
    first.append(TABLE, frame(first, [("zero", "0" * 32, 0)]))
    engine = create_engine(place.database)
    original = first.iceberg.load_table
    done: list[str] = []

    def cut_and_overtake(name: str) -> object:
        table = original(name)
        if not done and in_lock:
            done.append(name)
            with engine.connect() as connection:
                connection.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
                        "AND ((classid::bigint << 32) | objid::bigint) = :key"
                    ),
                    {"key": lock_key(TABLE)},
                )
            time.sleep(0.2)
            second.append(TABLE, frame(second, [("one", BATCH, 1)]))
        return table

    in_lock: list[bool] = []
    hold = first.locks.hold

    def held(name: str) -> object:
        in_lock.append(True)
        return hold(name)

    first.iceberg.load_table = cut_and_overtake  # type: ignore[method-assign, assignment]
    first.locks.hold = held  # type: ignore[method-assign, assignment]
    commit = first.append(TABLE, frame(first, [("one", BATCH, 1), ("one", "b" * 32, 2)]))
    assert done == [TABLE]
    assert commit.changed
    assert sorted(first.scan(TABLE).column("batch_id").to_pylist()) == ["0" * 32, BATCH, "b" * 32]
    engine.dispose()


def check_outage(servers: Servers, committer: Committer, name: str) -> None:
    """A commit while a server is down changes nothing and says so; the same call finishes the work afterwards."""
    servers.stop_one(name)
    try:
        with pytest.raises(UnavailableError, match=r"raw\.entries.*run again") as caught:
            committer.append(TABLE, frame(committer, ROWS))
        for secret in servers.state.secrets.values():
            assert secret not in str(caught.value)
    finally:
        servers.start_one(name)
    assert committer.append(TABLE, frame(committer, ROWS)).changed
    assert committer.scan(TABLE).num_rows == len(ROWS) + 1


@pytest.mark.parametrize("name", ["postgres", S3])
def test_a_server_that_is_down_in_the_middle(servers: Servers, place: Place, name: str) -> None:
    committer = place.open("run")
    committer.append(TABLE, frame(committer, [("zero", "0" * 32, 0)]))
    check_outage(servers, committer, name)
