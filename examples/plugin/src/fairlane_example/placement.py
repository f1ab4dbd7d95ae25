"""A placement: free hosts at a fixed distance, as on a machine whose other hosts belong to another partition."""

from collections.abc import Sequence

from pydantic import Field
from typing_extensions import override

from fairlane.model.placement import FabricView, PlacementPolicy, Request


class Stride(PlacementPolicy):
    """Every n-th free host."""

    step: int = Field(2, ge=1)
    """How far apart the hosts are in the list of free hosts."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        """The first free host and every n-th one after it, or nothing."""
        del fabric
        found = list(free[:: self.step][: request.hosts])
        return found if len(found) == request.hosts else None

    @override
    def wanted(self) -> str:
        """What a job that gets no hosts would have needed."""
        return f"{self.step} times as many free hosts"
