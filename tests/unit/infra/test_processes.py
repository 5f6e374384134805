import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.processes import Launch, ServerProcess, process_identity
from lakehouse.errors import UnavailableError

PATIENT = "import time\nprint('hello', flush=True)\ntime.sleep(60)"
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)"
)


def launch(code: str) -> Launch:
    return Launch([sys.executable, "-c", code], {"WORD": "given"}, Path("/"))


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess("Sleeper", tmp_path / "sleeper")
    yield made
    made.stop(patience=0)


def wait_for_word(process: ServerProcess, word: str) -> None:
    process.wait_until(lambda: word in process.log_tail(), seconds=30)


def test_a_started_process_is_known_until_it_is_stopped(process: ServerProcess) -> None:
    pid = process.start(launch(PATIENT))
    wait_for_word(process, "hello")
    assert process.pid() == pid
    assert not process.died()
    assert process.stop()
    assert process.pid() is None
    assert not process.died()
    assert process_identity(pid) is None
    assert not process.stop()


def test_another_run_of_the_launcher_knows_it_too(process: ServerProcess) -> None:
    pid = process.start(launch(PATIENT))
    code = (
        "import sys; from pathlib import Path; from infra.processes import ServerProcess;"
        "print(ServerProcess('Sleeper', Path(sys.argv[1])).pid())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(process.folder)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert int(done.stdout) == pid


def test_a_killed_process_has_died(process: ServerProcess) -> None:
    process.start(launch(PATIENT))
    process.kill()
    assert process.died()
    assert process.pid() is None


def test_one_that_ignores_the_signal_is_ended_by_force(process: ServerProcess) -> None:
    pid = process.start(launch(STUBBORN))
    wait_for_word(process, "deaf")
    assert process.stop(by=signal.SIGTERM, patience=0.2)
    assert process_identity(pid) is None


def test_one_that_ends_while_starting_shows_its_log(process: ServerProcess) -> None:
    process.start(launch("print('no such option: --colour'); raise SystemExit(3)"))
    with pytest.raises(UnavailableError, match=r"(?s)Sleeper ended while it was starting.*no such option: --colour"):
        process.wait_until(lambda: False, seconds=60)
    assert not process.died()


def test_one_that_never_gets_ready_is_named(process: ServerProcess) -> None:
    process.start(launch(PATIENT))
    with pytest.raises(UnavailableError, match="Sleeper was not ready within 0 s"):
        process.wait_until(lambda: False, seconds=0)


def test_a_server_sees_no_settings_or_secrets_of_whoever_starts_it(
    process: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "stranger")
    process.start(launch("import os; print(sorted(os.environ)); print(os.environ['WORD'], 'done')"))
    with pytest.raises(UnavailableError):
        process.wait_until(lambda: False, seconds=60)
    tail = process.log_tail()
    assert "given done" in tail
    assert "SOME_TOKEN" not in tail


def test_a_restart_keeps_the_log_before_it(process: ServerProcess) -> None:
    for word in ("first", "second"):
        process.start(launch(f"print('{word} run', flush=True); import time; time.sleep(60)"))
        wait_for_word(process, word)
        process.stop()
    assert process.log.read_text() == "second run\n"
    assert (process.folder / "server.log.old").read_text() == "first run\n"


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1, "identity": null}', '{"pid": 1, "identity": "other"}'])
def test_a_pid_file_that_names_no_process_of_ours_ends_nobody(process: ServerProcess, text: str) -> None:
    process.folder.mkdir()
    process.pid_file.write_text(text)
    assert process.pid() is None
    assert process.died()
    assert not process.stop()
    assert not process.pid_file.exists()


def test_identity_tells_a_process_from_others() -> None:
    assert process_identity(os.getpid()) == process_identity(os.getpid()) is not None
    # The parent may have started within the same tick; the first process of the machine has not.
    assert process_identity(os.getpid()) != process_identity(1)
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert process_identity(gone.pid) is None
