"""Invented stories: material, a seed and a key give the same story for ever.

Belongs here: what a story says. Not here: how a page shows it (`skins`) or where it stands (`columns`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

MATERIAL = Path(__file__).parent / "material"


@dataclass(frozen=True, slots=True)
class Story:
    """What one page truly says. `published` is aware, in the zone of the page; None where the page tells no time."""

    path: str
    tag: str
    title: str
    paragraphs: tuple[str, ...]
    published: datetime | None
    author: str | None
    origin: str | None
    language: str

    @property
    def body(self) -> str:
        """Paragraphs, one a line."""
        return "\n".join(self.paragraphs)

    def at(self, path: str, published: datetime | None) -> Story:
        """The same story at another place and time."""
        return replace(self, path=path, published=published)


class Slots:
    """Fills `{person}`, `{place}`… with one cast a story, and `{n}`, `{nn}`, `{nnn}` with a number each time."""

    def __init__(self, cast: dict[str, list[str]], rng: random.Random) -> None:
        self._rng = rng
        self._cast = {name: rng.choice(choices) for name, choices in cast.items()}

    def __getitem__(self, name: str) -> str:
        ranges = {"n": (2, 9), "nn": (11, 98), "nnn": (120, 980)}
        return str(self._rng.randint(*ranges[name])) if name in ranges else self._cast[name]

    def fill(self, text: str) -> str:
        """`text` with its slots filled."""
        return text.format_map(self)


@cache
def read_material(name: str) -> dict[str, Any]:
    """The words of one paper: cast, backgrounds, closings and topics."""
    material: dict[str, Any] = yaml.safe_load((MATERIAL / f"{name}.yaml").read_text(encoding="utf-8"))
    return material


def write_story(material: str, key: str, *, topic: int | str, title: int | None = None, origin: str | None) -> Story:
    """One story of a topic (by number or tag); the same key gives the same words. It stands nowhere yet."""
    words = read_material(material)
    rng = random.Random(f"{material}/{key}")
    chosen = _topic(words, topic)
    slots = Slots(words["cast"], rng)
    titles = chosen["titles"]
    wanted = titles[title % len(titles)] if title is not None else rng.choice(titles)
    english = material.endswith("_en")
    join = " ".join if english else "".join
    facts = iter(rng.sample(chosen["facts"], 6))
    quotes = iter(rng.sample(chosen["quotes"], 2))
    backgrounds = iter(rng.sample(words["backgrounds"], 3))
    outline = [
        [rng.choice(chosen["leads"]), next(facts)],
        [next(facts), next(backgrounds)],
        [next(quotes), next(facts)],
        [next(backgrounds), next(facts), next(facts)],
        [next(quotes), next(backgrounds)],
        [next(facts), rng.choice(words["closings"])],
    ]
    return Story(
        path="",
        tag=chosen["tag"],
        title=slots.fill(wanted),
        paragraphs=tuple(join(slots.fill(sentence) for sentence in part) for part in outline),
        published=None,
        author=rng.choice(words["cast"]["person"]),
        origin=origin,
        language="en" if english else "zh",
    )


def write_notice(key: str, number: int) -> Story:
    """One public notice; `number` chooses the project."""
    words = read_material("notices_zh")
    rng = random.Random(f"notice/{key}")
    project, scope = words["projects"][number % len(words["projects"])]
    office = rng.choice(words["office"])
    slots = Slots({"project": [project], "scope": [scope], "office": [office]}, rng)
    return Story(
        path="",
        tag="招标公告",
        title=f"{project}公开招标公告",
        paragraphs=tuple(slots.fill(text) for text in words["paragraphs"]),
        published=None,
        author=None,
        origin=office,
        language="zh",
    )


def _topic(words: dict[str, Any], topic: int | str) -> dict[str, Any]:
    topics: list[dict[str, Any]] = words["topics"]
    if isinstance(topic, int):
        return topics[topic % len(topics)]
    return next(item for item in topics if item["tag"] == topic)
