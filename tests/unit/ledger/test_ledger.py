from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from lakehouse.clock import Clock
from lakehouse.errors import ConfigError, UnavailableError
from lakehouse.ledger.ledger import Ledger
from lakehouse.ledger.tables import domain_slot, metadata

CLOCK = Clock.in_zone("Asia/Shanghai")
OPEN = "import sys; from lakehouse.ledger.ledger import Ledger; from lakehouse.clock import Clock; "
OPEN += "Ledger.open(sys.argv[1], Clock.in_zone('Asia/Shanghai')).close()"


def test_migrations_make_exactly_the_declared_tables(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() is not None


def test_opening_twice_keeps_what_is_there(tmp_path: Path, ledger: Ledger) -> None:
    now = ledger.clock.now_utc()
    with ledger.write() as connection:
        connection.execute(sa.insert(domain_slot).values(domain="example.com", next_at=now))
    again = Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", ledger.clock)
    with again.read() as connection:
        assert connection.execute(sa.select(domain_slot)).one() == ("example.com", now)
    again.close()


def test_processes_may_open_a_new_ledger_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    runs = [subprocess.Popen([sys.executable, "-c", OPEN, url], stderr=subprocess.PIPE, text=True) for _ in range(4)]
    results = [(run.communicate()[1], run.returncode) for run in runs]
    assert results == [("", 0)] * 4


def test_a_failed_write_leaves_nothing(ledger: Ledger) -> None:
    with contextlib.suppress(RuntimeError), ledger.write() as connection:
        connection.execute(sa.insert(domain_slot).values(domain="a", next_at=ledger.clock.now_utc()))
        raise RuntimeError
    with ledger.read() as connection:
        assert connection.execute(sa.select(domain_slot)).all() == []


def test_naive_instants_are_refused(ledger: Ledger) -> None:
    with pytest.raises(sa.exc.StatementError, match="aware"), ledger.write() as connection:
        connection.execute(sa.insert(domain_slot).values(domain="a", next_at=datetime(2026, 1, 1)))  # noqa: DTZ001


def test_sqlite_is_in_wal_mode(tmp_path: Path, ledger: Ledger) -> None:
    with sqlite3.connect(tmp_path / "ledger.db") as plain:
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    plain.close()


def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(UnavailableError) as caught:
        Ledger.open("postgresql+psycopg://keeper:hunter2@127.0.0.1:1/lakehouse", CLOCK)
    assert "127.0.0.1:1" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "keeper" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("url", ["mysql://a:secret@h/x", "sqlite://", "sqlite:///:memory:", "nonsense secret"])
def test_urls_that_cannot_work_are_configuration_errors(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Ledger.open(url, CLOCK)
    assert "secret" not in str(caught.value)


def test_a_ledger_of_a_newer_version_is_not_touched(tmp_path: Path, ledger: Ledger) -> None:
    with ledger.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigError, match="9999"):
        Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", CLOCK)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(ConfigError, match=r"ledger\.db is no SQLite database"):
        Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", CLOCK)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UnavailableError, match="file"):
        Ledger.open(f"sqlite:///{tmp_path / 'file' / 'ledger.db'}", CLOCK)
