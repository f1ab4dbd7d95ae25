"""How many virtual lanes a scenario of Wilke and Kenny 2020 needs: the least number with which it is not refused."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlane.errors import BuildError, ScenarioError
from fairlane.scenario import Scenario
from fairlane.scenario.resolve import decide

if TYPE_CHECKING:
    from fairlane.tasks.task import Stopwatch

MOST = 64
"""So many lanes are tried."""


def lanes(scenario: Scenario, _arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """A table ``lanes`` with the number; 0 if it cannot be had at all."""
    with watch.lap("set-up"):
        found = next((count for count in range(1, MOST + 1) if _enough(scenario, count)), 0)
    return {"tables": {"lanes": {"lanes": [found]}}}


def _enough(scenario: Scenario, count: int) -> bool:
    try:
        decide(scenario.model_copy(update={"qos": scenario.qos.model_copy(update={"lanes": count})}))
    except (BuildError, ScenarioError, ValueError):
        return False
    return True
