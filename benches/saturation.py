"""Accepted throughput and latency against offered load, of every routing under uniform and adversarial traffic.

The sweeps are those of ``fairlane saturate``. Beside our curves stand those of two published simulators, as far as they
have the routing, and the theoretical bounds. Usage: ``python benches/saturation.py [FABRIC ...]``; draws a figure of
each fabric in ``docs/images/`` and, for all fabrics, writes ``docs/data/saturation.csv``; ``--redraw`` draws from that
table.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import fairlane
from fairlane.plot.style import MUTED, PALETTE, canvas, percentages, styled
from fairlane.saturation import OpenLoopOptions, prepared, sweep

ROOT = Path(__file__).parent.parent
REFERENCE = Path(__file__).with_name("saturation-reference.csv")
TABLE = ROOT / "docs" / "data" / "saturation.csv"
IMAGES = ROOT / "docs" / "images"

LOADS = (0.05, *(step / 10 for step in range(1, 11)))
REPLICATES = 3
SIMULATORS = {"BookSim": "--", "CAMINOS": ":"}
"""Other simulators, and their lines."""


@dataclass(frozen=True)
class Traffic:
    """The destination pattern, the theoretical bounds by routing, and the same traffic's names in the reference."""

    pattern: str | dict[str, Any]
    bounds: dict[str, float]
    reference: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A fabric with its routings and traffics; routings by their names in the reference."""

    fabric: dict[str, Any]
    hosts: int
    routings: dict[str, tuple[str, ...]]
    traffic: dict[str, Traffic]


TREE_ROUTINGS = {"d_mod_k": (), "adaptive": ("nca", "anca", "updown_random", "updown_adaptive")}
TREE_TRAFFIC = {
    "uniform": Traffic("uniform", {}, ("uniform",)),
    "complement": Traffic("complement", {}, ("bitcomp",)),
}
CASES = {
    "dfly72": Case(
        {"topology": "dragonfly", "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2},
        72,
        {"minimal": ("min",), "valiant": ("valiant",), "ugal_l": ("ugal",), "ugal_g": (), "progressive": ()},
        {
            "uniform": Traffic("uniform", {"valiant": 71 / 128}, ("uniform",)),
            "next group": Traffic(
                {"name": "next_group", "group": 8},
                {"minimal": 1 / 8, "valiant": 7 / 16, "adaptive": 9 / 16},
                ("bad_dragon", "adv+1"),
            ),
        },
    ),
    "torus8x8": Case(
        {"topology": "torus", "sides": [8, 8]},
        64,
        {"dimension_order": ("dim_order", "dor"), "valiant": ("valiant",), "ugal_l": (), "ugal_g": ()},
        {
            "uniform": Traffic("uniform", {"valiant": 1 / 2}, ("uniform",)),
            "tornado": Traffic(
                {"name": "shift", "sides": [8, 8], "steps": [3, 3]},
                {"dimension_order": 1 / 3, "valiant": 1 / 2},
                ("tornado",),
            ),
        },
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
    load = {"name": "open_loop", "pattern": case.traffic[traffic].pattern, "message_size": "4 KiB"}
    scenario = fairlane.Scenario(
        name="saturation",
        duration="400 us",
        fabric={**case.fabric, "bandwidth": "100 Gb/s", "latency": "100 ns", "routing": routing},
        placement="linear",
        jobs=[{"name": "load", "ranks": case.hosts, "workload": load}],
    )
    found = sweep(prepared(scenario, LOADS, replicates=REPLICATES, options=OpenLoopOptions()))
    columns = found.points.select("load", "accepted", "links", pl.col("message_mean_ps") / 1e3, "saturated")
    return [Point(name, traffic, routing, *row) for row in columns.iter_rows()]


def reference(
    name: str, traffic: Traffic, routings: tuple[str, ...]
) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """The curves of other simulators for one of ours: a label, and pairs of offered and accepted."""
    found: dict[str, list[tuple[float, float]]] = {}
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            if row["fabric"] == name and row["routing"] in routings and row["traffic"] in traffic.reference:
                point = float(row["offered"]), float(row["accepted"])
                found.setdefault(f"{row['simulator']}, {row['routing']}", []).append(point)
    yield from ((label, sorted(points)) for label, points in found.items())


def draw(name: str, points: list[Point]) -> Path:
    """One figure for a fabric: accepted load and latency, a column for each traffic."""
    case = CASES[name]
    with styled():
        figure = canvas(13, 8)
        axes = figure.subplots(2, len(case.traffic), sharex=True, sharey="row")
        for column, traffic in enumerate(case.traffic):
            _accepted(axes[0][column], name, traffic, points)
            _latency(axes[1][column], name, traffic, points)
        axes[0][0].set_ylabel("Accepted throughput")
        axes[1][0].set_ylabel("Mean latency [µs]")
        marks = [Line2D([], [], color=PALETTE[at], marker="o", markersize=4) for at in range(len(case.routings))]
        marks += [Line2D([], [], color=MUTED, linestyle=style) for style in SIMULATORS.values()]
        where = {"loc": "outside upper left", "ncols": len(marks), "columnspacing": 1.2, "handlelength": 1.8}
        figure.legend(marks, [*case.routings, *SIMULATORS], **where)
        what = "Shares of the injection bandwidth. Grey lines: bounds by theory; latency: loads not saturated."
        note = f"{name}: means over {REPLICATES} seeds. {what}"
        figure.supxlabel(note, x=0.012, ha="left", fontsize=10, color=MUTED)
        path = IMAGES / f"saturation-{name}.png"
        figure.savefig(path, dpi=110)
    return path


def _curve(name: str, traffic: str, routing: str, points: list[Point]) -> list[Point]:
    return [it for it in points if (it.fabric, it.traffic, it.routing) == (name, traffic, routing)]


def _accepted(panel: Axes, name: str, traffic: str, points: list[Point]) -> None:
    """Accepted throughput of every routing, of other simulators, and the bounds."""
    case = CASES[name]
    panel.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8)
    for number, (routing, names) in enumerate(case.routings.items()):
        own = _curve(name, traffic, routing, points)
        look: dict[str, Any] = {"color": PALETTE[number], "marker": "o", "markersize": 4, "zorder": 3}
        panel.plot([it.offered for it in own], [it.accepted for it in own], **look)
        for label, curve in reference(name, case.traffic[traffic], names):
            style = next(style for simulator, style in SIMULATORS.items() if label.startswith(simulator))
            panel.plot(*zip(*curve, strict=True), color=PALETTE[number], linestyle=style, linewidth=1.3, alpha=0.8)
    for label, bound in case.traffic[traffic].bounds.items():
        panel.axhline(bound, color=MUTED, linewidth=0.8)
        panel.annotate(f"{label}: {bound:.1%}", (0.02, bound), fontsize=9, color=MUTED, va="bottom", ha="left")
    panel.set(ylim=(0, 1.05))
    panel.set_title(traffic, loc="left", fontsize=13, fontweight="bold")
    percentages(panel.yaxis)
    panel.grid(axis="y")


def _latency(panel: Axes, name: str, traffic: str, points: list[Point]) -> None:
    """Mean latency of the loads that are not saturated."""
    for number, routing in enumerate(CASES[name].routings):
        fits = [it for it in _curve(name, traffic, routing, points) if it.saturated == "no"]
        look: dict[str, Any] = {"color": PALETTE[number], "marker": "o", "markersize": 4}
        panel.plot([it.offered for it in fits], [it.latency / 1000 for it in fits], **look)
    panel.set(xlabel="Offered load", ylim=(0, 6), xlim=(0, 1.03))
    percentages(panel.xaxis)
    panel.grid(axis="y")


def stored() -> list[Point]:
    """The points of the table that is there."""
    with TABLE.open() as file:
        return [
            Point(
                row["fabric"],
                row["traffic"],
                row["routing"],
                float(row["offered"]),
                float(row["accepted"]),
                float(row["links"]),
                float(row["latency_ns"]),
                row["saturated"],
            )
            for row in csv.DictReader(file)
        ]


def main() -> None:
    """Measures and draws the fabrics named, or all."""
    if sys.argv[1:] == ["--redraw"]:
        for name in CASES:
            print(draw(name, stored()))
        return
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
        print(draw(name, points))
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
