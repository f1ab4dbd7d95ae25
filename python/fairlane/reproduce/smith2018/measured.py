"""What the runs of Smith et al. 2018 measured, as tables: one row for each run, one for each timestep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.reproduce.paper import Picture
from fairlane.reproduce.smith2018.dataset import keep
from fairlane.reproduce.smith2018.experiments import Cell, Scale, cells_of, computes_more
from fairlane.runner.counters import FEATURES

__all__ = ["Measured"]


@dataclass(frozen=True)
class Measured:
    """The answers of the runs that are there."""

    cells: Mapping[Cell, Mapping[str, Any]]
    scale: Scale

    def timesteps(self, *, all_switches: bool = False) -> pl.DataFrame:
        """A row for each timestep of each run: ``run``, ``timestep``, ``warmup``, ``extra``, ``seconds``, counters.

        Timesteps count from 1, those to warm up first; ``extra`` are those that compute more. Counters are those of
        the job's own switches, or of all.
        """
        parts = []
        for cell, answer in self.cells.items():
            table = pl.DataFrame(answer["all" if all_switches else "own"])
            timestep = pl.col("iteration").cast(pl.UInt32).alias("timestep")
            run = pl.lit(cell.run, pl.UInt32).alias("run")
            warmup = (pl.col("iteration") <= self.scale.warmup).alias("warmup")
            extra = pl.Series("extra", [computes_more(at, self.scale) for at in answer["own"]["iteration"]])
            parts.append(table.select(run, timestep, warmup, extra, "seconds", *FEATURES))
        return pl.concat(parts) if parts else pl.DataFrame()

    def runs(self) -> pl.DataFrame:
        """A row for each run: its time without what warms up, where it was, and what its ranks spent their time on.

        ``fastest_timestep_s`` and ``slowest_timestep_s`` are of timesteps that compute alike. ``compute_min_s`` and
        ``compute_max_s`` are those of its ranks over the whole run; ``wait_share`` and ``allreduce_share`` are shares
        of all ranks' time in MPI.
        """
        return pl.DataFrame([self._run(cell, answer) for cell, answer in self.cells.items()])

    def _run(self, cell: Cell, answer: Mapping[str, Any]) -> dict[str, Any]:
        own = answer["own"]
        regular = own["seconds"][self.scale.warmup :]
        alike = [
            time
            for at, time in zip(own["iteration"], own["seconds"], strict=True)
            if at > self.scale.warmup and not computes_more(at, self.scale)
        ]
        compute, mpi = answer["compute_s"], answer["mpi_s"]
        return {
            "run": cell.run,
            "seconds": sum(regular),
            "fastest_timestep_s": min(alike),
            "slowest_timestep_s": max(alike),
            "groups": answer["groups"],
            "compute_min_s": min(compute),
            "compute_mean_s": sum(compute) / len(compute),
            "compute_max_s": max(compute),
            "mpi_min_s": min(mpi),
            "mpi_mean_s": sum(mpi) / len(mpi),
            "mpi_max_s": max(mpi),
            "wait_share": answer["calls"].get("wait", 0.0),
            "allreduce_share": answer["calls"].get("allreduce", 0.0),
            "jobs": answer["jobs"],
            "hosts_filled": answer["hosts_filled"],
            "digest": answer["digest"],
        }

    def missing(self, experiment: str) -> Sequence[str]:
        """How many runs are not there."""
        gone = self.scale.runs - len(self.cells)
        return [f"{gone} of {self.scale.runs} {experiment}"] if gone else []

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The runs; timesteps are in the data set."""
        return {"runs": self.runs()} if self.cells else {}

    def keep(self, folder: Path) -> None:
        """Stores the data set with its data sheet."""
        if self.cells:
            keep(self.timesteps(), self.timesteps(all_switches=True), self.runs(), self.scale, folder)

    def cell(self, run: int) -> Cell:
        """The cell of a run, to simulate it again."""
        return next(cell for cell in cells_of(self.scale) if cell.run == run)

    def draw(self, folder: Path) -> Sequence[Picture]:
        """No figures yet."""
        del folder
        return []
