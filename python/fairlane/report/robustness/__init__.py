"""What the page of a reproduction shows of its robustness map."""

from typing import Any

import polars as pl

from fairlane.report.tables import rows_of
from fairlane.results.reproduction import MAP_VERDICTS, RobustnessResults
from fairlane.wording import listed, plural


def map_of(found: RobustnessResults) -> dict[str, Any]:
    """The tables of a map, and the sentences of its figures."""
    clauses = found.frames["robustness-clauses"].with_columns(pl.col("decided_by").cast(pl.String).fill_null(""))
    indices, levels = found.frames["robustness-indices"], found.frames["robustness-levels"]
    return {
        "clauses": clauses.to_dicts(),
        "indices": indices.to_dicts(),
        "levels": levels.with_columns(pl.col("level").cast(pl.String)).to_dicts(),
        "verdicts": MAP_VERDICTS,
        "parameters": found.meta.parameters,
        "points": rows_of(found.frames["robustness"]),
        "sentences": {"shares": _shares(clauses), "indices": _indices(indices)},
    }


def _shares(clauses: pl.DataFrame) -> str:
    counts = dict(clauses.group_by("verdict").len().iter_rows())
    parts = [f"{counts[one]} {one}" for one in MAP_VERDICTS if counts.get(one)]
    return f"{plural(clauses.height, 'clause')}: {listed(parts)}." if parts else "No clause was judged."


def _indices(indices: pl.DataFrame) -> str:
    certain = indices.filter(pl.col("beyond_chance").cast(pl.Boolean, strict=False).fill_null(value=False))
    if certain.is_empty():
        return "No parameter decides a clause beyond chance."
    most = certain.group_by("parameter").len().sort("len", "parameter").row(-1)
    return f"{most[0]} decides most clauses beyond chance: {most[1]}."
