"""Controllers: what decides service levels while jobs run, from the work that they did.

A controller is one file with one class, or a folder with its parts; a line in ``CONTROLLERS`` gives it a name. Users
bring their own as ``file.py:ClassName``, by the name of an entry point ``fairlane.controllers`` of an installed
package, or as an object. ``control`` runs one, period by period, on fresh short simulations or on one that goes on.
"""

from pydantic import ConfigDict

from fairlane.controller.base import Controller, JobWork, Settings, Work
from fairlane.controller.constant import Fixed, Isolate, NoControl
from fairlane.controller.loop import Mode, Outcome, Phases, control, controller_of, row_of
from fairlane.controller.process_prioritization import ProcessPrioritization
from fairlane.controller.slack import Slack
from fairlane.inputs.registry import Registry

__all__ = [
    "CONTROLLERS",
    "Controller",
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
    "row_of",
]


class _Unread(Controller):
    """Stands for a controller whose code is not to run: it takes any parameters, and sets nothing."""

    model_config = ConfigDict(extra="allow")

    def observe(self, work: Work) -> Settings:
        """Nothing."""
        del work
        return Settings()


CONTROLLERS: Registry[type[Controller]] = Registry(
    "controller",
    "fairlane.controllers",
    {
        "none": NoControl,
        "isolate": Isolate,
        "fixed": Fixed,
        "process_prioritization": ProcessPrioritization,
        "slack": Slack,
    },
    base=Controller,
    unread=_Unread,
)
"""Every controller that can be asked for by name."""
