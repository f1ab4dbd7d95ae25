"""What of Yang et al. 2016 is run: the cells of experiments with the traces that are there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.reproduce.frames.paper import Done, Options
from fairlane.reproduce.frames.running import simulation
from fairlane.reproduce.frames.yang2016.experiments import (
    APPLICATIONS,
    EXPERIMENTS,
    FULL,
    QUICK,
    SCHEDULES,
    Cell,
    Scale,
    measured_job,
    problem_with,
    written,
)
from fairlane.reproduce.frames.yang2016.measured import Measured
from fairlane.reproduce.frames.yang2016.schedules import Schedules, problem_with_log
from fairlane.tasks.task import Computable, Task

__all__ = ["Selection", "select", "task"]


@dataclass(frozen=True)
class Selection:
    """Experiments at a scale. What needs a trace or log that is not there is not run."""

    experiments: Sequence[str]
    scale: Scale

    @property
    def left_out(self) -> Mapping[str, str]:
        """How they differ from the paper's."""
        problems = [problem_with(application, self.scale) for application in APPLICATIONS]
        words = [self.scale.words, *problems]
        found = {name: "; ".join(it for it in words if it) for name in self.experiments if name in EXPERIMENTS}
        if SCHEDULES in self.experiments:
            found[SCHEDULES] = problem_with_log(self.scale.log) or self.scale.log_words
        return {name: it for name, it in found.items() if it}

    @property
    def tasks(self) -> Mapping[Any, Computable]:
        """The cells, each once: figures share them."""
        found: dict[Any, Computable] = {}
        there = {application for application in APPLICATIONS if problem_with(application, self.scale) is None}
        for experiment in (EXPERIMENTS[name] for name in self.experiments if name in EXPERIMENTS):
            for cell in experiment.all_cells(self.scale):
                if there >= ({cell.application} if cell.beside == "nobody" else set(APPLICATIONS)):
                    found[cell] = task(cell, self.scale)
        if SCHEDULES in self.experiments and problem_with_log(self.scale.log) is None:
            found[SCHEDULES] = Schedules(self.scale.log, self.scale.moments)
        return found

    def measured(self, done: Mapping[Any, Done]) -> Measured:
        """Puts together what came of the cells."""
        answers = {key: one.answer for key, one in done.items() if one.answer is not None}
        return Measured(answers, self.scale, self.experiments, answers.pop(SCHEDULES, None))


def task(cell: Cell, scale: Scale) -> Task:
    """What simulates a cell."""
    cost = (4.0 if cell.beside == "busy" else 1.0) * (3.0 if cell.application == "amg" else 1.0)
    function = "fairlane.reproduce.frames.yang2016.simulate:simulate"
    return simulation(function, written(cell, scale), str(cell), cost=cost, arguments={"job": measured_job(cell)})


def select(experiments: Sequence[str], options: Options) -> Selection:
    """Chooses the scale."""
    return Selection(experiments, QUICK if options.quick else FULL)
