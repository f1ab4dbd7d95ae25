"""The jobs that run now, from ``squeue --json``, their service levels, and events that Slurm reports over a socket.

``fairlane agent notify`` is the client for Slurm's prolog and epilog: it sends one line of JSON.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, Self

from fairlane.cluster.agent.system import AgentError, LocalServer, ask, call
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.signals import HANG_S
from fairlane.inputs.files import NestingError, parse_json
from fairlane.inputs.hosts import SlurmJob, expand, printable
from fairlane.inputs.slurm_jobs import jobs_of_json


@dataclass(frozen=True)
class Setting:
    """The service level of one job's traffic."""

    job: str
    """Slurm's number of the job."""
    level: int
    """Service level, 0 to 15."""
    hosts: tuple[str, ...]
    """The hosts of the job, by the fabric's names; for a rank its endpoint (``Backend.endpoints``)."""
    rank: int | None = None
    """The rank that it is about; None for all of the job's traffic."""
    weight: float | None = None
    """Weight of the level relative to that of the default level; None for what the backend is configured with."""

    @property
    def shown(self) -> str:
        """In a line for the operator."""
        rank = "" if self.rank is None else f" rank {self.rank}"
        return f"job {self.job}{rank} level {self.level}" + ("" if self.weight is None else f" x {self.weight:g}")

    def written(self) -> dict[str, Any]:
        """As JSON."""
        record = {"job": self.job, "level": self.level, "hosts": list(self.hosts)}
        return record | {key: of for key in ("rank", "weight") if (of := getattr(self, key)) is not None}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """Read a setting that ``written`` has made."""
        hosts = tuple(data["hosts"])
        return cls(str(data["job"]), int(data["level"]), hosts, data.get("rank"), data.get("weight"))


NEUTRAL = Setting("", 0, (), weight=1.0)
"""The setting of a controller under which all traffic has the default level: what carries levels stays in place."""
Settings = tuple[Setting, ...]
"""The service levels of all jobs that have one of their own, in the order of the jobs' numbers."""


def ordered(settings: Iterable[Setting]) -> Settings:
    """Settings in the order of the jobs' numbers and of ranks."""
    return tuple(sorted(settings, key=lambda setting: (len(setting.job), setting.job, setting.rank or 0)))


def levels_of(settings: Sequence[Setting]) -> dict[str, int]:
    """The service level of each host that has one of its own."""
    return {host: setting.level for setting in settings for host in setting.hosts}


def weights_of(settings: Sequence[Setting]) -> dict[int, float]:
    """The relative weight of each service level for which settings have one."""
    return {setting.level: setting.weight for setting in settings if setting.weight is not None}


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
