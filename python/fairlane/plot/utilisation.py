"""How busy and how blocked the ports are, by level of the tree or class of link."""

import numpy as np
import polars as pl

from fairlane.plot.boxes import draw_strips
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import bare, colours, percentages
from fairlane.results.run import Run
from fairlane.results.views import by_link
from fairlane.wording import percent

LEAST_RANGE = 0.05  # a panel shows at least this share of time, so that next to nothing looks like it


def draw(run: Run, axes: Given = None) -> Drawn | None:
    """Share of time that ports carry packets (left) and hold packets without credits (right); None without ports."""
    links = by_link(run.ports)
    if links.is_empty():
        return None
    level = pl.max_horizontal("from_level", "to_level").alias("level")
    down = (pl.col("from_level") > pl.col("to_level")).alias("down")
    classes = (
        links.with_columns(level, down)
        .group_by("class")
        .agg(pl.col("level", "down", "link").min(), pl.len().alias("count"))
    )
    classes = classes.sort("level", "down", "link")
    names = classes["class"].to_list()
    panels = Panels.of(axes, (12, 2.5 + 0.95 * len(names)), 1, 2, sharey=True)
    colour = colours(str(level) for level in classes["level"])
    dots = [colour[str(level)] for level in classes["level"]]
    labels = {
        "port_active_share": "Share of time carrying packets",
        "port_stalled_share": "Share of time stalled: packets wait, no credits",
    }
    for panel, (column, label) in zip(panels.axes, labels.items(), strict=True):
        groups = [links.filter(pl.col("class") == name)[column].to_numpy() for name in names]
        draw_strips(panel, groups, dots)
        largest = max(LEAST_RANGE, *(float(values.max(initial=0)) for values in groups))
        panel.set(xlim=(-0.02 * largest, min(1.02, 1.06 * largest)), xlabel=label)
        percentages(panel.xaxis)
        bare(panel)
    ticks = [f"{name}\n{count} ports" for name, count in classes.select("class", "count").iter_rows()]
    panels.axes[0].set_yticks(range(len(names)), ticks)
    caption = f"A dot is a port; boxes: quartiles and median; whiskers: extremes.{_busiest_port(links)}"
    return panels.headline_of_run(title(links), run, caption)


def title(links: pl.DataFrame) -> str:
    """How busy the busiest port is, compared with the others of its class; ``links`` has a row for each."""
    most = links.sort("port_active_share", "link").row(-1, named=True)
    alike = links.filter(pl.col("class") == most["class"])["port_active_share"]
    peak = percent(most["port_active_share"])
    words = f"The busiest port ({most['class']}) transmits {peak} of the time"
    if len(alike) == 1:
        return words
    median = percent(float(np.median(alike.to_numpy())))
    return f"{words}; the median of {len(alike)} {most['class']} ports is {median}"


def _busiest_port(links: pl.DataFrame) -> str:
    """The name of the busiest port, where links have names: they may be too long for a title."""
    if "link_name" not in links.columns:
        return ""
    most = links.sort("port_active_share", "link").row(-1, named=True)
    return f" Busiest port: {most['link_name']}."
