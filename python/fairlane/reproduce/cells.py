"""Cells: an experiment with one placement and one treatment. Each is computed by itself, stored at once, kept for ever.

``run_cells`` is the only place that knows of processes and of files.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.controller import control, make
from fairlane.controller.loop import Outcome, Phases
from fairlane.reproduce.experiment import CONTROL, DEFAULT, Scale

__all__ = ["Cell", "Done", "run_cell", "run_cells"]


@dataclass(frozen=True)
class Cell:
    """What one process computes: plain values only, so that it can be sent to any process."""

    paper: str
    experiment: str
    placement: int
    treatment: str
    scale: Scale

    @property
    def file(self) -> str:
        """The file of its rows: another name for anything that gives other rows."""
        key = json.dumps([version("fairlane"), asdict(self)], sort_keys=True)
        mark = sha256(key.encode()).hexdigest()[:10]
        return f"{self.experiment}-{self.placement}-{self.treatment}-{mark}.parquet"

    def __str__(self) -> str:
        return f"{self.experiment}, placement {self.placement}, {self.treatment}"


@dataclass(frozen=True)
class Done:
    """A cell with its rows, or with why it has none."""

    cell: Cell
    rows: pl.DataFrame | None
    seconds: float
    """Wall time that it took; 0 if it was there already."""
    error: str | None = None


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """Computes a cell: a row for each period and job. Depends on nothing but the cell."""
    from fairlane.reproduce import PAPERS

    experiment = PAPERS[cell.paper].experiments[cell.experiment]
    phases = experiment.phases(cell.placement, cell.scale)
    untreated = cell.treatment == DEFAULT
    parameters = experiment.parameters if cell.treatment == CONTROL else {}
    outcomes = control(
        phases,
        make("none" if untreated else cell.treatment, parameters),
        period=cell.scale.period,
        periods=cell.scale.periods,
        draws=cell.scale.draws,
        compare=False,
        isolated=untreated,
        threads=1,
    )
    return [row for outcome in outcomes for row in _rows(outcome, _workloads(phases))]


def _workloads(phases: Phases) -> dict[str, str]:
    return {name: job.kind for phase in phases.values() for job in phase.jobs for name in job.names()}


def _rows(outcome: Outcome, workloads: dict[str, str]) -> Iterator[dict[str, Any]]:
    for job, done in outcome.treated.jobs.items():
        alone = outcome.isolated.get(job)
        yield {
            "period": outcome.period,
            "job": job,
            "workload": workloads[job],
            "state": outcome.state,
            "accepted": outcome.accepted,
            "iterations": done.work,
            "isolated_iterations": alone.work if alone else None,
        }


_SCHEMA: dict[str, Any] = {
    "period": pl.Int32,
    "job": pl.String,
    "workload": pl.String,
    "state": pl.String,
    "accepted": pl.Boolean,
    "iterations": pl.Int64,
    "isolated_iterations": pl.Int64,
}


def _silently(done: Done) -> None:
    del done


def run_cells(
    cells: Sequence[Cell], workers: int, folder: Path, told: Callable[[Done], None] = _silently
) -> list[Done]:
    """Computes the cells that ``folder`` does not have yet; every one is stored as soon as it is done.

    ``told`` hears of each. A cell that fails is reported with its error, and the others go on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = [Done(cell, pl.read_parquet(folder / cell.file), 0.0) for cell in cells if (folder / cell.file).is_file()]
    for one in done:
        told(one)
    there = {one.cell for one in done}
    left = [cell for cell in cells if cell not in there]
    if not left:
        return done
    pool = ProcessPoolExecutor(min(workers, len(left)), mp_context=get_context("spawn"), initializer=_ignore_interrupt)
    try:
        futures = {pool.submit(_stored, cell, folder): cell for cell in left}
        for future in as_completed(futures):
            cell = futures[future]
            error = future.exception()
            if error is None:
                one = Done(cell, pl.read_parquet(folder / cell.file), future.result())
            else:
                one = Done(cell, None, 0.0, str(error))
            done.append(one)
            told(one)
    except KeyboardInterrupt:
        for process in pool._processes.values():  # what they have not stored is lost in any case
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return done


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class CellError(Exception):
    """A cell cannot be computed; the message says why."""


def _stored(cell: Cell, folder: Path) -> float:
    """Computes a cell and stores its rows under their final name only when they are complete."""
    started = time.monotonic()
    try:
        rows = pl.DataFrame(run_cell(cell), schema=_SCHEMA)
    except Exception as error:  # not every exception can be sent from one process to another; its words can
        raise CellError(f"{type(error).__name__}: {error}") from None
    scratch = folder / f".{cell.file}.{os.getpid()}"
    rows.write_parquet(scratch)
    scratch.replace(folder / cell.file)
    return time.monotonic() - started
