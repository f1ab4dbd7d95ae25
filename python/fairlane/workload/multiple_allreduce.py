"""The multiple allreduce of GPCNeT: several communicators do an allreduce at the same time."""

from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.builder import Rank
from fairlane.workload.slices import SlicedWorkload


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
