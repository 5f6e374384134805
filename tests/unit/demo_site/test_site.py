"""The demo site: deterministic, reachable, and true to its answer key."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from urllib.parse import urljoin

import httpx
import parsel
import pytest

from infra.demo_site import Site, SiteServer, answers, run_site
from infra.demo_site.columns import edited_story, notices
from infra.demo_site.reply import Reply
from lakehouse.model.fetch import FETCH_REASONS
from lakehouse.model.record import REJECT_REASONS, Outcome

TODAY = date(2026, 3, 9)
EDITED = edited_story(1)[0].path
SCRIPTED = {f"/js/note/{number}.html" for number in range(2, 11, 2)}


@pytest.fixture
def site() -> Site:
    return Site(today=lambda: TODAY)


@pytest.fixture
def server(site: Site) -> Iterator[SiteServer]:
    with run_site(site) as running:
        yield running


def read(reply: Reply) -> parsel.Selector:
    """A page as a browser reads it: UTF-8 if it is, else as Big5 or GB 18030."""
    try:
        text = reply.body.decode("utf-8")
    except UnicodeDecodeError:
        text = reply.body.decode("big5" if b"big5" in reply.body else "gb18030", errors="replace")
    return parsel.Selector(text)


def shown(reply: Reply) -> str:
    """All text of a page, without scripts and without white space."""
    return "".join("".join(read(reply).xpath("//body//text()[not(ancestor::script)]").getall()).split())


def squash(text: str) -> str:
    return "".join(text.split())


def test_every_page_says_what_its_answer_says(site: Site) -> None:
    days = [TODAY, TODAY - timedelta(days=400)]
    checked: collections.Counter[str] = collections.Counter()
    for path, answer in answers(days=days, today=TODAY).items():
        for truth in answer.truths:
            reply = site.reply("/odd/moved/here.html" if path == "/odd/moved.html" else path)
            text = squash(reply.body.decode()) if path in SCRIPTED else shown(reply)
            assert squash(truth.title) in text, path
            for paragraph in truth.body.split("\n"):
                assert squash(paragraph) in text, path
            assert truth.author is None or squash(truth.author) in text, path
            checked[answer.source] += 1
    assert checked == {
        "demo_news": 49,
        "demo_daily": 8,
        "demo_js": 10,
        "demo_gazette": 14,
        "demo_world": 18,
        "demo_nasty": 10,
    }


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_stories(site: Site) -> None:
    again = Site(today=lambda: TODAY)
    assert site.paths() == again.paths()
    assert all(site.reply(path) == again.reply(path) for path in site.paths())
    mine = {answer.truths[0].body for answer in answers().values() if answer.truths and answer.source != "demo_nasty"}
    others = {
        answer.truths[0].body for answer in answers(2).values() if answer.truths and answer.source != "demo_nasty"
    }
    assert len(mine) == 90
    assert not mine & others


def test_about_150_pages_are_reachable_from_the_index(site: Site) -> None:
    seen, waiting = set[str](), ["/"]
    while waiting:
        path = waiting.pop()
        if path in seen or path.startswith(("mailto:", "http:", "javascript:", "#")):
            continue
        seen.add(path)
        reply = site.reply(path)
        if "text/html" not in reply.media_type:
            continue
        targets = [value for name, value in reply.headers if name == "Location"]
        if reply.status == 200 and reply.body and not reply.headers:
            targets = read(reply).css("a::attr(href)").getall()
        for target in targets:
            link = urljoin(path, target)
            too_old = link.startswith("/daily/2") and link < f"/daily/{TODAY - timedelta(days=2)}"
            if link.startswith("/") and not too_old:
                waiting.append(link)
    notes = {path for path, answer in answers().items() if answer.source == "demo_js"}
    hidden = {"/robots.txt", "/js/entries.json"} | {path for path in site.paths() if path.startswith("/static/")}
    assert set(site.paths()) - seen == hidden | notes
    assert 140 <= len(seen | notes) <= 160


def test_bodies_are_long_enough_to_pass_checks_and_unlike_each_other() -> None:
    found = answers(days=[TODAY], today=TODAY)
    bodies = {path: answer.truths[0].body for path, answer in found.items() if answer.truths}
    short = {path for path, body in bodies.items() if len(squash(body)) <= 250}
    assert short == {"/odd/short.html"}
    whole = [body for path, body in bodies.items() if "?" not in path]
    paragraphs = collections.Counter(line for body in whole for line in body.split("\n"))
    assert len(set(whole)) == len(whole)
    repeated = sum(count - 1 for count in paragraphs.values())
    assert repeated / paragraphs.total() < 0.1


def test_titles_fit_the_checks_except_the_one_that_must_not() -> None:
    lengths = {path: len(truth.title) for path, a in answers().items() for truth in a.truths}
    endless = [answer for answer in answers().values() if answer.reason == "title_too_long"]
    assert [path for path, length in lengths.items() if length > 100] == [answer.path for answer in endless]
    assert [answer.source for answer in endless] == ["demo_news"]


def test_an_answer_names_outcomes_and_reasons_that_exist() -> None:
    known = {*REJECT_REASONS, *FETCH_REASONS, "empty_shell", "login_wall", "rate_limited", "captcha", None}
    for answer in answers(days=[TODAY], today=TODAY).values():
        assert answer.reason in known, answer.path
        assert {Outcome(outcome) for outcome in answer.outcomes}, answer.path


def test_every_past_day_has_its_own_letters_and_the_future_none(site: Site) -> None:
    first, second = (answers(days=[TODAY - timedelta(days=n)], today=TODAY) for n in (1, 2))
    letters = [{p: a for p, a in found.items() if a.source == "demo_daily"} for found in (first, second)]
    assert [len(found) for found in letters] == [4, 4]
    assert not {a.truths[0].body for a in letters[0].values()} & {a.truths[0].body for a in letters[1].values()}
    assert site.reply(f"/daily/{TODAY}/").status == 200
    assert site.reply(f"/daily/{TODAY + timedelta(days=1)}/").status == 404
    assert site.reply("/daily/2019-12-31/").status == 404
    assert site.reply("/daily/2026-02-30/").status == 404
    assert site.reply(f"/daily/{TODAY}/5.html").status == 404
    written = [
        a.truths[0].publish_time for a in answers(days=[TODAY], today=TODAY).values() if a.source == "demo_daily"
    ]
    assert {moment.date() for moment in written if moment} == {TODAY - timedelta(days=1)}


def test_the_edited_story_changes_after_its_first_reading(server: SiteServer) -> None:
    with httpx.Client(base_url=server.url) as client:
        assert client.head(EDITED).status_code == 200
        texts = [client.get(EDITED).text for _ in range(3)]
        assert ["更正：" in text for text in texts] == [False, True, True]
        assert client.post("/_reset").status_code == 204
        assert "更正：" not in client.get(EDITED).text


def test_of_many_readers_at_once_exactly_one_sees_the_first_version(server: SiteServer) -> None:
    with ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(lambda _: httpx.get(server.url + EDITED).text, range(32)))
    assert sum("更正：" not in text for text in texts) == 1


def test_two_notices_lie_about_their_charset(site: Site) -> None:
    stories = notices(1)
    wide = site.reply(stories[3].path)
    assert b"charset=gb2312" in wide.body
    assert "gb2312" in wide.media_type
    assert "㙍" in wide.body.decode("gb18030")
    for narrow in ("gb2312", "gbk", "utf-8"):
        with pytest.raises(UnicodeDecodeError):
            wide.body.decode(narrow)
    unicode = site.reply(stories[6].path)
    assert b"charset=gb2312" in unicode.body
    assert stories[6].title in unicode.body.decode("utf-8")
    plain = site.reply(stories[0].path).body
    assert b"charset=gbk" in plain
    assert stories[0].title in plain.decode("gbk")


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/odd/garbled.html", httpx.DecodingError),
        ("/odd/hang-up.html", httpx.RemoteProtocolError),
        ("/odd/loop.html", httpx.TooManyRedirects),
    ],
)
def test_broken_exchanges_break_a_client(server: SiteServer, path: str, error: type[Exception]) -> None:
    with httpx.Client(follow_redirects=True) as client, pytest.raises(error):
        client.get(server.url + path)


def test_small_bytes_unpack_to_more_than_the_source_allows(server: SiteServer) -> None:
    reply = httpx.get(server.url + "/odd/bomb.html")
    assert int(reply.headers["Content-Length"]) < 10_000
    assert len(reply.content) == 4_000_000


def test_a_taken_port_is_an_error_and_posting_elsewhere_is_refused(server: SiteServer) -> None:
    port = server.server_address[1]
    with pytest.raises(OSError, match="in use"), run_site(port=port):
        pytest.fail("two sites on one port")
    assert httpx.post(server.url + "/news/", content=b"x").status_code == 405
    assert httpx.get(server.url + "/nowhere.html").status_code == 404
