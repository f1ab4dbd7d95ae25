"""Pairs of jobs on small fabrics, simulated, with what can be known of them before they run: a table to learn from.

The features come from the jobs' patterns, their speed at their best and the routing, and from nothing of the simulation
that they are to predict. A job's *use* of links is that of ``features``: the share of time that its bytes take there at
its best. Left out: what a job does to itself, which one simulation of it alone tells, and more than one neighbour.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy
import polars as pl
from numpy.typing import NDArray

from fairlane.errors import RunError
from fairlane.scheduler.mix import PatternMix
from fairlane.scheduler.slowdown.bench import Bench, Best, Resident
from fairlane.scheduler.slowdown.features import Use, neighbour_features, own_features, use_of
from fairlane.scheduler.slowdown.moments import allocated, allocators
from fairlane.seeds import Purpose, stream

__all__ = ["APPLICATIONS", "FABRICS", "PAIR_FEATURES", "SIZES", "pair_features", "simulate_pairs"]

Floats = NDArray[numpy.float64]

FABRICS: Mapping[str, Mapping[str, Any]] = {
    "dragonfly": {
        "topology": "dragonfly",
        "groups": 8,
        "switches_per_group": 4,
        "hosts_per_switch": 4,
        "global_links": 2,
        "bandwidth": "2 GiB/s",
    },
    "fat_tree": {
        "topology": "fat_tree",
        "hosts": 128,
        "levels": 2,
        "leaf_down": 16,
        "leaf_up": 8,
        "bandwidth": "2 GiB/s",
    },
    "torus": {"topology": "torus", "sides": [8, 4, 4], "bandwidth": "2 GiB/s", "host_bandwidth": "12 GiB/s"},
}
"""128 hosts each; the fat-tree is tapered two to one."""
APPLICATIONS: Mapping[str, Mapping[str, Any]] = {
    "all_to_all": {"kind": "many-to-many", "message_size": "4 KiB", "compute_share": 0.5},
    "fft": {"kind": "hybrid", "message_size": "16 KiB", "compute_share": 0.5},
    "pf3d": {"kind": "hybrid", "message_size": "16 KiB", "compute_share": 0.65},
    "nearest_neighbor": {"kind": "nearest neighbour", "message_size": "64 KiB", "compute_share": 0.5},
    "halo3d": {"kind": "nearest neighbour", "message_size": "64 KiB", "compute_share": 0.6},
    "uniform_random": {"kind": "many-to-many", "message_size": "32 KiB", "compute_share": 0.5},
    "random_pairs": {"kind": "unclear", "message_size": "32 KiB", "compute_share": 0.4},
    "ring": {"kind": "nearest neighbour", "message_size": "128 KiB", "compute_share": 0.5},
}
"""The applications by workload, as different as they come."""
SIZES = (32, 48, 64)
"""Ranks of a job."""
PAIR_FEATURES = (
    "others_met",
    "larger_met",
    "others_met_by_busiest_link",
    "shared_part",
    "fullest_shared",
    "overload",
    "period_ratio",
    "burst",
    "burst_met",
    "busiest",
    "others_busiest",
    "links_crossed",
    "communicates",
    "other_communicates",
    "links_crossed_more",
    "own_job_met",
    "busiest_more",
)
"""What a byte meets of the other job, three features as the scheduler's model has them; the part of the job's bytes on
links that the other uses; the use of the fullest such link by both; use beyond one there, as a byte meets it; the
other's period over the job's; the time that the other's bytes of an iteration take on the fullest shared link, over the
job's period; what a byte meets times the ratio of periods, as a slow neighbour sends much at once; the busiest link of
the job and of the other; the links that a byte crosses; the part of its time at its best that each job communicates;
how the job's hosts differ from its best ones, three own features of the scheduler's model."""
_USED = 1e-3
"""A link is used from this share of its time on."""


def simulate_pairs(
    count: int,
    *,
    fabrics: Mapping[str, Mapping[str, Any]] = FABRICS,
    applications: Mapping[str, Mapping[str, Any]] = APPLICATIONS,
    sizes: Sequence[int] = SIZES,
    seed: int = 1,
    told: Callable[[], None] = lambda: None,
) -> pl.DataFrame:
    """Simulates so many pairs on each fabric; a row for each of their jobs.

    Columns are ``fabric``, ``pair``, ``application``, ``ranks``, ``other``, ``other_ranks``, all ``PAIR_FEATURES``,
    and ``slowdown``: the job's period beside the other over that on the same hosts alone. ``told`` hears of each pair.
    """
    from fairlane.fabric.table import FabricTable

    mix, names = _mix(applications), list(applications)
    rows: list[dict[str, Any]] = []
    for number, (name, table) in enumerate(fabrics.items()):
        bench = Bench(FabricTable.read(dict(table)), mix, seed)
        for pair in range(count):
            jobs = _drawn(bench, sizes, stream(seed, Purpose.MOMENT, pair, 3, number))
            for row in _rows(bench, jobs, pair):
                at, other = row.pop("application"), row.pop("other")
                rows.append({"fabric": name, "pair": pair, "application": names[at], "other": names[other]} | row)
            told()
    return pl.DataFrame(rows)


def pair_features(use: Use, own: Floats, best: Best, other: Use, others_best: Best) -> Floats:
    """Of one job beside another, in the order of ``PAIR_FEATURES``; ``own`` are its own features."""
    both = (use.share > _USED) & (other.share > _USED)
    total, ratio = float(use.share.sum()), others_best.period / best.period
    met = numpy.array([[0.0, float(use.meets(other.share[None])[0])], [0.0, 0.0]])
    beyond = numpy.where(both, numpy.maximum(use.share + other.share - 1, 0), 0.0)
    return numpy.array(
        [
            *neighbour_features(met, [use, other])[0],
            float(use.share[both].sum()) / total if total else 0.0,
            float((use.share + other.share)[both].max(initial=0.0)),
            float(use.meets(beyond[None])[0]),
            ratio,
            float(other.share[both].max(initial=0.0)) * ratio,
            met[0, 1] * ratio,
            use.busiest,
            other.busiest,
            use.hops,
            _communicates(best),
            _communicates(others_best),
            *own,
        ]
    )


def _communicates(best: Best) -> float:
    return max(0.0, 1 - best.compute * 1e-12 / best.period)


def _mix(applications: Mapping[str, Mapping[str, Any]]) -> PatternMix:
    patterns = []
    for name, what in applications.items():
        # Some have a compute time by default, in place of a share.
        workload = {"name": name, "compute": None} | {key: value for key, value in what.items() if key != "kind"}
        patterns.append({"kind": what["kind"], "share": 1, "workload": workload})
    return PatternMix.model_validate({"pattern": patterns})


def _drawn(bench: Bench, sizes: Sequence[int], rng: numpy.random.Generator) -> list[Resident]:
    """Two jobs that both found hosts under some allocator."""
    choices = allocators(bench.fabric)
    for _ in range(100):
        strategy, jobs = choices[int(rng.integers(len(choices)))], list[Resident]()
        for _ in range(2):
            job = Resident(int(rng.integers(len(bench.mix.pattern))), tuple(range(int(rng.choice(sizes)))))
            hosts = allocated(strategy, bench.fabric, bench.mix, jobs, job, rng)
            if hosts is not None:
                jobs.append(Resident(job.pattern, hosts))
        if len(jobs) == 2:
            return jobs
    raise RunError("no allocator finds hosts for two such jobs", slug="value")


def _rows(bench: Bench, jobs: Sequence[Resident], pair: int) -> Iterator[dict[str, Any]]:
    best = [bench.best(job.pattern, job.ranks) for job in jobs]
    uses = [use_of(bench.fabric, job.hosts, one) for job, one in zip(jobs, best, strict=True)]
    own = [own_features(use, use_of(bench.fabric, one.hosts, one)) for use, one in zip(uses, best, strict=True)]
    measured = bench.measure(jobs, pair)
    for at, other in ((0, 1), (1, 0)):
        features = pair_features(uses[at], own[at], best[at], uses[other], best[other])
        yield {
            "application": jobs[at].pattern,
            "other": jobs[other].pattern,
            "ranks": jobs[at].ranks,
            "other_ranks": jobs[other].ranks,
            **dict(zip(PAIR_FEATURES, map(float, features), strict=True)),
            "slowdown": measured[at].neighbours,
        }
