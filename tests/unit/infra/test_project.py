"""The project's own files: pinned requirements, make targets and hooks agree with each other."""

import re
import subprocess
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE))


def test_every_requirement_is_pinned_with_hashes() -> None:
    for name in ("runtime.txt", "dev.txt"):
        text = (ROOT / "requirements" / name).read_text()
        entries = re.split(r"\n(?=[a-z0-9-]+(?:\[[^]]*\])?==)", text)[1:]
        assert len(entries) > 50
        assert not [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry]


def test_development_adds_to_the_runtime_and_changes_nothing() -> None:
    runtime, dev = pins("runtime.txt"), pins("dev.txt")
    assert runtime.items() <= dev.items()


def test_the_build_backend_is_installed_by_setup() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert build == [f"hatchling=={pins('dev.txt')['hatchling']}"]


def test_no_file_of_requirements_names_an_index() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links", path.read_text())


def test_make_knows_the_promised_targets_and_needs_no_uv() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", text, re.MULTILINE))
    assert {"setup", "demo", "ui", "test", "check", "bench", "up", "down", "status"} <= targets
    assert not re.search(r"^\t@?uv ", text, re.MULTILINE)


def test_make_describes_itself() -> None:
    done = subprocess.run(["make", "-s", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True)
    assert "setup\t" in done.stdout
    assert "status\t" in done.stdout


def test_hooks_are_local() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]
