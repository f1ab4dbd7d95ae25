"""The jobs that run now, from ``squeue --json``, and the service levels that they are given on the fabric."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any, Self

from fairlane.agent.system import AgentError, call
from fairlane.errors import ScenarioError
from fairlane.inputs.files import NestingError, parse_json
from fairlane.inputs.slurm_jobs import jobs_of_json
from fairlane.slurm import SlurmJob


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
