"""What the cells of Patki et al. 2016 measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.reproduce.frames.paper import Picture
from fairlane.reproduce.frames.patki2016.experiments import (
    EXPERIMENTS,
    LABELS,
    Cell,
    Scale,
    cells_of,
    interference_of,
    share_of,
)

__all__ = ["Measured"]

ADAPTERS = {"both": {0, 1}, "0": {0}, "1": {1}}
"""Which ones a choice stands for."""
MS = 1e-9
"""Milliseconds in a picosecond."""


@dataclass(frozen=True)
class Measured:
    """The answers of the cells that were run."""

    cells: Mapping[Cell, Mapping[str, Any]]
    scale: Scale
    experiments: Sequence[str] = EXPERIMENTS

    def times(self, experiment: str, wanted: Callable[[Cell], bool]) -> dict[Cell, float]:
        """Run times of the cells of a figure that are wanted and there, ms."""
        there = [cell for cell in cells_of(experiment, self.scale) if cell in self.cells and wanted(cell)]
        return {cell: self.cells[cell]["run_time"] * MS for cell in there}

    def means(self, experiment: str, wanted: Callable[[Cell], bool]) -> dict[Cell, float]:
        """Run times by condition, the means over placements and seeds that differ in nothing else, ms; seed 0."""
        found: dict[Cell, list[float]] = {}
        for cell, time in self.times(experiment, wanted).items():
            found.setdefault(replace(cell, seed=0), []).append(time)
        return {cell: sum(times) / len(times) for cell, times in found.items()}

    def missing(self, experiment: str) -> Sequence[str]:
        """The applications of which a cell has no answer."""
        gone = [LABELS[cell.application] for cell in cells_of(experiment, self.scale) if cell not in self.cells]
        return [f"{name} in {experiment}" for name in dict.fromkeys(gone)]

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """A row for each run of each figure."""
        rows = [row for name in self.experiments for row in self._rows(name)]
        return {"runs": pl.DataFrame(rows, infer_schema_length=None)} if rows else {}

    def _rows(self, experiment: str) -> Iterator[dict[str, Any]]:
        """The columns of single runs, those that a model of run times learns from among them."""
        for cell, time in self.times(experiment, lambda _: True).items():
            answer, there = self.cells[cell], cell.beside is not None
            other = self.cells.get(interference_of(cell), {}) if there else {}
            own, others = ADAPTERS[cell.rails], ADAPTERS[cell.neighbour]
            yield {
                "experiment": experiment,
                "case": "catalyst",
                "application": cell.application,
                "rails": cell.rails,
                "interference_rails": cell.neighbour if there else None,
                "service_level": cell.level,
                "interference_level": cell.beside,
                "co_scheduled": f"level {cell.beside} on {cell.neighbour}" if there else None,
                "link_share": None if cell.beside is None else share_of(cell.level, cell.beside),
                "adapters": len(own) / 2,
                "adapters_shared": len(own & others) / len(own) if there else 0.0,
                "interference_utilisation": other.get("mean_switch_utilisation", 0.0),
                "cap_w": cell.cap,
                "placement": cell.placement,
                "seed": cell.seed,
                "run_time_ms": time,
                "computing_ms": answer["computing"] * MS,
                "network_ms": answer["network"] * MS,
                "late_partner_ms": answer["late_partner"] * MS,
                "waits_for_interference_ms": answer["others"] * MS / self.scale.ranks,
                "self_queueing_ms": answer["own"] * MS / self.scale.ranks,
                "messages": answer["messages"],
                "kilobytes": answer["bytes"] * 1e-3,
                "collective_share": answer["collective_share"],
                "host_utilisation": answer["host_utilisation"],
                "switch_utilisation": answer["switch_utilisation"],
                "energy_j": answer["energy_j"],
                "interference_iterations": answer["interference_iterations"],
            }

    def draw(self, folder: Path) -> Sequence[Picture]:
        """Run times by condition, figure by figure."""
        from fairlane.reproduce.frames.patki2016.figures import draw_power, draw_rails

        drawn = {"rails": draw_rails, "power": draw_power}
        return [
            found
            for name in self.experiments
            if name in drawn and (found := drawn[name](self, folder / f"{name}.png")) is not None
        ]
