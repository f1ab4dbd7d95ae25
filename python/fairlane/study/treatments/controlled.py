"""A treatment by a controller, which decides service levels from the work of each period.

In episodes every period is a fresh simulation with variants of its own, so the default run is one of as many episodes
under the controller ``none``, which also says what each job does alone in the variants that it got. Online it is one
simulation as long as all periods, and compared like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator
from typing_extensions import override

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.study.phases import missing
from fairlane.study.treatments.base import SIMULATE, Done, Treatment
from fairlane.units import DURATION, Duration

if TYPE_CHECKING:
    from fairlane.scenario import Scenario
    from fairlane.study.task import Task
    from fairlane.study.written import Written

__all__ = ["Controlled"]

CONTROL = "fairlane.study.work:control"


class Controlled(Treatment):
    """A controller, for a number of periods."""

    key: ClassVar[str] = "controller"

    controller: Annotated[dict[str, Any], BeforeValidator(lambda it: {"name": it} if isinstance(it, str) else it)]
    """The controller: its name, or a table with its name and parameters."""
    mode: Literal["episodes", "online"] = "episodes"
    """Whether every period is a fresh simulation, or all are one that goes on."""
    period: Duration = Field(60 * 10**9, gt=0)
    """How long a period is."""
    periods: int = Field(500, ge=1)
    """How many there are."""

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
        from fairlane.controller import make
        from fairlane.controller.fitting import fit

        name = self.controller["name"]
        try:
            made = make(name, self.parameters)
        except ScenarioError as error:
            for problem in error.problems:
                inner = problem.key.removeprefix("controller").removeprefix(f".{name}").removeprefix(".")
                yield Problem(
                    f"controller.{inner or 'name'}", problem.message, problem.value, problem.allowed, problem.nearest
                )
            return
        fit(scenario, made)
        if self.mode == "online":
            yield from super().check(scenario)
            return
        empty = next(missing(scenario, self.period, self.periods), None)
        if empty is not None:
            yield Problem("jobs[0].start", f"no job is there in period {empty}", allowed="a job in every period")
        for at, job in enumerate(scenario.jobs):
            if isinstance(job.stop, int):
                words = "episodes begin anew, so iterations of one do not add up"
                yield Problem(f"jobs[{at}].stop", words, job.stop, 'a time, as "600 ms"')

    @property
    @override
    def baseline(self) -> str:
        return f"{self.periods} x {DURATION.format(self.period)} {self.mode}"

    @override
    def default(self, written: Written) -> Task:
        if self.mode == "online":
            return written.lasting(self.period * self.periods).task(SIMULATE, "default")
        return self._task(written, "default", "none", {}, isolated=True)

    @override
    def alone(self, written: Written, job: int) -> Task | None:
        if self.mode == "online":
            label = f"{written.names[job]} alone"
            return written.lasting(self.period * self.periods).alone(job).task(SIMULATE, label)
        return None

    @override
    def treated(self, written: Written, name: str) -> Task:
        return self._task(written, name, self.controller["name"], self.parameters, isolated=False)

    def _task(self, written: Written, label: str, name: str, parameters: Mapping[str, Any], *, isolated: bool) -> Task:
        arguments = {
            "controller": name,
            "parameters": dict(parameters),
            "mode": self.mode,
            "period": self.period,
            "periods": self.periods,
            "seed": written.seed,
            "isolated": isolated,
        }
        return written.lasting(self.period).task(CONTROL, label, arguments, runs=self.periods)

    @override
    def work(self, answer: Mapping[str, Any], job: str) -> Done:
        return self._sum(answer, job, "iterations") if "periods" in answer else super().work(answer, job)

    @override
    def work_alone(self, answer: Mapping[str, Any], job: str) -> Done:
        return self._sum(answer, job, "isolated_iterations")

    def _sum(self, answer: Mapping[str, Any], job: str, column: str) -> Done:
        counts = [row[column] for row in answer["periods"] if row["job"] == job]
        return Done(sum(counts), self.period * len(counts))

    @override
    def periods_of(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        return list(answer.get("periods", ()))
