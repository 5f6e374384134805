from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

from lakehouse.fetch.lists import Link, ListPage
from lakehouse.fetch.paging import MAX_PAGES, next_page
from lakehouse.ledger.tasks import HeldTask, NewTask
from lakehouse.model.fetch import FetchKind
from lakehouse.specs.source import SourceSpec

DAY = date(2026, 3, 1)
FIRST = NewTask("news", DAY, "column", "06:00", FetchKind.LIST, "http://news.test/1", "f" * 32)
MakeSource = Callable[..., SourceSpec]


def page(*names: str, next_url: str | None = None) -> ListPage:
    return ListPage(tuple(Link(f"http://a/{name}", name * 32, {}) for name in names), next_url)


def walk(make_source: MakeSource, pages: list[ListPage], paging: dict[str, Any], url: str) -> list[str]:
    """URLs of the pages that are asked for when the site gives `pages` one after another, the last for ever."""
    source = make_source(
        tasks=[{"name": "column", "url": url, "cron": "0 0 * * *", "list": {"links": "a"}, "paging": paging}]
    )
    task, asked = HeldTask("t0", 0, FIRST), []
    for number in range(MAX_PAGES + 10):
        following = next_page(source, source.tasks[0], task, pages[min(number, len(pages) - 1)])
        if following is None:
            break
        assert following.parent_task_id == task.task_id
        asked.append(following.url)
        task = HeldTask(f"t{number + 1}", 0, following)
    return asked


def test_numbered_pages_end_after_two_empty_ones(make_source: MakeSource) -> None:
    url = "http://news.test/{page}"
    assert walk(make_source, [page("a"), page("b"), page()], {}, url) == [f"http://news.test/{n}" for n in (2, 3, 4)]
    assert walk(make_source, [page("a"), page(), page("b"), page()], {}, url)[-1] == "http://news.test/5"


def test_a_site_that_gives_its_last_page_for_ever_is_left(make_source: MakeSource) -> None:
    url = "http://news.test/{page}"
    assert len(walk(make_source, [page("a"), page("b"), page("c")], {}, url)) == 3


def test_pages_that_come_round_again_are_left(make_source: MakeSource) -> None:
    cycle = [page("a"), page("b")] * 10
    assert len(walk(make_source, cycle, {}, "http://news.test/{page}")) == 2


def test_a_site_without_end_is_left_at_last(make_source: MakeSource) -> None:
    endless = [page(f"{number:032x}") for number in range(MAX_PAGES + 10)]
    assert len(walk(make_source, endless, {}, "http://news.test/{page}")) == MAX_PAGES - 1
    assert len(walk(make_source, endless, {"max_pages": 4}, "http://news.test/{page}")) == 3


def test_next_links_are_followed_while_there_are_any(make_source: MakeSource) -> None:
    pages = [page("a", next_url="http://news.test/p2"), page("b", next_url="http://news.test/p3"), page("c")]
    assert walk(make_source, pages, {"next": "a.next"}, "http://news.test/") == [
        "http://news.test/p2",
        "http://news.test/p3",
    ]


def test_without_paging_one_page_is_all(make_source: MakeSource) -> None:
    source = make_source()
    held = HeldTask("t", 0, replace(FIRST, url="http://news.test/{page}"))
    assert next_page(source, source.tasks[0], held, page("a", next_url="http://news.test/2")) is None
