"""Applies the model to a machine on which jobs start and end, and verifies it: the slowdown of every job at any time.

The contention of two jobs depends on these two only, so a job that starts adds a row and a column to the matrix of
contention, and one that ends removes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy
import polars as pl

from fairlane.core.seeds import Purpose, stream
from fairlane.learn.models import Floats
from fairlane.learn.models.validation import ErrorMetrics
from fairlane.learn.scheduler.log import Placed, Schedule
from fairlane.learn.scheduler.slowdown.model import (
    LinkUse,
    SlowdownModel,
    neighbour_features,
    own_features,
    utilisation_of,
)
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement import Communication
from fairlane.study.shipped.slowdowns import Bench, Resident, Snapshots

_DRAWS = 1000
"""Maximum number of instants drawn for every snapshot: at most of them the machine may be nearly empty."""


class Forecast:
    """A model with its fabric, and cached results for the jobs of its patterns."""

    def __init__(self, model: SlowdownModel, seed: int = 1) -> None:
        self.model = model
        """The model."""
        self._seed = seed
        self._patterns: dict[int, int] = {}
        self._at_best: dict[tuple[int, int], LinkUse] = {}
        self._uses: dict[Resident, tuple[LinkUse, float]] = {}

    @cached_property
    def bench(self) -> Bench:
        """The fabric, and jobs at their best."""
        return Bench(self.model.table, self.model.mix.workloads, self.model.seed)

    @property
    def fabric(self) -> Fabric:
        """The model's fabric."""
        return self.bench.fabric

    def pattern(self, job: int) -> int:
        """The pattern of a job of the log."""
        if job not in self._patterns:
            self._patterns[job] = self.model.mix.number(job, self._seed)
        return self._patterns[job]

    def communication(self, job: int) -> Communication:
        """The pattern of a job of the log, in the form that placement policies take."""
        return self.model.mix.communication(self.pattern(job))

    def isolated(self, job: Resident) -> tuple[LinkUse, float]:
        """A job's load on the links, and its slowdown by its own hosts."""
        if job not in self._uses:
            if job.ranks < 2:
                result = LinkUse(job.ranks, numpy.zeros_like(self._empty), 0.0), 1.0
            else:
                best = self.bench.best(job.pattern, job.ranks)
                use = utilisation_of(self.fabric, job.hosts, best)
                features = own_features(use, self._best_use(job.pattern, job.ranks))
                result = use, self.model.coefficients[job.pattern].own_slowdown(features)
            self._uses[job] = result
        return self._uses[job]

    def slowdowns(self, jobs: Sequence[Resident]) -> list[float]:
        """The slowdown of each job of a snapshot, relative to its best."""
        there = Neighbourhood(self)
        for number, job in enumerate(jobs):
            there.add(number, job)
        return [isolated * neighbours for isolated, neighbours in zip(there.own, there.by_neighbours(), strict=True)]

    @cached_property
    def _empty(self) -> Floats:
        links = self.fabric.links
        return numpy.zeros(int(((links["from_switch"] >= 0) & (links["to_switch"] >= 0)).sum()))

    def _best_use(self, pattern: int, ranks: int) -> LinkUse:
        key = (pattern, ranks)
        if key not in self._at_best:
            best = self.bench.best(pattern, ranks)
            self._at_best[key] = utilisation_of(self.fabric, best.hosts, best)
        return self._at_best[key]


class Neighbourhood:
    """The jobs on the machine at a time."""

    def __init__(self, forecast: Forecast) -> None:
        self._forecast = forecast
        self.numbers: list[int] = []
        """The jobs' numbers."""
        self.own: list[float] = []
        """Their slowdowns by their own hosts."""
        self._jobs: list[Resident] = []
        self._uses: list[LinkUse] = []
        self._met = numpy.zeros((0, 0))

    def add(self, number: int, job: Resident) -> None:
        """Adds a job."""
        use, isolated = self._forecast.isolated(job)
        size = len(self._uses)
        met = numpy.zeros((size + 1, size + 1))
        met[:size, :size] = self._met
        if size:
            met[size, :size] = use.contention(numpy.stack([other.utilisation for other in self._uses]))
            met[:size, size] = [float(other.contention(use.utilisation[None])[0]) for other in self._uses]
        self._met = met
        self.numbers.append(number)
        self.own.append(isolated)
        self._jobs.append(job)
        self._uses.append(use)

    def remove(self, number: int) -> None:
        """Removes a job."""
        at = self.numbers.index(number)
        self._met = numpy.delete(numpy.delete(self._met, at, axis=0), at, axis=1)
        for column in (self.numbers, self.own, self._jobs, self._uses):
            del column[at]

    def by_neighbours(self) -> list[float]:
        """Each job's slowdown by its neighbours, in the order of ``numbers``."""
        if not self._jobs:
            return []
        rows = neighbour_features(self._met, self._uses)
        of = self._forecast.model.coefficients
        return [of[job.pattern].neighbours_slowdown(row) for job, row in zip(self._jobs, rows, strict=True)]


@dataclass(frozen=True)
class Verification:
    """Predicted and simulated slowdowns of sampled snapshots."""

    jobs: pl.DataFrame
    """A row for each job at a snapshot: ``snapshot``, ``at`` (s), ``job``, ``ranks``, ``kind``, and its slowdown
    ``predicted`` and ``simulated``, in all, by its ``own`` hosts and by its ``neighbours``."""
    error: ErrorMetrics | None
    """Over all jobs; None if no job had any neighbour at any time."""

    @property
    def snapshots(self) -> int:
        """Number of simulated snapshots."""
        return self.jobs["snapshot"].n_unique() if self.jobs.height else 0


def verify(schedule: Schedule, forecast: Forecast, snapshots: int, seed: int = 1) -> Verification:
    """Simulates so many snapshots, drawn uniformly over the time in which at least two jobs communicate."""
    rows: list[dict[str, object]] = []
    sampled = list(enumerate(_sampled(schedule, snapshots, seed)))
    there = {
        number: [Resident(forecast.pattern(placed_job.job.number), placed_job.hosts) for placed_job in placed]
        for number, (_, placed) in sampled
    }
    topology = forecast.model.fabric["topology"]
    measured = Snapshots({topology: (forecast.bench, there)}).slowdowns()[topology]
    for number, (at, placed) in sampled:
        residents = there[number]
        slowdowns = forecast.slowdowns(residents)
        for placed_job, resident, slowdown, total in zip(placed, residents, measured[number], slowdowns, strict=True):
            predicted_own = forecast.isolated(resident)[1]
            rows.append(
                {
                    "snapshot": number,
                    "at": at,
                    "job": placed_job.job.number,
                    "ranks": resident.ranks,
                    "kind": forecast.communication(placed_job.job.number).kind,
                    "predicted": total,
                    "simulated": slowdown.own * slowdown.neighbours,
                    "predicted_own": predicted_own,
                    "simulated_own": slowdown.own,
                    "predicted_neighbours": total / predicted_own,
                    "simulated_neighbours": slowdown.neighbours,
                }
            )
    table = pl.DataFrame(rows)
    if not rows:
        return Verification(table, None)
    predicted, simulated = table["predicted"].to_numpy(), table["simulated"].to_numpy()
    return Verification(table, ErrorMetrics.of(predicted / simulated, 1 / simulated))


def _sampled(schedule: Schedule, snapshots: int, seed: int) -> list[tuple[float, Sequence[Placed]]]:
    """Instants with the jobs of two ranks or more that run there; instants with fewer than two such do not count."""
    if not schedule.jobs:
        return []
    begin, end = schedule.jobs[0].start, max(job.end for job in schedule.jobs)
    rng = stream(seed, Purpose.SNAPSHOT, 2)
    samples: list[tuple[float, Sequence[Placed]]] = []
    for _ in range(snapshots * _DRAWS):
        at = begin + float(rng.random()) * (end - begin)
        there = [job for job in schedule.at(at) if job.job.hosts > 1]
        if len(there) > 1:
            samples.append((at, there))
        if len(samples) == snapshots:
            break
    return samples
