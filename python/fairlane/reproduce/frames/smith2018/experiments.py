"""Smith et al. 2018: MILC on Edison beside whatever else is running, again and again.

A cell is one run: MILC on 384 nodes in some number of groups, with a mix of other jobs on the rest of the machine.
Number of groups, hosts and mix are drawn independently of each other, each from its own stream of the run's seed. All
runs draw from the same distributions, which were chosen once.

What the paper leaves open is chosen here. **MILC** computes for 0.55 ms an iteration, so that a fast run computes for
60% of its time; ranks differ by up to 8%, near the 10% that the paper reports. **Other jobs** have one rank a host;
four kinds of them are halo exchanges, random messages, transforms, and many hosts that write to one, all with pauses.
**Routing** is UGAL at the source, with three virtual channels. **Packets** carry up to 18 KiB, a whole deep layer,
where Aries' carry 64 bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairlane.seeds import Purpose, stream

__all__ = [
    "CABLINGS",
    "EXPERIMENTS",
    "FULL",
    "QUICK",
    "Cell",
    "Scale",
    "cabled",
    "cells_of",
    "computes_more",
    "traced",
    "written",
]

RANKS_PER_HOST = 16
JOB = "milc"
"""The name of the job that is measured."""
_GROUPS = 2018
"""Seed of the stream that numbers of groups are drawn from."""


@dataclass(frozen=True)
class Scale:
    """How large everything is."""

    ranks: int
    runs: int
    traces: int
    """How many of the runs, the first ones, are traced."""
    timesteps: int
    """Of each run, besides those to warm up."""
    warmup: int
    iterations: int
    """Of a timestep."""
    every: int
    """Which timestep computes more."""
    groups: tuple[int, int]
    """The fewest and the most that the job is spread over."""
    fabric: Mapping[str, Any]
    others: tuple[int, int]
    """Hosts of another job: the median, and the most."""
    writers: tuple[int, int]
    """The same of jobs in which all write to one."""
    words: str
    """How it differs from the paper's."""


FULL = Scale(
    ranks=6144,
    runs=88,
    traces=7,
    timesteps=12,
    warmup=1,
    iterations=1,
    every=12,
    groups=(2, 14),
    fabric={"topology": "cascade", "preset": "edison", "routing": "ugal_l"},
    others=(48, 512),
    writers=(20, 96),
    words="12 timesteps of 1 iteration in place of 80 of 2500, after one to warm up; every twelfth computes more",
)
"""The paper's ranks on the paper's machine."""

QUICK = Scale(
    ranks=256,
    runs=16,
    traces=2,
    timesteps=8,
    warmup=1,
    iterations=1,
    every=8,
    groups=(2, 4),
    fabric={
        "topology": "cascade",
        "groups": 5,
        "columns": 4,
        "rows": 3,
        "hosts_per_switch": 4,
        "bundles": 2,
        "routing": "ugal_l",
    },
    others=(12, 48),
    writers=(32, 64),
    words="256 ranks of 6144 on 16 of 240 hosts, 16 runs of 87, 8 timesteps of 1 iteration",
)
"""A machine of a twenty-fourth of the size."""

CABLINGS: Mapping[str, Mapping[str, Any]] = {
    "even": {},
    "edison": {"arrangement": "absolute", "bundles_by": "row"},
}
"""Where blue cables end: dealt out over all pairs of switches of a group, or as Edison's did (``docs/fabrics.md``)."""

EXPERIMENTS: Sequence[str] = ("runs", "traces")
"""The runs, and some of them again with a record of their fastest and slowest timestep."""


def cabled(scale: Scale, cabling: str) -> Scale:
    """The same with its machine cabled in one of the ways of ``CABLINGS``."""
    return replace(scale, fabric={**scale.fabric, **CABLINGS[cabling]})


def computes_more(timestep: int, scale: Scale) -> bool:
    """Whether a timestep, counted from 1 with those to warm up, is one that computes more."""
    return timestep > scale.warmup and (timestep - scale.warmup) % scale.every == 0


@dataclass(frozen=True)
class Cell:
    """One run: plain values only."""

    run: int
    """Its number, which is the seed of its hosts and its mix."""
    groups: int
    """Over how many groups the job is spread."""
    traced: bool = False
    """Whether its fastest and its slowest timestep are recorded, in place of its counters."""

    def __str__(self) -> str:
        return f"{'trace' if self.traced else 'run'}-{self.run}-groups-{self.groups}"


def cells_of(scale: Scale) -> Iterator[Cell]:
    """The runs."""
    fewest, most = scale.groups
    for run in range(1, 1 + scale.runs):
        yield Cell(run, int(stream(_GROUPS, Purpose.PLACEMENT, run).integers(fewest, most + 1)))


def traced(scale: Scale) -> Iterator[Cell]:
    """The runs that are traced."""
    for cell in cells_of(scale):
        if cell.run <= scale.traces:
            yield replace(cell, traced=True)


def written(cell: Cell, scale: Scale) -> dict[str, Any]:
    """The scenario of a run as in a file."""
    milc = {
        "name": "milc",
        "iterations": scale.iterations,
        "warmup": scale.warmup,
        "warmup_iterations": scale.iterations,
        "every": scale.every,
        "compute": f"{scale.iterations * 550} us",
        "jitter": 0.04,
    }
    job = {
        "name": JOB,
        "ranks": scale.ranks,
        "ranks_per_host": RANKS_PER_HOST,
        "workload": milc,
        "stop": scale.warmup + scale.timesteps,
        "placement": {"name": "groups", "count": cell.groups},
    }
    return {
        "name": str(cell),
        "seed": cell.run,
        "duration": "200 ms",
        "fabric": dict(scale.fabric),
        "network": {"mtu": "18 KiB"},
        "observe": {"switch_counters": {"job": JOB, "poll_interval": "4 us"}},
        "jobs": [job],
        "background": background(scale),
    }


def background(scale: Scale) -> dict[str, Any]:
    """The other jobs: the same distributions for every run of a scale."""
    pause = _lognormal(1.0, "2 ms", "200 us", "20 ms")
    return {
        "fill": {"dist": "uniform", "loc": 0.2, "scale": 0.75},
        "hosts": _lognormal(1.0, scale.others[0], 4, scale.others[1]),
        "start": {"dist": "uniform", "loc": "-20 ms", "scale": "30 ms"},
        "lifetime": {"dist": "expon", "scale": "20 ms"},
        "jobs": [
            {
                "weight": 0.3,
                "workload": {
                    "name": "halo3d",
                    "message_size": _lognormal(1.0, "128 KiB", "16 KiB", "2 MiB"),
                    "compute": pause,
                },
            },
            {
                "weight": 0.25,
                "workload": {
                    "name": "uniform_random",
                    "message_size": _lognormal(1.0, "64 KiB", "16 KiB", "1 MiB"),
                    "messages_per_iteration": 4,
                    "compute": pause,
                },
            },
            {
                "weight": 0.15,
                "workload": {
                    "name": "fft",
                    "message_size": _lognormal(1.0, "32 KiB", "16 KiB", "256 KiB"),
                    "compute": pause,
                },
            },
            {
                "weight": 0.3,
                "hosts": _lognormal(0.7, scale.writers[0], 4, scale.writers[1]),
                "workload": {
                    "name": "incast",
                    "message_size": _lognormal(0.7, "48 KiB", "16 KiB", "128 KiB"),
                    "compute": _lognormal(0.7, "2.5 ms", "500 us", "20 ms"),
                },
            },
        ],
    }


def _lognormal(sigma: float, median: str | int, least: str | int, most: str | int) -> dict[str, Any]:
    return {"dist": "lognorm", "s": sigma, "scale": median, "min": least, "max": most}
