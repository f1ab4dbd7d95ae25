"""Load against accepted throughput and latency."""

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from fairlane.engine.tables import PS
from fairlane.plot.legend import legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.scales import is_wide
from fairlane.plot.style import MUTED, PALETTE, percentages, plain_logarithms
from fairlane.saturation.results import Saturation
from fairlane.statistics import COVERAGE
from fairlane.wording import plural, seconds, time_unit


def draw(found: Saturation, axes: Given = None) -> Drawn | None:
    """Accepted throughput above, mean and 99% latency below; None without a load."""
    points = found.points.filter(pl.col("message_mean_ps").is_not_null())
    if not points.height:
        return None
    panels = Panels.of(axes, (9, 9), 2, sharex=True)
    top, bottom = panels.axes
    _accepted(top, points)
    _latency(bottom, points)
    _, saturated = found.saturation()
    if saturated is not None:
        for panel in panels.axes:
            panel.axvspan(saturated, 1.03 * points["load"].to_numpy().max(), color=MUTED, alpha=0.1, linewidth=0)
    meta = found.meta
    span = seconds((meta["duration_ps"] - meta["warm_up_ps"]) * PS)
    what = (
        f"{meta['scenario'].get('name', 'scenario')}, {plural(len(meta['seeds']), 'seed')}, {span} measured after "
        f"{seconds(meta['warm_up_ps'] * PS)} of warm-up. Bars: {COVERAGE:.0%} intervals over seeds. "
        "Dashed: latencies of saturated or undecided loads, which depend on the simulated time."
    )
    return panels.headline(found.headline(), what)


def _accepted(axes: Axes, points: pl.DataFrame) -> None:
    load = points["load"].to_numpy()
    axes.plot([0, load.max()], [0, load.max()], color=MUTED, linewidth=0.8, label="offered")
    axes.errorbar(load, points["accepted"].to_numpy(), yerr=_bars(points, "accepted"), **_style(0), label="accepted")
    axes.set(ylabel="Throughput", ylim=(0, None))
    percentages(axes.yaxis)
    axes.grid(axis="y")
    legend_above(axes)


def _latency(axes: Axes, points: pl.DataFrame) -> None:
    names = {"message_mean_ps": "mean", "message_p99_ps": "99th percentile"}
    values = points.select(*names).to_numpy() * PS
    log = is_wide(float(values.min()), float(values.max()))
    factor, unit = time_unit(float(values.min() if log else values.max()))
    steady = points["saturated"].to_numpy() == "no"
    # The dashed part begins at the last steady point.
    first = int(steady.argmin()) if not steady.all() else len(steady)
    load = points["load"].to_numpy()
    for number, (name, label) in enumerate(names.items()):
        of_name, bars = points[name].to_numpy() * PS / factor, _bars(points, name)
        bars = None if bars is None else [side * PS / factor for side in bars]
        style = _style(number)
        shown = None if bars is None else [side[:first] for side in bars]
        axes.errorbar(load[:first], of_name[:first], yerr=shown, **style, label=f"message latency, {label}")
        axes.plot(load[max(0, first - 1) :], of_name[max(0, first - 1) :], color=style["color"], linestyle="--")
    axes.set(xlabel="Offered load, share of the injection bandwidth", ylabel=f"Latency [{unit}]")
    if log:
        plain_logarithms(axes.yaxis, values.min() / factor, values.max() / factor)
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlim(0, 1.03 * load.max())
    percentages(axes.xaxis)
    axes.grid(axis="y")
    legend_above(axes)


def _bars(points: pl.DataFrame, name: str) -> list[Any] | None:
    """The lengths of the bars below and above each point; None without intervals."""
    if points[f"{name}_low"].null_count():
        return None
    half = ((points[f"{name}_high"] - points[f"{name}_low"]) / 2).to_numpy()
    return [half, half]


def _style(number: int) -> dict[str, Any]:
    return {"color": PALETTE[number], "marker": "o", "markersize": 4, "capsize": 2, "linewidth": 1.5}
