"""Placement: which hosts a job gets, and which of its ranks runs on which of them.

A placement policy allocates hosts; it is a class, and a line in ``PLACEMENTS`` gives it a name. Users bring their own
as ``name = "path/to/file.py:ClassName"``, or by the name of an entry point ``fairlane.placements`` of an installed
package. An explicit list needs no policy. A mapping assigns ranks to the allocated hosts
(``fairlane.model.placement.mapping``).
"""

from collections.abc import Sequence

from typing_extensions import override

from fairlane.inputs.parameters import Entry
from fairlane.inputs.registry import Registry
from fairlane.model.placement.base import Communication, FabricView, PlacementPolicy, Request
from fairlane.model.placement.box import Box
from fairlane.model.placement.domain import Domain, Packed, Spread
from fairlane.model.placement.linear import Linear, Units
from fairlane.model.placement.metrics import AllocationMetrics, measure
from fairlane.model.placement.pattern import Pattern
from fairlane.model.placement.random import Fragmented, Groups, Random

__all__ = [
    "ALLOCATORS",
    "LIST",
    "PLACEMENTS",
    "AllocationMetrics",
    "Box",
    "Communication",
    "Domain",
    "FabricView",
    "Fragmented",
    "Groups",
    "Linear",
    "Packed",
    "Pattern",
    "PlacementPolicy",
    "Random",
    "Request",
    "Spread",
    "Units",
    "entries",
    "fill",
    "hosts_needed",
    "measure",
]

LIST = "list"
"""The name for an explicit list of hosts."""


class _Unread(PlacementPolicy):
    """In place of a policy whose code must not run: the first free hosts."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        return list(free[: request.hosts]) if request.hosts <= len(free) else None


PLACEMENTS: Registry[type[PlacementPolicy]] = Registry(
    "placement",
    "fairlane.placements",
    {
        "random": Random,
        "packed": Packed,
        "spread": Spread,
        "linear": Linear,
        "fragmented": Fragmented,
        "groups": Groups,
        "box": Box,
        "units": Units,
        "domain": Domain,
        "pattern": Pattern,
    },
    base=PlacementPolicy,
    unread=_Unread,
    reserved=[LIST],
)
"""The placement policies by name."""

ALLOCATORS: Registry[type[PlacementPolicy]] = Registry(
    "allocator", "fairlane.allocators", {}, base=PlacementPolicy, unread=_Unread, parent=PLACEMENTS
)
"""Allocators for replays of job logs: every placement policy, and those that need a queue of jobs."""


def entries() -> dict[str, Entry]:
    """An entry for each placement policy, and for the list."""
    return {**PLACEMENTS.entries(), LIST: Entry(LIST, "Exactly the hosts listed, in this order.")}


def hosts_needed(ranks: int, ranks_per_host: int) -> int:
    """Return the number of hosts of a job; the last one may have fewer ranks."""
    return -(-ranks // ranks_per_host)


def fill(hosts: Sequence[int], ranks: int, ranks_per_host: int) -> list[int]:
    """The host of each rank: consecutive ranks share a host."""
    return [hosts[rank // ranks_per_host] for rank in range(ranks)]
