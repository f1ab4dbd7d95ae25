"""What of Smith et al. 2018 is run: the runs of a scale, and those of them that are traced."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlane.reproduce.frames.paper import Done, Options
from fairlane.reproduce.frames.running import simulation
from fairlane.reproduce.frames.smith2018.experiments import (
    CABLINGS,
    FULL,
    QUICK,
    Cell,
    Scale,
    cabled,
    cells_of,
    traced,
    written,
)
from fairlane.reproduce.frames.smith2018.measured import Measured
from fairlane.tasks.task import Task

__all__ = ["Selection", "select", "task"]

_CELLS = {"runs": cells_of, "traces": traced}
_HERE = "fairlane.reproduce.frames.smith2018"


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
        cells = [cell for name in self.experiments for cell in _CELLS[name](self.scale)]
        return {cell: task(cell, self.scale) for cell in cells}

    def measured(self, done: Mapping[Cell, Done]) -> Measured:
        """Puts together what came of the runs."""
        answers = {cell: one.answer for cell, one in done.items() if one.answer is not None}
        runs = {cell: answer for cell, answer in answers.items() if not cell.traced}
        traces = {cell.run: answer for cell, answer in answers.items() if cell.traced}
        return Measured(runs, self.scale, traces)


def task(cell: Cell, scale: Scale) -> Task:
    """What simulates a run."""
    scenario = written(cell, scale)
    if cell.traced:
        arguments = {"warmup": scale.warmup, "every": scale.every}
        return simulation(f"{_HERE}.trace:trace", scenario, str(cell), cost=3.0, arguments=arguments)
    return simulation(f"{_HERE}.simulate:simulate", scenario, str(cell), cost=1.0)


def select(experiments: Sequence[str], options: Options) -> Selection:
    """Chooses the scale."""
    return Selection(experiments, cabled(QUICK if options.quick else FULL, options.cabling or next(iter(CABLINGS))))
