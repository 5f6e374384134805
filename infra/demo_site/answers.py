"""The answer key: what each page truly says, and what should become of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from infra.demo_site.columns import (
    EDITED,
    ENDLESS,
    daily_stories,
    edited_story,
    news_stories,
    notices,
    script_stories,
    world_stories,
)
from infra.demo_site.lists import NEWS_PER_PAGE
from infra.demo_site.odd import CLEAN, DUPLICATE, ODD_PAGES, REJECTED
from infra.demo_site.stories import Story

TEMPLATED = frozenset({"demo_news", "demo_daily", "demo_js"})


@dataclass(frozen=True, slots=True)
class Truth:
    """What a page says. `publish_time` is aware; where a page tells only its age, that is `age` instead.

    `body` has one paragraph a line. `origin` and `author` are None where the page names none.
    """

    title: str
    publish_time: datetime | None
    time_confidence: int
    age: timedelta | None
    author: str | None
    origin: str | None
    body: str
    language: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What should become of the fetches of one path in one whole run of its source's day.

    `outcomes` has one value a fetch, in order of fetching (a failed fetch may be tried more often); `truths` has the
    versions of the page, in the order in which they are shown. `exact`: a template reads the page, so every value
    must agree; without one the generic extraction is judged by title, time and body.
    """

    source: str
    path: str
    outcomes: tuple[str, ...]
    reason: str | None
    truths: tuple[Truth, ...]
    exact: bool


def answers(seed: int = 1, *, days: Iterable[date] = (), today: date | None = None) -> dict[str, Answer]:
    """Answers by path with query; `days` are the days of morning letters to include (`today`: the last day written)."""
    found = [*_news_answers(seed)]
    found += [_answer("demo_js", story) for story in script_stories(seed)]
    found += [_answer("demo_gazette", story) for story in notices(seed)]
    found += [_answer("demo_world", story) for story in world_stories(seed)]
    for day in days:
        found += [_answer("demo_daily", story) for story in daily_stories(seed, day, today or day)]
    for page in ODD_PAGES:
        truths = (truth_of(page.story, page.age),) if page.story is not None else ()
        found.append(Answer("demo_nasty", page.path, (page.outcome,), page.reason, truths, exact=False))
    return {answer.path: answer for answer in found}


def truth_of(story: Story, age: timedelta | None = None) -> Truth:
    """The truth that a story's page shows."""
    confidence = 1 if age is not None else 2 if story.published is not None else 0
    return Truth(
        title=story.title,
        publish_time=story.published,
        time_confidence=confidence,
        age=age,
        author=story.author,
        origin=story.origin,
        body=story.body,
        language=story.language,
    )


def _answer(source: str, story: Story) -> Answer:
    return Answer(source, story.path, (CLEAN,), None, (truth_of(story),), exact=source in TEMPLATED)


def _news_answers(seed: int) -> list[Answer]:
    """News on the first list page are fetched twice a day: by the column, and by the recheck."""
    found = []
    for number, story in enumerate(news_stories(seed)):
        answer = _answer("demo_news", story)
        if number == EDITED:
            versions = tuple(truth_of(version) for version in edited_story(seed))
            answer = replace(answer, outcomes=(CLEAN, CLEAN), truths=versions)
        elif number == ENDLESS:
            answer = replace(answer, outcomes=(REJECTED,), reason="title_too_long")
        elif number < NEWS_PER_PAGE:
            answer = replace(answer, outcomes=(CLEAN, DUPLICATE))
        found.append(answer)
    return found
