"""What can go wrong outside of the agent: Slurm, OpenSM and the kernel."""

from fairlane.errors import FairlaneError


class AgentError(FairlaneError):
    """The agent cannot start or go on: another one runs, Slurm does not answer, the journal cannot be used."""


class BackendError(FairlaneError):
    """A backend refused a setting, or what is in force afterwards is not what was written."""
