"""64-bit simhash of a text: near texts differ in few bits."""

from __future__ import annotations

import re
from hashlib import blake2b

TOKEN = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]", re.IGNORECASE)
BITS = 64
SHINGLE = 3
SAMPLE = 100_000


def simhash(text: str | None) -> str | None:
    """16 hex digits over shingles of three tokens (a latin word or one CJK character); None without tokens."""
    tokens = TOKEN.findall((text or "")[:SAMPLE].lower())
    if not tokens:
        return None
    grams: dict[str, int] = {}
    for start in range(max(len(tokens) - SHINGLE + 1, 1)):
        gram = "\x1f".join(tokens[start : start + SHINGLE])
        grams[gram] = grams.get(gram, 0) + 1
    sums = [0] * BITS
    for gram, weight in grams.items():
        value = int.from_bytes(blake2b(gram.encode(), digest_size=8).digest(), "big")
        for bit in range(BITS):
            sums[bit] += weight if value >> bit & 1 else -weight
    return f"{sum(1 << bit for bit in range(BITS) if sums[bit] > 0):016x}"


def distance(first: str, second: str) -> int:
    """Bits in which two simhashes differ, 0 to 64."""
    return (int(first, 16) ^ int(second, 16)).bit_count()
