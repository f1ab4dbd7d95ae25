"""A treatment by a controller, which decides service levels from the work of each period.

The default run has as many periods, under the controller ``none``: in episodes with the same variants, online as one
continuous simulation. It also measures each job isolated; treated runs do not simulate that again.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator
from typing_extensions import override

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import DURATION, Duration
from fairlane.inputs.problems import Problems
from fairlane.model.scenario import Scenario
from fairlane.model.scenario.checks import late
from fairlane.results.milestones import Milestones
from fairlane.sim.controller import controller_of
from fairlane.sim.controller.base import Controller, JobWork
from fairlane.sim.controller.episodes import endless, missing
from fairlane.sim.controller.fitting import check_jobs, fit
from fairlane.study.tasks.task import Task
from fairlane.study.treatments.base import Progress, Treatment

CONTROL = "fairlane.study.pinned:control"


class Controlled(Treatment):
    """Service levels set by a controller, for a number of periods."""

    key: ClassVar[str] = "controller"
    steady: ClassVar[bool] = False

    controller: Annotated[dict[str, Any], BeforeValidator(lambda it: {"name": it} if isinstance(it, str) else it)]
    """The controller: its name, or a table with its name and parameters."""
    mode: Literal["episodes", "online"] = "episodes"
    """Whether every period is a fresh simulation, or all are parts of one simulation."""
    period: Duration = Field(default=60 * 10**9, gt=0)
    """Length of a period."""
    periods: int = Field(default=500, strict=True, ge=1)
    """Number of periods."""
    draws: int | None = Field(default=None, strict=True, ge=1)
    """Different combinations of variants, for episodes; without it a new one for each period."""

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        if self.draws is not None and self.mode == "online":
            words = "has an effect in episodes only: online there is one variant of each job"
            raise Problems(Problem("draws", words, self.draws, 'nothing, or mode = "episodes"'))
        return self

    @field_validator("controller")
    @classmethod
    def _named(cls, given: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(given.get("name"), str):
            raise Problems(Problem("name", "missing", allowed="the name of a controller"))
        return given

    @property
    def parameters(self) -> dict[str, Any]:
        """The controller's parameters."""
        return {key: value for key, value in self.controller.items() if key != "name"}

    @override
    def check(self, scenario: Scenario) -> Iterator[Problem]:
        try:
            check_jobs([scenario], self._made(scenario))
        except ScenarioError as error:
            yield from error.problems
            return
        yield from late(scenario, self.period * self.periods, 1 if self.mode == "online" else self.period)
        if self.mode == "online":
            return
        empty = next(missing(scenario, self.period, self.periods), None)
        if empty is not None:
            yield Problem("jobs", f"none is there in period {empty}", allowed="a job in every period")
        if (unending := endless(scenario)) is not None:
            yield unending

    @override
    def fitted(self, scenario: Scenario) -> Scenario:
        return fit(scenario, self._made(scenario))

    def _made(self, scenario: Scenario) -> Controller:
        """The controller; a file of it is relative to the scenario's folder, as those of workloads are."""
        with scenario.reading():
            return controller_of(self.controller)

    @property
    @override
    def baseline(self) -> str:
        drawn = f", {self.draws} draws" if self.draws else ""
        return f"{self.periods} x {DURATION.format(self.period)} {self.mode}{drawn}"

    @override
    def default(self, pinned: Task) -> Task:
        return self._task(pinned, "default", "none", {}, isolated=True)

    @override
    def isolated(self, pinned: Task, job: int) -> Task | None:
        return None

    @override
    def treated(self, pinned: Task, name: str) -> Task:
        return self._task(pinned, name, self.controller["name"], self.parameters, isolated=False)

    def _task(self, pinned: Task, label: str, name: str, parameters: Mapping[str, Any], *, isolated: bool) -> Task:
        arguments = {
            "controller": name,
            "parameters": dict(parameters),
            "mode": self.mode,
            "period": self.period,
            "periods": self.periods,
            "seed": pinned.scenario["seed"],
            "draws": self.draws,
            "default": False,
            "isolated": isolated,
        }
        return pinned.changed(duration=DURATION.format(self.period)).of(CONTROL, label, arguments, runs=self.periods)

    @override
    def progress(self, answer: Mapping[str, Any], job: str) -> Progress:
        return _sum(answer, job, "", "treated")

    @override
    def isolated_progress(self, answer: Mapping[str, Any], job: str) -> Progress:
        return _sum(answer, job, "isolated_", "isolated")

    @override
    def periods_of(
        self, answer: Mapping[str, Any], default: Mapping[str, Any] | None, isolated: Mapping[str, Any] | None
    ) -> list[dict[str, Any]]:
        before, alone = (
            {(row["period"], row["job"]): row for row in (of or {}).get("periods", ())} for of in (default, isolated)
        )

        def compared(row: Mapping[str, Any]) -> dict[str, Any]:
            key = (row["period"], row["job"])
            return self._compared(row, before.pop(key, {}), alone.get(key, {}))

        rows = [compared(row) for row in answer["periods"]]
        rows += [compared(_nothing(row)) for row in [*before.values()]]
        return sorted(rows, key=lambda row: row["period"])

    def _compared(
        self, row: Mapping[str, Any], default: Mapping[str, Any], isolated: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A job's part of a period, with what it did by default and isolated."""
        treated, other = _part(row), _part(default)
        return {
            **row,
            "default_iterations": default.get("iterations"),
            "default_advance": default.get("advance"),
            "default_seconds": default.get("seconds"),
            "isolated_iterations": isolated.get("isolated_iterations"),
            "isolated_advance": isolated.get("isolated_advance"),
            "isolated_seconds": isolated.get("isolated_seconds"),
            "improvement": treated.over(other, part=self.mode == "online") if treated else None,
        }


def _sum(answer: Mapping[str, Any], job: str, prefix: str, run: str) -> Progress:
    """Progress of a job over all periods in which it was there; online with its milestones.

    In periods of their own the part of the last iteration counts: short ones have few.
    """
    reached = answer["milestones"].get(run, {}).get(job)
    iterations, advance, seconds = (f"{prefix}{name}" for name in ("iterations", "advance", "seconds"))
    rows = [row for row in answer["periods"] if row["job"] == job and row[iterations] is not None]
    parts = [(row[advance], row[seconds]) for row in rows]
    done, spent = sum(row[iterations] for row in rows), sum(row[seconds] for row in rows)
    return Progress(done, round(1e12 * spent), reached and Milestones.read(reached), parts)


def _nothing(default: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a job that was no longer there in a period, treated, when it was by default."""
    return {**dict.fromkeys(default), "period": default["period"], "job": default["job"]}


def _part(row: Mapping[str, Any]) -> JobWork | None:
    """Work of a job in a period; None if it was not there."""
    done = row.get("iterations")
    if done is None:
        return None
    return JobWork((done,), compute=(), waiting=(), seconds=row["seconds"], advance=(row["advance"],))
