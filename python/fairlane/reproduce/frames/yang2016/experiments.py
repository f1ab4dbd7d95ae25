"""Yang et al. 2016, Study of intra- and inter-job interference on torus networks: its cells, figure by figure.

A cell is one simulation: an application, alone or with the two others, on a torus in an allocation, until it has gone
once through its recorded trace. Nobody computes: what is measured is the time that data transfers take.

What the paper leaves open is chosen here, once for all cells. **Message sizes**: those of an application's trace times
one factor, such that a rank sends 16 MiB on average; the traces are of smaller problems than the paper's. **Host
links** are as fast as all links of their switch together. **Non-contiguous** allocations of a job that is alone have
their units at random places, of which there are several. **Together**, the others go through their traces again and
again, so that the one that is measured has company to its end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairlane.errors import ScenarioError
from fairlane.reproduce.frames.traces import trace

__all__ = [
    "APPLICATIONS",
    "EXPERIMENTS",
    "FULL",
    "QUICK",
    "SCHEDULES",
    "Application",
    "Cell",
    "Experiment",
    "Scale",
    "measured_job",
    "problem_with",
    "written",
]

APPLICATIONS = ("amg", "crystal", "multigrid")
"""What is run, in the order of the paper, which is also that of the jobs when they run together."""
LABELS: Mapping[str, str] = {"amg": "AMG", "crystal": "Crystal Router", "multigrid": "MultiGrid"}

FABRICS: Mapping[str, int] = {"3D": 3, "5D": 5, "7D": 7}
"""Dimensions of the tori, which are presets of the topology."""
AGGREGATE = 28.0
"""Gb/s that a node has in all, where that is fixed."""


@dataclass(frozen=True)
class Application:
    """A recorded application."""

    trace: str
    """Name of its trace."""
    factor: float
    """On the sizes of its messages, the same in all cells."""


@dataclass(frozen=True)
class Scale:
    """Which recordings are run, and how often."""

    applications: Mapping[str, Application]
    seeds: int
    """How many random places non-contiguous allocations have."""
    log: str
    """Name of the job log that allocators are compared on."""
    moments: int
    """How many moments of each of its schedules are simulated by packets."""
    words: str
    """How simulations differ from the paper's; empty if they do not."""
    log_words: str
    """How the log differs from the full one; empty if it does not."""


FULL = Scale(
    {
        "amg": Application("amg-216", 192),
        "crystal": Application("crystal-100", 6.5),
        "multigrid": Application("boxlib_mg-125", 6),
    },
    seeds=5,
    log="nasa-ipsc-1993",
    moments=20,
    words="",
    log_words="",
)
"""The paper's ranks. A rank sends 86.8 KiB, 2.43 MiB and 2.63 MiB on average as recorded, and 16 MiB so."""

QUICK = Scale(
    {
        "amg": Application("amg-27", 48),
        "crystal": Application("crystal-100", 1.625),
        "multigrid": Application("boxlib_mg-125", 1.5),
    },
    seeds=1,
    log="nasa-ipsc-1993-first-400",
    moments=3,
    words="AMG on 27 ranks in place of 216, a quarter of the bytes, one place of random units",
    log_words="the first 400 jobs of the log's 18,239",
)
"""What the repository has, with a quarter of the factors."""


Company = Literal["nobody", "idle", "busy"]


@dataclass(frozen=True)
class Cell:
    """One simulation: plain values only."""

    application: str
    """The one that is measured."""
    fabric: str = "3D"
    bandwidth: str = "2 GiB/s"
    """Of a link; ``fixed`` for a part of the node's fixed aggregate."""
    allocation: str = "linear"
    """Name in ``ALLOCATIONS``."""
    beside: Company = "nobody"
    """Whether the other two are there and run, or only hold their hosts."""
    seed: int = 1
    """Of random places."""

    def __str__(self) -> str:
        beside = "" if self.beside == "nobody" else f"-beside-{self.beside}"
        bandwidth = self.bandwidth.replace(" ", "").replace("/", "p")
        return f"{self.application}-{self.fabric}-{bandwidth}-{self.allocation}{beside}-{self.seed}"


ALLOCATIONS: Mapping[str, Mapping[str, Any]] = {
    "linear": {"name": "linear"},
    "cube": {"name": "box", "shape": "cube"},
    "unbalanced": {"name": "box", "shape": "prism"},
    "mesh": {"name": "box", "shape": "plane"},
    "random-16": {"name": "units", "size": 16, "order": "random"},
    **{f"units-{size}": {"name": "units", "size": size, "order": "interleaved"} for size in (16, 8, 2)},
}
"""Placement tables. Ranks fill an allocation in its order, dimension 0 fastest."""


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper: for each application one box for each of some cells."""

    name: str
    figure: str
    title: str
    boxes: Mapping[str, Cell]
    """What a box is called, and its cell but for application and seed."""
    grey: str | None = None
    """The experiment with boxes of the same names that are drawn beside these, in grey."""

    def cells(self, application: str, box: str, scale: Scale) -> list[Cell]:
        """The cells whose ranks are in a box."""
        one = self.boxes[box]
        seeds = range(1, 1 + (scale.seeds if one.allocation.startswith("random") else 1))
        return [Cell(application, one.fabric, one.bandwidth, one.allocation, one.beside, seed) for seed in seeds]

    def all_cells(self, scale: Scale) -> Iterator[Cell]:
        """All of its cells."""
        for application in APPLICATIONS:
            for box in self.boxes:
                yield from self.cells(application, box, scale)


def _any(**fields: Any) -> Cell:
    """A cell of whichever application."""
    return Cell("", **fields)


def _together(company: Company) -> Mapping[str, Cell]:
    """The allocations of the three together."""
    units = {f"units\nof {size}": _any(allocation=f"units-{size}", beside=company) for size in (16, 8, 2)}
    return {"side by\nside": _any(allocation="cube", beside=company), **units}


EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one
    for one in (
        Experiment(
            "dimensions",
            "Fig. 5",
            "tori of 2048 nodes, links of 2 GiB/s",
            {fabric: _any(fabric=fabric) for fabric in FABRICS},
        ),
        Experiment(
            "bandwidth",
            "Fig. 6",
            "links of a 5D torus",
            {rate: _any(fabric="5D", bandwidth=rate) for rate in ("2 GiB/s", "4 GiB/s", "8 GiB/s")},
        ),
        Experiment(
            "fixed-aggregate",
            "Fig. 7",
            f"tori with {AGGREGATE:g} Gb/s a node",
            {fabric: _any(fabric=fabric, bandwidth="fixed") for fabric in FABRICS},
        ),
        Experiment(
            "shapes",
            "Fig. 9",
            "shapes of an allocation, alone on 16x16x8 nodes",
            {
                "balanced\ncube": _any(allocation="cube"),
                "unbalanced\ncube": _any(allocation="unbalanced"),
                "2D mesh": _any(allocation="mesh"),
            },
        ),
        Experiment(
            "contiguity",
            "Fig. 10",
            "in one piece and in pieces of 16, alone on 16x16x8 nodes",
            {"contiguous": _any(allocation="cube"), "units of 16": _any(allocation="random-16")},
        ),
        Experiment(
            "unit-size",
            "Fig. 11",
            "the three together on 16x16x8 nodes",
            _together("busy"),
            grey="unit-size.alone",
        ),
        Experiment(
            "unit-size.alone",
            "Fig. 11 without the others",
            "each alone on the same nodes",
            _together("idle"),
        ),
    )
}
"""In the paper's order. Figures share cells; a cell is run once."""

SCHEDULES = "schedules"
"""The experiment of section V: allocators on a job log."""


def problem_with(application: str, scale: Scale) -> str | None:
    """Why an application cannot be run here; None if its trace is there."""
    try:
        trace(scale.applications[application].trace)
    except ScenarioError as error:
        return f"{LABELS[application]} is not run: {error}"
    return None


def measured_job(cell: Cell) -> int:
    """The number of the job that is measured."""
    return 0 if cell.beside == "nobody" else APPLICATIONS.index(cell.application)


def written(cell: Cell, scale: Scale) -> dict[str, Any]:
    """The scenario of a cell as in a file."""
    names: Sequence[str] = [cell.application] if cell.beside == "nobody" else APPLICATIONS
    return {
        "name": str(cell),
        "seed": cell.seed,
        "duration": "100 s",
        "fabric": _fabric(cell),
        "placement": dict(ALLOCATIONS[cell.allocation]),
        "jobs": [_job(cell, name, scale.applications[name]) for name in names],
    }


def _fabric(cell: Cell) -> dict[str, Any]:
    dimensions = FABRICS[cell.fabric]
    preset = {"topology": "torus", "preset": f"yang2016-{dimensions}d", "routing": "dimension_order"}
    if cell.bandwidth == "fixed":
        return {
            **preset,
            "bandwidth": f"{AGGREGATE / (2 * dimensions):.2f} Gb/s",
            "host_bandwidth": f"{AGGREGATE:g} Gb/s",
        }
    number, unit = cell.bandwidth.split()
    return {**preset, "bandwidth": cell.bandwidth, "host_bandwidth": f"{2 * dimensions * int(number)} {unit}"}


def _job(cell: Cell, name: str, application: Application) -> dict[str, Any]:
    measured = name == cell.application
    recorded = {"path": str(trace(application.trace)), "compute_scale": 0.0, "message_scale": application.factor}
    start = {} if measured or cell.beside == "busy" else {"start": "1000 s"}
    return {"name": name, "trace": {**recorded, "repeat": not measured}, **start}
