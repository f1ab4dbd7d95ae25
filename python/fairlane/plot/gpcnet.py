"""Congestion impact factors of GPCNeT by transport."""

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from numpy.typing import NDArray

from fairlane.gpcnet.network_tests import TESTS
from fairlane.gpcnet.results import Gpcnet
from fairlane.plot.legend import legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import MUTED, PALETTE, plain_logarithms
from fairlane.statistics import COVERAGE
from fairlane.wording import plural

_LOWEST = 0.8  # the lower end of the axis, unless an interval reaches below it
_WIDTH = 0.7  # of the points of a network test, where the distance of two tests is 1


def draw(found: Gpcnet, axes: Given = None) -> Drawn | None:
    """Mean and 99th percentile for each network test and transport; None without a factor."""
    impact = found.impact.drop_nulls(["impact", "impact_p99"])
    if not impact.height:
        return None
    panels = Panels.of(axes, (9, 5), 1)
    (panel,) = panels.axes
    transports = impact["transport"].unique(maintain_order=True).to_list()
    for number, name in enumerate(transports):
        own = impact.filter(pl.col("transport") == name)
        middle = own["test"].replace_strict({test: at for at, test in enumerate(TESTS)}).to_numpy()
        step = _WIDTH / (2 * len(transports))
        first = middle - _WIDTH / 2 + step * (2 * number + 0.5)
        _points(panel, first, own, "impact", color=PALETTE[number], label=name)
        _points(panel, first + step, own, "impact_p99", color=PALETTE[number], markerfacecolor="none")
    panel.set_xticks(range(len(TESTS)), list(TESTS))
    panel.set(ylabel="Congestion impact factor", xlim=(-0.5, len(TESTS) - 0.5))
    ends = [f"{name}{end}" for name in ("impact", "impact_p99") for end in ("", "_low", "_high")]
    lowest, highest = impact.select(
        pl.min_horizontal(pl.col(ends)).min().alias("low"), pl.max_horizontal(pl.col(ends)).max().alias("high")
    ).row(0)
    plain_logarithms(panel.yaxis, min(_LOWEST, lowest), max(1.0, highest))
    panel.axhline(1, color=MUTED, linewidth=0.8)
    panel.grid(axis="y")
    legend_above(panel)
    meta = found.meta
    tests = ", ".join(test.title for test in TESTS.values())
    what = (
        f"{meta['scenario'].get('name', 'scenario')}, {plural(meta['hosts'], 'host')}, {meta['ranks_per_host']} ranks "
        f"per host. {tests}. Filled: mean; open: 99th percentile. "
        f"Bars: {COVERAGE:.0%} intervals over {plural(len(meta['seeds']), 'random assignment')}."
    )
    return panels.headline(found.headline(), what)


def _points(axes: Axes, place: NDArray[Any], rows: pl.DataFrame, name: str, **style: Any) -> None:
    """A measure of the network tests of a transport, with its intervals."""
    value = rows[name].to_numpy()
    low, high = (rows[f"{name}_{end}"].fill_null(rows[name]).to_numpy() for end in ("low", "high"))
    axes.errorbar(place, value, yerr=[value - low, high - value], marker="o", linestyle="none", capsize=2, **style)
