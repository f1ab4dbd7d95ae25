"""Controllers: what decides service levels while jobs run, from the work that they did.

A controller is one file with one class, or a folder with its parts; a line in ``CONTROLLERS`` gives it a name.
``control`` runs one, period by period, on fresh short simulations or on one that goes on; ``run`` gives the same as
flat rows.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fairlane.controller.base import Controller, JobWork, Settings, Work
from fairlane.controller.fitting import check_jobs, fit
from fairlane.controller.fixed import Fixed
from fairlane.controller.isolate import Isolate
from fairlane.controller.loop import Mode, Outcome, Phases, control, row_of
from fairlane.controller.none import NoControl
from fairlane.controller.process_prioritization import ProcessPrioritization
from fairlane.controller.slack import Slack
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import unfold

if TYPE_CHECKING:
    from fairlane.scenario import Scenario

__all__ = [
    "CONTROLLERS",
    "Controller",
    "Fixed",
    "Isolate",
    "JobWork",
    "NoControl",
    "Outcome",
    "ProcessPrioritization",
    "Settings",
    "Slack",
    "Work",
    "check",
    "control",
    "make",
    "row_of",
    "run",
]

CONTROLLERS: dict[str, type[Controller]] = {
    controller.name: controller for controller in (NoControl, Isolate, Fixed, ProcessPrioritization, Slack)
}
"""Every controller that can be asked for by name."""


def make(name: str, parameters: Mapping[str, Any] | None = None) -> Controller:
    """A controller by name. Raises ``ScenarioError`` for an unknown name, or parameters that it does not have."""
    if name not in CONTROLLERS:
        raise ScenarioError(Problem.unknown("controller", "controller", name, list(CONTROLLERS), name))
    kind = CONTROLLERS[name]
    try:
        return kind.model_validate(dict(parameters or {}))
    except ValidationError as error:
        raise ScenarioError(problem.under(f"controller.{name}") for problem in unfold(error, kind)) from None


def check(scenario: "Scenario", name: str, parameters: Mapping[str, Any] | None = None) -> None:
    """Raises ``ScenarioError`` if there is no such controller, or it does not suit the scenario; simulates nothing."""
    made = make(name, parameters)
    check_jobs([scenario], made)
    fit(scenario, made)


def run(
    scenario: "Scenario | Phases",
    controller: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    mode: Mode = "episodes",
    period: str | int = "60 ms",
    periods: int = 500,
    seed: int = 1,
    **options: Any,
) -> list[dict[str, Any]]:
    """Runs a controller by name: a row for each period and job.

    ``options`` are those of ``control``: ``variants``, ``draws``, ``default``, ``isolated``, ``threads``.
    """
    made = make(controller, parameters)
    outcomes = control(scenario, made, mode=mode, period=period, periods=periods, seed=seed, **options)
    return [row_of(outcome, job) for outcome in outcomes for job in outcome.jobs]
