from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from sqlalchemy.exc import OperationalError

from lakehouse.errors import (
    ConflictError,
    DataError,
    InvariantError,
    SchemaMismatch,
    UnavailableError,
    UnknownNameError,
)
from lakehouse.tables import committer as committer_module
from lakehouse.tables.committer import Committer, read_current
from lakehouse.tables.content import EMPTY_HASH, content_hash
from lakehouse.tables.effective import WHOLE_TABLE
from lakehouse.tables.iceberg import LakehouseCatalog
from lakehouse.tables.names import parse_name
from lakehouse.tables.normalize import to_arrow
from lakehouse.tables.upkeep import Limits, upkeep
from tests.unit.tables.kernel_lake import DAY, TABLE, open_committer, part, row, rows, schema
from tests.unit.tables.other_engine import add_position_delete

A, B, C = "a" * 32, "b" * 32, "c" * 32


@pytest.fixture
def committer(tmp_path: Path) -> Committer:
    return open_committer(tmp_path)


def load(committer: Committer) -> Table:
    """The table as it is now."""
    return committer.iceberg.load_table(TABLE)


def same_rows(found: pa.Table, wanted: pa.Table) -> bool:
    """Whether two frames hold the same rows, in any order."""
    return content_hash(found) == content_hash(wanted)


def data_files(tmp_path: Path) -> set[str]:
    """All data files below the warehouse."""
    return {str(path) for path in tmp_path.rglob("*.parquet")}


def test_an_append_says_what_each_partition_holds(committer: Committer) -> None:
    frame = pa.concat_tables([rows(3, "aa", A), rows(2, "bb", A)])
    commit = committer.append(TABLE, frame)
    assert commit.changed
    assert commit.snapshot_id == load(committer).metadata.current_snapshot_id
    assert [(one.partition, one.rows, one.files) for one in commit.partitions] == [
        (part("aa"), 3, 1),
        (part("bb"), 2, 1),
    ]
    assert [one.checksum for one in commit.partitions] == [
        content_hash(rows(3, "aa", A)),
        content_hash(rows(2, "bb", A)),
    ]
    assert same_rows(committer.scan(TABLE), frame)
    (info,) = committer.files(TABLE, part("aa"))
    assert "/data/source=aa/dt=2024-05-01/schema_version=1/" in info.path
    name = parse_name(info.path)
    assert name is not None
    assert (name.fingerprint, name.checksum) == (A, content_hash(rows(3, "aa", A)))
    assert (info.rows, info.bytes) == (3, Path(info.path.removeprefix("file://")).stat().st_size)


def test_the_summary_names_run_operation_and_batches(committer: Committer) -> None:
    committer.append(TABLE, pa.concat_tables([rows(1, "aa", A), rows(1, "aa", B)]))
    snapshot = load(committer).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["lakehouse.run-id"] == "run"
    assert snapshot.summary["lakehouse.operation"] == "append"
    assert snapshot.summary["lakehouse.batches"] == f"{A},{B}"
    assert snapshot.summary["added-records"] == "2"


def test_the_same_batch_twice_adds_nothing(committer: Committer, tmp_path: Path) -> None:
    first = committer.append(TABLE, rows(3, "aa", A))
    files = data_files(tmp_path)
    again = committer.append(TABLE, rows(3, "aa", A))
    assert not again.changed
    assert (again.snapshot_id, again.partitions) == (first.snapshot_id, first.partitions)
    assert data_files(tmp_path) == files
    mixed = committer.append(TABLE, pa.concat_tables([rows(3, "aa", A), rows(2, "aa", B, first=10)]))
    assert [one.rows for one in mixed.partitions] == [5]
    assert same_rows(committer.scan(TABLE), pa.concat_tables([rows(3, "aa", A), rows(2, "aa", B, first=10)]))
    both = committer.append(TABLE, pa.concat_tables([rows(1, "aa", C), rows(1, "aa", B)]))
    assert [one.rows for one in both.partitions] == [6]


def test_a_batch_is_known_by_its_rows_after_other_engines_rewrote_the_files(committer: Committer) -> None:
    committer.append(TABLE, rows(3, "aa", A))
    committer.append(TABLE, rows(3, "aa", B))
    table = load(committer)
    everything = table.scan().to_arrow()
    table.overwrite(everything)  # what a compaction leaves: other names, no batch in any summary
    upkeep(committer, [TABLE], Limits(keep_untagged=1))
    (info,) = committer.files(TABLE, part("aa"))
    assert parse_name(info.path) is None
    again = committer.append(TABLE, pa.concat_tables([rows(3, "aa", A), rows(3, "aa", B)]))
    assert (again.changed, again.partitions[0].rows) == (False, 6)
    assert again.partitions[0].checksum == content_hash(committer.scan(TABLE))
    assert committer.append(TABLE, rows(1, "aa", C)).partitions[0].rows == 7


def test_rows_without_an_id_are_refused(committer: Committer) -> None:
    with pytest.raises(SchemaMismatch, match="field text: expected an id in every row"):
        committer.append(TABLE, to_arrow([row(0, text=None)], schema()), id_column="text")
    with pytest.raises(SchemaMismatch, match="field nothing"):
        committer.append(TABLE, rows(1), id_column="nothing")


def test_an_empty_append_commits_nothing(committer: Committer) -> None:
    commit = committer.append(TABLE, rows(0))
    assert (commit.changed, commit.snapshot_id, commit.partitions) == (False, None, ())


def test_a_replace_is_one_snapshot_and_empties_what_has_no_rows(committer: Committer) -> None:
    committer.append(TABLE, pa.concat_tables([rows(3, "aa", A), rows(3, "bb", A), rows(3, "cc", A)]))
    commit = committer.replace(TABLE, rows(5, "aa", B), [part("aa"), part("bb"), part("dd")])
    assert [(one.partition.source, one.rows) for one in commit.partitions] == [("aa", 5), ("bb", 0), ("dd", 0)]
    assert commit.partitions[1].checksum == EMPTY_HASH
    assert len(load(committer).snapshots()) == 2
    assert same_rows(committer.scan(TABLE), pa.concat_tables([rows(5, "aa", B), rows(3, "cc", A)]))


def test_a_replace_by_the_same_content_commits_nothing(committer: Committer, tmp_path: Path) -> None:
    frame = pa.concat_tables([rows(3, "aa", A), rows(3, "bb", A)])
    first = committer.replace(TABLE, frame, [part("aa"), part("bb")])
    files = data_files(tmp_path)
    again = committer.replace(TABLE, frame.take([5, 4, 3, 2, 1, 0]), [part("bb"), part("aa")])
    assert (again.changed, again.snapshot_id, again.partitions) == (False, first.snapshot_id, first.partitions)
    partly = committer.replace(TABLE, pa.concat_tables([rows(3, "aa", A), rows(3, "bb", B)]), [part("aa"), part("bb")])
    assert partly.changed
    assert len(data_files(tmp_path) - files) == 1, "the partition that stayed the same was written again"
    assert not committer.replace(TABLE, rows(0), [part("zz")]).changed


def test_rows_of_a_partition_that_is_not_named_are_refused(committer: Committer) -> None:
    with pytest.raises(DataError, match=r"rows of .'bb'.*not among the 1 partitions named"):
        committer.replace(TABLE, pa.concat_tables([rows(1, "aa"), rows(1, "bb")]), [part("aa")])
    assert load_or_none(committer) is None


def load_or_none(committer: Committer) -> Table | None:
    """The table, if it was made."""
    return load(committer) if committer.iceberg.table_exists(TABLE) else None


def test_tables_by_source_and_without_partitions_are_replaced_by_what_they_are_partitioned_by(tmp_path: Path) -> None:
    by_source = open_committer(tmp_path / "source", schema(partitioned="source"))
    frame = to_arrow([row(0), row(1, dt=DAY + dt.timedelta(days=1)), row(2, "bb")], schema())
    by_source.replace(TABLE, frame, [part("aa"), part("bb")])
    commit = by_source.replace(TABLE, rows(1, "aa"), [part("aa")])
    assert [(one.partition, one.rows, one.files) for one in commit.partitions] == [(part("aa"), 1, 1)]
    assert by_source.scan(TABLE).num_rows == 2
    whole = open_committer(tmp_path / "whole", schema(partitioned="none"))
    whole.replace(TABLE, frame, [WHOLE_TABLE])
    assert whole.replace(TABLE, rows(1, "aa"), [WHOLE_TABLE]).partitions[0].rows == 1
    assert same_rows(whole.scan(TABLE), rows(1, "aa"))


def test_many_small_files_of_a_table_without_partitions_are_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakehouse.tables.changes.FOLD_AT", 4)
    committer = open_committer(tmp_path, schema(partitioned="none"))
    for number in range(10):
        commit = committer.append(TABLE, rows(1, batch=f"{number:032x}", first=number))
        assert commit.partitions[0].rows == number + 1
        assert commit.partitions[0].files <= 4
    assert not committer.append(TABLE, rows(1, batch=f"{3:032x}", first=3)).changed
    wanted = pa.concat_tables([rows(1, batch=f"{number:032x}", first=number) for number in range(10)])
    assert same_rows(committer.scan(TABLE), wanted)
    assert commit.partitions[0].checksum == content_hash(wanted)


def test_every_type_comes_back_as_it_was(committer: Committer) -> None:
    frame = to_arrow(
        [row(1), {**dict.fromkeys(row(1)), **{k: row(2)[k] for k in ("source", "dt", "schema_version", "batch_id")}}],
        schema(),
    )
    committer.append(TABLE, frame)
    found = committer.scan(TABLE)
    assert found.schema == frame.schema
    assert same_rows(found, frame)
    assert found.sort_by("small").to_pylist() == frame.sort_by("small").to_pylist()


def test_a_frame_that_was_sorted_with_wide_offsets_reads_as_any_other(
    committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakehouse.tables.split.WIDE_BYTES", 1)
    committer.append(TABLE, rows(20, "aa", A))
    assert committer.scan(TABLE).schema == rows(0).schema
    assert same_rows(committer.scan(TABLE), rows(20, "aa", A))


def test_no_path_is_added_a_second_time(committer: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehouse.tables.names.secrets.token_hex", lambda size: "0" * 2 * size)
    committer.add(TABLE, rows(3, "aa", A))
    with pytest.raises(InvariantError, match=r"refused to add .* a second time"):
        committer.add(TABLE, rows(3, "aa", A))


def test_tables_of_one_namespace_can_be_made_at_the_same_moment(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    failures: list[BaseException] = []

    def make(name: str) -> None:
        try:
            committer.table(name)
        except BaseException as error:  # noqa: BLE001 (whatever it is, the test names it)
            failures.append(error)

    threads = [threading.Thread(target=make, args=(name,)) for name in committer.catalog.tables() if "raw." in name]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(committer.iceberg.list_tables("raw")) == len(threads) > 2


def test_a_scan_takes_partitions_and_columns(committer: Committer) -> None:
    committer.append(TABLE, pa.concat_tables([rows(3, "aa", A), rows(2, "bb", A)]))
    found = committer.scan(TABLE, [part("bb"), part("zz")], ["text", "source"])
    assert found.column_names == ["text", "source"]
    assert found.column("source").to_pylist() == ["bb", "bb"]
    assert committer.scan(TABLE, []).num_rows == 0
    with pytest.raises(UnknownNameError, match="has no column 'colour'"):
        committer.scan(TABLE, columns=["colour"])


def test_current_names_the_metadata_that_is_real(committer: Committer, tmp_path: Path) -> None:
    for number in range(3):
        committer.append(TABLE, rows(1, batch=f"{number:032x}"))
        assert load(committer).metadata_location.endswith(f"/{read_current(load(committer))}")
    folder = tmp_path / "warehouse" / "feature" / "things" / "metadata"
    (folder / "CURRENT").write_text("00000-stale.metadata.json\n")
    committer.append(TABLE, rows(1, batch=f"{2:032x}"))
    assert load(committer).metadata_location.endswith(f"/{read_current(load(committer))}")
    assert {path.name for path in folder.glob("*.tmp")} == set()


def change_elsewhere(committer: Committer) -> None:
    """What an engine does that does not know our lock: move the table on."""
    table = SlowReader.of(committer).load_table(TABLE)
    with table.transaction() as change:
        change.set_properties({"somebody": str(len(table.metadata.metadata_log))})


class SlowReader:
    """A second catalog on the same database."""

    @staticmethod
    def of(committer: Committer) -> LakehouseCatalog:
        assert isinstance(committer.iceberg, LakehouseCatalog)
        return LakehouseCatalog("lakehouse", **committer.iceberg.properties)


def test_a_commit_that_loses_the_swap_is_planned_again_and_leaves_nothing(
    committer: Committer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer.append(TABLE, rows(3, "aa", A))
    original = LakehouseCatalog._swap
    lost: list[str] = []

    def swap(self: LakehouseCatalog, table: Table, location: str) -> bool:
        if not lost:
            lost.append(location)
            change_elsewhere(committer)
        return original(self, table, location)

    monkeypatch.setattr(LakehouseCatalog, "_swap", swap)
    commit = committer.replace(TABLE, rows(5, "aa", B), [part("aa")])
    assert (commit.changed, commit.partitions[0].rows) == (True, 5)
    assert len(lost) == 1
    assert not Path(lost[0].removeprefix("file://")).exists()
    assert same_rows(committer.scan(TABLE), rows(5, "aa", B))
    table = load(committer)
    reached = {str(snapshot.manifest_list) for snapshot in table.snapshots()}
    for snapshot in table.snapshots():
        reached |= {one.manifest_path for one in snapshot.manifests(table.io)}
    stored = {f"file://{path}" for path in tmp_path.rglob("*.avro")}
    assert stored == reached


def test_an_engine_that_never_rests_is_named(committer: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    committer.table(TABLE)
    monkeypatch.setattr(committer_module, "ATTEMPTS", 2)

    def lose(*_: object, **__: object) -> int:
        raise CommitFailedException("moved")

    monkeypatch.setattr(committer_module, "commit_files", lose)
    with pytest.raises(ConflictError, match="another engine changed the table 2 times"):
        committer.append(TABLE, rows(1))


@pytest.mark.parametrize("landed", [True, False])
def test_a_database_that_falls_silent_during_the_swap_leaves_rows_once(
    committer: Committer, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    committer.append(TABLE, rows(3, "aa", A))
    original = LakehouseCatalog._swap
    calls: list[str] = []

    def swap(self: LakehouseCatalog, table: Table, location: str) -> bool:
        calls.append(location)
        if len(calls) > 1:
            return original(self, table, location)
        if landed:
            original(self, table, location)
        raise OperationalError("UPDATE", {}, Exception("server closed the connection"))

    monkeypatch.setattr(LakehouseCatalog, "_swap", swap)
    commit = committer.append(TABLE, rows(4, "aa", B))
    assert (commit.changed, commit.partitions[0].rows) == (True, 7)
    assert len(calls) == (1 if landed else 2)
    assert same_rows(committer.scan(TABLE), pa.concat_tables([rows(3, "aa", A), rows(4, "aa", B)]))
    assert len(load(committer).snapshots()) == 2


def test_a_lost_database_is_unavailable_without_its_password(
    committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("SELECT", {}, Exception("connection to postgresql://me:secret@host failed"))

    monkeypatch.setattr(LakehouseCatalog, "_location", fail)
    with pytest.raises(UnavailableError, match=r"feature\.things.*does not answer.*run again") as caught:
        committer.scan(TABLE)
    assert "secret" not in str(caught.value)


def test_a_store_that_refuses_is_unavailable(committer: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    committer.table(TABLE)

    def fail(*_: object) -> None:
        raise OSError("When initiating multiple part upload: SlowDown")

    monkeypatch.setattr("lakehouse.tables.changes.write_files", fail)
    with pytest.raises(UnavailableError, match=r"feature\.things: its store does not answer.*SlowDown"):
        committer.append(TABLE, rows(1))


def test_a_partition_that_carries_deletes_is_refused(committer: Committer) -> None:
    committer.append(TABLE, pa.concat_tables([rows(3, "aa", A), rows(3, "bb", A)]))
    table = load(committer)
    (target,) = [one.file for one in table.scan().plan_files() if "source=aa" in one.file.file_path]
    add_position_delete(table, target)
    actions: list[Callable[[], object]] = [
        lambda: committer.append(TABLE, rows(1, "aa", B)),
        lambda: committer.replace(TABLE, rows(1, "aa", B), [part("aa")]),
        lambda: committer.restore(TABLE, part("aa"), [target.file_path]),
    ]
    for action in actions:
        with pytest.raises(ConflictError, match=r"partition aa/2024-05-01/1 of feature\.things carries delete files"):
            action()
    assert committer.append(TABLE, rows(1, "bb", B)).changed
    assert committer.scan(TABLE, [part("aa")]).num_rows == 2
