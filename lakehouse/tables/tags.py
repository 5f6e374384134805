"""Tags of table snapshots: one a business day for time travel by day, one a release for readers who need a fixed state.

Day tags are dropped after 60 days, release tags only by hand. Never one per partition: commits slow down with tags.
"""

from __future__ import annotations
