"""Input-queued switches against two published simulators, with the settings of those: throughput and latency.

The same fabrics, packets, buffers and latencies are simulated with both switch architectures. Usage:
``python benches/switches.py``; prints each point next to that of the reference and writes ``docs/data/switches.csv``;
``tools/draw_figures.py switches`` draws the figure from it.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import polars as pl

import fairlane
from fairlane.study.shipped.saturation import LoadSweep

ROOT = Path(__file__).parent.parent
REFERENCE = Path(__file__).with_name("saturation-reference.csv")
TABLE = ROOT / "docs" / "data" / "switches.csv"

LOADS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
REPLICATES = 2
SLOTS, WARM_UP = 6000, 2000
"""Simulated time and warm-up, in packets that a link carries."""


@dataclass(frozen=True)
class Simulator:
    """Units and settings of a simulator. A cycle is the time that a link takes for a flit of `flit` bytes."""

    name: str
    flits: int
    """Flits of a packet."""
    switch_latency: int
    """Cycles from a head's arrival at a switch to its first chance to leave it, as its latency at low load shows."""
    flit: int
    cycle: float
    """Nanoseconds."""
    self_traffic: bool
    """Whether uniform traffic includes messages to oneself."""

    @property
    def packet(self) -> int:
        """Bytes of a packet."""
        return self.flit * self.flits


BOOKSIM = Simulator("BookSim 2.0", 1, 2, 1000, 10.0, self_traffic=True)
CAMINOS = Simulator("CAMINOS 0.6.3", 16, 1, 250, 2.5, self_traffic=False)


@dataclass(frozen=True)
class Case:
    """A curve of a reference: by its names there, and what it is here."""

    simulator: Simulator
    fabric: str
    reference: tuple[str, str]
    """Routing and traffic."""
    routing: str
    pattern: str | dict[str, Any]
    buffer: int
    """Packets of an input buffer."""
    latency: Mapping[str, int]
    """Cycles, by key of the fabric's table."""
    host_links: int = 0
    """How many cycles the two host links of a path have more here: the topology has one latency for all short links."""


TREE2 = {"topology": "fat_tree", "hosts": 64, "levels": 2, "radix": 16}
TREE3 = {"topology": "fat_tree", "hosts": 64, "levels": 3, "radix": 8}
TORUS = {"topology": "torus", "sides": [8, 8]}
DRAGONFLY = {"topology": "dragonfly", "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2}
FABRICS: dict[str, dict[str, Any]] = {
    "ftree64_8ary2": TREE2,
    "ftree64_4ary3": TREE3,
    "torus8x8": TORUS,
    "dfly72": DRAGONFLY,
}
NEXT_GROUP = {"name": "next_group", "group": 8}
ONE = {"latency": 1}
CASES = [
    Case(BOOKSIM, "ftree64_8ary2", ("nca", "uniform"), "d_mod_k", "uniform", 16, ONE),
    Case(CAMINOS, "ftree64_8ary2", ("updown_random", "uniform"), "d_mod_k", "uniform", 4, ONE),
    Case(BOOKSIM, "ftree64_4ary3", ("nca", "uniform"), "d_mod_k", "uniform", 16, ONE),
    Case(CAMINOS, "ftree64_4ary3", ("updown_random", "uniform"), "d_mod_k", "uniform", 4, ONE),
    Case(BOOKSIM, "torus8x8", ("dim_order", "uniform"), "dimension_order", "uniform", 16, {"latency": 2}, 2),
    Case(CAMINOS, "torus8x8", ("dor", "uniform"), "dimension_order", "uniform", 4, ONE),
    Case(BOOKSIM, "dfly72", ("min", "uniform"), "minimal", "uniform", 256, {"latency": 10, "global_latency": 100}, 18),
    Case(CAMINOS, "dfly72", ("min", "uniform"), "minimal", "uniform", 8, {"latency": 1, "global_latency": 10}),
    Case(
        BOOKSIM, "dfly72", ("min", "bad_dragon"), "minimal", NEXT_GROUP, 256, {"latency": 10, "global_latency": 100}, 18
    ),
    Case(CAMINOS, "dfly72", ("min", "adv+1"), "minimal", NEXT_GROUP, 8, {"latency": 1, "global_latency": 10}),
]
OUTPUT_BUFFER = 16
"""Packets of an output buffer's lane; neither reference limits it in bytes as we do."""


def architecture(case: Case, queues: str = "fifo") -> dict[str, Any]:
    """The switches of the references: a queue for each lane, a speed-up of 2, one iteration."""
    return {
        "name": "input_queued",
        "queues": queues,
        "speedup": 2,
        "iterations": 1,
        "output_buffer": f"{OUTPUT_BUFFER * case.simulator.packet} B",
    }


def measure(
    case: Case,
    switch: str | dict[str, Any],
    loads: tuple[float, ...] = LOADS,
    slots: tuple[int, int] = (SLOTS, WARM_UP),
) -> list[tuple[float, float, float]]:
    """Offered and accepted load, and mean latency in cycles, at each load.

    The latency is made comparable: without what host links are longer here, and without the difference between the
    queueing at a source of Poisson arrivals (M/D/1) and of at most one flit a cycle (Geo/D/1), r / (2 (1 - r)).
    """
    one = case.simulator
    load = {"name": "open_loop", "pattern": case.pattern, "message_size": f"{one.packet} B"}
    latencies = {key: f"{cycles * one.cycle} ns" for key, cycles in case.latency.items()}
    fabric = FABRICS[case.fabric]
    hosts = 72 if fabric is DRAGONFLY else 64
    scenario = fairlane.Scenario(
        name="switches",
        duration=f"{slots[0] * one.flits * one.cycle} ns",
        fabric={**fabric, **latencies, "bandwidth": f"{8 * one.flit / one.cycle} Gb/s", "routing": case.routing},
        network={
            "mtu": f"{one.packet} B",
            "header": "0 B",
            "buffer": f"{case.buffer * one.packet} B",
            "switch_latency": f"{one.switch_latency * one.cycle} ns",
            "switch": switch,
        },
        mpi={"control_bytes": "0 B"},
        placement="linear",
        jobs=[{"name": "load", "ranks": hosts, "workload": load}],
    )
    warm_up = f"{slots[1] * one.flits * one.cycle} ns"
    plan = LoadSweep(scenario, loads=loads, replicates=REPLICATES, warm_up=warm_up)
    columns = plan.run().points.select("load", "accepted", pl.col("message_mean_ps") / 1e3 / one.cycle)
    return [
        (offered, accepted, latency - case.host_links - (offered / (2 * (1 - offered)) if offered < 1 else 0))
        for offered, accepted, latency in columns.iter_rows()
    ]


def reference(case: Case) -> dict[float, tuple[float, float]]:
    """Accepted load and latency in cycles by offered load; packets to oneself are taken out of the latency."""
    found = {}
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            if (row["simulator"], row["fabric"], row["routing"], row["traffic"]) == (
                case.simulator.name,
                case.fabric,
                *case.reference,
            ):
                latency = float(row["latency_cycles"] or nan)
                if case.simulator.self_traffic and case.pattern == "uniform":
                    hosts = 72 if case.fabric == "dfly72" else 64
                    own = 2 + case.simulator.switch_latency + case.simulator.flits  # two links and a switch
                    latency = (latency - own / hosts) / (1 - 1 / hosts)
                found[float(row["offered"])] = float(row["accepted"]), latency
    return found


def main() -> None:
    """Simulates all cases."""
    with TABLE.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(
            ["simulator", "fabric", "routing", "traffic", "architecture", "offered", "accepted", "latency_cycles"]
        )
        for case in CASES:
            theirs = reference(case)
            curves = {
                "input_queued": measure(case, architecture(case)),
                "output_queued": measure(case, "output_queued"),
                "reference": [(offered, *point) for offered, point in theirs.items()],
            }
            for kind, points in curves.items():
                for offered, accepted, latency in points:
                    row = [case.simulator.name, case.fabric, *case.reference, kind, offered]
                    rows.writerow([*row, f"{accepted:.4f}", "" if isnan(latency) else f"{latency:.2f}"])
                compared = " | ".join(
                    f"{offered:g}: {accepted:.3f}/{theirs[offered][0]:.3f} {latency:.1f}/{theirs[offered][1]:.1f}"
                    for offered, accepted, latency in points
                )
                print(f"{case.simulator.name} {case.fabric} {case.reference[1]} {kind}: {compared}", flush=True)
    print(TABLE)


if __name__ == "__main__":
    main()
