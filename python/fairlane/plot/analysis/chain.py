"""The walk from the longest wait back to its cause: a timeline of its ranks, and where the slow message waited."""

from itertools import pairwise
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fairlane.analysis.delays import LATE, SLOW
from fairlane.analysis.packets import OWN
from fairlane.analysis.result import Analysis
from fairlane.analysis.walk import Walk
from fairlane.plot.analysis.delays import COLOURS
from fairlane.plot.legend import label_at, legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import GRID, INK, MUTED, PALETTE, bare
from fairlane.wording import percent, seconds, time_unit

MOST_RANKS = 16  # steps of longer walks are drawn up to this rank
MOST_LINKS = 6  # how many links of the slow message are drawn, those with most waiting
ARROW = PALETTE[1]  # the colour of the slow message
WORK, WORK_WIDTH = PALETTE[7], 5.0  # colour and width of a rank's own work
BAR = 0.36  # height of a wait, of the distance between rows


def draw(found: Analysis, axes: Given = None) -> Drawn | None:
    """A row for each rank with its waits, numbered, and what ended them (left); the slow message's waiting (right)."""
    walk = found.walk
    if walk is None or walk.steps["message"][0] is None:
        return None
    steps = _shown(walk)
    ranks = list(dict.fromkeys(rank for step in steps for rank in _ranks(step)))
    hosts = found.view.host_names(found.job)
    with_links = not walk.delayers.is_empty()
    ratios = [1.7, 1] if with_links else [1]
    size = (15 if with_links else 12, max(3.6, 2.4 + 0.66 * len(ranks)))
    panels = Panels.of(axes, size, 1, len(ratios), width_ratios=ratios)
    if with_links:
        _links(panels.axes[1], walk)
    _timeline(panels.axes[0], walk, steps, {rank: f"rank {rank}\n{hosts[rank]}" for rank in ranks})
    note = f"{found.job}, {found.chosen.span.name}: from its longest wait (1) back along the critical path."
    return panels.headline_of_run(_title(walk), found.run, note)


def _shown(walk: Walk) -> list[dict[str, Any]]:
    """The steps whose message is known, up to a number of ranks."""
    kept: list[dict[str, Any]] = []
    ranks: set[int] = set()
    for step in walk.steps.iter_rows(named=True):
        ranks |= set(_ranks(step))
        if step["message"] is None or (kept and len(ranks) > MOST_RANKS):
            break
        kept.append(step)
    return kept


def _ranks(step: dict[str, Any]) -> list[int]:
    return [rank for rank in (step["rank"], step["from_rank"], step["to_rank"]) if rank is not None]


def _timeline(axes: Axes, walk: Walk, steps: list[dict[str, Any]], ranks: dict[int, str]) -> None:
    rows = {rank: at for at, rank in enumerate(ranks)}
    begin = min(min(step["since_ps"], step["origin_ps"]) for step in steps)
    factor, unit = time_unit((steps[0]["end_ps"] - begin) * 1e-12)
    window = begin, 1e-12 / factor
    for number, step in enumerate(steps):
        _step(axes, step, rows, window, is_slow=number == walk.slow)
    for later, step in pairwise(steps):
        _work(axes, later, step, rows, window)
    for number, step in enumerate(steps):
        _number(axes, number + 1, step, rows, window)
    for row in rows.values():
        axes.axhline(row, color=GRID, linewidth=1.0, zorder=1)
    axes.set_yticks(list(rows.values()), list(ranks.values()))
    axes.tick_params(axis="y", labelsize=9)
    label = f"Time [{unit}] from {seconds(begin * 1e-12)} of the run on"
    axes.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, None), xlabel=label)
    parts = [Patch(color=COLOURS[kind], label=word) for kind, word in ((LATE, "late partner"), (SLOW, "network"))]
    ended = Line2D([], [], color=INK, linewidth=1.3, marker=">", markersize=6, label="message that ends a wait")
    slow = Line2D([], [], color=ARROW, linewidth=3, label="slowest message")
    work = Line2D([], [], color=WORK, linewidth=WORK_WIDTH, label="own work")
    legend_above(axes, 5, handles=[*parts, work, ended, slow], handlelength=1.4, columnspacing=1.2, fontsize=11)


def _step(axes: Axes, step: dict[str, Any], rows: dict[int, int], window: tuple[int, float], *, is_slow: bool) -> None:
    begin, scale = window
    row = rows[step["rank"]]
    left = (step["since_ps"] - begin) * scale
    for part, kind in (("late_ps", LATE), ("network_ps", SLOW)):
        width = step[part] * scale
        axes.barh(row, width, left=left, height=BAR, color=COLOURS[kind], alpha=0.75, zorder=2)
        left += width
    other = step["from_rank"] if step["to_rank"] == step["rank"] else step["to_rank"]
    arrow: dict[str, Any] = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
    arrow |= {"color": ARROW, "linewidth": 3} if is_slow else {"color": INK, "linewidth": 1.3}
    at = {name: (step[name] - begin) * scale for name in ("origin_ps", "end_ps")}
    legs = [((at["origin_ps"], rows[other]), (at["end_ps"], row))]
    if step["origin_rank"] == step["rank"] == step["from_rank"] and step["received_ps"] is not None:
        there = ((step["received_ps"] - begin) * scale, rows[other])  # and the acknowledgement back
        legs = [((at["origin_ps"], row), there), (there, (at["end_ps"], row))]
    for start, end in legs:
        axes.annotate("", xy=end, xytext=start, arrowprops=arrow, zorder=4)


def _work(
    axes: Axes, later: dict[str, Any], step: dict[str, Any], rows: dict[int, int], window: tuple[int, float]
) -> None:
    """What the rank did between the end of a wait and the message that ended the wait after it."""
    begin, scale = window
    if step["rank"] == later["origin_rank"] and later["origin_ps"] > step["end_ps"]:
        at = [(ps - begin) * scale for ps in (step["end_ps"], later["origin_ps"])]
        look: dict[str, Any] = {"color": WORK, "linewidth": WORK_WIDTH, "solid_capstyle": "butt"}
        axes.plot(at, [rows[step["rank"]]] * 2, zorder=3, **look)


def _number(axes: Axes, number: int, step: dict[str, Any], rows: dict[int, int], window: tuple[int, float]) -> None:
    """The number of a wait in the order of the walk, and how long it was, over its bar."""
    begin, scale = window
    left = (step["since_ps"] - begin) * scale
    text = f"{number}: waited {seconds((step['end_ps'] - step['since_ps']) * 1e-12)}"
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    label_at(axes, text, (left, rows[step["rank"]] - BAR / 2), (1, 8), color=INK, zorder=5, bbox=behind)


def _links(axes: Axes, walk: Walk) -> None:
    """What the packets of the slow message waited for, by link, in the order in which they came to them."""
    waiting = pl.col("queueing_ps")
    by_job = walk.delayers.group_by("link", "by").agg(waiting.sum())
    most = by_job.group_by("link").agg(waiting.sum()).sort("queueing_ps", "link").tail(MOST_LINKS)["link"]
    shown = walk.links.filter(pl.col("link").is_in(most.implode()))
    factor, unit = time_unit(float(by_job.group_by("link").agg(waiting.sum())["queueing_ps"].to_numpy().max()) * 1e-12)
    colour = dict(zip(walk.jobs["by"].to_list(), [PALETTE[at] for at in (0, 3, 5, 6, 7, 4, 2, 1)], strict=False))
    colour |= {name: PALETTE[7] for name in walk.jobs["by"].to_list() if name not in colour}
    if OWN in colour:
        colour[OWN] = MUTED
    begin = [0.0] * shown.height
    for name, face in colour.items():
        of = by_job.filter(pl.col("by") == name).select("link", caused_ps="queueing_ps")
        rows = shown.join(of, on="link", how="left", maintain_order="left")
        widths = (rows["caused_ps"].fill_null(0) * 1e-12 / factor).to_list()
        axes.barh(range(shown.height), widths, left=begin, height=0.62, color=face, label=name, zorder=2)
        begin = [start + width for start, width in zip(begin, widths, strict=True)]
    axes.set_yticks(range(shown.height), [_two_lines(row) for row in shown.iter_rows(named=True)])
    axes.tick_params(axis="y", labelsize=9)
    axes.set(ylim=(shown.height - 0.4, -0.6), xlabel=f"Queueing delay of its packets by job [{unit}]")
    legend_above(axes, 4, handlelength=1.0, columnspacing=1.0, fontsize=10)
    bare(axes)


def _two_lines(link: dict[str, Any]) -> str:
    """A link by name, with its class, for a narrow margin."""
    begin, _, end = link["link_name"].rpartition(" to ")
    return f"{begin}\nto {end} ({link['class']})"


def _title(walk: Walk) -> str:
    if walk.cause == "computing":
        return f"A rank computed {seconds(walk.worked_ps * 1e-12)} longer than the one that waited for it"
    if walk.slow is None:
        return "What made the longest wait long lies before the record"
    step = walk.steps.row(walk.slow, named=True)
    whose = walk.jobs.row(0, named=True) if walk.jobs.height else None
    behind = f", mostly delayed by {whose['by']} ({percent(whose['share'])})" if whose else ""
    long = seconds(step["under_way_ps"] * 1e-12)
    return f"A message from rank {step['from_rank']} to {step['to_rank']} took {long}{behind}"
