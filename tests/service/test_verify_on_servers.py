"""All engines on the real servers read the same, and say so when they do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.launcher import Servers
from lakehouse.cli.verify import open_engines
from lakehouse.errors import UnavailableError, UnknownNameError
from lakehouse.query import connect, verify
from lakehouse.query.engines import TrinoEngine
from lakehouse.query.trino import TrinoAccess, read_rows
from lakehouse.settings import Settings
from tests.service.kinds_lake import KindsLake, open_kinds_lake, partition, trino_access

ROOT = Path(__file__).parents[2]


def test_three_engines_agree_on_every_column_type(server_settings: Settings, tmp_path: Path) -> None:
    with open_kinds_lake(server_settings, tmp_path) as kinds:
        kinds.committer.table(kinds.name)
        empty = verify(kinds.lake.iceberg, open_engines(kinds.lake), tables=[kinds.name]).tables[0]
        assert [(r.engine, r.rows, r.hash) for r in empty.readings] == [
            (name, 0, "0" * 32) for name in ("pyiceberg", "duckdb", "trino")
        ]
        for number in range(3):
            kinds.replace(number, [f"n{number}-{index}" for index in range(400)])
        report = verify(kinds.lake.iceberg, open_engines(kinds.lake), tables=[kinds.name])
        assert report.differences == ()
        assert [reading.rows for reading in report.tables[0].readings] == [1200] * 3


def test_the_command_prints_one_document_and_ends_well(
    server_settings: Settings, servers: Servers, tmp_path: Path
) -> None:
    with open_kinds_lake(server_settings, tmp_path) as kinds:
        kinds.replace(0, ["a", "b", "c"])
        env = {**os.environ, **servers.env, "LAKEHOUSE_PROFILE": "server", "LAKEHOUSE_HOME": str(servers.home)}
        done = subprocess.run(
            [str(Path(sys.executable).parent / "lakehouse"), "verify", "--json", "--table", kinds.name],
            env=env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["equal"] is True
    assert report["engines"] == ["pyiceberg", "duckdb", "trino"]
    assert [table["engines"]["trino"]["rows"] for table in report["tables"]] == [3]


def test_duckdb_reads_with_the_readers_rights(server_settings: Settings, tmp_path: Path) -> None:
    with open_kinds_lake(server_settings, tmp_path) as kinds:
        kinds.replace(0, ["a", "b"])
        with connect(kinds.lake) as db:
            found = db.execute(f"select name, place.city, headers['z'] from {kinds.name} order by name").fetchall()
            secrets = str(db.execute("from duckdb_secrets()").fetchall())
        assert found == [("a", None, "1"), ("b", "上海", "1")]
        reader = kinds.lake.settings.reader_secret_key
        assert reader is not None
        assert reader.get_secret_value() not in secrets
        with pytest.raises(UnavailableError, match="403 Forbidden"):
            _read_with(kinds, {"s3.access-key-id": "reader", "s3.secret-access-key": "wrong"})


def _read_with(kinds: KindsLake, wrong: dict[str, str]) -> None:
    with connect(kinds.lake.iceberg, {**kinds.lake.reader_properties, **wrong}) as db:
        db.execute(f"select name from {kinds.name}").fetchall()


def test_trino_reads_any_snapshot_while_writers_go_on(server_settings: Settings, tmp_path: Path) -> None:
    with open_kinds_lake(server_settings, tmp_path) as kinds:
        kinds.replace(0, ["old"])
        first = kinds.table().metadata.current_snapshot_id
        kinds.replace(0, ["new"])
        access = trino_access(kinds)
        old = list(read_rows(access, f"SELECT name FROM {kinds.name} FOR VERSION AS OF {first}"))
        assert old == [[["old"]]]
        assert list(read_rows(access, f"SELECT name FROM {kinds.name}")) == [[["new"]]]
        assert kinds.committer.files(kinds.name, partition(0))


def test_trino_that_is_down_and_tables_that_are_not_there(
    server_settings: Settings, servers: Servers, tmp_path: Path
) -> None:
    with open_kinds_lake(server_settings, tmp_path) as kinds:
        kinds.replace(0, ["a"])
        with connect(kinds.lake) as db, pytest.raises(UnknownNameError, match=kinds.name):
            db.execute(f"select * from {kinds.name}s")
        nobody = TrinoEngine(TrinoAccess("127.0.0.1", 9))
        with pytest.raises(UnavailableError, match="does not answer"):
            verify(kinds.lake.iceberg, [nobody], tables=[kinds.name])


def test_engines_agree_right_after_the_database_came_back(
    server_settings: Settings, servers: Servers, tmp_path: Path
) -> None:
    with open_kinds_lake(server_settings, tmp_path) as kinds:
        kinds.replace(0, ["a", "b"])
        engines = open_engines(kinds.lake)
        assert verify(kinds.lake.iceberg, engines, tables=[kinds.name]).differences == ()
        servers.stop_one("postgres")
        try:
            with pytest.raises(UnavailableError, match="Iceberg catalog"):
                verify(kinds.lake.iceberg, engines, tables=[kinds.name])
        finally:
            servers.start_one("postgres")
        report = verify(kinds.lake.iceberg, engines, tables=[kinds.name])
        assert [table.describe() for table in report.differences] == []
