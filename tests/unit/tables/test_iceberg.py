from __future__ import annotations

import socket
import warnings
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from sqlalchemy import text

from lakehouse.errors import ConfigError, UnavailableError
from lakehouse.tables.filesystem import copy_file, read_text, write_text
from lakehouse.tables.iceberg import LakehouseCatalog, open_iceberg
from tests.unit.tables.kernel_lake import TABLE, open_committer, rows


def test_the_catalog_is_in_write_ahead_mode_and_waits_for_others(tmp_path: Path) -> None:
    iceberg = open_iceberg(f"sqlite:///{tmp_path}/new/iceberg.db", tmp_path / "warehouse")
    with iceberg.engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA busy_timeout")).scalar() == 120_000
    assert iceberg.name == "lakehouse"
    assert iceberg.properties["warehouse"] == f"file://{tmp_path}/warehouse"


def test_a_database_that_is_down_is_named_without_its_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"127.0.0.1:{port}/iceberg does not answer") as caught:
            open_iceberg(f"postgresql+psycopg://me:geheim@127.0.0.1:{port}/iceberg", "s3://bucket/warehouse")
    assert "geheim" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("url", ["mysql://me:geheim@host/x", "no url", ""])
def test_another_kind_of_database_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"sqlite:///.*postgresql") as caught:
        open_iceberg(url, "/tmp/warehouse")
    assert "geheim" not in str(caught.value)


def test_metadata_is_read_once_and_never_stale(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    committer.append(TABLE, rows(1, batch="a" * 32))
    other = open_committer(tmp_path)
    other.append(TABLE, rows(1, batch="b" * 32))
    found = committer.iceberg.load_table(TABLE)
    assert len(found.snapshots()) == 2
    assert found.metadata == committer.iceberg.load_table(TABLE).metadata
    assert found.metadata.model_dump_json() == other.iceberg.load_table(TABLE).metadata.model_dump_json()
    with pytest.raises(NoSuchTableError):
        committer.iceberg.load_table("feature.nothing")


def test_a_stale_table_cannot_commit(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    stale = committer.table(TABLE)
    committer.append(TABLE, rows(1))
    with pytest.raises(CommitFailedException), stale.transaction() as change:
        change.set_properties({"a": "b"})
    metadata = tmp_path / "warehouse" / "feature" / "things" / "metadata"
    assert len(list(metadata.glob("*.metadata.json"))) == 2


def test_a_table_can_still_be_created_in_a_transaction(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    made = committer.table(TABLE)
    with committer.iceberg.create_table_transaction("feature.other", made.schema()) as change:
        change.set_properties({"a": "b"})
    assert committer.iceberg.load_table("feature.other").properties["a"] == "b"


def test_all_locations_are_read_at_once(tmp_path: Path) -> None:
    committer = open_committer(tmp_path)
    made = {name: committer.table(name) for name in (TABLE, "raw.fetches")}
    assert isinstance(committer.iceberg, LakehouseCatalog)
    assert committer.iceberg.locations() == {name: table.metadata_location for name, table in made.items()}


def test_small_texts_are_written_whole_and_copies_make_their_folder(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        io = open_committer(tmp_path).table(TABLE).io
    place = f"file://{tmp_path}/CURRENT"
    assert read_text(io, place) is None
    write_text(io, place, "one")
    write_text(io, place, "zwei\n")
    assert read_text(io, place) == "zwei\n"
    copy_file(io, place, f"file://{tmp_path}/a/b/COPY")
    assert (tmp_path / "a" / "b" / "COPY").read_text() == "zwei\n"
    assert sorted(path.name for path in tmp_path.glob("CURRENT*")) == ["CURRENT"]
