"""How much each job suffers from the failure of each cable or switch: the most critical ones, and all of them."""

from typing import Any

import numpy
import polars as pl
from matplotlib.axes import Axes

from fairlane.cables.results import Cables
from fairlane.engine.tables import PS
from fairlane.plot.legend import legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import GRID, INK, MUTED, PALETTE, bare
from fairlane.statistics import COVERAGE
from fairlane.wording import plural, seconds

MOST = 12
"""Parts that have a line."""
MOST_JOBS = 6
"""Jobs that have a colour: those with the greatest slowdowns; of the others the greatest slowdown is drawn."""
_LETTERS = 44  # of a part's name
_OTHERS = "other jobs: the slowest"


def draw(found: Cables, axes: Given = None) -> Drawn | None:
    """The slowdowns of jobs for the most critical parts, and their distribution over all parts; None without any."""
    if not found.ranking.height:
        return None
    shown = found.ranking.head(MOST)
    panels = Panels.of(axes, (10, 2.6 + 0.34 * shown.height + 2.4), 2, 1, height_ratios=_ratios(shown.height))
    ranked, spread = panels.axes
    names, rows = _drawn(found)
    colour = {name: MUTED if name == _OTHERS else PALETTE[number] for number, name in enumerate(names)}
    low, high = _range(rows, shown["part"].to_list())
    _most_critical(ranked, rows, shown["part"].to_list(), colour, low, high)
    ranked.set(xlabel="Slowdown against the unbroken fork" if high is not None else "No job has a slowdown")
    legend_above(ranked, columns=min(4, max(1, len(names))))
    _all(spread, rows, colour)
    spread.set(xlabel=f"Slowdown, all {found.ranking.height} {found.whats}", ylabel=f"Share of {found.whats}")
    ends = numpy.array([panel.get_xlim() for panel in (ranked, spread)])
    for panel in (ranked, spread):
        panel.set_xlim(ends[:, 0].min(), ends[:, 1].max())
    meta = found.meta
    note = (
        f"{meta['scenario'].get('name', 'scenario')}: each {found.what} fails after {seconds(meta['at_ps'] * PS)} of "
        f"{seconds(meta['duration_ps'] * PS)}. Means over {plural(len(meta['seeds']), 'seed')}; bars: {COVERAGE:.0%} "
        "intervals. Cross: the job failed on some seed; triangle: it completed nothing afterwards."
    )
    return panels.headline(found.headline(), note)


def _ratios(rows: int) -> list[float]:
    return [1.0 + 0.34 * rows, 2.0]


def _drawn(found: Cables) -> tuple[list[str], pl.DataFrame]:
    """The jobs that have a colour, in the order of the scenario, and the rows that are drawn."""
    rows = found.slowdowns
    names = rows["name"].unique(maintain_order=True).to_list()
    if len(names) <= MOST_JOBS:
        return names, rows
    worst = rows.group_by("name").agg(pl.col("failed").max(), pl.col("slowdown").max())
    kept = set(worst.sort("failed", "slowdown", descending=True, nulls_last=True)["name"].head(MOST_JOBS - 1))
    others = rows.filter(~pl.col("name").is_in(kept)).sort("slowdown", descending=True, nulls_last=True)
    of_others = others.group_by("part", maintain_order=True).first().with_columns(name=pl.lit(_OTHERS))
    chosen = pl.concat([rows.filter(pl.col("name").is_in(kept)), of_others.select(rows.columns)])
    return [*(name for name in names if name in kept), _OTHERS], chosen


def _range(rows: pl.DataFrame, parts: list[str]) -> tuple[float, float | None]:
    """The least and the greatest slowdown of these parts, with intervals."""
    own = rows.filter(pl.col("part").is_in(parts)).drop_nulls("slowdown")
    if not own.height:
        return 1.0, None
    ends = own.select(
        pl.min_horizontal("slowdown", "slowdown_low").min(),
        pl.max_horizontal("slowdown", "slowdown_high").alias("high").max(),
    )
    low, high = ends.row(0)
    return min(1.0, low), max(1.0, high)


def _most_critical(
    axes: Axes, rows: pl.DataFrame, parts: list[str], colour: dict[str, str], low: float, high: float | None
) -> None:
    """A line for each part, the first one on top, with a point for each job; those that failed at the right."""
    right = 1.25 if high is None else max(1.02, high)
    width = right - min(low, 1.0)
    edge = right + 0.06 * width
    step = 0.6 / max(1, len(colour))
    for at, part in enumerate(parts):
        if at % 2:
            axes.axhspan(at - 0.5, at + 0.5, color=GRID, alpha=0.35, linewidth=0)
        for number, (name, look) in enumerate(colour.items()):
            own = rows.filter((pl.col("part") == part) & (pl.col("name") == name))
            for row in own.iter_rows(named=True):
                _point(axes, row, at + step * (number - (len(colour) - 1) / 2), edge, look)
    for name, look in colour.items():
        axes.plot([], [], marker="o", linestyle="none", color=look, label=name)
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(parts)), [f"{at}  {_short(part)}" for at, part in enumerate(parts, 1)])
    axes.set(ylim=(len(parts) - 0.5, -0.5), xlim=(min(low, 1.0) - 0.04 * width, edge + 0.06 * width))
    bare(axes)


def _point(axes: Axes, row: dict[str, Any], place: float, edge: float, look: str) -> None:
    """The slowdown of a job with its interval, and a mark at the right if it failed or stalled."""
    if row["slowdown"] is not None:
        low, high = (
            row["slowdown"] if row[f"slowdown_{end}"] is None else row[f"slowdown_{end}"] for end in ("low", "high")
        )
        bar = [[row["slowdown"] - low], [high - row["slowdown"]]]
        axes.errorbar(row["slowdown"], place, xerr=bar, marker="o", markersize=5, color=look, elinewidth=1, capsize=2)
    mark = "x" if row["failed"] else ">" if row["stalled"] else None
    if mark is not None:
        axes.plot([edge], [place], marker=mark, markersize=7, color=look, clip_on=False)


def _all(axes: Axes, rows: pl.DataFrame, colour: dict[str, str]) -> None:
    """Of each job the share of parts whose slowdown is at most so much; jobs that failed or stalled never get there."""
    known = rows["slowdown"].drop_nulls()
    least, most = (1.0, 1.01) if known.is_empty() else (float(known.min()), float(known.max()))  # type: ignore[arg-type]
    left, right = min(least, 1.0), max(most, 1.01)
    margin = 0.04 * (right - left)
    for name, look in colour.items():
        own = rows.filter(pl.col("name") == name)
        values = numpy.sort(own["slowdown"].drop_nulls().to_numpy())
        shares = numpy.arange(1, len(values) + 1) / max(1, own.height)
        if len(values):
            ends = numpy.concatenate([[0.0], values, [2 * right]])
            axes.step(ends, numpy.concatenate([[0.0], shares, shares[-1:]]), where="post", color=look, linewidth=2)
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.set(xlim=(left - margin, right + margin), ylim=(0, 1.02))
    axes.grid(axis="both")


def _short(part: str) -> str:
    return part if len(part) <= _LETTERS else f"{part[: _LETTERS - 1]}…"
