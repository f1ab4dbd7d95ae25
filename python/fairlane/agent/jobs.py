"""The service levels that jobs are given on the fabric."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Setting:
    """The service level of one job's traffic."""

    job: str
    """Slurm's number of the job."""
    level: int
    """Service level, 0 to 15."""
    hosts: tuple[str, ...]
    """The hosts of the job, by the fabric's names."""

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return {"job": self.job, "level": self.level, "hosts": list(self.hosts)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """From ``written``."""
        return cls(str(data["job"]), int(data["level"]), tuple(data["hosts"]))


Settings = tuple[Setting, ...]
"""The service levels of all jobs that have one of their own, in the order of the jobs' numbers."""


def ordered(settings: Iterable[Setting]) -> Settings:
    """Settings in the order of the jobs' numbers."""
    return tuple(sorted(settings, key=lambda one: (len(one.job), one.job)))


def levels_of(settings: Sequence[Setting]) -> dict[str, int]:
    """The service level of each host that has one of its own."""
    return {host: one.level for one in settings for host in one.hosts}
