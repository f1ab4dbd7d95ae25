"""Reads results back: of runs that ``campaign script`` has prepared, and of CRAB.

A run's folder has ``run.toml``, ``cells.csv``, ``placement.csv`` and, for each cell, a file with the times of its
iterations. Cells without times, or with fewer iterations than the run was to have, are left out and named.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.csv_rows import read_rows
from fairlane.inputs.files import MOST_STORED, read_text, reading
from fairlane.inputs.table import Table
from fairlane.papers.campaign.cells import KEYS, Cell
from fairlane.papers.campaign.crab import crab_runs
from fairlane.papers.campaign.file import NONE
from fairlane.papers.campaign.measured import AGGRESSOR, VICTIM, Measured, Run, Times, tables
from fairlane.papers.campaign.script import MOST_BYTES, MOST_NODES, cell_of

RUN, CELLS, PLACEMENT = "run.toml", "cells.csv", "placement.csv"
"""The files of a run's folder besides those of its cells."""
_HOSTS = "# hosts:"


class RunFile(Table):
    """Plan of a run: ``run.toml``."""

    run: str
    system: str
    nodes: int = Field(ge=2, le=MOST_NODES)
    repetition: int
    iterations: int = Field(ge=1)
    warm_up: int
    victim_level: str
    aggressor_level: str
    launcher: str
    slurm_job: str
    written_by: str
    started: Any
    finished: Any = None


def read(folder: Path) -> Measured:
    """The tables of a folder of results.

    Raises ``ScenarioError`` if it has none, or one of its files is not as it was written.
    """
    with reading(folder):
        names = {path.name for path in folder.iterdir()}
    folders = [folder, *sorted(folder.glob("*/")), *sorted(folder.glob("results/*/"))]
    runs = [_run(run_folder) for run_folder in folders if (run_folder / RUN).is_file()] or list(crab_runs(folder))
    if not runs:
        message = "has no results: no run is in it"
        if "run.bash" in names:
            message = "has no results yet: build the program, and submit its scripts"
        allowed = f"a folder of campaign script, with {RUN} in results/RUN, or of CRAB, with config.json in each run"
        raise ScenarioError(Problem.of_file(folder, message, allowed=allowed))
    return tables(folder, runs)


def _run(folder: Path) -> Run:
    file = RunFile.from_file(folder / RUN)
    placement = _placement(folder / PLACEMENT, file.nodes)
    cells: list[tuple[Cell, Times]] = []
    left_out = []
    for number, cell in _cells(folder / CELLS, file.nodes):
        where = f"{folder / number}.csv"
        if not (folder / f"{number}.csv").is_file():
            why = f"see {number}.log" if file.finished else "the run was cut off"
            left_out.append(f"{where}: is missing, {cell}: {why}")
            continue
        times = _times(folder / f"{number}.csv", [node for job, node in placement if job == VICTIM])
        if cell.aggressor != NONE:
            _times(folder / f"{number}.aggressor", [node for job, node in placement if job == AGGRESSOR])
        if len(times) < file.iterations:
            left_out.append(f"{where}: {len(times)} iterations of {file.iterations}, {cell}: it was cut off")
            continue
        cells.append((cell, times))
    return Run(file.system, file.run, file.nodes, folder, cells, placement, left_out)


def _cells(file: Path, nodes: int) -> Iterator[tuple[str, Cell]]:
    for row in read_rows(file, ("cell", *KEYS[1:]), others=True):
        pauses = (row.seconds_if_given(key) for key in ("burst_s", "pause_s"))
        cell = cell_of(nodes, row["victim"], row.whole("msg_bytes", MOST_BYTES), row["aggressor"], *pauses)
        yield f"{row.whole('cell'):03}", cell


def _placement(file: Path, nodes: int) -> list[tuple[str, str]]:
    rows = read_rows(file, ("job", "node"), others=True)
    placed = [(row.one_of("job", (VICTIM, AGGRESSOR)), row["node"]) for row in rows]
    if len(placed) != nodes:
        raise ScenarioError(Problem.of_file(file, f"has {len(placed)} nodes, and {RUN} says {nodes}"))
    return placed


def _times(file: Path, nodes: Sequence[str]) -> Times:
    """The times in a file of ``measure``, whose ranks must have run on ``nodes``."""
    with reading(file):
        first = read_text(file, MOST_STORED).partition("\n")[0]
    hosts = first.removeprefix(_HOSTS).split() if first.startswith(_HOSTS) else None
    if hosts is None:
        raise ScenarioError(Problem.of_file(file, "does not say where the ranks ran", 1, f"{_HOSTS} and their names"))
    for rank, (host, node) in enumerate(zip(hosts, nodes, strict=False)):
        if host.partition(".")[0] != node.partition(".")[0]:
            raise ScenarioError(Problem.of_file(file, f"rank {rank} ran on {host}, and was to run on {node}", 1))
    if len(hosts) != len(nodes):
        raise ScenarioError(Problem.of_file(file, f"{len(hosts)} ranks ran, and {len(nodes)} were to run", 1))
    seconds: list[float] = []
    for row in read_rows(file, ("iteration", "seconds"), others=True):
        if row["iteration"] != str(len(seconds)):
            raise ScenarioError(row.problem("iteration", f"follows on {len(seconds)} others: lines are missing"))
        seconds.append(row.seconds("seconds", zero=True))
    return np.array(seconds, dtype=np.float64)
