"""The compose file against the published schema of compose files, which comes with a Go module (Apache-2.0)."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from infra import containers, programs

MODULE = "github.com/compose-spec/compose-go/v2@v2.9.0"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    env = {**os.environ, "GOPATH": str(programs.cache_folder() / "go"), "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        ["go", "mod", "download", "-json", MODULE], env=env, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads((Path(json.loads(done.stdout)["Dir"]) / "schema/compose-spec.json").read_text())
    return found


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(containers.COMPOSE_FILE.read_text())
    return found


def test_the_compose_file_fits_the_schema(schema: dict[str, Any], document: dict[str, Any]) -> None:
    check(document, schema)


def check(document: dict[str, Any], schema: dict[str, Any]) -> None:
    # The schema says draft 7 with an address that the library does not know.
    jsonschema.validate(document, schema, cls=jsonschema.Draft7Validator)


def test_the_schema_would_notice(schema: dict[str, Any], document: dict[str, Any]) -> None:
    spoilt = copy.deepcopy(document)
    spoilt["services"]["minio"]["healthcheck"]["retires"] = 3
    with pytest.raises(jsonschema.ValidationError, match="retires"):
        check(spoilt, schema)


def test_without_an_engine_processes_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = tmp_path / "docker"
    client.write_text('#!/bin/sh\n[ "$1" = compose ] && exit 0\necho "cannot connect to the daemon" >&2\nexit 1\n')
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not containers.engine_answers(), "a client alone is no engine"
    client.write_text("#!/bin/sh\nexit 0\n")
    assert containers.engine_answers()
    client.unlink()
    assert not containers.engine_answers()
