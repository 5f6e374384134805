"""Trino reads the days of a fix before and after it from branches, and the branches go again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import pytest
from trino.exceptions import TrinoUserError

from infra.launcher import Servers
from lakehouse.clock import system_now
from lakehouse.lake import Lake
from lakehouse.materialize.fix_units import apply_fixes, roll_back
from lakehouse.model.partition import SourceDay
from lakehouse.query.past import connect_at
from lakehouse.query.trino import TrinoAccess, read_rows
from lakehouse.tables.fix_branches import branch_fix, branch_name, drop_fix_branches
from lakehouse.tables.fixes import Code, Fix, all_fixes
from lakehouse.tables.tags import tag_release
from lakehouse.tables.upkeep import Limits, upkeep
from tests.letters import SOURCE, TABLES, lake_with, letters, publish

DAYS = [SourceDay(SOURCE, date(2025, 7, 1)), SourceDay(SOURCE, date(2025, 7, 2))]
RELEASE = f"unfixed-{uuid4().hex[:8]}"
COLUMNS = "dt, fetch_id, author, template"
Seen = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def fixed(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, Fix, Seen, Seen]]:
    """The session's lake with two days that were fixed and given back, and what Trino saw before and after the fix."""
    trino = TrinoAccess("127.0.0.1", servers.state.ports["trino"])
    with letters(tmp_path_factory.mktemp("branches"), servers.settings, versions=1) as settings:
        with lake_with(settings) as lake:
            publish(lake, *DAYS)
            tag_release(lake.committer, "clean.articles", RELEASE)
            before = rows_in_trino(trino)
        with lake_with(settings, template=2) as lake:
            fix, *_ = apply_fixes(lake, DAYS, code=Code.TEMPLATE, reason="authors", who="ann")
            after = rows_in_trino(trino)
            roll_back(lake, fix.fix_id, reason="no", who="bob")
            yield lake, fix, before, after


def rows_in_trino(trino: TrinoAccess, version: str = "") -> Seen:
    """What Trino sees of the two days, now or at a version."""
    at = f" FOR VERSION AS OF '{version}'" if version else ""
    where = f"source = '{SOURCE}' AND dt BETWEEN DATE '{DAYS[0].dt}' AND DATE '{DAYS[1].dt}'"
    query = f"SELECT {COLUMNS} FROM clean.articles{at} WHERE {where}"
    return sorted(tuple(row) for batch in read_rows(trino, query) for row in batch)


def test_trino_reads_a_fix_from_branches_that_duckdb_reads_without(
    servers: Servers, fixed: tuple[Lake, Fix, Seen, Seen]
) -> None:
    trino = TrinoAccess("127.0.0.1", servers.state.ports["trino"])
    lake, fix, before, after = fixed
    fixes = all_fixes(lake.decisions)
    assert before != after
    assert all("文 / " in row[2] for row in after)
    for early, wanted in ((True, before), (False, after)):
        made = branch_fix(lake.committer, fixes, fix, before=early)
        filled = [table for table in fix.before if lake.committer.table(table).metadata.current_snapshot_id is not None]
        assert [one.table for one in made if one.changed] == filled
        assert not any(one.changed for one in branch_fix(lake.committer, fixes, fix, before=early))
        assert rows_in_trino(trino, branch_name(fix, before=early)) == wanted
        with connect_at(lake, f"{'before-' if early else ''}fix:{fix.fix_id}") as db:
            where = f"source = '{SOURCE}' AND dt BETWEEN '{DAYS[0].dt}' AND '{DAYS[1].dt}'"
            assert sorted(db.execute(f"SELECT {COLUMNS} FROM clean.articles WHERE {where}").fetchall()) == wanted
    assert rows_in_trino(trino) == rows_in_trino(trino, f"release-{RELEASE}") == before
    with connect_at(lake, f"tag:release-{RELEASE}") as db:
        where = f"source = '{SOURCE}' AND dt BETWEEN '{DAYS[0].dt}' AND '{DAYS[1].dt}'"
        assert sorted(db.execute(f"SELECT {COLUMNS} FROM clean.articles WHERE {where}").fetchall()) == before


def test_branches_are_dropped_by_hand_and_by_upkeep(servers: Servers, fixed: tuple[Lake, Fix, Seen, Seen]) -> None:
    trino = TrinoAccess("127.0.0.1", servers.state.ports["trino"])
    lake, fix, before, after = fixed
    fixes = all_fixes(lake.decisions)
    branch_fix(lake.committer, fixes, fix)
    branch_fix(lake.committer, fixes, fix, before=True)
    dropped = [one.table for one in drop_fix_branches(lake.committer, fix, before=True) if one.changed]
    assert {"clean.articles", "clean.outcomes", "feature.articles"} <= set(dropped)
    with pytest.raises(TrinoUserError, match=branch_name(fix, before=True)):
        rows_in_trino(trino, branch_name(fix, before=True))
    limits = Limits(keep_untagged=1, orphan_age=None)
    upkeep(lake.committer, TABLES, limits, now=system_now() + timedelta(days=6))
    assert rows_in_trino(trino, branch_name(fix, before=False)) == after
    upkeep(lake.committer, TABLES, limits, now=system_now() + timedelta(days=8))
    with pytest.raises(TrinoUserError, match=branch_name(fix, before=False)):
        rows_in_trino(trino, branch_name(fix, before=False))
    assert rows_in_trino(trino) == before
