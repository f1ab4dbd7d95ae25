"""Effects by cell: by kind of run a row for each job, a column for each point (condition, placement and seed)."""

from typing import Any

import numpy as np
import polars as pl

from fairlane.plot.treatments import run_kinds
from fairlane.report.study.effects import placement_name
from fairlane.results.study import StudyResults
from fairlane.study.conditions import CONDITION, with_condition
from fairlane.study.replication import EFFECTS
from fairlane.views.packing import pack

MOST_VALUES = 300_000
"""Values of each effect in a page; of more, rows are workloads in place of jobs."""
MOST_COLUMNS = 400
"""Points in a page; of more, columns are conditions, each the mean over its points."""


def cells_of(study: StudyResults) -> dict[str, Any]:
    """Names of rows and columns, and W and improvement by kind of run, row and column; NaN where there is none."""
    work, conditions = with_condition(study.work)
    kinds = run_kinds(work)
    by_point = work["point"].n_unique() <= MOST_COLUMNS
    column = "point" if by_point else CONDITION
    columns = work.unique(column, maintain_order=True).sort("point")
    size = len(kinds) * columns.height * work["name"].n_unique()
    row = "name" if size <= MOST_VALUES else "workload"
    rows = work[row].unique(maintain_order=True).to_list()
    shape = (len(kinds), len(rows), columns.height)
    values = {effect: np.full(shape, np.nan) for effect in EFFECTS}
    places = {key: at for at, key in enumerate(columns[column])}
    for number, kind in enumerate(kinds):
        means = kind.rows(work).group_by(row, column).agg(pl.col(*EFFECTS).mean())
        for name, key, *effects in means.iter_rows():
            for effect, value in zip(EFFECTS, effects, strict=True):
                if value is not None:
                    values[effect][number, rows.index(name), places[key]] = value
    labels = _labels(study, columns, several=len(conditions) > 1) if by_point else columns[CONDITION].to_list()
    of = {effect: pack(array, "f32") for effect, array in values.items()}
    return {"rows": rows, "row": "job" if row == "name" else row, "columns": labels, **of}


def _labels(study: StudyResults, points: pl.DataFrame, *, several: bool) -> list[str]:
    """Each point in words: those of condition, placement and seed of which there are several."""
    placements, seeds = (points[name].n_unique() > 1 for name in ("placement", "seed"))
    found = []
    for row in points.iter_rows(named=True):
        parts = [row[CONDITION]] if several else []
        parts += [f"placement: {placement_name(study, row['placement'])}"] if placements else []
        parts += [f"seed {row['seed']}"] if seeds else []
        found.append(", ".join(parts) or f"point {row['point']}")
    return found
