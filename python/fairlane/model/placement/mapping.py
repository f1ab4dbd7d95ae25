"""Mappings: which rank of a job runs on which of the hosts allocated to it.

A mapping is a class; a line in ``MAPPINGS`` gives it a name.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
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
    """Minimises hop-bytes by scipy's quadratic assignment; never worse than the linear mapping.

    Hop-bytes are the sum over all messages of bytes times links between switches. To minimise them is the quadratic
    assignment problem: FAQ (Vogelstein et al. 2015), polished by pairwise exchange (2-opt). A graph partitioner would
    minimise another quantity, the bytes that are cut, and would have to be called for every level of the fabric.
    """

    @override
    def places(self, slots: Slots) -> Sequence[int]:
        traffic, distances = slots.traffic(), slots.distances()
        ranks = len(traffic)
        if ranks < 2 or not traffic.any():
            return range(ranks)
        flow = (traffic + traffic.T) / traffic.sum()
        linear = numpy.arange(ranks)
        middle = numpy.full((ranks, ranks), 1 / ranks)  # of all permutations
        starts = (middle, (middle + numpy.eye(ranks)) / 2)
        candidates = [linear, *(_assigned(flow, distances, "faq", P0=start, tol=1e-4) for start in starts)]
        best = min(candidates, key=lambda places: hop_bytes(traffic, distances, places))
        if ranks <= MOST_EXCHANGED:
            exchanged = _assigned(flow, distances, "2opt", partial_guess=numpy.column_stack([linear, best]))
            best = min([best, exchanged], key=lambda places: hop_bytes(traffic, distances, places))
        places: list[int] = best.tolist()
        return places

    @override
    def problem_with(self, ranks: int) -> tuple[str, str, str] | None:
        too_many = "name", f"takes too long for {ranks} ranks", f"up to {MOST_RANKS} ranks"
        return too_many if ranks > MOST_RANKS else None


def hop_bytes(traffic: Floats, distances: NDArray[Any], places: NDArray[numpy.int64]) -> float:
    """Bytes times links of all messages with the ranks at these places."""
    return float((traffic * distances[numpy.ix_(places, places)]).sum())


def _assigned(flow: Floats, distances: Floats, method: str, **options: Any) -> NDArray[numpy.int64]:
    """Places by scipy's quadratic assignment."""
    from scipy.optimize import quadratic_assignment

    solve: Any = quadratic_assignment  # its stubs have an overload for each method
    solution = solve(flow, distances, method=method, options={**options, "rng": numpy.random.default_rng(0)})
    return cast("NDArray[numpy.int64]", solution.col_ind)


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
