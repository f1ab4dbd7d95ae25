"""An allocator for replays of job logs: it keeps some hosts free, as operators do for urgent jobs."""

from collections.abc import Sequence

from pydantic import Field
from typing_extensions import override

from fairlane.model.placement import FabricView, PlacementPolicy, Request


class Headroom(PlacementPolicy):
    """The first free hosts, while a share of the machine stays free."""

    share: float = Field(0.1, ge=0, lt=1)
    """The share of all hosts that stays free."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        """The first free hosts; nothing if too few would be left. A job waits until there are more."""
        left = len(free) - request.hosts
        return list(free[: request.hosts]) if left >= self.share * fabric.hosts else None

    @override
    def wanted(self) -> str:
        """What a job that gets no hosts would have needed."""
        return f"free hosts, with {self.share:.0%} of all left"
