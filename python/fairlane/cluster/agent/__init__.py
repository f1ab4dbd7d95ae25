"""The agent: from the jobs of Slurm to service levels on the real fabric, by predictions of a digital twin.

``config.AgentConfig`` is ``agent.toml`` as read; an ``agent.Agent`` with an open ``journal.Journal`` decides, and a
backend of ``backends.BACKENDS`` carries it out. ``journal.status_of`` reads what a journal says.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane.cluster.agent.agent import Agent
    from fairlane.cluster.agent.backends import BACKENDS
    from fairlane.cluster.agent.backends.base import Backend, Surroundings
    from fairlane.cluster.agent.config import AgentConfig
    from fairlane.cluster.agent.control import Period, Steered
    from fairlane.cluster.agent.decision import Candidate, Decision, Prediction, decide
    from fairlane.cluster.agent.jobs import Event, Listener, Setting, notify
    from fairlane.cluster.agent.journal import Entry, Journal, Status, status_of, steps_of
    from fairlane.cluster.agent.progress import Progress, Snapshot, gained, read
    from fairlane.cluster.agent.system import AgentError, BackendError
    from fairlane.cluster.agent.twin import Twin
    from fairlane.inputs.hosts import SlurmJob

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
    "BACKENDS": "fairlane.cluster.agent.backends",
    "Agent": "fairlane.cluster.agent.agent",
    "AgentConfig": "fairlane.cluster.agent.config",
    "AgentError": "fairlane.cluster.agent.system",
    "BackendError": "fairlane.cluster.agent.system",
    "Backend": "fairlane.cluster.agent.backends.base",
    "Surroundings": "fairlane.cluster.agent.backends.base",
    "Candidate": "fairlane.cluster.agent.decision",
    "Decision": "fairlane.cluster.agent.decision",
    "Prediction": "fairlane.cluster.agent.decision",
    "decide": "fairlane.cluster.agent.decision",
    "Entry": "fairlane.cluster.agent.journal",
    "Journal": "fairlane.cluster.agent.journal",
    "Status": "fairlane.cluster.agent.journal",
    "status_of": "fairlane.cluster.agent.journal",
    "steps_of": "fairlane.cluster.agent.journal",
    "Event": "fairlane.cluster.agent.jobs",
    "Listener": "fairlane.cluster.agent.jobs",
    "notify": "fairlane.cluster.agent.jobs",
    "Period": "fairlane.cluster.agent.control",
    "Steered": "fairlane.cluster.agent.control",
    "Progress": "fairlane.cluster.agent.progress",
    "Snapshot": "fairlane.cluster.agent.progress",
    "gained": "fairlane.cluster.agent.progress",
    "read": "fairlane.cluster.agent.progress",
    "Setting": "fairlane.cluster.agent.jobs",
    "SlurmJob": "fairlane.inputs.hosts",
    "Twin": "fairlane.cluster.agent.twin",
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
