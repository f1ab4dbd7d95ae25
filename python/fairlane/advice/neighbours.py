"""Advice for the jobs of a cluster at one moment: shared cables, likely victims, and what a move would do."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairlane.advice.allocations import NodeMap, moment, read_allocations
from fairlane.advice.sharing import Bundles, Move, Pair, Sharing

LOAD = 0.5
"""Default share of its bandwidth that a node sends."""
MOVES = 10
"""Pairs with the greatest harm whose victims are moved."""


@dataclass(frozen=True)
class Cables:
    """A bundle of parallel cables and the jobs that use it."""

    name: str
    kind: str
    cables: int
    utilisation: float
    """By all jobs together; above 1 they ask for more than it can carry."""
    jobs: dict[str, float]
    """The part of each job."""


@dataclass(frozen=True)
class Neighbours:
    """The jobs of one moment on the cables that they share."""

    moment: int
    nodes: int
    """Nodes of the map."""
    jobs: dict[str, int]
    """Nodes of each job of the moment."""
    left_out: int
    """Jobs of the file that are not of this moment."""
    outside: dict[str, tuple[str, ...]]
    """Jobs of the file without any node of the map, with their nodes."""
    load: float
    sharing: Sharing
    moves: tuple[Move, ...]

    @property
    def pairs(self) -> list[Pair]:
        """Pairs of a victim and an aggressor with cables in common, those with the greatest harm first."""
        return self.sharing.pairs

    def cables(self) -> Iterator[Cables]:
        """Bundles that several jobs share, those with the highest utilisation first."""
        sharing = self.sharing
        users = (sharing.used > 0).sum(axis=0)
        order = sorted((-float(sharing.total[at]), int(at)) for at in (users > 1).nonzero()[0])
        for utilisation, at in order:
            jobs = {
                name: float(part) for name, part in zip(sharing.names, sharing.used[:, at], strict=True) if part > 0
            }
            bundles = sharing.bundles
            yield Cables(bundles.name(at), bundles.kind(at), int(bundles.cables[at]), -utilisation, jobs)

    def data(self) -> dict[str, Any]:
        """Everything, for JSON."""
        assumed = {"load": self.load, "traffic": "uniform all-to-all", "paths": "minimal, evenly spread"}
        counts = {"moment": self.moment, "nodes": self.nodes, "jobs": self.jobs}
        counts |= {"left_out": self.left_out, "outside": self.outside}
        found = {"cables": [asdict(one) for one in self.cables()], "pairs": [asdict(pair) for pair in self.pairs]}
        return {**counts, "assumed": assumed, **found, "moves": [asdict(move) for move in self.moves]}


def neighbours(
    allocations: str | Path,
    nodes: str | Path,
    *,
    number: int = 1,
    load: float = LOAD,
    assignments: Sequence[str] = (),
    moves: int = MOVES,
) -> Neighbours:
    """Reads jobs and the map of a cluster, and estimates what the jobs of a moment do to each other.

    ``number`` is that of the moment; ``load`` the share of its bandwidth that a node sends; ``assignments``
    (``KEY=VALUE``) set parameters of the fabric; ``moves`` is the number of victims that are moved. Raises
    ``ScenarioError`` naming file and line for what is wrong in the files.
    """
    cluster = NodeMap.read(Path(nodes))
    every, outside = read_allocations(Path(allocations), cluster)
    chosen = moment(every, number)
    fabric = cluster.fabric(assignments)
    jobs = {one.job: [cluster.hosts[node] for node in one.nodes] for one in chosen}
    sharing = Sharing(Bundles(fabric, list(cluster.cells)), jobs, load)
    worst: dict[str, Pair] = {}
    for pair in sharing.pairs:
        worst.setdefault(pair.victim, pair)
    moved = tuple(sharing.move(pair) for pair in list(worst.values())[:moves])
    counts = {name: len(hosts) for name, hosts in jobs.items()}
    left_out, beyond = len(every) - len(chosen), {job.job: job.nodes for job in outside}
    return Neighbours(number, len(cluster.hosts), counts, left_out, beyond, load, sharing, moved)
