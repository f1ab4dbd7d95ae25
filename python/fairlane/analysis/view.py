"""What an analysis has to know besides a record: the fabric, its links, and where the ranks of each job were."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import polars as pl

from fairlane.engine.measured import frame
from fairlane.fabric import Fabric
from fairlane.inputs.files import MOST_STORED, parse_json, read_bytes
from fairlane.results.derive import links
from fairlane.results.errors import ResultsError
from fairlane.results.store import RESOLVED, file_of_run


@dataclass(frozen=True)
class View:
    """The fabric of a run and the places of its jobs."""

    fabric: Fabric
    links: pl.DataFrame
    """Its links, as in the table ``ports`` of a run."""
    names: tuple[str, ...]
    """The jobs' names, by number."""
    hosts: tuple[tuple[int, ...], ...]
    """The host of each rank, by job."""

    @classmethod
    def of(cls, fabric: Mapping[str, Any], names: Sequence[str], hosts: Sequence[Sequence[int]]) -> Self:
        """The view of a fabric as a resolved scenario describes it, with its jobs."""
        from fairlane import _core

        core = _core.Fabric(json.dumps(fabric))
        table = links(frame(core.links()), core.classes())
        return cls(Fabric(core), table, tuple(names), tuple(tuple(of_job) for of_job in hosts))

    def host_names(self, job: str) -> list[str]:
        """The name of the host of each rank of a job."""
        names = self.fabric.host_names
        return [names[host] for host in self.hosts[self.names.index(job)]]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The view of a run by its folder. Raises ``ResultsError`` without what the scenario was resolved to."""
        spec, path = spec_of(folder), folder / RESOLVED
        try:
            jobs = spec["jobs"]
            found = cls.of(spec["fabric"], [job["name"] for job in jobs], [job["hosts"] for job in jobs])
        except (ValueError, KeyError, TypeError) as error:
            raise ResultsError(f"{path}: is not what a run leaves there: {error}") from error
        wrong = [host for hosts in found.hosts for host in hosts if not 0 <= host < found.fabric.hosts]
        if wrong:
            words = f"host {wrong[0]} of a fabric with {found.fabric.hosts} hosts"
            raise ResultsError(f"{path}: is not what a run leaves there: {words}")
        return found


def spec_of(folder: Path) -> dict[str, Any]:
    """The resolved scenario of a run's folder. Raises ``ResultsError``."""
    path = folder / RESOLVED
    if not path.is_file():
        words = "is missing; without it nothing is known of the fabric and of the jobs' hosts"
        raise ResultsError(f"{path}: {words}")
    listed = file_of_run(folder, RESOLVED)
    try:
        found = parse_json(read_bytes(listed, MOST_STORED))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: is not what a run leaves there: {error}") from error
    for key, kind in {"fabric": dict, "jobs": list, "observe": dict}.items():
        if not isinstance(found, dict) or not isinstance(found.get(key), kind):
            raise ResultsError(f"{path}: is not what a run leaves there: {key!r} is missing")
    return dict(found)
