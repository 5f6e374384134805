from __future__ import annotations

from typing import Any

import pytest

from lakehouse.errors import ConfigError
from lakehouse.fetch.lists import read_list
from lakehouse.specs.source import ListRules

URL = "http://news.test/list/index.html"


def urls(text: str, *, charset: str = "utf-8", url: str = URL, **rules: object) -> list[str]:
    page = read_list(text, url, charset, ListRules.model_validate(rules))
    return [link.url for link in page.links]


def test_links_become_absolute_and_are_named_once() -> None:
    text = """<a href="a.html">A</a><a href=" /b.html#top ">B</a><a href="../a.html">C</a><a href="//other.test/x">D</a>
    <a href="a.html#part">again</a><a href="HTTP://NEWS.test/list/a.html">again</a><a>none</a><a href="#x">here</a>
    <a href="javascript:void(0)">js</a><a href="mailto:a@b">mail</a><a href="http://[bad">bad</a><a href="">empty</a>
    <a href="ht\ntp://news.test/c.html">broken over lines</a>"""
    assert urls(text, links="a") == [
        "http://news.test/list/a.html",
        "http://news.test/b.html",
        "http://news.test/a.html",
        "http://other.test/x",
        "http://news.test/c.html",
    ]


def test_selector_and_pattern_must_both_hold() -> None:
    text = '<ul><a href="/t1.htm">x</a><a href="/more/">m</a></ul><a href="/t2.htm">y</a>'
    assert urls(text, url_pattern=r"/t\d+\.htm$") == ["http://news.test/t1.htm", "http://news.test/t2.htm"]
    assert urls(text, url_pattern=r"/t\d+\.htm$", links="ul a") == ["http://news.test/t1.htm"]


def test_items_say_what_the_list_knows() -> None:
    text = """<li class=i><a href=/1><img></a><a href=/1>标题 一</a><span class=d>3月1日</span></li>
    <li class=i><a href=/2>Two</a></li><li>no item <a href=/3>3</a></li>"""
    rules = ListRules(item="li.i", links="a", fields={"title": "a:last-of-type", "date": ".d"})
    first, second = read_list(text, URL, "utf-8", rules).links
    assert first.entry == {"title": "标题 一", "date": "3月1日"}
    assert second.entry == {"title": "Two"}


def test_an_item_may_be_the_link_itself() -> None:
    rules = ListRules(item="a.card", links="a", fields={"title": "h3"})
    (link,) = read_list("<a class=card href=/1><h3>Title</h3></a><a href=/2>x</a>", URL, "utf-8", rules).links
    assert (link.url, link.entry) == ("http://news.test/1", {"title": "Title"})


def test_the_base_element_counts() -> None:
    text = '<base href="http://cdn.test/root/"><a href="x.html">x</a>'
    assert urls(text, links="a") == ["http://cdn.test/root/x.html"]


def test_chinese_queries_are_encoded_as_the_page_is_and_paths_in_utf8() -> None:
    text = '<a href="/新闻?k=中文">x</a>'
    assert urls(text, links="a", charset="gb18030") == ["http://news.test/%E6%96%B0%E9%97%BB?k=%D6%D0%CE%C4"]
    assert urls(text, links="a", charset="no-such-codec") == []


def test_the_next_link_is_found_by_its_selector() -> None:
    text = '<a class=next href="?page=2">下一页</a>'
    page = read_list(text, URL, "utf-8", ListRules(links="li a"), "a.next")
    assert page.links == ()
    assert page.next_url == "http://news.test/list/index.html?page=2"
    assert read_list("<p>", URL, "utf-8", ListRules(links="a"), "a.next").next_url is None


@pytest.mark.parametrize("rules", [{"links": "a[["}, {"url_pattern": "("}, {"item": "li["}])
def test_rules_that_cannot_be_used_are_configuration_errors(rules: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        read_list('<li><a href="/x">x</a></li>', URL, "utf-8", ListRules.model_construct(**rules))


def test_pages_that_are_no_html_have_no_entries() -> None:
    for text in ("", "{}", "\x00\x01", "<" * 5000, "%PDF-1.4"):
        assert urls(text, links="a") == []
