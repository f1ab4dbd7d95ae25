"""Run times as models predict them, against the truth, timestep by timestep, for some runs that they have not seen."""

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import GRID, INK, MUTED, PALETTE


def telling_runs(predictions: pl.DataFrame, count: int = 4) -> list[str | int]:
    """Runs from the one whose times vary least to the one where they vary most, in even steps of rank."""
    ranked = predictions.group_by("run").agg(spread=pl.col("seconds").std()).sort("spread", "run")["run"].to_list()
    if len(ranked) <= count:
        return ranked
    return [ranked[round(at * (len(ranked) - 1) / (count - 1))] for at in range(count)]


def draw_predictions(
    predictions: pl.DataFrame,
    models: Mapping[str, Mapping[str, object]],
    runs: Sequence[str | int] | None = None,
    *,
    title: str = "Timesteps of runs that the model has not seen",
    unit: str = "s",
    axes: Given = None,
) -> Drawn:
    """A panel for each run.

    Args:
        predictions: As of a ``Comparison``.
        models: For the name of each line the values of the columns that say which model it is.
        runs: Which runs; by default four from the steadiest to the most varied.
        title: What is seen.
        unit: Of the times.
        axes: Where to draw, an axes for each run; without them a new figure.
    """
    chosen = list(runs) if runs is not None else telling_runs(predictions)
    columns = min(2, len(chosen)) if axes is None else 1
    lines = -(-len(chosen) // columns)
    panels = Panels.of(axes, (5.6 * columns, 1.4 + 2.6 * lines), lines, columns)
    for number, panel in enumerate(panels.axes):
        if number >= len(chosen):
            panel.set_visible(False)
            continue
        run = chosen[number]
        _panel(panel, predictions.filter(pl.col("run") == run).sort("timestep"), models)
        panel.set_title(str(run) if isinstance(run, str) else f"run {run}", loc="left", fontsize=12)
        if number >= len(chosen) - columns:
            panel.set_xlabel("Timestep")
        if number % columns == 0:
            panel.set_ylabel(f"Time ({unit})")
    handles, labels = panels.axes[0].get_legend_handles_labels()
    if panels.own:
        panels.figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
    else:
        panels.axes[0].legend()
    return panels.headline(title, "The time axes differ: runs are from the steadiest to the most varied.")


def _panel(axes: Axes, run: pl.DataFrame, models: Mapping[str, Mapping[str, object]]) -> None:
    own = run
    for number, (name, what) in enumerate(models.items()):
        own = run.filter(*(pl.col(column) == value for column, value in what.items()))
        axes.plot(
            own["timestep"], own["predicted"], color=PALETTE[number], linewidth=1.8, label=name, zorder=4 + number
        )
    axes.plot(
        own["timestep"], own["seconds"], color=INK, linewidth=1.2, marker="o", markersize=3.5, label="truth", zorder=3
    )
    axes.grid(axis="y", color=GRID)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    low, high = axes.get_ylim()
    # A steady run is to look steady.
    least = 0.1 * float(own["seconds"].mean())  # type: ignore[arg-type]
    if high - low < least:
        middle = (low + high) / 2
        axes.set_ylim(middle - least / 2, middle + least / 2)
    axes.tick_params(colors=MUTED)
