"""The ledger on PostgreSQL: the same tables, the same promises, and what happens when the server goes away."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date, timedelta

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from infra.launcher import Servers
from lakehouse.clock import Clock
from lakehouse.errors import UnavailableError
from lakehouse.ledger.batches import BatchIndex
from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.partitions import PartitionIndex, PartitionInfo
from lakehouse.ledger.queue import Queue
from lakehouse.ledger.slots import hold_back, wait_for_slot
from lakehouse.ledger.tables import metadata
from lakehouse.ledger.tasks import NewTask, Settlement, TaskState
from lakehouse.model.fetch import FetchKind
from lakehouse.model.partition import Layer, Partition, PartitionState

DAY = date(2026, 3, 1)
CLOCK = Clock.in_zone("Asia/Shanghai")
OPEN = "import sys; from lakehouse.ledger.ledger import Ledger; from lakehouse.clock import Clock; "
OPEN += "Ledger.open(sys.argv[1], Clock.in_zone('Asia/Shanghai')).close()"


@pytest.fixture
def ledger(pg_database: str) -> Iterator[Ledger]:
    opened = Ledger.open(pg_database, CLOCK)
    yield opened
    opened.close()


def ask(number: int) -> NewTask:
    return NewTask("news", DAY, "column", "06:00", FetchKind.DETAIL, f"http://a/{number}", f"{number:032x}")


def test_processes_may_open_a_new_ledger_at_once(pg_database: str) -> None:
    runs = [
        subprocess.Popen([sys.executable, "-c", OPEN, pg_database], stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert [(run.communicate()[1], run.returncode) for run in runs] == [("", 0)] * 4
    ledger = Ledger.open(pg_database, CLOCK)
    with ledger.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    ledger.close()


def test_no_task_is_leased_twice_and_nobody_waits_for_another(ledger: Ledger) -> None:
    queue = Queue(ledger)
    assert queue.enqueue(ask(number) for number in range(60)) == 60
    leased: list[str] = []
    lock = threading.Lock()

    def work(worker: str) -> None:
        while tasks := queue.lease("news", DAY, worker, limit=3):
            with lock:
                leased.extend(held.task_id for held in tasks)
            for held in tasks:
                assert queue.settle(Settlement(held.task_id, worker, 1, TaskState.DONE))

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(leased) == len(set(leased)) == 60
    assert queue.counts("news", DAY) == {TaskState.DONE: 60}
    assert len(queue.ended(leased)) == 60


def test_a_lease_that_waits_locks_nobody_out(ledger: Ledger) -> None:
    queue = Queue(ledger)
    queue.enqueue([ask(1), ask(2)])
    with ledger.write() as connection:
        locked = connection.execute(
            sa.text("SELECT url FROM task ORDER BY priority, task_id LIMIT 1 FOR UPDATE")
        ).scalar_one()
        others = queue.lease("news", DAY, "w", limit=2)
    assert locked not in {held.ask.url for held in others}
    assert len(others) == 1


def test_a_task_goes_its_way(ledger: Ledger) -> None:
    queue = Queue(ledger)
    queue.enqueue([ask(1), ask(1)])
    (held,) = queue.lease("news", DAY, "me", limit=5)
    later = ledger.clock.now_utc() + timedelta(hours=1)
    assert queue.settle(Settlement(held.task_id, "me", 1, TaskState.PENDING, "timeout", later))
    due = queue.next_due("news", DAY)
    assert due is not None
    assert abs(due - later) < timedelta(milliseconds=1)
    assert queue.lease("news", DAY, "me") == []
    assert queue.last_successes("news") == {}


def test_slots_and_indexes(ledger: Ledger) -> None:
    assert wait_for_slot(ledger, "example.com", 0.2) == 0.0
    assert wait_for_slot(ledger, "example.com", 0.0) > 0.0
    now = ledger.clock.now_utc()
    hold_back(ledger, "example.com", now + timedelta(seconds=60))
    hold_back(ledger, "example.com", now + timedelta(seconds=1))
    naps: list[float] = []

    def stop(seconds: float) -> None:
        naps.append(seconds)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        wait_for_slot(ledger, "example.com", 0.0, sleep=stop)
    assert naps == [5.0]
    index = BatchIndex(ledger)
    index.register("b1", "news", DAY, "batch/b1", {"fetches": 1})
    index.register("b1", "news", DAY, "batch/b1", {"fetches": 1})
    index.mark_committed("b1", {"raw.fetches": 2**62})
    assert index.committed("news", DAY)[0].snapshots == {"raw.fetches": 2**62}
    partition = Partition("news", DAY, 1)
    info = PartitionInfo(
        Layer.RAW, "raw.fetches", "fetches", partition, "s3://x", 1, 2**40, 2**41, PartitionState.COMPLETE
    )
    partitions = PartitionIndex(ledger)
    partitions.record(info)
    partitions.record(info)
    found = partitions.get(Layer.RAW, "raw.fetches", partition)
    assert found is not None
    assert (found.row_count, found.completed_at is not None) == (2**40, True)


def test_a_server_that_hangs_up_is_unavailable_and_the_next_try_works(
    ledger: Ledger, servers: Servers, pg_database: str
) -> None:
    queue = Queue(ledger)
    queue.enqueue([ask(1)])

    def hang_up() -> None:
        with psycopg.connect(servers.admin_database_url(), autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
                (pg_database.rpartition("/")[2],),
            )

    def write_over_a_dead_line() -> None:
        with ledger.write() as connection:
            hang_up()
            connection.execute(sa.text("SELECT 1"))

    with pytest.raises(UnavailableError) as caught:
        write_over_a_dead_line()
    password = sa.make_url(pg_database).password
    assert password
    assert str(password) not in str(caught.value)
    hang_up()
    assert len(queue.lease("news", DAY, "me")) == 1


def test_a_wrong_password_is_not_shown(pg_database: str) -> None:
    url = sa.make_url(pg_database).set(password="not-the-password")
    with pytest.raises(UnavailableError) as caught:
        Ledger.open(url.render_as_string(hide_password=False), CLOCK)
    assert "not-the-password" not in str(caught.value)
