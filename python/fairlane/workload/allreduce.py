"""Global allreduce of one element: bound by latency and by the slowest message (Wilke 2020, section V)."""

from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import Workload
from fairlane.workload.builder import Rank

__all__ = ["Allreduce"]


class Allreduce(Workload):
    """Allreduce of one element of eight bytes over all ranks; no computation by default."""

    message_size: Size = 8
    compute: Duration | None = 0

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """As many collectives as there are messages."""
        for _ in range(self.messages_per_iteration):
            rank.collective("allreduce", self.message_size)
