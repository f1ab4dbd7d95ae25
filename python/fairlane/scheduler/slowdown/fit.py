"""Fits the model: simulates random moments packet by packet and explains what happened to their jobs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy
from numpy.typing import NDArray

from fairlane.errors import Problem, ScenarioError
from fairlane.scheduler.mix import PatternMix
from fairlane.scheduler.slowdown.bench import Bench, Measured, Resident
from fairlane.scheduler.slowdown.features import (
    NEIGHBOURS,
    OWN,
    Use,
    meetings,
    neighbour_features,
    own_features,
    use_of,
)
from fairlane.scheduler.slowdown.model import Coefficients, ModelError, SlowdownModel, error_of
from fairlane.scheduler.slowdown.moments import draw_moment
from fairlane.wording import plural

if TYPE_CHECKING:
    from fairlane.fabric.table import FabricTable

__all__ = ["FEWEST_JOBS", "fit_model"]

Floats = NDArray[numpy.float64]

FOLDS = 5
"""Parts that the moments are divided into: each is predicted by a model fitted to the others."""
FEWEST_JOBS = 20
"""Jobs of a pattern that must have been simulated."""
_RIDGE = 1e-5
"""Keeps coefficients of features that hardly differ from each other small."""


@dataclass(frozen=True)
class _Row:
    """One job of a simulated moment."""

    moment: int
    pattern: int
    own: Floats
    neighbours: Floats
    measured: Measured


def fit_model(
    fabric: "FabricTable",
    mix: PatternMix,
    *,
    moments: int = 200,
    seed: int = 1,
    told: Callable[[int, int], None] | None = None,
) -> SlowdownModel:
    """Simulates so many moments and fits a model to them; ``told`` hears how many are done, and the jobs on them.

    Raises ``ScenarioError`` if the mix does not say what jobs do, or a pattern was met too seldom.
    """
    for number in range(len(mix.pattern)):
        mix.workload(number)
    bench = Bench(fabric, mix, seed)
    rows: list[_Row] = []
    for moment in range(moments):
        jobs = draw_moment(bench.fabric, mix, seed, moment)
        rows += _rows(bench, jobs, moment)
        if told is not None:
            told(moment + 1, len(jobs))
    return SlowdownModel(
        version=version("fairlane"),
        seed=seed,
        moments=moments,
        fabric=fabric.model_dump(mode="json", exclude_none=True),
        mix=mix,
        coefficients=[_pattern(rows, number) for number in range(len(mix.pattern))],
    )


def _rows(bench: Bench, jobs: Sequence[Resident], moment: int) -> Iterator[_Row]:
    best = [bench.best(job.pattern, job.ranks) for job in jobs]
    uses = [use_of(bench.fabric, job.hosts, one) for job, one in zip(jobs, best, strict=True)]
    at_best: list[Use] = [use_of(bench.fabric, one.hosts, one) for one in best]
    beside = neighbour_features(meetings(uses), uses)
    measured = bench.measure(jobs, moment)
    for at, job in enumerate(jobs):
        yield _Row(moment, job.pattern, own_features(uses[at], at_best[at]), beside[at], measured[at])


def _pattern(rows: Sequence[_Row], pattern: int) -> Coefficients:
    """The coefficients of one pattern, with the error of those that were fitted without the moment in question."""
    found = [row for row in rows if row.pattern == pattern]
    if len(found) < FEWEST_JOBS:
        words = f"only {plural(len(found), 'job')} of pattern {pattern} were simulated"
        raise ScenarioError(Problem("--moments", words, allowed=f"enough for {FEWEST_JOBS}"))
    predicted, simulated = [], []
    for fold in range(FOLDS):
        others = [row for row in found if row.moment % FOLDS != fold]
        part = _fitted(others, None)
        for row in found:
            if row.moment % FOLDS == fold:
                predicted.append(part.own_slowdown(row.own) * part.neighbours_slowdown(row.neighbours))
                simulated.append(row.measured.own * row.measured.neighbours)
    return _fitted(found, error_of(predicted, simulated))


def _fitted(rows: Sequence[_Row], error: ModelError | None) -> Coefficients:
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
        least_own=round(float(by_own.min()), 4),
        most_own=round(float(by_own.max()), 4),
        most_neighbours=round(float(max(1.0, by_others.max())), 4),
        error=error or ModelError(jobs=0, mean=0, worst_tenth=0, bias=0, without=0),
    )


def _named(names: Sequence[str], values: Floats) -> dict[str, float]:
    return {name: round(float(value), 5) for name, value in zip(names, values, strict=True)}
