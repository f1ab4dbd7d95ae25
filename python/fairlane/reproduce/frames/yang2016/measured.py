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

from fairlane.reproduce.frames.paper import Picture
from fairlane.reproduce.frames.yang2016.experiments import (
    APPLICATIONS,
    EXPERIMENTS,
    LABELS,
    SCHEDULES,
    Cell,
    Experiment,
    Scale,
    problem_with,
)
from fairlane.reproduce.frames.yang2016.schedules import problem_with_log, schedules_table

__all__ = ["Floats", "Measured"]

Floats = npt.NDArray[np.float64]
MS = 1e-9
"""Milliseconds in a picosecond."""
QUANTILES = {"least": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "q99": 0.99, "greatest": 1.0}
MEANS = ("end", "links_per_byte", "busiest_share")
"""What the table has of a box as a mean over its cells."""


@dataclass(frozen=True)
class Measured:
    """The answers of the cells that were run."""

    cells: Mapping[Cell, Mapping[str, Any]]
    scale: Scale
    experiments: Sequence[str] = tuple(EXPERIMENTS)
    schedules: Mapping[str, Mapping[str, Any]] | None = None
    """What became of the job log under each allocator: the answer of ``Schedules``."""

    def times(self, experiment: str, application: str, box: str) -> Floats | None:
        """The data transfer times of all ranks of a box, ms; None if a cell of it is not there."""
        cells = EXPERIMENTS[experiment].cells(application, box, self.scale)
        if any(cell not in self.cells for cell in cells):
            return None
        return np.concatenate([np.asarray(self.cells[cell]["network"], np.float64) for cell in cells]) * MS

    def medians(self, experiment: str, application: str) -> dict[str, float] | None:
        """Their median by box, ms; None if something is not there."""
        boxes = EXPERIMENTS[experiment].boxes
        found = {box: times for box in boxes if (times := self.times(experiment, application, box)) is not None}
        return {box: float(np.median(times)) for box, times in found.items()} if len(found) == len(boxes) else None

    def missing(self, experiment: str) -> Sequence[str]:
        """The applications that were not run, or not with all cells."""
        if experiment == SCHEDULES:
            return [] if self.schedules else [problem_with_log(self.scale.log) or "the comparison of allocators"]
        return list(self._missing(experiment))

    def _missing(self, experiment: str) -> Iterator[str]:
        for application in APPLICATIONS:
            if self.medians(experiment, application) is None:
                alone = all(cell.beside == "nobody" for cell in EXPERIMENTS[experiment].boxes.values())
                words = LABELS[application] if alone else f"{LABELS[application]} with the others"
                yield problem_with(application, self.scale) or words

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """A row for each box of each figure, and one for each allocator."""
        rows = [
            row
            for name in self.experiments
            if name in EXPERIMENTS
            for application in APPLICATIONS
            for row in self._rows(EXPERIMENTS[name], application)
        ]
        times = {"times": pl.DataFrame(rows)} if rows else {}
        return {**times, "schedules": schedules_table(self.schedules)} if self.schedules else times

    def _rows(self, experiment: Experiment, application: str) -> Iterator[dict[str, Any]]:
        for box in experiment.boxes:
            times = self.times(experiment.name, application, box)
            if times is None:
                continue
            cells = [self.cells[cell] for cell in experiment.cells(application, box, self.scale)]
            waits = [time for one in cells for time in one["late_partner"]]
            mean = {key: float(np.mean([one[key] for one in cells])) for key in MEANS}
            yield {
                "experiment": experiment.name,
                "application": application,
                "box": box.replace("\n", " "),
                **{f"{name}_ms": float(np.quantile(times, at)) for name, at in QUANTILES.items()},
                "late_partner_median_ms": float(np.median(waits)) * MS,
                "end_ms": mean["end"] * MS,
                "links_per_byte": mean["links_per_byte"],
                "busiest_link_active": mean["busiest_share"],
            }

    def draw(self, folder: Path) -> Sequence[Picture]:
        """Communication patterns, and box plots of each experiment of which there are cells; the allocators."""
        from fairlane.reproduce.frames.yang2016.figures import draw, draw_patterns, draw_schedules

        figures = [EXPERIMENTS[name] for name in self.experiments if name in EXPERIMENTS]
        grey = {experiment.grey for experiment in figures}
        found = draw_patterns(folder)
        for experiment in (one for one in figures if one.name not in grey):
            if draw(experiment, self, folder / f"{experiment.name}.png"):
                title = f"{experiment.figure}: {experiment.title}"
                found.append(Picture(f"{experiment.name}.png", title))
        if self.schedules:
            draw_schedules(self.schedules, self.scale.log_words, folder / f"{SCHEDULES}.png")
            found.append(Picture(f"{SCHEDULES}.png", "Section V: allocators on a job log"))
        return found
