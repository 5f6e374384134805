"""Front doors for readers: DuckDB with every table by name, Trino, and the comparison of all engines.

Belongs here: connections, views, `verify`. Not here: anything that changes a table.
"""

from lakehouse.query.duck import Connection, connect
from lakehouse.query.verify import TableReport, VerifyReport, verify

__all__ = ["Connection", "TableReport", "VerifyReport", "connect", "verify"]
