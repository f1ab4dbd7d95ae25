"""Cost of a controller on real jobs: the time of its periods that reading progress and changing settings take.

An agent measures it in every period and keeps it in its journal; a period should be several times as long, because
until the settings of a period are in force those of the last one hold.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy

from fairlane.core.wording import seconds

KEPT = 200
"""Number of the last periods that count, and of the last changes."""
TIMES = 3
"""A period should be this many times as long as the cost."""
_FEWEST = 5  # periods before anything is said about their length
SCHEMA = """
CREATE TABLE IF NOT EXISTS periods (
    id INTEGER PRIMARY KEY, backend TEXT NOT NULL, period_s REAL NOT NULL, read_s REAL NOT NULL, change_s REAL NOT NULL
);
"""


def parts(read_s: Sequence[float], change_s: Sequence[float]) -> list[dict[str, Any]]:
    """What takes time, how often it was measured, median and 95th percentile, s."""
    return [
        {"what": what, "times": len(spent), "median_s": median(spent), "p95_s": float(numpy.quantile(spent, 0.95))}
        for what, spent in (("reading all ranks", read_s), ("a change, verified", change_s))
        if spent
    ]


@dataclass(frozen=True)
class Cost:
    """Cost of a controller: of its last periods, and of its last changes."""

    period_s: float
    """Length of a period, s."""
    read_s: Sequence[float]
    """Time for reading the progress of all ranks, s, by period."""
    change_s: Sequence[float]
    """Time until other settings were in force and verified, s, by change."""

    @property
    def total_s(self) -> float:
        """Median time for reading, and for a change if there was one, s."""
        return sum(median(spent) for spent in (self.read_s, self.change_s) if spent)

    @property
    def warning(self) -> str:
        """Why the period is too short; empty if it is not, or too few were measured."""
        if len(self.read_s) < _FEWEST or self.period_s >= TIMES * self.total_s:
            return ""
        period, spent, least = (seconds(value) for value in (self.period_s, self.total_s, TIMES * self.total_s))
        return f"progress.period = {period} is short: reading and changing take {spent}; allow {least}"

    def rows(self) -> list[dict[str, Any]]:
        """As of ``parts``."""
        return parts(self.read_s, self.change_s)

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return {"period_s": self.period_s, "total_s": self.total_s, "parts": self.rows(), "warning": self.warning}


def keep(data: sqlite3.Connection, backend: str, period_s: float, read_s: float, change_s: float) -> None:
    """Keeps what a period has cost, 0 without a change, and forgets what is too long ago."""
    statement = "INSERT INTO periods (backend, period_s, read_s, change_s) VALUES (?, ?, ?, ?)"
    data.execute(statement, (backend, period_s, read_s, change_s))
    periods = "SELECT id FROM periods WHERE backend = ? ORDER BY id DESC LIMIT 1 OFFSET ?"
    changes = "SELECT id FROM periods WHERE backend = ? AND change_s > 0 ORDER BY id DESC LIMIT 1 OFFSET ?"
    statement = f"DELETE FROM periods WHERE backend = ? AND id <= ({periods}) AND (change_s = 0 OR id <= ({changes}))"
    data.execute(statement, (backend, backend, KEPT, backend, KEPT))


def cost_of(data: sqlite3.Connection, backend: str) -> Cost | None:
    """The cost that a journal has of a controller with a backend and the present period; None if it has none."""
    if not data.execute("SELECT 1 FROM sqlite_master WHERE name = 'periods'").fetchone():
        return None
    query = "SELECT period_s, read_s, change_s FROM periods WHERE backend = ? ORDER BY id DESC"
    rows = data.execute(query, (backend,)).fetchall()
    if not rows:
        return None
    same = [row for row in rows if row[0] == rows[0][0]]
    return Cost(rows[0][0], [row[1] for row in same[:KEPT]], [row[2] for row in same if row[2]][:KEPT])
