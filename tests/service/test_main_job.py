"""The main job on the server profile, over the demo site's nastiest corner: every fetch is accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
import sqlalchemy as sa

from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from infra.launcher import Servers
from lakehouse.cli.verify import open_engines
from lakehouse.lake import Lake, open_lake
from lakehouse.ledger.partitions import PartitionIndex, partition_values
from lakehouse.ledger.tables import batch, partition_info
from lakehouse.materialize.books import audit_books
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.findings import Kind
from lakehouse.materialize.proofs import run_proofs
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.rebuild import rebuild
from lakehouse.materialize.reconcile import Scope, reconcile
from lakehouse.materialize.result import failed_days
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.model.record import REJECT_REASONS
from lakehouse.query import connect
from lakehouse.query.trino import TrinoAccess, read_rows

ROOT = Path(__file__).parents[2]
LAYERS = (materialize_raw, materialize_clean, materialize_feature)


@pytest.fixture(scope="module")
def lake(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The session's own lake, which Trino reads too, with sources that lead to a demo site."""
    with run_site() as site:
        folder = tmp_path_factory.mktemp("main-job")
        catalog = copy_catalog(ROOT / "catalog", folder / "catalog", site.server_port)
        with open_lake(servers.settings(catalog_dir=catalog, home=folder / "home")) as opened:
            yield opened


@pytest.fixture(scope="module")
def days(lake: Lake) -> list[SourceDay]:
    """Two days of letters and the odd pages, through all layers."""
    wanted = [SourceDay("demo_daily", date(2025, 5, day)) for day in (1, 2)]
    wanted.append(SourceDay("demo_nasty", lake.clock.today()))
    results = [result for materialize in LAYERS for result in materialize(lake, wanted)]
    assert failed_days(results) == {}
    return wanted


def test_every_fetch_has_one_outcome_and_every_odd_page_its_reason(lake: Lake, days: list[SourceDay]) -> None:
    audit = audit_books(lake, days)
    assert audit.balanced
    odd = Partition("demo_nasty", days[-1].dt, 1)
    outcomes = lake.committer.scan("clean.outcomes", [odd]).to_pylist()
    reasons = {(row["outcome"], row["reason"]) for row in outcomes}
    assert ("failed", "too_large") in reasons
    assert {("rejected", "not_html"), ("rejected", "empty_body"), ("limited", "login_wall")} <= reasons
    rejects = lake.committer.scan("clean.rejects", [odd]).to_pylist()
    assert {row["reason"] for row in rejects} <= set(REJECT_REASONS)
    assert all(lake.store.head(row["snap_key"]) for row in rejects)


def test_a_body_over_the_limit_is_not_kept(lake: Lake, days: list[SourceDay]) -> None:
    fetches = lake.committer.scan("raw.fetches", [Partition("demo_nasty", days[-1].dt, 1)]).to_pylist()
    too_large = [row for row in fetches if row["error"] == "too_large"]
    assert too_large
    assert all(row["snap_key"] is None for row in too_large)
    assert max(row["body_bytes"] or 0 for row in fetches) <= 200_000


def test_the_same_days_again_change_no_table(lake: Lake, days: list[SourceDay]) -> None:
    names = lake.catalog.tables()
    for name in names:
        lake.committer.table(name)  # a table that nothing was written to yet is made here, which is a decision
    before = {name: lake.committer.table(name).metadata.current_snapshot_id for name in names}
    with open_lake(lake.settings) as other:
        assert not any(result.changed for materialize in LAYERS for result in materialize(other, days))
    assert {name: lake.committer.table(name).metadata.current_snapshot_id for name in names} == before


def test_all_that_is_built_is_proven_on_three_engines(lake: Lake, days: list[SourceDay]) -> None:
    proofs = run_proofs(lake, open_engines(lake), lambda _: None)
    assert [(proof["name"], proof["faults"]) for proof in proofs if proof["status"] == "failed"] == []
    engines = next(proof["measured"]["engines"] for proof in proofs if proof["name"] == "engines_agree")
    assert engines == ["pyiceberg", "duckdb", "trino"]


@pytest.mark.parametrize("view", ["_effective", "_latest", "_compat"])
def test_the_views_in_trino_came_with_the_rows(lake: Lake, days: list[SourceDay], view: str) -> None:
    settings = lake.settings
    access = TrinoAccess(settings.trino_host or "", settings.trino_port or 0)
    query = f"SELECT source, count(*) FROM clean.articles{view} GROUP BY source ORDER BY source"
    with connect(lake) as db:
        expected = [list(row) for row in db.execute(query).fetchall()]
    assert [row for batch in read_rows(access, query) for row in batch] == expected
    assert {source for source, _ in expected} & {day.source for day in days}


def test_a_lost_index_comes_back_on_the_servers(lake: Lake, days: list[SourceDay]) -> None:
    schedules = {Kind.DAY_MISSING, Kind.DAY_UNFINISHED, Kind.SOURCE_SILENT}
    mine = {day.source for day in days}
    index = PartitionIndex(lake.ledger)
    before = [partition_values(info) for info in index.list() if info.partition.source in mine]
    assert before
    with lake.ledger.write() as connection:
        connection.execute(sa.delete(partition_info).where(partition_info.c.source.in_(mine)))
        connection.execute(sa.delete(batch).where(batch.c.source.in_(mine)))
    found = {one.kind for one in reconcile(lake, Scope(None)) if one.kind not in schedules}
    assert {Kind.INDEX_ROW_MISSING, Kind.BATCH_MISSING} <= found
    rebuild(lake)
    assert [partition_values(info) for info in index.list() if info.partition.source in mine] == before
    left = [one for one in reconcile(lake, Scope(None)) if one.kind not in schedules]
    assert [one for one in left if any(source in one.subject for source in mine)] == []
