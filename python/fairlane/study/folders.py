"""Folders of results of any kind: reading them, and SQL over their tables."""

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from fairlane.core.errors import ResultsError
from fairlane.results.base import ask
from fairlane.results.reproduction import MAP_META as ROBUSTNESS_META
from fairlane.results.reproduction import META as REPRODUCTION_META
from fairlane.results.reproduction import ReproductionResults, RobustnessResults, is_reproduction
from fairlane.results.run import Run, load_run
from fairlane.results.schedule import META as SCHEDULE_META
from fairlane.results.schedule import ScheduleResults
from fairlane.results.study import META as STUDY_META
from fairlane.results.study import StudyResults
from fairlane.study.shipped.advice import Advice
from fairlane.study.shipped.cables import Cables
from fairlane.study.shipped.gpcnet import Gpcnet
from fairlane.study.shipped.saturation import Saturation

__all__ = ["Loaded", "load", "query"]


Loaded = (
    Run
    | StudyResults
    | Saturation
    | ReproductionResults
    | RobustnessResults
    | ScheduleResults
    | Gpcnet
    | Cables
    | Advice
)
"""Results that a folder may hold."""
_LOADS: Mapping[str, Callable[[Path], Loaded]] = {
    STUDY_META: StudyResults.load,
    REPRODUCTION_META: ReproductionResults.load,
    ROBUSTNESS_META: RobustnessResults.load,
    SCHEDULE_META: ScheduleResults.load,
    **{f"{kind.KIND}.json": kind.load for kind in (Saturation, Gpcnet, Cables, Advice)},
}
"""By the file that a kind of folder has; a folder with none of them is that of a run."""


def load(folder: str | Path) -> Loaded:
    """Reads what is stored in a folder.

    That is a run, a study, a sweep of loads, a reproduction, a robustness map, a schedule, a benchmark by GPCNeT
    or a survey of failures.

    Raises:
        ResultsError: there is none of them in ``folder``, it is incomplete, or another version of fairlane wrote it.
    """
    folder = Path(folder)
    if folder.is_file():
        raise ResultsError(f"{folder}: is a file; results are in folders")
    if is_reproduction(folder):
        message = "is missing: an earlier version of fairlane wrote this folder; repeat the reproduction in a new one"
        raise ResultsError(f"{folder / REPRODUCTION_META}: {message}")
    for name, loading in _LOADS.items():
        if (folder / name).is_file():
            return loading(folder)
    return load_run(folder)


def query(folder: str | Path, sql: str) -> pl.DataFrame:
    """Answers ``sql``, one SELECT (or DESCRIBE, SHOW, EXPLAIN) over the tables of results.

    Raises:
        ResultsError: ``folder`` has none of them, or the query is wrong; names the tables and the nearest column.
    """
    return ask(load(folder).tables(), sql)
