"""Pages of the demo site that have no template, read by the generic extraction alone, against the answer key."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from infra.demo_site import Answer, Site, answers
from lakehouse.model.record import Page, Parsed
from lakehouse.parse import parse_page

NOW = datetime(2026, 3, 9, 12, 30, tzinfo=UTC)
ZONES = {"demo_world": "Europe/London"}
ANSWERS = {path: answer for path, answer in answers().items() if not answer.exact and "?" not in path}
READ = sorted(path for path, answer in ANSWERS.items() if answer.outcomes[0] in {"clean", "in_review"})


@pytest.fixture(scope="module")
def site() -> Site:
    return Site()


def read(site: Site, answer: Answer) -> Parsed:
    reply = site.reply("/odd/moved/here.html" if answer.path == "/odd/moved.html" else answer.path)
    page = Page(reply.body, f"http://127.0.0.1{answer.path}", NOW, media_type=reply.media_type)
    return parse_page(page, None, zone=ZoneInfo(ZONES.get(answer.source, "Asia/Shanghai")))


def squash(text: str | None) -> str:
    return "".join((text or "").split())


@pytest.mark.parametrize("path", READ)
def test_the_page_is_read_as_it_is(site: Site, path: str) -> None:
    truth = ANSWERS[path].truths[0]
    parsed = read(site, ANSWERS[path])
    assert parsed.problem is None, parsed.detail
    values = parsed.values
    assert (values["title"], values["author"]) == (truth.title, truth.author)
    assert values["time_confidence"] == truth.time_confidence
    assert values["publish_time"] == (NOW - truth.age if truth.age is not None else truth.publish_time)
    assert squash(values["body"]) == squash(truth.body)


@pytest.mark.parametrize(
    ("path", "problem"),
    [("/odd/empty.html", "empty_body"), ("/odd/report.html", "not_html"), ("/odd/untitled.html", None)],
)
def test_what_is_no_article_is_not_made_one(site: Site, path: str, problem: str | None) -> None:
    parsed = read(site, ANSWERS[path])
    assert parsed.problem == problem
    assert parsed.values.get("title") is None
