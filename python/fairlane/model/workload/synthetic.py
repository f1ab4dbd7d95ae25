"""Synthetic traffic: uniform random and shift, the standards of network studies, and incast and broadcast."""

from abc import abstractmethod
from typing import Literal

import numpy
from pydantic import Field
from typing_extensions import override

from fairlane.core.units import Duration, Size
from fairlane.model.workload.base import KIB, Count, Workload
from fairlane.model.workload.builder import JobScript, Rank
from fairlane.model.workload.destinations import Offsets

_WINDOW = 0


class Rings:
    """The ranks before and after each rank (row) in the ring of each of an iteration's messages (column).

    In arrays: for a hundred thousand ranks, Python lists would take gigabytes.
    """

    def __init__(self, job: JobScript, iteration: int, messages: int) -> None:
        self.before, self.after = (numpy.empty((job.ranks, messages), numpy.int32) for _ in range(2))
        for number in range(messages):
            order = job.pattern_stream(f"ring {iteration}.{number}").random(job.ranks).argsort()
            self.after[order, number] = numpy.roll(order, -1)
            self.before[order, number] = numpy.roll(order, 1)


class UniformRandom(Workload):
    """Every message goes to a random rank; each rank receives as many as it sends.

    For each message of an iteration all ranks are in a random ring and send to the next. By default eight messages of
    32 KiB an iteration.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: Count = 8

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        job = rank.job
        rings = job.drawn(f"rings {iteration}", lambda _: Rings(job, iteration, self.messages_per_iteration))
        before, after = rings.before[rank.index], rings.after[rank.index]
        rank.exchange_each(before.tolist(), after.tolist(), self.message_size)


class Shift(Offsets, Workload):
    """Every rank sends to the rank at a fixed offset along each dimension of a grid of ranks, with wraparound.

    The worst case of many routings. With a job on all hosts in order, ``sides = [8, 8], steps = [3, 3]`` is tornado
    traffic on a torus of 8 x 8, and ``sides = [8, 9], steps = [0, 1]`` sends all of each of nine groups of eight to the
    next group. By default eight messages of 32 KiB an iteration to the next rank.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: Count = 8

    @override
    def problem_with(self, ranks: int) -> str | None:
        return Workload.problem_with(self, ranks) or Offsets.problem_with(self, ranks)

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        source, target = (self.further(rank.index, rank.ranks, times) for times in (-1, 1))
        for _ in range(self.messages_per_iteration):
            rank.irecv(source)
        for _ in range(self.messages_per_iteration):
            rank.isend(target, self.message_size)
        rank.wait_all()


class _Star(Workload):
    """Messages between rank 0 and every other one, in one direction: a congestor of GPCNeT (Chunduri et al. 2019)."""

    message_size: Size = 64 * KIB
    messages_per_iteration: Count = 4
    compute: Duration | None = 0
    operation: Literal["put"] | None = Field(
        default=None, description="one-sided puts between fences; without it, sends and receives"
    )

    @abstractmethod
    def peers(self, rank: Rank) -> tuple[range, range]:
        """The ranks that ``rank`` receives from, and those that it sends to."""

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        if self.operation == "put":
            rank.win_create(_WINDOW)
            rank.win_fence(_WINDOW)
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        sources, targets = self.peers(rank)
        if self.operation == "put":
            for target in [*targets] * self.messages_per_iteration:
                rank.put(_WINDOW, target, self.message_size)
            rank.win_fence(_WINDOW)
            return
        for _ in range(self.messages_per_iteration):
            for source in sources:
                rank.irecv(source)
            for target in targets:
                rank.isend(target, self.message_size)
        rank.wait_all()


class Incast(_Star):
    """All ranks send to rank 0: its link is the bottleneck, and a tree of full buffers grows from there.

    By default four messages of 64 KiB, sent and received; with ``operation = "put"`` they are one-sided, and a fence
    ends the iteration.
    """

    @override
    def peers(self, rank: Rank) -> tuple[range, range]:
        return (range(0), range(1)) if rank.index else (range(1, rank.ranks), range(0))


class PutBroadcast(_Star):
    """Rank 0 sends the same to every other rank, one message each and no tree: its link is the bottleneck.

    By default four messages of 64 KiB, sent and received, so large ones begin with a request. With
    ``operation = "put"`` they are one-sided, and a fence ends the iteration.
    """

    @override
    def peers(self, rank: Rank) -> tuple[range, range]:
        return (range(1), range(0)) if rank.index else (range(0), range(1, rank.ranks))
