"""The identity of a URL. The normal form is syntactic only and frozen: `url_fp` never changes its meaning.

Two URLs have one normal form when RFC 3986, or the way browsers read an address, makes them one: case of scheme and
host, international names, the default port, `.` and `..`, needless or lower-case percent-encoding, an empty path, the
fragment, a user name. Query parameters keep their order, and an empty query keeps its `?`. What sites mean by their
URLs (tracking parameters, `www.`) belongs to `specs.urls`.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from functools import lru_cache
from typing import Any

MAX_URL = 8192
DEFAULT_PORTS = {"http": "80", "https": "443"}
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
IN_PATH = UNRESERVED | frozenset(b"!$&'()*+,;=:@/")
IN_QUERY = IN_PATH | frozenset(b"?")
EDGES = "".join(map(chr, range(0x21)))
NEVER = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
PLAIN = re.compile(r"[A-Za-z0-9._~/=&-]*")
ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")


def normal_form(url: str) -> str:
    """The syntactic normal form of an absolute http or https URL.

    Spaces and control characters around it and tabs and line ends in it are dropped, and `\\` counts as `/`, as in
    browsers. Raises ValueError for another scheme, no or a wrong host, other control characters, and over MAX_URL
    characters before or after.
    """
    scheme, host, port, path, query, _ = split_url(url)
    return checked_length(join_url(scheme, host, port, path, query), url)


def url_fp(url: str) -> str:
    """32 hex characters: the first 16 bytes of the sha256 of the normal form; raises ValueError as `normal_form`."""
    return fingerprint(normal_form(url))


def fingerprint(form: str) -> str:
    """32 hex characters: the first 16 bytes of the sha256 of a form that is already normal."""
    return hashlib.sha256(form.encode("ascii")).hexdigest()[:32]


def registrable_domain(url: str) -> str:
    """The domain someone registered, such as `example.com.cn`; the host itself where nobody can register one.

    The list of suffixes is the one that tldextract ships with: no network. Below a top-level domain that it does not
    know, the last two labels are the domain. Raises ValueError as `normal_form`.
    """
    host = url_host(url).rstrip(".")
    if host.startswith("[") or NUMBER.fullmatch(host.rpartition(".")[2]):
        return host
    found = _suffixes()(host)
    if not found.suffix:
        return ".".join(host.split(".")[-2:])
    domain: str = found.top_domain_under_public_suffix
    return domain or host


def url_host(url: str) -> str:
    """The normal form of the host alone, IPv6 in brackets; raises ValueError as `normal_form`."""
    return split_url(url)[1]


@lru_cache(maxsize=1024)
def split_url(url: str) -> tuple[str, str, str, str, str | None, str | None]:
    """Normalised scheme, host, port ("" for the default), path, query and fragment (None where there is none)."""
    text = _plain_text(url)
    match = SCHEME.match(text)
    if match is None:
        raise ValueError(f"URL {_shown(url)} has no scheme; write it whole, such as https://example.com/")
    scheme = match[1].lower()
    if scheme not in DEFAULT_PORTS:
        raise ValueError(f"URL {_shown(url)} has the scheme {scheme!r}; only http and https name pages")
    rest, mark, fragment = text[match.end() :].partition("#")
    address, has_query, query = rest.partition("?")
    address = address.replace("\\", "/")
    if not address.startswith("//"):
        raise ValueError(f"URL {_shown(url)} has no host; write {scheme}://host/…")
    authority, slash, path = address[2:].partition("/")
    host, port = _split_authority(authority.rpartition("@")[2], url)
    return (
        scheme,
        host,
        "" if port == DEFAULT_PORTS[scheme] else port,
        without_dots(encode(slash + path, IN_PATH)) or "/",
        encode(query, IN_QUERY) if has_query else None,
        encode(fragment, IN_QUERY) if mark else None,
    )


def join_url(scheme: str, host: str, port: str, path: str, query: str | None) -> str:
    """A URL from its normalised parts."""
    return f"{scheme}://{host}{':' + port if port else ''}{path}{'' if query is None else '?' + query}"


def checked_length(form: str, url: str) -> str:
    """`form`, or ValueError where encoding `url` made it longer than MAX_URL characters."""
    if len(form) > MAX_URL:
        raise ValueError(f"URL {_shown(url)} is longer than {MAX_URL} characters once encoded")
    return form


def encode(text: str, kept: frozenset[int]) -> str:
    """`text` in UTF-8 with one spelling of every octet: unreserved plain, `kept` as written, others as %XX."""
    if PLAIN.fullmatch(text):
        return text
    data = text.encode("utf-8")
    parts: list[str] = []
    at = 0
    while at < len(data):
        octet = data[at]
        if octet == 0x25 and ESCAPE.match(data, at):
            octet = int(data[at + 1 : at + 3], 16)
            parts.append(chr(octet) if octet in UNRESERVED else f"%{octet:02X}")
            at += 3
        else:
            parts.append(chr(octet) if octet in kept else f"%{octet:02X}")
            at += 1
    return "".join(parts)


def without_dots(path: str) -> str:
    """`path` without `.` and `..` segments; `..` at the root is dropped (RFC 3986, 5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def _plain_text(url: str) -> str:
    if len(url) > MAX_URL:
        raise ValueError(f"URL {_shown(url)} is longer than {MAX_URL} characters")
    text = url.strip(EDGES)
    for sign in "\t\r\n":
        text = text.replace(sign, "")
    found = NEVER.search(text)
    if found is not None:
        raise ValueError(f"URL {_shown(url)} holds the control character or half character U+{ord(found[0]):04X}")
    return text


def _split_authority(authority: str, url: str) -> tuple[str, str]:
    if authority.startswith("["):
        inner, bracket, port = authority[1:].partition("]")
        host = _ipv6(inner, url) if bracket else ""
    else:
        host, colon, port = authority.partition(":")
        port = colon + port
        host = _host_name(host, url)
    if not host or (port and not port.startswith(":")):
        raise ValueError(f"URL {_shown(url)} has no host that can be read; write scheme://host/ or scheme://[IPv6]/")
    digits = port[1:]
    if digits and not (digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) < 65536):
        raise ValueError(f"URL {_shown(url)} has the port {digits[:20]!r}; a port is a number up to 65535")
    return host, str(int(digits)) if digits else ""


def _ipv6(text: str, url: str) -> str:
    try:
        if "%" in text:
            raise ValueError("zone")
        return f"[{ipaddress.IPv6Address(text).compressed}]"
    except ValueError:
        raise ValueError(f"URL {_shown(url)} has {text[:60]!r} where an IPv6 address without a zone belongs") from None


def _host_name(text: str, url: str) -> str:
    if not text:
        raise ValueError(f"URL {_shown(url)} has no host; write scheme://host/…")
    host = _ascii_host(_unescaped(text, url), url)
    if not HOST.fullmatch(host) or len(host) > 254:
        raise ValueError(f"URL {_shown(url)} has the host {text[:100]!r}, which is not a host name")
    if NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        try:
            return str(ipaddress.IPv4Address(host.rstrip(".")))
        except ValueError:
            raise ValueError(
                f"URL {_shown(url)} has the host {text[:100]!r}; write an IPv4 address as four decimal numbers"
            ) from None
    return host


def _unescaped(text: str, url: str) -> str:
    if "%" not in text:
        return text
    raw = text.encode("utf-8")
    try:
        return ESCAPE.sub(lambda found: bytes([int(found[0][1:], 16)]), raw).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"URL {_shown(url)} has the host {text[:100]!r}, which is not UTF-8 once decoded") from None


def _ascii_host(text: str, url: str) -> str:
    if text.isascii():
        return text.lower()
    import idna

    try:
        return idna.encode(text, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError) as error:
        raise ValueError(f"URL {_shown(url)} has the host {text[:100]!r}, which cannot be encoded: {error}") from None


@lru_cache(maxsize=1)
def _suffixes() -> Any:
    import tldextract

    return tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)


def _shown(url: str) -> str:
    """A URL in a message: without user and password, and short."""
    text = re.sub(r"//[^/@?#\\]*@", "//", url) if "@" in url else url
    return repr(text if len(text) <= 120 else text[:117] + "...")
