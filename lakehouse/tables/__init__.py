"""The table kernel: registered schemas become Iceberg tables, frames become partitions, one committer changes them.

Belongs here: schema registry, Arrow normalisation, partition split and writing, locks, the committer, decisions and
effective pointers, restore, upkeep. Not here: what the rows mean, and any reading for people (`query`).
"""

from lakehouse.tables.projection import keep_nulls

keep_nulls()
