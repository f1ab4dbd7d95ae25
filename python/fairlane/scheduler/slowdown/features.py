"""What the slowdown of a job goes by: whose bytes share which links, as the routing says, and how far they go.

A job's *use* of a link between switches is the share of time that its bytes take there when it is as fast as at its
best. What a byte *meets* of a job on its way is the sum of that job's use over the links that the byte crosses: bytes
of a busy neighbour are met often, and on long ways more often.

Own features compare the job's hosts with its best ones: the links that a byte crosses, what it meets of its own job,
and the use of the busiest link. Features of neighbours are: what a byte meets of all other jobs; of those that are as
large as its own or larger, whose bursts are longer; and of all others, times the use of the busiest link, which has
least room for more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from fairlane.fabric import Fabric
from fairlane.scheduler.slowdown.bench import Best

__all__ = ["NEIGHBOURS", "OWN", "Use", "meetings", "neighbour_features", "own_features", "use_of"]

Floats = NDArray[numpy.float64]

OWN = ("links_crossed", "own_job_met", "busiest_link")
"""Features of a job's own hosts, each less what it is at the job's best."""
NEIGHBOURS = ("others_met", "larger_met", "others_met_by_busiest_link")
"""Features of the other jobs."""


@dataclass(frozen=True)
class Use:
    """What a job does to the links between switches."""

    ranks: int
    """How many ranks it has."""
    share: Floats
    """Its use of each link."""
    hops: float
    """Links between switches that a byte crosses on average; 0 for a job without messages."""

    @property
    def busiest(self) -> float:
        """Its use of its busiest link."""
        return float(self.share.max(initial=0.0))

    def meets(self, others: Floats) -> Floats:
        """What a byte of this job meets of others; a row of ``others`` is the use of each link by one of them."""
        total = self.share.sum()
        return others @ self.share * (self.hops / total if total > 0 else 0.0)


def use_of(fabric: Fabric, hosts: Sequence[int], best: Best) -> Use:
    """The use of links by a job on these hosts, at the speed of its best."""
    links = fabric.links
    between = (links["from_switch"] >= 0) & (links["to_switch"] >= 0)
    loads, total = fabric.loads(hosts, best.traffic)[between], best.traffic.sum()
    share = loads * 8 / links["bandwidth"][between] / best.period
    return Use(len(hosts), share, float(loads.sum() / total) if total else 0.0)


def own_features(use: Use, best: Use) -> Floats:
    """In the order of ``OWN``."""
    met, met_at_best = (float(one.meets(one.share[None])[0]) for one in (use, best))
    return numpy.array([use.hops - best.hops, met - met_at_best, use.busiest - best.busiest])


def meetings(uses: Sequence[Use]) -> Floats:
    """What a byte of each job (row) meets of each other (column); nothing of its own."""
    shares = numpy.stack([use.share for use in uses])
    met = numpy.stack([use.meets(shares) for use in uses])
    numpy.fill_diagonal(met, 0.0)
    return met


def neighbour_features(met: Floats, uses: Sequence[Use]) -> Floats:
    """A row for each job, in the order of ``NEIGHBOURS``; ``met`` is what ``meetings`` says of them."""
    ranks = numpy.array([use.ranks for use in uses])
    every, larger = met.sum(axis=1), numpy.where(ranks >= ranks[:, None], met, 0.0).sum(axis=1)
    busiest = numpy.array([use.busiest for use in uses])
    return numpy.column_stack([every, larger, every * busiest])
