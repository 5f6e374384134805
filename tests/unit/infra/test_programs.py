import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from infra import programs
from lakehouse.errors import UnavailableError


def jdk(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").touch(mode=0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\n')
    return folder


def archive(path: Path, names: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in names.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize(("text", "version"), [("25.0.1", 25), ("24", 24), ("17.0.15", 17), ("1.8.0_402", 1)])
def test_the_version_of_a_jdk_is_read_from_its_release_file(tmp_path: Path, text: str, version: int) -> None:
    assert programs.java_version(jdk(tmp_path / "jdk", text)) == version


def test_java_home_wins_when_it_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "good", "24.0.2")))
    assert programs.java_home() == tmp_path / "good"
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "old", "17.0.2")))
    assert programs.java_home() != tmp_path / "old"


def test_a_download_with_another_hash_is_removed_and_named(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(b"right")
    bad.write_bytes(b"wrong")
    expected = hashlib.sha256(b"right").hexdigest()
    programs.check_hash(good, expected)
    with pytest.raises(UnavailableError, match=expected):
        programs.check_hash(bad, expected)
    assert good.exists()
    assert not bad.exists()


def test_unpacking_replaces_what_an_interrupted_run_left(tmp_path: Path) -> None:
    source = archive(tmp_path / "a.tar.gz", {"inner/bin/launcher": b"run"})
    (tmp_path / "target.new" / "half").mkdir(parents=True)
    programs.unpack(source, tmp_path / "target", inner="inner")
    assert (tmp_path / "target/bin/launcher").read_bytes() == b"run"
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar.gz", "target"}


def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    source = archive(tmp_path / "a.tar.gz", {"../../outside": b"x"})
    with pytest.raises(tarfile.OutsideDestinationError):
        programs.unpack(source, tmp_path / "deep" / "target", inner="inner")
    assert not (tmp_path / "outside").exists()


def test_a_missing_tool_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"go is not on PATH; install Go"):
        programs.need_tool("go", "install Go 1.24 or newer")


def test_a_failing_tool_shows_the_end_of_what_it_said() -> None:
    with pytest.raises(UnavailableError, match=r"(?s)could not build it.*ended with 3:.*cannot find module"):
        programs.run_tool(["sh", "-c", "echo cannot find module >&2; exit 3"], env={}, what="build it")


def test_only_root_installs_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(programs, "chromium_binary", lambda: None)
    with pytest.raises(UnavailableError, match="sudo apt-get install chromium"):
        programs.install_debian_packages(print, ["chromium"])


def test_the_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAKEHOUSE_CACHE", str(tmp_path / "cache"))
    assert programs.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("LAKEHOUSE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert programs.cache_folder() == tmp_path / ".cache" / "lakehouse"
