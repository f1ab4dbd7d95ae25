"""Models of run times: their errors on held-out runs, and predicted times beside the true ones for some runs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairlane.core.wording import plural, significant
from fairlane.learn.advice.model import RunTimeModel
from fairlane.learn.predict.model import Predictor
from fairlane.learn.predict.validation import Comparison
from fairlane.views.charts import Axis, Layer, colour, course, layers
from fairlane.views.model import Chart, View
from fairlane.views.tables import Column, Row, Table, columns, fixed

Models = Mapping[str, Mapping[str, object]]
"""For the name of each line the values of the columns that say which model it is."""
_STEADY = 0.1
"""The least height of an axis, as a share of the mean time: a steady run is to look steady."""
_SEEN = {"base": "counters", "low-rank": "low-rank part", "sparse": "sparse part"}
_MOST = 10
"""Counters of which a terminal shows the importance."""
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


def fitted(predictor: Predictor) -> View:
    """A model of counters: why it was chosen, its errors on held-out runs, and which counters it needs."""
    off = predictor.validated
    chosen = ", the model chosen anew from the training runs of each" if predictor.compared else ""
    over = f"mean (standard deviation) over {off.folds} folds{chosen}"
    mse = f"{significant(off.mse, 4)} ({significant(off.mse_sd, 2)})"
    half_width = significant(predictor.half_width, 4)
    ranked = sorted(predictor.importance.items(), key=lambda item: -item[1])
    rows = [{"counter": name, "importance": 100 * importance} for name, importance in ranked]
    others = f"The others: at most {rows[_MOST]['importance']:.2f}." if len(rows) > _MOST else ""
    shown = [Column("counter", "counter"), Column("importance", "importance", fixed(2))]
    return View(
        title="Model of run times",
        headline=f"Model: {predictor.model} on the {_SEEN[predictor.pipeline.parts.name]}{_reason(predictor)}",
        facts=[
            f"{plural(predictor.runs, 'run')}; errors on held-out runs, {over}:",
            f"  mean square error {mse}, {off.mse_over_variance:.0%} of the variance",
            f"  max abs. error    {significant(off.max_abs_error, 4)} ({significant(off.max_abs_error_sd, 2)})",
            f"  interval          the prediction less and plus {half_width}, for {predictor.coverage:.0%}",
        ],
        parts=[
            Table(
                shown,
                rows,
                "Permutation importance, in percent of the variance",
                others,
                sentence=f"{plural(len(rows), 'counter')}.",
                most=_MOST,
            )
        ],
    )


def _reason(predictor: Predictor) -> str:
    """Why a model was chosen, if it was."""
    if not predictor.compared:
        return ""
    best, *others = predictor.compared
    error = f"mean square error on held-out runs {significant(best.mse, 4)}"
    if not others:
        return f": {error}"
    second = f"{others[0].model} on the {_SEEN[others[0].parts]} {significant(others[0].mse, 4)}"
    return f": {error}, the least of {len(predictor.compared)}; next {second}"


def errors(predicted: pl.DataFrame, target: NDArray[np.float64], known: Predictor) -> str:
    """Describe the errors of a model's predictions where the time is known."""
    off = predicted["predicted"].to_numpy() - target
    mse, largest = significant((off**2).mean(), 4), significant(abs(off).max(), 4)
    inside = (abs(off) <= known.half_width).mean()
    error = f"mean square error {mse}, maximum absolute error {largest}"
    return f"{error}, {inside:.0%} of {known.target} inside the interval"


def learned(model: RunTimeModel) -> View:
    """A model of the run times of alternatives: its errors for held-out applications and conditions."""
    kinds = (("held-out applications", model.by_application), ("held-out conditions", model.by_condition))
    facts = []
    for what, quality in kinds:
        coverage = f"{quality.coverage:.0%} coverage ({quality.coverage_without_margin:.0%} without its margin)"
        facts += [
            f"  {what}: mean error {quality.mean_error:.1%}, 90th percentile {quality.p90_error:.1%}",
            f"    first guess alone {quality.guess_error:.1%}, a constant {quality.baseline_error:.1%}",
            f"    80% interval: {coverage}, upper / lower end {quality.interval_ratio:.2f}",
            f"    regret of the advised alternative {quality.regret:.1%}, of a random one {quality.random_regret:.1%}",
        ]
    headline = f"{plural(model.runs, 'run')}; errors on held-out runs:"
    return View(title="Model of run times", headline=headline, facts=facts, parts=())


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


def _telling_runs(predictions: pl.DataFrame) -> list[str | int]:
    """Runs from the one whose times vary least to the one where they vary most, in even steps of rank."""
    ranked = predictions.group_by("run").agg(spread=pl.col("seconds").std()).sort("spread", "run")["run"].to_list()
    return [ranked[round(at * (len(ranked) - 1) / 3)] for at in range(4)] if len(ranked) > 4 else ranked


def runs(name: str, predictions: pl.DataFrame, models: Models) -> Iterator[Chart]:
    """A chart for each of some runs, all in one picture: times by timestep, true and as models predict them."""
    headline = f"Timesteps of held-out runs, and predictions of {' and '.join(models)}"
    for at, run in enumerate(_telling_runs(predictions)):
        timesteps = predictions.filter(pl.col("run") == run).sort("timestep")
        lines = {line: timesteps.filter(**what) for line, what in models.items()}
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
    encoding: dict[str, Any] = {"x": step.x("timestep"), "y": time.y("time"), "color": colour("line", names)}
    yield from course(rows, told, {"strokeWidth": 1.4}, {"size": 16}, **encoding)
