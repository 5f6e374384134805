"""The identity of URLs: pinned examples that must never change, hostile input, and the invariants of a normal form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.model.urls import EDGES, MAX_URL, normal_form, registrable_domain, url_fp, url_host


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("https://example.com", "https://example.com/"),
        ("hTTps://EXAMPLE.Com/Path", "https://example.com/Path"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("http://example.com:/", "http://example.com/"),
        ("http://example.com:0080/", "http://example.com/"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/a/..", "http://example.com/"),
        ("http://example.com/../../a", "http://example.com/a"),
        ("http://example.com/a/b/..", "http://example.com/a/"),
        ("http://example.com/%2e%2E/a", "http://example.com/a"),
        ("http://example.com/a//b/", "http://example.com/a//b/"),
        ("http://example.com/...", "http://example.com/..."),
        ("http://example.com/%7Euser/%c3%a9", "http://example.com/~user/%C3%A9"),
        ("http://example.com/a%2Fb", "http://example.com/a%2Fb"),
        ("http://example.com/100%", "http://example.com/100%25"),
        ("http://example.com/%%341", "http://example.com/%2541"),
        ("http://example.com/a b|c", "http://example.com/a%20b%7Cc"),
        ("http://example.com/?b=1&a=2&b=3", "http://example.com/?b=1&a=2&b=3"),
        ("http://example.com/?q=a+b&x[]=1", "http://example.com/?q=a+b&x%5B%5D=1"),
        ("http://example.com?q=/../x", "http://example.com/?q=/../x"),
        ("http://example.com/?", "http://example.com/?"),
        ("http://example.com/a#b?c#d", "http://example.com/a"),
        ("http://user:p@ss@example.com/", "http://example.com/"),
        ("http://evil.com\\@example.com/", "http://evil.com/@example.com/"),
        ("http:\\\\example.com\\a", "http://example.com/a"),
        ("  http://example.com/\n", "http://example.com/"),
        ("http://exa\tmple.com/a\r\nb", "http://example.com/ab"),
        ("http://例子.中国/路径", "http://xn--fsqu00a.xn--fiqs8s/%E8%B7%AF%E5%BE%84"),
        ("http://XN--FSQU00A.xn--fiqs8s/", "http://xn--fsqu00a.xn--fiqs8s/"),
        ("http://Bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://%65xample.com/", "http://example.com/"),
        ("http://example.com./", "http://example.com./"),
        ("http://my_host.example/", "http://my_host.example/"),
        ("http://127.0.0.1:8765/a", "http://127.0.0.1:8765/a"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/"),
        ("http://example.com/\u0080", "http://example.com/%C2%80"),
    ],
)
def test_normal_form(url: str, form: str) -> None:
    assert normal_form(url) == form


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "URL '' has no scheme; write it whole, such as https://example.com/"),
        ("/a/b", "URL '/a/b' has no scheme; write it whole, such as https://example.com/"),
        ("//example.com/a", "URL '//example.com/a' has no scheme; write it whole, such as https://example.com/"),
        ("javascript:void(0)", "URL 'javascript:void(0)' has the scheme 'javascript'; only http and https name pages"),
        ("mailto:a@b.c", "URL 'mailto:a@b.c' has the scheme 'mailto'; only http and https name pages"),
        ("ftp://example.com/", "URL 'ftp://example.com/' has the scheme 'ftp'; only http and https name pages"),
        ("example.com:80/", "URL 'example.com:80/' has the scheme 'example.com'; only http and https name pages"),
        ("http:", "URL 'http:' has no host; write http://host/…"),
        ("http:/example.com/", "URL 'http:/example.com/' has no host; write http://host/…"),
        ("http:///a", "URL 'http:///a' has no host; write scheme://host/…"),
        ("http://@/a", "URL 'http:///a' has no host; write scheme://host/…"),
        ("http://:80/", "URL 'http://:80/' has no host; write scheme://host/…"),
        ("http://a b/", "URL 'http://a b/' has the host 'a b', which is not a host name"),
        ("http://a..b/", "URL 'http://a..b/' has the host 'a..b', which is not a host name"),
        ("http://./", "URL 'http://./' has the host '.', which is not a host name"),
        ("http://a%00b/", "URL 'http://a%00b/' has the host 'a%00b', which is not a host name"),
        ("http://a%2Fb/", "URL 'http://a%2Fb/' has the host 'a%2Fb', which is not a host name"),
        ("http://%ff/", "URL 'http://%ff/' has the host '%ff', which is not UTF-8 once decoded"),
        ("http://127.1/", "URL 'http://127.1/' has the host '127.1'; write an IPv4 address as four decimal numbers"),
        ("http://0x7f000001/", None),
        ("http://2130706433/", None),
        ("http://127.0.0.010/", None),
        ("http://256.1.1.1/", None),
        ("http://a:99999/", "URL 'http://a:99999/' has the port '99999'; a port is a number up to 65535"),
        ("http://a:b/", "URL 'http://a:b/' has the port 'b'; a port is a number up to 65535"),
        ("http://a:８０/", "URL 'http://a:８０/' has the port '８０'; a port is a number up to 65535"),
        ("http://[::1", "URL 'http://[::1' has no host that can be read; write scheme://host/ or scheme://[IPv6]/"),
        (
            "http://[::1]x/",
            "URL 'http://[::1]x/' has no host that can be read; write scheme://host/ or scheme://[IPv6]/",
        ),
        ("http://[zz]/", "URL 'http://[zz]/' has 'zz' where an IPv6 address without a zone belongs"),
        ("http://[fe80::1%25eth0]/", None),
        ("http://a/\x00b", "URL 'http://a/\\x00b' holds the control character or half character U+0000"),
        ("http://a/\x7f", "URL 'http://a/\\x7f' holds the control character or half character U+007F"),
        ("http://a/\ud800", "URL 'http://a/\\ud800' holds the control character or half character U+D800"),
        ("http://a/" + "x" * MAX_URL, None),
        ("http://a/" + "中" * 3000, None),
        ("http://" + "a" * 64 + ".com/", None),
        ("http://" + "a." * 130 + "com/", None),
    ],
)
def test_hostile_urls_are_refused(url: str, message: str | None) -> None:
    with pytest.raises(ValueError, match=r"^URL ") as caught:
        normal_form(url)
    assert message is None or str(caught.value) == message
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("url", ["http://me:hunter2@a b/", "https://me:hunter2@a..b/x", "http://me:hunter2@a:99999/"])
def test_a_refusal_never_shows_credentials(url: str) -> None:
    with pytest.raises(ValueError, match="URL") as caught:
        normal_form(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "fingerprint"),
    [
        ("https://example.com", "0f115db062b7c0dd030b16878c99dea5"),
        ("http://example.com/a?b=1", "cc90c38180889c3244d066724d7ea187"),
        ("http://例子.中国/路径?q=中", "905483b24b6133f463ba40a845b6f17a"),
        ("https://[2001:DB8::0:1]:443", "a29c5e99701feded870a3e8098e7ec0e"),
        ("HTTP://User:p@Ex.COM:80/a/../b/%7efoo%2f?b=2&a=%e4#x", "de3d8ba1cbf1dc9137bb555c37cc4603"),
        ("http://www.a.com/x;jsessionid=12/?utm_source=1&id=2&", "b4099bca4a6230f1b8671360440717a5"),
        ("http://127.0.0.1:8765/a", "d823fe79d9cea360bc66776585b66177"),
    ],
)
def test_fingerprints_are_frozen(url: str, fingerprint: str) -> None:
    assert url_fp(url) == fingerprint
    assert url_fp(normal_form(url)) == fingerprint


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://society.people.com.cn/n1/", "people.com.cn"),
        ("http://www.beijing.gov.cn/", "beijing.gov.cn"),
        ("http://www.gov.cn/", "www.gov.cn"),
        ("http://com.cn/", "com.cn"),
        ("http://foo.github.io/", "github.io"),
        ("http://例子.中国/", "xn--fsqu00a.xn--fiqs8s"),
        ("http://a.b.intranet/", "b.intranet"),
        ("http://localhost:8765/", "localhost"),
        ("http://127.0.0.1:8765/", "127.0.0.1"),
        ("http://[::1]/", "[::1]"),
        ("http://www.example.com./", "example.com"),
    ],
)
def test_registrable_domain(url: str, domain: str) -> None:
    assert registrable_domain(url) == domain


def test_registrable_domain_refuses_what_has_no_host() -> None:
    with pytest.raises(ValueError, match="scheme 'mailto'"):
        registrable_domain("mailto:a@example.com")


def test_host_is_in_normal_form() -> None:
    assert url_host("http://me@WWW.Bücher.example:81/") == "www.xn--bcher-kva.example"


URL_TEXT = st.text(st.characters(codec="utf-8"), max_size=40) | st.text("./%;?&=#@:[]\\ aA2fFeE0~\t中", max_size=40)
URLS = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "HTTPS", "https"]),
    st.sampled_from(["a.example", "WWW.A.example", "me:pw@a.example", "中文.example", "[::1]", "127.0.0.1"]),
    st.sampled_from(["", ":80", ":443", ":8080", ":"]),
    st.one_of(st.just(""), URL_TEXT.map("/{}".format), URL_TEXT.map("?{}".format)),
)


def form_or_none(url: str) -> str | None:
    try:
        return normal_form(url)
    except ValueError:
        return None


@given(URLS)
def test_the_normal_form_is_its_own_normal_form(url: str) -> None:
    form = form_or_none(url)
    if form is not None:
        assert normal_form(form) == form
        assert url_fp(form) == url_fp(url)


@given(URLS)
def test_the_normal_form_is_plain_ascii_without_fragment_and_credentials(url: str) -> None:
    form = form_or_none(url)
    if form is not None:
        assert form.isascii()
        assert form.isprintable()
        assert not set(form) & set(' "<>\\^`{|}#')
        assert "@" not in form.split("/")[2]


@given(st.text(max_size=60))
def test_any_text_has_a_form_or_is_refused(text: str) -> None:
    form = form_or_none(text)
    assert form is None or form.startswith(("http://", "https://"))


@given(URLS, st.sampled_from(["#x", "#", "\n", "  "]))
def test_what_does_not_matter_changes_nothing(url: str, tail: str) -> None:
    url = url.strip(EDGES)
    assert form_or_none(url + tail) == form_or_none(url)
