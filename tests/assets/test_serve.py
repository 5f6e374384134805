"""`lakehouse serve` ends what it started, however it was started itself."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assets.serve import end_all

ROOT = Path(__file__).parents[2]
# As Dagster's own processes do: heed SIGTERM the way SIGINT is heeded. Two of them write to one pipe, each in one go.
CHILD = """
from dagster._utils.interrupts import setup_interrupt_handlers
import os, time
setup_interrupt_handlers()
os.write(1, f"up {os.getpid()}\\n".encode())
time.sleep(600)
"""
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", os.getpid(), flush=True)
time.sleep(600)
"""
SERVE = """
import signal, sys
from assets import serve
signal.signal(signal.SIGINT, signal.Handlers(int(sys.argv[1])))
sys.exit(serve.run_until_signal([[sys.executable, "-c", child] for child in sys.argv[2:]]))
"""


@pytest.mark.parametrize("interrupt", [signal.SIG_IGN, signal.SIG_DFL], ids=["in the background", "at a terminal"])
def test_stopping_serve_stops_its_children(interrupt: signal.Handlers) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(int(interrupt)), CHILD, CHILD],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout is not None
        try:
            children = [int(serving.stdout.readline().split()[1]) for _ in range(2)]
        finally:
            serving.terminate()
        assert serving.wait(timeout=50) == 0
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def test_a_child_that_will_not_end_is_made_to() -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        end_all([child], patience_s=0.2)
        assert child.returncode == -signal.SIGKILL
