"""Makes partitions: raw from what was collected, clean from raw, feature from clean.

Belongs here: the wiring of collector, parser, cleaning chain and committer, and the order of commits. Every function
takes a list of source days, of any sources, commits once a table for all of them, and records states last.
Not here: how any of them works, and when they run.
"""
