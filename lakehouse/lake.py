"""One lake: the settings with every client they lead to, each opened on first use.

Belongs here: which client a profile uses and with whose credentials. Not here: any work done with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from lakehouse.clock import Clock
from lakehouse.errors import SettingError
from lakehouse.logs import blank_secrets
from lakehouse.settings import (
    SNAPSHOT_BUCKET,
    WAREHOUSE_BUCKET,
    Profile,
    Settings,
)

if TYPE_CHECKING:
    from pathlib import Path

    from minio import Minio
    from pydantic import SecretStr

    from lakehouse.ledger.ledger import Ledger
    from lakehouse.snapshots.objects import ObjectStore
    from lakehouse.snapshots.spool import Spool
    from lakehouse.specs.loader import Catalog
    from lakehouse.tables.committer import Committer
    from lakehouse.tables.decisions import Decisions
    from lakehouse.tables.iceberg import LakehouseCatalog
    from lakehouse.tables.locks import TableLocks


@dataclass(eq=False)
class Lake:
    """Settings, clock and the clients of one process; a client opens when it is first asked for.

    `run_id` names this run in table snapshots and logs; `worker_id` names this process among collectors;
    `shapes_in_trino` are tables and versions whose views this process has looked after.
    Raises UnavailableError where a server does not answer.
    """

    settings: Settings
    clock: Clock
    run_id: str
    shapes_in_trino: set[tuple[str, str]] = field(default_factory=set)

    @cached_property
    def worker_id(self) -> str:
        """This process among collectors."""
        from lakehouse.ledger.workers import new_worker_id

        return new_worker_id()

    @cached_property
    def catalog(self) -> Catalog:
        """The declared data of `catalog/`; raises CatalogError with all of its problems."""
        from lakehouse.parse import judge_template
        from lakehouse.specs.loader import load_catalog

        return load_catalog(self.settings.catalog_dir, judge=judge_template)

    @cached_property
    def iceberg(self) -> LakehouseCatalog:
        """The Iceberg SQL catalog with its file access."""
        from lakehouse.tables.iceberg import open_iceberg

        properties = iceberg_properties(self.settings)
        return open_iceberg(properties.pop("uri"), properties.pop("warehouse"), properties)

    @cached_property
    def committer(self) -> Committer:
        """The only writer of tables."""
        from lakehouse.tables.committer import Committer
        from lakehouse.tables.registrations import record_versions

        return Committer(self.iceberg, self.catalog, self._locks(), self.run_id, partial(record_versions, self.clock))

    @cached_property
    def decisions(self) -> Decisions:
        """What people and the system decided (`meta.decisions`)."""
        from lakehouse.tables.decisions import Decisions

        return Decisions(self.committer, self.clock)

    @cached_property
    def ledger(self) -> Ledger:
        """Work in progress and the index of partitions; migrated to the newest layout when opened."""
        from lakehouse.ledger.ledger import Ledger

        return Ledger.open(ledger_url(self.settings), self.clock)

    @cached_property
    def store(self) -> ObjectStore:
        """Where page bodies and batches lie, with the collector's rights: put and read, never delete."""
        from lakehouse.snapshots.stores import DirectoryStore, MinioStore

        if self.settings.profile is Profile.LOCAL:
            return DirectoryStore(self.settings.home / "objects")
        return MinioStore(_minio_client(self.settings), SNAPSHOT_BUCKET)

    @cached_property
    def spool(self) -> Spool:
        """What this host fetched and has not uploaded yet."""
        from lakehouse.snapshots.spool import Spool

        return Spool(self.settings.home / "spool")

    @property
    def reader_properties(self) -> Mapping[str, str]:
        """`s3.*` properties with the reader's credentials; empty where the tables are local files."""
        return s3_properties(self.settings, self.settings.reader_access_key, self.settings.reader_secret_key)

    def close(self) -> None:
        """Give back database connections; a closed lake opens them again when used."""
        for name in ("ledger", "iceberg"):
            if name in self.__dict__:
                self.__dict__[name].engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _locks(self) -> TableLocks:
        from lakehouse.tables.locks import FileLocks, PostgresLocks

        if self.settings.profile is Profile.LOCAL:
            return FileLocks(self.settings.home / "locks")
        return PostgresLocks(self.ledger.engine)


def open_lake(settings: Settings, run_id: str | None = None) -> Lake:
    """A lake for the settings; nothing is opened yet but, in the local profile, its home folder."""
    from lakehouse.model.ids import new_task_id

    clock = settings.clock
    if settings.profile is Profile.LOCAL:
        _make_home(settings.home)
    return Lake(settings, clock, run_id or new_task_id(clock.now_utc()))


def ledger_url(settings: Settings) -> str:
    """The ledger's SQLAlchemy URL; holds the password in the server profile."""
    if settings.profile is Profile.LOCAL:
        return f"sqlite:///{settings.home.resolve() / 'ledger.db'}"
    return _secret(settings.database_url, "LAKEHOUSE_DATABASE_URL")


def iceberg_properties(settings: Settings) -> dict[str, str]:
    """Properties for PyIceberg's `SqlCatalog`, with the pipeline's credentials."""
    if settings.profile is Profile.LOCAL:
        home = settings.home.resolve()
        return {
            "uri": f"sqlite:///{home / 'iceberg.db'}",
            "warehouse": f"file://{home / 'warehouse'}",
        }
    return {
        "uri": _secret(settings.iceberg_url, "LAKEHOUSE_ICEBERG_URL"),
        "pool_pre_ping": "true",
        "warehouse": settings.warehouse or f"s3://{WAREHOUSE_BUCKET}/warehouse",
        **s3_properties(settings, settings.pipeline_access_key, settings.pipeline_secret_key),
    }


def s3_properties(settings: Settings, access_key: str | None, secret_key: SecretStr | None) -> dict[str, str]:
    """PyIceberg's names for one user's way to the S3 server; empty in the local profile."""
    if settings.profile is Profile.LOCAL:
        return {}
    return {
        "s3.endpoint": settings.s3_endpoint or "",
        "s3.region": settings.s3_region,
        "s3.access-key-id": access_key or "",
        "s3.secret-access-key": _secret(secret_key, "the secret key"),
        "s3.force-virtual-addressing": "false",
        "s3.connect-timeout": "10",
        "s3.request-timeout": "60",
    }


def _minio_client(settings: Settings) -> Minio:
    import urllib3
    from minio import Minio

    endpoint = urlsplit(settings.s3_endpoint or "")
    if endpoint.scheme not in {"http", "https"} or not endpoint.netloc:
        raise SettingError(f"LAKEHOUSE_S3_ENDPOINT is {settings.s3_endpoint!r}; write http://host:port")
    pool = urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=10, read=60),
        maxsize=16,
        retries=urllib3.Retry(total=3, backoff_factor=0.2, status_forcelist=[500, 502, 503, 504]),
    )
    return Minio(
        endpoint=endpoint.netloc,
        access_key=settings.collector_access_key,
        secret_key=_secret(settings.collector_secret_key, "LAKEHOUSE_COLLECTOR_SECRET_KEY"),
        secure=endpoint.scheme == "https",
        region=settings.s3_region,
        http_client=pool,
    )


def _secret(value: SecretStr | None, name: str) -> str:
    if value is None:
        raise SettingError(f"{name} is not set; run `make up`, which saves it, or set it yourself")
    return value.get_secret_value()


def _make_home(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            f"LAKEHOUSE_HOME: folder {home} cannot be made ({error.strerror}); name a folder that you may write to"
        ) from error


def _first_line(error: Exception) -> str:
    return blank_secrets(str(error).splitlines()[0]) if str(error) else type(error).__name__
