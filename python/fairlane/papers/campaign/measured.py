"""Tables of measured cells and of where their jobs ran.

A row of ``measured.csv`` is a cell in one run: statistics over its iterations of the time of the slowest rank, in
seconds. ``placements.csv`` has the nodes of a run's jobs in the order of ranks.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.core.errors import Problem, ScenarioError, writing
from fairlane.inputs.files import replacing
from fairlane.papers.campaign.cells import Cell

MEASURED, PLACEMENTS = "measured.csv", "placements.csv"
"""The files of the tables."""
VICTIM, AGGRESSOR = "victim", "aggressor"
"""The jobs of a placement."""
_TEXT = ("system", "victim", "aggressor", "run", "job", "node")
_WHOLE = ("nodes", "msg_bytes", "n")
_COLUMNS = {
    MEASURED: [
        *("system", "nodes", "victim", "aggressor", "burst_s", "pause_s", "msg_bytes"),
        *("n", "median_s", "mean_s", "p99_s", "run"),
    ],
    PLACEMENTS: ["run", "nodes", "job", "node"],
}

Times = npt.NDArray[np.float64]
"""The time of each iteration, s."""


@dataclass(frozen=True)
class Run:
    """Cells that were measured on the same nodes, one after the other."""

    system: str
    name: str
    nodes: int
    folder: Path
    cells: Sequence[tuple[Cell, Times]]
    placement: Sequence[tuple[str, str]] = ()
    """Job and node of each rank."""
    left_out: Sequence[str] = ()
    """Cells that were not measured, or not completely, with reasons."""


@dataclass(frozen=True)
class Measured:
    """The measured cells of a folder of results."""

    measured: pl.DataFrame
    placements: pl.DataFrame
    left_out: Sequence[str]

    def save(self, folder: Path) -> list[Path]:
        """Writes both tables, or none of them; raises ``ScenarioError`` if the folder has one."""
        paths = [folder / MEASURED, folder / PLACEMENTS]
        if existing := [path for path in paths if path.exists()]:
            raise ScenarioError(Problem("--out", f"has {existing[0].name} already; choose another", str(folder)))
        with writing(folder), ExitStack() as stack:
            folder.mkdir(parents=True, exist_ok=True)
            scratches = [stack.enter_context(replacing(path)) for path in paths]
            for table, scratch in zip((self.measured, self.placements), scratches, strict=True):
                table.write_csv(scratch)
        return paths


def tables(folder: Path, runs: Sequence[Run]) -> Measured:
    """The tables of runs; raises ``ScenarioError`` if nothing is measured, or a run is there twice."""
    left_out = [reason for run in runs for reason in run.left_out]
    if not any(run.cells for run in runs):
        raise ScenarioError(
            [Problem.of_file(folder, "no cell is measured"), *(Problem("", reason_of) for reason_of in left_out)]
        )
    first: dict[tuple[str, str], Path] = {}
    for run in runs:
        before = first.setdefault((run.system, run.name), run.folder)
        if before != run.folder:
            raise ScenarioError(Problem.of_file(run.folder, f"is the run {run.name}, as {before} is; remove one"))
    rows = [row for run in runs for row in _rows(run)]
    nodes = [(run.name, run.nodes, job, node) for run in runs if run.cells for job, node in run.placement]
    return Measured(
        _frame(rows, MEASURED),
        _frame(nodes, PLACEMENTS),
        left_out,
    )


def _frame(rows: Sequence[tuple[object, ...]], file: str) -> pl.DataFrame:
    types = {
        name: pl.String if name in _TEXT else pl.Int64 if name in _WHOLE else pl.Float64 for name in _COLUMNS[file]
    }
    return pl.DataFrame(rows, schema=types, orient="row")


def _rows(run: Run) -> Iterator[tuple[object, ...]]:
    for cell, times in run.cells:
        statistics = (np.median(times), np.mean(times), np.quantile(times, 0.99, method="higher"))
        figures = (len(times), *(float(f"{value:.9g}") for value in statistics))
        keys = (run.system, cell.nodes, cell.victim, cell.aggressor, cell.burst_s, cell.pause_s, cell.msg_bytes)
        yield (*keys, *figures, run.name)
