"""Placement along a line through the fabric, as ALPS and Cplant allocate on a torus: hosts, or units of adjacent hosts.

With allocation units a job gets small sets of adjacent hosts, and these are anywhere (Yang 2016, Fig. 8b).
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.core.wording import plural
from fairlane.inputs.problems import Problems
from fairlane.model.placement.base import FabricView, PlacementPolicy, Request
from fairlane.model.placement.grid import Curve, check_curve, host_order


class Linear(PlacementPolicy):
    """The first free hosts of a linear order: host numbers, or a snake or Hilbert curve through a grid."""

    curve: Curve = "number"
    """The linear order: host numbers (on a grid dimension 0 varies fastest), or a snake or Hilbert curve on a grid."""
    fit: Literal["any", "first", "best"] = "any"
    """Any free hosts in this order; or consecutive hosts: the first free run that is long enough (first fit), or the
    shortest one (best fit)."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        order = host_order(fabric, self.curve)
        if self.fit == "any":
            is_free = set(free)
            chosen = [host for host in order if host in is_free][: request.hosts]
            return chosen if len(chosen) == request.hosts else None
        enough = [run for run in runs(order, free) if len(run) >= request.hosts]
        if not enough:
            return None
        return (enough[0] if self.fit == "first" else min(enough, key=len))[: request.hosts]

    @override
    def check(self, fabric: FabricView, hosts: Sequence[int]) -> None:
        check_curve(fabric, self.curve, "curve")

    @override
    def wanted(self) -> str:
        return "free hosts" if self.fit == "any" else f"free hosts in a row ({self.curve})"


class Units(PlacementPolicy):
    """Units of adjacent hosts: interleaved among jobs, random, or the first free ones."""

    together = True

    size: int = Field(ge=1)
    """Hosts of a unit. They are consecutive in the linear order, and the first unit starts at its beginning."""
    order: Literal["interleaved", "random", "first"] = "interleaved"
    """Units are assigned round-robin to the jobs of this placement, drawn at random, or taken first to last."""
    curve: Curve = "number"
    """The linear order: host numbers (on a grid dimension 0 varies fastest), or a snake or Hilbert curve on a grid."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        return self.allocate_together(free, [request], fabric)[0]

    @override
    def allocate_together(
        self, free: Sequence[int], requests: Sequence[Request], fabric: FabricView
    ) -> list[list[int] | None]:
        units = self._free_units(free, fabric)
        if self.order == "interleaved":
            return self._assigned(units, requests)
        allocated: list[list[int] | None] = []
        for request in requests:
            order = request.rng.permutation(len(units)).tolist() if self.order == "random" else range(len(units))
            chosen = list(order)[: -(-request.hosts // self.size)]
            hosts = [host for at in chosen for host in units[at]][: request.hosts]
            allocated.append(hosts if len(hosts) == request.hosts else None)
            if allocated[-1]:
                units = [unit for at, unit in enumerate(units) if at not in set(chosen)]
        return allocated

    def _free_units(self, free: Sequence[int], fabric: FabricView) -> list[list[int]]:
        order, is_free = host_order(fabric, self.curve), set(free)
        units = (order[start : start + self.size] for start in range(0, len(order), self.size))
        return [unit for unit in units if len(unit) == self.size and is_free.issuperset(unit)]

    def _assigned(self, units: list[list[int]], requests: Sequence[Request]) -> list[list[int] | None]:
        hosts_of_requests: list[list[int]] = [[] for _ in requests]
        left = iter(units)
        while waiting := [at for at, request in enumerate(requests) if len(hosts_of_requests[at]) < request.hosts]:
            for at in waiting:
                unit = next(left, None)
                if unit is None:
                    enough = zip(hosts_of_requests, requests, strict=True)
                    return [hosts if len(hosts) == request.hosts else None for hosts, request in enough]
                hosts_of_requests[at] += unit[: requests[at].hosts - len(hosts_of_requests[at])]
        return list(hosts_of_requests)

    @override
    def check(self, fabric: FabricView, hosts: Sequence[int]) -> None:
        check_curve(fabric, self.curve, "curve")
        if fabric.hosts % self.size:
            divisors = ", ".join(str(size) for size in range(1, fabric.hosts + 1) if fabric.hosts % size == 0)
            raise Problems(
                Problem("size", f"does not divide the fabric's {plural(fabric.hosts, 'host')}", self.size, divisors)
            )

    @override
    def wanted(self) -> str:
        return f"free units of {plural(self.size, 'host')}"


def runs(order: Sequence[int], free: Sequence[int]) -> list[list[int]]:
    """The stretches of free hosts along a line."""
    is_free, stretches = set(free), [[]]  # type: tuple[set[int], list[list[int]]]
    for host in order:
        if host in is_free:
            stretches[-1].append(host)
        elif stretches[-1]:
            stretches.append([])
    return [run for run in stretches if run]
