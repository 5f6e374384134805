"""List pages and the index: what a crawler finds its way by, and what people see first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, timedelta
from html import escape

from infra.demo_site.odd import ODD_PAGES
from infra.demo_site.skins import lay_out
from infra.demo_site.stories import Story

NEWS_PER_PAGE = 12
WORLD_PER_PAGE = 9


def page_path(column: str, page: int) -> str:
    """The path of a column's list page, counted from 1."""
    return f"/{column}/" if page == 1 else f"/{column}/index_{page}.html"


def show_list(column: str, name: str, stories: Sequence[Story], page: int, size: int, *, next_word: str) -> str:
    """Page `page` of a paginated column, with a link to the next one while there is one."""
    part = stories[(page - 1) * size : page * size]
    items = "".join(
        f'<li class="entry"><a class="entry" href="{story.path}">{escape(story.title)}</a>'
        f'<span class="date">{story.published:%Y-%m-%d}</span></li>\n'
        for story in part
    )
    back = f'<a class="prev" href="{page_path(column, page - 1)}">«</a> ' if page > 1 else ""
    onward = page * size < len(stories)
    next_link = f'<a class="next" href="{page_path(column, page + 1)}">{next_word}</a>' if onward else ""
    content = f'<h1>{name}</h1>\n<ul class="list">\n{items}</ul>\n<p class="pager">{back}{page} {next_link}</p>'
    return lay_out(name, content)


def show_letters(day: date, stories: Sequence[Story], today: date) -> str:
    """The letters of one day."""
    items = "".join(
        f'<li><a class="letter" href="{story.path}">{escape(story.title)}</a> <em>{escape(story.tag)}</em></li>\n'
        for story in stories
    )
    before, after = day - timedelta(days=1), day + timedelta(days=1)
    onward = f' · <a href="/daily/{after}/">后一天</a>' if day < today else ""
    content = (
        f'<h1>清晨信箱 · {day}</h1>\n<ol class="letters">\n{items}</ol>\n'
        f'<p class="pager"><a href="/daily/{before}/">前一天</a>{onward}</p>'
    )
    return lay_out(f"清晨信箱 {day}", content)


def show_script_list() -> str:
    """A list without entries: the script fetches them."""
    content = '<h1>云汀工坊</h1>\n<ul id="notes" class="list"></ul>\n<script src="/static/notes.js"></script>'
    return lay_out("云汀工坊", content)


def script_entries(stories: Sequence[Story]) -> str:
    """The entries that the script of the workshop's list fetches, as JSON."""
    return json.dumps(
        [{"path": s.path, "title": s.title, "date": f"{s.published:%Y-%m-%d}"} for s in stories], ensure_ascii=False
    )


def show_notice_list(stories: Sequence[Story]) -> str:
    """The notices in an old table; to be sent as GBK."""
    rows = "".join(
        f"<tr><td>·<a href={story.path} target=_blank>{escape(story.title)}</a></td>"
        f"<td>[{story.published:%m-%d}]</td></tr>\n"
        for story in stories
    )
    return (
        '<html><head><meta http-equiv="Content-Type" content="text/html; charset=gbk">'
        "<title>云汀市公告栏</title></head>\n"
        f"<body bgcolor=#f7f3e8><table width=760 align=center class=list>\n{rows}</table></body></html>\n"
    )


def show_odd_list() -> str:
    """The room of odd things, each with what a crawler should make of it."""
    rows = "".join(
        f'<tr><td><a class="page" href="{escape(page.path)}">{escape(page.path)}</a></td><td>{escape(page.what)}</td>'
        f"<td>{escape(page.outcome)}{escape(' · ' + page.reason if page.reason else '')}</td></tr>\n"
        for page in ODD_PAGES
    )
    content = (
        "<h1>奇物间 · The room of odd things</h1>\n"
        "<p>每一页都有一点毛病。 Every page here has something wrong with it, on purpose.</p>\n"
        '<table class="odd"><tr><th>page</th><th>what is odd</th><th>what should become of it</th></tr>\n'
        f"{rows}</table>\n"
        '<p><a href="mailto:nobody@example.com">写信</a> <a href="javascript:void(0)">点我没有用</a> '
        '<a href="http://elsewhere.invalid/odd/">别处</a></p>'
    )
    return lay_out("奇物间", content)


def show_index(counts: dict[str, int]) -> str:
    """The page for people."""
    cards = (
        ("/news/", "云汀晚报", f"{counts['news']} 篇新闻，分页的栏目；其中一篇会在两次抓取之间被改写。"),
        (
            "/daily/",
            "清晨信箱",
            "按日期寻址的短信札，每天四封；任何过去的一天都有自己的信，未来的一天是 404。",
        ),
        ("/js/", "云汀工坊", f"{counts['js']} 篇小发明，列表只在脚本运行之后才存在，一半的正文也是。"),
        ("/gazette/", "公告栏", f"{counts['gazette']} 则公告，GBK 编码；有两则对自己的编码说了谎。"),
        ("/world/", "The Saltmere Ledger", f"{counts['world']} English stories from a port that is on no map."),
        (
            "/odd/",
            "奇物间",
            f"{counts['odd']} pages that are broken, walled, empty, slow to trust or not pages at all.",
        ),
    )
    boxes = "".join(
        f'<a class="card" href="{path}"><h2>{escape(name)}</h2><p>{escape(text)}</p></a>\n'
        for path, name, text in cards
    )
    content = (
        '<section class="hero"><h1>云汀</h1><p>被三条河抱住的小城，专门留给爬虫散步。<br>'
        f"A small town between three rivers, made for crawlers to walk in.</p></section>\n"
        f'<section class="cards">\n{boxes}</section>'
    )
    return lay_out("云汀 · a town for crawlers", content)
