"""What the cells of Yang et al. 2016 measured: the data transfer times of ranks.

The data transfer time of a rank is the time that it is blocked in MPI while the network, or the protocol, is at work:
its time in MPI without what it waits for partners that have not made their call yet.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.reproduce.paper import Picture
from fairlane.reproduce.yang2016.experiments import (
    APPLICATIONS,
    EXPERIMENTS,
    LABELS,
    SCHEDULES,
    Cell,
    Experiment,
    Scale,
    problem_with,
)

__all__ = ["Floats", "Measured"]

Floats = npt.NDArray[np.float64]
MS = 1e-9
"""Milliseconds in a picosecond."""


@dataclass(frozen=True)
class Measured:
    """The answers of the cells that were run."""

    cells: Mapping[Cell, Mapping[str, Any]]
    scale: Scale
    experiments: Sequence[str] = tuple(EXPERIMENTS)
    schedules: Mapping[str, Mapping[str, float]] | None = None
    """For each allocator ``slowdown`` and ``utilisation``: what became of a stream of jobs."""

    def times(self, experiment: str, application: str, box: str) -> Floats | None:
        """The data transfer times of all ranks of a box, ms; None if a cell of it is not there."""
        cells = EXPERIMENTS[experiment].cells(application, box, self.scale)
        if any(cell not in self.cells for cell in cells):
            return None
        return np.concatenate([np.asarray(self.cells[cell]["network"], np.float64) for cell in cells]) * MS

    def medians(self, experiment: str, application: str) -> dict[str, float] | None:
        """Their median by box, ms; None if something is not there."""
        found = {box: self.times(experiment, application, box) for box in EXPERIMENTS[experiment].boxes}
        return (
            {box: float(np.median(times)) for box, times in found.items() if times is not None}
            if all(times is not None for times in found.values())
            else None
        )

    def missing(self, experiment: str) -> Sequence[str]:
        """The applications that were not run, or not with all cells."""
        if experiment == SCHEDULES:
            return [] if self.schedules else ["the comparison of allocators"]
        return list(self._missing(experiment))

    def _missing(self, experiment: str) -> Iterator[str]:
        for application in APPLICATIONS:
            if self.medians(experiment, application) is None:
                yield problem_with(application, self.scale) or LABELS[application]

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """A row for each box of each figure."""
        rows = [
            row
            for name in self.experiments
            if name in EXPERIMENTS
            for application in APPLICATIONS
            for row in self._rows(EXPERIMENTS[name], application)
        ]
        return {"times": pl.DataFrame(rows)} if rows else {}

    def _rows(self, experiment: Experiment, application: str) -> Iterator[dict[str, Any]]:
        for box in experiment.boxes:
            times = self.times(experiment.name, application, box)
            if times is None:
                continue
            cells = [self.cells[cell] for cell in experiment.cells(application, box, self.scale)]
            quantiles = {"least": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "q99": 0.99, "greatest": 1.0}
            yield {
                "experiment": experiment.name,
                "application": application,
                "box": box.replace("\n", " "),
                **{f"{name}_ms": float(np.quantile(times, at)) for name, at in quantiles.items()},
                "late_partner_median_ms": float(np.median([time for one in cells for time in one["late_partner"]]))
                * MS,
                "end_ms": float(np.mean([one["end"] for one in cells])) * MS,
                "links_per_byte": float(np.mean([one["links_per_byte"] for one in cells])),
                "busiest_link_active": float(np.mean([one["busiest_share"] for one in cells])),
            }

    def draw(self, folder: Path) -> Sequence[Picture]:
        """Communication patterns, and box plots of each experiment of which there are cells."""
        from fairlane.reproduce.yang2016.figures import draw, draw_patterns

        figures = [EXPERIMENTS[name] for name in self.experiments if name in EXPERIMENTS]
        grey = {experiment.grey for experiment in figures}
        found = draw_patterns(folder)
        for experiment in (one for one in figures if one.name not in grey):
            if draw(experiment, self, folder / f"{experiment.name}.png"):
                title = f"{experiment.figure}: {experiment.title}"
                found.append(Picture(f"{experiment.name}.png", title))
        return found
