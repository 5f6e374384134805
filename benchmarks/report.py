"""What a benchmark prints: one JSON object `{name, unit, ours, peers, ratio, detail}`."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of one benchmark. `ratio` above 1 is better than the peer unless the benchmark says otherwise."""

    name: str
    unit: str
    ours: float
    peers: Mapping[str, float]
    ratio: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Options:
    """How a benchmark was called."""

    as_json: bool
    quick: bool


def read_options(description: str | None) -> Options:
    """`--json` prints one JSON object, `--quick` measures less."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    parser.add_argument("--quick", action="store_true", help="smaller sizes; all benchmarks end within ten minutes")
    given = parser.parse_args()
    return Options(given.json, given.quick)


def print_report(report: Report, options: Options) -> None:
    """Print the figures, rounded, with the machine they come from; as text unless JSON was asked for."""
    values = {
        "name": report.name,
        "unit": report.unit,
        "ours": round(report.ours, 4),
        "peers": {peer: round(value, 4) for peer, value in report.peers.items()},
        "ratio": round(report.ratio, 3),
        "detail": {**report.detail, "cpus": psutil.cpu_count(), "python": platform.python_version()},
    }
    json.dump(values, sys.stdout, ensure_ascii=False, default=str, indent=None if options.as_json else 2)
    print()
