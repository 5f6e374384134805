"""The three layers on the local profile, over a real site: what they commit, what they leave alone, what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakehouse.clean import clean_day
from lakehouse.errors import ConfigError, UnknownNameError
from lakehouse.lake import Lake, open_lake
from lakehouse.ledger.batches import BatchIndex
from lakehouse.ledger.partitions import PartitionIndex
from lakehouse.materialize import clean, feature
from lakehouse.materialize.books import audit_all_books, audit_books
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.result import PartitionResult, failed_days
from lakehouse.model.ids import new_fetch_id
from lakehouse.model.partition import Layer, Partition, PartitionState, SourceDay
from lakehouse.model.record import CleanDay
from lakehouse.settings import Settings
from lakehouse.snapshots.batches import Batch, load_batch
from tests.unit.materialize.conftest import BROKEN_DAY, QUIET_DAY

Materialize = Callable[..., list[PartitionResult]]
LAYERS = (materialize_raw, materialize_clean, materialize_feature)


def letters(day: str) -> SourceDay:
    """A day of the column that is addressed by date."""
    return SourceDay("demo_daily", date.fromisoformat(day))


def make_all(lake: Lake, days: Iterable[SourceDay]) -> list[PartitionResult]:
    """All three layers."""
    wanted = list(days)
    return [result for materialize in LAYERS for result in materialize(lake, wanted)]


def of(results: Sequence[PartitionResult], table: str) -> dict[SourceDay, PartitionResult]:
    """The results of one table by day."""
    return {result.partition.day: result for result in results if result.table == table}


def snapshots(lake: Lake) -> dict[str, int | None]:
    """The current table snapshot of every table."""
    for name in lake.catalog.tables():
        lake.committer.table(name)  # one that nothing was written to yet is made here, which is a decision
    return {name: lake.committer.table(name).metadata.current_snapshot_id for name in lake.catalog.tables()}


def test_three_days_of_two_sources_go_through_all_layers_in_one_commit_a_table(lake: Lake) -> None:
    days = [letters("2025-03-01"), letters("2025-03-02"), SourceDay("demo_gazette", lake.clock.today())]
    before = {name: len(lake.committer.table(name).metadata.snapshots) for name in lake.catalog.tables()}
    results = make_all(lake, days)
    assert failed_days(results) == {}
    assert {result.state for result in results} == {PartitionState.COMPLETE}
    fetches, articles = of(results, "raw.fetches"), of(results, "clean.articles")
    assert [fetches[day].row_count for day in sorted(days)] == [5, 5, 15]
    assert [articles[day].rows for day in sorted(days)] == [{"listing": 1, "clean": 4}] * 2 + [
        {"listing": 1, "clean": 14}
    ]
    assert [of(results, "feature.source_daily")[day].row_count for day in sorted(days)] == [1, 1, 1]
    assert of(results, "feature.articles_current")[days[0]].row_count == 8
    after = {name: len(lake.committer.table(name).metadata.snapshots) for name in lake.catalog.tables()}
    assert {after[name] - before[name] for name in after if name.partition(".")[0] in {"raw", "feature"}} <= {0, 1}
    assert audit_books(lake, days).balanced


def test_results_say_what_dagster_shows(lake: Lake) -> None:
    day = letters("2025-03-03")
    result = of(make_all(lake, [day]), "clean.articles")[day]
    assert ("title", "string") in {(name, kind) for name, kind, _ in result.columns}
    assert all(description for _, _, description in result.columns)
    assert len(result.preview) == 4
    assert {row["source"] for row in result.preview} == {"demo_daily"}
    assert result.uri.endswith("data/source=demo_daily/dt=2025-03-03/schema_version=1")
    assert result.snapshot_id == lake.committer.table("clean.articles").metadata.current_snapshot_id
    assert result.changed
    again = of(materialize_clean(lake, [day]), "clean.articles")[day]
    assert (again.changed, again.snapshot_id, again.preview) == (False, result.snapshot_id, result.preview)


def test_the_same_days_again_commit_nothing(lake: Lake, town: Settings) -> None:
    days = [letters("2025-03-04"), letters("2025-03-05")]
    make_all(lake, days)
    before = snapshots(lake)
    with open_lake(town) as other:
        results = make_all(other, reversed(days))
    assert snapshots(lake) == before
    assert not any(result.changed for result in results)


def test_a_day_that_nobody_wrote_on_is_empty_and_not_missing(lake: Lake) -> None:
    day = letters(QUIET_DAY)
    results = make_all(lake, [day])
    assert of(results, "raw.fetches")[day].state is PartitionState.EMPTY
    assert of(results, "clean.articles")[day].state is PartitionState.EMPTY
    assert of(results, "clean.articles")[day].rows == {"listing": 1}
    assert audit_books(lake, [day]).balanced


def test_a_list_that_cannot_be_read_fails_its_day_and_no_other(lake: Lake) -> None:
    good, bad = letters("2025-03-06"), letters("2019-01-01")
    results = of(materialize_raw(lake, [bad, good]), "raw.fetches")
    assert results[good].state is PartitionState.COMPLETE
    assert results[good].error is None
    assert results[bad].state is PartitionState.FAILED
    assert "1 of 1 list pages could not be read (http_error 404)" in str(results[bad].error)
    cleaned = of(materialize_clean(lake, [bad, good]), "clean.articles")
    assert (cleaned[good].state, cleaned[bad].state) == (PartitionState.COMPLETE, PartitionState.OPEN)


def test_a_day_whose_list_failed_is_collected_when_it_is_run_again(lake: Lake) -> None:
    day = letters(BROKEN_DAY)
    first = of(materialize_raw(lake, [day]), "raw.fetches")[day]
    assert (first.state, first.row_count) == (PartitionState.FAILED, 2)
    again = of(make_all(lake, [day]), "raw.fetches")[day]
    assert (again.state, again.error, again.row_count) == (PartitionState.COMPLETE, None, 2 + 5)
    before = snapshots(lake)
    assert of(make_all(lake, [day]), "clean.articles")[day].rows == {"failed": 2, "listing": 1, "clean": 4}
    assert snapshots(lake) == before


def test_a_past_day_of_a_source_without_dates_is_left_as_it_is(lake: Lake) -> None:
    day = SourceDay("demo_gazette", lake.clock.today() - timedelta(days=1))
    before = snapshots(lake)
    result = of(materialize_raw(lake, [day]), "raw.fetches")[day]
    assert (result.row_count, result.changed, result.error) == (0, False, None)
    assert "not addressed by date" in result.message
    assert snapshots(lake) == before


def test_completion_is_decided_before_it_is_told(lake: Lake) -> None:
    day = letters("2025-03-07")
    materialize_raw(lake, [day])
    [decision] = [one.decision for one in lake.decisions.all("completion") if one.decision.dt == day.dt]
    assert (decision.source, decision.payload["state"]) == ("demo_daily", "complete")
    assert decision.payload["fetches"] == 5


def register_late_fetch(lake: Lake, day: SourceDay) -> None:
    """A further uploaded batch of a day: its last page once more."""
    first = load_batch(lake.store, BatchIndex(lake.ledger).committed(day.source, day.dt)[0].key)
    late = replace(first.fetches[-1], fetch_id=new_fetch_id(lake.clock.now_utc()))
    batch, key = Batch.of(day.source, day.dt, [late]), f"batch/late-{late.fetch_id}.zst"
    lake.store.put(key, batch.to_bytes(), content_type="application/zstd", metadata={})
    BatchIndex(lake.ledger).register(batch.batch_id, day.source, day.dt, key, batch.counts)


@pytest.mark.parametrize("materialize", [materialize_clean, materialize_feature])
def test_a_run_beside_that_was_faster_is_not_overwritten_with_older_rows(
    lake: Lake, town: Settings, monkeypatch: pytest.MonkeyPatch, materialize: Materialize
) -> None:
    day = letters("2025-03-21" if materialize is materialize_clean else "2025-03-22")
    make_all(lake, [day])
    module = clean if materialize is materialize_clean else feature
    name = "clean_day" if module is clean else "source_daily"
    original = getattr(module, name)
    overtaken: list[SourceDay] = []

    def overtake(*given: Any, **named: Any) -> Any:
        """Work on what was read, after another run has seen and made more."""
        if not overtaken:
            overtaken.append(day)
            with open_lake(town) as other:
                register_late_fetch(other, day)
                make_all(other, [day])
        return original(*given, **named)

    monkeypatch.setattr(module, name, overtake)
    results = materialize(lake, [day])
    assert overtaken
    assert {result.state for result in results} == {PartitionState.COMPLETE}
    monkeypatch.undo()
    assert audit_books(lake, [day]).balanced
    before = snapshots(lake)
    make_all(lake, [day])
    assert snapshots(lake) == before


def test_more_rows_in_raw_reopen_the_day(lake: Lake) -> None:
    day = letters("2025-03-20")
    make_all(lake, [day])
    index, partition = PartitionIndex(lake.ledger), Partition(day.source, day.dt, 1)
    register_late_fetch(lake, day)
    assert of(materialize_raw(lake, [day]), "raw.fetches")[day].row_count == 6
    states = {info.table: info.state for info in index.list(source=day.source, dt=day.dt)}
    assert (states["raw.fetches"], states["clean.articles"]) == (PartitionState.COMPLETE, PartitionState.OPEN)
    assert states["feature.articles"] is PartitionState.OPEN
    assert not audit_books(lake, [day]).balanced
    assert of(materialize_clean(lake, [day]), "clean.articles")[day].rows == {"listing": 1, "clean": 4, "duplicate": 1}
    found = index.get(Layer.CLEAN, "clean.articles", partition)
    assert found is not None
    assert found.state is PartitionState.COMPLETE


def test_the_index_says_what_the_tables_hold(lake: Lake) -> None:
    day = letters("2025-03-08")
    make_all(lake, [day])
    index = PartitionIndex(lake.ledger)
    raw = index.get(Layer.RAW, "raw.fetches", Partition(day.source, day.dt, 1))
    made = index.get(Layer.CLEAN, "clean.articles", Partition(day.source, day.dt, 1))
    assert raw is not None
    assert made is not None
    assert (raw.row_count, raw.state, raw.file_count) == (5, PartitionState.COMPLETE, 1)
    assert (made.row_count, made.state) == (4, PartitionState.COMPLETE)
    assert made.parents[0] == "raw.fetches/source=demo_daily/dt=2025-03-08/schema_version=1"
    assert made.completed_at is not None


def stored_pages(town: Settings, day: SourceDay) -> list[Path]:
    """The stored bodies of a day."""
    folder = town.home / "objects" / "data" / "snap" / day.source / f"{day.dt:%Y/%m/%d}"
    return sorted(path for path in folder.rglob("*") if path.name.endswith("html.zst"))


def test_a_lost_body_and_a_damaged_one_are_rejects_until_they_are_back(lake: Lake, town: Settings) -> None:
    day = letters("2025-03-09")
    make_all(lake, [day])
    whole = lake.committer.scan("clean.articles", [Partition(day.source, day.dt, 1)])
    lost, damaged = stored_pages(town, day)[:2]
    kept = {path: path.read_bytes() for path in (lost, damaged)}
    lost.unlink()
    damaged.chmod(0o644)
    damaged.write_bytes(kept[damaged][:-20])
    result = of(materialize_clean(lake, [day]), "clean.articles")[day]
    assert result.rows == {"listing": 1, "clean": 2, "rejected": 2}
    rejects = lake.committer.scan("clean.rejects", [Partition(day.source, day.dt, 1)]).to_pylist()
    assert {row["reason"] for row in rejects} == {"snapshot_missing", "snapshot_corrupt"}
    assert audit_books(lake, [day]).balanced
    for path, data in kept.items():
        path.write_bytes(data)
    assert of(materialize_clean(lake, [day]), "clean.articles")[day].rows == {"listing": 1, "clean": 4}
    assert lake.committer.scan("clean.articles", [Partition(day.source, day.dt, 1)]).equals(whole)


def test_books_that_do_not_balance_commit_nothing_and_stop_no_other_day(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = letters("2025-03-10"), letters("2025-03-11")
    materialize_raw(lake, [good, bad])

    def forgetful(source: object, dt: date, *rest: object) -> CleanDay:
        day: CleanDay = clean_day(source, dt, *rest)  # type: ignore[arg-type]
        kept = day.outcomes if dt == good.dt else day.outcomes[1:]
        return CleanDay(day.source, day.dt, day.rows, day.rejects, kept)

    monkeypatch.setattr(clean, "clean_day", forgetful)
    results = of(materialize_clean(lake, [good, bad]), "clean.articles")
    assert results[good].rows == {"listing": 1, "clean": 4}
    assert "1 fetches without an outcome" in str(results[bad].error)
    assert results[bad].state is PartitionState.FAILED
    assert lake.committer.scan("clean.outcomes", [Partition(bad.source, bad.dt, 1)]).num_rows == 0
    monkeypatch.undo()
    assert of(materialize_clean(lake, [bad]), "clean.articles")[bad].state is PartitionState.COMPLETE


def test_an_audit_of_everything_finds_a_lost_outcome(lake: Lake) -> None:
    day = letters("2025-03-12")
    make_all(lake, [day])
    partition = Partition(day.source, day.dt, 1)
    frame = lake.committer.scan("clean.outcomes", [partition])
    lake.committer.replace("clean.outcomes", frame.slice(1), [partition])
    [books] = [books for books in audit_all_books(lake).days if books.dt == day.dt]
    assert not books.balanced
    assert "1 fetches without an outcome" in books.problems[0]
    materialize_clean(lake, [day])
    assert audit_books(lake, [day]).balanced


def test_order_of_days_does_not_matter(lake: Lake, tmp_path: Path, town: Settings) -> None:
    days = [letters("2025-03-13"), letters("2025-03-14"), letters("2025-03-15")]
    make_all(lake, days)
    for day in reversed(days):
        make_all(lake, [day])
    pages = lake.committer.scan("feature.articles_current").to_pylist()
    firsts = sorted(str(row["first_seen_dt"]) for row in pages if row["first_seen_dt"] >= days[0].dt)
    assert firsts[:12] == sorted(["2025-03-13"] * 4 + ["2025-03-14"] * 4 + ["2025-03-15"] * 4)
    assert len({row["canonical_fp"] for row in pages}) == len(pages)


@pytest.mark.parametrize("materialize", LAYERS)
def test_names_and_days_that_cannot_be_start_nothing(lake: Lake, materialize: object) -> None:
    assert callable(materialize)
    before = snapshots(lake)
    with pytest.raises(UnknownNameError, match="demo_daily"):
        materialize(lake, [SourceDay("demo_dialy", date(2025, 3, 1))])
    with pytest.raises(ConfigError, match="lies in the future"):
        materialize(lake, [SourceDay("demo_daily", lake.clock.today() + timedelta(days=1))])
    assert snapshots(lake) == before
