"""What of Patki et al. 2016 is run: the cells of experiments at a scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlane.reproduce.frames.paper import Done, Options
from fairlane.reproduce.frames.patki2016.experiments import (
    FULL,
    INTERFERENCE,
    QUICK,
    Cell,
    Scale,
    cells_of,
    interference_of,
    written,
)
from fairlane.reproduce.frames.patki2016.measured import Measured
from fairlane.reproduce.frames.running import simulation
from fairlane.tasks.task import Task

__all__ = ["Selection", "select", "task"]


@dataclass(frozen=True)
class Selection:
    """Experiments at a scale."""

    experiments: Sequence[str]
    scale: Scale

    @property
    def left_out(self) -> Mapping[str, str]:
        """How they differ from the paper's."""
        words = "; ".join(filter(None, (self.scale.words, self.scale.length)))
        return dict.fromkeys(self.experiments, words)

    @property
    def tasks(self) -> Mapping[Cell, Task]:
        """The cells, each once: figures share some."""
        cells = dict.fromkeys(cell for name in self.experiments for cell in cells_of(name, self.scale))
        others = dict.fromkeys(interference_of(cell) for cell in cells if cell.beside is not None)
        return {cell: task(cell, self.scale) for cell in [*cells, *others]}

    def measured(self, done: Mapping[Cell, Done]) -> Measured:
        """Puts together what came of the cells."""
        answers = {cell: one.answer for cell, one in done.items() if one.answer is not None}
        return Measured(answers, self.scale, self.experiments)


def task(cell: Cell, scale: Scale) -> Task:
    """What simulates a cell."""
    cost = 1.0 if cell.beside is None else 4.0 if cell.level else 2.0
    name = "interference" if cell.application == INTERFERENCE else "simulate"
    function = f"fairlane.reproduce.frames.patki2016.simulate:{name}"
    return simulation(
        f"fairlane.reproduce.frames.patki2016.simulate:{function}", written(cell, scale), str(cell), cost=cost
    )


def select(experiments: Sequence[str], options: Options) -> Selection:
    """Chooses the scale."""
    return Selection(experiments, QUICK if options.quick else FULL)
