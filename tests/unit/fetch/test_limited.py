from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lakehouse.fetch.limited import recognise_limit
from lakehouse.parse.charset import decode_page
from lakehouse.specs.source import SourceSpec

MakeSource = Callable[..., SourceSpec]
PAGES = Path(__file__).parents[4] / "shared" / "pages"
SHORT_NEWS = """<html><head><title>通知</title></head><body><h1>关于供水的通知</h1><p>因管网检修，三月二日零时至六时
城北片区暂停供水，请居民提前储水，恢复时间另行通知，给您带来的不便敬请谅解，详情可拨打服务热线咨询，检修期间消防用水不受影响，
请各单位做好准备。</p>{}</body></html>"""


def page(body: str, head: str = "") -> str:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (page("<p>请输入验证码后继续访问</p><img src=/code.png><input name=code>"), "captcha"),
        (
            page("<div id=c></div><script src=//static.geetest.com/gt.js></script>", "<title>安全验证</title>"),
            "captcha",
        ),
        (page("<h2>Checking your browser</h2><script src=/cdn-cgi/challenge-platform/x.js></script>"), "captcha"),
        (page("<p>您的访问过于频繁，请稍后再试</p>"), "rate_limited"),
        (page("<h1>429</h1><p>Too many requests</p>"), "rate_limited"),
        (page("<form><input name=u><input type=password name=p><button>登录</button></form>"), "login_wall"),
        (page("<p>请登录后继续阅读全文</p>"), "login_wall"),
        (page("<p>Please log in to continue.</p>"), "login_wall"),
        (page("<div id=app></div><script src=/app.js></script>"), "empty_shell"),
        (page("<noscript>You need to enable JavaScript</noscript><main></main><script>1</script>"), "empty_shell"),
    ],
)
def test_pages_that_hold_nothing_but_a_wall(make_source: MakeSource, text: str, reason: str) -> None:
    assert recognise_limit(text, 200, make_source()) == reason


@pytest.mark.parametrize(
    "text",
    [
        SHORT_NEWS.format(""),
        SHORT_NEWS.format("<p>登录后才能发表评论</p><form><input type=password></form>"),
        SHORT_NEWS.format("<p>验证码</p><input name=code>"),
        SHORT_NEWS.format("<script src=https://www.google.com/recaptcha/api.js></script>"),
        page("<p>登录后发表评论</p><p>短讯：今日有雨。</p>"),
        page(
            "<h1>Captcha explained</h1>" + "<p>A captcha tells people from programs and was named so in 2003.</p>" * 20
        ),
        page("<div id=app></div>"),
        page(""),
        '{"message": "ok", "captcha": false}',
        "",
    ],
)
def test_pages_that_only_speak_of_it(make_source: MakeSource, text: str) -> None:
    assert recognise_limit(text, 200, make_source()) is None


def test_a_sources_own_signatures_come_first(make_source: MakeSource) -> None:
    source = make_source(limited=[{"reason": "sold_out", "when": "名额.{0,4}已满"}])
    assert recognise_limit(SHORT_NEWS.format("<p>今日名额已满</p>"), 200, source) == "sold_out"
    assert recognise_limit('{"error": "名额已满"}', 200, source) == "sold_out"


def test_status_429_needs_no_words(make_source: MakeSource) -> None:
    assert recognise_limit("", 429, make_source()) == "rate_limited"
    assert recognise_limit("请求过于频繁", 403, make_source()) == "rate_limited"
    assert recognise_limit("Forbidden", 403, make_source()) is None


def test_a_rendered_page_is_no_shell(make_source: MakeSource) -> None:
    shell = page("<div id=app></div><script src=/app.js></script>")
    assert recognise_limit(shell, 200, make_source(fetcher="browser")) is None


@pytest.mark.skipif(
    not PAGES.is_dir() and os.environ.get("CI") != "true", reason="the folder with real pages is not here"
)
def test_no_real_article_is_taken_for_a_wall(make_source: MakeSource) -> None:
    source = make_source()
    paths = sorted(PAGES.rglob("*.gz"))
    assert len(paths) > 200
    taken = [
        path.name for path in paths if recognise_limit(decode_page(gzip.decompress(path.read_bytes()))[0], 200, source)
    ]
    assert taken == []
