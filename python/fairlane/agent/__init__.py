"""The agent: from the jobs of Slurm to service levels on the real fabric, by predictions of a digital twin.

``AgentConfig`` is ``agent.toml`` as read; an ``Agent`` with an open ``Journal`` decides, and a backend of ``BACKENDS``
carries it out. ``status_of`` reads what a journal says. ``fairlane agent`` is the command line. Names are imported when
they are first used: ``fairlane agent notify`` stands in the way of every job's start.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane.agent.agent import Agent
    from fairlane.agent.backends import BACKENDS, Backend, Surroundings
    from fairlane.agent.config import AgentConfig
    from fairlane.agent.control import Period, Steered
    from fairlane.agent.decision import Candidate, Decision, Prediction, decide
    from fairlane.agent.errors import AgentError, BackendError
    from fairlane.agent.events import Event, Listener, notify
    from fairlane.agent.jobs import Setting
    from fairlane.agent.journal import Entry, Journal, Status, status_of, steps_of
    from fairlane.agent.progress import Progress, Snapshot, gained, read
    from fairlane.agent.twin import Twin
    from fairlane.slurm.jobs import SlurmJob

__all__ = [
    "BACKENDS",
    "Agent",
    "AgentConfig",
    "AgentError",
    "Backend",
    "BackendError",
    "Candidate",
    "Decision",
    "Entry",
    "Event",
    "Journal",
    "Listener",
    "Period",
    "Prediction",
    "Progress",
    "Setting",
    "SlurmJob",
    "Snapshot",
    "Status",
    "Steered",
    "Surroundings",
    "Twin",
    "decide",
    "gained",
    "notify",
    "read",
    "status_of",
    "steps_of",
]

_MODULES = {
    "agent": ("Agent",),
    "control": ("Period", "Steered"),
    "backends": ("BACKENDS", "Backend", "Surroundings"),
    "config": ("AgentConfig",),
    "decision": ("Candidate", "Decision", "Prediction", "decide"),
    "errors": ("AgentError", "BackendError"),
    "events": ("Event", "Listener", "SlurmJob", "notify"),
    "jobs": ("Setting",),
    "journal": ("Entry", "Journal", "Status", "status_of", "steps_of"),
    "progress": ("Progress", "Snapshot", "gained", "read"),
    "twin": ("Twin",),
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use (PEP 562)."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
