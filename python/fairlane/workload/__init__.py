"""Workloads: what the ranks of a job do, written in Python.

A workload is one file with one class (see ``flood_pairs.py``); a line in ``WORKLOADS`` gives it a name. Users bring
their own without touching the package, as ``workload = "path/to/file.py:ClassName"``.
"""

from fairlane.workload.all_to_all import AllToAll
from fairlane.workload.base import Workload
from fairlane.workload.builder import JobScript, Rank, Request
from fairlane.workload.flood_pairs import FloodPairs
from fairlane.workload.imbalance import Growing, Imbalance, OneRank, Uniform
from fairlane.workload.mini_amg import MiniAmg
from fairlane.workload.mini_paradis import MiniParadis
from fairlane.workload.nearest_neighbor import NearestNeighbor
from fairlane.workload.ping_pong import PingPong
from fairlane.workload.random_pairs import RandomPairs
from fairlane.workload.shift import Shift
from fairlane.workload.uniform_random import UniformRandom

__all__ = [
    "WORKLOADS",
    "AllToAll",
    "FloodPairs",
    "Growing",
    "Imbalance",
    "JobScript",
    "MiniAmg",
    "MiniParadis",
    "NearestNeighbor",
    "OneRank",
    "PingPong",
    "RandomPairs",
    "Rank",
    "Request",
    "Shift",
    "Uniform",
    "UniformRandom",
    "Workload",
]

WORKLOADS: dict[str, type[Workload]] = {
    "flood_pairs": FloodPairs,
    "nearest_neighbor": NearestNeighbor,
    "random_pairs": RandomPairs,
    "all_to_all": AllToAll,
    "mini_paradis": MiniParadis,
    "mini_amg": MiniAmg,
    "uniform_random": UniformRandom,
    "shift": Shift,
    "ping_pong": PingPong,
}
"""Every workload that can be asked for by name."""
