"""How pages look: one skin a column, each with other markup, as on real sites.

Every skin surrounds the story with what a reader ignores and a parser must: navigation, promotions, related links,
an editor's credit, comments.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from html import escape

from infra.demo_site.stories import Story

NAVIGATION = (
    ("/", "首页"),
    ("/news/", "云汀晚报"),
    ("/daily/", "清晨信箱"),
    ("/js/", "云汀工坊"),
    ("/gazette/", "公告栏"),
    ("/world/", "Saltmere Ledger"),
    ("/odd/", "奇物间"),
)


def lay_out(title: str, content: str, *, language: str = "zh-CN", head: str = "", charset: str = "utf-8") -> str:
    """A whole page around `content`."""
    links = "".join(f'<a href="{path}">{escape(name)}</a>' for path, name in NAVIGATION)
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="{charset}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f'<link rel="stylesheet" href="/static/site.css">\n{head}</head>\n<body>\n'
        f'<header class="top"><a class="brand" href="/">云汀 · Yunting</a><nav>{links}</nav></header>\n'
        f"<main>\n{content}\n</main>\n"
        '<footer class="bottom"><p>云汀并不存在，这里的每一个字都是编的。'
        " Yunting does not exist; every word is invented.</p></footer>\n</body>\n</html>\n"
    )


def paragraphs_of(story: Story) -> str:
    """The story's paragraphs as `<p>` elements."""
    return "\n".join(f"<p>{escape(text)}</p>" for text in story.paragraphs)


def show_news(story: Story, related: Sequence[Story] = ()) -> str:
    """A story of the evening paper: headline, meta line, body with a promotion and an editor's credit inside."""
    parts = paragraphs_of(story).split("\n")
    promotion = '<div class="promo"><a href="/news/">点此订阅《云汀晚报》，每天傍晚送到桥头</a></div>'
    body = "\n".join([*parts[:2], promotion, *parts[2:]])
    links = "".join(f'<li><a href="{other.path}">{escape(other.title)}</a></li>' for other in related)
    content = (
        f'<div class="crumbs"><a href="/">首页</a> &gt; <a href="/news/">云汀晚报</a> &gt; {escape(story.tag)}</div>\n'
        f'<h1 class="headline">{escape(story.title)}</h1>\n'
        f'<div class="meta"><span class="time">{_minute(story.published)}</span> '
        f'<span class="source">来源：{escape(story.origin or "")}</span> '
        f'<span class="author">记者：{escape(story.author or "")}</span></div>\n'
        f'<div class="article-body">\n{body}\n<p class="editor">（责任编辑：石掌柜）</p>\n</div>\n'
        f'<aside class="related"><h3>相关阅读</h3><ul>{links}</ul></aside>\n'
        '<div class="comments"><h3>读者留言</h3><p>桥东老陈：写得像真的一样。</p><p>匿名：明天还来看。</p></div>'
    )
    return lay_out(f"{story.title} - 云汀晚报", content)


def show_letter(story: Story) -> str:
    """A morning letter: the byline holds author, time and origin in one line."""
    content = (
        f'<article class="letter"><header><p class="kicker">{escape(story.tag)}</p>'
        f'<h2 id="title">{escape(story.title)}</h2>'
        f'<p class="byline">文 / {escape(story.author or "")} · {_in_words(story.published)} · '
        f"选自《{escape(story.origin or '')}》</p></header>\n"
        f'<section id="text">\n{paragraphs_of(story)}\n</section></article>\n'
        '<p class="share">把这封信转给：<a href="mailto:nobody@example.com">一个人</a> · <a href="#">两个人</a></p>'
    )
    return lay_out(f"{story.title}_清晨信箱", content)


def show_note(story: Story) -> str:
    """A note of the workshop, plain."""
    return lay_out(f"{story.title}｜云汀工坊", f'<div id="app">{note_markup(story)}</div>')


def note_markup(story: Story) -> str:
    """The part of a note that the script of a scripted note makes, too."""
    return (
        f'<h1 class="t">{escape(story.title)}</h1><div class="by"><span class="who">{escape(story.author or "")}</span>'
        f"<time>{_dotted(story.published)}</time></div>"
        f'<div class="text">{paragraphs_of(story)}</div>'
    )


def show_scripted_note(story: Story) -> str:
    """A note that is not there before its script has run; the words lie in the page as JSON."""
    facts = {
        "title": story.title,
        "who": story.author,
        "time": _dotted(story.published),
        "text": list(story.paragraphs),
    }
    data = json.dumps(facts, ensure_ascii=False).replace("</", "<\\/")
    content = (
        f'<div id="app"></div>\n<script type="application/json" id="note">{data}</script>\n'
        '<script src="/static/note.js"></script>'
    )
    return lay_out("云汀工坊", content)


def show_notice(story: Story, charset: str) -> str:
    """A public notice in the manner of old offices: tables, font tags, no style sheet of its own."""
    lines = "".join(f"<p>　　{escape(text)}</p>\n" for text in story.paragraphs)
    when = f"{story.published:%Y年%m月%d日 %H:%M}" if story.published else ""
    return (
        '<html><head><meta http-equiv="Content-Type" content="text/html; charset=' + charset + '">\n'
        f"<title>{escape(story.title)}_云汀市公告栏</title></head>\n<body bgcolor=#f7f3e8>\n"
        "<table width=760 align=center><tr><td><a href=/>首页</a> | <a href=/gazette/>公告栏</a> | 招标公告</td></tr>\n"
        f"<tr><td align=center class=tit><h1>{escape(story.title)}</h1></td></tr>\n"
        f'<tr><td align=center class=inf><font color="#666">发布时间：{when}&nbsp;&nbsp;'
        f"来源：{escape(story.origin or '')}&nbsp;&nbsp;【字体：大 中 小】</font></td></tr>\n"
        f"<tr><td class=con>\n{lines}</td></tr>\n"
        "<tr><td align=right>【打印本页】【关闭窗口】</td></tr>\n"
        "<tr><td align=center><font size=2>主办：云汀市公告栏编辑室　地址：钟楼广场一号</font></td></tr>\n"
        "</table></body></html>\n"
    )


def show_world(story: Story, related: Sequence[Story] = ()) -> str:
    """An English story with JSON-LD and meta elements, as most papers carry them."""
    published = story.published.isoformat() if story.published else ""
    linked = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": story.title,
        "datePublished": published,
        "author": {"@type": "Person", "name": story.author},
        "publisher": {"@type": "Organization", "name": story.origin},
    }
    head = (
        f'<meta property="og:title" content="{escape(story.title)}">\n<meta property="og:type" content="article">\n'
        f'<meta property="article:published_time" content="{published}">\n'
        f'<meta name="author" content="{escape(story.author or "")}">\n'
        f'<script type="application/ld+json">{json.dumps(linked)}</script>\n'
    )
    links = "".join(f'<li><a href="{other.path}">{escape(other.title)}</a></li>' for other in related)
    shown = f"{story.published:%d %B %Y, %H:%M}" if story.published else ""
    content = (
        f'<article><p class="kicker">{escape(story.tag)}</p><h1>{escape(story.title)}</h1>'
        f'<p class="byline">By <a rel="author" href="/world/">{escape(story.author or "")}</a> '
        f'<time datetime="{published}">{shown}</time></p>\n<div class="story">{paragraphs_of(story)}</div></article>\n'
        f'<aside class="related"><h3>More from the Ledger</h3><ul>{links}</ul></aside>\n'
        '<section class="newsletter"><p>Sign up for our morning letter. We write when there is something to say.</p>'
        "</section>"
    )
    return lay_out(f"{story.title} | The Saltmere Ledger", content, language="en", head=head)


def _minute(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else ""


def _in_words(moment: datetime | None) -> str:
    return f"{moment.year}年{moment.month}月{moment.day}日 {moment:%H:%M}" if moment else ""


def _dotted(moment: datetime | None) -> str:
    return f"{moment:%Y.%m.%d %H:%M}" if moment else ""
