"""Fetches, a spool and a store of their own for each test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from lakehouse.model.fetch import Fetch, FetchKind
from lakehouse.snapshots.spool import Spool
from lakehouse.snapshots.stores import DirectoryStore

MakeFetch = Callable[..., Fetch]


@pytest.fixture
def make_fetch() -> MakeFetch:
    def make(number: int, body: bytes = b"<html>", **changes: Any) -> Fetch:
        first = Fetch(
            fetch_id=f"{number:032x}",
            source="news",
            dt=date(2026, 3, 1),
            task_id=f"{number + 1000:032x}",
            worker_id="host:1:1:aa",
            kind=FetchKind.DETAIL,
            fetcher="http",
            request_url=f"http://a/{number}",
            url=f"http://a/{number}",
            url_fp=hashlib.sha256(str(number).encode()).hexdigest()[:32],
            attempt=1,
            collect_time=datetime(2026, 3, 1, 4, number % 60, tzinfo=UTC),
            redirects=("http://a/old",),
            media_type="text/html",
            charset="gb18030",
            content_sha256=hashlib.sha256(body).hexdigest(),
        )
        return replace(first, **changes)

    return make


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "objects")
