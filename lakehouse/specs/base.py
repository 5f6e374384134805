"""What all declared models share: unknown keys are errors, values never change after loading."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints


class Declared(BaseModel):
    """Base of every model read from `catalog/`."""

    model_config = ConfigDict(extra="forbid", frozen=True)


CodeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
VersionRef = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}@[1-9][0-9]{0,5}$")]


class Misfit(ValueError):
    """Raised by validators: what is wrong, what would be right, and where below the validated value it is."""

    def __init__(self, wrong: str, right: str = "", path: tuple[str | int, ...] = ()) -> None:
        self.wrong = wrong
        self.right = right
        self.path = path
        super().__init__(f"{wrong}; {right}" if right else wrong)


def split_ref(ref: str) -> tuple[str, int]:
    """`news@3` as `("news", 3)`."""
    name, _, number = ref.partition("@")
    return name, int(number)


def nearest_name(wrong: str, possible: Iterable[str]) -> str | None:
    """The one possible name that `wrong` was most likely meant to be, None where none is near."""
    return next(iter(_near(wrong, possible, cutoff=0.7)), None)


def near_names(wrong: str, possible: Iterable[str], noun: str, most: int = 12) -> str:
    """A hint for a name that does not exist: `did you mean 'x'?`, else the possible names, else that there are none."""
    names = sorted(set(possible))
    near = _near(wrong, names, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(repr(name) for name in near) + "?"
    if not names:
        return f"there are no {noun}"
    shown = ", ".join(names[:most])
    return f"{noun} are {shown}" if len(names) <= most else f"{noun} are {shown} and {len(names) - most} more"


def _near(wrong: str, possible: Iterable[str], cutoff: float) -> list[str]:
    """Up to three names like `wrong` in any case, best first, none much worse than the best."""
    written = {name.lower(): name for name in sorted(set(possible), reverse=True)}
    text = wrong[:100].lower()
    near = difflib.get_close_matches(text, written, n=3, cutoff=cutoff)
    nearness = [difflib.SequenceMatcher(None, name, text).ratio() for name in near]
    return [written[name] for name, ratio in zip(near, nearness, strict=True) if ratio > max(nearness) - 0.1]
