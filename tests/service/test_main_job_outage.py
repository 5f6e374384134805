"""PostgreSQL or MinIO down at start and in the middle: a clear error, no mix, and running again finishes the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from infra.demo_site import run_site
from infra.demo_site.catalog import copy_catalog
from infra.launcher import Servers
from lakehouse.errors import UnavailableError
from lakehouse.lake import Lake, open_lake
from lakehouse.materialize.books import audit_books
from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.raw import materialize_raw
from lakehouse.model.partition import PartitionState, SourceDay
from lakehouse.settings import Settings
from tests.s3_server import S3
from tests.service.proxy import Proxy, cut_off

ROOT = Path(__file__).parents[2]
DAYS = (SourceDay("demo_daily", date(2025, 3, 1)), SourceDay("demo_daily", date(2025, 3, 2)))
LAYERS = (materialize_raw, materialize_clean, materialize_feature)


@dataclass(frozen=True)
class Outpost:
    """Settings of an empty lake whose servers are reached through proxies."""

    settings: Settings
    postgres: Proxy
    minio: Proxy

    def proxy(self, name: str) -> Proxy:
        """One of the two by name."""
        return self.postgres if name == "postgres" else self.minio


@pytest.fixture
def outpost(servers: Servers, pg_database: str, fresh_warehouse: str, tmp_path: Path) -> Iterator[Outpost]:
    """A lake of its own behind two proxies, beside a running demo site."""
    database = urlsplit(pg_database)
    endpoint = urlsplit(servers.env["LAKEHOUSE_S3_ENDPOINT"])
    assert database.port is not None
    assert endpoint.port is not None
    with run_site() as site, Proxy(database.port) as postgres, Proxy(endpoint.port) as minio:
        url = pg_database.replace(f":{database.port}/", f":{postgres.port}/")
        settings = servers.settings(
            catalog_dir=copy_catalog(ROOT / "catalog", tmp_path / "catalog", site.server_port),
            home=tmp_path / "home",
            database_url=url,
            iceberg_url=url,
            s3_endpoint=f"http://127.0.0.1:{minio.port}",
            warehouse=fresh_warehouse,
        )
        yield Outpost(settings, postgres, minio)


def run_layers(lake: Lake, say: Callable[[str], object] | None = None) -> None:
    """The main job; raises what the layers raise."""
    for materialize in LAYERS:
        for result in materialize(lake, DAYS, say):
            assert result.error is None


def assert_finished(settings: Settings) -> None:
    """Running again, in a process that starts anew, finishes the work and then has nothing left to do."""
    with open_lake(settings) as lake:
        run_layers(lake)
        assert {result.state for result in materialize_clean(lake, DAYS)} == {PartitionState.COMPLETE}
        audit = audit_books(lake, DAYS)
        assert audit.balanced
        assert [(day.fetches, day.rows) for day in audit.days] == [(5, 4), (5, 4)]
        assert lake.committer.scan("raw.tasks").num_rows == 10


@pytest.mark.parametrize("name", ["postgres", S3])
def test_a_server_that_is_down_at_start_is_named_and_nothing_is_lost(outpost: Outpost, name: str) -> None:
    with cut_off(outpost.proxy(name)), open_lake(outpost.settings) as lake:
        with pytest.raises(UnavailableError) as caught:
            run_layers(lake)
        message = str(caught.value)
        assert "run again" in message or "make status" in message
        for secret in ("collector_secret_key", "pipeline_secret_key"):
            assert getattr(outpost.settings, secret).get_secret_value() not in message
        assert outpost.settings.database_url is not None
        assert str(urlsplit(outpost.settings.database_url.get_secret_value()).password) not in message
    assert_finished(outpost.settings)


@pytest.mark.parametrize("name", ["postgres", S3])
@pytest.mark.parametrize(
    "moment",
    [
        "demo_daily|2025-03-02: collecting",
        "committing 2 batches",
        "demo_daily|2025-03-02: parsing",
        "committing articles",
        "computing features",
    ],
)
def test_a_server_that_goes_down_in_the_middle_leaves_the_old_or_the_new_state(
    outpost: Outpost, name: str, moment: str
) -> None:
    cut = []

    def cut_at_the_moment(text: str) -> None:
        if text.startswith(moment):
            cut.append(text)
            outpost.proxy(name).cut()

    with open_lake(outpost.settings) as lake, pytest.raises(UnavailableError):
        run_layers(lake, cut_at_the_moment)
    assert cut
    outpost.proxy(name).mend()
    with open_lake(outpost.settings) as lake:
        rows = lake.committer.scan("clean.articles").num_rows
        outcomes = lake.committer.scan("clean.outcomes").num_rows
        assert (rows, outcomes) in {(0, 0), (0, 10), (8, 10)}
    assert_finished(outpost.settings)
