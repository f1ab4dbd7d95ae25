"""The page of a robustness map: at which share of a paper's plausible space each clause holds, and what decides it."""

from typing import Any

import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.report.meta import meta_of
from fairlane.report.tables import rows_of
from fairlane.results.reproduction import MAP_VERDICTS, RobustnessResults
from fairlane.wording import listed, plural


def data_of(
    found: RobustnessResults, compare: RobustnessResults | None = None, compare_name: str = ""
) -> dict[str, Any]:
    """What the page of a map contains, as JSON. Raises ``ScenarioError`` if two maps have no clause in common."""
    own = map_of(found)
    data = {"meta": _meta(found), "map": own, "compare": None}
    if compare is None:
        return data
    other = map_of(compare)
    if not {_key(row) for row in own["clauses"]} & {_key(row) for row in other["clauses"]}:
        words = f"has no clause of the map of {found.meta.paper}"
        raise ScenarioError(Problem("--compare", words, compare_name, "a map of the same paper"))
    return {**data, "compare": {"meta": _meta(compare), "map": other}}


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


def _key(row: dict[str, Any]) -> tuple[str, int]:
    return row["claim"], row["clause"]


def _meta(found: RobustnessResults) -> dict[str, Any]:
    meta = found.meta
    name = found.folder.name if found.folder else meta.paper
    facts = [line.rstrip(".") for line in meta.lines]
    provenance = {
        "folder": name,
        "paper": meta.paper,
        "fairlane": meta.version,
        "digest of the simulator": meta.simulator,
    }
    return meta_of(f"{meta.title}: robustness", name, facts, provenance, meta.left_out)


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
