"""What cannot be right in a source, judged from the source alone and from its neighbours."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from lakehouse.errors import Problem
from lakehouse.model.urls import normal_form, url_host
from lakehouse.specs.base import near_names
from lakehouse.specs.documents import Document
from lakehouse.specs.source import Fetcher, SourceSpec, TaskSpec
from lakehouse.specs.urls import allows_host

Found = Iterator[tuple[tuple[str | int, ...], str, str]]
DATE_SAMPLES = {"dt": "2026-01-31", "yyyy": "2026", "mm": "01", "dd": "31"}
SAMPLES = {**DATE_SAMPLES, "page": "1"}
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def judge_source(source: SourceSpec) -> Found:
    """Problems as (YAML path, what is wrong, what would be right)."""
    bad_entry = list(_judge_url(source.entry_url, ("entry_url",)))
    yield from bad_entry or _judge_address(source, source.entry_url, ("entry_url",))
    for at, task in enumerate(source.tasks):
        place = ("tasks", at)
        bad_url = list(_judge_placeholders(source, task, (*place, "url")))
        bad_url = bad_url or list(_judge_url(filled(task.url), (*place, "url")))
        yield from bad_url
        if not bad_url:
            yield from _judge_host(source, task, (*place, "url"))
        yield from _judge_task(source, task, place)


def twin_entries(documents: Sequence[Document]) -> list[Problem]:
    """A problem for each source whose entry URL has the normal form of an earlier one's."""
    first: dict[str, str] = {}
    problems = []
    for document in documents:
        entry = document.data.get("entry_url")
        try:
            form = normal_form(entry) if isinstance(entry, str) else None
        except ValueError:
            continue
        if form is None:
            continue
        owner = first.setdefault(form, document.file)
        if owner != document.file:
            right = "one source for one place: make it a further task of that source, or give another entry"
            problems.append(document.problem(("entry_url",), f"names the same page as {owner}: {form[:120]}", right))
    return problems


def filled(url: str) -> str:
    """A task's URL with a sample in each placeholder."""
    return PLACEHOLDER.sub(lambda found: SAMPLES.get(found[1], "x"), url)


def _judge_placeholders(source: SourceSpec, task: TaskSpec, path: tuple[str | int, ...]) -> Found:
    names = PLACEHOLDER.findall(task.url)
    unknown = [name for name in names if name not in SAMPLES]
    for name in unknown:
        yield path, f"{{{name[:40]}}} is no placeholder", near_names(name, SAMPLES, "placeholders")
    if set("{}") & set(PLACEHOLDER.sub("", task.url)):
        yield (
            path,
            "has a brace that belongs to no placeholder",
            "write {page} or {dt}; a brace of the URL itself is %7B or %7D",
        )
    has_day = "dt" in names or {"yyyy", "mm", "dd"} <= set(names)
    if source.by_date and not has_day and not unknown:
        yield path, "holds no day, but the source is addressed by date", "use {dt}, or {yyyy}, {mm} and {dd}"
    if not source.by_date and set(names) & set(DATE_SAMPLES):
        yield path, "holds a day, but the source is not addressed by date", "add `by_date: true`"


def _judge_url(url: str, path: tuple[str | int, ...]) -> Found:
    try:
        normal_form(url)
    except ValueError as error:
        wrong, _, right = str(error).rpartition("; ")
        yield path, wrong or right, right if wrong else "write an absolute http or https URL"
        return
    if "@" in re.split(r"[/?#\\]", url.partition("://")[2], maxsplit=1)[0]:
        yield path, "holds a user name or password", "remove it: secrets do not belong into the catalog"


def _judge_address(source: SourceSpec, url: str, path: tuple[str | int, ...]) -> Found:
    if not source.allow_private and _is_private(url_host(url)):
        yield path, f"{url_host(url)} is an address of a private network", "add `allow_private: true` if that is meant"


def _judge_host(source: SourceSpec, task: TaskSpec, path: tuple[str | int, ...]) -> Found:
    host = url_host(filled(task.url))
    if allows_host(source, host):
        yield from _judge_address(source, filled(task.url), path)
    else:
        hosts = ", ".join(source.allowed_hosts)
        yield path, f"host {host!r} is not allowed, only {hosts}", f"add {host} to `allowed_hosts`"


def _judge_task(source: SourceSpec, task: TaskSpec, place: tuple[str | int, ...]) -> Found:
    if task.paging is not None and task.paging.next is None and "{page}" not in task.url:
        right = "give `next` (a CSS selector), or put {page} into the task's url"
        yield (*place, "paging"), "nothing says how the list goes on", right
    if task.list is not None and task.list.wait_for is not None and source.fetcher is not Fetcher.BROWSER:
        yield (*place, "list", "wait_for"), "only a browser waits for a selector", "add `fetcher: browser`"


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not ipaddress.ip_address(host.strip("[]")).is_global
    except ValueError:
        return False
