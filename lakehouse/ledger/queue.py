"""The queue of tasks: one URL of a run is one task, a worker holds it by lease, and only its holder ends it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.tables import task, task_event
from lakehouse.ledger.tasks import ENDED, HeldTask, NewTask, Settlement, TaskState
from lakehouse.ledger.workers import is_dead
from lakehouse.model.fetch import EndedTask, FetchKind
from lakehouse.model.ids import new_task_id

CHUNK = 500
ASKED = tuple(field.name for field in fields(NewTask))


class Queue:
    """Reads and writes `task` and `task_event`. Times are instants of the ledger's clock."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def enqueue(self, tasks: Iterable[NewTask]) -> int:
        """Add tasks that are not there yet; gives how many were new."""
        with self.ledger.write() as connection:
            return self._enqueue(connection, tasks)

    def lease(self, source: str, dt: date, worker_id: str, limit: int = 1, seconds: float = 300) -> list[HeldTask]:
        """Up to `limit` tasks of a day that may be worked on now, held by `worker_id` for `seconds`."""
        now = self.ledger.clock.now_utc()
        query = (
            sa.select(task)
            .where(*_of_day(source, dt), task.c.state == TaskState.PENDING, task.c.not_before <= now)
            .order_by(task.c.priority, task.c.task_id)
            .limit(limit)
        )
        if self.ledger.is_postgres:
            query = query.with_for_update(skip_locked=True)
        with self.ledger.write() as connection:
            rows = connection.execute(query).mappings().all()
            ids = [row["task_id"] for row in rows]
            connection.execute(
                sa.update(task)
                .where(task.c.task_id.in_(ids))
                .values(
                    state=TaskState.LEASED,
                    lease_owner=worker_id,
                    worker_id=worker_id,
                    lease_until=now + timedelta(seconds=seconds),
                )
            )
            _add_events(connection, ids, at=now, state=TaskState.LEASED, worker=worker_id)
        return [_held(row) for row in rows]

    def renew(self, task_id: str, worker_id: str, seconds: float = 300) -> bool:
        """Hold a task for `seconds` more; False if `worker_id` no longer holds it."""
        until = self.ledger.clock.now_utc() + timedelta(seconds=seconds)
        with self.ledger.write() as connection:
            done = connection.execute(sa.update(task).where(*_held_by(task_id, worker_id)).values(lease_until=until))
        return done.rowcount == 1

    def settle(self, end: Settlement) -> bool:
        """Apply how an attempt ended, with the tasks it gave, in one transaction.

        False, and nothing changed, if it was applied before or the worker no longer holds the task.
        """
        now = self.ledger.clock.now_utc()
        ended = end.state in ENDED
        values: dict[str, Any] = {
            "state": end.state,
            "reason": end.reason,
            "attempts": end.attempt,
            "lease_owner": None,
            "lease_until": None,
            "ended_at": now if ended else None,
        }
        if end.not_before is not None:
            values["not_before"] = end.not_before
        if ended and end.stored_url is not None:
            values["url"] = end.stored_url
        held = (*_held_by(end.task_id, end.worker_id), task.c.attempts == end.attempt - 1)
        with self.ledger.write() as connection:
            if connection.execute(sa.update(task).where(*held).values(**values)).rowcount != 1:
                return False
            _add_events(connection, [end.task_id], at=now, state=end.state, worker=end.worker_id, reason=end.reason)
            self._enqueue(connection, end.children)
        return True

    def lost_leases(self, source: str, dt: date) -> list[tuple[str, str]]:
        """Tasks whose lease ran out or whose holder on this machine is dead, as (task id, holder)."""
        now = self.ledger.clock.now_utc()
        query = sa.select(task.c.task_id, task.c.lease_owner, task.c.lease_until).where(
            *_of_day(source, dt), task.c.state == TaskState.LEASED
        )
        with self.ledger.read() as connection:
            rows = connection.execute(query).all()
        dead = {owner for owner in {row.lease_owner for row in rows} if is_dead(owner)}
        return [(row.task_id, row.lease_owner) for row in rows if row.lease_until < now or row.lease_owner in dead]

    def release(self, leases: Iterable[tuple[str, str]], reason: str) -> int:
        """Give back tasks that their holder will not end; gives how many were still held by that holder."""
        now = self.ledger.clock.now_utc()
        free = {"state": TaskState.PENDING, "lease_owner": None, "lease_until": None}
        released = 0
        with self.ledger.write() as connection:
            for task_id, owner in leases:
                done = connection.execute(sa.update(task).where(*_held_by(task_id, owner)).values(**free))
                if done.rowcount == 1:
                    released += 1
                    _add_events(connection, [task_id], at=now, state=TaskState.PENDING, worker=owner, reason=reason)
        return released

    def held(self, source: str, dt: date, worker_id: str) -> list[tuple[str, str]]:
        """The leases of one worker on a day, as (task id, holder)."""
        query = sa.select(task.c.task_id, task.c.lease_owner).where(
            *_of_day(source, dt), task.c.state == TaskState.LEASED, task.c.lease_owner == worker_id
        )
        with self.ledger.read() as connection:
            return [(row.task_id, row.lease_owner) for row in connection.execute(query)]

    def next_due(self, source: str, dt: date) -> datetime | None:
        """When the next open task of a day may be worked on (its lease's end if held); None if all have ended."""
        when = sa.case((task.c.state == TaskState.LEASED, task.c.lease_until), else_=task.c.not_before)
        query = sa.select(sa.func.min(when)).where(*_of_day(source, dt), task.c.state.not_in(ENDED))
        with self.ledger.read() as connection:
            due: datetime | None = connection.execute(query).scalar_one()
        return due

    def counts(self, source: str, dt: date) -> dict[TaskState, int]:
        """How many tasks of a day are in each state; states without tasks are left out."""
        query = sa.select(task.c.state, sa.func.count()).where(*_of_day(source, dt)).group_by(task.c.state)
        with self.ledger.read() as connection:
            return {TaskState(state): count for state, count in connection.execute(query)}

    def due_tasks_ended(self, source: str, dt: date) -> bool:
        """Whether the day had tasks and all of them have ended."""
        counts = self.counts(source, dt)
        return bool(counts) and set(counts) <= set(ENDED)

    def last_successes(self, source: str) -> dict[str, datetime]:
        """When each task's newest run last gave its first page, by task name."""
        query = (
            sa.select(task.c.name, sa.func.max(task.c.ended_at))
            .where(task.c.source == source, task.c.parent_task_id.is_(None), task.c.state == TaskState.DONE)
            .group_by(task.c.name)
        )
        with self.ledger.read() as connection:
            return {row.name: row[1] for row in connection.execute(query)}

    def open_names(self, source: str, dt: date) -> set[str]:
        """Names of tasks that have work left on a day."""
        query = sa.select(task.c.name).where(*_of_day(source, dt), task.c.state.not_in(ENDED)).distinct()
        with self.ledger.read() as connection:
            return set(connection.execute(query).scalars())

    def failed_runs(self, source: str, dt: date) -> dict[str, int]:
        """Names of tasks of a day with a list page that could not be read when last tried, and their runs so far."""
        columns = task.c
        query = (
            sa.select(columns.name, columns.run_key, columns.url_fp, columns.kind, columns.state)
            .where(*_of_day(source, dt))
            .order_by(columns.task_id)
        )
        newest: dict[tuple[str, str], TaskState] = {}
        runs: dict[str, set[str]] = {}
        with self.ledger.read() as connection:
            for row in connection.execute(query):
                runs.setdefault(row.name, set()).add(row.run_key)
                if row.kind == FetchKind.LIST:
                    newest[row.name, row.url_fp] = TaskState(row.state)
        failed = {name for (name, _), state in newest.items() if state is TaskState.FAILED}
        return {name: len(runs[name]) for name in sorted(failed)}

    def known_details(self, source: str, dt: date, run: tuple[str, str], url_fps: Collection[str]) -> set[str]:
        """Which pages this source already has (any day), or has asked for on `dt` in a run other than `run`.

        `run` is (task name, run key): its own tasks never count, so working a list page twice gives the same tasks.
        """
        columns = task.c
        had = sa.or_(columns.state == TaskState.DONE, sa.and_(columns.dt == dt, columns.state.not_in(ENDED)))
        other = sa.not_(sa.and_(columns.dt == dt, columns.name == run[0], columns.run_key == run[1]))
        known: set[str] = set()
        with self.ledger.read() as connection:
            for chunk in _chunks(list(url_fps)):
                query = sa.select(columns.url_fp).where(
                    columns.source == source,
                    columns.url_fp.in_(chunk),
                    columns.kind != FetchKind.LIST,
                    had,
                    other,
                )
                known.update(connection.execute(query).scalars())
        return known

    def ended(self, task_ids: Collection[str]) -> list[EndedTask]:
        """Those of `task_ids` that have ended, with their histories, ordered by id."""
        found: list[EndedTask] = []
        with self.ledger.read() as connection:
            for chunk in _chunks(sorted(set(task_ids))):
                history = _history(connection, chunk)
                query = sa.select(task).where(task.c.task_id.in_(chunk), task.c.state.in_(ENDED))
                rows = connection.execute(query.order_by(task.c.task_id)).mappings()
                found.extend(_ended(row, history.get(row["task_id"], ())) for row in rows)
        return found

    def _enqueue(self, connection: sa.Connection, tasks: Iterable[NewTask]) -> int:
        now = self.ledger.clock.now_utc()
        added = []
        for number, ask in enumerate(tasks):
            task_id = new_task_id(now + timedelta(microseconds=number))  # worked on in the order given
            insert = self.ledger.insert(task).values(**_row(ask, task_id, now)).on_conflict_do_nothing()
            if connection.execute(insert.returning(task.c.task_id)).first() is not None:
                added.append(task_id)
        _add_events(connection, added, at=now, state=TaskState.PENDING)
        return len(added)


def _of_day(source: str, dt: date) -> tuple[sa.ColumnElement[bool], ...]:
    return task.c.source == source, task.c.dt == dt


def _held_by(task_id: str, worker_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return task.c.task_id == task_id, task.c.state == TaskState.LEASED, task.c.lease_owner == worker_id


def _chunks(values: Sequence[str]) -> Iterable[Sequence[str]]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def _add_events(connection: sa.Connection, task_ids: Sequence[str], **event: Any) -> None:
    """Add one event `at`, `state`, `worker`, `reason` to the history of each task."""
    if task_ids:
        connection.execute(sa.insert(task_event), [{"task_id": task_id, **event} for task_id in task_ids])


def _row(ask: NewTask, task_id: str, now: datetime) -> dict[str, Any]:
    return {
        **{name: getattr(ask, name) for name in ASKED},
        "task_id": task_id,
        "state": TaskState.PENDING,
        "attempts": 0,
        "not_before": now,
        "created_at": now,
    }


def _held(row: Mapping[Any, Any]) -> HeldTask:
    values = {name: row[name] for name in ASKED}
    ask = NewTask(**{**values, "kind": FetchKind(values["kind"])})
    return HeldTask(task_id=row["task_id"], attempts=row["attempts"], ask=ask)


def _history(connection: sa.Connection, task_ids: Sequence[str]) -> dict[str, tuple[dict[str, str], ...]]:
    query = sa.select(task_event).where(task_event.c.task_id.in_(task_ids)).order_by(task_event.c.event_id)
    found: dict[str, tuple[dict[str, str], ...]] = {}
    for row in connection.execute(query):
        event = {"at": row.at.isoformat(), "state": row.state, "worker": row.worker, "reason": row.reason}
        kept = {name: value for name, value in event.items() if value is not None}
        found[row.task_id] = (*found.get(row.task_id, ()), kept)
    return found


def _ended(row: Mapping[Any, Any], history: tuple[dict[str, str], ...]) -> EndedTask:
    names = ("source", "dt", "task_id", "parent_task_id", "name", "url", "url_fp", "state", "reason", "attempts")
    times = ("worker_id", "created_at", "ended_at")
    values = {name: row[name] for name in (*names, *times)}
    return EndedTask(kind=FetchKind(row["kind"]), history=history, **values)
