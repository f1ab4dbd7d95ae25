"""The jobs that run now, from ``squeue --json``."""

from collections.abc import Sequence
from json import JSONDecodeError

from fairlane.agent.commands import call
from fairlane.agent.errors import AgentError
from fairlane.errors import ScenarioError
from fairlane.inputs.files import NestingError, parse_json
from fairlane.inputs.slurm_jobs import jobs_of_json
from fairlane.slurm.jobs import SlurmJob


def running(command: Sequence[str], timeout_s: float) -> dict[str, SlurmJob]:
    """The jobs that have nodes now, by number. Raises ``AgentError`` if Slurm does not answer as expected."""
    return read_jobs(call(command, timeout_s, AgentError), " ".join(command))


def read_jobs(text: str, shown: str = "squeue") -> dict[str, SlurmJob]:
    """The jobs that have nodes in what squeue, ``shown`` in messages, has printed. Raises ``AgentError``."""
    try:
        return {job.id: job for job in jobs_of_json(parse_json(text))}
    except (JSONDecodeError, NestingError) as error:
        raise AgentError(f"{shown}: printed no JSON: {error}") from None
    except ScenarioError as error:
        raise AgentError(f"{shown}: {error}") from None
