"""The room of odd things: pages that are broken, walled, empty, slow to trust, or no pages at all.

Each says what is odd about it and what should become of it; `answers` reads that, and so do people on the list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from infra.demo_site.columns import NEWS_PAPER, TOWN
from infra.demo_site.reply import Reply, gzip_reply, html_reply, redirect
from infra.demo_site.skins import lay_out, paragraphs_of, show_news
from infra.demo_site.stories import Story, read_material, write_story

MAX_BODY_BYTES = 200_000
CLEAN, REVIEW, REJECTED = "clean", "in_review", "rejected"
DUPLICATE, FAILED, LIMITED = "duplicate", "failed", "limited"


@dataclass(frozen=True, slots=True)
class OddPage:
    """One odd page. `story` is what it truly says, if it says anything; `age` is its age where it tells only that."""

    path: str
    what: str
    outcome: str
    reason: str | None
    make: Callable[[], Reply]
    story: Story | None = None
    age: timedelta | None = None


@cache
def odd_story(number: int) -> Story:
    """A story of the evening paper for an odd page."""
    story = write_story("news_zh", f"odd/{number}", topic=number, title=number, origin=NEWS_PAPER)
    return story.at("", datetime(2025, 5, 2 + number, 9, 10 + number, tzinfo=TOWN))


def _news(number: int) -> Callable[[], Reply]:
    return lambda: html_reply(show_news(odd_story(number)))


def _changed(number: int, **changes: object) -> Story:
    return replace(odd_story(number), **changes)  # type: ignore[arg-type]


def _broken() -> tuple[Story, Reply]:
    """Mis-nested, with unclosed tags, and cut off in the middle of the last paragraph."""
    story = odd_story(4)
    text = show_news(story).replace('</div>\n<div class="comments">', '<div class="comments">')
    text = text.replace("<p>", "<p><b><i>", 1).replace("</p>", "</b></i>", 1).replace("</h1>", "</h1></span></td>")
    last = story.paragraphs[-1]
    kept = last[: len(last) // 2]
    cut = text[: text.index(last)] + kept
    return replace(story, paragraphs=(*story.paragraphs[:-1], kept)), Reply(cut.encode("utf-8"))


def _show_without_time(story: Story, shown: str) -> Reply:
    marker = replace(story, published=datetime(2001, 1, 1, tzinfo=TOWN))
    return html_reply(show_news(marker).replace("2001-01-01 00:00", shown))


def _wall(name: str, form: str) -> Callable[[], Reply]:
    words = read_material("odd")["walls"][name]
    return lambda: html_reply(lay_out("云汀晚报", f'<div class="wall"><p>{words}</p>{form}</div>'))


def _shell() -> Reply:
    return Reply(
        b'<!DOCTYPE html><html><head><meta charset="utf-8"><title></title></head><body><div id="root"></div>'
        b'<script src="/static/nothing.js"></script><script>window.__START__={};</script></body></html>'
    )


def _huge() -> Reply:
    page = show_news(odd_story(8)).replace("</main>", f"<!-- {'云' * 300_000} --></main>")
    return Reply(page.encode("utf-8"))


def _short() -> Story:
    return _changed(10, paragraphs=(read_material("odd")["short"],))


def _big5() -> tuple[Story, Reply]:
    words = read_material("odd")["big5"]
    moment = datetime.strptime(str(words["time"])[:16], "%Y-%m-%d %H:%M").replace(tzinfo=TOWN)
    story = Story(
        "", "副刊", words["title"], tuple(words["paragraphs"]), moment, words["author"], words["origin"], "zh"
    )
    page = (
        f"<html><head><meta charset=big5><title>{story.title}</title></head><body><h1>{story.title}</h1>"
        f"<p class=meta>{moment:%Y-%m-%d %H:%M} 來源：{story.origin} 作者：{story.author}</p>"
        f"<div class=article>{''.join(f'<p>{text}</p>' for text in story.paragraphs)}</div></body></html>"
    )
    return story, Reply(page.encode("big5"), media_type="text/html")


def _untitled() -> Reply:
    return html_reply(lay_out("", f'<div class="article-body">{paragraphs_of(odd_story(12))}</div>'))


def _pdf() -> Reply:
    body = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
    return Reply(body, media_type="application/pdf")


def _hang_up() -> Reply:
    body = show_news(odd_story(5)).encode("utf-8")
    return Reply(body[:1500], promised=len(body))


def make_odd_pages() -> tuple[OddPage, ...]:
    """All odd pages, in the order of the list."""
    broken_story, broken_reply = _broken()
    big5_story, big5_reply = _big5()
    undated, hours = _changed(9, published=None), _changed(11, published=None)
    login_form = '<form><input name="account"><input type="password" name="password"><button>登录</button></form>'
    copy = "the same page behind tracking parameters"
    tracked = odd_story(0)
    return (
        OddPage("/odd/tracked.html", "an ordinary page", CLEAN, None, _news(0), tracked),
        OddPage("/odd/tracked.html?utm_source=weekly&utm_medium=mail", copy, DUPLICATE, None, _news(0), tracked),
        OddPage("/odd/tracked.html?spm=a2c4e.1115.7", copy, DUPLICATE, None, _news(0), tracked),
        OddPage(
            "/odd/moved.html",
            "moved, with a redirect",
            CLEAN,
            None,
            lambda: redirect("/odd/moved/here.html"),
            odd_story(1),
        ),
        OddPage("/odd/broken.html", "mis-nested and cut off", CLEAN, None, lambda: broken_reply, broken_story),
        OddPage("/odd/big5.html", "traditional characters in Big5", CLEAN, None, lambda: big5_reply, big5_story),
        OddPage(
            "/odd/hours-ago.html",
            "tells its time only as 3小时前",
            CLEAN,
            None,
            lambda: _show_without_time(hours, "3小时前"),
            hours,
            timedelta(hours=3),
        ),
        OddPage("/odd/undated.html", "tells no time", CLEAN, None, lambda: _show_without_time(undated, ""), undated),
        OddPage(
            "/odd/short.html", "too short", REVIEW, "body_too_short", lambda: html_reply(show_news(_short())), _short()
        ),
        OddPage("/odd/untitled.html", "has no title", REJECTED, "title_missing", _untitled),
        OddPage("/odd/empty.html", "no bytes at all", REJECTED, "empty_body", lambda: Reply(b"")),
        OddPage("/odd/report.html", "a PDF behind an .html address", REJECTED, "not_html", _pdf),
        OddPage("/odd/shell.html", "scripts only", LIMITED, "empty_shell", _shell),
        OddPage("/odd/members.html", "a login wall with status 200", LIMITED, "login_wall", _wall("login", login_form)),
        OddPage("/odd/busy.html", "says slow down with status 200", LIMITED, "rate_limited", _wall("busy", "")),
        OddPage(
            "/odd/puzzle.html",
            "wants a puzzle solved",
            LIMITED,
            "captcha",
            _wall("captcha", '<div class="captcha"></div>'),
        ),
        OddPage("/odd/huge.html", "larger than the source allows", FAILED, "too_large", _huge),
        OddPage(
            "/odd/bomb.html",
            "small on the wire, huge unpacked",
            FAILED,
            "too_large",
            lambda: gzip_reply(b" " * 4_000_000),
        ),
        OddPage(
            "/odd/loop.html", "a redirect to itself", FAILED, "too_many_redirects", lambda: redirect("/odd/loop.html")
        ),
        OddPage(
            "/odd/gone.html",
            "is not there",
            FAILED,
            "http_error",
            lambda: html_reply(lay_out("404", "<h1>404</h1>"), 404),
        ),
        OddPage(
            "/odd/crash.html", "makes the server stumble", FAILED, "http_error", lambda: html_reply("<h1>500</h1>", 500)
        ),
        OddPage("/odd/hang-up.html", "the line goes dead half-way", FAILED, "protocol_error", _hang_up),
        OddPage(
            "/odd/garbled.html",
            "says gzip and is not",
            FAILED,
            "bad_encoding",
            lambda: Reply(b"not gzip at all", headers=(("Content-Encoding", "gzip"),)),
        ),
        OddPage("/odd/private/minutes.html", "robots.txt says no", FAILED, "robots_disallowed", _news(7), odd_story(7)),
    )


ODD_PAGES = make_odd_pages()
MOVED = html_reply(show_news(odd_story(1)))
