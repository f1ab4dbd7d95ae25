"""Simulated pairs of jobs on small fabrics, with features that are known before they run.

The features come from the jobs' patterns, their speed at their best and the routing, not from the simulation that is to
be predicted. Left out: the slowdown by a job's own hosts, which one isolated simulation gives, and more than one
neighbour.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy
import polars as pl

from fairlane.errors import RunError
from fairlane.inputs.files import parse_toml
from fairlane.models.base import Floats
from fairlane.scheduler.mix import PatternMix
from fairlane.scheduler.slowdown.bench import Bench, Best, Resident
from fairlane.scheduler.slowdown.features import LinkUse, neighbour_features, own_features, utilisation_of
from fairlane.scheduler.slowdown.snapshots import allocated, allocators
from fairlane.seeds import Purpose, stream

if TYPE_CHECKING:
    from fairlane.tasks.executor import Executor

_DATA = parse_toml((files("fairlane.scheduler.slowdown") / "pairs.toml").read_text("utf-8"))
FABRICS: Mapping[str, Mapping[str, Any]] = _DATA["fabrics"]
"""128 hosts each."""
APPLICATIONS: Mapping[str, Mapping[str, Any]] = _DATA["applications"]
"""The applications by workload, of all kinds of patterns."""
SIZES = (32, 48, 64)
"""Ranks of a job."""
PAIR_FEATURES = (
    "contention",
    "contention_larger",
    "contention_x_peak",
    "shared_traffic",
    "peak_shared_utilisation",
    "overload",
    "iteration_time_ratio",
    "burst",
    "burst_contention",
    "peak_utilisation",
    "other_peak_utilisation",
    "hops",
    "communication_share",
    "other_communication_share",
    "extra_hops",
    "extra_self_contention",
    "extra_peak_utilisation",
)
"""Contention with the other job, three features as in the scheduler's model; the share of the job's bytes on links that
the other uses; on these the largest utilisation by both, and the contention with utilisation beyond 1; the other's
iteration time over the job's; the time of the other's bytes of an iteration on the most utilised shared link, over the
job's iteration time; contention times the ratio of iteration times, as a slow neighbour sends much at once; the
utilisation of the busiest link of the job and of the other; the links that a byte crosses; the share of its time at its
best that each job communicates; how the job's hosts differ from its best ones, the scheduler's three own features."""
_USED = 1e-3
"""A link counts as used from this utilisation."""


def simulate_pairs(
    count: int,
    *,
    fabrics: Mapping[str, Mapping[str, Any]] = FABRICS,
    applications: Mapping[str, Mapping[str, Any]] = APPLICATIONS,
    sizes: Sequence[int] = SIZES,
    seed: int = 1,
    executor: "Executor | None" = None,
) -> pl.DataFrame:
    """Simulates so many pairs on each fabric; a row for each of their jobs.

    Columns are ``fabric``, ``pair``, ``application``, ``ranks``, ``other``, ``other_ranks``, all ``PAIR_FEATURES``,
    and ``slowdown``: the job's iteration time co-running, over that isolated on the same hosts. ``executor``
    performs the simulations.
    """
    from fairlane.fabric.table import FabricTable

    mix, names = _mix(applications), list(applications)
    rows: list[dict[str, Any]] = []
    for number, (name, table) in enumerate(fabrics.items()):
        bench = Bench(FabricTable.read(dict(table)), mix, seed, executor)
        drawn = {pair: _drawn(bench, sizes, stream(seed, Purpose.SNAPSHOT, pair, 3, number)) for pair in range(count)}
        bench.simulate(drawn)
        for pair, jobs in drawn.items():
            for row in _rows(bench, jobs, pair):
                at, other = row.pop("application"), row.pop("other")
                rows.append({"fabric": name, "pair": pair, "application": names[at], "other": names[other]} | row)
    return pl.DataFrame(rows)


def pair_features(use: LinkUse, own: Floats, best: Best, other: LinkUse, others_best: Best) -> Floats:
    """Of one job co-running with another, in the order of ``PAIR_FEATURES``; ``own`` are its own features."""
    both = (use.utilisation > _USED) & (other.utilisation > _USED)
    total, ratio = float(use.utilisation.sum()), others_best.iteration_time / best.iteration_time
    met = numpy.array([[0.0, float(use.contention(other.utilisation[None])[0])], [0.0, 0.0]])
    beyond = numpy.where(both, numpy.maximum(use.utilisation + other.utilisation - 1, 0), 0.0)
    return numpy.array(
        [
            *neighbour_features(met, [use, other])[0],
            float(use.utilisation[both].sum()) / total if total else 0.0,
            float((use.utilisation + other.utilisation)[both].max(initial=0.0)),
            float(use.contention(beyond[None])[0]),
            ratio,
            float(other.utilisation[both].max(initial=0.0)) * ratio,
            met[0, 1] * ratio,
            use.peak,
            other.peak,
            use.hops,
            _communication_share(best),
            _communication_share(others_best),
            *own,
        ]
    )


def _communication_share(best: Best) -> float:
    return max(0.0, 1 - best.compute * 1e-12 / best.iteration_time)


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
    uses = [utilisation_of(bench.fabric, job.hosts, one) for job, one in zip(jobs, best, strict=True)]
    own = [own_features(use, utilisation_of(bench.fabric, one.hosts, one)) for use, one in zip(uses, best, strict=True)]
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
