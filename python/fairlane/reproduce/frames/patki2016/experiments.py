"""Patki et al. 2016: its conditions, figure by figure.

A cell is one simulation: an application on Catalyst, beside an all-to-all or alone, until it is done.

What the paper leaves open is chosen here, once for all cells. **Problems** are the NAS benchmarks' class B on the
paper's ranks, with their operation counts at 1 Gflop/s a core as compute times. **Lanes** share a link by 8, 4, 2 and 1
for the levels 0 to 3. **Interference** is dealt to both adapters whatever the application chooses, and lies on random
hosts that the application leaves. It begins 0.5 ms before the application.

Shorter than on Catalyst: an iteration or two in place of a whole run. It sees part of one all-to-all of 4080
processes, which takes half a second: the messages to the next ranks, which are on random other hosts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "APPLICATIONS",
    "EXPERIMENTS",
    "FULL",
    "QUICK",
    "Cell",
    "Scale",
    "cells_of",
    "interference_of",
    "share_of",
    "written",
]

LABELS: Mapping[str, str] = {"ft": "FT", "lu": "LU", "mg": "MG", "kripke": "Kripke", "comd": "CoMD"}
"""What applications are called."""
APPLICATIONS: Sequence[str] = tuple(LABELS)
"""The control jobs."""
RAILS: Mapping[str, Mapping[str, Any]] = {
    "both": {"policy": "by_source", "order": "random"},
    "0": {"only": 0},
    "1": {"only": 1},
}
"""Adapters of the application: both are dealt to the processes of a host in turn, as InfiniPath does; or one."""
WEIGHTS = (8, 4, 2, 1)
"""Of the lanes of the service levels 0 to 3."""
BALANCES: Sequence[tuple[int, int]] = ((3, 0), (1, 0), (0, 0), (0, 1), (0, 3))
"""Service levels of application and interference, as bandwidth moves to the application."""
PLACEMENTS = ("packed", "spread", "random")
"""Of the application, in Fig. 2."""
START = "0.5 ms"
"""When the application begins."""


@dataclass(frozen=True)
class Scale:
    """How large everything is."""

    ranks: int
    hosts: int
    """Hosts of the interference."""
    fabric: Mapping[str, Any]
    workloads: Mapping[str, Mapping[str, Any]]
    """What the applications do."""
    iterations: Mapping[str, int]
    """How long."""
    balances: Sequence[tuple[int, int]]
    """Levels of application and interference in Fig. 1."""
    seeds: int
    """Placements of both jobs for each condition of Fig. 1."""
    caps: Sequence[int]
    """Power caps of Fig. 2, W."""
    levels: Mapping[int, int]
    """Levels of the application beside interference in Fig. 2, and with how many placements of the interference each
    is run; random applications have as many of their own."""
    words: str
    """How its size differs from the paper's."""
    length: str = (
        "one iteration of an application (two of CoMD) in place of a whole run, beside a part of one all-to-all; four "
        "caps from 65 to 115 W; two placements of a condition (one at level 1 of Fig. 2)"
    )
    """How it is less than the paper's at any size."""


FULL = Scale(
    ranks=2048,
    hosts=170,
    fabric={"topology": "fat_tree", "preset": "catalyst", "rails": 2},
    workloads={
        "ft": {"name": "ft", "points": 16384, "compute": "2.2 ms"},
        "lu": {"name": "lu", "side": 3, "planes": 102, "compute": "0.6 ms"},
        "mg": {"name": "mg", "points": 16, "compute": "0.45 ms"},
        "kripke": {"name": "kripke", "group_sets": 1, "compute": "0.32 ms"},
        "comd": {"name": "comd", "compute": "1 ms"},
    },
    iterations={"ft": 1, "lu": 1, "mg": 1, "kripke": 1, "comd": 2},
    balances=BALANCES,
    seeds=2,
    caps=(65, 80, 95, 115),
    levels={3: 2, 1: 1, 0: 2},
    words="",
)
"""The paper's ranks on the paper's hosts."""

QUICK = Scale(
    ranks=384,
    hosts=32,
    fabric={"topology": "fat_tree", "hosts": 72, "radix": 36, "levels": 2, "bandwidth": "32 Gb/s", "rails": 2},
    workloads={name: FULL.workloads[name] for name in ("ft", "lu", "kripke")},
    iterations={"ft": 1, "lu": 1, "kripke": 1},
    balances=((3, 0), (0, 0), (0, 3)),
    seeds=1,
    caps=(65, 115),
    levels={3: 1, 0: 1},
    words="384 ranks of 2048, 48 hosts of 72 in place of 256 of 324, three applications, fewer conditions",
    length="one iteration in place of a whole run, beside a part of one all-to-all; one placement of a condition",
)
"""Some cells at a fifth of the size."""


@dataclass(frozen=True)
class Cell:
    """One simulation: plain values only."""

    application: str
    rails: str
    """Name in ``RAILS``."""
    level: int
    """Service level of the application."""
    beside: int | None
    """Service level of the interference; None for none."""
    cap: int
    """Power cap of a socket, W."""
    placement: str
    seed: int = 1
    neighbour: str = "both"
    """Adapters of the interference, a name in ``RAILS``."""

    def __str__(self) -> str:
        beside = "alone" if self.beside is None else f"beside-{self.beside}-on-{self.neighbour}"
        where = f"{self.placement}-{self.cap}W-{self.seed}"
        return f"{self.application}-rails-{self.rails}-level-{self.level}-{beside}-{where}"


def share_of(level: int, beside: int) -> float:
    """The application's share of a link that both jobs want."""
    own, other = WEIGHTS[level], WEIGHTS[beside]
    return 0.5 if level == beside else own / (own + other)


def _rails(scale: Scale) -> Iterator[Cell]:
    """Fig. 1: adapters and bandwidth, without a cap that anybody feels."""
    for application in scale.workloads:
        for rails in RAILS:
            for level, beside in scale.balances:
                for seed in range(1, 1 + scale.seeds):
                    yield Cell(application, rails, level, beside, 115, "random", seed)


def _power(scale: Scale) -> Iterator[Cell]:
    """Fig. 2: adapter 0, caps, levels and placements; alone a level makes no difference, so one is run."""
    for application in scale.workloads:
        for cap in scale.caps:
            for placement in PLACEMENTS:
                # Packed and spread hosts are the same with every seed: alone nothing differs.
                own = max(scale.levels.values()) if placement == "random" else 1
                for seed in range(1, 1 + own):
                    yield Cell(application, "0", 3, None, cap, placement, seed)
                for level, seeds in scale.levels.items():
                    for seed in range(1, 1 + seeds):
                        yield Cell(application, "0", level, 0, cap, placement, seed)


def _alone(scale: Scale) -> Iterator[Cell]:
    """Beside Fig. 1: the applications alone on its hosts."""
    for application in scale.workloads:
        for rails in RAILS:
            for seed in range(1, 1 + scale.seeds):
                yield Cell(application, rails, 3, None, 115, "random", seed)


def _neighbour(scale: Scale) -> Iterator[Cell]:
    """Beside Fig. 1: interference that chooses an adapter too, the same or the other one."""
    for application in ("ft", "lu"):
        for neighbour in ("0", "1"):
            for level, beside in (scale.balances[0], scale.balances[-1]):
                for seed in range(1, 1 + scale.seeds):
                    yield Cell(application, "0", level, beside, 115, "random", seed, neighbour)


_CELLS = {"rails": _rails, "alone": _alone, "neighbour": _neighbour, "power": _power}
EXPERIMENTS: Sequence[str] = tuple(_CELLS)
"""The figures, and what is shown beside the first."""
INTERFERENCE = "interference"
"""What the other job is called."""


def interference_of(cell: Cell) -> Cell:
    """The interference of a cell, alone."""
    return Cell(INTERFERENCE, cell.neighbour, 0, None, 115, "random")


def cells_of(experiment: str, scale: Scale) -> list[Cell]:
    """The cells of a figure."""
    return list(_CELLS[experiment](scale))


def written(cell: Cell, scale: Scale) -> dict[str, Any]:
    """The scenario of a cell as in a file."""
    alone = cell.application == INTERFERENCE
    jobs = [] if alone else [_application(cell, scale)]
    if alone or cell.beside is not None:
        jobs.append(_interference(cell.rails if alone else cell.neighbour, cell.beside or 0, scale))
    return {
        "name": str(cell),
        "seed": cell.seed,
        "duration": "4 ms" if alone else "10 s",
        "fabric": dict(scale.fabric),
        "qos": {"service_levels": 4, "arbiter": {"name": "weighted_round_robin", "weights": list(WEIGHTS)}},
        "power": {"cap": f"{cell.cap} W"},
        "jobs": jobs,
    }


def _application(cell: Cell, scale: Scale) -> dict[str, Any]:
    return {
        "name": cell.application,
        "ranks": scale.ranks,
        "ranks_per_host": 24,
        "workload": dict(scale.workloads[cell.application]),
        "rails": dict(RAILS[cell.rails]),
        "service_level": cell.level,
        "start": START,
        "stop": scale.iterations[cell.application],
        "placement": {"name": cell.placement},
    }


def _interference(rails: str, level: int, scale: Scale) -> dict[str, Any]:
    return {
        "name": INTERFERENCE,
        "ranks": 24 * scale.hosts,
        "ranks_per_host": 24,
        "workload": {"name": "all_to_all", "message_size": "32 KiB", "messages_per_iteration": 1, "compute": 0},
        "rails": dict(RAILS[rails]),
        "service_level": level,
        "power_cap": "115 W",
        "placement": {"name": "random"},
    }
