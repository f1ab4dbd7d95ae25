"""The picture of a comparison: predicted against measured ratio to the isolated run, a point for each cell."""

from collections.abc import Callable

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairlane.campaign.comparing import FALSE_ALARM, FAR, MISS, RIGHT, Comparison
from fairlane.plot.style import INK, MUTED, PALETTE, canvas, headline_of, plain_logarithms
from fairlane.wording import data_size

COLOURS = {RIGHT: PALETTE[0], FAR: PALETTE[1], MISS: PALETTE[2], FALSE_ALARM: PALETTE[3]}
_MARKERS = ("o", "s", "^", "D", "v")
_NAMED = 12  # cells that are named beside their points


def draw(found: Comparison) -> Callable[[], Figure]:
    """Panels for the judged cells and those on which variants were chosen: ratios of means, on logarithmic axes."""
    judging = found.cells.campaign.judging
    parts = {"judged": judging.judge, "chosen on": judging.choose}

    def make() -> Figure:
        panels = {name: rows for name, nodes in parts.items() if (rows := _beside(found.judged(nodes))).height}
        figure = canvas(6.4 * max(1, len(panels)), 6.6)
        every = pl.concat(panels.values()) if panels else _beside(found.table)
        for number, (name, rows) in enumerate(panels.items(), 1):
            _panel(figure.add_subplot(1, len(panels), number), found, rows, every, name)
        words = (
            f"Prediction {found.registration.name}. Each point is a cell: a victim of one message size beside an "
            f"aggressor, the mean time of an iteration over that of the isolated run. Band: within a factor of "
            f"{judging.factor:g}. Measured figures: {'; '.join(found.cells.campaign.sources)}."
        )
        headline_of(figure, f"{found.cells.campaign.title}: predicted against measured slowdowns", words)
        return figure

    return make


def _beside(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("verdict").is_not_null())


def _panel(axes: Axes, found: Comparison, rows: pl.DataFrame, every: pl.DataFrame, name: str) -> None:
    judging = found.cells.campaign.judging
    both = [*every["measured_mean_ratio"], *every["predicted_mean_ratio"]]
    low, high = min(0.8, 0.9 * min(both)), 1.25 * max(both)
    axes.fill_between(
        [low, high],
        [low / judging.factor, high / judging.factor],
        [low * judging.factor, high * judging.factor],
        color=MUTED,
        alpha=0.12,
        linewidth=0,
    )
    axes.plot([low, high], [low, high], color=MUTED, linewidth=0.8)
    aggressors = rows["aggressor"].unique(maintain_order=True).to_list()
    for (verdict, victim, aggressor), of in rows.group_by("verdict", "victim", "aggressor", maintain_order=True):
        axes.scatter(
            of["measured_mean_ratio"],
            of["predicted_mean_ratio"],
            color=COLOURS[str(verdict)],
            marker=_MARKERS[
                (2 * list(found.cells.campaign.victims).index(str(victim)) + aggressors.index(aggressor))
                % len(_MARKERS)
            ],
            s=34,
            alpha=0.85,
            linewidth=0,
            label=f"{victim} beside {aggressor}: {verdict}",
            zorder=3,
        )
    wrong = rows.filter(pl.col("verdict") != RIGHT).head(_NAMED)
    for row in wrong.iter_rows(named=True):
        words = f"{data_size(row['msg_bytes'])}, {row['nodes']}"
        at = row["measured_mean_ratio"], row["predicted_mean_ratio"]
        axes.annotate(words, at, xytext=(5, 4), textcoords="offset points", fontsize=8.5, color=INK)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        plain_logarithms(axis, low, high)
    axes.set(xlim=(low, high), ylim=(low, high), xlabel="Measured ratio", ylabel="Predicted ratio")
    axes.set_title(f"Cells that are {name}" if name == "judged" else "Cells on which the model was chosen", loc="left")
    axes.legend(loc="upper left", fontsize=8.5, frameon=False)
    axes.set_aspect("equal")
