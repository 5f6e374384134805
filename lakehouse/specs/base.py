"""What all declared models share: unknown keys are errors, values never change after loading."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints


class Declared(BaseModel):
    """Base of every model read from `catalog/`."""

    model_config = ConfigDict(extra="forbid", frozen=True)


CodeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
VersionRef = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}@[1-9][0-9]{0,5}$")]


def split_ref(ref: str) -> tuple[str, int]:
    """`news@3` as `("news", 3)`."""
    name, _, number = ref.partition("@")
    return name, int(number)
