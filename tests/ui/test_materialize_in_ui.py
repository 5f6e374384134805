"""A person opens the Dagster UI, materializes partitions by clicking, and reads what came of it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from lakehouse.lake import open_lake
from lakehouse.model.partition import Partition
from tests.ui.conftest import Ui

SOURCE = "demo_daily"
PATIENCE = 240_000


@pytest.fixture
def page(chromium: Browser, ui: Ui) -> Iterator[Page]:
    """A tab of a window large enough for the partition lists."""
    tab = chromium.new_page(viewport={"width": 1400, "height": 1000}, base_url=ui.address)
    tab.set_default_timeout(60_000)
    yield tab
    tab.close()


def choose_partitions(page: Page, asset: str, days: str) -> None:
    """Fill the launch dialog of an asset with days as Dagster writes them, and the source."""
    page.goto(f"/assets/{asset}?view=partitions")
    expect(page.get_by_text(SOURCE).first).to_be_visible(timeout=PATIENCE)
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_role("button", name="Confirm").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_placeholder("ex:").fill(days)
    dialog.get_by_placeholder("ex:").press("Enter")
    dialog.get_by_text("Select a partition or create one").click()
    page.locator("[class*=menu], [role=option], [role=menuitem]").get_by_text(SOURCE, exact=True).first.click()


def launch(page: Page, button: re.Pattern[str]) -> None:
    """Press the launch button and wait until the dialog has gone: the page may not be left before."""
    page.get_by_role("button", name=button).click()
    expect(page.get_by_role("dialog")).to_have_count(0, timeout=PATIENCE)


def rows_shown(page: Page, ui: Ui, asset: str, day: str, shot: str) -> int:
    """The row count that the UI shows for one partition, once it counts as materialized."""
    count = page.get_by_text("dagster/partition_row_count").first
    until = time.monotonic() + PATIENCE / 1000
    # The partition's page does not follow a run by itself.
    while not count.is_visible() and time.monotonic() < until:
        page.goto(f"/assets/{asset}?view=partitions&partition={day}%7C{SOURCE}")
        with contextlib.suppress(PlaywrightTimeout):
            count.wait_for(timeout=5_000)
    expect(count).to_be_visible()
    expect(page.get_by_text("Show schema").first).to_be_visible()
    page.screenshot(path=ui.shots / shot)
    found = re.search(r"dagster/partition_row_count\s+(\d+)", page.locator("body").inner_text())
    assert found, "the partition shows no row count"
    return int(found.group(1))


def rows_stored(ui: Ui, table: str, day: str) -> int:
    """The partition's rows by PyIceberg."""
    with open_lake(ui.settings) as lake:
        wanted = Partition(SOURCE, lake.clock.parse_day(day), 1)
        return int(lake.committer.scan(table, [wanted], ["source"]).num_rows)


def test_one_partition_materialized_by_clicking(page: Page, ui: Ui) -> None:
    """One partition of raw: launched in the dialog, succeeded, with its row count and a preview."""
    day = ui.settings.clock.today().isoformat()
    choose_partitions(page, "raw/fetches", day)
    page.screenshot(path=ui.shots / "1-choose-partition.png")
    launch(page, re.compile("Launch 1 run"))
    shown = rows_shown(page, ui, "raw/fetches", day, "2-partition-materialized.png")
    assert shown > 0
    assert shown == rows_stored(ui, "raw.fetches", day)
    page.goto("/runs")
    expect(page.get_by_text("Success").first).to_be_visible(timeout=PATIENCE)
    page.screenshot(path=ui.shots / "3-run-succeeded.png")


def test_three_days_backfilled_by_clicking(page: Page, ui: Ui) -> None:
    """Three past days in one backfill: each partition has its own row count."""
    today = ui.settings.clock.today()
    days = [(today - timedelta(days=n)).isoformat() for n in (3, 2, 1)]
    choose_partitions(page, "raw/fetches", f"[{days[0]}...{days[-1]}]")
    page.screenshot(path=ui.shots / "4-choose-backfill.png")
    launch(page, re.compile("Launch (backfill|1 run|3 runs)"))
    for number, day in enumerate(days):
        shown = rows_shown(page, ui, "raw/fetches", day, f"5-backfilled-{number + 1}.png")
        assert shown == rows_stored(ui, "raw.fetches", day) > 0
    page.goto("/runs")
    expect(page.get_by_text("Completed").or_(page.get_by_text("Success")).first).to_be_visible(timeout=PATIENCE)
    page.screenshot(path=ui.shots / "6-backfill-done.png")
