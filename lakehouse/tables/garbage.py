"""Which files of a table nothing needs any more, and their removal."""

from __future__ import annotations
