"""Fits the model to packet-level simulations of random snapshots."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy

from fairlane.errors import Problem, ScenarioError
from fairlane.models import Bools, ErrorMetrics, Floats, cross_validate
from fairlane.scheduler.mix import PatternMix
from fairlane.scheduler.slowdown.bench import Bench, Resident, Slowdown
from fairlane.scheduler.slowdown.features import (
    NEIGHBOURS,
    OWN,
    LinkUse,
    contention_matrix,
    neighbour_features,
    own_features,
    utilisation_of,
)
from fairlane.scheduler.slowdown.model import Coefficients, SlowdownModel
from fairlane.scheduler.slowdown.snapshots import draw_snapshot
from fairlane.wording import plural

if TYPE_CHECKING:
    from fairlane.fabric.table import FabricTable
    from fairlane.tasks.executor import Executor

__all__ = ["FEWEST_JOBS", "fit_model"]

FOLDS = 5
"""Of the cross-validation, by snapshot."""
FEWEST_JOBS = 20
"""Jobs of a pattern that must have been simulated."""
_UNKNOWN = ErrorMetrics(count=0, mean_error=0, p90_error=0, bias=0, baseline_error=0)
_RIDGE = 1e-5
"""Keeps coefficients of features that hardly differ from each other small."""


@dataclass(frozen=True)
class _Row:
    """One job of a simulated snapshot."""

    snapshot: int
    pattern: int
    own: Floats
    neighbours: Floats
    measured: Slowdown


def fit_model(
    fabric: "FabricTable",
    mix: PatternMix,
    *,
    snapshots: int = 200,
    seed: int = 1,
    executor: "Executor | None" = None,
) -> SlowdownModel:
    """Simulates so many snapshots and fits a model to them.

    ``executor`` performs the simulations; without one they are kept in memory only. Raises ``ScenarioError`` if the mix
    does not say what jobs do, or a pattern was met too seldom, and ``RunError`` if a simulation fails.
    """
    for number in range(len(mix.pattern)):
        mix.workload(number)
    bench = Bench(fabric, mix, seed, executor)
    drawn = {number: draw_snapshot(bench.fabric, mix, seed, number) for number in range(snapshots)}
    bench.simulate(drawn)
    rows = [row for number, jobs in drawn.items() for row in _rows(bench, jobs, number)]
    return SlowdownModel(
        format=SlowdownModel.FORMAT,
        version=version("fairlane"),
        seed=seed,
        snapshots=snapshots,
        fabric=fabric.model_dump(mode="json", exclude_none=True),
        mix=mix,
        coefficients=[_pattern(rows, number) for number in range(len(mix.pattern))],
    )


def _rows(bench: Bench, jobs: Sequence[Resident], snapshot: int) -> Iterator[_Row]:
    best = [bench.best(job.pattern, job.ranks) for job in jobs]
    uses = [utilisation_of(bench.fabric, job.hosts, one) for job, one in zip(jobs, best, strict=True)]
    at_best: list[LinkUse] = [utilisation_of(bench.fabric, one.hosts, one) for one in best]
    beside = neighbour_features(contention_matrix(uses), uses)
    measured = bench.measure(jobs, snapshot)
    for at, job in enumerate(jobs):
        yield _Row(snapshot, job.pattern, own_features(uses[at], at_best[at]), beside[at], measured[at])


def _pattern(rows: Sequence[_Row], pattern: int) -> Coefficients:
    """The coefficients of one pattern, with the error of those that were fitted without the snapshot in question."""
    found = [row for row in rows if row.pattern == pattern]
    if len(found) < FEWEST_JOBS:
        words = f"only {plural(len(found), 'job')} of pattern {pattern} were simulated"
        raise ScenarioError(Problem("--snapshots", words, allowed=f"enough for {FEWEST_JOBS}"))
    fold = numpy.array([row.snapshot % FOLDS for row in found])

    def held_out(out: Bools) -> Floats:
        part = _fitted([row for row, is_out in zip(found, out, strict=True) if not is_out], _UNKNOWN)
        rows = [row for row, is_out in zip(found, out, strict=True) if is_out]
        return numpy.array([part.own_slowdown(row.own) * part.neighbours_slowdown(row.neighbours) for row in rows])

    simulated = numpy.array([row.measured.own * row.measured.neighbours for row in found])
    return _fitted(found, ErrorMetrics.of(cross_validate(fold, held_out) / simulated, 1 / simulated))


def _fitted(rows: Sequence[_Row], error: ErrorMetrics) -> Coefficients:
    from scipy.optimize import nnls

    own, beside = numpy.stack([row.own for row in rows]), numpy.stack([row.neighbours for row in rows])
    by_own = numpy.array([row.measured.own for row in rows])
    by_others = numpy.array([row.measured.neighbours for row in rows])
    square = own.T @ own + _RIDGE * len(rows) * numpy.eye(len(OWN))
    weights = numpy.linalg.solve(square, own.T @ numpy.log(by_own))
    positive, _ = nnls(beside, numpy.log(by_others))
    return Coefficients(
        own=_named(OWN, weights),
        neighbours=_named(NEIGHBOURS, positive),
        min_own=round(float(by_own.min()), 4),
        max_own=round(float(by_own.max()), 4),
        max_neighbours=round(float(max(1.0, by_others.max())), 4),
        error=error,
    )


def _named(names: Sequence[str], values: Floats) -> dict[str, float]:
    return {name: round(float(value), 5) for name, value in zip(names, values, strict=True)}
