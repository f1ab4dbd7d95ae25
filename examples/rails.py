r"""Demonstrates hosts with two adapters: how much a neighbour slows an application down, and in which queues.

16 ranks of a Fourier transform on 8 hosts, 56 of an all-to-all on the other 28; six leaves, two planes:

    plane 0   [spines]            [spines]   plane 1
               | | |               | | |
             [six leaves]        [six leaves]
                   \__ 36 hosts __/

Every run has other hosts. `python rails.py 24 lu` makes 24 runs of each, with another application.
"""

import sys
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fairlane

BY_PROCESS: dict[str, Any] = {"policy": "by_source", "order": "random"}
CHOICES: list[tuple[str, Any, Any]] = [
    ("both by process, both by process", BY_PROCESS, BY_PROCESS),
    ("both in turn, both in turn", "round_robin", "round_robin"),
    ("only 0, both by process", {"only": 0}, BY_PROCESS),
    ("only 0, only 0", {"only": 0}, {"only": 0}),
    ("only 0, only 1", {"only": 0}, {"only": 1}),
]
"""What to call them, and the rails of the application and of its neighbour."""
COMPUTE = {"ft": "20 us", "lu": "100 us", "mg": "50 us", "kripke": "100 us"}
PLACES = {
    "adapter to leaf": "host up",
    "leaf to spine": "leaf up",
    "spine to leaf": "leaf down",
    "leaf to adapter": "host down",
}
"""What to call the queues, and the classes of their links."""


def simulate(application: str, own: Any, its: Any, seed: int) -> fairlane.Simulation:
    """2 ms of the application, with its neighbour's load or without any."""
    compute, idle = COMPUTE[application], its is None
    simulation = fairlane.Simulation(
        fairlane.Scenario(
            fabric={"topology": "fat_tree", "hosts": 36, "radix": 12, "levels": 2, "bandwidth": "32 Gb/s", "rails": 2},
            jobs=[
                {"ranks": 16, "rails": own, "workload": {"name": application, "compute": compute}},
                {"ranks": 56, "rails": its, "workload": {"name": "all_to_all", "compute": "1 s" if idle else 0}},
            ],
            placement={"name": "random", "ranks_per_host": 2},
            observe={"interference_by_port": True},
            seed=seed,
        )
    )
    simulation.run_for("2 ms")
    return simulation


def pace(simulation: fairlane.Simulation) -> float:
    """Microseconds that an iteration of the application's slowest rank takes."""
    ranks = simulation.table("ranks")
    spans = ranks.filter(job=0).select((pl.col("last_mark_ps") - pl.col("first_mark_ps")) / (pl.col("iterations") - 1))
    return float(spans.max().item()) * 1e-6


def waiting(simulation: fairlane.Simulation) -> NDArray[np.float64]:
    """Microseconds that packets of a rank wait in an iteration for the neighbour's, by place."""
    victim, aggressor = simulation.jobs
    iterations = simulation.table("ranks").filter(name=victim)["iterations"].sum()
    waits = simulation.table("port_interference").filter(victim=victim, aggressor=aggressor)
    by_class = dict(waits.group_by("class").agg(pl.col("queueing_ps").sum()).iter_rows())
    return np.array([by_class.get(place, 0) * 1e-6 / iterations for place in PLACES.values()])


def main(runs: int = 6, application: str = "ft") -> None:
    """A line for each choice of rails."""
    print(f"{application}, {runs} runs" + " " * 24 + "  alone  slowed down: by  from    to   waits for it   where")
    for name, own, its in CHOICES:
        alone = np.array([pace(simulate(application, own, None, seed)) for seed in range(1, runs + 1)])
        beside = [simulate(application, own, its, seed) for seed in range(1, runs + 1)]
        slowdown = np.array([pace(simulation) for simulation in beside]) / alone
        places = np.array([waiting(simulation) for simulation in beside])
        total = places.sum(axis=1)
        follows = f"(r = {np.corrcoef(slowdown, total)[0, 1]:.2f})" if total.any() else ""
        share = places.sum(axis=0) / max(1e-9, places.sum())
        where = f"{share.max():.0%} {list(PLACES)[int(share.argmax())]}" if total.any() else "-"
        print(
            f"{name:35} {alone.mean():6.1f} us {slowdown.mean() - 1:13.1%} {slowdown.min() - 1:6.1%}"
            f" {slowdown.max() - 1:6.1%} {total.mean():6.1f} us {follows:10} {where}"
        )


if __name__ == "__main__":
    main(*(kind(given) for kind, given in zip((int, str), sys.argv[1:], strict=False)))
