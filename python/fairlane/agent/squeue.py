"""The jobs that run now, from ``squeue --json``.

The shape of the output depends on Slurm's version: ``job_state`` is text up to 23.02 and a list since 23.11; the nodes
are text at the top of a job, or in ``job_resources.nodes``, which is text up to 23.11 and a table since 24.05. All of
these are read. The output is not filtered by ``squeue``, because 22.05 ignores its filters with ``--json``.
"""

from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecodeError
from typing import Any

from fairlane.agent.commands import call
from fairlane.agent.errors import AgentError
from fairlane.agent.jobs import SlurmJob, printable
from fairlane.errors import ScenarioError
from fairlane.inputs.files import NestingError, parse_json
from fairlane.slurm import expand

_PRESENT = {"RUNNING", "SUSPENDED", "CONFIGURING"}
"""States of jobs that have nodes. A job in its prolog is configuring."""
_LEAVING = "COMPLETING"
"""The flag of a job whose processes have ended."""


def running(command: Sequence[str], timeout_s: float) -> dict[str, SlurmJob]:
    """The jobs that have nodes now, by number. Raises ``AgentError`` if Slurm does not answer as expected."""
    return read_jobs(call(command, timeout_s, AgentError), " ".join(command))


def read_jobs(text: str, shown: str = "squeue") -> dict[str, SlurmJob]:
    """The jobs that have nodes in what squeue, ``shown`` in messages, has printed. Raises ``AgentError``."""
    try:
        data = parse_json(text)
    except (JSONDecodeError, NestingError) as error:
        raise AgentError(f"{shown}: printed no JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("jobs"), list):
        raise AgentError(f"{shown}: printed JSON without a list `jobs`; allowed: the output of squeue --json")
    if errors := data.get("errors"):
        reported = errors if isinstance(errors, list) else [errors]
        raise AgentError(f"{shown}: Slurm reports {'; '.join(map(_message, reported))}")
    try:
        return {job.id: job for job in _present(data["jobs"])}
    except ScenarioError as error:
        raise AgentError(f"{shown}: {error}") from None


def _message(error: Any) -> str:
    if isinstance(error, Mapping):
        return str(error.get("description") or error.get("error") or error)
    return str(error)


def _present(jobs: Sequence[Any]) -> Iterator[SlurmJob]:
    for job in jobs:
        if not isinstance(job, Mapping) or _number(job.get("job_id")) is None:
            raise AgentError(f"squeue: a job without `job_id`: {str(job)[:80]}")
        states = _states(job.get("job_state"))
        nodes = _nodes(job)
        if nodes and states & _PRESENT and _LEAVING not in states:
            text = {key: printable(str(job.get(given) or "")) for key, given in _TEXTS.items()}
            yield SlurmJob(str(_number(job["job_id"])), tuple(expand(nodes)), **text)


_TEXTS = {"name": "name", "account": "account", "partition": "partition", "user": "user_name"}


def _states(given: Any) -> set[str]:
    return {str(one).upper() for one in (given if isinstance(given, list) else [given])}


def _number(given: Any) -> int | None:
    """A number, or a table of Slurm's that holds one."""
    if isinstance(given, Mapping):
        given = given.get("number") if given.get("set", True) else None
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _nodes(job: Mapping[str, Any]) -> str:
    """The list of a job's nodes; nothing if it has none."""
    resources = job.get("job_resources")
    inner = resources.get("nodes") if isinstance(resources, Mapping) else None
    if isinstance(inner, Mapping):
        inner = inner.get("list")
    found = job.get("nodes") or inner
    return found if isinstance(found, str) else ""
