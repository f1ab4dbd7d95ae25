"""What the cells of Wilke and Kenny 2020 measured: times of iterations, shares of ports' time, throughput."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.reproduce.frames.paper import Picture
from fairlane.reproduce.frames.wilke2020.experiments import EXPERIMENTS, FOREGROUND, PING_PONG_SIZES, Cell, Scale
from fairlane.results import derive
from fairlane.results.derive import JobLabel
from fairlane.results.iterations import distribution
from fairlane.units import SIZE

__all__ = ["Floats", "Measured", "Outcome", "interval"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What a cell measured."""

    iterations: pl.DataFrame
    """The foreground's iterations: rank, iteration, at_ps, seconds."""
    ports: pl.DataFrame
    """One row per port: the shares of time in which it was active and stalled."""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Outcome":
        """From a cell's answer."""
        marks = pl.DataFrame(answer["marks"]).with_columns(job=pl.lit(0))
        return cls(derive.iterations([JobLabel(FOREGROUND, FOREGROUND)], marks), pl.DataFrame(answer["ports"]))


class Measured:
    """The cells that were run, and what they measured."""

    def __init__(
        self, cells: Mapping[Cell, Outcome], scale: Scale, experiments: Sequence[str] = tuple(EXPERIMENTS)
    ) -> None:
        self.scale = scale
        """How large they were."""
        self._experiments = experiments
        self._cells = cells

    def has(self, *cells: Cell) -> bool:
        """Whether all of them are there."""
        return all(cell in self._cells for cell in cells)

    def missing(self, experiment: str) -> Sequence[str]:
        """The cells of an experiment that are not there."""
        return [str(cell) for cell in EXPERIMENTS[experiment].cells if not self.has(cell)]

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """A row for each cell: quantiles of its iteration times, s."""
        rows = [
            pl.DataFrame([asdict(cell)]).hstack(
                distribution(outcome.iterations.with_columns(name=pl.lit(str(cell)))).drop("name")
            )
            for cell, outcome in self._cells.items()
        ]
        return {"times": pl.concat(rows)} if rows else {}

    def draw(self, folder: Path) -> Sequence[Picture]:
        """A figure of each experiment of which there are cells."""
        from fairlane.reproduce.frames.wilke2020.figures import draw

        return [
            Picture(f"{name}.png", f"{experiment.figure}: {experiment.title}")
            for name, experiment in ((name, EXPERIMENTS[name]) for name in self._experiments)
            if draw(name, self, folder / f"{name}.png")
        ]

    def times(self, cell: Cell) -> Floats:
        """The known times of all iterations of all ranks, s."""
        found: Floats = self._cells[cell].iterations["time_s"].drop_nulls().to_numpy()
        return found

    def median(self, cell: Cell) -> float:
        """Their median, s."""
        return float(np.median(self.times(cell)))

    def tail(self, cell: Cell) -> float:
        """Their 99% quantile, s."""
        return float(np.quantile(self.times(cell), 0.99))

    def share(self, cell: Cell, column: str) -> Floats:
        """A share of time of every port."""
        found: Floats = self._cells[cell].ports[column].to_numpy()
        return found

    def throughput(self, cell: Cell) -> dict[int, Floats]:
        """Of ping-pong, for each size in bytes: bytes per second one way, of every iteration and pair."""
        sizes = [SIZE.parse(size) for size in PING_PONG_SIZES]
        table = self._cells[cell].iterations.drop_nulls("time_s")
        pairs = table.filter(table["rank"] < self.scale.ranks * cell.size // 2)
        times = self.scale.iterations["ping_pong"] // len(sizes)
        which = (pairs["iteration"].to_numpy().astype(int) - 1) // times
        rate = 2.0 / pairs["time_s"].to_numpy()
        return {size: size * rate[which == at] for at, size in enumerate(sizes)}


def interval(values: Floats) -> tuple[float, float]:
    """The 95% interval of the mean."""
    half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5
    return float(values.mean()) - half, float(values.mean()) + half
