"""How a list goes on: the next page, and when there is none although the site says so. Pure."""

from __future__ import annotations

from lakehouse.fetch.due import fill_url
from lakehouse.fetch.lists import ListPage
from lakehouse.fetch.policy import blank_url
from lakehouse.ledger.tasks import HeldTask, NewTask
from lakehouse.model.fetch import FetchKind
from lakehouse.model.urls import url_fp
from lakehouse.specs.source import SourceSpec, TaskSpec

MAX_PAGES = 1000
MAX_EMPTY = 2


def next_page(source: SourceSpec, spec: TaskSpec, task: HeldTask, page: ListPage) -> NewTask | None:
    """The task for the page after `page`, or None.

    Ends after `max_pages`, after two pages in a row without entries, and at a page whose entries were all on one page
    before. A next link back to a page of this run ends by itself: the same URL in a run is the same task.
    """
    if spec.paging is None:
        return None
    ask = task.ask
    index = int(ask.memo.get("index", 1))
    seen = list(ask.memo.get("seen", ()))
    empty = 0 if page.links else int(ask.memo.get("empty", 0)) + 1
    if index >= (spec.paging.max_pages or MAX_PAGES) or empty >= MAX_EMPTY or (page.links and page.digest in seen):
        return None
    if spec.paging.next is not None:
        url = page.next_url
    else:
        url = fill_url(spec.url, ask.dt, ask.page_no + 1) if "{page}" in spec.url else None
    if url is None:
        return None
    return NewTask(
        source=ask.source,
        dt=ask.dt,
        name=ask.name,
        run_key=ask.run_key,
        kind=FetchKind.LIST,
        url=url,
        url_fp=url_fp(blank_url(url, source.secret_params)),
        parent_task_id=task.task_id,
        page_no=ask.page_no + 1,
        memo={"index": index + 1, "empty": empty, "seen": [*seen, page.digest] if page.links else seen},
        priority=ask.priority,
    )
