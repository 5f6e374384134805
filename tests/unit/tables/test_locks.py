from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lakehouse.errors import ConflictError
from lakehouse.tables.locks import FileLocks, lock_key

HOLD = """
import sys, time
from pathlib import Path
from lakehouse.tables.locks import FileLocks
with FileLocks(Path(sys.argv[1])).hold("raw.fetches"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_lock_that_is_kept_too_long_is_reported_with_what_to_do(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(ConflictError, match=r"cannot lock table raw\.fetches.*raw\.fetches\.lock open"),
            FileLocks(tmp_path, timeout=0.05).hold("raw.fetches"),
        ):
            pass
        with FileLocks(tmp_path, timeout=0.05).hold("raw.entries"):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with FileLocks(tmp_path, timeout=20).hold("raw.fetches"):
        pass


def test_a_thread_may_hold_a_table_again_and_others_wait(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path, timeout=0.05)
    failures: list[str] = []

    def try_to_hold() -> None:
        try:
            with locks.hold("raw.fetches"):
                failures.append("a second thread held the table as well")
        except ConflictError:
            pass

    with locks.hold("raw.fetches"):
        with locks.hold("raw.fetches"):
            pass
        other = threading.Thread(target=try_to_hold)
        other.start()
        other.join()
    assert failures == []
    with FileLocks(tmp_path, timeout=0.05).hold("raw.fetches"):
        pass


def test_advisory_keys_are_fixed_and_differ() -> None:
    assert lock_key("raw.fetches") == lock_key("raw.fetches") != lock_key("raw.entries")
    assert -(2**63) <= lock_key("raw.fetches") < 2**63
