"""What of Wilke and Kenny 2020 is run: the cells of experiments at a scale."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairlane.reproduce.paper import Done, Options
from fairlane.reproduce.running import simulation
from fairlane.reproduce.wilke2020.experiments import (
    EXPERIMENTS,
    FULL,
    MOST_LANES,
    QUICK,
    Cell,
    Scale,
    lanes_of,
    written,
)
from fairlane.reproduce.wilke2020.measured import Measured, Outcome
from fairlane.study.task import Task

__all__ = ["Selection", "select", "task"]


@dataclass(frozen=True)
class Selection:
    """Experiments at a scale. Cells on fabrics that the scale leaves out are not run."""

    experiments: Sequence[str]
    scale: Scale

    @property
    def left_out(self) -> Mapping[str, str]:
        """How all of them differ from the paper's."""
        scaled = (
            []
            if self.scale == FULL
            else [f"{self.scale.hosts} hosts of {FULL.hosts}, shorter messages, fewer iterations"]
        )
        words = {name: [*scaled, *self._refused(name)] for name in self.experiments}
        return {name: "; ".join(found) for name, found in words.items() if found}

    def _refused(self, experiment: str) -> Iterator[str]:
        lanes = max(lanes_of(cell, self.scale) for cell in EXPERIMENTS[experiment].cells)
        if lanes > MOST_LANES:
            yield f"no Isolate on Dragonfly-PAR, which takes {lanes} lanes of the {MOST_LANES} of a simulated switch"

    @property
    def tasks(self) -> Mapping[Cell, Task]:
        """The cells, each once: figures share them."""
        cells = dict.fromkeys(cell for name in self.experiments for cell in EXPERIMENTS[name].cells)
        there = [cell for cell in cells if cell.fabric in self.scale.fabrics]
        return {cell: task(cell, self.scale) for cell in there if lanes_of(cell, self.scale) <= MOST_LANES}

    def measured(self, done: Mapping[Cell, Done]) -> Measured:
        """Puts together what came of the cells."""
        found = {cell: Outcome.of(one.answer) for cell, one in done.items() if one.answer is not None}
        return Measured(found, self.scale, self.experiments)


def task(cell: Cell, scale: Scale) -> Task:
    """What simulates a cell."""
    cost = cell.size * scale.iterations[cell.foreground]
    return simulation("fairlane.reproduce.wilke2020.simulate:simulate", written(cell, scale), str(cell), cost=cost)


def select(experiments: Sequence[str], options: Options) -> Selection:
    """Chooses the scale."""
    return Selection(experiments, QUICK if options.quick else FULL)
