"""Models of run times, cross-validated: their errors, and predicted times beside the true ones for some runs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from fairlane.predict import Comparison
from fairlane.views.charts import Axis, Layer, chart, colour, described, layers
from fairlane.views.model import Chart, View
from fairlane.views.tables import Column, Row, Table, columns
from fairlane.wording import significant

Models = Mapping[str, Mapping[str, object]]
"""For the name of each line the values of the columns that say which model it is."""
_STEADY = 0.1
"""The least height of an axis, as a share of the mean time: a steady run is to look steady."""
_NOTE = "Held-out runs, from the steadiest to the most varied: the time axes differ."


def view(facts: str, models: Comparison, clusters: Comparison | None) -> View:
    """Errors of models and of local models; pictures of the predictions of one of each."""
    best = models.table.sort("mse").row(0, named=True)
    which = f"{best['model']} on the {best['parts']} part, {best['setting']}"
    return View(
        title="Predictions of run times",
        headline=f"The least mean square error is that of {which}: {best['mse_over_variance']:.0%} of the variance",
        facts=[facts],
        parts=[*_parts(models, clusters)],
    )


def _parts(models: Comparison, clusters: Comparison | None) -> Iterator[Table | Chart]:
    first = models.table["hyperparameters"][0]
    gbm = {"model": "gbm", "hyperparameters": first, "parts": "sparse", "setting": "inductive"}
    yield from runs("predictions", models.predictions, {"gbm on the sparse part": gbm})
    parts, setting = Column("parts", "parts", left=True), Column("setting", "setting", left=True)
    note = "Mean (standard deviation) over folds; the maximum absolute error is that of a fold."
    chosen = Column("hyperparameters", "hyperparameters", left=True)
    several = [chosen] if models.table["hyperparameters"].n_unique() > 1 else []
    said = f"{models.table.height} models and settings."
    heads = [Column("model", "model"), *several, parts, setting]
    yield Table([*heads, *_ERRORS], models.table.to_dicts(), "Models", note, sentence=said)
    if clusters:
        apart = {"setting": "inductive"}
        lines = {"one model": {"clusters": 1, **apart}, "two local models": {"clusters": 2, **apart}}
        yield from runs("local", clusters.predictions, lines)
        title = "Local models, gbm on the sparse part"
        said = f"{clusters.table.height} numbers of clusters and settings."
        yield Table([*columns(clusters="clusters"), setting, *_ERRORS], clusters.table.to_dicts(), title, sentence=said)


def _with_deviation(key: str, row: Row) -> str:
    return f"{significant(row[key], 4)} ({significant(row[f'{key}_sd'], 2)})"


_ERRORS = [
    Column("mean square error", partial(_with_deviation, "mse")),
    Column("max. absolute error", partial(_with_deviation, "max_abs_error")),
    Column("of the variance", "mse_over_variance", lambda share: f"{share:.0%}"),
]


def telling_runs(predictions: pl.DataFrame, count: int = 4) -> list[str | int]:
    """Runs from the one whose times vary least to the one where they vary most, in even steps of rank."""
    ranked = predictions.group_by("run").agg(spread=pl.col("seconds").std()).sort("spread", "run")["run"].to_list()
    if len(ranked) <= count:
        return ranked
    return [ranked[round(at * (len(ranked) - 1) / (count - 1))] for at in range(count)]


def runs(name: str, predictions: pl.DataFrame, models: Models) -> Iterator[Chart]:
    """A chart for each of some runs, all in one picture: times by timestep, true and as models predict them."""
    headline = f"Timesteps of held-out runs, and predictions of {' and '.join(models)}"
    for at, run in enumerate(telling_runs(predictions)):
        own = predictions.filter(pl.col("run") == run).sort("timestep")
        lines = {line: own.filter(**what) for line, what in models.items()}
        truth = next(iter(lines.values()))
        lines["truth"] = truth.with_columns(predicted=pl.col("seconds"))
        rows = [
            {"timestep": step, "line": line, "time": time, "truth": true}
            for line, table in lines.items()
            for step, time, true in table.select("timestep", "predicted", "seconds").iter_rows()
        ]
        off = max(abs(row["time"] - row["truth"]) for row in rows)
        title = str(run) if isinstance(run, str) else f"run {run}"
        said = f"{title}: predictions are off by at most {significant(off)}."
        yield Chart(f"{name}{at}", title, layers(170, *_lines(rows, list(lines))), said, _NOTE, rows, name, headline)


def _lines(rows: Sequence[Row], names: Sequence[str]) -> Iterator[Layer]:
    times = [row["time"] for row in rows]
    mean = sum(times) / len(times)
    step = Axis.of((row["timestep"] for row in rows), "Timestep", "count", scale="linear", zero=False)
    span = (mean * (1 - _STEADY / 2), mean * (1 + _STEADY / 2))
    time = Axis.of([*times, *span], "Time", scale="linear", zero=False)
    told = [Column("timestep", "timestep"), Column("", "line"), *columns(significant, time="time", truth="truth")]
    shown, tooltip = described(rows, told)
    base: Any = chart(shown).encode(x=step.x("timestep"), y=time.y("time"), color=colour("line", names))
    yield base.mark_line(strokeWidth=1.4)
    yield base.mark_point(size=16).encode(tooltip=tooltip)
