"""The walk from the longest wait back to its cause, as a timeline of the ranks on it."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fairlane.analysis.delays import LATE, SLOW
from fairlane.analysis.figures.delays import COLOURS
from fairlane.analysis.result import Analysis
from fairlane.analysis.walk import Walk
from fairlane.plot.style import GRID, INK, PALETTE, canvas, headline
from fairlane.results.text import percent, seconds, time_unit

MOST_RANKS = 16
"""Steps of longer walks are drawn up to this rank."""


def draw(found: Analysis) -> Figure | None:
    """A row for each rank, from the one that waited; arrows are the messages that ended the waits."""
    walk = found.walk
    if walk is None or walk.steps["message"][0] is None:
        return None
    steps = _shown(walk)
    rows = {rank: at for at, rank in enumerate(dict.fromkeys(rank for step in steps for rank in _ranks(step)))}
    begin = min(min(step["since_ps"], step["origin_ps"]) for step in steps)
    factor, unit = time_unit((steps[0]["end_ps"] - begin) * 1e-12)
    scale = 1e-12 / factor
    figure = canvas(12, 2.4 + 0.62 * len(rows))
    axes = figure.add_subplot()
    for number, step in enumerate(steps):
        _step(axes, step, rows, (begin, scale), is_cause=number == walk.slow and walk.cause == "slow message")
    for row in rows.values():
        axes.axhline(row, color=GRID, linewidth=1.0, zorder=1)
    axes.set_yticks(list(rows.values()), [f"rank {rank}" for rank in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    start = found.slowest.period.name
    axes.set_xlabel(f"Time [{unit}] from {seconds(begin * 1e-12)} of the run on")
    parts = [
        Patch(color=COLOURS[LATE], label="waits: partner late"),
        Patch(color=COLOURS[SLOW], label="waits: network"),
    ]
    arrow = Line2D([], [], color=INK, linewidth=1.6, marker=">", markersize=6, label="message under way")
    slow = Line2D([], [], color=PALETTE[1], linewidth=3, label="slow message")
    look: dict[str, Any] = {"frameon": False, "ncols": 4, "loc": "lower left", "bbox_to_anchor": (0, 1.0)}
    axes.legend(handles=[*parts, arrow, slow], borderaxespad=0, **look)
    headline(
        figure, _title(walk), found.run, f"{found.job}, {start}: from its longest wait back along the critical path."
    )
    return figure


def _shown(walk: Walk) -> list[dict[str, Any]]:
    """The steps whose message is known, up to a number of ranks."""
    kept: list[dict[str, Any]] = []
    for step in walk.steps.iter_rows(named=True):
        ranks = {rank for one in [*kept, step] for rank in _ranks(one)}
        if step["message"] is None or (kept and len(ranks) > MOST_RANKS):
            break
        kept.append(step)
    return kept


def _ranks(step: dict[str, Any]) -> list[int]:
    return [rank for rank in (step["rank"], step["from_rank"], step["to_rank"]) if rank is not None]


def _step(axes: Axes, step: dict[str, Any], rows: dict[int, int], window: tuple[int, float], *, is_cause: bool) -> None:
    begin, scale = window
    row = rows[step["rank"]]
    left = (step["since_ps"] - begin) * scale
    for part, kind in (("late_ps", LATE), ("network_ps", SLOW)):
        width = step[part] * scale
        axes.barh(row, width, left=left, height=0.42, color=COLOURS[kind], zorder=2)
        left += width
    other = step["from_rank"] if step["to_rank"] == step["rank"] else step["to_rank"]
    arrow: dict[str, Any] = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
    arrow |= {"color": PALETTE[1], "linewidth": 3} if is_cause else {"color": INK, "linewidth": 1.3}
    start = ((step["origin_ps"] - begin) * scale, rows[other])
    axes.annotate("", xy=((step["end_ps"] - begin) * scale, row), xytext=start, arrowprops=arrow, zorder=4)


def _title(walk: Walk) -> str:
    if walk.cause == "computing":
        return f"A rank computed {seconds(walk.worked_ps * 1e-12)} longer than the one that waited for it"
    if walk.slow is None:
        return "What made the longest wait long lies before the record"
    step = walk.steps.row(walk.slow, named=True)
    whose = walk.jobs.row(0, named=True) if walk.jobs.height else None
    behind = f", held up by {whose['by']} ({percent(whose['share'])})" if whose else ""
    long = seconds(step["under_way_ps"] * 1e-12)
    return f"A message from rank {step['from_rank']} to {step['to_rank']} took {long}{behind}"
