"""Plan of a study: its tasks, and the tables of their answers.

Of a study that compares there is a cell for each point, and cells share tasks. A cell is everything about one point,
placement and seed: the default run, each job isolated, and a run per treatment, all with the same programs on the same
hosts. Compute times are found first, on the default scenario, and hold for all.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from typing_extensions import override

from fairlane.core.errors import BuildError, Problem, ScenarioError
from fairlane.core.units import DURATION
from fairlane.core.wording import plural
from fairlane.inputs.problems import Problems
from fairlane.model.scenario import Resolved, Scenario
from fairlane.model.scenario.resolve import decide
from fairlane.model.scenario.resolved import Estimate
from fairlane.results.study import RunLength
from fairlane.study.cells import DEFAULT, Cell
from fairlane.study.length import sentence
from fairlane.study.pilot import Length, fixed_length
from fairlane.study.pinned import pin
from fairlane.study.repetition import Repeat
from fairlane.study.replicates import Allocation, key_of
from fairlane.study.setting import Point
from fairlane.study.study import Study
from fairlane.study.tables import compared_tables
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.task import Computable, Task, read
from fairlane.study.treatments.base import Overrides

T = TypeVar("T")

FIXED = ("name", "seed", "duration")
FIXED_OF_JOBS = ("name", "count", "ranks", "workload", "trace", "start", "stop", "stream")
"""Keys that are equal in treated and default runs, else nothing can be compared."""


class Plan(ABC):
    """Tasks, and the tables of their answers."""

    cells: Sequence[Cell] = ()
    """The points with their runs."""
    code: Sequence[Path] = ()
    """Files of functions of the study's own that its tasks call."""

    def calibrations(self) -> Iterable[Computable]:
        """Tasks whose answers the other tasks need."""
        return ()

    def calibrate(self, _executor: Executor, /) -> None:
        """Makes the tasks that need these answers; none for points whose calibration failed."""
        return

    def outline(self) -> None:
        """Makes the tasks as far as they are known before any calibration."""
        return

    def tasks(self) -> Sequence[Computable]:
        """All others; several may be the same."""
        return [run.task for cell in self.cells for run in cell.runs]

    @abstractmethod
    def tables(self, executor: Executor) -> dict[str, pl.DataFrame]:
        """Make the tables, by name, of the answers."""

    def described(self) -> list[dict[str, Any]]:
        """For each point its scenario, and the answers that are its runs."""
        return [cell.described() for cell in self.cells]

    @property
    def memory(self) -> float:
        """Estimated bytes of memory of the largest simulation."""
        return max((cell.memory for cell in self.cells), default=0.0)

    @property
    def allowed(self) -> int:
        """Largest memory limit of the scenarios; 0 if none has one."""
        return max((cell.allowed for cell in self.cells), default=0)

    def extended(self, _executor: Executor, /) -> "Plan | None":
        """The plan with further replicates, where what was computed so far needs them; None if nothing is to be added.

        The executor has the answers of all its tasks.
        """
        return None

    @property
    def notes(self) -> Sequence[str]:
        """Notes on the results, a sentence each."""
        return ()

    @property
    def pilot(self) -> str | None:
        """What follows, where this is the pilot of a study that chooses the length of its runs."""
        return None

    @property
    def run_length(self) -> RunLength | None:
        """How long runs are, where that was chosen."""
        return None


def compute(plans: Sequence[Plan], executor: Executor) -> None:
    """Performs the tasks of plans, each once: calibrations first, then those that need them."""
    calibrations = {task.digest: task for plan in plans for task in plan.calibrations()}
    if calibrations:
        executor.run(calibrations.values())
    for plan in plans:
        plan.calibrate(executor)
    tasks = {task.digest: task for plan in plans for task in plan.tasks()}
    executor.run([task for digest, task in tasks.items() if digest not in calibrations])


@dataclass
class ComparedPlan(Plan):
    """All cells of a study whose runs are compared."""

    study: Study
    cells: list[Cell]
    allocation: Allocation | None = None
    """Further replicates of conditions; None without a precision."""
    length: Length | None = None
    """How long replicates are, where that is to be chosen."""

    @override
    def calibrations(self) -> Iterable[Task]:
        return (task for cell in self.cells for task in cell.calibrations.values())

    @override
    def calibrate(self, executor: Executor) -> None:
        for cell in self.cells:
            answers = {name: executor.answer(task) for name, task in cell.calibrations.items()}
            if all(answers.values()):
                compute = [
                    answer["compute"][0] if (answer := answers.get(name)) else None for name in cell.pinned.names
                ]
                cell.decide(compute, self.study.treatments)

    @override
    def outline(self) -> None:
        for cell in self.cells:
            cell.decide([None] * len(cell.jobs), self.study.treatments)

    @override
    def tables(self, executor: Executor) -> dict[str, pl.DataFrame]:
        return compared_tables(self.cells, executor)

    @override
    def extended(self, executor: Executor) -> "ComparedPlan | None":
        if self.allocation is None:
            return None
        points = [cell.point for cell in self.cells]
        if not self.allocation.further(self.tables(executor)["work"], points):
            return None
        if self.length and not self.length.choice and (shorter := self.length.decide(self.cells, executor)):
            first = judged(self.study, lambda point: _cell(self.study, point, shorter))
            return ComparedPlan(self.study, first, self.allocation, self.length)
        known = {(key_of(cell.point.case, cell.point.parameters), cell.point.placement): cell for cell in self.cells}
        length = self.length.shorter if self.length else None

        def cell_of(point: Point) -> Cell:
            before = known.get((key_of(point.case, point.parameters), point.placement))
            return before or _cell(self.study, point, length)

        cells = judged(self.study, cell_of, self.allocation.counts)
        return ComparedPlan(self.study, cells, self.allocation, self.length)

    @property
    @override
    def notes(self) -> Sequence[str]:
        chosen = [sentence(self.length.choice)] if self.length and self.length.choice else []
        return [*chosen, *([self.allocation.words()] if self.allocation else [])]

    @property
    @override
    def pilot(self) -> str | None:
        if self.length is None:
            return None
        longest = self.cells[0].pinned.scenario["duration"]
        most = f"at most {self.length.asked.at_most:,} replicates of {longest} or shorter"
        return f"this is the pilot: it chooses the length of all further runs, {most}"

    @property
    @override
    def run_length(self) -> RunLength | None:
        if not (self.length and self.length.choice and self.allocation):
            return None
        return self.length.choice.model_copy(update={"reached_half_width": self.allocation.half_width})


def plan(study: Study) -> ComparedPlan:
    """Checks every scenario of a comparing study and returns what has to be computed.

    Raises ``ScenarioError`` with everything that is wrong, before anything runs.
    """
    asked = study.table.repeat if isinstance(study.table.repeat, Repeat) else None
    if asked and asked.at_most < (points := sum(1 for _ in study.points())):
        allowed = f"at least {points}, {asked.at_least} for each of {plural(points // asked.at_least, 'condition')}"
        raise ScenarioError(study.error(Problem("repeat.at_most", "is too few", asked.at_most, allowed)))
    cells = judged(study, lambda point: _cell(study, point))
    if cells:
        _try_out(study, cells[0])
    length = Length(asked, bool(study.treatments)) if asked and asked.length == "choose" else None
    if length and (wrong := list(dict.fromkeys(fixed_length(study.treatments, cells)))):
        raise ScenarioError(study.error(problem) for problem in wrong)
    return ComparedPlan(study, cells, Allocation(asked) if asked else None, length)


def _try_out(study: Study, cell: Cell) -> None:
    """Reads a point's runs as workers will: what they could not read is refused before the first simulation."""
    for name, pinned in {DEFAULT: cell.pinned, **cell.treated}.items():
        try:
            decided_of(read(pinned))
        except ScenarioError as error:
            words = f"the {name} run cannot be simulated: {error}"
            key = "scenario" if name == DEFAULT else f"treatments.{name}"
            raise ScenarioError(study.error(Problem(key, words))) from error


def judged(study: Study, judge: Callable[[Point], T], replicates: Mapping[str, int] | None = None) -> list[T]:
    """Apply ``judge`` to every point of a study, with as many ``replicates`` of each condition.

    Raises ``ScenarioError`` with all that is wrong, each once.
    """
    problems: dict[str, Problem] = {}
    outcomes = []
    for point in study.points(replicates):
        try:
            outcomes.append(judge(point))
        except ScenarioError as error:
            problems.update({str(problem): problem for problem in error.problems})
    if problems:
        raise ScenarioError(problems.values())
    return outcomes


def _cell(study: Study, point: Point, length: int | None = None) -> Cell:
    """A point's cell; its runs last for the scenario's duration, or for ``length``, ps."""
    whole = None if length is None else DURATION.format(study.scenario(point).duration)
    if length is not None:
        shorter = (("duration",), DURATION.format(length), ("repeat", "length"))
        point = replace(point, changes=(*point.changes, shorter))
    scenario = study.scenario(point)
    if not study.treatments:
        wrong = list(Overrides().check(scenario))
        if wrong:
            raise scenario.error(Problems(*wrong))
    decided = decided_of(scenario)
    pinned = pin(scenario, decided, study.folder, str(point))
    estimate = decided.estimate or Estimate((), 0.0, 0.0)
    memory = estimate.memory if decided.estimate else 0.0
    treated: dict[str, Task] = {}
    problems: list[Problem] = []
    for name, treatment in study.treatments.items():
        try:
            other = study.scenario(point, name)
            wrong = list(_located(study, name, other, treatment.check(other)))
            problems += wrong
            fitted = other if wrong else treatment.fitted(other)
            judgement = decided_of(fitted)
            memory = max(memory, judgement.estimate.memory if judgement.estimate else 0.0)
            outcome = pin(fitted, judgement, study.folder, str(point))
        except ScenarioError as error:
            problems += error.problems
            continue
        problems += [study.error(problem) for problem in _incomparable(name, pinned, outcome)]
        treated[name] = outcome
    if problems:
        raise ScenarioError(problems)
    limit = scenario.memory or 0
    return Cell(
        point,
        pinned,
        memory,
        estimate.simulation_s,
        limit,
        treated,
        decided.jobs,
        set_up=estimate.set_up_s,
        hop=estimate.hop_s,
        duration=whole,
    )


def _located(study: Study, name: str, scenario: Scenario, problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems with their positions in the study file or the scenario file."""
    for problem in problems:
        if problem.key.partition("[")[0] == "jobs":
            yield from scenario.error(Problems(problem)).problems
        else:
            yield study.error(problem.under(f"treatments.{name}"))


def decided_of(scenario: Scenario) -> Resolved:
    """The scenario with all decisions made. Raises ``ScenarioError`` with the position in the file."""
    try:
        return decide(scenario)
    except Problems as problems:
        raise scenario.error(problems) from None
    except BuildError as error:
        raise scenario.error(Problems(Problem(error.path or "", str(error)))) from None


def _incomparable(name: str, default: Task, treated: Task) -> Iterator[Problem]:
    """Yield changes by a treatment after which nothing can be compared."""
    where = f"treatments.{name}.set"
    for key in FIXED:
        if default.scenario[key] != treated.scenario[key]:
            yield Problem(where, f"changes {key}: then nothing can be compared", treated.scenario[key])
    for at, (job, other) in enumerate(zip(default.scenario["jobs"], treated.scenario["jobs"], strict=False)):
        for key in FIXED_OF_JOBS:
            if job.get(key) != other.get(key):
                yield Problem(where, f"changes {key} of job {at}: then nothing can be compared")
    if len(default.names) != len(treated.names):
        yield Problem(where, "changes the number of jobs: then nothing can be compared")
