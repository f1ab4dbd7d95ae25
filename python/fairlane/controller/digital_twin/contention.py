"""Who delays whom, by rank: which ranks of the jobs send over the same links between switches, and how much.

The traffic of each job is its communication matrix, and the links are those of the routing. With routing that chooses
among several paths the links are those of one of them, so the result is a guess there.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import combinations

import numpy
from numpy.typing import NDArray

from fairlane.errors import FairlaneError
from fairlane.fabric.view import Fabric
from fairlane.pattern.traffic import observe, program_of
from fairlane.scenario import Resolved, ResolvedJob

Rank = tuple[str, int]
"""A job's name and a rank."""
Contention = Mapping[Rank, Mapping[Rank, float]]
"""By rank the ranks with which it shares links, and for how much traffic; the mean rank of a job sends 1."""


def contention(model: Resolved, seed: int) -> Contention:
    """The ranks that share links; jobs whose traffic or routes cannot be determined have none."""
    fabric = Fabric.build(model.tables["fabric"])
    loads: dict[int, dict[Rank, float]] = defaultdict(lambda: defaultdict(float))
    for job in model.jobs:
        try:
            _add(loads, fabric, job, _traffic(job, seed))
        except FairlaneError:
            continue
    shared: dict[Rank, dict[Rank, float]] = defaultdict(lambda: defaultdict(float))
    for ranks in loads.values():
        for (one, links_of_rank), (other, others) in combinations(ranks.items(), 2):
            shared[one][other] += min(links_of_rank, others)
            shared[other][one] += min(links_of_rank, others)
    return shared


def _traffic(job: ResolvedJob, seed: int) -> NDArray[numpy.float64]:
    total = observe(program_of(job.table.source, job.ranks, seed, job.number)).total.astype(float)
    return total * job.ranks / total.sum() if total.any() else total


def _add(
    loads: Mapping[int, dict[Rank, float]], fabric: Fabric, job: ResolvedJob, traffic: NDArray[numpy.float64]
) -> None:
    for source, rows in enumerate(fabric.message_rails(job.hosts, job.rails)):
        pairs = Counter(rows[:, 0].tolist())
        for target, rail, other in rows[traffic[source, rows[:, 0]] > 0].tolist():
            for link in fabric.route(job.hosts[source], job.hosts[target], rail, other)[1:-1]:
                loads[link][job.name, source] += traffic[source, target] / pairs[target]
