"""The longest wait of every rank in an iteration and in the same of the isolated run (as Smith et al. 2018, Fig. 5)."""

import polars as pl

from fairlane.analysis.result import Analysis, apart_from_collectives
from fairlane.plot.legend import legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import INK, PALETTE
from fairlane.wording import seconds, time_unit


def draw(found: Analysis, axes: Given = None) -> Drawn | None:
    """A dot for each rank and stretch; None if nothing waited."""
    tables = [_longest(apart_from_collectives(stretch.delays)) for stretch in found.stretches]
    if all(table.is_empty() for table in tables):
        return None
    greatest = max(float(table["seconds"].to_numpy().max(initial=0.0)) for table in tables)
    factor, unit = time_unit(greatest)
    panels = Panels.of(axes, (12, 4.4))
    [panel] = panels.axes
    colours = [PALETTE[0], PALETTE[1]] if len(tables) > 1 else [PALETTE[1]]
    for stretch, table, colour in reversed(list(zip(found.stretches, tables, colours, strict=True))):
        size = (26 if colour == PALETTE[1] else 12) / (1 if table.height <= 512 else 3)
        alone = stretch.span.iteration is not None and len(tables) == 1
        label = f"{stretch.span.name} iteration" if alone else stretch.span.name
        y = table["seconds"].to_numpy() / factor
        panel.scatter(table["rank"].to_numpy(), y, s=size, color=colour, linewidths=0, label=label, zorder=3)
    panel.axhline(found.threshold_ps * 1e-12 / factor, color=INK, linestyle="--", linewidth=1.0)
    panel.set(ylim=(0, None), xlabel="Rank", ylabel=f"Longest wait [{unit}]")
    panel.grid(axis="y")
    legend_above(panel)
    worst = tables[-1].sort("seconds", "rank").row(-1, named=True) if tables[-1].height else None
    title = "Nothing waits" if worst is None else f"Rank {worst['rank']} waits longest, {seconds(worst['seconds'])}"
    note = f"Dashed: {seconds(found.threshold_ps * 1e-12)}; longer waits are counted as delays."
    return panels.headline_of_run(title, found.run, note)


def _longest(delays: pl.DataFrame) -> pl.DataFrame:
    return delays.group_by("rank").agg((pl.col("wait_ps").max() * 1e-12).alias("seconds")).sort("rank")
