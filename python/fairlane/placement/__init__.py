"""Placement: which hosts a job gets, and which of them each of its ranks lives on.

A strategy allocates hosts; it is one file with one class, and a line in ``STRATEGIES`` gives it a name. An explicit
list needs no strategy. A mapping says which rank goes to which of them (``fairlane.placement.mapping``).
"""

from collections.abc import Sequence

from fairlane.placement.base import Communication, FabricView, Request, Strategy
from fairlane.placement.box import Box
from fairlane.placement.domain import Domain, Packed
from fairlane.placement.fragmented import Fragmented
from fairlane.placement.groups import Groups
from fairlane.placement.linear import Linear
from fairlane.placement.metrics import AllocationMetrics, measure
from fairlane.placement.pattern import Pattern
from fairlane.placement.random import Random
from fairlane.placement.spread import Spread
from fairlane.placement.units import Units

__all__ = [
    "LIST",
    "STRATEGIES",
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
    "Random",
    "Request",
    "Spread",
    "Strategy",
    "Units",
    "fill",
    "hosts_needed",
    "measure",
    "summaries",
]

STRATEGIES: dict[str, type[Strategy]] = {
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
}
"""Every strategy that can be asked for by name."""

LIST = "list"
"""The name for an explicit list of hosts."""


def summaries() -> dict[str, str]:
    """One line about each strategy."""
    lines = {name: strategy.summary() for name, strategy in STRATEGIES.items()}
    return {**lines, LIST: "Exactly the hosts listed, in this order."}


def hosts_needed(ranks: int, ranks_per_host: int) -> int:
    """How many hosts a job takes; the last one may have fewer ranks."""
    return -(-ranks // ranks_per_host)


def fill(hosts: Sequence[int], ranks: int, ranks_per_host: int) -> list[int]:
    """The host of each rank: consecutive ranks share a host."""
    return [hosts[rank // ranks_per_host] for rank in range(ranks)]
