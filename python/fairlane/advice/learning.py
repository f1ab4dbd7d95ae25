"""Fits the model of run times to a table of runs, and finds out how far it is off by cross-validation.

Twice: each application is predicted by a model that was fitted to the others, and each condition by one that has seen
the applications under other conditions only. The margin of the intervals is found in the same way, on folds of the runs
that a model is fitted to (cross-conformal prediction, V. Vovk, Ann. Math. Artif. Intell. 74, 2015; groups stay
together, as the next application is not one of these). What is predicted had no part in either.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import Any

import numpy
import polars as pl
from numpy.typing import NDArray

from fairlane.advice.features import COLUMNS, FEATURES, described
from fairlane.advice.interval import COVERAGE
from fairlane.advice.model import QUANTILES, Floats, ModelError, RunTimeModel, interval
from fairlane.errors import Problem, ScenarioError
from fairlane.results.errors import ResultsError
from fairlane.results.manifest import check_listed
from fairlane.results.parquet import read_parquet
from fairlane.trees import TreeSum, boosting_of

__all__ = ["learn", "read_runs"]

CONDITION = ("case", "beside", "rails", "link_share", "cap_w", "placement")
"""Columns that tell conditions from each other."""
CASE = ("case", "application", "beside", "cap_w")
"""What an application cannot choose."""
FOLDS = 5
TREES, DEPTH, RATE, LEAST = 60, 3, 0.12, 3
"""Trees, their depth, what each one counts, and the fewest runs of a leaf; never tuned."""
Fitted = dict[str, TreeSum]
Groups = NDArray[Any]


def read_runs(paths: Sequence[Path]) -> pl.DataFrame:
    """Tables of runs, CSV or Parquet, one below the other; raises ``ScenarioError``."""
    return pl.concat([_read(path) for path in paths], how="vertical_relaxed")


def _read(path: Path) -> pl.DataFrame:
    text = dict.fromkeys(("case", "application", "rails", "placement", "beside"), pl.String)
    try:
        check_listed(path)
        found = read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, schema_overrides=text)
    except ResultsError as error:
        raise ScenarioError(Problem("", str(error))) from error
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ScenarioError(Problem("", f"cannot be read: {error}", file=str(path))) from None
    missing = [name for name in COLUMNS if name not in found.columns]
    if missing:
        raise ScenarioError(Problem(missing[0], "there is no such column", allowed=", ".join(COLUMNS), file=str(path)))
    kinds = {name: text.get(name, pl.Float64) for name in COLUMNS}
    try:
        return found.select(pl.col(name).cast(kind) for name, kind in kinds.items())
    except pl.exceptions.PolarsError as error:
        raise ScenarioError(Problem("", f"a column has values of another kind: {error}", file=str(path))) from None


@dataclass(frozen=True)
class _Runs:
    """What models are fitted to."""

    rows: Floats
    y: Floats
    """Logarithm of run time over the reference's, less that of the first guess."""
    groups: Groups
    """Runs that stay together."""

    def part(self, chosen: NDArray[Any]) -> "_Runs":
        return _Runs(self.rows[chosen], self.y[chosen], self.groups[chosen])


def learn(runs: pl.DataFrame) -> RunTimeModel:
    """Fits a model. Raises ``ScenarioError`` if an application has no run alone, or there are fewer than three."""
    table = described(runs.select(COLUMNS).unique(maintain_order=True))
    if table["application"].n_unique() < 3:
        raise ScenarioError(Problem("application", "too few to tell how others differ", allowed="3 or more"))
    rows = table.select(FEATURES).to_numpy().astype(float)
    y = numpy.log(table["ratio"].to_numpy()) - table["guess"].to_numpy()
    applications = _numbers(table, ["application"])
    conditions = _numbers(table, CONDITION)
    # Neighbouring conditions are alike: dealt at random they come apart.
    dealt = numpy.random.default_rng(1).permutation(int(conditions.max()) + 1) % FOLDS
    by = {"application": _Runs(rows, y, applications), "condition": _Runs(rows, y, dealt[conditions])}
    return RunTimeModel(
        version=version("fairlane"),
        data=sha256(runs.select(COLUMNS).write_csv().encode()).hexdigest()[:32],
        runs=table.height,
        features=list(FEATURES),
        quantiles=_fit(rows, y),
        margins={name: _rounded(_margin(own)) for name, own in by.items()},
        by_application=_validated(table, by["application"]),
        by_condition=_validated(table, by["condition"]),
    )


def _numbers(table: pl.DataFrame, columns: Sequence[str]) -> Groups:
    """A number for each combination of values."""
    found: Groups = table.select(pl.struct(columns).rank("dense") - 1).to_series().to_numpy()
    return found


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


def _margin(runs: _Runs) -> float:
    """What the ends of an interval are to be moved by for runs of other groups: by how much the fewest are outside.

    Romano et al., equation 8, with scores of runs that were left out of the fit.
    """
    names = numpy.unique(runs.groups)
    fold = numpy.searchsorted(names, runs.groups) % min(FOLDS, len(names))
    scores = numpy.zeros(len(runs.y))
    for one in numpy.unique(fold):
        out = fold == one
        fitted = _fit(runs.rows[~out], runs.y[~out])
        low, _, high = numpy.sort([fitted[name].predict(runs.rows[out]) for name in QUANTILES], axis=0)
        scores[out] = numpy.maximum(low - runs.y[out], runs.y[out] - high)
    last = min(len(scores), ceil(COVERAGE * (len(scores) + 1)))
    return float(numpy.sort(scores)[last - 1])


def _validated(table: pl.DataFrame, runs: _Runs) -> ModelError:
    """The error on every group, predicted by a model and with a margin that come from the others."""
    guess, y = table["guess"].to_numpy(), runs.y
    low, middle, high, constant, margin = (numpy.zeros(len(y)) for _ in range(5))
    for one in numpy.unique(runs.groups):
        out = runs.groups == one
        others = runs.part(~out)
        margin[out] = _margin(others)
        low[out], middle[out], high[out] = interval(_fit(others.rows, others.y), runs.rows[out], 0.0)
        constant[out] = numpy.median((y + guess)[~out])
    lower, upper = numpy.minimum(low - margin, middle), numpy.maximum(high + margin, middle)
    off = numpy.abs(numpy.exp(middle - y) - 1)
    chosen, any_of = zip(*_regrets(table, middle + guess, y + guess), strict=True)
    return ModelError(
        runs=len(y),
        mean=_rounded(off.mean()),
        worst_tenth=_rounded(numpy.quantile(off, 0.9)),
        without=_rounded(numpy.abs(numpy.exp(constant - y - guess) - 1).mean()),
        guess=_rounded(numpy.abs(numpy.exp(-y) - 1).mean()),
        inside=_rounded(((lower <= y) & (y <= upper)).mean()),
        inside_before=_rounded(((low <= y) & (y <= high)).mean()),
        width=_rounded(numpy.median(numpy.exp(upper - lower))),
        regret=_rounded(numpy.mean(chosen)),
        regret_of_any=_rounded(numpy.mean(any_of)),
    )


def _regrets(table: pl.DataFrame, predicted: Floats, y: Floats) -> Iterator[tuple[float, float]]:
    """Of each case with neighbours: what its predicted best loses, and what any alternative does; means over seeds."""
    named = table.select(*CASE, "rails", "link_share", "interference", "placement").with_columns(
        predicted=numpy.exp(predicted), actual=numpy.exp(y)
    )
    same = named.filter(pl.col("interference") > 0).group_by(*CASE, "rails", "link_share", "placement")
    means = same.agg(pl.col("predicted", "actual").mean()).sort(*CASE, "rails", "link_share", "placement")
    for _, case in means.group_by(CASE, maintain_order=True):
        lost = case["actual"].to_numpy() / float(case["actual"].to_numpy().min()) - 1
        yield float(lost[int(case["predicted"].arg_min() or 0)]), float(lost.mean())


def _rounded(value: Any) -> float:
    return round(float(value), 4)
