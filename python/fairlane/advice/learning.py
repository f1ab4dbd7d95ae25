"""Fits the model of run times to a table of runs, and finds out how far it is off by cross-validation.

Twice: each application is predicted by a model that was fitted to the others, and each condition by one that has seen
the applications under other conditions only.
"""

from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import polars as pl
from numpy.typing import NDArray

from fairlane.advice.model import FEATURES, QUANTILES, Floats, ModelError, RunTimeModel
from fairlane.errors import Problem, ScenarioError
from fairlane.trees import TreeSum, boosting_of

__all__ = ["COLUMNS", "learn", "read_runs"]

COLUMNS = (
    "application",
    "rails",
    "interference_rails",
    "interference_level",
    "link_share",
    "cap_w",
    "placement",
    "run_time_ms",
    "computing_ms",
    "waits_for_itself_ms",
)
"""What a table of runs has: those of ``fairlane reproduce patki2016`` do."""
CONDITION = ("rails", "interference_rails", "link_share", "cap_w", "placement")
"""Columns that tell conditions from each other."""
FOLDS = 5
TREES, DEPTH, RATE, LEAST = 60, 3, 0.12, 3
"""Trees, their depth, what each one counts, and the fewest runs of a leaf."""
Fitted = dict[str, TreeSum]


def read_runs(path: Path) -> pl.DataFrame:
    """A table of runs, CSV or Parquet; raises ``ScenarioError``."""
    try:
        found = (
            pl.read_parquet(path)
            if path.suffix == ".parquet"
            else pl.read_csv(path, schema_overrides={"rails": pl.String, "interference_rails": pl.String})
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ScenarioError(Problem("", f"cannot be read: {error}", file=str(path))) from None
    missing = [name for name in COLUMNS if name not in found.columns]
    if missing:
        raise ScenarioError(Problem(missing[0], "there is no such column", allowed=", ".join(COLUMNS), file=str(path)))
    return found


def learn(runs: pl.DataFrame) -> RunTimeModel:
    """Fits a model. Raises ``ScenarioError`` if an application has no run alone, or there are fewer than two."""
    table = _described(runs.select(COLUMNS).unique(maintain_order=True))
    rows, y = table.select(FEATURES).to_numpy().astype(float), numpy.log(table["ratio"].to_numpy())
    if table["application"].n_unique() < 2:
        raise ScenarioError(Problem("application", "one application only: nothing says how others differ"))
    conditions = table.select(pl.struct(CONDITION).rank("dense") - 1).to_series().to_numpy()
    applications = table.select(pl.col("application").rank("dense") - 1).to_series().to_numpy()
    # Neighbouring conditions are alike: dealt at random they come apart.
    dealt = numpy.random.default_rng(1).permutation(int(conditions.max()) + 1) % FOLDS
    return RunTimeModel(
        version=version("fairlane"),
        data=sha256(runs.select(COLUMNS).write_csv().encode()).hexdigest()[:32],
        runs=table.height,
        features=list(FEATURES),
        quantiles=_fit(rows, y),
        by_application=_validated(table, rows, y, applications),
        by_condition=_validated(table, rows, y, dealt[conditions]),
    )


def _described(runs: pl.DataFrame) -> pl.DataFrame:
    """With features, and run time over that alone: the fastest run of the application without interference."""
    alone = runs.filter(pl.col("interference_level").is_null()).sort("run_time_ms").group_by("application").first()
    unknown = [
        name for name in runs["application"].unique(maintain_order=True) if name not in set(alone["application"])
    ]
    if unknown:
        raise ScenarioError(Problem("interference_level", "no run without interference", unknown[0], "an empty cell"))
    fingerprint = alone.select(
        "application",
        reference=pl.col("run_time_ms"),
        compute_share=pl.col("computing_ms") / pl.col("run_time_ms"),
        own_waiting=pl.col("waits_for_itself_ms") / pl.col("run_time_ms"),
    )
    other, own = pl.col("interference_rails").fill_null(""), pl.col("rails")
    shared = pl.when(other == "").then(0.0).when((other == "both") | (other == own)).then(1.0)
    return runs.join(fingerprint, on="application", maintain_order="left").with_columns(
        ratio=pl.col("run_time_ms") / pl.col("reference"),
        one_adapter=(own != "both").cast(pl.Float64),
        adapters_shared=shared.when(own == "both").then(0.5).otherwise(0.0),
        interference=pl.col("interference_level").is_not_null().cast(pl.Float64),
        link_share=pl.col("link_share").fill_null(1.0),
        packed=(pl.col("placement") == "packed").cast(pl.Float64),
        spread=(pl.col("placement") == "spread").cast(pl.Float64),
    )


def _fit(rows: Floats, y: Floats) -> Fitted:
    """Trees for each quantile."""
    try:
        from sklearn.ensemble import GradientBoostingRegressor
    except ModuleNotFoundError:
        words = 'fitting a model takes scikit-learn: pip install "fairlane[learn]"'
        raise ScenarioError(Problem("", words)) from None
    found = {}
    for name in QUANTILES:
        made = GradientBoostingRegressor(
            loss="quantile",
            alpha=float(name),
            n_estimators=TREES,
            max_depth=DEPTH,
            learning_rate=RATE,
            min_samples_leaf=LEAST,
            random_state=0,
        ).fit(rows, y)
        found[name] = boosting_of(made)
    return found


def _validated(table: pl.DataFrame, rows: Floats, y: Floats, fold: NDArray[Any]) -> ModelError:
    """The error on every fold, predicted by a model that was fitted to the others."""
    low, middle, high, constant = (numpy.zeros(len(y)) for _ in range(4))
    for one in numpy.unique(fold):
        out = fold == one
        fitted = _fit(rows[~out], y[~out])
        ends = numpy.sort([fitted[name].predict(rows[out]) for name in QUANTILES], axis=0)
        low[out], middle[out], high[out] = ends
        constant[out] = numpy.median(y[~out])
    off, plain = numpy.abs(numpy.exp(middle - y) - 1), numpy.abs(numpy.exp(constant - y) - 1)
    chosen, any_of = zip(*_regrets(table, middle, y), strict=True)
    return ModelError(
        runs=len(y),
        mean=_rounded(off.mean()),
        worst_tenth=_rounded(numpy.quantile(off, 0.9)),
        without=_rounded(plain.mean()),
        inside=_rounded(((low <= y) & (y <= high)).mean()),
        regret=_rounded(numpy.mean(chosen)),
        regret_of_any=_rounded(numpy.mean(any_of)),
    )


def _regrets(table: pl.DataFrame, predicted: Floats, y: Floats) -> Iterator[tuple[float, float]]:
    """Of each application, interference and cap: what its predicted best loses, and what any alternative does."""
    cases = table.select(pl.struct("application", "interference_level", "interference_rails", "cap_w").rank("dense"))
    numbers = cases.to_series().to_numpy()
    for case in numpy.unique(numbers):
        own = numpy.flatnonzero(numbers == case)
        lost = numpy.exp(y[own] - y[own].min()) - 1
        yield float(lost[predicted[own].argmin()]), float(lost.mean())


def _rounded(value: Any) -> float:
    return round(float(value), 4)
