"""Computing and communication per rank, and the MPI calls that take most of it (Smith et al. 2018, Figure 3)."""

import polars as pl
from matplotlib.axes import Axes

from fairlane.analysis.result import PARTS, Analysis, dominant_share, spread
from fairlane.plot.legend import label_at
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import INK, PALETTE, bare, percentages
from fairlane.wording import percent, plural, seconds, time_unit

MOST_CALLS = 8  # how many calls are drawn


def draw(found: Analysis, axes: Given = None) -> Drawn | None:
    """Mean time of a rank by what it was spent on, with the range over ranks (left); shares of MPI time (right)."""
    if not found.breakdown.height:
        return None
    panels = Panels.of(axes, (12, 4.6), 1, 2, width_ratios=[1.15, 1])
    left, right = panels.axes
    table = spread(found.breakdown)
    _parts(left, table)
    _calls(right, found.calls.head(MOST_CALLS))
    share = percent(dominant_share(found.calls))
    ranks = f"{plural(found.breakdown.height, 'rank')} of {found.job}: bars are means, lines the range over ranks."
    title = f"Waits and allreduce take {share} of the time in MPI" if found.calls.height else "No MPI call was made"
    return panels.headline_of_run(title, found.run, ranks)


def _parts(axes: Axes, table: pl.DataFrame) -> None:
    rows = {row["part"]: row for row in table.iter_rows(named=True)}
    names = ["compute", "communication", *PARTS[1:]]
    factor, unit = time_unit(max(row["max"] for row in rows.values()))
    for place, name in enumerate(names):
        row = rows[name]
        mean, low, high = (row[key] / factor for key in ("mean", "min", "max"))
        inner = place > 1
        colour = PALETTE[0] if name == "compute" else PALETTE[1]
        axes.barh(place, mean, height=0.45 if inner else 0.7, color=colour, alpha=0.55 if inner else 1.0, zorder=2)
        axes.plot([low, high], [place, place], color=INK, linewidth=1.6, zorder=3, marker="|", markersize=9)
        label_at(axes, seconds(row["mean"]), (high, place))
    axes.set_yticks(range(len(names)), ["computing", "communication", "  late partner", "  network", "  other MPI"])
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.set(xlim=(0, None), xlabel=f"Time of a rank [{unit}]")
    bare(axes)


def _calls(axes: Axes, table: pl.DataFrame) -> None:
    axes.barh(range(table.height), table["share"].to_list(), height=0.7, color=PALETTE[1], zorder=2)
    for place, share in enumerate(table["share"].to_list()):
        label_at(axes, percent(share), (share or 0, place), (6, 0))
    axes.set_yticks(range(table.height), table["call"].to_list())
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.set(xlim=(0, None), xlabel="Share of the time in MPI")
    percentages(axes.xaxis)
    bare(axes)
