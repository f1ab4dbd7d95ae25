"""What of Smith et al. 2018 is run: the runs of a scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlane.reproduce.paper import Done, Options
from fairlane.reproduce.running import simulation
from fairlane.reproduce.smith2018.experiments import FULL, QUICK, Cell, Scale, cells_of, written
from fairlane.reproduce.smith2018.measured import Measured
from fairlane.study.task import Task

__all__ = ["Selection", "select", "task"]


@dataclass(frozen=True)
class Selection:
    """The runs at a scale."""

    experiments: Sequence[str]
    scale: Scale

    @property
    def left_out(self) -> Mapping[str, str]:
        """How they differ from the paper's."""
        return dict.fromkeys(self.experiments, self.scale.words)

    @property
    def tasks(self) -> Mapping[Cell, Task]:
        """The runs."""
        return {cell: task(cell, self.scale) for cell in cells_of(self.scale)}

    def measured(self, done: Mapping[Cell, Done]) -> Measured:
        """Puts together what came of the runs."""
        answers = {cell: one.answer for cell, one in done.items() if one.answer is not None}
        return Measured(answers, self.scale)


def task(cell: Cell, scale: Scale) -> Task:
    """What simulates a run."""
    return simulation("fairlane.reproduce.smith2018.simulate:simulate", written(cell, scale), str(cell), cost=1.0)


def select(experiments: Sequence[str], options: Options) -> Selection:
    """Chooses the scale."""
    return Selection(experiments, QUICK if options.quick else FULL)
