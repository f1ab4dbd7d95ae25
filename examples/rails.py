r"""Demonstrates hosts with two adapters: the slowdown of an application by another job, and the queues that cause it.

16 ranks of a Fourier transform on 8 hosts, 56 of an all-to-all on the other 28; six leaves, two planes:

    plane 0   [spines]            [spines]   plane 1
               | | |               | | |
             [six leaves]        [six leaves]
                   \__ 36 hosts __/

Every run has other random hosts. `python rails.py 24 lu` makes 24 runs of each policy with another application.
"""

import sys
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fairlane

BY_SOURCE: dict[str, Any] = {"policy": "by_source", "order": "random"}
CHOICES: list[tuple[str, Any, Any]] = [
    ("by source, by source", BY_SOURCE, BY_SOURCE),
    ("round-robin, round-robin", "round_robin", "round_robin"),
    ("only 0, by source", {"only": 0}, BY_SOURCE),
    ("only 0, only 0", {"only": 0}, {"only": 0}),
    ("only 0, only 1", {"only": 0}, {"only": 1}),
]
"""The rail policies of the application and of its neighbour, with a label."""
COMPUTE = {"ft": "20 us", "lu": "100 us", "mg": "50 us", "kripke": "100 us"}
PLACES = {
    "adapter to leaf": "host up",
    "leaf to spine": "leaf up",
    "spine to leaf": "leaf down",
    "leaf to adapter": "host down",
}
"""The queues, by the class of their links."""


def simulate(application: str, own: Any, its: Any, seed: int) -> fairlane.Simulation:
    """2 ms of the application, co-run with its neighbour, or isolated."""
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


def queueing(simulation: fairlane.Simulation) -> NDArray[np.float64]:
    """Queueing delay caused by the neighbour, in microseconds per rank and iteration, by place."""
    victim, aggressor = simulation.jobs
    iterations = simulation.table("ranks").filter(name=victim)["iterations"].sum()
    waits = simulation.table("port_interference").filter(victim=victim, aggressor=aggressor)
    by_class = dict(waits.group_by("class").agg(pl.col("queueing_ps").sum()).iter_rows())
    return np.array([by_class.get(place, 0) * 1e-6 / iterations for place in PLACES.values()])


def main(runs: int = 6, application: str = "ft") -> None:
    """A line for each choice of rails."""
    head = f"{application}, {runs} runs"
    print(f"{head:35}{'isolated':>10}{'slowdown mean':>14}{'min':>7}{'max':>7}{'queueing':>10}{'where':>17}")
    for name, own, its in CHOICES:
        isolated = np.array([pace(simulate(application, own, None, seed)) for seed in range(1, runs + 1)])
        co_run = [simulate(application, own, its, seed) for seed in range(1, runs + 1)]
        slowdown = np.array([pace(simulation) for simulation in co_run]) / isolated
        places = np.array([queueing(simulation) for simulation in co_run])
        total = places.sum(axis=1)
        follows = f"(r = {np.corrcoef(slowdown, total)[0, 1]:.2f})" if total.any() else ""
        share = places.sum(axis=0) / max(1e-9, places.sum())
        where = f"{share.max():.0%} {list(PLACES)[int(share.argmax())]}" if total.any() else "-"
        print(
            f"{name:35} {isolated.mean():6.1f} us {slowdown.mean() - 1:13.1%} {slowdown.min() - 1:6.1%}"
            f" {slowdown.max() - 1:6.1%} {total.mean():6.1f} us {follows:10} {where}"
        )


if __name__ == "__main__":
    main(*(kind(given) for kind, given in zip((int, str), sys.argv[1:], strict=False)))
