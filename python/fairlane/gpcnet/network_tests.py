"""The network tests of GPCNeT's ``network_load_test``, its congestors, and how hosts are divided among them.

Taylor Groves, Sudheer Chunduri, Pete Mendygral et al.: GPCNeT: Designing a benchmark suite for inducing and measuring
contention in HPC networks, SC '19. Message sizes, names and units are those of version 1.3 of the benchmark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

from fairlane.engine.tables import PS
from fairlane.workload.base import KIB

CONGESTORS = ("all_to_all", "incast", "put_incast", "get_broadcast")
"""The patterns that run at the same time, on equal shares of the congestors' hosts."""
FEWEST_HOSTS = 2 + 2 * len(CONGESTORS)
"""Two hosts of the network test, and two of each congestor."""
ROUNDS = 512
"""Rounds of a congestor between two barriers."""
_FOR_TEST = 5  # one host in five has the network test
_WINDOW, _BANDWIDTH_SIZE = 8, 128 * KIB


@dataclass(frozen=True)
class NetworkTest:
    """A network test."""

    name: str
    """Name in the tables of results."""
    title: str
    """Name in the benchmark's own table."""
    unit: str
    """Unit in that table."""
    workload: Mapping[str, Any] = field(hash=False)
    """The workload without its communicators."""
    part: int = 1
    """It has one iteration where the test of latency has so many."""
    messages: int = 1
    """Messages of an iteration, over which its time is divided."""
    bytes: int | None = None
    """Bytes that a rank sends in an iteration, for a bandwidth; None if times are what is measured."""

    def iterations(self, of_latency: int) -> int:
        """How many iterations are measured."""
        return max(1, of_latency // self.part)

    def measured(self, times: NDArray[numpy.int64]) -> tuple[float, float]:
        """Mean and 99th percentile of what is measured, from the time of each iteration of each rank, ps.

        A bandwidth is bytes over the mean time; at most one iteration in a hundred is slower than its 99th percentile.
        """
        mean, worst = float(times.mean()), float(numpy.quantile(times, 0.99))
        if self.bytes is None:
            return mean * PS * 1e6 / self.messages, worst * PS * 1e6 / self.messages
        return self.bytes / (mean * PS) / 2**20, self.bytes / (worst * PS) / 2**20

    def impact(self, isolated: float, congested: float) -> float:
        """The congestion impact factor: how many times worse it is with congestion."""
        return congested / isolated if self.bytes is None else isolated / congested


_BANDWIDTH = {"message_size": f"{_BANDWIDTH_SIZE} B", "messages_per_iteration": _WINDOW, "barrier": True}
TESTS: Mapping[str, NetworkTest] = {
    test.name: test
    for test in (
        NetworkTest("latency", "RR Two-sided Lat (8 B)", "usec", {"name": "random_ring"}, messages=2),
        NetworkTest(
            "bandwidth",
            f"RR Two-sided BW+Sync ({_BANDWIDTH_SIZE} B)",
            "MiB/s/rank",
            {"name": "random_ring", **_BANDWIDTH},
            part=25,
            bytes=2 * _WINDOW * _BANDWIDTH_SIZE,
        ),
        NetworkTest("allreduce", "Multiple Allreduce (8 B)", "usec", {"name": "multiple_allreduce"}),
    )
}
"""The network tests by name, in the order of the benchmark's table."""


def divided(hosts: int) -> tuple[int, Sequence[int]]:
    """Hosts of the network test, and those of each congestor: one in five, rounded up, and equal shares of the rest."""
    tested = -(-hosts // _FOR_TEST)
    share, left = divmod(hosts - tested, len(CONGESTORS))
    return tested, [share + (number < left) for number in range(len(CONGESTORS))]
