from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from lakehouse.clock import Clock
from lakehouse.errors import SchemaMismatch
from lakehouse.model.partition import Partition
from lakehouse.tables.committer import Committer
from lakehouse.tables.decisions import Decision, Decisions, decision_id
from lakehouse.tables.effective import (
    Effective,
    current,
    rebuild_effective,
    set_effective,
    set_first_effective,
)
from tests.unit.tables.kernel_lake import DAY, open_committer

NOW = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)


@pytest.fixture
def committer(tmp_path: Path) -> Committer:
    return open_committer(tmp_path)


@pytest.fixture
def decisions(committer: Committer) -> Decisions:
    """Decisions of a clock that goes on by a second each time it is asked."""
    ticks = iter(range(10_000))
    return Decisions(committer, Clock.in_zone("Asia/Shanghai", lambda: NOW + dt.timedelta(seconds=next(ticks))))


def pointer(version: int, source: str = "aa", fix_id: str | None = None) -> Effective:
    """A pointer of one day."""
    return Effective("articles", source, DAY, version, fix_id)


def test_a_decision_is_recorded_once_and_read_back(decisions: Decisions) -> None:
    said = {"kind": "complete", "payload": {"counts": {"clean": 3}}, "dataset": "articles", "source": "aa", "dt": DAY}
    first = decisions.record(**said, schema_version=1, reason="all done", who="anna")  # type: ignore[arg-type]
    again = decisions.record(**said, schema_version=1, reason="all done", who="anna")  # type: ignore[arg-type]
    other = decisions.record(**said, schema_version=2)  # type: ignore[arg-type]
    assert first == again != other
    assert [one.decision_id for one in decisions.all()] == [first, other]
    recorded = decisions.all("complete")[0]
    assert recorded.decided_at == NOW
    assert recorded.decision == Decision(
        "complete", {"counts": {"clean": 3}}, "articles", "aa", DAY, 1, reason="all done", who="anna"
    )
    assert decisions.all("other") == []


def test_many_decisions_are_one_commit(decisions: Decisions, committer: Committer) -> None:
    made = [Decision("complete", {"n": number}, source="aa") for number in range(50)]
    ids = decisions.record_all([*made, made[0]])
    assert ids == [decision_id(one) for one in [*made, made[0]]]
    assert len(decisions.all()) == 50
    assert len(committer.table("meta.decisions").snapshots()) == 1
    assert decisions.record_all([]) == []


def test_the_id_depends_on_everything_but_the_order_of_the_payload() -> None:
    base = Decision("fix", {"a": 1, "b": [2]}, "articles", "aa", DAY, 1, "why", "me")
    assert decision_id(base) == decision_id(Decision("fix", {"b": [2], "a": 1}, "articles", "aa", DAY, 1, "why", "me"))
    others = [
        Decision("fix2", base.payload, "articles", "aa", DAY, 1, "why", "me"),
        Decision("fix", {"a": 2}, "articles", "aa", DAY, 1, "why", "me"),
        Decision("fix", base.payload, None, "aa", DAY, 1, "why", "me"),
        Decision("fix", base.payload, "articles", "ab", DAY, 1, "why", "me"),
        Decision("fix", base.payload, "articles", "aa", None, 1, "why", "me"),
        Decision("fix", base.payload, "articles", "aa", DAY, 2, "why", "me"),
        Decision("fix", base.payload, "articles", "aa", DAY, 1, "because", "me"),
        Decision("fix", base.payload, "articles", "aa", DAY, 1, "why", "you"),
    ]
    assert len({decision_id(one) for one in [base, *others]}) == 9


def test_a_payload_that_cannot_be_stored_is_refused(decisions: Decisions) -> None:
    with pytest.raises(SchemaMismatch, match=r"field payload.*nan.*schemas/decisions/v1\.yaml"):
        decisions.record("fix", {"ratio": float("nan")})


def test_the_first_version_of_a_day_stays_effective(committer: Committer, decisions: Decisions) -> None:
    days = [Partition("aa", DAY, 1), Partition("bb", DAY, 1)]
    assert set_first_effective(committer, decisions, "articles", days) == [pointer(1), pointer(1, "bb")]
    snapshots = len(committer.table("meta.effective").snapshots())
    assert set_first_effective(committer, decisions, "articles", days) == []
    assert set_first_effective(committer, decisions, "articles", [Partition("aa", DAY, 2)]) == []
    assert len(committer.table("meta.effective").snapshots()) == snapshots
    later = Partition("aa", DAY + dt.timedelta(days=1), 2)
    assert len(set_first_effective(committer, decisions, "articles", [later])) == 1
    assert len(set_first_effective(committer, decisions, "notices", days)) == 2
    assert {key: one.schema_version for key, one in current(committer).items()} == {
        ("articles", "aa", DAY): 1,
        ("articles", "bb", DAY): 1,
        ("articles", "aa", later.dt): 2,
        ("notices", "aa", DAY): 1,
        ("notices", "bb", DAY): 1,
    }


def test_a_pointer_moves_away_and_back_and_can_be_derived_again(committer: Committer, decisions: Decisions) -> None:
    set_first_effective(committer, decisions, "articles", [Partition("aa", DAY, 1), Partition("bb", DAY, 1)])
    for wanted in (pointer(2), pointer(1), pointer(1, fix_id="fix1"), pointer(2), pointer(1)):
        assert set_effective(committer, decisions, [wanted], reason="try", who="anna") == [wanted]
        assert current(committer)["articles", "aa", DAY] == wanted
    assert set_effective(committer, decisions, [pointer(1)], reason="try", who="anna") == []
    before = current(committer)
    committer.replace("meta.effective", committer.scan("meta.effective").slice(0, 0), [Partition("", dt.date.min, 0)])
    assert rebuild_effective(committer, decisions) == 2
    assert current(committer) == before


def test_a_run_that_dies_between_decision_and_effect_is_finished_by_the_next(
    committer: Committer, decisions: Decisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [Partition("aa", DAY, 1)]
    with monkeypatch.context() as patch:
        patch.setattr(Committer, "add", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            set_first_effective(committer, decisions, "articles", days)
    assert current(committer) == {}
    assert set_first_effective(committer, decisions, "articles", days) == [pointer(1)]
    assert len(decisions.all()) == 1
