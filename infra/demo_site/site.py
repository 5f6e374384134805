"""Which path gives which reply, and the one thing the site remembers: how often the edited story was read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from urllib.parse import urlsplit

from infra.demo_site.columns import (
    TOWN,
    daily_stories,
    edited_story,
    news_stories,
    notices,
    script_stories,
    world_stories,
)
from infra.demo_site.lists import (
    NEWS_PER_PAGE,
    WORLD_PER_PAGE,
    page_path,
    script_entries,
    show_index,
    show_letters,
    show_list,
    show_notice_list,
    show_odd_list,
    show_script_list,
)
from infra.demo_site.odd import MOVED, ODD_PAGES
from infra.demo_site.reply import Reply, html_reply, redirect
from infra.demo_site.skins import (
    lay_out,
    show_letter,
    show_news,
    show_note,
    show_notice,
    show_scripted_note,
    show_world,
)
from infra.demo_site.stories import Story

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
ROBOTS = "User-agent: *\nDisallow: /odd/private/\nAllow: /\n"


def town_today() -> date:
    """Today in the town's zone."""
    return datetime.now(TOWN).date()


class Site:
    """The whole site for one seed; `today` decides which letters have been written."""

    def __init__(self, seed: int = 1, today: Callable[[], date] = town_today) -> None:
        self.seed = seed
        self.today = today
        self._reads = 0
        self._lock = threading.Lock()
        self._edited_path = edited_story(seed)[0].path
        self._pages = self._make_pages()

    def reset(self) -> None:
        """Forget what was read: the edited story is new again."""
        with self._lock:
            self._reads = 0

    def paths(self) -> list[str]:
        """Paths of all fixed pages; the letters come on top, four and a list for every day."""
        return sorted({"/", *self._pages})

    def reply(self, target: str, *, counts: bool = True) -> Reply:
        """The reply to a path with query; `counts` False (a HEAD request) leaves the edited story as it is."""
        path = urlsplit(target).path
        if path == "/":
            return html_reply(show_index(self._counts()))
        if path == self._edited_path:
            return self._edited(counts)
        if path.startswith("/daily/"):
            return self._letter(path)
        return self._pages.get(path) or _not_found()

    def _edited(self, counts: bool) -> Reply:
        with self._lock:
            version = min(self._reads, 1)
            self._reads += counts
        return html_reply(show_news(edited_story(self.seed)[version], news_stories(self.seed)[20:23]))

    def _letter(self, path: str) -> Reply:
        if path == "/daily/":
            return redirect(f"/daily/{self.today()}/")
        day_text, _, name = path.removeprefix("/daily/").partition("/")
        try:
            day = date.fromisoformat(day_text)
        except ValueError:
            return _not_found()
        stories = daily_stories(self.seed, day, self.today())
        if stories and not name:
            return html_reply(show_letters(day, stories, self.today()))
        found = next((story for story in stories if story.path == path), None)
        return html_reply(show_letter(found)) if found else _not_found()

    def _counts(self) -> dict[str, int]:
        return {
            "news": len(news_stories(self.seed)),
            "js": len(script_stories(self.seed)),
            "gazette": len(notices(self.seed)),
            "world": len(world_stories(self.seed)),
            "odd": len(ODD_PAGES),
        }

    def _make_pages(self) -> dict[str, Reply]:
        return {
            "/robots.txt": Reply(ROBOTS.encode(), media_type="text/plain; charset=utf-8"),
            **_static_files(),
            **_paginated(
                "news", "云汀晚报", news_stories(self.seed), size=NEWS_PER_PAGE, next_word="下一页", show=show_news
            ),
            **_paginated(
                "world",
                "The Saltmere Ledger",
                world_stories(self.seed),
                size=WORLD_PER_PAGE,
                next_word="Older",
                show=show_world,
            ),
            **_workshop(script_stories(self.seed)),
            **_gazette(notices(self.seed)),
            "/odd/": html_reply(show_odd_list()),
            "/odd/moved/here.html": MOVED,
            **{page.path: page.make() for page in ODD_PAGES if "?" not in page.path},
        }


def _not_found() -> Reply:
    return html_reply(lay_out("404", "<h1>404</h1><p>这一页没有写。 Nobody wrote this page.</p>"), 404)


def _static_files() -> dict[str, Reply]:
    return {
        f"/static/{file.name}": Reply(file.read_bytes(), media_type=MEDIA_TYPES[file.suffix])
        for file in sorted(STATIC.iterdir())
        if file.suffix in MEDIA_TYPES
    }


def _paginated(
    column: str, name: str, stories: tuple[Story, ...], *, size: int, next_word: str, show: Callable[..., str]
) -> dict[str, Reply]:
    pages = {
        page_path(column, page): html_reply(show_list(column, name, stories, page, size, next_word=next_word))
        for page in range(1, (len(stories) - 1) // size + 2)
    }
    for number, story in enumerate(stories):
        others = [stories[(number + step) % len(stories)] for step in (3, 5, 7)]
        pages[story.path] = html_reply(show(story, others))
    return pages


def _workshop(stories: tuple[Story, ...]) -> dict[str, Reply]:
    pages = {
        "/js/": html_reply(show_script_list()),
        "/js/entries.json": Reply(script_entries(stories).encode(), media_type="application/json"),
    }
    for number, story in enumerate(stories):
        pages[story.path] = html_reply(show_scripted_note(story) if number % 2 else show_note(story))
    return pages


def _gazette(stories: tuple[Story, ...]) -> dict[str, Reply]:
    pages = {"/gazette/": Reply(show_notice_list(stories).encode("gbk"), media_type="text/html; charset=gbk")}
    for number, story in enumerate(stories):
        said, real = {3: ("gb2312", "gb18030"), 6: ("gb2312", "utf-8")}.get(number, ("gbk", "gbk"))
        header = "text/html; charset=gb2312" if number == 3 else "text/html"
        pages[story.path] = Reply(show_notice(story, said).encode(real), media_type=header)
    return pages
