"""The data set of a designed study, and what its factors do: main effects and interactions of two.

The logarithm of a job's time of an iteration is explained by a sum of terms, one for each factor and one for each pair
(analysis of variance; R. A. Fisher 1925; D. C. Montgomery, Design and Analysis of Experiments, chapter 5): so effects
are factors on time. Levels are coded to sum to zero, and the terms fitted together by least squares. A term's sum of
squares is what leaving it out adds to the residual one: in a full factorial design they add up, in a sampled one they
may not. Seeds are repetitions: what they change is in the residual.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy
import polars as pl
from numpy.typing import NDArray

__all__ = ["PER_JOB", "dataset", "effects"]

Floats = NDArray[numpy.float64]

PER_JOB = ("job", "name", "workload", "ranks", "interference", "iterations", "iteration_ms")
"""Columns of the data set behind those of the conditions."""
NO_FACTORS = ("point", "seed", *PER_JOB[:4], *PER_JOB[5:])
"""Columns that say which row it is, or what was measured; all others are factors where they vary."""
_SCHEMA = {
    "name": pl.String,
    "term": pl.String,
    "degrees": pl.UInt32,
    "factor": pl.Float64,
    "share": pl.Float64,
    "p": pl.Float64,
}
_TINY = 1e-12


def dataset(work: pl.DataFrame, placements: Sequence[str]) -> pl.DataFrame:
    """Conditions and time of an iteration of every job, beside the others and, on the same hosts, without them.

    ``work`` is a study's table of that name; ``placements`` says what its placements are called.
    """
    conditions = [name for name in work.columns[: work.columns.index("baseline")] if name != "case"]
    cases = ["case"] if work["case"].null_count() < work.height else []
    treated = ["treatment"] if work["treatment"].n_unique() > 1 else []
    names = pl.col("placement").replace_strict(dict(enumerate(placements)), return_dtype=pl.String)
    # Of a job that did nothing in its time there is nothing to say.
    rows = work.filter(pl.col("iterations") > 0).with_columns(
        placement=names,
        iteration_ms=1e-9
        * pl.coalesce(
            pl.when(pl.col("compared_iterations") > 0).then(pl.col("compared_ps") / pl.col("compared_iterations")),
            pl.col("span_ps") / pl.col("iterations"),
        ),
    )
    beside = rows.with_columns(interference=pl.lit("on"))
    alone = rows.with_columns(
        interference=pl.lit("off"),
        iterations=pl.col("isolated_iterations"),
        iteration_ms=pl.col("iteration_ms") * (1 + pl.col("w")),
    ).filter(pl.col("iteration_ms").is_not_null())
    chosen = [*conditions[:1], *cases, *conditions[1:], *treated, *PER_JOB]
    return pl.concat([beside, alone]).select(chosen).sort("point", *treated, "job", "interference")


def effects(data: pl.DataFrame) -> pl.DataFrame:
    """A row for each job and term, those that explain most first, and at last the residual.

    ``degrees`` are degrees of freedom; a term of which the design says nothing that others do not say has none.
    ``factor`` is the time at its worst level over that at its best one, ``share`` its part of the total sum of squares,
    ``p`` how likely so large a part is if the term does nothing.
    """
    rows = [
        {"name": name, **row} for (name,), own in data.group_by("name", maintain_order=True) for row in _of_job(own)
    ]
    return pl.DataFrame(rows, schema=_SCHEMA)


@dataclass(frozen=True)
class _Fit:
    """A sum of terms fitted to the data."""

    terms: Mapping[str, Floats]
    """Columns of each."""
    y: Floats

    def solve(self, without: str | None = None) -> tuple[dict[str, Floats], float, int]:
        """What each term adds to each row, the residual sum of squares, and how many columns are independent."""
        used = {name: columns for name, columns in self.terms.items() if name != without}
        matrix = numpy.column_stack([numpy.ones(len(self.y)), *used.values()])
        weights, _, rank, _ = numpy.linalg.lstsq(matrix, self.y, rcond=None)
        parts, at = {}, 1
        for name, columns in used.items():
            parts[name] = columns @ weights[at : at + columns.shape[1]]
            at += columns.shape[1]
        return parts, float(((self.y - matrix @ weights) ** 2).sum()), int(rank)


def _of_job(data: pl.DataFrame) -> Iterator[dict[str, Any]]:
    factors = [name for name in data.columns if name not in NO_FACTORS and data[name].n_unique() > 1]
    fit = _Fit(dict(_terms(data, factors)), numpy.log(data["iteration_ms"].to_numpy()))
    parts, residual, rank = fit.solve()
    total = float(((fit.y - fit.y.mean()) ** 2).sum())
    free = len(fit.y) - rank
    found = []
    for term, part in parts.items():
        _, rest, smaller = fit.solve(term)
        degrees, squares = rank - smaller, max(0.0, rest - residual)
        row: dict[str, Any] = {"term": term, "degrees": degrees, "factor": None, "share": None, "p": None}
        if degrees:
            row["factor"] = float(numpy.exp(part.max() - part.min()))
            row["share"] = squares / total if total > _TINY else 0.0
            row["p"] = _chance(squares, degrees, residual, free)
        found.append(row)
    yield from sorted(found, key=lambda row: -(row["share"] or 0.0))
    share = residual / total if total > _TINY else 0.0
    yield {"term": "residual", "degrees": free, "factor": None, "share": share, "p": None}


def _terms(data: pl.DataFrame, factors: Sequence[str]) -> Iterator[tuple[str, Floats]]:
    """Columns of every factor, and their products for every pair."""
    coded = {name: _coded(data[name]) for name in factors}
    yield from coded.items()
    for first, second in combinations(factors, 2):
        products = coded[first][:, :, None] * coded[second][:, None, :]
        yield f"{first} x {second}", products.reshape(len(data), -1)


def _coded(column: pl.Series) -> Floats:
    """A column for each level but the last, for which all are -1."""
    levels = column.unique(maintain_order=True).to_list()
    numbers = numpy.array([levels.index(value) for value in column.to_list()])
    codes = numpy.vstack([numpy.eye(len(levels) - 1), -numpy.ones(len(levels) - 1)])
    found: Floats = codes[numbers]
    return found


def _chance(squares: float, degrees: int, residual: float, free: int) -> float | None:
    """The p-value of the F test; None where no repetition says how much chance there is."""
    from scipy.stats import f

    if not free or residual <= _TINY:
        return None
    return float(f.sf(squares / degrees / (residual / free), degrees, free))
