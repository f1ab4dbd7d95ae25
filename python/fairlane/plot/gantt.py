"""Schedules: hosts over time, a panel for each allocator; a bar is a job on hosts that follow each other.

Hosts stand in the order of their numbers, on a grid along Hilbert's curve: so what is compact in the fabric is compact
in the picture.

Bars have the colour of the job's pattern, or of its size where patterns are not known, in shades that tell jobs apart.
What is not covered is free.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle

from fairlane.placement import FabricView
from fairlane.placement.grid import host_order, sides_of
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import PALETTE
from fairlane.scheduler import Comparison, Placed, Schedule
from fairlane.wording import percent

WINDOW_H = 48.0  # hours that are shown of a longer schedule
_SHADES = (0.0, 0.22, 0.42)  # how much white is mixed into a colour: by turns for jobs
_SIZES = (1, 8, 32, 128)  # bounds of the sizes that have a colour of their own


def draw(
    found: Comparison,
    fabric: FabricView,
    title: str,
    kind_of: Callable[[int], str] | None,
    window: tuple[float, float],
    axes: Given = None,
) -> Drawn:
    """The schedules between two instants, s; ``kind_of`` is the pattern of a job by its number, if that is known."""
    label = (lambda one: kind_of(one.job.number)) if kind_of else _size
    shown = {
        name: [one for one in schedule.jobs if one.end > window[0] and one.start < window[1]]
        for name, schedule in found.schedules.items()
    }
    labels = sorted({label(one) for jobs in shown.values() for one in jobs}, key=_order)
    colour = dict(zip(labels, PALETTE, strict=False))
    is_grid = sides_of(fabric) is not None
    stretched = any(row.mean_slowdown != 1 for row in found.metrics.values())
    place = np.argsort(host_order(fabric, "hilbert" if is_grid else "number"))
    panels = Panels.of(axes, (13, 1.4 + 2.6 * len(shown)), len(shown), sharex=True)
    for panel, (name, jobs) in zip(panels.axes, shown.items(), strict=True):
        _panel(panel, jobs, label, colour, window, place)
        metrics = found.metrics[name]
        slower = f", mean slowdown {metrics.mean_slowdown:.3f}" if stretched else ""
        lost = f", {percent(metrics.interference)} lost to neighbours" if metrics.mean_slowdown != 1 else ""
        panel.set_title(f"{name}: utilisation {percent(metrics.utilisation)}{slower}{lost}", loc="left", fontsize=12)
        panel.set_ylabel("Host")
    panels.axes[-1].set_xlabel("Time [h]")
    handles = [Patch(color=colour[one], label=one) for one in labels]
    look: dict[str, Any] = {"ncols": len(handles), "borderaxespad": 0.2, "handlelength": 1.2, "columnspacing": 1.4}
    panels.axes[0].legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), **look)
    order = " Hosts stand along Hilbert's curve through the grid." if is_grid else ""
    span = f"Hours {window[0] / 3600:.0f} to {window[1] / 3600:.0f}"
    return panels.headline(title, f"{span}; figures are of the whole schedule.{order}")


def busiest_window(schedule: Schedule, hours: float = WINDOW_H) -> tuple[float, float]:
    """The hours in which most hosts are busy, from a full hour on; all of a shorter schedule."""
    begin, end = min(one.job.submit for one in schedule.jobs), max(one.end for one in schedule.jobs)
    if end - begin <= hours * 3600:
        return float(begin), end
    edges = np.arange(begin, end, 3600.0)
    busy = np.zeros(len(edges))
    for one in schedule.jobs:
        within = np.minimum(one.end, edges + hours * 3600) - np.maximum(one.start, edges)
        busy += np.maximum(within, 0.0) * len(one.hosts)
    busy[edges + hours * 3600 > end] = 0.0
    start = float(edges[int(busy.argmax())])
    return start, start + hours * 3600


def _panel(
    axes: Axes,
    jobs: Sequence[Placed],
    label: Callable[[Placed], str],
    colour: Mapping[str, str],
    window: tuple[float, float],
    place: npt.NDArray[np.int64],
) -> None:
    bars: list[Rectangle] = []
    faces = []
    for at, one in enumerate(jobs):
        start, end = max(one.start, window[0]), min(one.end, window[1])
        white = _SHADES[at % len(_SHADES)]
        face = tuple(white + (1 - white) * part for part in to_rgb(colour[label(one)]))
        hosts = np.sort(place[list(one.hosts)])
        for adjacent in np.split(hosts, np.flatnonzero(np.diff(hosts) != 1) + 1):
            bars.append(Rectangle((start / 3600, adjacent[0]), (end - start) / 3600, len(adjacent)))
            faces.append(face)
    axes.add_collection(PatchCollection(bars, facecolors=faces, edgecolors="white", linewidths=0.15))
    axes.set(xlim=(window[0] / 3600, window[1] / 3600), ylim=(0, len(place)))
    axes.set_yticks(sorted({round(part * len(place) / 4) for part in range(5)}))


def _size(one: Placed) -> str:
    bounds = [low for low in _SIZES if low <= one.job.hosts]
    above = _SIZES[len(bounds)] - 1 if len(bounds) < len(_SIZES) else None
    return f"{bounds[-1]} to {above} hosts" if above else f"{bounds[-1]} hosts and more"


def _order(label: str) -> tuple[int, str]:
    head = label.split(maxsplit=1)[0]
    return (int(head), "") if head.isdigit() else (0, label)
