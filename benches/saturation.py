"""Accepted throughput and latency against offered load, of every routing under uniform and adversarial traffic.

The sweeps are those of ``fairlane saturate``. Usage: ``python benches/saturation.py [FABRIC ...]``; for all fabrics
writes ``docs/data/saturation.csv``. ``tools/draw_figures.py`` draws a figure of each fabric from it, with the curves of
two published simulators, as far as they have the routing, and the theoretical bounds.
"""

import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import fairlane
from fairlane.study.shipped.saturation import LoadSweep

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "data" / "saturation.csv"

LOADS = (0.05, *(step / 10 for step in range(1, 11)))
REPLICATES = 3


@dataclass(frozen=True)
class Case:
    """A fabric with its routings and its destination patterns by name."""

    fabric: dict[str, Any]
    hosts: int
    routings: tuple[str, ...]
    traffic: dict[str, str | dict[str, Any]]


TREE_ROUTINGS = ("d_mod_k", "adaptive")
TREE_TRAFFIC: dict[str, str | dict[str, Any]] = {"uniform": "uniform", "complement": "complement"}
CASES = {
    "dfly72": Case(
        {"topology": "dragonfly", "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2},
        72,
        ("minimal", "valiant", "ugal_l", "ugal_g", "progressive"),
        {"uniform": "uniform", "next group": {"name": "next_group", "group": 8}},
    ),
    "torus8x8": Case(
        {"topology": "torus", "sides": [8, 8]},
        64,
        ("dimension_order", "valiant", "ugal_l", "ugal_g"),
        {"uniform": "uniform", "tornado": {"name": "shift", "sides": [8, 8], "steps": [3, 3]}},
    ),
    "ftree64_8ary2": Case(
        {"topology": "fat_tree", "hosts": 64, "levels": 2, "radix": 16}, 64, TREE_ROUTINGS, TREE_TRAFFIC
    ),
    "ftree64_4ary3": Case(
        {"topology": "fat_tree", "hosts": 64, "levels": 3, "radix": 8}, 64, TREE_ROUTINGS, TREE_TRAFFIC
    ),
}


@dataclass(frozen=True)
class Point:
    """What became of a load: means over the seeds."""

    fabric: str
    traffic: str
    routing: str
    offered: float
    accepted: float
    """Part of what the hosts' links carry."""
    links: float
    """Links of a packet's path on average, those of hosts too."""
    latency: float
    """Mean from generation to the last byte, ns."""
    saturated: str
    """Whether the load saturates the fabric: yes, no or undecided."""


def measure(name: str, traffic: str, routing: str) -> list[Point]:
    """Simulates every load."""
    case = CASES[name]
    load = {"name": "open_loop", "pattern": case.traffic[traffic], "message_size": "4 KiB"}
    scenario = fairlane.Scenario(
        name="saturation",
        duration="400 us",
        fabric={**case.fabric, "bandwidth": "100 Gb/s", "latency": "100 ns", "routing": routing},
        placement="linear",
        jobs=[{"name": "load", "ranks": case.hosts, "workload": load}],
    )
    found = LoadSweep(scenario, loads=LOADS, replicates=REPLICATES).run()
    columns = found.points.select("load", "accepted", "links", pl.col("message_mean_ps") / 1e3, "saturated")
    return [Point(name, traffic, routing, *row) for row in columns.iter_rows()]


def main() -> None:
    """Measures the fabrics named, or all."""
    names = sys.argv[1:] or list(CASES)
    points: list[Point] = []
    for name in names:
        for traffic in CASES[name].traffic:
            for routing in CASES[name].routings:
                own = measure(name, traffic, routing)
                knee = max((point.offered for point in own if point.saturated == "no"), default=0.0)
                at_most = max(point.accepted for point in own)
                print(
                    f"{name:14} {traffic:11} {routing:16} all up to {knee:.2f}, at most {at_most:.3f}, "
                    f"at 1.0 {own[-1].accepted:.3f}; idle: {own[0].links:.3f} links, {own[0].latency:.0f} ns",
                    flush=True,
                )
                points += own
    if not sys.argv[1:]:
        write(points)


def write(points: list[Point]) -> None:
    """The table of all points."""
    with TABLE.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["fabric", "traffic", "routing", "offered", "accepted", "links", "latency_ns", "saturated"])
        for it in points:
            measured = f"{it.accepted:.4f}", f"{it.links:.3f}", f"{it.latency:.0f}", it.saturated
            rows.writerow([it.fabric, it.traffic, it.routing, it.offered, *measured])


if __name__ == "__main__":
    main()
