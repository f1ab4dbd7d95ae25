"""Designed studies: which combinations are run, the data set, what each factor does, and the data sheet.

*Combinations.* All, or some that are spread over all as evenly as few can: the beginning of a scrambled Sobol' sequence
(I. M. Sobol', USSR Comput. Math. Math. Phys. 7, 1967; A. B. Owen, J. Complexity 14, 1998), in which every number of a
row stands for a level of its factor, or for a place in the range of a parameter.

*Effects.* The logarithm of a job's time of an iteration is explained by a sum of terms, one for each factor and one for
each pair (analysis of variance; R. A. Fisher 1925; D. C. Montgomery, Design and Analysis of Experiments, chapter 5): so
effects are factors on time. Levels are coded to sum to zero, and the terms fitted together by least squares. A term's
sum of squares is what leaving it out adds to the residual one: in a full factorial design they add up, in a sampled one
they may not. Seeds are repetitions: what they change is in the residual.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy
import polars as pl
from numpy.typing import NDArray

from fairlane.core.wording import plural
from fairlane.results.schemas import STUDY, types
from fairlane.results.study import StudyMeta

Floats = NDArray[numpy.float64]

_MOST_DRAWS = 2**20
"""Rows after which it is given up to find others that differ; reached only next to all combinations."""
SHEET, EFFECTS = "dataset.md", "effects.parquet"
"""Names of its files."""
MEANING = {
    "point": ("-", "number of the combination"),
    "case": ("-", "the case's name"),
    "placement": ("-", "placement policy, and its seed if it has one of its own"),
    "seed": ("-", "seed of the scenario: points that differ in nothing else are repetitions"),
    "treatment": ("-", "the treatment's name"),
    "job": ("-", "number of the job"),
    "name": ("-", "name of the job"),
    "workload": ("-", "what it does"),
    "ranks": ("-", "how many ranks it has"),
    "interference": ("-", "`on`: co-run with all other jobs; `off`: isolated on the same hosts"),
    "iterations": ("-", "iterations of its slowest rank"),
    "iteration_ms": ("ms", "time of an iteration of its slowest rank: what is measured"),
}
PER_JOB = ("job", "name", "workload", "ranks", "interference", "iterations", "iteration_ms")
"""Columns of the data set behind those of the conditions."""
NO_FACTORS = ("point", "seed", *PER_JOB[:4], *PER_JOB[5:])
"""Columns that say which row it is, or what was measured; all others are factors where they vary."""
_TINY = 1e-12


def combinations(levels: Sequence[int], runs: int | None = None, seed: int = 1) -> Iterator[tuple[int, ...]]:
    """For each run the level of each factor, from 0; ``levels`` says how many each factor has.

    Without ``runs`` it is every combination, the last factor fastest. Else it is that number of different ones, in the
    same order; ``runs`` is at most the number of all.
    """
    every = itertools.product(*map(range, levels))
    return every if runs is None or runs >= prod(levels) else iter(sorted(_sample(levels, runs, seed)))


def _sample(levels: Sequence[int], runs: int, seed: int) -> set[tuple[int, ...]]:
    chosen: set[tuple[int, ...]] = set()
    for places in itertools.islice(_sobol(len(levels), seed), _MOST_DRAWS):
        chosen.add(tuple(int(place * count) for place, count in zip(places, levels, strict=True)))
        if len(chosen) == runs:
            return chosen
    rest = (row for row in itertools.product(*map(range, levels)) if row not in chosen)
    while len(chosen) < runs:
        chosen.add(next(rest))
    return chosen


def _sobol(dimensions: int, seed: int) -> Iterator[list[float]]:
    """Rows of a scrambled Sobol' sequence, from 0 to below 1, without an end."""
    from scipy.stats import qmc

    sampler, power = qmc.Sobol(dimensions, rng=seed), 1
    while True:
        yield from sampler.random_base2(power).tolist()
        power = (int(sampler.num_generated) - 1).bit_length()  # blocks double what there is


class Axis(Protocol):
    """A dimension of a space."""

    @property
    def name(self) -> str:
        """Its name."""

    def at(self, place: float, /) -> float | str:
        """The value at a place from 0 to below 1."""


def space_filling(axes: Sequence[Axis], count: int, seed: int = 1) -> list[dict[str, float | str]]:
    """Values of the axes by name under so many conditions, spread evenly: the same first ones for any ``count``."""
    rows = itertools.islice(_sobol(len(axes), seed), count)
    return [{axis.name: axis.at(place) for axis, place in zip(axes, row, strict=True)} for row in rows]


def dataset(work: pl.DataFrame, placements: Sequence[str]) -> pl.DataFrame:
    """Conditions and time of an iteration of every job, co-run with the others and isolated on the same hosts.

    ``work`` is a study's table of that name; ``placements`` says what its placements are called.
    """
    conditions = [name for name in work.columns[: work.columns.index("baseline")] if name != "case"]
    cases = ["case"] if work["case"].null_count() < work.height else []
    treated = ["treatment"] if work["treatment"].n_unique() > 1 else []
    names = pl.col("placement").replace_strict(dict(enumerate(placements)), return_dtype=pl.String)
    # A seed that changes nothing is no repetition.
    work = work.unique(["same_as", "placement", "baseline", "treatment", "job"], keep="first", maintain_order=True)
    # Of a job that did nothing in its time there is nothing to say.
    rows = work.filter(pl.col("iterations") > 0).with_columns(
        placement=names,
        iteration_ms=1e-9
        * pl.coalesce(
            pl.when(pl.col("compared_iterations") > 0).then(pl.col("compared_ps") / pl.col("compared_iterations")),
            pl.col("span_ps") / pl.col("iterations"),
        ),
    )
    co_run = rows.with_columns(interference=pl.lit("on"))
    isolated = rows.with_columns(
        interference=pl.lit("off"),
        iterations=pl.col("isolated_iterations"),
        iteration_ms=pl.col("iteration_ms") * (1 + pl.col("w")),
    ).filter(pl.col("iteration_ms").is_not_null())
    chosen = [*conditions[:1], *cases, *conditions[1:], *treated, *PER_JOB]
    return pl.concat([co_run, isolated]).select(chosen).sort("point", *treated, "job", "interference")


def effects(data: pl.DataFrame) -> pl.DataFrame:
    """Analyse the variance: a row for each job and term, those that explain most first, and last the residual.

    ``degrees`` are degrees of freedom; a term of which the design says nothing that others do not say has none.
    ``factor`` is the time at its worst level over that at its best one, ``share`` its part of the total sum of squares,
    ``p`` how likely so large a part is if the term does nothing.
    """
    rows = [
        {"name": name, **row} for (name,), own in data.group_by("name", maintain_order=True) for row in _of_job(own)
    ]
    return pl.DataFrame(rows, schema=types(STUDY["effects"]))


def _of_job(data: pl.DataFrame) -> Iterator[dict[str, Any]]:
    factors = [name for name in data.columns if name not in NO_FACTORS and data[name].n_unique() > 1]
    terms, y = dict(_terms(data, factors)), numpy.log(data["iteration_ms"].to_numpy())
    parts, residual, rank = _fitted(terms, y)
    total, free = float(((y - y.mean()) ** 2).sum()), len(y) - rank
    rows = []
    for term, part in parts.items():
        _, rest, smaller = _fitted({name: columns for name, columns in terms.items() if name != term}, y)
        degrees, squares = rank - smaller, max(0.0, rest - residual)
        row: dict[str, Any] = {"term": term, "degrees": degrees, "factor": None, "share": None, "p": None}
        if degrees:
            row["factor"] = float(numpy.exp(part.max() - part.min()))
            row["share"] = squares / total if total > _TINY else 0.0
            row["p"] = _chance(squares, degrees, residual, free)
        rows.append(row)
    yield from sorted(rows, key=lambda row: -(row["share"] or 0.0))
    share = residual / total if total > _TINY else 0.0
    yield {"term": "residual", "degrees": free, "factor": None, "share": share, "p": None}


def _fitted(terms: Mapping[str, Floats], y: Floats) -> tuple[dict[str, Floats], float, int]:
    """Fit terms together: the contribution of each to each row, the residual sum of squares, and the rank."""
    matrix = numpy.column_stack([numpy.ones(len(y)), *terms.values()])
    weights, _, rank, _ = numpy.linalg.lstsq(matrix, y, rcond=None)
    parts, at = {}, 1
    for name, columns in terms.items():
        parts[name] = columns @ weights[at : at + columns.shape[1]]
        at += columns.shape[1]
    return parts, float(((y - matrix @ weights) ** 2).sum()), int(rank)


def _terms(data: pl.DataFrame, factors: Sequence[str]) -> Iterator[tuple[str, Floats]]:
    """Yield the coded columns of every factor, and their products for every pair."""
    coded = {name: _coded(data[name]) for name in factors}
    yield from coded.items()
    for first, second in itertools.combinations(factors, 2):
        products = coded[first][:, :, None] * coded[second][:, None, :]
        yield f"{first} x {second}", products.reshape(len(data), -1)


def _coded(column: pl.Series) -> Floats:
    """Code levels to sum to zero: a column for each level but the last, for which all are -1."""
    levels = column.unique(maintain_order=True).to_list()
    numbers = numpy.array([levels.index(value) for value in column.to_list()])
    codes = numpy.vstack([numpy.eye(len(levels) - 1), -numpy.ones(len(levels) - 1)])
    coded: Floats = codes[numbers]
    return coded


def _chance(squares: float, degrees: int, residual: float, free: int) -> float | None:
    """The p-value of the F test; None where no repetition says how much chance there is."""
    from scipy.stats import f

    if not free or residual <= _TINY:
        return None
    return float(f.sf(squares / degrees / (residual / free), degrees, free))


def placement_name(table: Mapping[str, object]) -> str:
    """The name of a placement in the data set."""
    words = [str(table.get("name", "")), *([f"seed {table['seed']}"] if "seed" in table else [])]
    return " ".join(words).strip() or "as in the scenario"


def data_sheet(data: pl.DataFrame, meta: StudyMeta, *, sampled: bool) -> Iterator[str]:
    """Lines of Markdown: what the columns of the data set are, and what values they have."""
    yield "# Data sheet of `dataset.parquet`\n"
    kind = "a Sobol' sample of all combinations" if sampled else "every combination"
    rows = f"{data.height} rows, simulated by fairlane {meta.version}"
    yield f"{rows}: study `{meta.study}`, {plural(meta.points, 'point')}, {kind}."
    yield "A row is one job under one condition.\n"
    yield "| column | type | unit | meaning |\n|---|---|---|---|"
    for name, kind_of in data.schema.items():
        unit, words = MEANING.get(name, ("as in the scenario", "a key of the scenario"))
        yield f"| `{name}` | {kind_of} | {unit} | {words} |"
    conditions = [name for name in data.columns if name not in PER_JOB and name != "point"]
    yield "\nValues of conditions:\n"
    for name in conditions:
        values = [str(value) for value in data[name].unique(maintain_order=True).to_list()]
        yield f"- `{name}`: {', '.join(f'`{value}`' for value in values)}"
    yield "\nThe study in this folder makes the same table again, bit for bit, with the same version:\n"
    yield "```console\n$ fairlane study study.toml --out FOLDER\n```\n"
    yield f"Digest of the study's tables: `{meta.digest}`."
    if meta.failures:
        yield (
            f"\n{plural(meta.failures, 'run')} failed and "
            f"{'is' if meta.failures == 1 else 'are'} not in the data set: see `failures.parquet`."
        )
