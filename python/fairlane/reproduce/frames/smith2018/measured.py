"""What the runs of Smith et al. 2018 measured, as tables: one row for each run, one for each timestep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.reproduce.frames.paper import Picture
from fairlane.reproduce.frames.smith2018.dataset import keep
from fairlane.reproduce.frames.smith2018.experiments import Cell, Scale, cells_of, computes_more
from fairlane.reproduce.frames.smith2018.figures import draw_all
from fairlane.reproduce.frames.smith2018.prediction import Prediction
from fairlane.runner.counters import FEATURES

__all__ = ["Measured"]


@dataclass(frozen=True)
class Measured:
    """The answers of the runs that are there."""

    cells: Mapping[Cell, Mapping[str, Any]]
    scale: Scale
    traces: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """By run, what was recorded of its ``fastest`` and its ``slowest`` timestep (see ``trace``)."""

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
        wanted, there = (self.scale.traces, self.traces) if experiment == "traces" else (self.scale.runs, self.cells)
        gone = wanted - len(there)
        return [f"{gone} of {wanted} {experiment}"] if gone else []

    @cached_property
    def prediction(self) -> Prediction:
        """How well counters tell the time of a timestep of a run that was not seen; those to warm up do not count."""
        return Prediction.of(self.timesteps(), self.scale.iterations)

    def table_one(self, judged_by: str) -> pl.DataFrame:
        """Table I over all traced runs, of their slowest timesteps: by neighbours, delayed pairs and the longest delay.

        ``judged_by`` is ``inference`` or ``truth``.
        """
        parts = [pl.DataFrame(trace["slowest"][judged_by]) for trace in self.traces.values()]
        order = {name: number for number, name in enumerate(dict.fromkeys(pl.concat(parts)["neighbour"]))}
        return (
            pl.concat(parts)
            .group_by("neighbour", "delay")
            .agg(pl.col("pairs", "delayed_pairs").sum(), pl.col("greatest_ps").max())
            .with_columns(greatest_ms=pl.col("greatest_ps") * 1e-9)
            .sort(pl.col("neighbour").replace_strict(order, return_dtype=pl.UInt8), "delay")
            .select("neighbour", "pairs", "delay", "delayed_pairs", "greatest_ms")
        )

    def confusion(self) -> pl.DataFrame:
        """How often the two-sided inference is right, over the slowest timesteps of all traced runs."""
        parts = [pl.DataFrame(trace["slowest"]["confusion"]) for trace in self.traces.values()]
        keys = ["inferred", "truth", "right"]
        return pl.concat(parts).group_by(keys, maintain_order=True).agg(pl.col("count", "time_ps").sum())

    def points(self) -> pl.DataFrame:
        """Fig. 8, of the slowest timesteps of all traced runs: a row for each pair whose switches share a link."""
        parts = [pl.DataFrame(trace["slowest"]["points"]) for trace in self.traces.values()]
        return pl.concat([part for part in parts if part.height] or [pl.DataFrame()])

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The paper's tables; timesteps are in the data set."""
        found = {"runs": self.runs()} if self.cells else {}
        if self.traces:
            found |= {f"table-1-{one}": self.table_one(one) for one in ("inference", "truth")}
            found["inference"] = self.confusion()
        if not self.missing("runs"):
            found |= {"table-2": self.prediction.parts.table, "table-3": self.prediction.local.table}
        return found

    def keep(self, folder: Path) -> None:
        """Stores the data set with its data sheet."""
        if self.cells:
            keep(self.timesteps(), self.timesteps(all_switches=True), self.runs(), self.scale, folder)

    def cell(self, run: int) -> Cell:
        """The cell of a run, to simulate it again."""
        return next(cell for cell in cells_of(self.scale) if cell.run == run)

    def draw(self, folder: Path) -> Sequence[Picture]:
        """Draws what there are data for."""
        return draw_all(self, folder)
