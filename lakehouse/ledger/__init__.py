"""Work in progress and an index: tasks, leases, rate-limit slots, workers, batches and partitions in SQL.

Belongs here: the tables, their migrations, and the transactions over them, on SQLite and PostgreSQL alike. Not here:
what a task means (`fetch/`), and anything that could not be rebuilt from the tables and the object store.
"""
