"""The hosts of the fabric by Slurm's names, and processes of jobs: what the network can tell apart counts as one."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from fairlane.cluster.agent.backends import Backend
from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.progress import Progress
from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.model.fabric.view import Fabric


class Hosts:
    """The fabric of a configuration, and which of its hosts is which node."""

    def __init__(self, config: AgentConfig) -> None:
        self.fabric = Fabric.build(config.fabric.spec)
        self._nodes: dict[str, str] = dict(config.slurm.pairs())
        self._known = frozenset(self.fabric.host_names)

    def named(self, node: str) -> str:
        """The name that a node's host has, known or not."""
        return self._nodes.get(node, node)

    def of(self, node: str) -> str:
        """The host of a node; raises ``ScenarioError`` if the fabric does not have it."""
        host = self.named(node)
        if host not in self._known:
            names = self.fabric.host_names
            problem = Problem.unknown("slurm.hosts", "host of the fabric", host, names[:20], host)
            raise ScenarioError(problem)
        return host


@dataclass(frozen=True)
class Unit:
    """A rank of a job; or all of its ranks on a host, if no level can be given to one of them alone."""

    endpoint: str
    """Name that gets a level: the host, or a rank's own name there (``Backend.endpoints``)."""
    ranks: tuple[int, ...]


def units_of(
    processes: Iterable[Progress], hosts: Hosts, backend: Backend
) -> tuple[dict[str, tuple[Unit, ...]], dict[str, str]]:
    """The units of each job, in order of their first ranks, and why jobs are left out.

    A job is left out while a rank below its highest is missing, if one of its hosts does not answer the backend, and if
    it has an endpoint that another job has too.
    """
    units_by_job: dict[str, tuple[Unit, ...]] = {}
    left_out: dict[str, str] = {}
    by_job = groupby(sorted(processes, key=lambda process: (process.job, process.rank)), lambda process: process.job)
    for job, group in by_job:
        members = list(group)
        ranks = [process.rank for process in members]
        if missing := sorted(set(range(ranks[-1] + 1)) - set(ranks)):
            left_out[job] = f"no progress of rank {missing[0]} is known"
            continue
        if silent := [host for process in members if (host := hosts.named(process.host)) in backend.absent]:
            left_out[job] = no_answer(silent[0], backend.absent[silent[0]])
            continue
        try:
            units_by_job[job] = tuple(_units(members, hosts, backend))
        except ScenarioError as error:
            left_out[job] = str(error).splitlines()[0]
    owners = Counter(unit.endpoint for units in units_by_job.values() for unit in units)
    for job, units in list(units_by_job.items()):
        if shared := [unit.endpoint for unit in units if owners[unit.endpoint] > 1]:
            left_out[job] = f"shares {shared[0]} with another job: a level set for one would apply to both"
            del units_by_job[job]
    return units_by_job, left_out


def no_answer(machine: str, error: FairlaneError) -> str:
    """In words, that a machine of a job did not answer."""
    return f"{machine} does not answer: {error}"


def _units(processes: list[Progress], hosts: Hosts, backend: Backend) -> list[Unit]:
    units = []
    for node, group in groupby(
        sorted(processes, key=lambda process: (process.host, process.rank)), lambda process: process.host
    ):
        ranks = [process.rank for process in group]
        endpoints = backend.endpoints(hosts.of(node), len(ranks))
        if len(endpoints) == len(ranks):
            units += [Unit(name, (rank,)) for name, rank in zip(endpoints, ranks, strict=True)]
        else:
            units.append(Unit(endpoints[0], tuple(ranks)))
    return sorted(units, key=lambda unit: unit.ranks)
