from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError, ConflictError, UnknownNameError
from lakehouse.tables.committer import Committer
from lakehouse.tables.tags import day_tags_to_drop, drop_tag, state_before, tag_day, tag_release
from lakehouse.tables.upkeep import Limits, upkeep
from tests.unit.tables.upkeep_lake import TABLE, ids_in, load, open_committer, replace

NOW = dt.datetime(2024, 5, 31, 12, tzinfo=dt.UTC)


@pytest.fixture
def committer(tmp_path: Path) -> Committer:
    return open_committer(tmp_path)


def shanghai(moment: dt.datetime | None = None) -> Clock:
    """The business clock, stopped at `moment` where given."""
    return Clock.in_zone("Asia/Shanghai") if moment is None else Clock.in_zone("Asia/Shanghai", lambda: moment)


def test_a_day_is_tagged_once_and_moves_on_with_the_day(committer: Committer) -> None:
    clock = shanghai()
    today = clock.today()
    replace(committer, 0, ["a"])
    first = tag_day(committer, TABLE, today, clock=clock)
    assert first is not None
    assert first.changed
    location = load(committer).metadata_location
    again = tag_day(committer, TABLE, today, clock=clock)
    assert again is not None
    assert (again.changed, again.snapshot_id) == (False, first.snapshot_id)
    assert load(committer).metadata_location == location
    replace(committer, 0, ["b"])
    moved = tag_day(committer, TABLE, today, clock=clock)
    assert moved is not None
    assert moved.changed
    assert list(load(committer).refs()) == ["main", f"day-{today}"]
    assert ids_in(load(committer), moved.snapshot_id) == ["b"]


def test_a_past_day_is_tagged_with_its_last_state(committer: Committer) -> None:
    clock = shanghai()
    replace(committer, 0, ["a"])
    tomorrow, yesterday = clock.today() + dt.timedelta(days=1), clock.today() - dt.timedelta(days=1)
    assert tag_day(committer, TABLE, yesterday, clock=clock) is None
    assert list(load(committer).refs()) == ["main"]
    late = tag_day(committer, TABLE, tomorrow, clock=clock)
    assert late is not None
    assert late.snapshot_id == load(committer).metadata.current_snapshot_id


def test_a_day_tag_never_moves_back_when_its_state_is_expired(committer: Committer) -> None:
    clock = shanghai()
    replace(committer, 0, ["a"])
    tag = tag_day(committer, TABLE, clock.today(), clock=clock)
    replace(committer, 0, ["b"])
    moved = tag_day(committer, TABLE, clock.today(), clock=clock)
    assert tag is not None
    assert moved is not None
    load(committer).manage_snapshots().set_current_snapshot(snapshot_id=tag.snapshot_id).commit()
    kept = tag_day(committer, TABLE, clock.today(), clock=clock)
    assert kept is not None
    assert (kept.changed, kept.snapshot_id) == (False, moved.snapshot_id)


def test_upkeep_tags_yesterday_and_the_plan_does_not(committer: Committer) -> None:
    replace(committer, 0, ["a"])
    tomorrow = shanghai(shanghai().now_utc() + dt.timedelta(days=1))
    plan = upkeep(committer, [TABLE], apply=False, clock=tomorrow)[0]
    assert list(load(committer).refs()) == ["main"]
    done = upkeep(committer, [TABLE], clock=tomorrow)[0]
    assert plan.tagged == done.tagged == f"day-{shanghai().today()}"
    assert upkeep(committer, [TABLE], clock=tomorrow)[0].tagged is None


def test_old_day_tags_are_dropped_and_others_stay() -> None:
    tags = {f"day-{NOW.date() - dt.timedelta(days=n)}" for n in range(90)} | {"release-1", "day-off", "mine"}
    dropped = day_tags_to_drop(tags, NOW)
    assert dropped == {f"day-{NOW.date() - dt.timedelta(days=n)}" for n in range(61, 90)}
    few = day_tags_to_drop(tags, NOW, keep_tags=10)
    assert len(tags - few) == 10
    assert tags - few == {f"day-{NOW.date() - dt.timedelta(days=n)}" for n in range(7)} | {
        "release-1",
        "day-off",
        "mine",
    }
    assert day_tags_to_drop({"release-1", "release-2"}, NOW, keep_tags=1) == set()


def test_day_tags_end_after_sixty_days_with_what_they_held(committer: Committer) -> None:
    for number in range(3):
        replace(committer, 0, [f"v{number}"])
    first = load(committer).metadata.snapshots[0].snapshot_id
    load(committer).manage_snapshots().create_tag(first, "day-2024-03-31").commit()
    limits = Limits(keep_untagged=1, orphan_age=None)
    kept = upkeep(committer, [TABLE], limits, now=dt.datetime(2024, 5, 30, tzinfo=dt.UTC))[0]
    assert kept.expiry.tags == ()
    assert ids_in(load(committer), first) == ["v0"]
    gone = upkeep(committer, [TABLE], limits, now=dt.datetime(2024, 5, 31, tzinfo=dt.UTC))[0]
    assert gone.expiry.tags == ("day-2024-03-31",)
    assert gone.removal.kinds == {"data": 1, "manifest": 1, "manifest list": 1}
    assert [s.snapshot_id for s in load(committer).metadata.snapshots] == [load(committer).metadata.current_snapshot_id]


def test_releases_stand_until_they_are_dropped(committer: Committer) -> None:
    with pytest.raises(UnknownNameError, match=r"clean\.outcomes does not exist"):
        tag_release(committer, TABLE, "2024.05")
    committer.table(TABLE)
    with pytest.raises(ConfigError, match="no rows yet"):
        tag_release(committer, TABLE, "2024.05")
    replace(committer, 0, ["a"])
    made = tag_release(committer, TABLE, "2024.05")
    replace(committer, 0, ["b"])
    again = tag_release(committer, TABLE, "2024.05")
    assert (made.changed, again.changed, again.snapshot_id) == (True, False, made.snapshot_id)
    with pytest.raises(ConfigError, match="lower-case"):
        tag_release(committer, TABLE, "May 2024")
    assert drop_tag(committer, TABLE, "release-2024.05")
    assert not drop_tag(committer, TABLE, "release-2024.05")
    assert not drop_tag(committer, TABLE, "main")


def test_a_hundred_tags_are_enough(committer: Committer) -> None:
    replace(committer, 0, ["a"])
    table = load(committer)
    current = table.metadata.current_snapshot_id
    assert current is not None
    manage = table.manage_snapshots()
    for number in range(100):
        manage = manage.create_tag(current, f"t{number}")
    manage.commit()
    with pytest.raises(ConflictError, match="100 tags"):
        tag_release(committer, TABLE, "one-more")


def test_a_time_between_what_is_kept_is_no_state(committer: Committer) -> None:
    replace(committer, 0, ["a"])
    tag_release(committer, TABLE, "first")
    middle = replace(committer, 0, ["b"]).snapshot_id
    replace(committer, 0, ["c"])
    metadata = load(committer).metadata
    first, second, last = metadata.snapshot_log
    assert state_before(metadata, first.timestamp_ms) is None
    assert state_before(metadata, second.timestamp_ms) == first.snapshot_id
    assert state_before(metadata, last.timestamp_ms) == middle
    upkeep(committer, [TABLE], Limits(keep_untagged=1, orphan_age=dt.timedelta(0)))
    metadata = load(committer).metadata
    assert [one.snapshot_id for one in metadata.snapshot_log] == [first.snapshot_id, last.snapshot_id]
    assert state_before(metadata, last.timestamp_ms) is None
    assert state_before(metadata, last.timestamp_ms + 1) == last.snapshot_id
