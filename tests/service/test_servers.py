"""What the servers let each user do, proven with the real credentials, and how Trino reads what PyIceberg wrote."""

from __future__ import annotations

import io
import stat
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any
from uuid import uuid4

import psutil
import psycopg
import pyarrow as pa
import pytest
import trino
from minio import Minio
from minio.commonconfig import ENABLED
from minio.credentials.providers import StaticProvider
from minio.error import MinioAdminException, S3Error
from minio.minioadmin import MinioAdmin
from minio.versioningconfig import SUSPENDED, VersioningConfig
from pyiceberg.catalog.sql import SqlCatalog

from infra.launcher import Servers
from infra.servers import minio as minio_server
from infra.servers import postgres
from lakehouse.lake import iceberg_properties
from lakehouse.settings import SNAPSHOT_BUCKET, WAREHOUSE_BUCKET, Settings, load_settings
from tests.s3_server import S3

KEYS = {
    "page": (SNAPSHOT_BUCKET, "snap/demo/2026/01/02/page.html.zst"),
    "batch": (SNAPSHOT_BUCKET, "batch/demo/2026/01/02/b.json.zst"),
    "elsewhere": (SNAPSHOT_BUCKET, "elsewhere/page"),
    "row file": (WAREHOUSE_BUCKET, "warehouse/clean/articles/data/a.parquet"),
    "pack": (WAREHOUSE_BUCKET, "warehouse/raw/snapshots/data/a.parquet"),
}
RIGHTS = {
    "collector": {"page": "put get", "batch": "put get"},
    "pipeline": {"page": "get", "batch": "get", "elsewhere": "get", "row file": "put get delete", "pack": "put get"},
    "reader": {"row file": "get", "pack": "get"},
    "upkeep": {"row file": "put get", "pack": "put get"},
}
CASES = [
    (user, what, action, action in RIGHTS[user].get(what, "").split())
    for user in RIGHTS
    for what in KEYS
    for action in ("put", "get", "delete")
]


def client(servers: Servers, user: str) -> Minio:
    return minio_server.client(servers.state.ports[S3], user, servers.s3_secret(user))


def refusal(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except S3Error as error:
        return str(error.code)
    return None


@pytest.mark.parametrize(("user", "what", "action", "allowed"), CASES)
def test_each_user_has_exactly_its_rights(servers: Servers, user: str, what: str, action: str, allowed: bool) -> None:
    bucket, key = KEYS[what]
    client(servers, minio_server.ROOT).put_object(bucket, key, io.BytesIO(b"x"), 1)
    store = client(servers, user)
    actions: dict[str, Callable[[], object]] = {
        "put": lambda: store.put_object(bucket, key, io.BytesIO(b"y"), 1),
        "get": lambda: store.get_object(bucket, key).release_conn(),
        "delete": lambda: store.remove_object(bucket, key),
    }
    assert refusal(actions[action]) == (None if allowed else "AccessDenied")


@pytest.mark.parametrize("user", sorted(RIGHTS))
def test_no_user_can_change_buckets_or_users(servers: Servers, user: str) -> None:
    store = client(servers, user)
    attempts: list[Callable[[], object]] = [
        lambda: store.make_bucket(f"made-by-{user}"),
        lambda: store.set_bucket_versioning(SNAPSHOT_BUCKET, VersioningConfig(SUSPENDED)),
        lambda: store.delete_bucket_lifecycle(SNAPSHOT_BUCKET),
        lambda: store.set_bucket_policy(SNAPSHOT_BUCKET, "{}"),
        lambda: store.remove_bucket(WAREHOUSE_BUCKET),
    ]
    assert [refusal(attempt) for attempt in attempts] == ["AccessDenied"] * len(attempts)
    if S3 != "minio":
        return
    admin = MinioAdmin(
        endpoint=f"127.0.0.1:{servers.state.ports['minio']}",
        credentials=StaticProvider(user, servers.s3_secret(user)),
        secure=False,
    )
    with pytest.raises(MinioAdminException, match="AccessDenied"):
        admin.user_list()


def test_a_replaced_page_stays_readable_and_the_collector_cannot_remove_its_version(servers: Servers) -> None:
    store, key = client(servers, "collector"), f"snap/demo/{uuid4().hex}"
    first = store.put_object(SNAPSHOT_BUCKET, key, io.BytesIO(b"first"), 5).version_id
    second = store.put_object(SNAPSHOT_BUCKET, key, io.BytesIO(b"later"), 5).version_id
    assert first != second
    root = client(servers, minio_server.ROOT)
    assert root.get_object(SNAPSHOT_BUCKET, key, version_id=first).read() == b"first"
    assert refusal(lambda: store.remove_object(SNAPSHOT_BUCKET, key, version_id=first)) == "AccessDenied"


def test_only_the_snapshot_bucket_keeps_versions_and_has_a_life_cycle(servers: Servers) -> None:
    root = client(servers, minio_server.ROOT)
    assert root.get_bucket_versioning(SNAPSHOT_BUCKET).status == ENABLED
    assert root.get_bucket_versioning(WAREHOUSE_BUCKET).status != ENABLED
    lifecycle = root.get_bucket_lifecycle(SNAPSHOT_BUCKET)
    assert lifecycle is not None
    kept = [rule.noncurrent_version_expiration for rule in lifecycle.rules]
    assert [rule.noncurrent_days for rule in kept if rule] == [365, 365]
    assert all(rule.expiration is None for rule in lifecycle.rules), "a current page must never expire"


def test_the_collector_lists_pages_and_batches_only(servers: Servers) -> None:
    store = client(servers, "collector")
    store.put_object(SNAPSHOT_BUCKET, "batch/listed/b", io.BytesIO(b"x"), 1)
    assert [o.object_name for o in store.list_objects(SNAPSHOT_BUCKET, "batch/listed/")] == ["batch/listed/b"]
    assert refusal(lambda: list(store.list_objects(SNAPSHOT_BUCKET))) == "AccessDenied"
    assert refusal(lambda: list(store.list_objects(WAREHOUSE_BUCKET))) == "AccessDenied"


@pytest.mark.parametrize("owner", postgres.OWNERS)
def test_a_database_opens_for_its_own_user_only(servers: Servers, owner: str) -> None:
    ports, secrets = servers.state.ports, servers.state.secrets
    url = postgres.owner_url(ports["postgres"], secrets, owner)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT current_user, current_database()").fetchone() == (owner, owner)
        assert connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() == (False,)
    for other in {*postgres.OWNERS} - {owner}:
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(f"{url.rpartition('/')[0]}/{other}")


def test_a_wrong_password_is_refused(servers: Servers) -> None:
    port = servers.state.ports["postgres"]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"postgresql://lakehouse:wrong@127.0.0.1:{port}/lakehouse")


def test_the_ledger_is_ready(servers: Servers) -> None:
    with psycopg.connect(postgres.owner_url(servers.state.ports["postgres"], servers.state.secrets, "lakehouse")) as db:
        names = {row[0] for row in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
    assert {"task", "batch", "partition_info", "domain_slot", "alembic_version"} <= names


def test_saved_addresses_are_private_and_hold_no_administrator(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = servers.home / "server.env"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((servers.home / "servers" / "state.json").stat().st_mode) == 0o600
    text = path.read_text()
    for name in ("postgres_admin", "minio_root", "s3_upkeep", "postgres_trino_upkeep"):
        assert servers.state.secrets[name] not in text
    monkeypatch.setenv("LAKEHOUSE_PROFILE", "server")
    monkeypatch.setenv("LAKEHOUSE_HOME", str(servers.home))
    monkeypatch.chdir(servers.home)
    assert load_settings() == servers.settings()


def test_nothing_listens_beyond_this_machine_and_no_secret_is_an_argument(servers: Servers) -> None:
    for name in servers.state.names:
        pid = servers.process(name).pid()
        assert pid is not None
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        heard = {c.laddr.ip for p in family for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN}
        assert heard
        addresses = {ip_address(ip.removeprefix("::ffff:")) for ip in heard}
        assert all(address.is_loopback for address in addresses), f"{name} listens on {heard}"
        words = " ".join(word for p in family for word in p.cmdline())
        assert not [key for key, secret in servers.state.secrets.items() if secret in words]


class Trino:
    """Statements as one of Trino's users on tables of one fresh namespace."""

    def __init__(self, servers: Servers, settings: Settings) -> None:
        self.port = servers.state.ports["trino"]
        self.namespace = f"t_{uuid4().hex[:10]}"
        self.iceberg = SqlCatalog("lakehouse", **iceberg_properties(settings))
        self.iceberg.create_namespace(self.namespace)
        schema = pa.schema([("a", pa.int64())])
        self.table = self.iceberg.create_table(f"{self.namespace}.rows", schema, properties={"gc.enabled": "false"})
        for first in (1, 4):
            self.table.append(pa.table({"a": [first, first + 1, first + 2]}))

    def ask(self, user: str, statement: str) -> Any:
        catalog = {"upkeep": "lakehouse_upkeep"}.get(user, "lakehouse")
        with trino.dbapi.connect(  # type: ignore[no-untyped-call]
            host="127.0.0.1", port=self.port, user=user, catalog=catalog, schema=self.namespace
        ) as connection:
            return connection.cursor().execute(statement).fetchall()

    def refused(self, user: str, statement: str) -> str:
        with pytest.raises(trino.exceptions.TrinoQueryError) as caught:
            self.ask(user, statement)
        return f"{caught.value.error_name}: {caught.value.message}"


@pytest.fixture(scope="module")
def tables(servers: Servers, server_settings: Settings) -> Iterator[Trino]:
    made = Trino(servers, server_settings)
    yield made
    made.iceberg.close()


CHANGES = [
    "INSERT INTO rows VALUES (9)",
    "DELETE FROM rows WHERE a = 1",
    "UPDATE rows SET a = 0",
    "TRUNCATE TABLE rows",
    "DROP TABLE rows",
    "ALTER TABLE rows ADD COLUMN b bigint",
    "ALTER TABLE rows RENAME TO other",
    "CREATE TABLE other (a bigint)",
    "CREATE SCHEMA other",
]


def test_trino_reads_what_pyiceberg_wrote(tables: Trino) -> None:
    assert tables.ask("reader", "SELECT count(*), sum(a) FROM rows") == [[6, 21]]


@pytest.mark.parametrize("user", ["reader", "upkeep"])
@pytest.mark.parametrize("statement", CHANGES)
def test_no_trino_user_changes_rows_or_tables(tables: Trino, user: str, statement: str) -> None:
    assert tables.refused(user, statement).startswith("PERMISSION_DENIED")
    assert tables.ask("reader", "SELECT count(*), sum(a) FROM rows") == [[6, 21]]


def test_the_reader_cannot_compact_roll_back_or_make_views(tables: Trino) -> None:
    before = tables.iceberg.load_table(f"{tables.namespace}.rows")
    oldest = before.metadata.snapshots[0].snapshot_id
    # Trino asks its rules nothing about table procedures: here the rights in MinIO and PostgreSQL are what stands.
    for statement in (
        "ALTER TABLE rows EXECUTE optimize",
        f"ALTER TABLE rows EXECUTE rollback_to_snapshot({oldest})",
        f"CALL system.rollback_to_snapshot('{tables.namespace}', 'rows', {oldest})",
        "CREATE VIEW rows_latest AS SELECT 1 AS a",
    ):
        assert tables.refused("reader", statement)
    assert tables.iceberg.load_table(f"{tables.namespace}.rows").metadata_location == before.metadata_location


def test_strangers_are_refused_and_the_reader_does_not_see_the_upkeep_catalog(tables: Trino) -> None:
    assert tables.refused("stranger", "SELECT 1").startswith("PERMISSION_DENIED")
    assert tables.refused("reader", f"SELECT * FROM lakehouse_upkeep.{tables.namespace}.rows").startswith(
        "PERMISSION_DENIED"
    )


def test_upkeep_compacts_but_expires_nothing(tables: Trino) -> None:
    name = f"{tables.namespace}.small"
    small = tables.iceberg.create_table(name, tables.table.schema(), properties={"gc.enabled": "false"})
    for number in range(3):
        small.append(pa.table({"a": [number]}))
    tables.ask("upkeep", "ALTER TABLE small EXECUTE optimize")
    after = tables.iceberg.load_table(name)
    assert len(after.inspect.files()) == 1
    assert sorted(after.scan().to_arrow()["a"].to_pylist()) == [0, 1, 2]
    assert "GC is disabled" in tables.refused(
        "upkeep", "ALTER TABLE small EXECUTE expire_snapshots(retention_threshold => '7d')"
    )
    assert len(tables.iceberg.load_table(name).metadata.snapshots) == 4


def test_upkeep_makes_views_that_the_reader_reads(tables: Trino) -> None:
    tables.ask("upkeep", "CREATE OR REPLACE VIEW rows_latest AS SELECT a + 1 AS b FROM rows")
    assert tables.ask("reader", "SELECT sum(b) FROM rows_latest") == [[27]]
    assert tables.refused("reader", "DROP VIEW rows_latest").startswith("PERMISSION_DENIED")
    tables.ask("upkeep", "DROP VIEW rows_latest")
    assert tables.ask("reader", "SHOW TABLES LIKE 'rows_latest'") == []


def test_upkeep_cannot_pass_a_table_off_as_a_view(tables: Trino) -> None:
    assert "row-level security" in tables.refused("upkeep", "CREATE TABLE false_latest (a bigint)")


@pytest.mark.parametrize("role", postgres.TRINO_ROLES)
def test_trino_roles_cannot_register_or_drop_tables(servers: Servers, tables: Trino, role: str) -> None:
    port, password = servers.state.ports["postgres"], servers.state.secrets[f"postgres_{role}"]
    with psycopg.connect(f"postgresql://{role}:{password}@127.0.0.1:{port}/iceberg", autocommit=True) as db:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("INSERT INTO iceberg_tables VALUES ('lakehouse', 'x', 'x', 's3://x', NULL, 'TABLE')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("CREATE TABLE mine (a int)")
        here = [tables.namespace]
        if role == "trino_upkeep":
            assert db.execute("DELETE FROM iceberg_tables WHERE table_namespace = %s", here).rowcount == 0
        else:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute("DELETE FROM iceberg_tables WHERE table_namespace = %s", here)
