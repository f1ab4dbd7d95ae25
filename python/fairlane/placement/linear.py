"""Linear placement: hosts along a line through the fabric, as ALPS and Cplant allocate on a torus."""

from collections.abc import Sequence
from typing import Literal

from fairlane.placement.base import FabricView, PlacementPolicy, Request
from fairlane.placement.grid import Curve, check_curve, host_order

__all__ = ["Linear", "runs"]


class Linear(PlacementPolicy):
    """The first free hosts of a linear order: host numbers, or a snake or Hilbert curve through a grid."""

    curve: Curve = "number"
    """The linear order: host numbers (on a grid dimension 0 varies fastest), or a snake or Hilbert curve on a grid."""
    fit: Literal["any", "first", "best"] = "any"
    """Any free hosts in this order; or consecutive hosts: the first free run that is long enough (first fit), or the
    shortest one (best fit)."""

    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        """The first free hosts of the line."""
        order = host_order(fabric, self.curve)
        if self.fit == "any":
            is_free = set(free)
            found = [host for host in order if host in is_free][: request.hosts]
            return found if len(found) == request.hosts else None
        enough = [run for run in runs(order, free) if len(run) >= request.hosts]
        if not enough:
            return None
        return (enough[0] if self.fit == "first" else min(enough, key=len))[: request.hosts]

    def check(self, fabric: FabricView, hosts: Sequence[int]) -> None:
        """The line must be one that the fabric has."""
        del hosts
        check_curve(fabric, self.curve, "curve")

    def wanted(self) -> str:
        """Hosts in a row, or any."""
        return "free hosts" if self.fit == "any" else f"free hosts in a row ({self.curve})"


def runs(order: Sequence[int], free: Sequence[int]) -> list[list[int]]:
    """The stretches of free hosts along a line."""
    is_free, found = set(free), [[]]  # type: tuple[set[int], list[list[int]]]
    for host in order:
        if host in is_free:
            found[-1].append(host)
        elif found[-1]:
            found.append([])
    return [run for run in found if run]
