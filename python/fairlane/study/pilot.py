"""The pilot of a study that chooses the length of its runs: what its replicates say of shorter ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy

from fairlane.core.errors import Problem
from fairlane.core.statistics import BATCH
from fairlane.core.statistics.components import Components
from fairlane.core.units import DURATION
from fairlane.core.wording import plural
from fairlane.results.milestones import Milestones, common, segments
from fairlane.results.study import RunLength
from fairlane.sim.runner.precision import ENOUGH
from fairlane.study.cells import DEFAULT, ISOLATED, TASK_S, Cell
from fairlane.study.conditions import condition_of
from fairlane.study.length import FEW, Condition, Effect, Values, choose
from fairlane.study.repetition import Repeat
from fairlane.study.replicates import key_of
from fairlane.study.tables import compared
from fairlane.study.tasks.executor import Executor
from fairlane.study.treatments import Treatment

CALIBRATION = 45
"""Iterations of an isolated job that the calibration of its compute time costs, as measured with
`examples/quickstart.toml`."""
MOST_SEGMENTS = 10
"""Maximum number of parts of a run; fewer where one would have fewer than ``BATCH`` recorded iterations of a job."""
ENDED = "jobs end by themselves"
UNKNOWN = "the pilot has replicates without a result"
"""Why replicates last for the whole duration, whatever the pilot would say."""


class _NoLengthError(Exception):
    """No shorter length can be chosen; the message says why."""


@dataclass
class Length:
    """The choice of a study; none before its pilot."""

    asked: Repeat
    treated: bool
    """Whether it has treatments."""
    choice: RunLength | None = None

    @property
    def shorter(self) -> int | None:
        """The chosen length, ps, if it is not the scenario's duration."""
        chosen = self.choice
        return chosen.length_ps if chosen and chosen.length_ps < chosen.duration_ps else None

    def decide(self, cells: Sequence[Cell], executor: Executor) -> int | None:
        """Choose by the pilot; return the length, ps, or None if it is that of the pilot."""
        duration = DURATION.parse(cells[0].pinned.scenario["duration"])
        by_condition: dict[str, list[Cell]] = {}
        for cell in cells:
            by_condition.setdefault(key_of(cell.point.case, cell.point.parameters), []).append(cell)
        column = self.asked.of or ("improvement" if self.treated else "w")
        pilots = [_Pilot.of(of, executor, column) for of in by_condition.values()]
        try:
            shortest = max(pilot.shortest() for pilot in pilots)
            conditions = [pilot.condition(duration) for pilot in pilots]
        except _NoLengthError as error:
            self.choice = RunLength(
                duration_ps=duration,
                length_ps=duration,
                kept_because=str(error),
                pilot=len(cells),
                accepted=self.asked.accepted,
            )
            return None
        self.choice = choose(self.asked, duration, shortest, conditions)
        return self.shorter


def fixed_length(treatments: Mapping[str, Treatment], cells: Sequence[Cell]) -> Iterator[Problem]:
    """Yield what does not allow runs to be shorter than the scenario's duration."""
    allowed = 'length = "duration"'

    def at_a_time(key: str) -> Problem:
        message = f"{key} takes effect at a given time, and a shorter run may end before it"
        return Problem("repeat.length", message, "choose", allowed)

    for name, treatment in treatments.items():
        if treatment.baseline:
            yield Problem("repeat.length", f"treatments.{name} has periods of its own", "choose", allowed)
    for cell in cells:
        data = cell.pinned.scenario
        if data["duration"] != cells[0].pinned.scenario["duration"]:
            yield Problem("repeat.length", "the points differ in their duration", "choose", allowed)
        yield from (at_a_time(key) for key in ("until", "fault", "background") if data.get(key))
        for job in data["jobs"] if not data.get("background") else ():
            if isinstance(job.get("stop"), int):
                message = f"job {job['name']} ends after {plural(job['stop'], 'iteration')}, so its length is given"
                yield Problem("repeat.length", message, "choose", allowed)
            yield from (at_a_time(f"{key} of job {job['name']}") for key in ("start", "stop") if _timed(job.get(key)))


def _timed(given: object) -> bool:
    """Whether a time that a job gives is one after the beginning."""
    return isinstance(given, str) and DURATION.parse(given) > 0


Pair = tuple[Milestones, Milestones]
"""The iterations of a job in a run, and in the run that it is compared with."""


@dataclass(frozen=True)
class _Pilot:
    """The replicates of one condition."""

    condition_name: str
    cells: Sequence[Cell]
    executor: Executor
    pairs: Mapping[str, Sequence[Sequence[Pair]]]
    """By treatment, for each replicate the pairs of its jobs."""

    @classmethod
    def of(cls, cells: Sequence[Cell], executor: Executor, column: str) -> "_Pilot":
        """Pair the runs that give ``column``, the effect."""
        pairs: dict[str, list[list[Pair]]] = {}
        for number, cell in enumerate(cells):
            for one in compared(cell, executor):
                reference = one.isolated if column == "w" else one.default
                name = one.run.treatment
                if reference is None or (column == "improvement" and name == DEFAULT):
                    continue
                of_treatment = pairs.setdefault(name, [[] for _ in cells])
                if one.done.milestones and reference.milestones and cell.jobs[one.job].iterates:
                    of_treatment[number].append((one.done.milestones, reference.milestones))
        point = cells[0].point
        return cls(condition_of({"case": point.case, **point.parameters}), cells, executor, pairs)

    def shortest(self) -> int:
        """Return the time in which every job completes 20 iterations in every run, ps.

        Raises ``_NoLengthError`` if a replicate has no result, a job ended, or one has fewer than 20 recorded times.
        """
        every = [run for replicates in self.pairs.values() for pairs in replicates for pair in pairs for run in pair]
        if not every or not all(pairs for replicates in self.pairs.values() for pairs in replicates):
            raise _NoLengthError(UNKNOWN)
        if any(run.ended is not None for run in every):
            raise _NoLengthError(ENDED)
        if any(len(run.times) < ENOUGH for run in every):
            raise _NoLengthError(FEW)
        return max(run.start + run.times[ceil(ENOUGH / run.stride) - 1] for run in every)

    def condition(self, duration: int) -> Condition:
        """Return its costs and effects. Raises ``_NoLengthError`` if no jobs of a replicate can be compared."""
        costs = [self._cost(cell, duration) for cell in self.cells]
        fixed, rate = (sum(parts) / len(parts) for parts in zip(*costs, strict=True))
        return Condition(fixed, rate, [self._effect(name, of, duration) for name, of in self.pairs.items()])

    def _effect(self, treatment: str, replicates: Sequence[Sequence[Pair]], duration: int) -> Effect:
        fewest = min(min(len(run.times) for run in pair) for pairs in replicates for pair in pairs)
        count = min(MOST_SEGMENTS, fewest // BATCH)
        parts = numpy.array([numpy.mean([segments(*pair, count) for pair in pairs], axis=0) for pairs in replicates])

        def values(length: int) -> Values:
            return numpy.array(
                [_mean([(run.cut(length), of.cut(length)) for run, of in pairs]) for pairs in replicates]
            )

        values(duration)  # raises if no jobs of a replicate can be compared
        return Effect(self.condition_name, treatment, Components.of(parts, duration / count), values)

    def _cost(self, cell: Cell, duration: int) -> tuple[float, float]:
        """Return the processor time of a replicate without simulated time, and for each ps of it, s."""
        fixed = moving = 0.0
        tasks = {run.task.digest: run for run in cell.runs}
        for run in tasks.values():
            answer = self.executor.answer(run.task) or {}
            hops = answer.get("packet_hops") or 0
            fixed += cell.set_up_of(run.task)
            moving += hops * cell.hop
            if run.treatment == ISOLATED and run.job in cell.calibrations and answer.get("jobs"):
                fixed += TASK_S + CALIBRATION * cell.hop * hops / max(1, answer["jobs"][0]["iterations"])
        return fixed, moving / duration


def _mean(pairs: Sequence[Pair]) -> float:
    """Return the mean over jobs of the change of throughput."""
    found = [common(*pair) for pair in pairs]
    changes = [of.estimate.value for of in found if of is not None and of.estimate is not None]
    if not changes:
        raise _NoLengthError(UNKNOWN)
    return float(numpy.mean(changes))
