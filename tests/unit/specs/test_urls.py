"""Which URLs name one page, under the rules of the project's own catalog and under others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.model.urls import normal_form
from lakehouse.specs.checks import UrlRules
from lakehouse.specs.loader import load_catalog
from lakehouse.specs.source import SourceSpec
from lakehouse.specs.urls import allows_host, canonical_form, canonical_fp

RULES = load_catalog(Path(__file__).parents[3] / "catalog").url_rules
NO_RULES = UrlRules(version=1, drop_www=False, one_scheme=False, drop_trailing_slash=False)


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("http://example.com", "https://example.com/"),
        ("http://www.example.com/a", "https://example.com/a"),
        ("http://www.www.example.com/", "https://example.com/"),
        ("http://www.com/", "https://www.com/"),
        ("http://wwwx.example.com/", "https://wwwx.example.com/"),
        ("http://example.com./a", "https://example.com/a"),
        ("http://example.com/a/", "https://example.com/a"),
        ("http://example.com/a//", "https://example.com/a"),
        ("http://example.com//", "https://example.com/"),
        ("http://example.com/a/index.html", "https://example.com/a/index.html"),
        ("http://example.com/a/?id=1", "https://example.com/a?id=1"),
        ("http://example.com/a?", "https://example.com/a"),
        ("http://example.com/a?utm_source=x&id=1&utm_medium=y", "https://example.com/a?id=1"),
        ("http://example.com/a?UTM_Source=x&SPM=1&from=timeline&fbclid=1&gclid=2", "https://example.com/a"),
        ("http://example.com/a?%66rom=x", "https://example.com/a"),
        ("http://example.com/a?b=2&a=1&&", "https://example.com/a?b=2&a=1"),
        ("http://example.com/a?fromage=brie&utm=1", "https://example.com/a?fromage=brie&utm=1"),
        ("http://example.com/a;jsessionid=0A1B?x=1", "https://example.com/a?x=1"),
        ("http://example.com/a;v=1;JSESSIONID=0A1B/b", "https://example.com/a;v=1/b"),
        ("http://example.com/a/..;jsessionid=1/b", "https://example.com/b"),
        ("http://example.com/a?PHPSESSID=1&ASPSESSIONIDQ=2&sessionid=3", "https://example.com/a"),
        ("http://example.com:443/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://example.com:8080/", "https://example.com:8080/"),
        ("http://127.0.0.1:8765/a/", "https://127.0.0.1:8765/a"),
        ("http://[::1]/", "https://[::1]/"),
        ("http://example.com/a#/route", "https://example.com/a"),
    ],
)
def test_canonical_form(url: str, form: str) -> None:
    assert canonical_form(url, RULES) == form
    assert canonical_form(form, RULES) == form


def test_twins_share_a_fingerprint_and_others_do_not() -> None:
    twins = ["http://www.example.com/a/?spm=1", "https://example.com/a", "HTTPS://EXAMPLE.com:443/a/#top"]
    assert len({canonical_fp(url, RULES) for url in twins}) == 1
    assert canonical_fp("https://example.com/a", RULES) == "2dce0a4c50441bfccfa9caf4b58c3cba"
    assert canonical_fp("https://example.com/b", RULES) != canonical_fp("https://example.com/a", RULES)


def test_without_rules_only_what_is_always_dropped_goes() -> None:
    assert canonical_form("http://www.example.com./a/?utm_source=1&&#x", NO_RULES) == (
        "http://www.example.com/a/?utm_source=1"
    )


def test_a_fragment_can_be_kept_for_sites_that_route_by_it() -> None:
    rules = UrlRules(version=1, drop_fragment=False)
    assert canonical_form("http://example.com/#/news/1", rules) == "https://example.com/#/news/1"
    assert canonical_form("http://example.com/#", rules) == "https://example.com/"


def test_what_is_no_url_has_no_canonical_form() -> None:
    with pytest.raises(ValueError, match="only http and https name pages"):
        canonical_form("javascript:void(0)", RULES)
    with pytest.raises(ValueError, match="longer than 8192 characters once encoded"):
        canonical_form("http://a/" + "中" * 3000, RULES)


PATHS = st.text("/.;?&=#%aA1www中utm_ jsessionid", max_size=40)
URLS = st.builds(
    "{}://{}/{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a.example", "www.a.example", "www.www.a.example.", "[::1]:443", "a.example:80", "a.example:443"]),
    st.one_of(PATHS, st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=30)),
)
RULE_SETS = st.builds(
    UrlRules,
    version=st.just(1),
    drop_params=st.lists(st.sampled_from(["utm_*", "jsessionid", "a", "w*", "from"]), max_size=3).map(tuple),
    drop_www=st.booleans(),
    one_scheme=st.booleans(),
    drop_trailing_slash=st.booleans(),
    drop_fragment=st.booleans(),
)


@given(URLS, RULE_SETS)
def test_the_canonical_form_is_its_own_under_any_rules(url: str, rules: UrlRules) -> None:
    form = canonical_form(url, rules)
    assert canonical_form(form, rules) == form
    assert normal_form(form) == form.partition("#")[0]
    assert canonical_fp(form, rules) == canonical_fp(url, rules)


@given(URLS, RULE_SETS.filter(lambda rules: rules.drop_fragment))
def test_one_normal_form_gives_one_canonical_form(url: str, rules: UrlRules) -> None:
    assert canonical_form(normal_form(url), rules) == canonical_form(url, rules)


def source(**values: object) -> SourceSpec:
    task = {"name": "a", "url": "https://www.people.com.cn/", "interval": "1h"}
    base = {"source": "people", "name": "People", "entry_url": "https://www.people.com.cn/", "tasks": [task]}
    return SourceSpec.model_validate({**base, **values})


@pytest.mark.parametrize(
    ("hosts", "host", "allowed"),
    [
        ([], "anything.example", True),
        (["people.com.cn"], "people.com.cn", True),
        (["people.com.cn"], "society.people.com.cn", True),
        (["people.com.cn"], "evilpeople.com.cn", False),
        (["people.com.cn"], "people.com.cn.evil.example", False),
        (["cpc.people.com.cn"], "people.com.cn", False),
        (["例子.中国"], "xn--fsqu00a.xn--fiqs8s", True),
    ],
)
def test_allowed_hosts(hosts: list[str], host: str, allowed: bool) -> None:
    assert allows_host(source(allowed_hosts=hosts), host) is allowed
