"""Bytes to text: every voice about a page's charset is heard, and the bytes have the last word.

Votes are `bom`, `header`, `meta`, `xml`, `source` and `bytes`; each is a Python codec name. A page that is valid UTF-8
is read as UTF-8 whatever it declares; gb2312 and gbk are read as gb18030, latin-1 as cp1252, as browsers do.
"""

from __future__ import annotations

import codecs
import re

from resiliparse.parse.encoding import detect_encoding
from w3lib.encoding import resolve_encoding

HEAD = 4096
BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (b"\x84\x31\x95\x33", "gb18030"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
META = re.compile(rb"<meta\b[^>]{0,512}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,32})", re.IGNORECASE)
XML = re.compile(rb"^\s*<\?xml\b[^>]{0,256}?\bencoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,32})[\"']")
COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
MAGIC = (
    b"%PDF-",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"BZh",
    b"7z\xbc\xaf",
    b"Rar!",
    b"\x28\xb5\x2f\xfd",
    b"\x7fELF",
    b"\xd0\xcf\x11\xe0",
    b"RIFF",
    b"ID3",
    b"OggS",
    b"wOFF",
    b"\x00\x00\x01\x00",
)
NOT_TEXT_TYPES = re.compile(
    r"^(image|audio|video|font)/(?!svg)|^application/(pdf|zip|gzip|octet-stream|msword|vnd\.|x-(7z|rar|tar|bzip))",
    re.IGNORECASE,
)
HTML_TYPES = re.compile(r"html|xml", re.IGNORECASE)
TAG = re.compile(
    rb"<(?:!doctype|html|head|body|meta|title|div|p|a|article|section|table|span|script|h[1-6])\b", re.IGNORECASE
)
WEAK = frozenset({"cp1252", "ascii", "latin-1"})
CONTROL = re.compile("[\ufffd\x80-\x84\x86-\x9f\ue000-\uf8ff]")
PAGE_CODEC = re.compile(
    r"^(utf-8|utf-16(-[lb]e)?|gb18030|big5(hkscs)?|cp(866|874|932|949|125[0-8])|euc_(jp|kr)|shift_jis|iso2022_jp"
    r"|koi8-[ru]|iso8859-\d+|mac-(roman|cyrillic)|tis-620|hz)$"
)
EAST_ASIAN = re.compile(r"^(gb|big5|euc|shift|cp93|cp949|iso2022|iso-2022|hz)", re.IGNORECASE)
HAN_OR_KANA = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
BEYOND_TWO_BYTES = re.compile("[\u0800-\U0010ffff]")
SAMPLE = 200_000


def known_charset(label: str | None) -> str | None:
    """The codec that browsers would use for a charset label, or None for one nobody knows."""
    if not label:
        return None
    name = resolve_encoding(label.strip().strip("\"'").lower().removeprefix("x-"))
    if name in {"iso8859-1", "ascii"}:
        return "cp1252"
    return name if name and PAGE_CODEC.match(name) else None


def is_binary(body: bytes, media_type: str | None = None) -> bool:
    """Whether a body is no text at all: a known file magic, a binary media type, or many NUL bytes."""
    head = body[:HEAD]
    if head.startswith(MAGIC) or head[4:8] == b"ftyp":
        return True
    if media_type and NOT_TEXT_TYPES.search(media_type) and not TAG.search(head):
        return True
    return head.count(0) > len(head) // 50 and _utf16_by_zeros(head) is None


def is_html(body: bytes, media_type: str | None = None) -> bool:
    """Whether a body can be read as HTML or XML; False goes with the reject reason `not_html`."""
    if is_binary(body, media_type):
        return False
    head = body[:HEAD].replace(b"\x00", b"")
    if TAG.search(head):
        return True
    if media_type and not HTML_TYPES.search(media_type):
        return False
    return b"<" in body and not head.lstrip().startswith((b"{", b"["))


def decode_page(
    body: bytes, header_charset: str | None = None, declared_charset: str | None = None
) -> tuple[str, str, dict[str, str]]:
    """Text of a body, the charset it was read with, and who said what; never raises.

    `header_charset` is the charset of the Content-Type header, `declared_charset` the word of the source in the
    catalog. Bytes that the chosen charset cannot read become U+FFFD.
    """
    votes = collect_votes(body, header_charset, declared_charset)
    charset = choose_charset(body, votes)
    text = body.decode(charset, errors="replace")
    return text.removeprefix("\ufeff"), charset, votes


def collect_votes(body: bytes, header_charset: str | None, declared_charset: str | None) -> dict[str, str]:
    """What BOM, header, meta element, XML declaration, source and the bytes themselves say."""
    found: dict[str, str | None] = {
        "bom": next((name for mark, name in BOMS if body.startswith(mark)), None),
        "header": known_charset(header_charset),
        "meta": _from_meta(body),
        "xml": _first_label(XML, body[:HEAD]),
        "source": known_charset(declared_charset),
    }
    declared = [name for name in found.values() if name]
    found["bytes"] = _from_bytes(body, declared)
    return {voice: name for voice, name in found.items() if name}


def choose_charset(body: bytes, votes: dict[str, str]) -> str:
    """The charset that reads the bytes best; ties go to BOM, bytes, source, header, meta, XML declaration."""
    if "bom" in votes:
        return votes["bom"]
    if votes.get("bytes") in {"utf-8", "utf-16-le", "utf-16-be"}:
        return votes["bytes"]
    order = [votes[voice] for voice in ("source", "header", "meta", "xml") if voice in votes]
    if votes.get("bytes") == "ascii":
        return next((name for name in order if not name.startswith("utf-16")), "utf-8")
    guess = [votes["bytes"]] if "bytes" in votes else []
    strong = [name for name in order if name not in WEAK]
    weak = [name for name in order if name in WEAK]
    names = list(dict.fromkeys([*strong, *guess, *weak, "utf-8", "gb18030", "cp1252"]))
    sample = body[:SAMPLE]
    return min(names, key=lambda name: (_badness(sample, name), names.index(name)))


def _badness(sample: bytes, name: str) -> float:
    """Share of what cannot be read, in steps: a few broken bytes do not outweigh what a page says of itself."""
    text = sample.decode(name, errors="replace")
    foreign = sum(1 for char in text if char > "\x7f")
    bad = len(CONTROL.findall(text)) / max(foreign, 1)
    return 0.0 if bad < 0.005 else round(bad, 2) + 0.01


def _first_label(pattern: re.Pattern[bytes], head: bytes) -> str | None:
    match = pattern.search(head)
    return known_charset(match.group(1).decode("ascii")) if match else None


def _from_meta(body: bytes) -> str | None:
    """The charset of the first meta element; UTF-16 there cannot be true, as the bytes were read as ASCII."""
    name = _first_label(META, COMMENT.sub(b"", body[: 4 * HEAD]))
    return "utf-8" if name and name.startswith(("utf-16", "utf-32")) else name


def _utf16_by_zeros(head: bytes) -> str | None:
    half = len(head) // 2
    if half < 8:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > half * 0.4 and even < half * 0.02:
        return "utf-16-le"
    if even > half * 0.4 and odd < half * 0.02:
        return "utf-16-be"
    return None


def _from_bytes(body: bytes, declared: list[str]) -> str | None:
    wide = _utf16_by_zeros(body[:HEAD])
    if wide:
        return wide
    if body.isascii():
        return "iso2022_jp" if b"\x1b$" in body and "iso2022_jp" in declared else "ascii"
    text = _as_utf8(body)
    if text is not None and not _looks_east_asian(body, text, declared):
        return "utf-8"
    return known_charset(detect_encoding(body[:SAMPLE]))


def _as_utf8(body: bytes) -> str | None:
    """The text if the body is UTF-8, with a last character that may be cut; else None."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        whole = body[: error.start]
        cut = error.reason == "unexpected end of data" and not whole.isascii()
        return whole.decode("utf-8") if cut else None


def _looks_east_asian(body: bytes, text: str, declared: list[str]) -> bool:
    """Short GBK text can be valid UTF-8 by accident: it then shows only two-byte letters, and Han as declared."""
    if BEYOND_TWO_BYTES.search(text):
        return False
    for name in declared:
        if EAST_ASIAN.match(name):
            try:
                return HAN_OR_KANA.search(body.decode(name)) is not None
            except UnicodeDecodeError:
                continue
    return False
