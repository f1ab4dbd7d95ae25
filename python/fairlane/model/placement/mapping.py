"""Mappings: which rank of a job runs on which of the hosts allocated to it.

A mapping is a class; a line in ``MAPPINGS`` gives it a name.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, prod
from typing import Annotated, Any, cast

import numpy
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer
from typing_extensions import override

from fairlane.core.units import Written
from fairlane.core.wording import plural
from fairlane.inputs.registry import Named, Registry

__all__ = ["MAPPINGS", "Blocked", "HopBytes", "Linear", "Mapping", "MappingField", "Slots", "hop_bytes"]

Floats = NDArray[numpy.float64]
Side = Annotated[int, Field(ge=1)]

MOST_RANKS = 1024
"""Ranks up to which ``HopBytes`` can be used: its time grows with their cube."""
MOST_EXCHANGED = 128
"""Ranks up to which its solution is polished by pairwise exchange, whose time grows with their fourth power."""


@dataclass(frozen=True)
class Slots:
    """The places for a job's ranks, in the order in which the allocation gives them."""

    hosts: Sequence[int]
    """The host of each place; as many places as ranks, and a host's places follow each other."""
    distances: Callable[[], NDArray[numpy.float64]]
    """Links between the switches of every two places: the mean over the adapters that their messages use."""
    traffic: Callable[[], NDArray[numpy.float64]]
    """Bytes that each rank (row) sends to each other (column)."""


class Mapping(Named):
    """Says which rank goes where. The fields of a subclass are its parameters."""

    @abstractmethod
    def places(self, slots: Slots) -> Sequence[int]:
        """The place of each rank: each of the ``slots`` once."""

    def problem_with(self, ranks: int) -> tuple[str, str, str] | None:
        """The key that does not fit a job of so many ranks, what is wrong, and what is allowed; None if all is well."""
        del ranks
        return None


class Linear(Mapping):
    """Rank by rank, in the order of the allocation."""

    @override
    def places(self, slots: Slots) -> Sequence[int]:
        return range(len(slots.hosts))


class Blocked(Mapping):
    """Block by block of a Cartesian grid of ranks, so that the ranks of a block get consecutive hosts."""

    grid: list[Side] = Field(min_length=1)
    """The sides of the ranks' grid; ranks are numbered with the last dimension fastest, as MPI does."""
    block: list[Side] = Field(min_length=1)
    """The sides of a block; each divides the side of the grid."""

    @override
    def places(self, slots: Slots) -> Sequence[int]:
        at = numpy.indices(self.grid).reshape(len(self.grid), -1).T
        block = numpy.asarray(self.block)
        keys = numpy.concatenate([at // block, at % block], axis=1)
        order = numpy.lexsort(keys.T[::-1])
        order_of_ranks: list[int] = numpy.argsort(order, kind="stable").tolist()
        return order_of_ranks

    @override
    def problem_with(self, ranks: int) -> tuple[str, str, str] | None:
        if prod(self.grid) != ranks:
            size = plural(prod(self.grid), "rank")
            return "grid", f"has {size}, and the job {ranks}", f"sides whose product is {ranks}"
        if len(self.block) != len(self.grid):
            return "block", "has not as many sides as the grid", f"{len(self.grid)} sides"
        if any(side % part for side, part in zip(self.grid, self.block, strict=True)):
            return "block", "does not divide the grid", f"divisors of {' x '.join(map(str, self.grid))}"
        return None


class HopBytes(Mapping):
    """Minimises hop-bytes by quadratic assignment; never worse than the linear mapping.

    Hop-bytes are the sum over all messages of bytes times links between switches. To minimise them is the quadratic
    assignment problem: FAQ (Vogelstein et al. 2015), polished by scipy's pairwise exchange (2-opt). A graph partitioner
    would minimise another quantity, the bytes that are cut, and would have to be called for every level of the fabric.

    All arithmetic is of whole numbers below 2^53, which no order of sums rounds: equal costs are frequent, and scipy's
    FAQ breaks such ties by rounding errors, which depend on the processor and on threads.
    """

    @override
    def places(self, slots: Slots) -> Sequence[int]:
        traffic, distances = slots.traffic(), slots.distances()
        ranks = len(traffic)
        if ranks < 2 or not traffic.any():
            return range(ranks)
        flow, links = _whole(traffic + traffic.T, _FLOW), _whole(distances + distances.T, _LINKS)
        linear = numpy.arange(ranks)
        middle = numpy.full((ranks, ranks), _ONE // ranks, numpy.float64)  # of all permutations
        starts = (middle, numpy.floor((middle + _ONE * numpy.eye(ranks)) / 2))
        candidates = [linear, *(_faq(flow, links, start) for start in starts)]
        best = min(candidates, key=lambda places: hop_bytes(traffic, distances, places))
        if ranks <= MOST_EXCHANGED:
            best = min([best, _exchanged(flow, links, best)], key=lambda places: hop_bytes(traffic, distances, places))
        places: list[int] = best.tolist()
        return places

    @override
    def problem_with(self, ranks: int) -> tuple[str, str, str] | None:
        too_many = "name", f"takes too long for {ranks} ranks", f"up to {MOST_RANKS} ranks"
        return too_many if ranks > MOST_RANKS else None


def hop_bytes(traffic: Floats, distances: NDArray[Any], places: NDArray[numpy.int64]) -> float:
    """Bytes times links of all messages with the ranks at these places."""
    return fsum((traffic * distances[numpy.ix_(places, places)]).ravel())


# What a rank exchanges is at most _FLOW, a distance _LINKS, a row of a doubly stochastic matrix _ONE: with these no sum
# of products exceeds 2^53.
_FLOW, _LINKS, _ONE = 2**19, 2**8, 2**16
_STEPS = 2**10  # in which the step of FAQ is chosen
_MOST_STEPS = 30


def _whole(matrix: Floats, most: int) -> Floats:
    """Multiples of a matrix in whole numbers: of flows with rows up to ``most``, of distances with values up to it."""
    largest = max(map(fsum, matrix)) if most == _FLOW else matrix.max()
    return numpy.floor(matrix * (most / largest)) if largest else numpy.zeros_like(matrix)


def _faq(flow: Floats, links: Floats, start: Floats) -> NDArray[numpy.int64]:
    """Places with few hop-bytes, by Frank and Wolfe's method over doubly stochastic matrices from a first one on."""
    from scipy.optimize import linear_sum_assignment

    ranks, at = numpy.arange(len(flow)), start
    for _ in range(_MOST_STEPS):
        gradient = flow @ at @ links
        towards = numpy.zeros_like(at)
        towards[ranks, linear_sum_assignment(gradient)[1]] = _ONE
        slope = _inner(gradient, towards - at)
        curve = _inner(flow @ (towards - at) @ links, towards - at)
        step = round(_STEPS * min(1.0, -slope / curve)) if curve > 0 else _STEPS
        if slope >= 0 or step == 0:
            break
        at = numpy.floor((at * (_STEPS - step) + towards * step) / _STEPS)
    places: NDArray[numpy.int64] = linear_sum_assignment(at, maximize=True)[1]
    return places


def _inner(first: Floats, second: Floats) -> float:
    """The inner product of two matrices; the first has been rounded so far that no sum is."""
    return float((numpy.floor(first / _FLOW) * second).sum())


def _exchanged(flow: Floats, links: Floats, places: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """Places from which no exchange of two ranks leads to fewer hop-bytes."""
    from scipy.optimize import quadratic_assignment

    solve: Any = quadratic_assignment  # its stubs have an overload for each method
    guess = numpy.column_stack([numpy.arange(len(places)), places])
    options = {"partial_guess": guess, "rng": numpy.random.default_rng(0)}
    return cast("NDArray[numpy.int64]", solve(flow, links, method="2opt", options=options).col_ind)


MAPPINGS: Registry[type[Mapping]] = Registry(
    "mapping",
    "fairlane.mappings",
    {"linear": Linear, "blocked": Blocked, "hop_bytes": HopBytes},
    base=Mapping,
    unread=Linear,
)
"""All mappings by name."""

MappingField = Annotated[Written[Mapping], BeforeValidator(MAPPINGS.read), PlainSerializer(MAPPINGS.written)]
"""A model's field that takes a mapping's name, a table with its name and parameters, or a mapping."""
