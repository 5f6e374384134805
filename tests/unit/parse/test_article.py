"""Generic extraction on made-up pages: what a page says, and what it does not say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lakehouse.model.record import Page, Parsed, TimeConfidence
from lakehouse.parse import parse_page

ZONE = ZoneInfo("Asia/Shanghai")
FETCHED = datetime(2024, 3, 6, 12, tzinfo=ZONE)
FIRST = "河上的老桥今天重新开放，数百名居民一早就来到桥头，等着走过去看看对岸的变化。"
SECOND = "工程师说，桥面换了新的木板，栏杆也加高了，孩子们可以放心地在上面跑来跑去。"
LAST = "镇上打算在周末办一场集市，大家都可以来。"
ENGLISH = [
    "The old bridge over the river opened again this morning, and hundreds of people walked across it.",
    "Engineers said that the deck had been replaced, and that the railing was now higher than before.",
    "The town plans a market for the weekend, and everybody is welcome to come along.",
]


def parse(html: str, **page: Any) -> Parsed:
    return parse_page(
        Page(html.encode(), page.pop("url", "http://paper.example/n/1"), FETCHED, **page), None, zone=ZONE
    )


def chinese(
    head: str = "", before: str = "", after: str = "", meta: str = "2024-03-05 08:30 来源：晚报 作者：李雷"
) -> str:
    return f"""<html><head><title>老桥重新开放_城市频道_晚报网</title>{head}</head><body>
<div class="nav"><a href="/">首页</a><a href="/c">城市</a><a href="/s">体育，娱乐</a></div>
<div class="main"><h1>老桥重新开放</h1><div class="info">{meta}</div>
<div class="text"><p>{FIRST}</p><p>{SECOND}</p><p>{LAST}</p>{after}</div></div>
<div class="footer">版权所有 晚报网，未经许可不得转载。地址：河边路一号，电话请打总机。</div></body></html>"""


def test_a_plain_chinese_article_is_read_whole() -> None:
    parsed = parse(chinese())
    assert parsed.problem is None
    assert parsed.template == "generic@1"
    assert parsed.values == {
        "title": "老桥重新开放",
        "publish_time": datetime(2024, 3, 5, 8, 30, tzinfo=ZONE),
        "time_confidence": TimeConfidence.ABSOLUTE,
        "author": "李雷",
        "origin": "晚报",
        "body": f"{FIRST}\n{SECOND}\n{LAST}",
    }
    assert parsed.evidence["title"].node == "/html/body/div[2]/h1"
    assert parsed.evidence["publish_time"].raw == "2024-03-05 08:30"
    assert parsed.evidence["body"].node == "/html/body/div[2]/div[2]"


@pytest.mark.parametrize(
    "noise",
    [
        "<p>责任编辑：韩梅</p>",
        "<p>（责编：韩梅、林涛）</p>",
        "<p>本文来源：晚报 责任编辑：韩梅</p>",
        "<p>【编辑：韩梅】</p><p>更多精彩资讯请关注晚报</p>",
        "<p>扫描下方二维码关注我们</p>",
        "<p>相关阅读：</p><ul><li><a href='/1'>另一座桥也要修了，居民等了很多年</a></li></ul>",
        "<div class='related'><p>另一座桥的故事，说来话长，有人记得它从前的样子。</p></div>",
        "<div class='comment-list'><p>读者甲说，这座桥修得真好，我每天都要走一遍，感谢工人。</p></div>",
        "<div style='display: none'><p>看不见的文字，写给机器看的，不该出现在正文里。</p></div>",
        "<div class='share'>分享到：<a>微信</a><a>微博</a></div>",
        "<p>文字/李雷 摄影/林涛 编辑/韩梅</p>",
    ],
)
def test_what_stands_after_the_article_is_left_out(noise: str) -> None:
    assert parse(chinese(after=noise)).values["body"] == f"{FIRST}\n{SECOND}\n{LAST}"


def test_breaks_make_paragraphs() -> None:
    html = f"<title>老桥</title><h1>老桥</h1><div>{FIRST}<br><br>　　{SECOND}<br/>{LAST}</div>"
    assert parse(html).values["body"] == f"{FIRST}\n{SECOND}\n{LAST}"


def test_short_paragraphs_inside_the_article_stay() -> None:
    parsed = parse(chinese(after="<p>就这样。</p>").replace(f"<p>{SECOND}</p>", f"<p>真的吗？</p><p>{SECOND}</p>"))
    assert parsed.values["body"] == f"{FIRST}\n真的吗？\n{SECOND}\n{LAST}\n就这样。"


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ("2024年3月5日 08:30", "2024-03-05T08:30:00+08:00"),
        ("<span>2024-03-05</span><span>08:30</span>", "2024-03-05T08:30:00+08:00"),
        ("发布时间：2024-03-05 08:30 更新时间：2024-03-06 09:00", "2024-03-05T08:30:00+08:00"),
        ("浏览：2024次 3小时前", "2024-03-06T09:00:00+08:00"),
    ],
)
def test_the_time_near_the_title_is_read(meta: str, expected: str) -> None:
    assert parse(chinese(meta=meta)).values["publish_time"].isoformat() == expected


def test_a_page_without_a_time_has_none() -> None:
    parsed = parse(chinese(meta="来源：晚报"))
    assert parsed.values["publish_time"] is None
    assert parsed.values["time_confidence"] is TimeConfidence.UNKNOWN


def test_a_time_of_the_future_or_an_impossible_day_is_no_time() -> None:
    assert parse(chinese(meta="2025-01-01 10:00")).values["publish_time"] is None
    assert parse(chinese(meta="2024-02-31 10:00")).values["publish_time"] is None


def test_times_of_comments_and_related_reading_are_not_the_article_s() -> None:
    after = "<div class='related'><p>2024-03-01 09:00 另一篇</p></div><div class='comments'>2024-03-02 10:00</div>"
    assert parse(chinese(meta="来源：晚报", after=after)).values["publish_time"] is None


def test_the_stated_instant_is_told_in_the_clock_that_the_page_shows() -> None:
    head = '<meta property="article:published_time" content="2024-03-05T00:30:00Z">'
    shown = parse(chinese(head=head)).values["publish_time"]
    assert shown.isoformat() == "2024-03-05T08:30:00+08:00"
    stated_only = parse(chinese(head=head, meta="来源：晚报")).values["publish_time"]
    assert stated_only == datetime(2024, 3, 5, 0, 30, tzinfo=UTC)
    other_zone = parse(chinese(head=head, meta="2024-03-04 19:30")).values["publish_time"]
    assert other_zone.isoformat() == "2024-03-04T19:30:00-05:00"


def test_a_date_without_a_year_takes_the_year_that_the_page_states() -> None:
    head = '<meta name="pubdate" content="2021-10-08 12:00:31">'
    parsed = parse(chinese(head=head, meta="10-08 12:00"))
    assert parsed.values["publish_time"].isoformat() == "2021-10-08T12:00:00+08:00"
    assert parsed.values["time_confidence"] is TimeConfidence.ABSOLUTE


def test_a_relative_time_gives_way_to_what_a_script_states() -> None:
    head = "<script>var article = {id: 7, publish_time: 1580700600};</script>"
    parsed = parse(chinese(head=head, meta="昨天"))
    assert parsed.values["publish_time"].isoformat() == "2020-02-03T11:30:00+08:00"


def test_the_date_of_the_url_is_better_than_none() -> None:
    parsed = parse(chinese(meta=""), url="http://paper.example/2024/02/29/c_1.html")
    assert parsed.values["publish_time"] == datetime(2024, 2, 29, tzinfo=ZONE)


def english(head: str = "", top: str = "", tail: str = "", title: str = "Old bridge opens again") -> str:
    paragraphs = "".join(f"<p>{text}</p>" for text in ENGLISH)
    return f"""<html><head><title>{title} | The Paper</title>{head}</head><body class="no-sidebar">
<nav><ul><li><a href="/">Home</a></li><li><a href="/news">News, views and more</a></li></ul></nav>
<article class="post has-sidebar"><h1>{title}</h1>{top}<div class="entry">{paragraphs}{tail}</div></article>
<aside><h3>Most read</h3><p>Something else happened, and it was longer, but it is no part of it.</p></aside>
<footer><p>Copyright 2024 The Paper. All rights reserved, and some words on cookies.</p></footer></body></html>"""


@pytest.mark.parametrize(
    "tail",
    [
        "<p>Sign up for our newsletter to get the best stories.</p>",
        "<p>Jane Roe can be reached at jane@paper.example.</p>",
        "<p>Copyright 2024 The Paper. All rights reserved.</p>",
        "<div><h3>Related stories</h3><ul><li><a href='/2'>Another bridge closes for good</a></li></ul></div>",
        "<blockquote class='twitter-tweet'><p>What a day! pic.twitter.com/abc</p></blockquote>",
        "<figure><img><figcaption>People on the bridge, on Tuesday. (Photo: Roe)</figcaption></figure>",
        "<p>Advertisement</p>",
    ],
)
def test_english_boilerplate_is_left_out(tail: str) -> None:
    assert parse(english(tail=tail)).values["body"] == "\n".join(ENGLISH)


def test_a_sentence_under_the_title_belongs_to_the_text() -> None:
    lead = "It took two years longer than planned, but now it is done."
    body = parse(english(top=f"<h2>{lead}</h2><div class='byline'>By Jane Roe, March 5, 2024</div>")).values["body"]
    assert body == "\n".join([lead, *ENGLISH])


def test_structured_data_gives_author_and_time() -> None:
    head = """<script type="application/ld+json">{"@context":"x","@graph":[{"@type":["NewsArticle"],"headline":
    "Old bridge opens again","datePublished":"2024-03-05T08:30:00-05:00","author":{"name":"Jane Roe"},},]}</script>"""
    values = parse(english(head=head)).values
    assert (values["author"], values["publish_time"].isoformat()) == ("Jane Roe", "2024-03-05T08:30:00-05:00")


@pytest.mark.parametrize("text", ['{"@type": "NewsArticle"', "[" * 5000, '{"@type": 5, "author": [[{}]]}', "", "null"])
def test_broken_structured_data_is_as_good_as_none(text: str) -> None:
    parsed = parse(english(head=f'<script type="application/ld+json">{text}</script>'))
    assert parsed.values["title"] == "Old bridge opens again"
    assert parsed.values["body"] == "\n".join(ENGLISH)


def test_a_title_of_more_than_a_hundred_characters_counts_as_not_found() -> None:
    assert parse(english(title="Old bridge opens again " * 6)).values["title"] is None


@pytest.mark.parametrize(
    ("title", "expected"),
    [("老桥开放-晚报网", "老桥开放"), ("老桥开放_城市_晚报", "老桥开放"), ("Bridge opens | The Paper", "Bridge opens")],
)
def test_without_a_heading_the_title_element_loses_the_site(title: str, expected: str) -> None:
    assert parse(f"<title>{title}</title><p>{FIRST}</p>", url="").values["title"] == expected


def test_text_that_scripts_would_show_is_read_where_little_else_is() -> None:
    hidden = "".join(f"<p>{text}</p>" for text in ENGLISH * 4)
    shown = f"<title>Old bridge</title><h1>Old bridge</h1><div><p>{ENGLISH[0]}</p>"
    assert ENGLISH[1] in parse(f"{shown}<div style='display:none'>{hidden}</div></div>").values["body"]


def test_the_stated_body_is_read_where_the_page_shows_none() -> None:
    stated = " ".join(ENGLISH)
    head = f'<script type="application/ld+json">{{"@type":"Article","articleBody":"{stated}"}}</script>'
    parsed = parse(f"<html><head><title>Bridge</title>{head}</head><body><div id='app'></div></body></html>")
    assert parsed.values["body"] == stated
    assert parsed.evidence["body"].rule == "jsonld: articleBody"


def test_only_the_first_of_several_articles_is_read() -> None:
    text = "This one is about the harbour, which is far away, and big."
    other = f"<article><h1>Another story altogether</h1><p>{text}</p></article>"
    html = english().replace("</article>", f"</article>{other * 2}")
    assert parse(html).values["body"] == "\n".join(ENGLISH)


def test_an_empty_shell_says_nothing_and_is_no_problem_of_the_parser() -> None:
    parsed = parse("<html><body><div id=app></div></body></html>")
    assert parsed.problem is None
    assert {name: parsed.values[name] for name in ("title", "body", "publish_time")} == {
        "title": None,
        "body": None,
        "publish_time": None,
    }


@pytest.mark.parametrize("name", ["related-news", "comment_list"])
def test_what_stands_beside_may_be_longer_than_the_article(name: str) -> None:
    other = "".join(f"<div class='item'><p>另外一条很长的文字，{SECOND}</p></div>" for _ in range(9))
    article = f"<h1>快讯</h1><div class=c><p>{FIRST}</p></div>"
    html = f"<title>快讯</title><div id=m>{article}<div class='{name}'>{other}</div></div>"
    assert parse(html).values["body"] == FIRST


def test_names_that_style_alone_uses_say_nothing() -> None:
    body = f"<main class='rel mnh100vh'><div class='position-relative text-secondary'>{english()}</div></main>"
    assert parse(f"<div id='__next'>{body}</div>").values["body"] == "\n".join(ENGLISH)


def test_short_sentences_and_subheadings_of_a_short_article_stay() -> None:
    lines = ["It was a cold day, and the woods were silent as we walked along the river.", "Nobody spoke.", "Yes."]
    text = f"<p>{lines[0]}</p><h3>The river</h3><p>{lines[1]}</p><p>{lines[2]}</p>"
    html = f"<title>A walk</title><h2 class=entry-title>A walk</h2><div class=e>{text}</div>"
    assert parse(html).values["body"] == "\n".join([lines[0], "The river", *lines[1:]])


def test_the_attribute_of_a_time_element_is_more_exact_than_its_text() -> None:
    top = '<p>Posted on <time datetime="2024-02-03T10:11:12+00:00">February 3, 2024</time> by Ann Lee</p>'
    values = parse(english(top=top)).values
    assert (values["publish_time"].isoformat(), values["author"]) == ("2024-02-03T10:11:12+00:00", "Ann Lee")
