"""Wilke and Kenny 2020, Opportunities and limitations of QoS in MPI applications: its cells, figure by figure.

A cell is one simulation: a foreground job on what background jobs have left of the machine, under one strategy on one
fabric, until the foreground has made its iterations.

What the paper leaves open is chosen here, once for all cells: links of 100 Gb/s, packets of 4 KiB, buffers of 64 KiB a
lane; as many background jobs as the machine has room for beside the foreground (7, 6 or 4: "4-7"), the last of them
started at once and all of them for ever; one foreground rank a host. Isolate on Dragonfly-PAR needs a lane for each job
and virtual channel, more than a switch has with a channel for each hop: there packets take the fewest channels that
cannot deadlock.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.scenario import Scenario

__all__ = ["EXPERIMENTS", "FULL", "QUICK", "Cell", "Experiment", "Scale", "scenario", "written"]

STRATEGIES = ("none", "split_priority", "bandwidth_weight", "isolate")
DRAGONFLIES = ("dragonfly-par", "dragonfly-min-par")
FAT_TREES = ("fat-tree", "fat-tree-taper")
FOREGROUND = "foreground"
"""The name of the job that is measured."""
NOBODY = "nobody"
"""The background that is none."""
NO_CONTENTION = "no_contention"
"""No background, and a fabric in which only hosts' own links take time: queues in switches are ignored."""


@dataclass(frozen=True)
class Cell:
    """One simulation: plain values only."""

    fabric: str
    """Name in the scale's table of fabrics."""
    foreground: str
    """Its workload, by the name in ``workloads``."""
    background: str
    """Workload of the background jobs, ``nobody`` or ``no_contention``."""
    strategy: str
    size: int = 1
    """Ranks of the foreground, in ranks of a background job."""

    def __str__(self) -> str:
        return f"{self.foreground}-{self.size}-{self.fabric}-{self.background}-{self.strategy}"


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper and the cells that it takes."""

    name: str
    figure: str
    title: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Scale:
    """How large everything is."""

    name: str
    hosts: int
    ranks: int
    """Ranks of a background job."""
    fabrics: Mapping[str, Mapping[str, Any]]
    workloads: Mapping[str, Mapping[str, Any]]
    iterations: Mapping[str, int]
    """Iterations of the foreground, by workload."""
    warm_up: str
    """When the foreground starts."""
    limit: str = "1 s"
    """The latest end of a simulation."""


def _adaptive(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {"topology": "fat_tree", **tree, "routing": "adaptive"}


def _progressive(dragonfly: Mapping[str, Any], lanes: Sequence[str] | None = None) -> dict[str, Any]:
    """Progressive adaptive routing, or another one for each lane; lanes are numbered by rising priority."""
    routing: Any = "progressive" if lanes is None else {"name": "per_lane", "lanes": list(lanes)}
    return {"topology": "dragonfly", **dragonfly, "arrangement": "circulant", "routing": routing}


MIN_PAR = ("progressive", "progressive", "minimal")
"""Data, of low priority, is routed adaptively; control, of high priority, minimally."""


def _fabrics(
    dragonfly: Mapping[str, Any], tree: Mapping[str, Any], tapered: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    return {
        "dragonfly-par": _progressive(dragonfly),
        "dragonfly-min-par": _progressive(dragonfly, MIN_PAR),
        "fat-tree": _adaptive(tree),
        "fat-tree-taper": _adaptive(tapered),
    }


PING_PONG_SIZES = [f"{size} KiB" for size in sorted([15, *(2**power for power in range(11))])]
"""1 KiB to 1 MiB, and the size at which the paper sees adaptive routing win."""


def _repeated(times: int) -> dict[str, Any]:
    """Ping-pong of all pairs at once, each size so many times before the next: pairs are at about the same size."""
    return {"sizes": [size for size in PING_PONG_SIZES for _ in range(times)]}


WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "halo3d": {"message_size": "2 MiB"},
    "fft": {"message_size": "32 KiB"},
    "allreduce": {"message_size": "8 B"},
    "sweep3d": {"message_size": "40 KiB", "message_size_across": "10 KiB"},
}
"""FFT exchanges messages of 10 to 100 KB (section VI.C): 32 KiB is taken as what a rank has for each other one."""

FULL = Scale(
    name="full",
    hosts=8192,
    ranks=1024,
    fabrics=_fabrics({"preset": "wilke2020"}, {"preset": "wilke2020"}, {"preset": "wilke2020-tapered"}),
    workloads={**WORKLOADS, "ping_pong": _repeated(10)},
    iterations={"halo3d": 4, "fft": 10, "allreduce": 50, "sweep3d": 4, "ping_pong": 10 * len(PING_PONG_SIZES)},
    warm_up="1 ms",
)
"""As in the paper. It does not say how many iterations there were."""

QUICK = Scale(
    name="quick",
    hosts=128,
    ranks=16,
    fabrics=_fabrics(
        {"groups": 4, "switches_per_group": 8, "hosts_per_switch": 4, "global_links": 4},
        {"hosts": 128, "levels": 3, "radix": 16},
        {"hosts": 128, "levels": 3, "leaf_down": 8, "leaf_up": 6, "aggregation_down": 8, "aggregation_up": 6},
    ),
    workloads={**WORKLOADS, "halo3d": {"message_size": "256 KiB"}, "ping_pong": _repeated(4)},
    iterations={"halo3d": 4, "fft": 6, "allreduce": 20, "sweep3d": 2, "ping_pong": 4 * len(PING_PONG_SIZES)},
    warm_up="200 us",
)
"""A 64th of the hosts, with the same proportions of ports, and faces of an eighth: a second or two a cell."""


def _box_plot(foreground: str, backgrounds: Iterable[str]) -> list[Cell]:
    """One foreground size on every fabric: every strategy beside every background, and both baselines."""
    cells = []
    for fabric in (*DRAGONFLIES, *FAT_TREES):
        cells += [Cell(fabric, foreground, baseline, "none") for baseline in (NO_CONTENTION, NOBODY)]
        cells += [Cell(fabric, foreground, beside, strategy) for beside in backgrounds for strategy in STRATEGIES]
    return cells


def _scaling(foreground: str) -> list[Cell]:
    """Growing foregrounds on one fabric of each kind beside Halo3D."""
    return [
        Cell(fabric, foreground, "halo3d", strategy, size)
        for fabric in ("dragonfly-par", "fat-tree")
        for size in (1, 2, 4)
        for strategy in STRATEGIES
    ]


EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one
    for one in (
        Experiment(
            "pingpong",
            "Fig. 6",
            "ping-pong beside Halo3D",
            [Cell("dragonfly-par", "ping_pong", "halo3d", strategy) for strategy in STRATEGIES],
        ),
        Experiment(
            "pingpong.min-par",
            "Fig. 7",
            "ping-pong under two routings",
            [Cell(fabric, "ping_pong", "halo3d", "split_priority") for fabric in DRAGONFLIES],
        ),
        Experiment("halo3d", "Fig. 8", "Halo3D", _box_plot("halo3d", ("fft", "halo3d"))),
        Experiment("halo3d.scaling", "Fig. 9", "Halo3D on more ranks", _scaling("halo3d")),
        Experiment("fft", "Fig. 10", "FFT", _box_plot("fft", ("fft", "halo3d"))),
        Experiment("fft.scaling", "Fig. 11", "FFT on more ranks", _scaling("fft")),
        Experiment("allreduce", "Fig. 12", "allreduce of one element", _box_plot("allreduce", ("halo3d",))),
        Experiment("sweep3d", "Fig. 13", "Sweep3D", _box_plot("sweep3d", ("fft", "halo3d"))),
        Experiment(
            "port-counters",
            "Fig. 15",
            "ports with Halo3D beside Halo3D",
            [Cell(fabric, "halo3d", "halo3d", "split_priority") for fabric in (*DRAGONFLIES, *FAT_TREES)],
        ),
    )
}
"""In the paper's order. Figures share cells; a cell is run once."""


def scenario(cell: Cell, scale: Scale) -> Scenario:
    """The scenario of a cell."""
    return Scenario(**written(cell, scale))


def written(cell: Cell, scale: Scale) -> dict[str, Any]:
    """The scenario of a cell as in a file. Whatever runs beside it, the foreground has the same hosts and program."""
    ranks = cell.size * scale.ranks
    fabric = dict(scale.fabrics[cell.fabric])
    if cell.strategy == "isolate" and cell.fabric == DRAGONFLIES[0]:
        fabric["routing"] = {"name": fabric["routing"], "channels": "fewest"}
    if cell.background == NO_CONTENTION:
        fabric |= {"bandwidth": "100 Tb/s", "host_bandwidth": "100 Gb/s"}
        fabric["routing"] = "d_mod_k" if fabric["topology"] == "fat_tree" else "minimal"
    workload = {"name": cell.foreground, **scale.workloads[cell.foreground], "jitter": 0}
    return {
        "name": str(cell),
        "seed": 1,
        "duration": scale.limit,
        "fabric": fabric,
        "qos": {"strategy": cell.strategy},
        "observe": {"iterations": [FOREGROUND]},
        "jobs": [
            *_background(cell, scale, (scale.hosts - ranks) // scale.ranks),
            {
                "name": FOREGROUND,
                "ranks": ranks,
                "workload": workload,
                "placement": "linear",
                "start": scale.warm_up,
                "stop": scale.iterations[cell.foreground],
                "stream": 100,
            },
        ],
    }


def _background(cell: Cell, scale: Scale, count: int) -> list[dict[str, Any]]:
    """Jobs that fragment the machine; where nobody shall disturb the foreground, they hold their hosts and idle."""
    quiet = cell.background in (NOBODY, NO_CONTENTION)
    workload = {"name": "allreduce"} if quiet else {"name": cell.background, **scale.workloads[cell.background]}
    job = {"name": "background", "ranks": scale.ranks, "workload": {**workload, "jitter": 0}, "placement": "fragmented"}
    return [{**job, "count": count, **({"start": "1000 s"} if quiet else {})}]
