"""What of Wilke and Kenny 2020 is run: the cells of experiments at a scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlane.reproduce.frames.paper import Done, Options
from fairlane.reproduce.frames.running import simulation
from fairlane.reproduce.frames.wilke2020.experiments import (
    EXPERIMENTS,
    FULL,
    QUICK,
    Cell,
    Scale,
    written,
)
from fairlane.reproduce.frames.wilke2020.measured import Measured, Outcome
from fairlane.tasks.task import Task

__all__ = ["Selection", "select", "task"]


@dataclass(frozen=True)
class Selection:
    """Experiments at a scale. Cells on fabrics that the scale leaves out are not run."""

    experiments: Sequence[str]
    scale: Scale

    @property
    def left_out(self) -> Mapping[str, str]:
        """How all of them differ from the paper's."""
        if self.scale == FULL:
            return {}
        scaled = f"{self.scale.hosts} hosts of {FULL.hosts}, shorter messages, fewer iterations"
        return dict.fromkeys(self.experiments, scaled)

    @property
    def tasks(self) -> Mapping[Cell, Task]:
        """The cells, each once: figures share them."""
        cells = dict.fromkeys(cell for name in self.experiments for cell in EXPERIMENTS[name].cells)
        return {cell: task(cell, self.scale) for cell in cells if cell.fabric in self.scale.fabrics}

    def measured(self, done: Mapping[Cell, Done]) -> Measured:
        """Puts together what came of the cells."""
        found = {cell: Outcome.of(one.answer) for cell, one in done.items() if one.answer is not None}
        return Measured(found, self.scale, self.experiments)


def task(cell: Cell, scale: Scale) -> Task:
    """What simulates a cell."""
    cost = cell.size * scale.iterations[cell.foreground]
    return simulation(
        "fairlane.reproduce.frames.wilke2020.simulate:simulate", written(cell, scale), str(cell), cost=cost
    )


def select(experiments: Sequence[str], options: Options) -> Selection:
    """Chooses the scale."""
    return Selection(experiments, QUICK if options.quick else FULL)
