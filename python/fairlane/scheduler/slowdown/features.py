"""Features of slowdowns: which jobs share links, by the routing, and how many links their bytes cross.

A job's *utilisation* of a link between switches is the share of time that its bytes take there at its best speed. The
*contention* of a job with another is the sum of the other's utilisation over the links that a byte of the job crosses.

Own features compare the job's hosts with its best ones: the links that a byte crosses, the contention with its own job,
and the utilisation of its busiest link. Features of neighbours are: the contention with all other jobs; with those that
have as many ranks or more, whose bursts are longer; and with all others, times the utilisation of the job's busiest
link, which has least room for more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from fairlane.fabric import Fabric
from fairlane.models.base import Floats
from fairlane.scheduler.slowdown.bench import Best

OWN = ("extra_hops", "extra_self_contention", "extra_peak_utilisation")
"""Features of a job's own hosts, each less what it is at the job's best."""
NEIGHBOURS = ("contention", "contention_larger", "contention_x_peak")
"""Features of the other jobs."""


@dataclass(frozen=True)
class LinkUse:
    """The load on the links between switches, by utilisation of each, of a job with this number of ranks."""

    ranks: int
    utilisation: Floats
    hops: float
    """Links between switches that a byte crosses on average; 0 for a job without messages."""

    @property
    def peak(self) -> float:
        """Utilisation of its busiest link."""
        return float(self.utilisation.max(initial=0.0))

    def contention(self, others: Floats) -> Floats:
        """With other jobs; a row of ``others`` is the utilisation of each link by one of them."""
        total = self.utilisation.sum()
        return others @ self.utilisation * (self.hops / total if total > 0 else 0.0)


def utilisation_of(fabric: Fabric, hosts: Sequence[int], best: Best) -> LinkUse:
    """The utilisation of links by a job on these hosts, at its best speed."""
    links = fabric.links
    between = (links["from_switch"] >= 0) & (links["to_switch"] >= 0)
    loads, total = fabric.loads(hosts, best.traffic)[between], best.traffic.sum()
    share = loads * 8 / links["bandwidth"][between] / best.iteration_time
    return LinkUse(len(hosts), share, float(loads.sum() / total) if total else 0.0)


def own_features(use: LinkUse, best: LinkUse) -> Floats:
    """In the order of ``OWN``."""
    met, met_at_best = (float(one.contention(one.utilisation[None])[0]) for one in (use, best))
    return numpy.array([use.hops - best.hops, met - met_at_best, use.peak - best.peak])


def contention_matrix(uses: Sequence[LinkUse]) -> Floats:
    """The contention of each job (row) with each other (column); the diagonal is 0."""
    shares = numpy.stack([use.utilisation for use in uses])
    met = numpy.stack([use.contention(shares) for use in uses])
    numpy.fill_diagonal(met, 0.0)
    return met


def neighbour_features(met: Floats, uses: Sequence[LinkUse]) -> Floats:
    """A row for each job, in the order of ``NEIGHBOURS``; ``met`` is their ``contention_matrix``."""
    ranks = numpy.array([use.ranks for use in uses])
    every, larger = met.sum(axis=1), numpy.where(ranks >= ranks[:, None], met, 0.0).sum(axis=1)
    busiest = numpy.array([use.peak for use in uses])
    return numpy.column_stack([every, larger, every * busiest])
