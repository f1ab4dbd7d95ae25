"""The systems and workloads of Savoie et al. 2020, table 1 and section 5.3.

The paper prints neither message sizes nor messages per iteration. They are chosen here, once for all experiments, so
that what jobs lose *by default against isolation* agrees with what the paper says of it (65% computation: visible;
35%: up to 57%; 90%: up to 12%). No treated run took part in the choice; docs/reproduction/savoie2020 has the figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.scenario import Scenario

__all__ = ["MICROBENCHMARKS", "SYSTEMS", "System", "job", "scenario", "static_jobs"]

MICROBENCHMARKS: Mapping[str, Mapping[str, Any]] = {
    "flood_pairs": {"message_size": "16 KiB", "messages_per_iteration": 16},
    "nearest_neighbor": {"message_size": "32 KiB", "messages_per_iteration": 3},
    "random_pairs": {"message_size": "32 KiB", "messages_per_iteration": 8},
    "all_to_all": {"message_size": "32 KiB", "messages_per_iteration": 1},
    "mini_paradis": {
        "message_size": "32 KiB",
        "messages_per_iteration": 3,
        "imbalance": {"kind": "growing", "steps": 1, "per_variant": 0.002},
    },
    "mini_amg": {"message_size": "32 KiB", "messages_per_iteration": 1},
}
"""What each microbenchmark communicates: about 256 KiB a rank and iteration. An iteration takes about 0.3 ms, so 60 ms
hold some 200. Flood-Pairs sends eagerly (16 KiB is the threshold): pairs that compute little run ahead."""

SHORT = {
    "flood_pairs": "flood",
    "nearest_neighbor": "neighbor",
    "random_pairs": "random",
    "all_to_all": "alltoall",
    "mini_paradis": "paradis",
    "mini_amg": "amg",
}
"""Jobs' names."""
STATIC = ("flood_pairs", "nearest_neighbor", "random_pairs", "all_to_all")
"""The four whose communication never changes."""


@dataclass(frozen=True)
class System:
    """One of the three systems: a fat-tree of full bisection, and how many jobs of how many ranks it runs."""

    hosts: int
    levels: int
    radix: int
    bandwidth: str
    copies: int
    """How many jobs of each of the four static microbenchmarks."""
    ranks: int
    """Ranks of a job."""


SYSTEMS: Mapping[str, System] = {
    "small": System(hosts=64, levels=2, radix=16, bandwidth="3.2 GB/s", copies=2, ranks=8),
    "medium": System(hosts=324, levels=2, radix=36, bandwidth="3.2 GB/s", copies=4, ranks=20),
    "large": System(hosts=1296, levels=3, radix=36, bandwidth="4.0 GB/s", copies=4, ranks=80),
}
"""Table 1. Four pods of 18 leaf switches with 18 hosts each make up the large one."""


def job(name: str, workload: str, ranks: int, share: float, **more: Any) -> dict[str, Any]:
    """One job of a microbenchmark whose slowest rank computes for ``share`` of its time when alone."""
    return {
        "name": name,
        "ranks": ranks,
        "workload": {"name": workload, "compute_share": share, **MICROBENCHMARKS[workload], **more},
    }


def static_jobs(
    system: System, share: float = 0.65, workloads: Sequence[str] = STATIC, **more: Any
) -> list[dict[str, Any]]:
    """As many jobs as the system runs of each workload; ``more`` goes to the workloads that have no imbalance yet."""
    return [
        job(f"{SHORT[workload]}-{copy}", workload, system.ranks, share, **_unless_given(workload, more))
        for workload in workloads
        for copy in range(system.copies)
    ]


def _unless_given(workload: str, more: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in more.items() if key not in MICROBENCHMARKS[workload]}


def scenario(name: str, system: System, jobs: Sequence[Mapping[str, Any]], placement: int) -> Scenario:
    """A scenario on one of the systems; ``placement`` is the seed of the hosts, everything else has seed 1.

    All placements run the same jobs: the same division of compute time, the same pairs.
    """
    return Scenario(
        name=name,
        fabric={
            "topology": "fat_tree",
            "hosts": system.hosts,
            "levels": system.levels,
            "radix": system.radix,
            "bandwidth": system.bandwidth,
            "latency": "100 ns",
            "routing": "d_mod_k",
        },
        qos={"service_levels": 16},
        observe={"counters": False},
        placement={"name": "random", "seed": placement},
        jobs=list(jobs),
    )
