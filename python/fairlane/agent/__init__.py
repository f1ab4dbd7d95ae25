"""The agent: from the jobs of Slurm to service levels on the real fabric, by predictions of a digital twin.

``config.AgentConfig`` is ``agent.toml`` as read; an ``agent.Agent`` with an open ``journal.Journal`` decides, and a
backend of ``backends.BACKENDS`` carries it out. ``journal.status_of`` reads what a journal says.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane.agent.agent import Agent
    from fairlane.agent.backends import BACKENDS
    from fairlane.agent.backends.base import Backend, Surroundings
    from fairlane.agent.config import AgentConfig
    from fairlane.agent.control import Period, Steered
    from fairlane.agent.decision import Candidate, Decision, Prediction, decide
    from fairlane.agent.jobs import Event, Listener, Setting, notify
    from fairlane.agent.journal import Entry, Journal, Status, status_of, steps_of
    from fairlane.agent.progress import Progress, Snapshot, gained, read
    from fairlane.agent.system import AgentError, BackendError
    from fairlane.agent.twin import Twin
    from fairlane.slurm import SlurmJob

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

_HOME = {
    "BACKENDS": "fairlane.agent.backends",
    "Agent": "fairlane.agent.agent",
    "AgentConfig": "fairlane.agent.config",
    "AgentError": "fairlane.agent.system",
    "BackendError": "fairlane.agent.system",
    "Backend": "fairlane.agent.backends.base",
    "Surroundings": "fairlane.agent.backends.base",
    "Candidate": "fairlane.agent.decision",
    "Decision": "fairlane.agent.decision",
    "Prediction": "fairlane.agent.decision",
    "decide": "fairlane.agent.decision",
    "Entry": "fairlane.agent.journal",
    "Journal": "fairlane.agent.journal",
    "Status": "fairlane.agent.journal",
    "status_of": "fairlane.agent.journal",
    "steps_of": "fairlane.agent.journal",
    "Event": "fairlane.agent.jobs",
    "Listener": "fairlane.agent.jobs",
    "notify": "fairlane.agent.jobs",
    "Period": "fairlane.agent.control",
    "Steered": "fairlane.agent.control",
    "Progress": "fairlane.agent.progress",
    "Snapshot": "fairlane.agent.progress",
    "gained": "fairlane.agent.progress",
    "read": "fairlane.agent.progress",
    "Setting": "fairlane.agent.jobs",
    "SlurmJob": "fairlane.slurm",
    "Twin": "fairlane.agent.twin",
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
