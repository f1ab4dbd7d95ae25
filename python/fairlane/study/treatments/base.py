"""Base of treatments: changes of the default run, and the runs that they are compared with.

A kind of treatment is a model of its table in a study file. It is chosen by the key that only it has.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.core.statistics import Estimate, ratio_change
from fairlane.inputs.table import Table
from fairlane.model.scenario import Scenario
from fairlane.model.scenario.checks import late
from fairlane.results.milestones import Milestones
from fairlane.study.setting import Setting
from fairlane.study.tasks.task import Task

SIMULATE = "fairlane.study.pinned:simulate"


@dataclass(frozen=True)
class Progress:
    """Progress of a job in a run: iterations of its slowest rank, and the time in which they were completed, ps.

    ``milestones`` are when it completed them, of one simulation; None of many. Of many simulations ``parts`` has the
    iterations of each, with the part of the last one, and the time that they took, s.
    """

    iterations: int
    span: int
    milestones: Milestones | None = None
    parts: Sequence[tuple[float, float]] = ()

    @property
    def pace(self) -> Estimate | None:
        """The mean time of an iteration, s; None if that is not known."""
        return self.milestones.pace if self.milestones is not None else self._of_parts

    @property
    def throughput(self) -> Estimate | None:
        """Iterations per second; None if that is not known. What is not timed takes time, too."""
        spacing = self.milestones.spacing if self.milestones is not None else self._of_parts
        return spacing.inverse() if spacing and spacing.value else None

    @property
    def _of_parts(self) -> Estimate | None:
        done, spent = zip(*self.parts, strict=True) if self.parts else ((), ())
        change = ratio_change(spent, done, skip=0)  # seconds over iterations, less one
        return change.shifted(1.0) if change else None


class Treatment(Table):
    """A kind of treatment; this base is compared over one simulation of the scenario's duration."""

    key: ClassVar[str]
    """The key of a treatment's table by which this kind is recognised."""
    steady: ClassVar[bool] = True
    """Whether it acts from the beginning, so that the warm-up is excluded from its effect."""

    set: Setting = Field(default_factory=dict)
    """Scenario keys that are different, by dotted path."""
    own_isolation: bool = False
    """Whether W is against isolated runs with the same keys different (as under the same routing), not by default."""

    @classmethod
    def summary(cls) -> str:
        """One line about it."""
        return (cls.__doc__ or cls.__name__).strip().partition("\n")[0]

    def check(self, scenario: Scenario) -> Iterator[Problem]:
        """Errors of this treatment with this scenario; keys are relative to its table, or the scenario's."""
        yield from late(scenario, scenario.duration)

    def fitted(self, scenario: Scenario) -> Scenario:
        """The scenario as it is treated, where the treatment needs something of it that the scenario leaves open."""
        return scenario

    @property
    def baseline(self) -> str:
        """Identifies its default and isolated runs; treatments with the same value share them."""
        return ""

    def default(self, pinned: Task) -> Task:
        """The default run that it is compared with."""
        return pinned.of(SIMULATE, "default")

    def isolated(self, pinned: Task, job: int) -> Task | None:
        """The isolated run of a job; None if its work is part of what the default run returns."""
        return pinned.isolated(job).of(SIMULATE, f"{pinned.names[job]} isolated")

    @abstractmethod
    def treated(self, pinned: Task, name: str) -> Task:
        """The treated run."""

    def progress(self, answer: Mapping[str, Any], job: str) -> Progress:
        """The progress of a job, from the answer of the default, isolated or treated task."""
        row = next(row for row in answer["jobs"] if row["job"] == job)
        reached = Milestones.read(row["milestones"])
        return Progress(row["iterations"], row["span_ps"], reached)

    def isolated_progress(self, answer: Mapping[str, Any], job: str) -> Progress:
        """The progress of an isolated job from the default run's answer, where ``isolated`` returns no task."""
        raise NotImplementedError(f"isolated runs of {type(self).__name__} are tasks of their own")

    def periods_of(
        self, answer: Mapping[str, Any], default: Mapping[str, Any] | None, isolated: Mapping[str, Any] | None
    ) -> list[dict[str, Any]]:
        """Rows about single periods: ``period``, ``job``, ``iterations`` and what else there is to say.

        By the answers of the treated task, of the default one, and of the one with the isolated jobs; None if failed.
        """
        del answer, default, isolated
        return []


class Overrides(Treatment):
    """Other values of scenario keys for the whole run: service levels, arbitration weights, placement, routing."""

    key: ClassVar[str] = "set"

    @override
    def treated(self, pinned: Task, name: str) -> Task:
        return pinned.of(SIMULATE, name)
