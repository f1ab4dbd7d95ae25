"""Folders of results of any kind: reading them, and SQL over their tables."""

from pathlib import Path

import polars as pl

from fairlane.results.query import ask
from fairlane.results.run import Run
from fairlane.results.store import load_run
from fairlane.results.study import META as STUDY_META
from fairlane.results.study import StudyResults
from fairlane.saturation.results import META as SATURATION_META
from fairlane.saturation.results import Saturation

__all__ = ["load", "query"]


def load(folder: str | Path) -> Run | StudyResults | Saturation:
    """Reads what is stored in a folder: a run, a study or a sweep of loads.

    Raises:
        ResultsError: there is none of them in ``folder``, it is incomplete, or another version of fairlane wrote it.
    """
    folder = Path(folder)
    if (folder / SATURATION_META).is_file():
        return Saturation.load(folder)
    return StudyResults.load(folder) if (folder / STUDY_META).is_file() else load_run(folder)


def query(folder: str | Path, sql: str) -> pl.DataFrame:
    """Answers ``sql``, one SELECT (or DESCRIBE, SHOW, EXPLAIN) over the tables of a run, a study or a sweep.

    Raises:
        ResultsError: ``folder`` has none of them, or the query is wrong; names the tables and the nearest column.
    """
    return ask(load(folder).tables(), sql)
