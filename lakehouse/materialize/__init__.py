"""Makes partitions: raw from what was collected, clean from raw, feature from clean.

Belongs here: the wiring of collector, parser, cleaning chain and committer, and the order of commits. Every function
takes a list of source days, of any sources, commits once a table for all of them, and records states last.
"""

from lakehouse.materialize.clean import materialize_clean
from lakehouse.materialize.feature import materialize_feature
from lakehouse.materialize.raw import materialize_raw
from lakehouse.materialize.result import PartitionResult

__all__ = ["PartitionResult", "materialize_clean", "materialize_feature", "materialize_raw"]
    "Column",
    "PartitionResult",
    "Progress",
    "materialize_clean",
    "materialize_feature",
    "materialize_raw",
]
