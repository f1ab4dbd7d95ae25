"""Methods of Wilke and Kenny 2020: the virtual lanes that a scenario needs, and mean throughput with its interval."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.core.errors import BuildError, ScenarioError
from fairlane.core.statistics import independent
from fairlane.model.scenario import Scenario
from fairlane.model.scenario.resolve import decide

if TYPE_CHECKING:
    from fairlane.study.sql import Database
    from fairlane.study.tasks.task import Stopwatch

MOST = 64
"""So many lanes are tried."""


def lanes(scenario: Scenario, _arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """A table ``lanes`` with the least number with which it is not refused; 0 if there is none."""
    with watch.lap("set-up"):
        least = next((count for count in range(1, MOST + 1) if _enough(scenario, count)), 0)
    return {"tables": {"lanes": {"lanes": [least]}}}


def _enough(scenario: Scenario, count: int) -> bool:
    try:
        decide(scenario.model_copy(update={"qos": scenario.qos.model_copy(update={"lanes": count})}))
    except (BuildError, ScenarioError, ValueError):
        return False
    return True


def means(tables: "Database") -> pl.DataFrame:
    """Mean throughput of ping-pong by size, bytes/s, with the 95% interval over repetitions of a size."""
    key = ["study", "fabric", "strategy", "kib"]
    rows = []
    for of, part in tables.ask("SELECT * FROM repetitions").group_by(key, maintain_order=True):
        mean = independent(part["rate"].to_list())
        assert mean is not None, "a size is repeated at least once"
        rows.append((*of, mean.value, mean.low, mean.high, part.height))
    return pl.DataFrame(rows, [*key, "mean", "low", "high", "repetitions"], orient="row")
