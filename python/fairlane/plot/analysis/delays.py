"""Waiting by neighbours, split into late partners and the network, and what the two-sided inference makes of it."""

import polars as pl
from matplotlib.axes import Axes

from fairlane.analysis.delays import LATE, SLOW, by_neighbour, confusion
from fairlane.analysis.result import Analysis
from fairlane.plot.legend import label_at, legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import PALETTE, bare
from fairlane.wording import percent, seconds, time_unit

COLOURS = {LATE: PALETTE[4], SLOW: PALETTE[2]}  # of the two kinds of delay, in every picture


def draw(found: Analysis, axes: Given = None) -> Drawn | None:
    """Time waited for each type of neighbour, the longest delay of each, and how often the inference is right."""
    delays = found.point_to_point
    if delays.is_empty():
        return None
    table = by_neighbour(delays).filter(pl.col("neighbour").is_not_null())
    judged = confusion(delays)
    panels = Panels.of(axes, (13, 2.6 + 0.55 * max(table.height, 3)), 1, 3, width_ratios=[1.2, 1.2, 1])
    left, middle, right = panels.axes
    _sums(left, table)
    _longest(middle, table)
    _judged(right, judged)
    if panels.own:
        middle.sharey(left)
    middle.tick_params(axis="y", labelleft=False)
    whose = "Messages of collectives." if bool(delays["collective"].all()) else "Point-to-point messages."
    return panels.headline_of_run(_title(table), found.run, f"{found.job}, {found.chosen.span.name}. {whose}")


def _sums(axes: Axes, table: pl.DataFrame) -> None:
    factor, unit = time_unit(float(table["wait_ps"].to_numpy().max()) * 1e-12)
    scale = 1e-12 / factor
    places = list(range(table.height))
    late, network = table["late_ps"].to_numpy() * scale, table["network_ps"].to_numpy() * scale
    axes.barh(places, late, height=0.66, color=COLOURS[LATE], label=LATE, zorder=2)
    axes.barh(places, network, left=late, height=0.66, color=COLOURS[SLOW], label=SLOW, zorder=2)
    axes.set_yticks(places, table["neighbour"].cast(pl.String).to_list())
    axes.set(ylim=(table.height - 0.4, -0.6), xlabel=f"Waiting of all ranks [{unit}]")
    legend_above(axes, handlelength=1.2)
    bare(axes)


def _longest(axes: Axes, table: pl.DataFrame) -> None:
    factor, unit = time_unit(float(table["greatest_ps"].to_numpy().max()) * 1e-12)
    for shift, column, kind in ((-0.16, "greatest_late_ps", LATE), (0.16, "greatest_network_ps", SLOW)):
        x = table[column].to_numpy() * 1e-12 / factor
        places = [place + shift for place in range(table.height)]
        axes.hlines(places, 0, x, color=COLOURS[kind], linewidth=2.5, zorder=2)
        axes.plot(x, places, "o", color=COLOURS[kind], markersize=7, zorder=3)
    axes.set(xlim=(0, None), xlabel=f"Longest of a wait [{unit}]")
    bare(axes)


def _judged(axes: Axes, table: pl.DataFrame) -> None:
    """The delays by what the inference holds them for, in the colours of what they are."""
    total = int(table["count"].sum())
    for place, inferred in enumerate((LATE, SLOW)):
        begin = 0
        for truth in (LATE, SLOW):
            cell = table.filter(pl.col("inferred") == inferred, pl.col("truth") == truth)
            count = int(cell["count"].sum())
            axes.barh(place, count, left=begin, height=0.5, color=COLOURS[truth], zorder=2)
            begin += count
        label_at(axes, f"{begin:,}", (begin, place), (5, 0))
    axes.set_yticks([0, 1], ["held for\nlate partner", "held for slow\ncommunication"])
    axes.margins(x=0.15)
    axes.set(xlim=(0, None), ylim=(1.7, -0.7), xlabel="Delays; colour: what they are")
    right = int(table.filter("right")["count"].sum())
    text = f"right: {percent(right / total)}" if total else "no delay to judge"
    axes.set_title(f"Two-sided inference, {text}", loc="right", fontsize=11)
    bare(axes)


def _title(table: pl.DataFrame) -> str:
    worst = table.sort("greatest_network_ps").row(-1, named=True)
    slowest = seconds(worst["greatest_network_ps"] * 1e-12)
    return f"The slowest message, {slowest}, is between neighbours: {worst['neighbour']}"
