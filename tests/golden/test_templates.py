"""No template version without a golden page: a stored page, and what the parser must read from it.

`<template>/v<N>/<name>.html` is the page, `<name>.json` beside it has its `url`, the `collect_time` and every expected
value. Text is compared whole, paragraphs one a line.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lakehouse.model.record import Page
from lakehouse.parse import parse_page
from lakehouse.specs.loader import Catalog, load_catalog

GOLDEN = Path(__file__).parent
PAGES = sorted(GOLDEN.glob("*/v*/*.html"))


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog(GOLDEN.parent.parent / "catalog")


def test_every_template_version_has_a_golden_page(catalog: Catalog) -> None:
    covered = {f"{page.parts[-3]}@{page.parts[-2].removeprefix('v')}" for page in PAGES}
    assert set(catalog.templates) == covered


@pytest.mark.parametrize("page", PAGES, ids=[f"{page.parts[-3]}-{page.stem}" for page in PAGES])
def test_the_template_reads_what_the_page_says(catalog: Catalog, page: Path) -> None:
    golden: dict[str, Any] = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    template = catalog.template(f"{page.parts[-3]}@{page.parts[-2].removeprefix('v')}")
    asked = Page(
        body=page.read_bytes(),
        url=golden["url"],
        collect_time=datetime.fromisoformat(golden["collect_time"]),
        media_type="text/html",
    )
    parsed = parse_page(asked, template, zone=ZoneInfo("Asia/Shanghai"))
    assert parsed.problem is None, parsed.detail
    assert parsed.template == template.ref
    expected = golden["expected"]
    moment = parsed.values.get("publish_time")
    found = {name: parsed.values.get(name) for name in expected} | {
        "publish_time": moment.isoformat() if moment else None
    }
    assert found == expected
