"""Production of a moment: real allocations whose nodes do not overlap, with drawn profiles of communication."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.seeds import Purpose, stream
from fairlane.core.units import SIZE
from fairlane.inputs.csv_rows import read_rows
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario.models import Job, Placement
from fairlane.model.workload import WORKLOADS, Workload

ALL = 19 * 18 * 10
"""Hosts of the Booster partition: 19 cells of 18 leaf switches of 10 nodes each."""
LATEST = 10**8
"""No job of production starts later, ps."""
LEAST_BUSY, MOST_BUSY = 0.001, 0.95
"""Limits of the share of the time for which a job communicates."""


@dataclass(frozen=True)
class Moment:
    """The hosts of the measured job, those of the jobs beside it, and the others in random order."""

    own: Sequence[int]
    others: Sequence[Sequence[int]]
    rest: Sequence[int]


@cache
def hosts() -> Mapping[str, int]:
    """The host of each node of the Booster partition: hosts count up leaf by leaf, cell by cell."""
    leonardo = Fabric.build(FabricTable.read({"topology": "dragonfly_plus", "preset": "leonardo"}).spec)
    return {node: host for host, node in enumerate(leonardo.host_names[:ALL])}


@cache
def allocations(file: Path) -> Sequence[Sequence[int]]:
    """The hosts of each job with nodes of the Booster partition only."""
    host = hosts()
    lists = (row["nodes"].split() for row in read_rows(file, ("job", "nodes"), ("hosts",)))
    return tuple(tuple(host[name] for name in names) for names in lists if all(name in host for name in names))


def moment(known: Sequence[Sequence[int]], size: int, seed: int) -> Moment:
    """A moment in which the measured job has the nodes of an allocation of its size.

    The others are taken in random order, each if none of its nodes is taken.
    """
    order = stream(seed, Purpose.BACKGROUND, 0).permutation(len(known)).tolist()
    first = next((number for number in order if len(known[number]) == size), None)
    if first is None:
        allowed = ", ".join(map(str, sorted({len(allocation) for allocation in known})))
        raise ScenarioError(Problem("jobs[0].ranks", "no allocation has so many nodes", size, allowed))
    taken, others = set(known[first]), []
    for number in order:
        if taken.isdisjoint(known[number]):
            taken.update(known[number])
            others.append(known[number])
    rest = stream(seed, Purpose.BACKGROUND, 2).permutation(ALL).tolist()
    return Moment(known[first], others, [host for host in rest if host not in taken])


@dataclass(frozen=True)
class Profile:
    """A kind of communication: a workload, its relative weight, and the bytes of a phase that a host's link carries."""

    workload: str
    weight: float
    bytes: int
    spread: float
    """Standard deviation of the logarithm of the bytes."""
    parameters: Mapping[str, Any]

    def draw(self, rng: numpy.random.Generator, nodes: int, busy: float, rate: float) -> tuple[Workload, int]:
        """A workload on so many nodes, busy for this share of the time on links of ``rate`` bytes/s; its period, ps."""
        kind = WORKLOADS.find(self.workload)
        volume = self.bytes * float(numpy.exp(self.spread * rng.standard_normal()))
        messages = {"all_to_all": nodes - 1, "halo3d": 6, "uniform_random": 8}.get(self.workload, 1)
        size = max(4096, round(volume / messages))
        through = size * (nodes - 1 if self.workload == "incast" else messages)
        exchange = through / rate * 1e12
        period = round(exchange / busy)
        fixed: dict[str, Any] = {"sides": [nodes], "steps": [1]} if self.workload == "shift" else {}
        once = {} if self.workload == "uniform_random" else {"messages_per_iteration": 1}
        parameters = {
            **once,
            **fixed,
            **self.parameters,
            "message_size": f"{size} B",
            "compute": f"{period - round(exchange)} ps",
        }
        return kind(**parameters), period


def profiles(table: Sequence[Mapping[str, Any]]) -> Sequence[Profile]:
    """The profiles that a study lists."""
    entries = []
    for number, given in enumerate(table):
        known = ("workload", "weight", "bytes", "spread", "parameters")
        for key in given:
            if key not in known:
                raise ScenarioError(Problem.unknown(f"measure.arguments.profiles[{number}].{key}", "key", key, known))
        entries.append(Profile(**{"parameters": {}, **given, "bytes": int(SIZE.parse(given["bytes"]))}))
    return entries


def jobs(beside: Moment, given: Mapping[str, Any], rate: float, seed: int) -> Iterator[Job]:
    """The jobs of production. Each communicates for a share of the time that is drawn around ``load``.

    The other hosts have jobs of one node each, which the allocations lack: what these send goes to storage. A server is
    one of their hosts, with so many ``clients``; a share ``load`` of the servers is written to, all the time, for such
    bursts are longer than what is simulated.
    """
    kinds, load = profiles(given["profiles"]), given["load"]
    weights = numpy.array([kind.weight for kind in kinds])
    for number, nodes in enumerate(beside.others):
        rng = stream(seed, Purpose.BACKGROUND, 1, number)
        kind = kinds[rng.choice(len(kinds), p=weights / weights.sum())]
        busy = min(MOST_BUSY, 2 * load * float(rng.random()) + LEAST_BUSY)
        workload, period = kind.draw(rng, len(nodes), busy, rate)
        yield _job(f"production-{number}", nodes, workload, int(rng.integers(min(period, LATEST))))
    storage, size = profiles([given["storage"]])[0], 1 + given["clients"]
    for number in range(len(beside.rest) // size):
        nodes = beside.rest[number * size : (number + 1) * size]
        rng = stream(seed, Purpose.BACKGROUND, 3, number)
        if rng.random() < load:
            workload, _ = storage.draw(rng, size, 1, rate)
            yield _job(f"storage-{number}", nodes, workload, 0)


def _job(name: str, nodes: Sequence[int], workload: Workload, start: int) -> Job:
    placement = Placement(name="list", hosts=list(nodes))
    return Job(name=name, ranks=len(nodes), workload=workload, placement=placement, start=f"{start} ps")
