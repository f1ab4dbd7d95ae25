"""Background jobs: a random job mix on the hosts that the scenario's own jobs leave free.

Size, workload, compute time, arrival and lifetime of every job are drawn from distributions. The same seed draws the
same mix.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Self

import numpy
from pydantic import Field, PrivateAttr, model_validator

from fairlane.core.seeds import LARGEST_SEED, Purpose, stream
from fairlane.core.units import DURATION
from fairlane.inputs.distribution import Distribution, DurationDistribution, NumberDistribution, distribution
from fairlane.inputs.problems import under, validated
from fairlane.inputs.table import Table
from fairlane.model.scenario.models import Job, Placement, PlacementField
from fairlane.model.workload import WORKLOADS, Workload


class BackgroundJobs(Table):
    """Background jobs of one kind."""

    weight: float = Field(default=1.0, gt=0)
    """Relative weight: the probability of this kind is its weight over the sum of all weights."""
    workload: str | dict[str, Any]
    """Their workload: a name, or a table with the name and parameters, each of which may be a distribution."""
    hosts: NumberDistribution | None = None
    """Number of hosts of such a job, in place of that of `background.hosts`."""
    _kind: type[Workload] = PrivateAttr(Workload)
    _parameters: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _known(self) -> Self:
        table = {"name": self.workload} if isinstance(self.workload, str) else self.workload
        with under("workload"):
            self._kind = WORKLOADS.find(str(table.get("name")))
            self._parameters = {key: _drawn(key, value) for key, value in table.items() if key != "name"}
            self.draw(numpy.random.default_rng(0))
        return self

    def draw(self, rng: numpy.random.Generator) -> Workload:
        """The workload of one job."""
        fields, drawn = self._kind.model_fields, dict(self._parameters)
        for key, value in drawn.items():
            if isinstance(value, Distribution):
                whole = key not in fields or fields[key].annotation is int
                drawn[key] = value.written(value.draw(rng), whole=whole)
        return validated(self._kind, drawn)


def _drawn(key: str, value: Any) -> Any:
    """A parameter's distribution, or the value itself."""
    if not (isinstance(value, dict) and "dist" in value):
        return value
    with under(key):
        return distribution(value)


class Background(Table):
    """Jobs on the hosts that the scenario's own jobs leave free, drawn at random.

    A host that a job of the scenario occupies at any time is not free, and jobs that do not run at the same time are
    counted as if each had hosts of its own.
    """

    seed: int | None = Field(default=None, ge=0, le=LARGEST_SEED)
    """Seed of the mix. Default: the scenario's seed."""
    fill: NumberDistribution = Field(default=0.8, validate_default=True)
    """Share of the free hosts that background jobs occupy, 0 to 1."""
    hosts: NumberDistribution = Field(
        default={"dist": "lognorm", "s": 1.0, "scale": 32, "min": 2, "max": 512}, validate_default=True
    )
    """Number of hosts of a job."""
    ranks_per_host: int = Field(default=1, ge=1, le=1024)
    """Number of ranks on each host."""
    start: DurationDistribution = Field(default=0, validate_default=True)
    """Arrival time of a job; a job with a negative arrival time runs from the beginning."""
    lifetime: DurationDistribution | None = None
    """Time from arrival to departure. Default: to the end of the run. Its hosts are idle afterwards."""
    placement: PlacementField = Field(default_factory=lambda: Placement(name="fragmented"))
    """Policy of the hosts of jobs."""
    jobs: Annotated[list[BackgroundJobs], Field(min_length=1)]
    """Kinds of jobs."""

    def draw(self, free: int, seed: int) -> Iterator[Job]:
        """Jobs for this many free hosts: as many as the drawn share of them takes; the last one may be smaller."""
        seed = seed if self.seed is None else self.seed
        mix = stream(seed, Purpose.BACKGROUND)
        left = round(min(max(self.fill.draw(mix), 0.0), 1.0) * free)
        bounds = numpy.cumsum([jobs_of_kind.weight for jobs_of_kind in self.jobs])
        number = 0
        while left > 0:
            kind = self.jobs[int(numpy.searchsorted(bounds[:-1], mix.random() * bounds[-1], side="right"))]
            rng = stream(seed, Purpose.BACKGROUND, 1 + number)
            hosts = min(left, max(1, round((kind.hosts or self.hosts).draw(rng))))
            left -= hosts
            job = self._job(f"background-{number}", kind, hosts, rng)
            if job is not None:
                yield job
            number += 1

    def _job(self, name: str, kind: BackgroundJobs, hosts: int, rng: numpy.random.Generator) -> Job | None:
        """A job; None if it departs before the simulation begins, or is too small for its workload."""
        workload = kind.draw(rng)
        start = self.start.draw(rng)
        stay = None if self.lifetime is None else self.lifetime.draw(rng)
        ranks = hosts * self.ranks_per_host
        fits = next((count for count in range(ranks, max(0, ranks - 2), -1) if not workload.problem_with(count)), None)
        if fits is None or (stay is not None and start + stay <= 0):
            return None
        times: dict[str, Any] = {"start": DURATION.format(max(0, round(start)))}
        if stay is not None:
            times["stop"] = DURATION.format(max(1, round(max(0.0, start)) + 1, round(start + stay)))
        table = {"name": name, "ranks": fits, "ranks_per_host": self.ranks_per_host}
        return Job.model_validate({**table, "workload": workload, "placement": self.placement, **times}).drawn()
