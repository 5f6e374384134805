"""Everything that can be wrong in a source, each with its place and what would be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakehouse.specs.source_rules import filled

Spoil = Callable[[str, str, str], list[str]]
FILE = "sources/gov.yaml"
TEMPLATE = "template: news@1"
URL = "url: https://www.gov.example/notices/\n    cron"
ENTRY = "entry_url: https://www.gov.example/notices/"
LIST = "list: {links: a.entry}"
CRON = 'cron: "30 6 * * *"'
FIVE = "write five fields: minute hour day month weekday, such as '30 6 * * *'"
SELECTOR = "write a selector of elements such as 'ul.news > li a'"
BARE = "write a host name without scheme, port and path, such as news.example.com"
CODE = "use lower-case letters, digits and _, a letter first, at most 64"
LINKS = "give `links` (a CSS selector) or `url_pattern` (a regex)"
KINDS = "it is one of website, column, keyword, account, blogger, other"
PRIVATE = "add `allow_private: true` if that is meant"
CHARSET = "name a charset such as utf-8, gb18030 or big5"
ZONE = "write an IANA name such as Asia/Shanghai"
A_DAY = "name a day that exists, such as '0 6 1 * *'"
LIMIT_KEYS = (
    "keys are attempts, backoff, connect_timeout, interval, max_body_bytes, max_redirects, read_timeout, total_timeout"
)
DURATION = "write a number and s, m, h or d, such as 15m"


@pytest.mark.parametrize(
    ("old", "new", "wrong", "right"),
    [
        (CRON, 'crn: "30 6 * * *"', "8: tasks[0].crn: unknown key 'crn'", "did you mean 'cron'?"),
        (TEMPLATE, "Template: news@1", "4: Template: unknown key 'Template'", "did you mean 'template'?"),
        (LIST, "list: {lnks: a}", "9: tasks[0].list.lnks: unknown key 'lnks'", "did you mean 'links'?"),
        (
            TEMPLATE,
            "limits: {zzz: 1}",
            "4: limits.zzz: unknown key 'zzz'",
            LIMIT_KEYS,
        ),
        (ENTRY, "", "1: key 'entry_url' is missing", "add it: `entry_url: …`"),
        ("name: City notices", "name: 5", "2: name: is the number 5", "it must be text: put it in quotes"),
        ("name: City notices", "name: ''", "2: name: is empty", "write something"),
        ("name: City notices", "name:", "2: name: is nothing", "it must be text: put it in quotes"),
        ("name: City notices", "name: [a]", "2: name: is a list", "it must be text: put it in quotes"),
        ("name: board", "name: Board", "6: tasks[0].name: is the text 'Board'", CODE),
        (TEMPLATE, "type: webste", "4: type: is the text 'webste'", f"did you mean 'website'? {KINDS}"),
        (TEMPLATE, "type: qqq", "4: type: is the text 'qqq'", KINDS),
        (
            TEMPLATE,
            "status: enable",
            "4: status: is the text 'enable'",
            "did you mean 'enabled'? it is one of enabled, disabled",
        ),
        (TEMPLATE, "fetcher: selenium", "4: fetcher: is the text 'selenium'", "it is one of http, browser"),
        (TEMPLATE, 'robots: "no"', "4: robots: is the text 'no'", "it must be true or false"),
        (TEMPLATE, "robots: no", "4: robots: is the text 'no'", "it must be true or false"),
        (TEMPLATE, "priority: 0", "4: priority: is the number 0", "it must be at least 1"),
        (TEMPLATE, "priority: 10", "4: priority: is the number 10", "it must be at most 9"),
        (TEMPLATE, 'priority: "5"', "4: priority: is the text '5'", "it must be a whole number"),
        (TEMPLATE, "priority: 1.5", "4: priority: is the number 1.5", "it must be a whole number"),
        (TEMPLATE, "tags: news", "4: tags: is the text 'news'", "it must be a list"),
        (TEMPLATE, "limits: 5", "4: limits: is the number 5", "it must be a mapping of keys to values"),
        (TEMPLATE, "limits: {interval: -1}", "4: limits.interval: is the number -1", "it must be at least 0"),
        (TEMPLATE, "limits: {read_timeout: 0}", "4: limits.read_timeout: is the number 0", "it must be more than 0"),
        (TEMPLATE, "limits: {backoff: [1, -1]}", "4: limits.backoff[1]: is the number -1", "it must be at least 0"),
        (
            TEMPLATE,
            "language: chinese",
            "4: language: is the text 'chinese'",
            "write two lower-case letters, such as zh or en",
        ),
        (TEMPLATE, "charset: gb23123", "4: charset: charset 'gb23123' is unknown", CHARSET),
        (TEMPLATE, "charset: hex", "4: charset: charset 'hex' is unknown", CHARSET),
        (TEMPLATE, "charset: idna", "4: charset: charset 'idna' does not encode pages", CHARSET),
        (
            TEMPLATE,
            "page_tz: Asia/Shangai",
            "4: page_tz: time zone 'Asia/Shangai' is unknown",
            "did you mean 'Asia/Shanghai'?",
        ),
        (TEMPLATE, "page_tz: ../etc", "4: page_tz: time zone '../etc' is unknown", ZONE),
        (TEMPLATE, "page_tz: qqqqqqqq", "4: page_tz: time zone 'qqqqqqqq' is unknown", ZONE),
        (
            TEMPLATE,
            "limited: [{reason: captcha, when: '('}]",
            "4: limited[0].when: regex '(' cannot be read: missing ), unterminated subpattern at position 0",
            "mend it; in YAML put a regex in single quotes",
        ),
        ('"30 6 * * *"', '"99 6 * * *"', "8: tasks[0].cron: cron '99 6 * * *' cannot be right", FIVE),
        ('"30 6 * * *"', '"30 6 * *"', "8: tasks[0].cron: cron '30 6 * *' has 4 fields", FIVE),
        ('"30 6 * * *"', '"0 30 6 * * *"', "8: tasks[0].cron: cron '0 30 6 * * *' has 6 fields", FIVE),
        ('"30 6 * * *"', '"@daily"', "8: tasks[0].cron: cron '@daily' has 1 fields", FIVE),
        ('"30 6 * * *"', "daily at noon or so", "8: tasks[0].cron: cron 'daily at noon or so' cannot be right", FIVE),
        (CRON, "interval: 15 minutes", "8: tasks[0].interval: is the text '15 minutes'", DURATION),
        ('"30 6 * * *"', '"0 6 30 2 *"', "8: tasks[0].cron: cron '0 6 30 2 *' is never due", A_DAY),
        ('"30 6 * * *"', '"R 6 * * *"', "8: tasks[0].cron: cron 'R 6 * * *' draws a time at random", FIVE),
        (CRON, "interval: 9999999d", "8: tasks[0].interval: is the text '9999999d'", DURATION),
        (TEMPLATE, "tags: ['']", "4: tags[0]: is empty", "write something"),
        (CRON, "interval: 0m", "8: tasks[0].interval: is the text '0m'", DURATION),
        (
            f"    {CRON}\n",
            "",
            "6: tasks[0]: nothing says when the task is due",
            "give `cron` (batch) or `interval` (stream)",
        ),
        (
            CRON,
            f"{CRON}\n    interval: 1h",
            "6: tasks[0]: `cron` and `interval` are both given",
            "keep `cron` for a batch task, `interval` for a stream",
        ),
        (LIST, "list: {}", "9: tasks[0].list: nothing says which links are entries", LINKS),
        (
            LIST,
            "list: {links: a, fields: {t: b}}",
            "9: tasks[0].list.fields: `fields` are selectors below an item",
            "give `item` as well",
        ),
        (LIST, "list: {links: 'a['}", "9: tasks[0].list.links: selector 'a[' cannot be read", SELECTOR),
        (LIST, "list: {links: ''}", "9: tasks[0].list.links: selector '' cannot be read", SELECTOR),
        (
            LIST,
            "list: {links: 'a::text'}",
            "9: tasks[0].list.links: selector 'a::text' asks for a part of an element",
            SELECTOR,
        ),
        (
            LIST,
            "list: {links: a, item: li, fields: {title: 'b >'}}",
            "9: tasks[0].list.fields.title: selector 'b >' cannot be read",
            SELECTOR,
        ),
        (
            LIST,
            "list: {links: a, item: li, fields: {Title: b}}",
            "9: tasks[0].list.fields.Title: key is the text 'Title'",
            CODE,
        ),
        (
            LIST,
            "list: {links: a, wait_for: a}",
            "9: tasks[0].list.wait_for: only a browser waits for a selector",
            "add `fetcher: browser`",
        ),
        (
            LIST,
            "paging: {max_pages: 3}",
            "9: tasks[0].paging: nothing says how the list goes on",
            "give `next` (a CSS selector), or put {page} into the task's url",
        ),
        (
            LIST,
            "paging: {next: a, max_pages: 0}",
            "9: tasks[0].paging.max_pages: is the number 0",
            "it must be more than 0",
        ),
    ],
)
def test_a_wrong_value(problems_of: Spoil, old: str, new: str, wrong: str, right: str) -> None:
    assert problems_of(FILE, old, new) == [f"catalog/{FILE}:{wrong}; {right}"]


@pytest.mark.parametrize(
    ("old", "new", "wrong", "right"),
    [
        (
            ENTRY,
            "entry_url: ftp://www.gov.example/",
            "3: entry_url: URL 'ftp://www.gov.example/' has the scheme 'ftp'",
            "only http and https name pages",
        ),
        (
            ENTRY,
            "entry_url: www.gov.example",
            "3: entry_url: URL 'www.gov.example' has no scheme",
            "write it whole, such as https://example.com/",
        ),
        (
            ENTRY,
            "entry_url: https://me:secret@www.gov.example/",
            "3: entry_url: holds a user name or password",
            "remove it: secrets do not belong into the catalog",
        ),
        (
            ENTRY,
            "entry_url: http://192.168.1.5/",
            "3: entry_url: 192.168.1.5 is an address of a private network",
            PRIVATE,
        ),
        (
            ENTRY,
            "entry_url: http://localhost:8000/",
            "3: entry_url: localhost is an address of a private network",
            PRIVATE,
        ),
        (ENTRY, "entry_url: http://[::1]/", "3: entry_url: [::1] is an address of a private network", PRIVATE),
        (
            URL,
            "url: https://a b/\n    cron",
            "7: tasks[0].url: URL 'https://a b/' has the host 'a b', which is not a host name",
            "write an absolute http or https URL",
        ),
        (
            URL,
            "url: http://169.254.169.254/\n    cron",
            "7: tasks[0].url: 169.254.169.254 is an address of a private network",
            PRIVATE,
        ),
        (
            URL,
            "url: https://www.gov.example/{dat}\n    cron",
            "7: tasks[0].url: {dat} is no placeholder",
            "did you mean 'dt'?",
        ),
        (
            URL,
            "url: https://www.gov.example/{}\n    cron",
            "7: tasks[0].url: {} is no placeholder",
            "placeholders are dd, dt, mm, page, yyyy",
        ),
        (
            URL,
            "url: https://www.gov.example/{page\n    cron",
            "7: tasks[0].url: has a brace that belongs to no placeholder",
            "write {page} or {dt}; a brace of the URL itself is %7B or %7D",
        ),
        (
            URL,
            "url: https://www.gov.example/{dt}\n    cron",
            "7: tasks[0].url: holds a day, but the source is not addressed by date",
            "add `by_date: true`",
        ),
        (
            TEMPLATE,
            "by_date: true",
            "7: tasks[0].url: holds no day, but the source is addressed by date",
            "use {dt}, or {yyyy}, {mm} and {dd}",
        ),
        (
            TEMPLATE,
            "allowed_hosts: [news.example]",
            "7: tasks[0].url: host 'www.gov.example' is not allowed, only news.example",
            "add www.gov.example to `allowed_hosts`",
        ),
        (
            TEMPLATE,
            "allowed_hosts: ['https://gov.example/']",
            "4: allowed_hosts[0]: 'https://gov.example/' is not a bare host name",
            BARE,
        ),
        (
            TEMPLATE,
            "allowed_hosts: ['*.gov.example']",
            "4: allowed_hosts[0]: '*.gov.example' is not a bare host name",
            BARE,
        ),
        (TEMPLATE, "allowed_hosts: [gov..example]", "4: allowed_hosts[0]: 'gov..example' is not a host name", BARE),
    ],
)
def test_a_wrong_address(problems_of: Spoil, old: str, new: str, wrong: str, right: str) -> None:
    assert problems_of(FILE, old, new) == [f"catalog/{FILE}:{wrong}; {right}"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TEMPLATE, "allowed_hosts: [gov.example]"),
        (TEMPLATE, "language: no"),
        (TEMPLATE, "page_tz: UTC"),
        (TEMPLATE, "charset: GBK"),
        (CRON, "interval: 90s"),
        (URL, "url: https://elsewhere.example/list_{page}.html\n    paging: {max_pages: 3}\n    cron"),
        (ENTRY, "allow_private: true\nentry_url: http://127.0.0.1:8765/"),
        (LIST, "list: {url_pattern: '/20\\d{2}/.*\\.html$'}"),
        (f"    {LIST}\n", ""),
    ],
)
def test_a_right_value_is_no_problem(problems_of: Spoil, old: str, new: str) -> None:
    assert problems_of(FILE, old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("news@1", "nws@1", "4: template: there is no template 'nws'; did you mean 'news'?"),
        ("news@1", "zzz@1", "4: template: there is no template 'zzz'; templates are news"),
        ("news@1", "news@2", "4: template: template 'news' has no version 2; it has news@1"),
        ("news@1", "news", "4: template: is the text 'news'; write name@version, such as articles@1"),
        ("news@1", "news@0", "4: template: is the text 'news@0'; write name@version, such as articles@1"),
        (TEMPLATE, "writes: artcles@1", "4: writes: there is no dataset 'artcles'; did you mean 'articles'?"),
        (TEMPLATE, "writes: articles@3", "4: writes: dataset 'articles' has no version 3; it has articles@1"),
        (TEMPLATE, "checks: defalt", "4: checks: there is no list of checks 'defalt'; did you mean 'default'?"),
    ],
)
def test_a_name_that_nothing_declares(problems_of: Spoil, old: str, new: str, message: str) -> None:
    assert problems_of(FILE, old, new) == [f"catalog/{FILE}:{message}"]


def test_a_reference_is_judged_although_the_file_has_other_problems(folder: Any) -> None:
    folder.change(FILE, CRON, 'crn: "99 6 * * *"')
    folder.change(FILE, "news@1", "nws@1")
    assert folder.problems() == [
        f"catalog/{FILE}:4: template: there is no template 'nws'; did you mean 'news'?",
        f"catalog/{FILE}:8: tasks[0].crn: cron '99 6 * * *' cannot be right; {FIVE}",
        f"catalog/{FILE}:8: tasks[0].crn: unknown key 'crn'; did you mean 'cron'?",
    ]


def test_a_file_that_cannot_be_read_is_not_also_missing(folder: Any) -> None:
    folder.write("templates/news/v1.yaml", "a: [")
    assert [problem.partition(":")[0] for problem in folder.problems()] == ["catalog/templates/news/v1.yaml"]


def test_a_source_writes_records_and_its_template_gives_them(folder: Any) -> None:
    text = (folder.root / "schemas/articles/v1.yaml").read_text()
    notices = text.replace("dataset: articles", "dataset: notices").replace("clean.articles", "clean.notices")
    folder.write("schemas/notices/v1.yaml", notices.replace("name: title", "name: subject"))
    fetches = notices.replace("notices", "fetches").replace("clean", "raw").replace("frame: record", "frame: none")
    folder.write("schemas/fetches/v1.yaml", fetches)
    folder.change(FILE, TEMPLATE, f"{TEMPLATE}\nwrites: notices@1")
    lacks, gives = folder.problems()
    assert lacks == (
        f"catalog/{FILE}:1: checks: checks 'default' look at title, which notices@1 does not have; "
        "take checks made for notices"
    )
    assert gives == (
        f"catalog/{FILE}:4: template: news@1 gives articles, but the source writes notices@1; "
        "write a version of articles, or take a template for notices"
    )
    folder.change(FILE, "notices@1", "fetches@1")
    assert f"catalog/{FILE}:5: writes: fetches@1 holds no records of pages; the pipeline itself writes raw.fetches" in (
        folder.problems()
    )


def test_two_sources_with_one_entry_are_refused(folder: Any) -> None:
    text = (folder.root / FILE).read_text().replace("source: gov", "source: town")
    folder.write("sources/town.yaml", text.replace(ENTRY, "entry_url: HTTPS://WWW.gov.EXAMPLE:443/a/../notices/#top"))
    (found,) = folder.problems()
    assert found == (
        "catalog/sources/town.yaml:3: entry_url: names the same page as catalog/sources/gov.yaml: "
        "https://www.gov.example/notices/; one source for one place: make it a further task of that source, or give "
        "another entry"
    )


def test_a_source_addressed_by_date_may_write_the_day_in_parts(folder: Any) -> None:
    folder.change(FILE, TEMPLATE, "by_date: true")
    folder.change(
        FILE, "url: https://www.gov.example/notices/\n    cron", "url: https://a.example/{yyyy}/{mm}{dd}\n    cron"
    )
    assert folder.problems() == []
    folder.change(FILE, "{mm}{dd}", "{mm}")
    assert len(folder.problems()) == 1


def test_two_tasks_with_one_name_are_refused(problems_of: Spoil) -> None:
    again = "\n  - {name: board, url: 'https://www.gov.example/', interval: 1h}\n"
    assert problems_of(FILE, f"    {LIST}\n", f"    {LIST}{again}") == [
        f"catalog/{FILE}:10: tasks[1].name: 'board' is already the name of tasks[0]; name each once"
    ]


def test_a_key_that_stands_twice_is_refused(problems_of: Spoil) -> None:
    assert problems_of(FILE, TEMPLATE, f"{TEMPLATE}\n{TEMPLATE}") == [
        f"catalog/{FILE}:5: template: key 'template' stands twice, first in line 4; keep one of them"
    ]


def test_a_typo_in_a_key_below_a_typo_is_named_too(problems_of: Spoil) -> None:
    assert problems_of(FILE, LIST, "lst: {lnks: a}") == [
        f"catalog/{FILE}:9: tasks[0].lst: unknown key 'lst'; did you mean 'list'?",
        f"catalog/{FILE}:9: tasks[0].lst.lnks: unknown key 'lnks'; did you mean 'links'?",
    ]


def test_placeholders_are_filled_with_samples() -> None:
    assert filled("http://a/{yyyy}/{mm}/{dd}/{dt}?p={page}") == "http://a/2026/01/31/2026-01-31?p=1"


def test_a_source_without_tasks_is_refused(problems_of: Spoil) -> None:
    found = problems_of(FILE, "tasks:\n", "tasks: []\nold:\n")
    assert found[0] == f"catalog/{FILE}:5: tasks: is empty; give at least one"
    assert found[1].startswith(f"catalog/{FILE}:6: old: unknown key 'old'; keys are ")
