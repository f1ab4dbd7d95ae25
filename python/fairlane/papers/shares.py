"""Summarise the points of a robustness map by clause: share, edges, and the parameters that decide it.

A clause holds at a point if all its numbers are in their bands; its margin there is that of the number that is nearest
to the edge of its band, or farthest beyond it. Points at which a number could not be measured do not count for it. The
share of points at which it holds is the share of the plausible space. What decides it are the parameters whose
first-order index of the margin is beyond chance; margins are ranked first, because some are ratios without a bound.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from fairlane.core.statistics.sensitivity import Sensitivity, bins, first_order, ranks, share
from fairlane.papers.folder import Claim, Clause
from fairlane.papers.robustness import Mapped
from fairlane.papers.space import Parameter, Space
from fairlane.papers.verdicts import FAILS_UP_TO, HOLDS_FROM
from fairlane.results.reproduction import CALIBRATED, DEPENDS, RARE, ROBUST, TOO_FEW
from fairlane.results.schemas import MAP, types

FEWEST_POINTS = 20
"""Of fewer points nothing is said but their number: the interval of a share is up to 40 points wide then."""
PARTS = 3
"""Parts of a range for which the share is given."""
FEWEST_REPEATS = 3
"""Of fewer repeats of the defaults no share of chance is computed."""
EVEN = 1 / 12
"""Variance of ranks from 0 to 1."""


def by_point(findings: pl.DataFrame) -> pl.DataFrame:
    """A row for each clause and point: whether all its numbers are in their bands, and the least margin.

    Where a number could not be measured, as of waits where there are none, nothing is known of the clause.
    """
    measured = pl.col("value").is_not_nan().all().over("claim", "clause", "point")
    return (
        findings.filter(measured)
        .group_by("claim", "clause", "point", maintain_order=True)
        .agg(pl.col("holds").all(), pl.col("margin").fill_nan(None).min())
        .sort("claim", "clause", "point", maintain_order=True)
    )


def verdict_of(held: int, points: int, *, calibrated: bool = False) -> str:
    """The verdict by the share of points at which a clause holds."""
    if calibrated:
        return CALIBRATED
    if points < FEWEST_POINTS:
        return TOO_FEW
    if 100 * held >= HOLDS_FROM * points:
        return ROBUST
    return RARE if 100 * held <= FAILS_UP_TO * points else DEPENDS


def title_of(space: Space, claim: Claim, number: int) -> str:
    """Return the title of a clause, counted from 1; by default its measurement without the numbers."""
    if claim.id in space.titles:
        return space.titles[claim.id][number - 1]
    clause = claim.clause[number - 1]
    text = re.sub(r"\{[^}]*\}", "…", clause.says)
    return re.sub(r"[\s:;,=+]*(… (ms|KiB|s²))?…?[\s:;,=+…]*$", "", text).replace("…: ", "", 1) or clause.says


def summarised(mapped: Mapped) -> dict[str, pl.DataFrame]:
    """The tables of clauses, indices and levels of a map, by name."""
    findings, points = by_point(mapped.found), mapped.points.drop("cpu_s", "error")
    clauses, indices_of, levels = list[tuple[object, ...]](), list[tuple[object, ...]](), list[tuple[object, ...]]()
    for claim in mapped.claims:
        for number, clause in enumerate(claim.clause, 1):
            of_clause = findings.filter(claim=claim.id, clause=number)
            drawn = of_clause.filter(pl.col("point") > 0).join(points, on="point").sort("point")
            if drawn.height:
                key = (claim.id, number)
                indices = _indices(drawn, mapped.space.parameter)
                kept, repeats = mapped.once(claim.id, defaults=True)
                repeated = of_clause.filter(pl.col("point").is_in(kept))
                still = len(kept) == 1 and repeats >= FEWEST_REPEATS
                clauses.append(
                    (*key, title_of(mapped.space, claim, number), *_clause(clause, drawn, repeated, indices, still))
                )
                indices_of += [(*key, *row) for row in _index_rows(indices)]
                levels += [(*key, *row) for parameter in mapped.space.parameter for row in _levels(drawn, parameter)]
    tables = dict(zip([*MAP][1:], (clauses, indices_of, levels), strict=True))
    return {name: pl.DataFrame(rows, types(MAP[name]), orient="row") for name, rows in tables.items()}


Indices = Mapping[str, tuple[Sensitivity, Sensitivity | None]]
"""Indices of the margin, and of whether the clause holds where that varies, by parameter."""


def _indices(drawn: pl.DataFrame, parameters: Sequence[Parameter]) -> Indices:
    known = drawn.filter(pl.col("margin").is_not_null())
    names = [parameter.name for parameter in parameters]
    of_margin = first_order({name: known[name].to_list() for name in names}, ranks(known["margin"].to_numpy()).tolist())
    of_holding = first_order({name: drawn[name].to_list() for name in names}, drawn["holds"].cast(float).to_list())
    return {name: (index, of_holding.get(name)) for name, index in of_margin.items()}


def _index_rows(indices: Indices) -> Iterator[tuple[object, ...]]:
    for name, (margin, holding) in indices.items():
        held = (holding.index, holding.p) if holding else (None, None)
        yield name, margin.index, margin.low, margin.high, margin.p, margin.beyond_chance, *held


def _clause(
    clause: Clause, drawn: pl.DataFrame, repeated: pl.DataFrame, indices: Indices, still: bool
) -> tuple[object, ...]:
    counts = _held(drawn)
    beyond = {name: margin.index for name, (margin, _) in indices.items() if margin.beyond_chance}
    decided = ", ".join(sorted(beyond, key=lambda name: -beyond[name]))
    return (
        verdict_of(counts[1], counts[0], calibrated=bool(clause.calibrated)),
        bool(clause.near_certain),
        *counts,
        repeated.height,
        int(repeated["holds"].sum()),
        0.0 if still else _chance(drawn, repeated),
        decided,
    )


def _chance(drawn: pl.DataFrame, repeated: pl.DataFrame) -> float | None:
    """The variance of margins at the defaults over that over all points, of ranks among all points."""
    margins, same = (table["margin"].drop_nulls().sort() for table in (drawn, repeated))
    if same.len() < FEWEST_REPEATS or margins.n_unique() < FEWEST_REPEATS:
        return None
    low, high = (margins.search_sorted(same, side=side) for side in ("left", "right"))
    spread = ((low + high) / (2 * margins.len())).var()
    return min(1.0, float(spread) / EVEN) if isinstance(spread, float) else None


def _levels(drawn: pl.DataFrame, parameter: Parameter) -> Iterator[tuple[object, ...]]:
    """The share at each level, or in each third of the range."""
    values = drawn[parameter.name]
    for number in sorted({*(codes := bins(values.to_list(), PARTS)).tolist()}):
        part = drawn.filter(pl.Series(codes == number))
        cut = part[parameter.name]
        level = (
            str(cut[0]) if parameter.levels else f"{parameter.shown(cut.min())} to {parameter.shown(cut.max())}"  # type: ignore[arg-type]
        )
        yield parameter.name, level, *_held(part)


def _held(points: pl.DataFrame) -> tuple[int, int, float, float | None, float | None]:
    """How many points there are, at how many the clause holds, and the share with its interval."""
    held = int(points["holds"].sum())
    part = share(held, points.height)
    return points.height, held, part.value, part.low, part.high
