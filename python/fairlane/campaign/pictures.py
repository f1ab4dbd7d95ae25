"""The picture of a comparison: predicted against measured ratio to the isolated run, a point for each cell."""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from math import log

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairlane.campaign.comparing import FALSE_ALARM, FAR, MISS, RIGHT, Comparison
from fairlane.plot.style import INK, MUTED, PALETTE, canvas, headline_of, plain_logarithms
from fairlane.wording import data_size

COLOURS = {RIGHT: PALETTE[0], FAR: PALETTE[1], MISS: PALETTE[2], FALSE_ALARM: PALETTE[3]}
_MARKERS = ("o", "s", "^", "D", "v")
_APART = 0.09  # the logarithm of the ratio between points that are both named


def draw(found: Comparison) -> Callable[[], Figure]:
    """Panels for the judged cells and those on which variants were chosen: ratios of means, on logarithmic axes."""
    judging = found.cells.campaign.judging

    def make() -> Figure:
        panels = {name: rows for name, of in found.nodes.items() if (rows := _beside(found.judged(of))).height}
        every = pl.concat(panels.values()) if panels else _beside(found.table)
        pairs = every.select("victim", "aggressor").unique(maintain_order=True).rows()
        figure = canvas(6.4 * max(1, len(panels)) + 2.6, 6.6)
        for number, (name, rows) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(1, len(panels), number)
            _panel(axes, rows, every, pairs, judging.factor)
            axes.set_title(f"Cells that were {name}", loc="left")
        figure.legend(handles=list(_key(pairs)), loc="outside right upper", frameon=False)
        words = (
            f"Prediction {found.registration.name}. Each point is a cell: a victim of one message size beside an "
            f"aggressor, the mean time of an iteration over that of the isolated run; size and nodes where it is not "
            f"as predicted. Band: within a factor of {judging.factor:g}. Measured figures: "
            f"{'; '.join(found.cells.campaign.sources)}."
        )
        headline_of(figure, f"{found.cells.campaign.title}: predicted against measured slowdowns", words)
        return figure

    return make


def _beside(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("verdict").is_not_null())


def _key(pairs: Sequence[tuple[str, str]]) -> Iterator[Line2D]:
    """What colours and markers mean."""
    for (victim, aggressor), marker in zip(pairs, cycle(_MARKERS), strict=False):
        yield Line2D([], [], color=MUTED, marker=marker, linestyle="", label=f"{victim} beside {aggressor}")
    for verdict, colour in COLOURS.items():
        yield Line2D([], [], color=colour, marker="o", linestyle="", label=verdict)


def _panel(
    axes: Axes, rows: pl.DataFrame, every: pl.DataFrame, pairs: Sequence[tuple[str, str]], factor: float
) -> None:
    both = [*every["measured_mean_ratio"], *every["predicted_mean_ratio"]]
    low, high = min(0.8, 0.9 * min(both)), 1.25 * max(both)
    ends = [low, high]
    band = ([end / factor for end in ends], [end * factor for end in ends])
    axes.fill_between(ends, *band, color=MUTED, alpha=0.12, linewidth=0)
    axes.plot(ends, ends, color=MUTED, linewidth=0.8)
    for (verdict, victim, aggressor), of in rows.group_by("verdict", "victim", "aggressor", maintain_order=True):
        marker = _MARKERS[pairs.index((str(victim), str(aggressor))) % len(_MARKERS)]
        points = of["measured_mean_ratio"], of["predicted_mean_ratio"]
        axes.scatter(*points, color=COLOURS[str(verdict)], marker=marker, s=34, alpha=0.85, linewidth=0, zorder=3)
    named: list[tuple[float, float]] = []
    for row in rows.filter(pl.col("verdict") != RIGHT).iter_rows(named=True):
        words = f"{data_size(row['msg_bytes'])}, {row['nodes']}"
        at = row["measured_mean_ratio"], row["predicted_mean_ratio"]
        if any(abs(log(at[1] / other[1])) < _APART and abs(log(at[0] / other[0])) < 4 * _APART for other in named):
            continue  # the names would overlap
        named.append(at)
        axes.annotate(words, at, xytext=(5, 4), textcoords="offset points", fontsize=8.5, color=INK)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        plain_logarithms(axis, low, high)
    axes.set(xlim=(low, high), ylim=(low, high), xlabel="Measured ratio", ylabel="Predicted ratio")
    axes.set_aspect("equal")
