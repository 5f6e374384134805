"""Pages that say "slow down", "log in" or "prove you are human" with any status: evidence, never a record.

A source's own signatures come first. The general ones are conservative: they look only at pages with little text, as a
real article may well speak of captchas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser

from lakehouse.specs.source import Fetcher, SourceSpec

RATE_LIMITED = "rate_limited"
LITTLE_TEXT = 800
NO_TEXT = 30
PROSE = 80
LATIN_WEIGHT = 0.4
BETWEEN = "\x1f"
SMALL_MARKUP = 50_000
HIDDEN = ["script", "style", "template", "noscript", "svg", "head"]
CAPTCHA = re.compile(
    r"captcha|geetest|turnstile|challenge-platform|cf-browser-verification|verify (that )?you are (a )?human|"
    r"are you a robot|unusual traffic|验证码|安全验证|滑动验证|拖动滑块|人机验证|访问验证|身份核验",
    re.IGNORECASE,
)
LOGIN = re.compile(
    r"(请先?登[录陆]|登[录陆]后(才能|可以?|继续)?|需要登[录陆]后?|尚未登[录陆])(?!.{0,6}(评论|发表|发言|回复|留言|收藏|点赞|关注|参与))|"
    r"(log|sign) ?in to (continue|read|view|see)|please (log|sign) ?in|you must be logged in|subscribers only",
    re.IGNORECASE,
)
SLOW_DOWN = re.compile(
    r"(访问|请求|操作|搜索)(过于|太过?|次数过)(频繁|快|多)|访问频率|请求频率|稍后再(试|访问)|"
    r"too many requests|rate limit|slow down|requests? too (fast|frequent)",
    re.IGNORECASE,
)
SHELL = re.compile(r"\b(root|app|__next|__nuxt|main-app|application)\b", re.IGNORECASE)
NEEDS_SCRIPT = re.compile(r"enable javascript|javascript.{0,20}(required|disabled)|启用.{0,6}javascript", re.IGNORECASE)


def recognise_limit(text: str, status: int, source: SourceSpec) -> str | None:
    """Why a page counts as limited (`captcha`, `login_wall`, `empty_shell`, `rate_limited`, or a signature's reason).

    `text` is the decoded page, the rendered one where a browser made it; "" for a body that is no text.
    """
    for signature in source.limited:
        if _pattern(signature.when).search(text):
            return signature.reason
    if status == 429:
        return RATE_LIMITED
    if "<" not in text[:2000]:
        return RATE_LIMITED if status in {403, 503} and SLOW_DOWN.search(text[:LITTLE_TEXT]) else None
    return _general(text, source.fetcher is Fetcher.BROWSER)


def _general(markup: str, rendered: bool) -> str | None:
    page = _look_at(markup)
    if len(page.visible) > LITTLE_TEXT or page.has_prose:
        return None
    said = f"{page.title} {page.visible}"
    nearly_empty = len(page.visible) < LITTLE_TEXT // 4
    if SLOW_DOWN.search(said):
        return RATE_LIMITED
    if CAPTCHA.search(said) or (nearly_empty and len(markup) < SMALL_MARKUP and CAPTCHA.search(markup)):
        return "captcha"
    if LOGIN.search(said) or (nearly_empty and page.has_password):
        return "login_wall"
    return "empty_shell" if page.is_shell and not rendered and len(page.visible) < NO_TEXT else None


@dataclass(frozen=True, slots=True)
class Look:
    """What a page shows at a glance; `has_prose`: a run of text as long as a paragraph of an article."""

    title: str
    visible: str
    has_prose: bool
    has_password: bool
    is_shell: bool


def _look_at(markup: str) -> Look:
    tree = LexborHTMLParser(markup)
    has_password = tree.css_first('input[type="password"]') is not None
    has_root = any(SHELL.search(node.attributes.get("id") or "") for node in tree.css("body > div[id]"))
    asks_script = any(NEEDS_SCRIPT.search(node.text() or "") for node in tree.css("noscript"))
    is_shell = bool(tree.css("script")) and (has_root or asks_script)
    title = tree.css_first("title")
    said_title = title.text() if title is not None else ""
    tree.strip_tags(HIDDEN)
    body = tree.body
    runs = (body.text(separator=BETWEEN) if body is not None else "").split(BETWEEN)
    paragraphs = [node.text() for node in tree.css("p")]
    has_prose = any(_weight(run) >= PROSE for run in (*runs, *paragraphs))
    return Look(said_title, " ".join(" ".join(runs).split()), has_prose, has_password, is_shell)


def _weight(run: str) -> float:
    return sum(1.0 if char > "\u2e7f" else LATIN_WEIGHT for char in " ".join(run.split()))


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)
