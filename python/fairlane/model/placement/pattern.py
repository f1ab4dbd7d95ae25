"""Placement by communication pattern, as Yang et al. 2016 propose in section V.

A job of many-to-many traffic gets a compact place: on a torus a box, whose links its own packets do not leave under
dimension-order routing; else the smallest leaf switch, subtree or group with room for it. It waits until there is one.
Any other job takes a box too where one is free, as that costs no other job, but does not wait for it: else it gets
units that hold what is local in its traffic, wherever they are, and the smallest holes are filled first.
"""

from collections.abc import Iterator, Sequence

from typing_extensions import override

from fairlane.model.placement.base import Communication, FabricView, PlacementPolicy, Request
from fairlane.model.placement.box import Box
from fairlane.model.placement.domain import Domain, Packed
from fairlane.model.placement.grid import host_order, sides_of
from fairlane.model.placement.linear import runs


class Pattern(PlacementPolicy):
    """By communication pattern: compact hosts for many-to-many traffic, units of the local size for any other."""

    wait: bool = True
    """Whether a job with many-to-many traffic gets no hosts if no compact set is free, or any free hosts."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        if len(free) < request.hosts:
            return None
        communication = request.communication() if request.communication else Communication("unclear")
        dense = communication.kind == "many-to-many"
        if dense or sides_of(fabric) is not None:
            for policy in _compact(fabric):
                hosts = policy.allocate(free, request, fabric)
                if hosts is not None:
                    return hosts
        if dense and self.wait:
            return None
        return _in_units(free, request.hosts, min(communication.unit or 1, request.hosts), fabric)

    @override
    def wanted(self) -> str:
        return "a compact place for its many-to-many traffic"


def _compact(fabric: FabricView) -> Iterator[PlacementPolicy]:
    """The policies that find compact places, the best place first."""
    if sides_of(fabric) is not None:
        yield Box(shape="cube", fit="best")
        return
    yield Domain(of="leaf", split=False)
    for level in range(2, max(fabric.levels, default=0) + 1):
        yield Domain(of="subtree", level=level, split=False)
    if fabric.plan["kind"] == "groups":
        yield Domain(of="group")
    yield Packed()


def _in_units(free: Sequence[int], count: int, unit: int, fabric: FabricView) -> list[int]:
    """Whole units first, from the shortest stretches that have some; what is left then fills up, longest first."""
    order = host_order(fabric, "hilbert" if sides_of(fabric) is not None else "number")
    holes = sorted(runs(order, free), key=len)
    taken: list[int] = []
    rest: list[list[int]] = []
    for hole in holes:
        whole = len(hole) - len(hole) % unit
        taken += hole[:whole]
        rest.append(hole[whole:])
    for hole in sorted(rest, key=len, reverse=True):
        taken += hole
    return taken[:count]
