"""Workloads on several communicators at once, among which the ranks are divided round-robin.

With as many communicators as ranks per host, each has one rank of every host: the node slices of GPCNeT (Chunduri et
al., SC '19), in which no neighbour is on the same host.
"""

from dataclasses import dataclass

from pydantic import Field
from typing_extensions import override

from fairlane.workload.base import Workload
from fairlane.workload.builder import Rank

_SLICE = 2
"""Name of the communicator of a slice; 0 and 1 are the world and the rank itself."""


@dataclass(frozen=True)
class Slice:
    """The communicator of a rank among several, and the rank's place in it."""

    comm: int
    """Name of the communicator."""
    number: int
    """Its number among the communicators."""
    communicators: int
    """Number of communicators."""
    size: int
    """Number of ranks in it."""
    index: int
    """This rank's number in it."""

    def world(self, index: int) -> int:
        """The number in the job of a rank of this communicator."""
        return index * self.communicators + self.number


class SlicedWorkload(Workload):
    """A workload that runs on one or several communicators at the same time."""

    communicators: int = Field(
        default=1,
        ge=1,
        description="communicators of equal size among which ranks are divided round-robin; with as many as ranks per "
        "host, each has one rank of every host",
    )

    def slice_of(self, rank: Rank) -> Slice:
        """The communicator of a rank."""
        index, number = divmod(rank.index, self.communicators)
        comm = _SLICE if self.communicators > 1 else 0
        return Slice(comm, number, self.communicators, rank.ranks // self.communicators, index)

    @override
    def problem_with(self, ranks: int) -> str | None:
        if ranks % self.communicators or ranks < self.minimum_ranks * self.communicators:
            return (
                f"a multiple of communicators = {self.communicators}, with {self.minimum_ranks} ranks or more in each"
            )
        return super().problem_with(ranks)

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        if self.communicators > 1:
            rank.comm_split(_SLICE, self.slice_of(rank).number, rank.index, name="slice")
        super().write(rank, stages)
