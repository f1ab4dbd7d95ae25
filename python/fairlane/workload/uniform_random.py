"""Uniform random traffic: the standard load of network studies."""

import numpy
from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import JobScript, Rank

__all__ = ["UniformRandom"]


class Rings:
    """The rings of one iteration's messages: who stands before and after whom in each, a row for every rank.

    Whole numbers in arrays: of a hundred thousand ranks, lists and tables of Python would take gigabytes.
    """

    def __init__(self, job: JobScript, iteration: int, messages: int) -> None:
        self.before, self.after = (numpy.empty((job.ranks, messages), numpy.int32) for _ in range(2))
        for number in range(messages):
            order = job.pattern_stream(f"ring {iteration}.{number}").random(job.ranks).argsort()
            self.after[order, number] = numpy.roll(order, -1)
            self.before[order, number] = numpy.roll(order, 1)


class UniformRandom(Workload):
    """Every message goes to a random rank; each rank receives as many as it sends.

    By default eight messages of 32 KiB an iteration.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: int = 8

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages of an iteration at once; for each, all ranks stand in a random ring and send to the next."""
        job = rank.job
        rings = job.drawn(f"rings {iteration}", lambda _: Rings(job, iteration, self.messages_per_iteration))
        before, after = rings.before[rank.index], rings.after[rank.index]
        rank.exchange_each(before.tolist(), after.tolist(), self.message_size)
