"""Events of jobs over a local socket: Slurm's prolog and epilog report that a job begins or ends.

``fairlane agent notify`` is the client for the prolog and the epilog: it sends one line of JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

from fairlane.agent.system import AgentError, LocalServer, ask
from fairlane.errors import Problem, ScenarioError
from fairlane.signals import HANG_S
from fairlane.slurm import SlurmJob, expand, printable

What = Literal["begin", "end"]


@dataclass(frozen=True)
class Event:
    """A job begins or ends."""

    what: What
    job: SlurmJob
    """The job; of one that ends only its number counts."""


def read_event(line: bytes) -> Event:
    """An event from a line of JSON; raises ``ValueError`` in words."""
    data = json.loads(line)
    if not isinstance(data, dict) or data.get("event") not in ("begin", "end"):
        raise ValueError('expected a JSON object with "event": "begin" or "end"')
    if not str(data.get("job") or "").isdigit():
        raise ValueError('expected "job" to be the number of a job')
    texts = {key: printable(str(data.get(key) or "")) for key in ("name", "account", "partition", "user")}
    nodes = tuple(expand(str(data.get("nodes") or "")))
    if data["event"] == "begin" and not nodes:
        raise ValueError('expected "nodes" with a list of nodes, as "n[1-4]"')
    return Event(data["event"], SlurmJob(str(int(data["job"])), nodes, **texts))


def from_environment(what: What, environment: Mapping[str, str]) -> dict[str, Any]:
    """An event from the variables that Slurm sets for a prolog or an epilog; raises ``ScenarioError``."""
    job = environment.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        message = "not set to the number of a job: call this in PrologSlurmctld and EpilogSlurmctld"
        raise ScenarioError(Problem("SLURM_JOB_ID", message, job or None))
    keys = {"nodes": "NODELIST", "name": "NAME", "account": "ACCOUNT", "partition": "PARTITION", "user": "USER"}
    fields = {key: environment.get(f"SLURM_JOB_{name}", "") for key, name in keys.items()}
    fields = {
        key: "" if value == "(null)" else printable(value) for key, value in fields.items()
    }  # as of a job without account
    return {"event": what, "job": job, **fields}


def notify(path: Path, event: Mapping[str, Any], timeout_s: float = HANG_S) -> None:
    """Sends an event; raises ``AgentError`` if no agent takes it within this time."""
    answer = ask(path, json.dumps(event).encode(), timeout_s)
    if answer != "ok":
        raise AgentError(f"{path}: the agent refuses the event: {answer or 'no answer'}")


class Listener(LocalServer):
    """The socket of an agent: what arrives is in ``events``. Use it in a ``with`` statement.

    Args:
        path: Where the socket is.
        group: A group of users who may write to it besides its owner.
    """

    def __init__(self, path: Path, group: str | None = None) -> None:
        self.events: SimpleQueue[Event] = SimpleQueue()
        super().__init__(path, self._take, group)

    def _take(self, line: bytes) -> str:
        self.events.put(read_event(line))
        return "ok"
