"""Which schema versions were registered, when, and with which commit: decisions of kind `schema`."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.clock import Clock
from lakehouse.specs.history import commit_of
from lakehouse.specs.schema import SchemaSpec
from lakehouse.tables.columns import spec_hash
from lakehouse.tables.committer import Committer
from lakehouse.tables.decisions import TABLE, Decision, Decisions, Recorded

KIND = "schema"


def record_versions(clock: Clock, committer: Committer, specs: Sequence[SchemaSpec]) -> None:
    """Record versions before a table takes them; one that is recorded already is left as it is.

    The table of decisions itself is made without: it would have to be there before it is.
    """
    specs = [spec for spec in specs if spec.table != TABLE]
    if not specs:
        return
    decisions, root = Decisions(committer, clock), committer.catalog.root
    known = {_version(one) for one in decisions.all(KIND)}
    new = [spec for spec in specs if (spec.dataset, spec.version) not in known]
    decisions.record_all(
        [
            Decision(
                KIND,
                {
                    "table": spec.table,
                    "hash": spec_hash(spec),
                    "commit": commit_of(root / "schemas" / spec.dataset / f"v{spec.version}.yaml"),
                },
                dataset=spec.dataset,
                schema_version=spec.version,
                reason=spec.changes,
                who=spec.reviewed_by,
            )
            for spec in new
        ]
    )


def registered_versions(decisions: Decisions) -> dict[tuple[str, int], Recorded]:
    """The first registration of every dataset and version."""
    return {_version(one): one for one in reversed(decisions.all(KIND))}


def _version(recorded: Recorded) -> tuple[str, int]:
    return recorded.decision.dataset or "", recorded.decision.schema_version or 0
