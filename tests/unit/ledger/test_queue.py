from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, timedelta

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.queue import Queue
from lakehouse.ledger.tasks import NewTask, Settlement, TaskState
from lakehouse.ledger.workers import is_dead, new_worker_id, note_worker
from lakehouse.model.fetch import FetchKind

DAY = date(2026, 3, 1)
ME = "host-a:1:1:aa"
OTHER = "host-b:2:2:bb"


def ask(number: int, **changes: object) -> NewTask:
    first = NewTask("news", DAY, "column", "06:00", FetchKind.DETAIL, f"http://a/{number}", f"{number:032x}")
    return replace(first, **changes)  # type: ignore[arg-type]


def done(task_id: str, attempt: int = 1, worker: str = ME, **changes: object) -> Settlement:
    return replace(Settlement(task_id, worker, attempt, TaskState.DONE), **changes)  # type: ignore[arg-type]


@pytest.fixture
def queue(ledger: Ledger) -> Queue:
    return Queue(ledger)


def test_the_same_page_of_a_run_is_one_task(queue: Queue) -> None:
    assert queue.enqueue([ask(1), ask(1), ask(2)]) == 2
    assert queue.enqueue([ask(1), ask(3)]) == 1
    assert queue.enqueue([ask(1, run_key="18:00"), ask(1, name="other"), ask(1, dt=date(2026, 3, 2))]) == 3
    assert queue.counts("news", DAY) == {TaskState.PENDING: 5}


def test_leases_go_by_priority_then_age_and_never_twice(queue: Queue, hands: Callable[[], object]) -> None:
    queue.enqueue([ask(1)])
    hands.move(1)  # type: ignore[attr-defined]
    queue.enqueue([ask(2), ask(3, priority=10, kind=FetchKind.LIST)])
    first = queue.lease("news", DAY, ME, limit=2)
    assert [held.ask.url for held in first] == ["http://a/3", "http://a/1"]
    assert first[0].ask == ask(3, priority=10, kind=FetchKind.LIST)
    assert [held.ask.url for held in queue.lease("news", DAY, OTHER, limit=5)] == ["http://a/2"]
    assert queue.lease("news", DAY, OTHER) == []
    assert queue.lease("other", DAY, OTHER) == []


def test_settling_ends_a_task_once_and_adds_its_children_with_it(queue: Queue) -> None:
    queue.enqueue([ask(1)])
    (held,) = queue.lease("news", DAY, ME)
    child = ask(2, parent_task_id=held.task_id, entry={"title": "标题"}, memo={"seen": ["x"]})
    end = done(held.task_id, children=(child,), stored_url="http://a/1?key=***")
    assert queue.settle(end)
    assert not queue.settle(end)
    assert queue.counts("news", DAY) == {TaskState.DONE: 1, TaskState.PENDING: 1}
    assert queue.lease("news", DAY, ME)[0].ask == child
    (ended,) = queue.ended([held.task_id])
    assert ended.url == "http://a/1?key=***"
    assert [event["state"] for event in ended.history] == ["pending", "leased", "done"]
    assert ended.history[1]["worker"] == ME


def test_only_the_holder_settles(queue: Queue, hands: Callable[[], object]) -> None:
    queue.enqueue([ask(1)])
    (held,) = queue.lease("news", DAY, ME, seconds=10)
    assert not queue.settle(done(held.task_id, worker=OTHER))
    hands.move(11)  # type: ignore[attr-defined]
    assert queue.lost_leases("news", DAY) == [(held.task_id, ME)]
    assert queue.release(queue.lost_leases("news", DAY), "gone") == 1
    (again,) = queue.lease("news", DAY, OTHER)
    assert not queue.settle(done(held.task_id)), "a worker that lost its lease ended the task of another"
    assert not queue.renew(held.task_id, ME)
    assert queue.settle(done(again.task_id, worker=OTHER))
    (ended,) = queue.ended([held.task_id])
    assert ended.worker_id == OTHER
    assert [event["state"] for event in ended.history] == ["pending", "leased", "pending", "leased", "done"]


def test_an_old_attempt_is_not_applied_to_a_newer_lease_of_the_same_worker(queue: Queue) -> None:
    queue.enqueue([ask(1)])
    (held,) = queue.lease("news", DAY, ME)
    retry = done(held.task_id, state=TaskState.PENDING, reason="timeout", not_before=queue.ledger.clock.now_utc())
    assert queue.settle(retry)
    (again,) = queue.lease("news", DAY, ME)
    assert again.attempts == 1
    assert not queue.settle(retry)
    assert queue.settle(done(held.task_id, attempt=2, state=TaskState.FAILED, reason="timeout"))
    (ended,) = queue.ended([held.task_id])
    assert (ended.state, ended.reason, ended.attempts) == ("failed", "timeout", 2)


def test_a_retry_waits_for_its_time(queue: Queue, hands: Callable[[], object]) -> None:
    queue.enqueue([ask(1)])
    (held,) = queue.lease("news", DAY, ME)
    later = queue.ledger.clock.now_utc() + timedelta(seconds=8)
    queue.settle(done(held.task_id, state=TaskState.PENDING, not_before=later))
    assert queue.lease("news", DAY, ME) == []
    assert queue.next_due("news", DAY) == later
    assert not queue.due_tasks_ended("news", DAY)
    hands.move(8)  # type: ignore[attr-defined]
    assert len(queue.lease("news", DAY, ME)) == 1


def test_a_day_has_ended_when_it_had_tasks_and_none_is_open(queue: Queue) -> None:
    assert not queue.due_tasks_ended("news", DAY)
    queue.enqueue([ask(1)])
    (held,) = queue.lease("news", DAY, ME)
    assert not queue.due_tasks_ended("news", DAY)
    queue.settle(done(held.task_id))
    assert queue.due_tasks_ended("news", DAY)
    assert queue.next_due("news", DAY) is None


def test_pages_known_from_other_runs(queue: Queue) -> None:
    earlier = DAY - timedelta(days=1)
    queue.enqueue([ask(1, dt=earlier), ask(2, dt=earlier), ask(3, dt=earlier, kind=FetchKind.LIST)])
    for held in queue.lease("news", earlier, ME, limit=3):
        state = TaskState.FAILED if held.ask.url.endswith("2") else TaskState.DONE
        queue.settle(done(held.task_id, state=state))
    queue.enqueue([ask(4), ask(5, run_key="18:00")])
    fps = {f"{number:032x}" for number in range(1, 7)}
    known = queue.known_details("news", DAY, ("column", "06:00"), fps)
    assert known == {f"{1:032x}", f"{5:032x}"}, "failed pages, list pages and pages of the same run are not known"


def test_leases_of_a_dead_process_of_this_machine_are_lost_at_once(queue: Queue) -> None:
    script = "from lakehouse.ledger.workers import new_worker_id; print(new_worker_id(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        worker = process.stdout.readline().strip()
        queue.enqueue([ask(1), ask(2)])
        queue.lease("news", DAY, worker, seconds=3600)
        queue.lease("news", DAY, OTHER, seconds=3600)
        assert queue.lost_leases("news", DAY) == []
        process.kill()
        process.wait()
        assert [owner for _, owner in queue.lost_leases("news", DAY)] == [worker]


def test_a_reused_pid_is_another_process() -> None:
    me = new_worker_id()
    host, pid, start, _ = me.rsplit(":", 3)
    assert not is_dead(me)
    assert is_dead(f"{host}:{pid}:{int(start) - 100}:ab")
    assert not is_dead(f"elsewhere-{host}:{pid}:{int(start) - 100}:ab"), "another machine cannot be judged from here"
    assert not is_dead("no worker id")
    assert is_dead(f"{socket.gethostname()}:{max(psutil.pids()) + 100_000}:1:ab")


def test_workers_are_noted(ledger: Ledger, hands: Callable[[], object]) -> None:
    me = new_worker_id()
    note_worker(ledger, me)
    hands.move(5)  # type: ignore[attr-defined]
    note_worker(ledger, me)
    with ledger.read() as connection:
        row = connection.exec_driver_sql("SELECT worker_id, pid, seen_at > started_at FROM worker").one()
    assert row == (me, int(me.split(":")[-3]), 1)


@given(
    st.builds(
        Settlement,
        task_id=st.text("0123456789abcdef", min_size=32, max_size=32),
        worker_id=st.text(max_size=20),
        attempt=st.integers(1, 9),
        state=st.sampled_from(TaskState),
        reason=st.none() | st.text(max_size=30),
        not_before=st.none() | st.datetimes(timezones=st.just(UTC)),
        children=st.lists(
            st.builds(
                ask,
                st.integers(0, 99),
                kind=st.sampled_from(FetchKind),
                entry=st.dictionaries(st.text(max_size=5), st.text(max_size=5)),
            ),
            max_size=3,
        ).map(tuple),
    )
)
def test_settlements_survive_json(end: Settlement) -> None:
    assert Settlement.from_json(json.loads(json.dumps(end.as_json()))) == end
