"""Containers and processes run with the same settings; policies say no more than they must."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import containers, programs
from infra.servers import minio, postgres, trino
from infra.state import PORT_NAMES, State, load_or_make_state
from lakehouse.settings import ICEBERG_CATALOG, SNAPSHOT_BUCKET, WAREHOUSE_BUCKET

INFRA = Path(containers.__file__).parent
PLACEHOLDER = re.compile(r"\$\{(\w+)(?::\?[^}]*)?\}")


@pytest.fixture
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(containers.COMPOSE_FILE.read_text())
    return document


@pytest.fixture
def state(tmp_path: Path) -> State:
    return load_or_make_state(tmp_path)


def properties(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_containers_are_the_launcher_s_servers(compose: dict[str, Any]) -> None:
    assert tuple(compose["services"]) == PORT_NAMES


def test_images_are_pinned_to_a_release(compose: dict[str, Any]) -> None:
    tags = {name: service["image"].partition(":")[2] for name, service in compose["services"].items()}
    assert re.fullmatch(r"15\.\d+-bookworm", tags["postgres"])
    assert re.fullmatch(r"RELEASE\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ", tags["minio"])
    assert tags["trino"] == programs.TRINO_VERSION


def test_every_container_has_a_health_check_and_comes_back(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert service["healthcheck"]["retries"] * 2 >= 60
        assert service["restart"] == "unless-stopped"
    needed = compose["services"]["trino"]["depends_on"]
    assert needed == {name: {"condition": "service_healthy"} for name in ("postgres", "minio")}


def test_ports_are_published_on_this_machine_only(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service["ports"]]
    assert len(published) == len(PORT_NAMES)
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_launcher_gives_every_value_that_compose_asks_for_and_no_other(state: State) -> None:
    asked = set(PLACEHOLDER.findall(containers.COMPOSE_FILE.read_text()))
    assert asked == set(containers.compose_variables(state))


def test_no_secret_has_a_default_in_the_compose_file() -> None:
    found = re.findall(r"\$\{\w+(.?.?)", containers.COMPOSE_FILE.read_text())
    assert found
    assert set(found) == {":?"}


def test_containers_get_the_settings_that_processes_get(compose: dict[str, Any], state: State) -> None:
    services = compose["services"]
    words = services["postgres"]["command"]
    for key in ("max_connections", "timezone"):
        assert f"{key}={postgres.SETTINGS[key]}" in words
    assert services["postgres"]["environment"]["POSTGRES_USER"] == postgres.ADMIN
    for word in (*postgres.INITDB_OPTIONS,):
        assert word in services["postgres"]["environment"]["POSTGRES_INITDB_ARGS"].split()
    of_process = minio.variables(state.secrets)
    of_container = services["minio"]["environment"]
    assert set(of_container) == set(of_process)
    assert {k: v for k, v in of_container.items() if k != "MINIO_ROOT_PASSWORD"} == {
        k: v for k, v in of_process.items() if k != "MINIO_ROOT_PASSWORD"
    }
    assert set(services["trino"]["environment"]) == set(trino.variables("", "", state.secrets))
    assert services["trino"]["volumes"] == ["./trino/etc:/etc/trino:ro"]
    assert (containers.COMPOSE_FILE.parent / "trino/etc").samefile(trino.ETC)


def test_the_files_of_trino_ask_only_for_variables_that_it_gets(state: State) -> None:
    asked = {
        name for path in trino.ETC.rglob("*.properties") for name in re.findall(r"\$\{ENV:(\w+)\}", path.read_text())
    }
    assert asked == set(trino.variables("", "", state.secrets))


@pytest.mark.parametrize(("name", "user"), [("lakehouse", "reader"), ("lakehouse_upkeep", "upkeep")])
def test_trino_s_catalogs_differ_in_credentials_only(name: str, user: str) -> None:
    found = properties(trino.ETC / "catalog" / f"{name}.properties")
    assert found["iceberg.jdbc-catalog.catalog-name"] == ICEBERG_CATALOG
    assert found["iceberg.jdbc-catalog.default-warehouse-dir"] == f"s3://{WAREHOUSE_BUCKET}/warehouse"
    assert found["s3.path-style-access"] == "true"
    assert found["s3.aws-access-key"] == user
    assert found["iceberg.jdbc-catalog.connection-user"] == f"trino_{user}"
    shared = {key for key, value in found.items() if user.upper() not in value and user not in value}
    other = properties(trino.ETC / "catalog" / "lakehouse.properties")
    assert {key: found[key] for key in shared} == {key: other[key] for key in shared}
    assert len(found) - len(shared) == 4


@pytest.mark.parametrize("user", minio.USERS)
def test_no_policy_has_a_wildcard_action_or_reaches_beyond_the_two_buckets(user: str) -> None:
    allowed = [item for item in statements(user) if item["Effect"] == "Allow"]
    actions = {action for item in allowed for action in item["Action"]}
    assert not [action for action in actions if "*" in action]
    buckets = {re.split(r"[:/]", resource)[5] for item in allowed for resource in item["Resource"]}
    assert buckets <= {WAREHOUSE_BUCKET, SNAPSHOT_BUCKET}
    assert "s3:DeleteObjectVersion" not in actions


def test_only_the_pipeline_may_delete() -> None:
    deleters = {
        user
        for user in minio.USERS
        for item in statements(user)
        if item["Effect"] == "Allow" and "s3:DeleteObject" in item["Action"]
    }
    assert deleters == {"pipeline"}


def statements(user: str) -> list[dict[str, Any]]:
    document = json.loads((INFRA / "minio" / f"{user}.json").read_text())
    found: list[dict[str, Any]] = document["Statement"]
    return found
