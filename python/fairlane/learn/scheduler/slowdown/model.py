"""The model of slowdowns: features of jobs that share links, fitted to packet-level simulations of random snapshots."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy
from pydantic import Field, model_validator

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import plural
from fairlane.inputs.problems import Problems
from fairlane.learn.models import FittedModel, Floats, Part
from fairlane.learn.models.validation import Bools, ErrorMetrics, cross_validate
from fairlane.learn.scheduler.log import PatternMix
from fairlane.learn.scheduler.slowdown.snapshots import draw_snapshot
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.study.shipped.slowdowns import Bench, Best, Resident, Slowdown, Snapshots
from fairlane.study.tasks.executor import Executor

_SHIPPED = files("fairlane.learn.scheduler.slowdown") / "models"

OWN = ("extra_hops", "extra_self_contention", "extra_peak_utilisation")
"""Features of a job's own hosts, each less what it is at the job's best."""
NEIGHBOURS = ("contention", "contention_larger", "contention_x_peak")
"""Features of the other jobs."""
FOLDS = 5
"""Of the cross-validation, by snapshot."""
FEWEST_JOBS = 20
"""Jobs of a pattern that must have been simulated."""
_UNKNOWN = ErrorMetrics(count=0, mean_error=0, p90_error=0, bias=0, baseline_error=0)
_RIDGE = 1e-5
"""Keeps coefficients of features that hardly differ from each other small."""


@dataclass(frozen=True)
class LinkUse:
    """The load on the links between switches, by utilisation of each, of a job with this number of ranks."""

    ranks: int
    utilisation: Floats
    hops: float
    """Links between switches that a byte crosses on average; 0 for a job without messages."""

    @property
    def peak(self) -> float:
        """Utilisation of its busiest link."""
        return float(self.utilisation.max(initial=0.0))

    def contention(self, others: Floats) -> Floats:
        """With other jobs; a row of ``others`` is the utilisation of each link by one of them."""
        total = self.utilisation.sum()
        return others @ self.utilisation * (self.hops / total if total > 0 else 0.0)


def utilisation_of(fabric: Fabric, hosts: Sequence[int], best: Best) -> LinkUse:
    """The utilisation of links by a job on these hosts, at its best speed."""
    links = fabric.links
    between = (links["from_switch"] >= 0) & (links["to_switch"] >= 0)
    loads, total = fabric.loads(hosts, best.traffic)[between], best.traffic.sum()
    share = loads * 8 / links["bandwidth"][between] / best.iteration_time
    return LinkUse(len(hosts), share, float(loads.sum() / total) if total else 0.0)


def own_features(use: LinkUse, best: LinkUse) -> Floats:
    """In the order of ``OWN``."""
    met, met_at_best = (float(use_of.contention(use_of.utilisation[None])[0]) for use_of in (use, best))
    return numpy.array([use.hops - best.hops, met - met_at_best, use.peak - best.peak])


def contention_matrix(uses: Sequence[LinkUse]) -> Floats:
    """The contention of each job (row) with each other (column); the diagonal is 0."""
    shares = numpy.stack([use.utilisation for use in uses])
    met = numpy.stack([use.contention(shares) for use in uses])
    numpy.fill_diagonal(met, 0.0)
    return met


def neighbour_features(met: Floats, uses: Sequence[LinkUse]) -> Floats:
    """A row for each job, in the order of ``NEIGHBOURS``; ``met`` is their ``contention_matrix``."""
    ranks = numpy.array([use.ranks for use in uses])
    every, larger = met.sum(axis=1), numpy.where(ranks >= ranks[:, None], met, 0.0).sum(axis=1)
    busiest = numpy.array([use.peak for use in uses])
    return numpy.column_stack([every, larger, every * busiest])


class Coefficients(Part):
    """The coefficients of one pattern, by name of the own features and of those of neighbours."""

    own: dict[str, float]
    neighbours: dict[str, float]
    min_own: float
    """The smallest slowdown by its own hosts that was simulated; no smaller one is predicted."""
    max_own: float
    """The largest."""
    max_neighbours: float
    """The largest slowdown by neighbours that was simulated; no larger one is predicted."""
    error: ErrorMetrics
    """Of the whole slowdown, on held-out snapshots; the baseline is no slowdown."""

    @model_validator(mode="after")
    def _all_features(self) -> Self:
        problems = [
            Problem(part, "does not have the features of this version", ", ".join(given), ", ".join(names))
            for part, given, names in (("own", self.own, OWN), ("neighbours", self.neighbours, NEIGHBOURS))
            if tuple(given) != names
        ]
        if problems:
            raise Problems(*problems)
        return self

    def own_slowdown(self, features: Floats) -> float:
        """By a job's own hosts, relative to its best."""
        slowdown = float(numpy.exp(features @ numpy.array(list(self.own.values()))))
        return round(min(max(slowdown, self.min_own), self.max_own), 6)

    def neighbours_slowdown(self, features: Floats) -> float:
        """By the co-running jobs."""
        slowdown = float(numpy.exp(features @ numpy.array(list(self.neighbours.values()))))
        return round(min(slowdown, self.max_neighbours), 6)


class SlowdownModel(FittedModel):
    """A fitted model with the fabric, as in a scenario, the mix, and the coefficients of each pattern in its order.

    It has the seed of the simulations, how many snapshots were simulated, and the errors on held-out snapshots.

    For every pattern of the mix it has two sums. The logarithm of a job's slowdown by its *own* hosts is a sum of the
    own features, fitted by least squares (scattered hosts may be faster or slower); the logarithm of its slowdown by
    its *neighbours* is a sum of their features with coefficients that are not negative (Lawson and Hanson's NNLS), as
    neighbours make no job faster. Both are clipped to the range that was simulated; a job's slowdown is their product.

    A job's *utilisation* of a link between switches is the share of time that its bytes take there at its best speed.
    The *contention* of a job with another is the sum of the other's utilisation over the links that a byte of the job
    crosses.

    Own features compare the job's hosts with its best ones: the links that a byte crosses, the contention with its own
    job, and the utilisation of its busiest link. Features of neighbours are: the contention with all other jobs; with
    those that have as many ranks or more, whose bursts are longer; and with all others, times the utilisation of the
    job's busiest link, which has least room for more.
    """

    FORMAT: ClassVar[str] = "fairlane slowdown 2"

    seed: int
    snapshots: int
    fabric: dict[str, Any]
    mix: PatternMix
    coefficients: list[Coefficients] = Field(min_length=1)

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if len(self.coefficients) != len(self.mix.pattern):
            message = f"there are {len(self.mix.pattern)} patterns in the mix"
            raise Problems(Problem("coefficients", message, len(self.coefficients), "one table for each"))
        return self

    @property
    def table(self) -> FabricTable:
        """The fabric's table; raises ``ScenarioError``."""
        return FabricTable.read(dict(self.fabric))


def shipped_models() -> list[str]:
    """The models that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _SHIPPED.iterdir() if entry.name.endswith(".toml"))


def load_model(name: str | Path) -> SlowdownModel:
    """A model by its file, or by name if it comes with the package; raises ``ScenarioError``."""
    if str(name) in shipped_models():
        with as_file(_SHIPPED / f"{name}.toml") as path:
            return SlowdownModel.load(path)
    if not Path(name).exists():
        raise ScenarioError(Problem.unknown("model", "file or model", str(name), shipped_models(), str(name)))
    return SlowdownModel.load(Path(name))


@dataclass(frozen=True)
class _Row:
    """One job of a simulated snapshot."""

    snapshot: int
    pattern: int
    own: Floats
    neighbours: Floats
    measured: Slowdown


def fit_model(
    fabric: FabricTable, mix: PatternMix, *, snapshots: int = 200, seed: int = 1, executor: Executor | None = None
) -> SlowdownModel:
    """Simulates so many snapshots and fits a model to them.

    ``executor`` performs the simulations; without one they are kept in memory only. Raises ``ScenarioError`` if the mix
    lacks workloads, or a pattern was met too seldom, and ``RunError`` if a simulation fails.
    """
    bench = Bench(fabric, mix.workloads, seed)
    drawn = {number: draw_snapshot(bench.fabric, mix, seed, number) for number in range(snapshots)}
    topology = fabric.spec["topology"]
    measured = Snapshots({topology: (bench, drawn)}).slowdowns(executor)[topology]
    rows = [row for number, jobs in drawn.items() for row in _rows(bench, jobs, number, measured[number])]
    return SlowdownModel(
        format=SlowdownModel.FORMAT,
        version=version("fairlane"),
        seed=seed,
        snapshots=snapshots,
        fabric=fabric.model_dump(mode="json", exclude_none=True),
        mix=mix,
        coefficients=[_pattern(rows, number) for number in range(len(mix.pattern))],
    )


def _rows(bench: Bench, jobs: Sequence[Resident], snapshot: int, measured: Sequence[Slowdown]) -> Iterator[_Row]:
    best = [bench.best(job.pattern, job.ranks) for job in jobs]
    uses = [utilisation_of(bench.fabric, job.hosts, best_of_job) for job, best_of_job in zip(jobs, best, strict=True)]
    at_best: list[LinkUse] = [utilisation_of(bench.fabric, best_of_job.hosts, best_of_job) for best_of_job in best]
    of_neighbours = neighbour_features(contention_matrix(uses), uses)
    for at, job in enumerate(jobs):
        yield _Row(snapshot, job.pattern, own_features(uses[at], at_best[at]), of_neighbours[at], measured[at])


def _pattern(rows: Sequence[_Row], pattern: int) -> Coefficients:
    """The coefficients of one pattern, with the error of those that were fitted without the snapshot in question."""
    of_pattern = [row for row in rows if row.pattern == pattern]
    if len(of_pattern) < FEWEST_JOBS:
        message = f"only {plural(len(of_pattern), 'job')} of pattern {pattern} were simulated"
        raise ScenarioError(Problem("--snapshots", message, allowed=f"enough for {FEWEST_JOBS}"))
    fold = numpy.array([row.snapshot % FOLDS for row in of_pattern])

    def held_out(out: Bools) -> Floats:
        part = _fitted([row for row, is_out in zip(of_pattern, out, strict=True) if not is_out], _UNKNOWN)
        rows = [row for row, is_out in zip(of_pattern, out, strict=True) if is_out]
        return numpy.array([part.own_slowdown(row.own) * part.neighbours_slowdown(row.neighbours) for row in rows])

    simulated = numpy.array([row.measured.own * row.measured.neighbours for row in of_pattern])
    return _fitted(of_pattern, ErrorMetrics.of(cross_validate(fold, held_out) / simulated, 1 / simulated))


def _fitted(rows: Sequence[_Row], error: ErrorMetrics) -> Coefficients:
    from scipy.optimize import nnls

    isolated, neighbours = numpy.stack([row.own for row in rows]), numpy.stack([row.neighbours for row in rows])
    by_own = numpy.array([row.measured.own for row in rows])
    by_others = numpy.array([row.measured.neighbours for row in rows])
    square = isolated.T @ isolated + _RIDGE * len(rows) * numpy.eye(len(OWN))
    weights = numpy.linalg.solve(square, isolated.T @ numpy.log(by_own))
    positive, _ = nnls(neighbours, numpy.log(by_others))
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
