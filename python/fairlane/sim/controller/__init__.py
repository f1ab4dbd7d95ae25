"""Controllers: they set service levels while jobs run, from the work of the jobs.

A controller is a class; a line in ``CONTROLLERS`` gives it a name. Users bring their own as ``file.py:ClassName``, by
the name of an entry point ``fairlane.controllers`` of an installed package, or as an object. ``control`` runs one,
period by period, on fresh short simulations or on one continuous simulation.
"""

from typing import Any

from fairlane.inputs.registry import Registry
from fairlane.sim.controller.base import Controller, JobWork, Settings, Work
from fairlane.sim.controller.constant import Fixed, Isolate, NoControl
from fairlane.sim.controller.digital_twin import DigitalTwin
from fairlane.sim.controller.loop import Mode, Outcome, Phases, control, controller_of, row_of
from fairlane.sim.controller.process_prioritization import ProcessPrioritization
from fairlane.sim.controller.slack import Slack

__all__ = [
    "CONTROLLERS",
    "Controller",
    "DigitalTwin",
    "Fixed",
    "Isolate",
    "JobWork",
    "Mode",
    "NoControl",
    "Outcome",
    "Phases",
    "ProcessPrioritization",
    "Settings",
    "Slack",
    "Work",
    "control",
    "controller_of",
    "controller_of_real_jobs",
    "row_of",
]


CONTROLLERS: Registry[type[Controller]] = Registry(
    "controller",
    "fairlane.controllers",
    {
        "none": NoControl,
        "isolate": Isolate,
        "fixed": Fixed,
        "process_prioritization": ProcessPrioritization,
        "slack": Slack,
        "digital_twin": DigitalTwin,
    },
    base=Controller,
    unread=NoControl,
)
"""All controllers by name."""


def controller_of_real_jobs(given: Any) -> Any:
    """A controller as ``CONTROLLERS.read`` reads it, with its defaults for real jobs; for models' validators."""
    return CONTROLLERS.read(given).for_real_jobs()
