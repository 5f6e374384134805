"""Any sequence of commits and upkeep leaves what a dictionary of rows says, for every engine and at every tag."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from lakehouse.clock import system_now
from lakehouse.query import connect
from lakehouse.tables.layout import LayoutRules
from lakehouse.tables.small_files import compact_tables
from lakehouse.tables.tags import drop_tag, tag_release
from lakehouse.tables.upkeep import Limits, upkeep
from tests.commit_worker import TABLE, Place, frame, partition
from tests.unit.tables.upkeep_lake import needed_files, stored_files

Row = tuple[str, str, int]
SOURCES = ("one", "two", "three")
EAGER = LayoutRules(min_files=2)
STRICT = Limits(keep_untagged=1, orphan_age=timedelta(0))
sources = st.sampled_from(SOURCES)
batches = st.integers(0, 5).map(lambda number: f"{number:032x}")
positions = st.sets(st.integers(0, 4), min_size=1, max_size=3)


class Histories(RuleBasedStateMachine):
    """The table beside a plain model: rows of each partition, states that can be restored, tags."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="histories-")
        self.committer = Place(self.folder.name).open("run")
        self.rows: dict[str, Counter[Row]] = {source: Counter() for source in SOURCES}
        self.earlier: list[tuple[str, list[str], Counter[Row]]] = []
        self.tags: dict[str, Counter[Row]] = {}
        self.days = 0

    @initialize()
    def first(self) -> None:
        self.append("one", "f" * 32, {0})

    @rule(source=sources, batch=batches, wanted=positions)
    def append(self, source: str, batch: str, wanted: set[int]) -> None:
        self.note_state(source)
        new = [(source, batch, position) for position in sorted(wanted)]
        known = any(row[1] == batch for row in self.rows[source])
        commit = self.committer.append(TABLE, frame(self.committer, new))
        assert commit.changed != known
        if not known:
            self.rows[source] += Counter(new)

    @rule(picked=st.lists(sources, min_size=1, max_size=2, unique=True), batch=batches, wanted=positions)
    def replace(self, picked: list[str], batch: str, wanted: set[int]) -> None:
        for source in picked:
            self.note_state(source)
        new = [(source, batch, position) for source in picked for position in sorted(wanted)]
        commit = self.committer.replace(TABLE, frame(self.committer, new), [partition(source) for source in picked])
        after = {source: Counter(row for row in new if row[0] == source) for source in picked}
        assert commit.changed == any(self.rows[source] != after[source] for source in picked)
        self.rows.update(after)

    @rule(source=sources)
    def empty(self, source: str) -> None:
        self.note_state(source)
        self.committer.replace(TABLE, frame(self.committer, []), [partition(source)])
        self.rows[source] = Counter()

    @precondition(lambda self: self.earlier)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        source, files, rows = data.draw(st.sampled_from(self.earlier), label="an earlier state")
        self.note_state(source)
        self.committer.restore(TABLE, partition(source), files)
        self.rows[source] = Counter(rows)

    @rule()
    def compact(self) -> None:
        compact_tables(self.committer, [TABLE], EAGER)

    @rule()
    def another_process(self) -> None:
        """Nothing that a committer remembers may matter."""
        self.close()
        self.committer = Place(self.folder.name).open("another")

    @rule(name=st.sampled_from(["a", "b"]))
    def tag(self, name: str) -> None:
        if tag_release(self.committer, TABLE, name).changed:
            self.tags[name] = self.everything()

    @precondition(lambda self: self.tags)
    @rule(data=st.data())
    def untag(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.tags)), label="a tag")
        assert drop_tag(self.committer, TABLE, f"release-{name}")
        del self.tags[name]

    @rule()
    def expire(self) -> None:
        """Upkeep at its strictest, so late that no period of grace is left."""
        self.days += 40
        upkeep(self.committer, [TABLE], STRICT, now=system_now() + timedelta(days=self.days))
        self.earlier.clear()
        assert stored_files(self.table()) == needed_files(self.table())

    @invariant()
    def the_rows_are_those_of_the_model(self) -> None:
        assert as_rows(self.committer.scan(TABLE).to_pylist()) == self.everything()
        for source in SOURCES:
            found = self.committer.scan(TABLE, [partition(source)]).to_pylist()
            assert as_rows(found) == self.rows[source]

    def teardown(self) -> None:
        try:
            with connect(self.committer.iceberg) as db:
                found = db.execute(f"SELECT source, batch_id, position FROM {TABLE}").fetchall()
            assert Counter(found) == self.everything()
            table = self.table()
            for name, rows in self.tags.items():
                scan = table.scan(snapshot_id=table.metadata.refs[f"release-{name}"].snapshot_id)
                assert as_rows(scan.to_arrow().to_pylist()) == rows
        finally:
            self.close()
            self.folder.cleanup()

    def note_state(self, source: str) -> None:
        files = [one.path for one in self.committer.files(TABLE, partition(source))]
        if files:
            self.earlier.append((source, files, Counter(self.rows[source])))

    def close(self) -> None:
        assert isinstance(self.committer.iceberg, SqlCatalog)
        self.committer.iceberg.engine.dispose()

    def table(self) -> Table:
        return self.committer.iceberg.load_table(TABLE)

    def everything(self) -> Counter[Row]:
        return sum(self.rows.values(), Counter())


def as_rows(found: list[dict[str, Any]]) -> Counter[Row]:
    return Counter((row["source"], row["batch_id"], row["position"]) for row in found)


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=8, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)
)
