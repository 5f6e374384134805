from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse.errors import DataError, UnknownNameError
from lakehouse.tables.committer import Committer
from lakehouse.tables.content import content_hash
from lakehouse.tables.normalize import to_arrow
from tests.unit.tables.kernel_lake import DAY, TABLE, TYPES, open_committer, part, row, rows, schema

A, B = "a" * 32, "b" * 32


@pytest.fixture
def committer(tmp_path: Path) -> Committer:
    return open_committer(tmp_path)


def paths(committer: Committer, source: str = "aa") -> list[str]:
    """Data files of a partition."""
    return [one.path for one in committer.files(TABLE, part(source))]


def test_a_partition_comes_back_from_copies_under_new_names(committer: Committer) -> None:
    committer.append(TABLE, pa.concat_tables([rows(3, "aa", A), rows(1, "bb", A)]))
    committer.append(TABLE, rows(2, "aa", B, first=7))
    old, before = paths(committer), committer.scan(TABLE)
    committer.replace(TABLE, rows(9, "aa", B), [part()])
    commit = committer.restore(TABLE, part(), old)
    assert (commit.changed, commit.partitions[0].rows, commit.partitions[0].files) == (True, 5, 2)
    assert content_hash(committer.scan(TABLE)) == content_hash(before)
    assert commit.partitions[0].checksum == content_hash(committer.scan(TABLE, [part()]))
    assert not set(paths(committer)) & set(old)
    snapshot = committer.iceberg.load_table(TABLE).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["lakehouse.operation"] == "restore"
    assert len(committer.iceberg.load_table(TABLE).snapshots()) == 4
    again = committer.append(TABLE, rows(3, "aa", A))
    assert not again.changed, "a batch was not known any more after its files were restored"


def test_restoring_what_is_there_commits_nothing(committer: Committer, tmp_path: Path) -> None:
    committer.append(TABLE, rows(3, "aa", A))
    stored = set(tmp_path.rglob("*.parquet"))
    assert not committer.restore(TABLE, part(), paths(committer)).changed
    assert set(tmp_path.rglob("*.parquet")) == stored


def test_restoring_no_files_empties_the_partition(committer: Committer) -> None:
    committer.append(TABLE, rows(3, "aa", A))
    assert committer.restore(TABLE, part(), []).partitions[0].rows == 0
    assert committer.scan(TABLE).num_rows == 0


def test_a_partition_with_a_long_source_name_comes_back(committer: Committer) -> None:
    name = "a_source_with_a_name_longer_than_sixteen_characters"
    committer.append(TABLE, rows(3, name, A))
    old = paths(committer, name)
    committer.replace(TABLE, rows(0), [part(name)])
    assert committer.restore(TABLE, part(name), old).partitions[0].rows == 3
    assert committer.scan(TABLE, [part(name)]).num_rows == 3


def test_files_of_an_older_schema_come_back(tmp_path: Path) -> None:
    old_committer = open_committer(tmp_path)
    old_committer.append(TABLE, rows(3, "aa", A))
    old = paths(old_committer)
    wider = schema(2, {**TYPES, "added": "string"})
    committer = open_committer(tmp_path, schema(), wider)
    committer.replace(TABLE, to_arrow([row(0, added="x", schema_version=1)], wider), [part()])
    committer.restore(TABLE, part(), old)
    found = committer.scan(TABLE)
    assert found.column("added").to_pylist() == [None] * 3
    assert content_hash(found) == content_hash(rows(3, "aa", A))


def test_files_that_do_not_belong_are_refused(committer: Committer, tmp_path: Path) -> None:
    committer.append(TABLE, pa.concat_tables([rows(3, "aa", A), rows(3, "bb", A)]))
    before = committer.scan(TABLE)
    with pytest.raises(DataError, match=r"holds rows of source \['bb'\]"):
        committer.restore(TABLE, part(), paths(committer, "bb"))
    with pytest.raises(DataError, match="does not lie below"):
        committer.restore(TABLE, part(), [f"file://{tmp_path}/elsewhere.parquet"])
    with pytest.raises(DataError, match="named twice"):
        committer.restore(TABLE, part(), paths(committer) * 2)
    other_day = to_arrow([row(0, dt=DAY + dt.timedelta(days=1))], schema())
    committer.append(TABLE, other_day)
    assert committer.scan(TABLE).num_rows == before.num_rows + 1


def test_a_file_that_is_gone_is_named_with_another_way(committer: Committer) -> None:
    committer.append(TABLE, rows(3, "aa", A))
    (old,) = paths(committer)
    committer.replace(TABLE, rows(1, "aa", B), [part()])
    Path(old.removeprefix("file://")).unlink()
    with pytest.raises(UnknownNameError, match=r"is gone; it was removed by upkeep.*anew from its raw data"):
        committer.restore(TABLE, part(), [old])
    assert committer.scan(TABLE).num_rows == 1
