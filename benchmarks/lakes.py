"""A lake on servers of its own for one benchmark, and small frames to put into it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from infra import launcher
from infra.launcher import Servers
from lakehouse.clock import Clock
from lakehouse.lake import Lake, open_lake
from lakehouse.logs import configure_logs
from lakehouse.query.trino import TrinoAccess
from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.normalize import to_arrow

ROOT = Path(__file__).parent.parent
TABLE = "raw.entries"


@contextmanager
def server_lake(*, trino: bool) -> Iterator[tuple[Servers, Lake]]:
    """An empty lake on PostgreSQL and MinIO, with Trino where asked, all stopped at the end."""
    configure_logs(Clock.in_zone("UTC"), level="WARNING")
    with tempfile.TemporaryDirectory(prefix="lakehouse-bench-") as text:
        home = Path(text)
        servers = launcher.start(home, trino=trino)
        try:
            with open_lake(servers.settings(catalog_dir=ROOT / "catalog")) as lake:
                yield servers, lake
        finally:
            servers.stop()


def upkeep_access(servers: Servers) -> TrinoAccess:
    """Trino as its upkeep user, who may optimize."""
    settings = servers.settings(catalog_dir=ROOT / "catalog")
    return TrinoAccess(settings.trino_host or "", settings.trino_port or 0, "upkeep", "lakehouse_upkeep")


def entries(spec: SchemaSpec, source: str, dt: date, batch: str, positions: Sequence[int]) -> pa.Table:
    """Rows of `raw.entries` in one batch, spread over the hours of the day."""
    start = datetime(dt.year, dt.month, dt.day, tzinfo=UTC)
    rows = [
        {
            "source": source,
            "dt": dt,
            "schema_version": 1,
            "batch_id": batch,
            "task_id": f"{number % 24:032x}",
            "list_url_fp": "0" * 32,
            "page_no": 1,
            "position": number,
            "url": f"https://{source}.example.com/{dt:%Y/%m/%d}/{batch}/{number}.html",
            "url_fp": f"{hash((batch, number)) & (1 << 128) - 1:032x}",
            "entry": {"title": f"第{number}条新闻，编号 {batch}", "date": f"{dt}"},
            "collect_time": start + timedelta(seconds=hash((batch, number)) % 86_400),
        }
        for number in positions
    ]
    return to_arrow(rows, spec)
