"""The columns of the site: which stories stand where, and when they were published.

Dates are fixed, except in the morning letters: those are addressed by date and written the evening before.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from infra.demo_site.stories import Story, read_material, write_notice, write_story

TOWN = ZoneInfo("Asia/Shanghai")
PORT_TOWN = ZoneInfo("Europe/London")
NEWS_PAPER = "云汀晚报"
LETTERS = "清晨信箱"
LEDGER = "The Saltmere Ledger"
LETTER_TAGS = ("天气札记", "街角", "书页", "食事")
FIRST_LETTER_DAY = date(2020, 1, 1)
EDITED = 2
ENDLESS = 47


@cache
def news_stories(seed: int) -> tuple[Story, ...]:
    """48 news stories, newest first; the oldest has an endless title."""
    stories = []
    for number in range(48):
        rng = random.Random(f"news/{seed}/{number}")
        story = write_story("news_zh", f"{seed}/{number}", topic=number, title=number // 12, origin=NEWS_PAPER)
        moment = _moment(date(2025, 9, 26) - timedelta(days=4 * number), rng, TOWN)
        if number == ENDLESS:
            story = replace(story, title=read_material("odd")["long_title"])
        stories.append(story.at(f"/news/{moment:%Y/%m/%d}/{1180 - number}.html", moment))
    return tuple(stories)


def edited_story(seed: int) -> tuple[Story, Story]:
    """The story that is edited between two fetches: as it was first, and as it is later."""
    first = news_stories(seed)[EDITED]
    correction = "更正：本文早先的版本把开工的日子写早了一天，感谢在桥头递字条的读者指出，文中数字已重新核对。"
    return first, replace(first, title=f"{first.title}（更新）", paragraphs=(*first.paragraphs, correction))


def daily_stories(seed: int, day: date, today: date) -> tuple[Story, ...]:
    """The morning letters of a day, four a day; none for a day that has not come or lies before the first one."""
    if not FIRST_LETTER_DAY <= day <= today:
        return ()
    stories = []
    for number, tag in enumerate(LETTER_TAGS, start=1):
        rng = random.Random(f"daily/{seed}/{day}/{number}")
        story = write_story("prose_zh", f"{seed}/{day}/{number}", topic=tag, origin=LETTERS)
        stories.append(story.at(f"/daily/{day}/{number}.html", _moment(day - timedelta(days=1), rng, TOWN)))
    return tuple(stories)


@cache
def script_stories(seed: int) -> tuple[Story, ...]:
    """Ten notes of the workshop; their list, and every other note, exists only after scripts have run."""
    stories = []
    for number in range(10):
        rng = random.Random(f"js/{seed}/{number}")
        story = write_story("prose_zh", f"{seed}/js/{number}", topic="小发明", title=number, origin=None)
        moment = _moment(date(2025, 8, 30) - timedelta(days=9 * number), rng, TOWN)
        stories.append(story.at(f"/js/note/{number + 1}.html", moment))
    return tuple(stories)


@cache
def notices(seed: int) -> tuple[Story, ...]:
    """14 notices in GBK; number 3 needs gb18030 though it says gb2312, number 6 says gb2312 and is UTF-8."""
    stories = []
    for number in range(14):
        rng = random.Random(f"gazette/{seed}/{number}")
        story = write_notice(f"{seed}/{number}", number)
        if number == 3:
            story = replace(story, paragraphs=(*story.paragraphs, "本公告另由㙍溪办事点的镕喆工作室代为张贴。"))
        moment = _moment(date(2025, 7, 18) - timedelta(days=6 * number), rng, TOWN)
        stories.append(story.at(f"/gazette/t{moment:%Y%m%d}_{412 - number}.htm", moment))
    return tuple(stories)


@cache
def world_stories(seed: int) -> tuple[Story, ...]:
    """18 English stories, newest first."""
    stories = []
    for number in range(18):
        rng = random.Random(f"world/{seed}/{number}")
        story = write_story("world_en", f"{seed}/{number}", topic=number, title=number // 6, origin=LEDGER)
        moment = _moment(date(2025, 9, 12) - timedelta(days=5 * number), rng, PORT_TOWN)
        slug = "-".join("".join(c if c.isalnum() or c == " " else "" for c in story.title.lower()).split())
        stories.append(story.at(f"/world/{moment:%Y/%m}/{slug}", moment))
    return tuple(stories)


def _moment(day: date, rng: random.Random, zone: ZoneInfo) -> datetime:
    return datetime(day.year, day.month, day.day, rng.randint(7, 21), rng.randint(0, 59), tzinfo=zone)
