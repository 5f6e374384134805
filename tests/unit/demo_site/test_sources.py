"""The demo sources: their declared list rules find exactly the pages of the answer key."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import parsel
import pytest

from infra.demo_site import Site, answers
from lakehouse.specs.loader import Catalog, load_catalog
from lakehouse.specs.source import SourceSpec, TaskSpec

TODAY = date(2026, 3, 9)
SOURCES = ("demo_daily", "demo_gazette", "demo_nasty", "demo_news", "demo_world")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog(Path("catalog"))


def links_of(site: Site, task: TaskSpec) -> list[str]:
    """Paths with query that a task's list gives, over all its pages, as its rules say."""
    assert task.list is not None
    found: list[str] = []
    url: str | None = task.url.replace("{dt}", str(TODAY))
    while url is not None:
        reply = site.reply(urlsplit(url).path)
        assert reply.status == 200, url
        page = parsel.Selector(reply.body.decode("gbk" if "gbk" in reply.media_type else "utf-8"))
        for anchor in page.css(task.list.links or "a"):
            link = urljoin(url, anchor.attrib.get("href", ""))
            if re.search(task.list.url_pattern or "", link):
                parts = urlsplit(link)
                found.append(parts.path + (f"?{parts.query}" if parts.query else ""))
        onward = page.css(task.paging.next).attrib.get("href") if task.paging and task.paging.next else None
        url = urljoin(url, onward) if onward else None
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_the_list_rules_find_the_pages_of_the_answer_key(catalog: Catalog, name: str) -> None:
    source = catalog.source(name)
    found = links_of(Site(today=lambda: TODAY), source.tasks[0])
    expected = [path for path, answer in answers(days=[TODAY], today=TODAY).items() if answer.source == name]
    assert found == expected


def test_the_recheck_pulls_the_first_news_page_again(catalog: Catalog) -> None:
    recheck = catalog.source("demo_news").tasks[1]
    assert recheck.take_known
    twice = [path for path, answer in answers().items() if answer.source == "demo_news" and len(answer.outcomes) == 2]
    assert links_of(Site(today=lambda: TODAY), recheck) == twice


def test_each_demo_source_reaches_only_this_machine_and_hurries(catalog: Catalog) -> None:
    demo: list[SourceSpec] = [source for name, source in catalog.sources.items() if name.startswith("demo_")]
    assert len(demo) == 6
    assert len({source.entry_url for source in demo}) == 6
    for source in demo:
        assert source.allow_private, source.source
        assert source.limits.interval <= 0.05, source.source
        assert all(task.url.startswith("http://127.0.0.1:8765/") for task in source.tasks), source.source
