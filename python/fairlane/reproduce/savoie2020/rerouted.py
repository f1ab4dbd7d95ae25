"""The same jobs under another routing: on the same hosts and with the same compute times, so that they compare."""

from fairlane.scenario import Scenario
from fairlane.scenario.resolve import decide
from fairlane.study.written import write

__all__ = ["rerouted"]


def rerouted(scenario: Scenario, routing: str) -> Scenario:
    """What the scenario decides under its own routing, written out, with another one."""
    compute = [job.compute for job in scenario.resolve().jobs]
    data = write(scenario, decide(scenario), ".", "").computing(compute).data
    return Scenario(**{**data, "fabric": {**data["fabric"], "routing": routing}})
