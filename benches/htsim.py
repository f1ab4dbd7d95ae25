"""Comparison with htsim: permutations and incasts of 1,024 hosts on lossy lanes, with trimming and spraying.

htsim is the simulator in which Ultra Ethernet's transport was designed. Its repository holds the results of its
validation runs, one seed each (github.com/ultraethernet/uet-htsim, ``htsim/sim/datacenter/validate_outputs``, August
2025). The settings here are htsim's defaults: links of 100 Gbit/s and 1 us, switches without latency that store and
forward, packets of 4,150 bytes with headers of 64, queues of one bandwidth-delay product, marks between a fifth and
four fifths of it, headers on a lane of strict priority.

Usage: ``python benches/htsim.py``; prints each case beside htsim's figure and writes ``docs/data/htsim.csv``;
``tools/draw_figures.py htsim`` draws the figure from it.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import fairlane
from fairlane.core.statistics import Estimate, independent

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "data" / "htsim.csv"

SEEDS = range(1, 11)
"""Of the placement, which makes the permutation, and of the paths of flows."""
HEADER, PAYLOAD = 64, 4086
"""Bytes of a packet."""
PACKET_US, HEADER_US, LINK_US = (HEADER + PAYLOAD) * 8e-5, HEADER * 8e-3 / 100, 1.0
"""Times on a wire of 100 Gbit/s and on a link, us."""


@dataclass(frozen=True)
class Tree:
    """A fat-tree of htsim's."""

    hosts: int
    shape: Mapping[str, int]
    links: int
    """Links of the longest path."""

    @property
    def round_trip(self) -> float:
        """Of a full packet and its acknowledgement, us, as htsim computes it."""
        return self.links * (2 * LINK_US + PACKET_US + HEADER_US)

    @property
    def window(self) -> int:
        """Packets of a bandwidth-delay product."""
        return int(self.round_trip / PACKET_US) + 1

    def document(
        self, workload: Mapping[str, Any], *, spray: bool, seed: int, options: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The scenario of an iteration of a workload on all hosts; ``options``: further parameters of the transport."""
        packets = self.window
        transport = {
            "name": "uec",
            "base_rtt": f"{self.round_trip:.4f} us",
            "kmin": f"{-(-packets // 5) * (HEADER + PAYLOAD)} B",
            "kmax": f"{-(-packets * 4 // 5) * (HEADER + PAYLOAD)} B",
            "notice_vl": 1,
            **(options or {}),
        }
        return {
            "name": "htsim",
            "seed": seed,
            "duration": "20 ms",
            "fabric": {
                "topology": "fat_tree",
                "hosts": self.hosts,
                **self.shape,
                "bandwidth": "100 Gbit/s",
                "latency": "1 us",
                "host_latency": "1 us",
                "routing": {"name": "ecmp", "seed": seed, "by": "packet" if spray else "flow"},
            },
            "network": {
                "mtu": f"{PAYLOAD} B",
                "header": f"{HEADER} B",
                "buffer": f"{packets * (HEADER + PAYLOAD)} B",
                "switch_latency": 0,
                "switching": "store_and_forward",
                "transport": transport,
            },
            "qos": {"sl2vl": [0, 1], "service_levels": 2, "lossy": [0], "trim_vl": 1, "arbiter": "strict_priority"},
            "mpi": {"eager_threshold": "1 GB", "send_overhead": 0, "receive_overhead": 0},
            "placement": {"name": "random"},
            "jobs": [{"name": "all", "ranks": self.hosts, "stop": 1, "workload": {"compute": 0, **workload}}],
        }


@dataclass(frozen=True)
class Case:
    """A case of htsim's validation, and the last completion time that it reports, us."""

    name: str
    tree: Tree
    workload: Mapping[str, Any]
    htsim: tuple[float, ...]
    """One value for each path-selection algorithm that applies."""
    spray: bool = True
    seeds: range = SEEDS
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further parameters of the transport."""
    slow_links: int = 0
    """Links from the core to the first aggregation switch with a quarter of their bandwidth."""
    queue: int | None = None
    """Packets of the longest queue, if it is not that of the tree."""

    def scenario(self, seed: int) -> dict[str, Any]:
        """The scenario of one seed."""
        scenario = self.tree.document(self.workload, spray=self.spray, seed=seed, options=self.options)
        if self.queue:
            scenario["network"]["buffer"] = f"{self.queue * (HEADER + PAYLOAD)} B"
        links = [f"core{8 * number} port 1 to aggregation0" for number in range(self.slow_links)]
        scenario["fault"] = [{"kind": "degraded_link", "link": link, "one_way": True, "at": 0} for link in links]
        return scenario

    def tail(self, seed: int) -> tuple[float, int]:
        """When the last sender has its last acknowledgement, us, and how many packets were trimmed."""
        simulation = fairlane.Simulation(fairlane.Scenario.read(self.scenario(seed)))
        simulation.run_for("20 ms")
        ends = simulation.table("ranks")["finished_at_ps"]
        assert ends.null_count() == 0, f"{self.name}: not all ranks have finished"
        acknowledged = self.tree.links * (LINK_US + HEADER_US)
        return float(ends.max()) / 1e6 + acknowledged, simulation.totals()["packets_trimmed"]  # type: ignore[arg-type]


SMALL = Tree(16, {"levels": 3, "radix": 4}, 6)
LARGE = Tree(1024, {"levels": 3, "radix": 16}, 6)
_LEAVES = {"levels": 2, "radix": 40, "leaf_down": 32}
FOUR_TO_ONE = Tree(1024, {**_LEAVES, "leaf_up": 8}, 4)
EIGHT_TO_ONE = Tree(1024, {**_LEAVES, "leaf_up": 4}, 4)


_PERMUTATION = {"name": "shift", "messages_per_iteration": 1, "message_size": "2 MB"}
_INCAST = {"name": "incast", "messages_per_iteration": 1, "message_size": "2 MB"}
FIVE = range(1, 6)
"""Seeds of control by receivers and of path choice."""


def _controlled(control: str, htsim: tuple[float, float, float, float]) -> list[Case]:
    """Permutations with congestion control at receivers, or at both ends."""
    sprayed = {"control": control, "path_choice": "mixed", "paths": 128}

    def case(name: str, tree: Tree, value: float, options: Mapping[str, Any], *, spray: bool = True) -> Case:
        return Case(f"{control}: {name}", tree, _PERMUTATION, (value,), spray, FIVE, options)

    ratios = (4, 8) if control == "receiver" else (1, 1)
    return [
        case("permutation", LARGE, htsim[0], sprayed),
        case("permutation, one path a flow", LARGE, htsim[1], {"control": control}, spray=False),
        case("permutation, 4:1", FOUR_TO_ONE, htsim[2], {**sprayed, "oversubscription": ratios[0]}),
        case("permutation, 8:1", EIGHT_TO_ONE, htsim[3], {**sprayed, "oversubscription": ratios[1]}),
    ]


def _slow(choice: str, htsim: float, queue: int | None = None) -> Case:
    """A permutation with eight slow links and control by senders. htsim names their rate 10%; its source sets 25%."""
    options = {"path_choice": choice, "paths": 128}
    return Case(f"8 slow links, {choice}", LARGE, _PERMUTATION, (htsim,), True, FIVE, options, 8, queue)


CASES = (
    Case("incast of 15, 2 MB", SMALL, _INCAST, (2478.53,)),
    Case("permutation", LARGE, _PERMUTATION, (212.794, 200.507, 208.239)),
    Case("permutation, one path a flow", LARGE, _PERMUTATION, (889.92,), spray=False),
    Case("permutation, 4:1", FOUR_TO_ONE, _PERMUTATION, (785.774,)),
    Case("permutation, 8:1", EIGHT_TO_ONE, _PERMUTATION, (1443.43,)),
    Case("incast of 1,023, 100 kB", LARGE, {**_INCAST, "message_size": "100 kB"}, (10556.2,)),
    *_controlled("receiver", (203.384, 1063.0, 749.717, 1459.06)),
    *_controlled("both", (202.633, 1047.05, 814.138, 1479.39)),
    _slow("reps", 206.684),
    _slow("bitmap", 478.668, queue=500),
)


def run(case: Case) -> tuple[Estimate, float]:
    """The mean completion time of a case over its seeds, and the mean number of trimmed packets."""
    found = [case.tail(seed) for seed in track(case.seeds, case.name)]
    mean = independent([tail for tail, _ in found])
    assert mean is not None, "several seeds"
    return mean, sum(trimmed for _, trimmed in found) / len(found)


def main() -> None:
    """Runs all cases."""
    rows = []
    table = Table("case", "htsim, us", "fairlane, us", "95% interval", "packets trimmed")
    for case in CASES:
        mean, trimmed = run(case)
        published = " to ".join(f"{value:,.0f}" for value in sorted({min(case.htsim), max(case.htsim)}))
        table.add_row(
            case.name, published, f"{mean.value:,.0f}", f"{mean.low:,.0f} to {mean.high:,.0f}", f"{trimmed:,.0f}"
        )
        rows.append([case.name, min(case.htsim), max(case.htsim), mean.value, mean.low, mean.high, trimmed])
    TABLE.parent.mkdir(exist_ok=True)
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "htsim_low_us", "htsim_high_us", "mean_us", "low_us", "high_us", "trimmed"])
        writer.writerows(rows)
    Console().print(table)


if __name__ == "__main__":
    main()
