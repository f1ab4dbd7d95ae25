"""Placement: which host each rank of a job lives on.

A strategy is one file with one function; a line in ``STRATEGIES`` gives it a name. An explicit list needs no strategy.
"""

from collections.abc import Sequence

import numpy

from fairlane.placement.base import FabricView, Strategy
from fairlane.placement.fragmented import fragmented
from fairlane.placement.linear import linear
from fairlane.placement.packed import packed
from fairlane.placement.random import random
from fairlane.placement.spread import spread

__all__ = ["LIST", "STRATEGIES", "FabricView", "Strategy", "hosts_needed", "place", "summaries"]

STRATEGIES: dict[str, Strategy] = {
    "random": random,
    "packed": packed,
    "spread": spread,
    "linear": linear,
    "fragmented": fragmented,
}
"""Every strategy that can be asked for by name."""

LIST = "list"
"""The name for an explicit list of hosts."""


def summaries() -> dict[str, str]:
    """One line about each strategy."""
    lines = {name: (strategy.__doc__ or "").strip().partition("\n")[0] for name, strategy in STRATEGIES.items()}
    return {**lines, LIST: "Exactly the hosts listed, in this order."}


def hosts_needed(ranks: int, ranks_per_host: int) -> int:
    """How many hosts a job takes; the last one may have fewer ranks."""
    return -(-ranks // ranks_per_host)


def place(
    free: Sequence[int],
    ranks: int,
    ranks_per_host: int,
    fabric: FabricView,
    rng: numpy.random.Generator,
    *,
    strategy: Strategy | None = random,
) -> list[int]:
    """The host of each rank: consecutive ranks share a host, and no host is shared with another job.

    Without a strategy (an explicit list) the first of the ``free`` hosts are taken, in the order given.

    Raises ``ValueError`` when ``free`` does not suffice.
    """
    count = hosts_needed(ranks, ranks_per_host)
    if count > len(free):
        raise ValueError(f"{ranks} ranks need {count} hosts, {ranks_per_host} a host, and {len(free)} are free")
    hosts = strategy(sorted(free), count, fabric, rng) if strategy else list(free[:count])
    return [hosts[rank // ranks_per_host] for rank in range(ranks)]
