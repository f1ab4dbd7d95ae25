"""The congestors of GPCNeT: all-to-all, incasts by messages and by puts, and a broadcast by gets.

Workloads on several communicators at once, among which the ranks are divided round-robin.

With as many communicators as ranks per host, each has one rank of every host: the node slices of GPCNeT (Chunduri et
al., SC '19), in which no neighbour is on the same host.

The random ring of GPCNeT: every rank exchanges messages with both neighbours in a ring of random order.
The multiple allreduce of GPCNeT: several communicators do an allreduce at the same time.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field
from typing_extensions import override

from fairlane.core.units import Duration, Size
from fairlane.model.workload.base import KIB, Count, Workload
from fairlane.model.workload.builder import Rank

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


_WINDOW = 0


class Congestor(SlicedWorkload):
    """A congestor of GPCNeT (Chunduri et al., SC '19): its communicators load the network without pause.

    ``all_to_all``: pairwise exchanges with all others, one partner after the other. ``incast``: all send to the first
    rank. ``put_incast``: all put to the first rank, each waiting for its put. ``get_broadcast``: all get from the first
    rank, each waiting for its get. By default messages of 4 KiB. An iteration has 64 rounds of the pattern (up
    to 512 in GPCNeT) and ends with a barrier; there is none between its rounds.

    Sends of the incast are synchronous, so that ``window`` bounds what a rank has under way: MPI libraries limit their
    eager messages, the simulator does not.
    """

    pattern: Literal["all_to_all", "incast", "put_incast", "get_broadcast"] = Field(
        default="all_to_all", description="what its ranks do in a round"
    )
    message_size: Size = 4 * KIB
    messages_per_iteration: Count = Field(default=64, description="rounds per iteration")
    compute: Duration | None = 0
    window: Count = Field(
        default=16, description="outstanding messages per rank of an `incast`; other patterns wait for each"
    )

    @property
    def _one_sided(self) -> bool:
        return self.pattern in ("put_incast", "get_broadcast")

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        if self._one_sided:
            rank.win_create(_WINDOW)
            if (part := self.slice_of(rank)).index:
                rank.win_lock(_WINDOW, part.world(0), exclusive=False)
        super().write(rank, stages)

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        part = self.slice_of(rank)
        if part.index or not self._one_sided:  # the target of one-sided operations does nothing
            with rank.repeat(self.messages_per_iteration):
                self._round(rank, part)
        rank.collective("barrier", comm=part.comm)

    def _round(self, rank: Rank, part: Slice) -> None:
        root = part.world(0)
        if self.pattern == "all_to_all":
            self._exchange(rank, part)
        elif self.pattern == "incast" and part.index:
            for _ in range(self.window):
                rank.isend(root, self.message_size, synchronous=True)
            rank.wait_all()
        elif self.pattern == "incast":
            for _ in range(self.window):
                for index in range(1, part.size):
                    rank.irecv(part.world(index))
            rank.wait_all()
        else:
            transfer = rank.put if self.pattern == "put_incast" else rank.get
            transfer(_WINDOW, root, self.message_size)
            rank.win_flush(_WINDOW, root)

    def _exchange(self, rank: Rank, part: Slice) -> None:
        """Pairwise: with a power of two partners are those of an exclusive or, else ranks further and further on."""
        is_power = not part.size & (part.size - 1)
        for step in range(1, part.size):
            source, target = (part.index ^ step,) * 2 if is_power else (part.index - step, part.index + step)
            rank.irecv(part.world(source % part.size))
            rank.isend(part.world(target % part.size), self.message_size)
            rank.wait_all()


class RandomRing(SlicedWorkload):
    """Every rank exchanges messages with both neighbours in a ring of random order.

    A network test of GPCNeT (Chunduri et al., SC '19). By default one message of eight bytes each way, the test of
    latency; with ``message_size = "128 KiB"``, ``messages_per_iteration = 8`` and ``barrier = true`` it is the test of
    bandwidth. The ring is the same in all iterations; with ``distinct_iterations`` = n, n rings are used in turn.
    """

    message_size: Size = 8
    compute: Duration | None = 0
    distinct_iterations: Count = 1
    barrier: bool = Field(default=False, description="whether a barrier of its communicator ends an iteration")

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        part = self.slice_of(rank)
        name = f"random ring {iteration}.{part.number}"
        neighbours = rank.job.drawn(name, lambda rng: _ring(rng.random(part.size).argsort().tolist()))
        both = {part.world(index) for index in neighbours[part.index]}
        rank.exchange(sorted(both), self.message_size, self.messages_per_iteration * (3 - len(both)))
        if self.barrier:
            rank.collective("barrier", comm=part.comm)


def _ring(order: list[int]) -> list[tuple[int, int]]:
    """For each number in an order the one before and the one after it, with wraparound."""
    neighbours = [(0, 0)] * len(order)
    for at, index in enumerate(order):
        neighbours[index] = (order[at - 1], order[(at + 1) % len(order)])
    return neighbours


class MultipleAllreduce(SlicedWorkload):
    """Every communicator does an allreduce of one element of eight bytes; no computation by default.

    A network test of GPCNeT (Chunduri et al., SC '19), with ``communicators`` equal to the ranks per host.
    """

    message_size: Size = 8
    compute: Duration | None = 0

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        comm = self.slice_of(rank).comm
        for _ in range(self.messages_per_iteration):
            rank.collective("allreduce", self.message_size, comm=comm)
