"""Any sequence of commits, fixes, moves of readers and upkeep leaves what a dictionary says, in both engines."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lakehouse.clean.dedup import content_hash
from lakehouse.clock import system_now
from lakehouse.errors import ConflictError
from lakehouse.lake import Lake, open_lake
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.fix_units import apply_fixes, redo, roll_back
from lakehouse.materialize.given_rows import read_given_rows
from lakehouse.materialize.result import failed_days
from lakehouse.materialize.versions import set_version, undo_version
from lakehouse.model.partition import Partition, SourceDay
from lakehouse.query import connect
from lakehouse.settings import load_settings
from lakehouse.tables.effective import current, set_first_effective
from lakehouse.tables.fixes import Code
from lakehouse.tables.layout import LayoutRules
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.small_files import compact_tables
from lakehouse.tables.upkeep import Limits, upkeep
from tests.letters import ROOT, SOURCE, TABLES, hashes

DAYS = (SourceDay(SOURCE, date(2025, 3, 1)), SourceDay(SOURCE, date(2025, 3, 2)))
VERSIONS = (1, 2)
STRICT = Limits(keep_untagged=1, orphan_age=timedelta(0))
COLUMNS = ("source", "dt", "schema_version", "fetch_id", "author")
Place = tuple[SourceDay, int]
Pointer = tuple[int, str | None]
Rows = dict[int, str]
days = st.sampled_from(DAYS)
versions = st.sampled_from(VERSIONS)
rows = st.dictionaries(st.integers(0, 3), st.sampled_from(["甲", "乙"]), min_size=1, max_size=3)


@dataclass
class Known:
    """What the model knows of one fix of one day."""

    fix_id: str
    unit: str
    place: Place
    pointer: Pointer
    rows_before: Rows
    rows_after: Rows
    before: dict[str, str]
    after: dict[str, str] = field(default_factory=dict)
    undone: bool = False

    @property
    def structural(self) -> bool:
        return self.pointer[0] != self.place[1]


class FixHistories(RuleBasedStateMachine):
    """A lake whose source writes two schema versions, and a model of each day's rows and of where readers are."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="fix-histories-"))
        for version in VERSIONS:
            declare(self.folder, version)
        self.lakes: dict[int, Lake] = {}
        self.open()
        self.db = connect(self.lakes[1])
        self.rows: dict[Place, Rows] = {}
        self.moves: dict[SourceDay, list[Pointer]] = {day: [] for day in DAYS}
        self.fixes: list[Known] = []
        self.count = 0

    def open(self) -> None:
        for version in VERSIONS:
            given = load_settings(home=self.folder / "home", catalog_dir=self.folder / f"catalog-{version}")
            self.lakes[version] = open_lake(given)

    @initialize()
    def first(self) -> None:
        for day in DAYS:
            self.commit(day, 1, {0: "甲", 1: "乙"})

    @rule(day=days, version=versions, wanted=rows)
    def commit(self, day: SourceDay, version: int, wanted: Rows) -> None:
        """Rows come as the pipeline commits them, whatever a fix said before."""
        lake, partition = self.lakes[version], Partition(SOURCE, day.dt, version)
        outcomes = [
            {
                "fetch_id": fetch_id(day, number),
                "outcome": "clean" if number in wanted else "rejected",
                "reason": None if number in wanted else "body_too_short",
                "rows_out": int(number in wanted),
            }
            for number in range(4)
        ]
        place = {"source": SOURCE, "dt": day.dt, "schema_version": version}
        books = to_arrow([{**place, **one} for one in outcomes], lake.catalog.table_schema("clean.outcomes", None))
        frame = to_arrow(records(day, version, wanted), lake.catalog.schema("articles", version))
        lake.committer.replace("clean.rejects", lake.committer.scan("clean.rejects", []), [partition])
        lake.committer.replace("clean.outcomes", books, [partition])
        lake.committer.replace("clean.articles", frame, [partition])
        self.rows[day, version] = dict(wanted)
        if not self.moves[day]:
            set_first_effective(lake.committer, lake.decisions, "articles", [partition])
            self.moves[day].append((version, None))
        assert failed_days(materialize_feature(lake, [day])) == {}

    @rule(picked=st.lists(days, min_size=1, max_size=2, unique=True), version=versions, wanted=rows)
    def fix(self, picked: list[SourceDay], version: int, wanted: Rows) -> None:
        """A fix gives all its days the same rows."""
        for day in picked:
            if (day, version) not in self.rows:
                self.commit(day, version, wanted)
        lake, chosen = self.lakes[version], sorted(picked)
        before = {day: hashes_of(lake, day, version) for day in chosen}
        path = self.folder / "rows.jsonl"
        lines = [json.dumps(row, default=str) for day in chosen for row in records(day, version, wanted)]
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        given = read_given_rows(lake, chosen, path)
        done = apply_fixes(lake, chosen, code=Code.BUG, reason=self.words(), who="ann", given=given)
        assert [one.day for one in done] == chosen
        for one in done:
            place = (one.day, version)
            pointer = self.moves[one.day][-1]
            known = Known(one.fix_id, one.unit, place, pointer, self.rows[place], dict(wanted), before[one.day])
            known.after = hashes_of(lake, one.day, version)
            self.fixes.append(known)
            self.rows[place] = dict(wanted)
            self.move(one.day, (version, one.fix_id))

    @precondition(lambda self: self.fixes)
    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        picked = data.draw(st.sampled_from(self.fixes), label="a fix")
        members = [one for one in self.fixes if one.unit == picked.unit]
        left = [one for one in members if not one.undone or not self.standing_after(one)]
        refused = not left or any(self.standing_after(one) or self.has_moved(one) for one in left)
        call = partial(roll_back, self.lakes[picked.place[1]], picked.fix_id, reason=self.words(), who="bob")
        if refused:
            with pytest.raises(ConflictError):
                call()
            return
        call()
        for one in reversed(left):
            one.undone = True
            if not one.structural:
                self.rows[one.place] = dict(one.rows_before)
            self.move(one.place[0], one.pointer)

    @precondition(lambda self: self.fixes)
    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        picked = data.draw(st.sampled_from(self.fixes), label="a fix")
        members = [one for one in self.fixes if one.unit == picked.unit]
        call = partial(redo, self.lakes[picked.place[1]], picked.fix_id, reason=self.words(), who="bob")
        if any(self.standing_after(one) or self.has_moved(one) for one in members):
            with pytest.raises(ConflictError):
                call()
            return
        call()
        for one in members:
            one.undone = False
            if not one.structural:
                self.rows[one.place] = dict(one.rows_after)
            self.move(one.place[0], (one.place[1], one.fix_id))

    @rule(day=days, version=versions)
    def show(self, day: SourceDay, version: int) -> None:
        if not self.rows.get((day, version)):
            return
        set_version(self.lakes[version], [day], version, reason=self.words(), who="ann")
        if self.moves[day][-1][0] != version:
            self.move(day, (version, None))

    @rule(day=days)
    def undo(self, day: SourceDay) -> None:
        moves = self.moves[day]
        if len(moves) < 2 or moves[-1][1] or moves[-2][1]:
            with pytest.raises(ConflictError):
                undo_version(self.lakes[1], [day], reason=self.words(), who="ann")
            return
        undo_version(self.lakes[1], [day], reason=self.words(), who="ann")
        moves.pop()

    @rule(day=days, version=versions)
    def run(self, day: SourceDay, version: int) -> None:
        """The next run keeps what a fix gave or what was rolled back; else it makes the day from its pages: none."""
        lake, mine = self.lakes[version], [one for one in self.fixes if one.place == (day, version)]
        assert failed_days(materialize_clean(lake, [day])) == {}
        if (day, version) in self.rows and all(one.undone for one in mine) and not (mine and not mine[-1].structural):
            del self.rows[day, version]
        assert failed_days(materialize_feature(lake, [day])) == {}

    @rule()
    def keep_up(self) -> None:
        compact_tables(self.lakes[1].committer, TABLES, LayoutRules(min_files=2))
        upkeep(self.lakes[1].committer, TABLES, STRICT, now=system_now() + timedelta(days=400))

    @rule()
    def another_process(self) -> None:
        for lake in self.lakes.values():
            lake.close()
        self.open()

    @invariant()
    def every_reader_sees_the_model(self) -> None:
        wanted = sorted(row for place in self.rows for row in self.told(place))
        shown = sorted(
            row for day, moves in self.moves.items() for version, _ in moves[-1:] for row in self.told((day, version))
        )
        pointers = {(day.source, day.dt): moves[-1] for day, moves in self.moves.items() if moves}
        lake = self.lakes[1]
        found = [tuple(row.values()) for row in lake.committer.scan("clean.articles", None, COLUMNS).to_pylist()]
        assert sorted(found) == wanted
        live = {(one.source, one.dt): (one.schema_version, one.fix_id) for one in current(lake.committer).values()}
        assert live == pointers
        assert sorted(row for row in found if live[row[0], row[1]][0] == row[2]) == shown
        names = ", ".join(COLUMNS)
        assert sorted(self.db.execute(f"SELECT {names} FROM clean.articles").fetchall()) == wanted
        assert sorted(self.db.execute(f"SELECT {names} FROM clean.articles_effective").fetchall()) == shown
        newest = self.db.execute("SELECT dt, fetch_id, author FROM feature.articles_current").fetchall()
        assert sorted(newest) == [(row[1], row[3], row[4]) for row in shown]

    def teardown(self) -> None:
        self.db.close()
        for lake in self.lakes.values():
            lake.close()
        shutil.rmtree(self.folder)

    def words(self) -> str:
        self.count += 1
        return f"number {self.count}"

    def move(self, day: SourceDay, pointer: Pointer) -> None:
        if self.moves[day][-1] != pointer:
            self.moves[day].append(pointer)

    def standing_after(self, fix: Known) -> bool:
        later = self.fixes[self.fixes.index(fix) + 1 :]
        return any(one.place[0] == fix.place[0] and not one.undone for one in later)

    def has_moved(self, fix: Known) -> bool:
        now = hashes_of(self.lakes[1], *fix.place)
        return any(now[table] not in {fix.before[table], fix.after[table]} for table in TABLES)

    def told(self, place: Place) -> list[tuple[Any, ...]]:
        day, version = place
        found = self.rows.get(place, {})
        return [(SOURCE, day.dt, version, fetch_id(day, number), author) for number, author in found.items()]


def declare(folder: Path, version: int) -> None:
    """A catalog whose source writes this version."""
    catalog = folder / f"catalog-{version}"
    shutil.copytree(ROOT / "catalog", catalog)
    schema = yaml.safe_load((catalog / "schemas/articles/v1.yaml").read_text("utf-8"))
    schema |= {"version": 2, "changes": "Adds subtitle, which letters have."}
    schema["fields"].append({"name": "subtitle", "type": "string", "description": "What stands below the title"})
    (catalog / "schemas/articles/v2.yaml").write_text(yaml.safe_dump(schema), "utf-8")
    path = catalog / "sources" / f"{SOURCE}.yaml"
    declared = yaml.safe_load(path.read_text("utf-8")) | {"writes": f"articles@{version}"}
    path.write_text(yaml.safe_dump(declared), "utf-8")


def hashes_of(lake: Lake, day: SourceDay, version: int) -> dict[str, str]:
    """What the tables of a fix hold; features have a version of their own."""
    features = {table: found for table, found in hashes(lake, day).items() if table.startswith("feature.")}
    return {**hashes(lake, day, version), **features}


def fetch_id(day: SourceDay, number: int) -> str:
    return f"{day.dt}-{number}"


def records(day: SourceDay, version: int, wanted: Rows) -> Sequence[dict[str, Any]]:
    """Rows of one day in one version."""
    return [
        {
            "source": SOURCE,
            "dt": day.dt,
            "schema_version": version,
            "url": f"https://example.org/{day.dt}/{number}",
            "url_fp": fetch_id(day, number),
            "canonical_fp": fetch_id(day, number),
            "url_rules_version": 1,
            "content_hash": content_hash({"body": None}),
            "title": None,
            "publish_time": None,
            "time_confidence": 0,
            "author": author,
            "origin": None,
            "body": None,
            "body_chars": None,
            "body_quality": None,
            "paragraphs": None,
            "language": None,
            **({"subtitle": None} if version == 2 else {}),
            "tags": [],
            "flags": [],
            "fetch_id": fetch_id(day, number),
            "task_id": "task",
            "template": "demo_daily@1",
            "template_version": 1,
            "collect_time": datetime(2025, 3, 3, tzinfo=UTC),
            "snap_key": None,
        }
        for number, author in wanted.items()
    ]


TestFixHistories = FixHistories.TestCase
TestFixHistories.settings = settings(
    max_examples=4, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
)
