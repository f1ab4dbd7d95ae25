"""What a study takes before it is run: its points, runs and simulations, processor time, memory, and equal points."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fairlane.scenario.estimate import START, bytes_text, seconds_text
from fairlane.study.measured import MeasuredPlan
from fairlane.study.plan import ComparedPlan, Plan
from fairlane.tasks.task import Task
from fairlane.wording import listed, plural


@dataclass(frozen=True)
class Cost:
    """What there is to compute. Calibrations, by which compute times are found, count as simulations."""

    points: int
    runs: int
    simulations: int
    """Runs that differ: the others have the answer of one of them."""
    calibrations: int
    seconds: float | None
    """Estimated processor time of all simulations, s; None of a study that measures with a function of its own."""
    memory: float | None
    """Estimated memory of the largest simulation, bytes; None likewise."""
    identical: Sequence[Sequence[int]] = field(default_factory=tuple)
    """Groups of points whose runs are all the same."""
    labels: Sequence[str] = ()
    """What each point is."""

    def lines(self) -> Iterator[str]:
        """As text."""
        shared = self.runs - self.simulations
        same = f" ({plural(shared, 'run')} the same as another)" if shared else ""
        before = f", after {plural(self.calibrations, 'calibration')} of compute times" if self.calibrations else ""
        counts = ((self.points, "point"), (self.runs, "run"), (self.simulations, "simulation"))
        yield f"{', '.join(plural(count, name) for count, name in counts)}{same}{before}"
        if self.seconds is None or self.memory is None:
            yield "time and memory: not known, its function decides what is simulated"
        else:
            yield f"about {seconds_text(self.seconds)} on one core, {bytes_text(self.memory)} of memory a worker"
        for group in self.identical:
            names = listed([f"{number} ({self.labels[number]})" for number in group], 2)
            yield f"note: points {names} are the same simulation, and count once in a condition"


def cost_of(planned: Plan) -> Cost:
    """What a plan takes whose calibrations are not done yet."""
    if isinstance(planned, MeasuredPlan):
        return _measured(planned)
    assert isinstance(planned, ComparedPlan), "there are two kinds"
    tasks, by_point, calibrations = dict[str, float](), list[tuple[str, ...]](), dict[str, float]()
    runs = 0
    for cell in planned.cells:
        cell.decide([None] * len(cell.jobs), planned.study.treatments)
        by_point.append(tuple(run.task.digest for run in cell.runs))
        runs += len(cell.runs)
        tasks.update((run.task.digest, cell.seconds_of(run.task)) for run in cell.runs)
        calibrations.update((task.digest, cell.seconds_of(task)) for task in cell.calibrations if task)
    labels = [str(cell.point) for cell in planned.cells]
    seconds = START + sum(tasks.values()) + sum(calibrations.values())
    identical = _identical(by_point)
    return Cost(len(labels), runs, len(tasks), len(calibrations), seconds, planned.memory, identical, labels)


def _measured(planned: MeasuredPlan) -> Cost:
    tasks: dict[str, tuple[Task, float | None]] = {run.task.digest: (run.task, run.seconds) for run in planned.runs}
    times = [seconds for _, seconds in tasks.values()]
    known = [seconds for seconds in times if seconds is not None]
    whole = len(known) == len(times)
    count = len(planned.runs)
    identical = _identical([(run.worked_out,) for run in planned.runs])
    labels = [str(run.point) for run in planned.runs]
    seconds, memory = (START + sum(known), planned.memory) if whole else (None, None)
    return Cost(count, count, len(tasks), 0, seconds, memory, identical, labels)


def _identical(points: Sequence[tuple[str, ...]]) -> Sequence[Sequence[int]]:
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, runs in enumerate(points):
        groups.setdefault(runs, []).append(number)
    return [group for group in groups.values() if len(group) > 1]
