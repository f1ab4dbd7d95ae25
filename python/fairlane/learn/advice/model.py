"""Run times predicted from conditions: gradient-boosted trees for three quantiles, fitted to a table of runs.

J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29, 2001; with the
quantile loss of R. Koenker and G. Bassett, Econometrica 46, 1978. They correct the first guess of ``features``: the
target is the logarithm of the run time over that of the same application isolated, less that of the guess. The interval
between the outer quantiles is widened, or narrowed, by a margin from held-out runs (Y. Romano, E. Patterson, E. Candes,
"Conformalized quantile regression", NeurIPS 2019; cross-conformal: V. Vovk, Ann. Math. Artif. Intell. 74, 2015).

Cross-validation is nested and done twice: each application is predicted by a model and with a margin from the others,
and each condition by those from the same applications under other conditions. Groups stay together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Self

import numpy
import polars as pl
from pydantic import model_validator

from fairlane.core.errors import Problem, ScenarioError, require
from fairlane.inputs.problems import Problems
from fairlane.learn.advice.features import COLUMNS, FEATURES, RENAMED, described
from fairlane.learn.models import FittedModel, Floats, Integers, TreeSum, freeze, one_thread, read_table
from fairlane.learn.models.validation import Bools, ErrorMetrics, assign_folds, conformal_quantile, cross_validate
from fairlane.study.shipped.advice.results import COVERAGE

QUANTILES = ("0.1", "0.5", "0.9")
"""Of which the outer ones are as far apart as that."""
MARGINS = {"application", "condition"}
CONDITION = ("case", "co_scheduled", "rails", "link_share", "cap_w", "placement")
"""Columns that identify a condition."""
CASE = ("case", "application", "co_scheduled", "cap_w")
"""Columns that an application cannot choose."""
FOLDS = 5
TREES, DEPTH, RATE, MIN_LEAF = 60, 3, 0.12, 3
"""Trees, their depth, the learning rate, and the fewest runs of a leaf; never tuned."""
_Quantiles = Mapping[str, TreeSum]


class RunTimeErrors(ErrorMetrics):
    """Errors on held-out runs; the baseline predicts the median of the others."""

    guess_error: float
    """Mean absolute relative error of the first guess alone, which is fitted to nothing."""
    coverage: float
    """The share of run times in the interval."""
    coverage_without_margin: float
    """The same without the margin."""
    interval_ratio: float
    """The upper end over the lower one; the median."""
    regret: float
    """How much longer the run takes that is predicted to be the shortest, over the shortest of the same application,
    interference and cap; the mean."""
    random_regret: float
    """The same for an alternative chosen uniformly at random."""


class RunTimeModel(FittedModel):
    """A fitted model."""

    FORMAT: ClassVar[str] = "fairlane run times 2"

    data: str
    """Digest of the table that it was fitted to."""
    runs: int
    """Number of runs that had it."""
    features: list[str]
    """Names of the features, in order."""
    quantiles: dict[str, TreeSum]
    """By quantile: the logarithm of run time over that isolated, less that of the first guess."""
    margins: dict[str, float]
    """What both ends of the interval are moved apart by, in logarithms: for an ``application`` that the model was not
    fitted to, and for a ``condition`` of one that it was."""
    by_application: RunTimeErrors
    """On held-out applications."""
    by_condition: RunTimeErrors
    """On held-out conditions."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if tuple(self.features) != FEATURES or tuple(self.quantiles) != QUANTILES or set(self.margins) != MARGINS:
            raise Problems(Problem("features", "not those of this version", allowed=", ".join(FEATURES)))
        if {one.features for one in self.quantiles.values()} != {len(FEATURES)}:
            raise Problems(Problem("quantiles", "trees for another number of features"))
        return self

    def predict(self, runs: pl.DataFrame, *, seen: bool = False) -> Floats:
        """For each run the lower end, the middle and the upper end of its time, ms.

        ``runs`` has the columns that ``learn`` takes, and an isolated run of each application; other run times are not
        used. ``seen`` says that the model was fitted to these applications.
        """
        table = described(runs)
        low, middle, high = _interval(
            _in_order(self.quantiles, _rows(table)), self.margins["condition" if seen else "application"]
        )
        scale = (table["guess"].exp() * table["reference_ms"]).to_numpy()[:, None]
        found: Floats = numpy.exp(numpy.stack([low, middle, high], axis=1)) * scale
        return found


def read_runs(paths: Sequence[Path]) -> pl.DataFrame:
    """Tables of runs, CSV or Parquet, one below the other; raises ``ScenarioError``."""
    text = ("case", "application", "rails", "placement", "co_scheduled")
    kinds = {name: pl.String if name in text else pl.Float64 for name in COLUMNS}
    tables = []
    for path in paths:
        found = read_table(path, COLUMNS, text=text, renamed=RENAMED)
        try:
            tables.append(found.select(pl.col(name).cast(kind) for name, kind in kinds.items()))
        except pl.exceptions.PolarsError as error:
            words = f"a column has values of another kind: {error}"
            raise ScenarioError(Problem("", words, file=str(path))) from None
    return pl.concat(tables, how="vertical_relaxed")


def learn(runs: pl.DataFrame) -> RunTimeModel:
    """Fits a model. Raises ``ScenarioError`` if an application has no isolated run, or there are fewer than three."""
    table = described(runs.select(COLUMNS).unique(maintain_order=True))
    if table["application"].n_unique() < 3:
        raise ScenarioError(Problem("application", "too few to cross-validate", allowed="3 or more"))
    rows = _rows(table)
    y = numpy.log(table["ratio"].to_numpy()) - table["guess"].to_numpy()
    # Neighbouring conditions are alike: assigned to folds at random they are separated.
    conditions = assign_folds(_numbers(table, CONDITION), FOLDS, numpy.random.default_rng(1))
    with one_thread():
        by = {"application": _Runs(rows, y, _numbers(table, ["application"])), "condition": _Runs(rows, y, conditions)}
        return RunTimeModel(
            format=RunTimeModel.FORMAT,
            version=version("fairlane"),
            data=sha256(runs.select(COLUMNS).write_csv().encode()).hexdigest()[:32],
            runs=table.height,
            features=list(FEATURES),
            quantiles=by["application"].fit(),
            margins={name: round(own.margin(), 4) for name, own in by.items()},
            by_application=_validated(table, by["application"]),
            by_condition=_validated(table, by["condition"]),
        )


@dataclass(frozen=True)
class _Runs:
    """The rows that a model is fitted to."""

    rows: Floats
    y: Floats
    """Logarithm of run time over the reference's, less that of the first guess."""
    groups: Integers
    """Runs of a group are held out together."""

    def part(self, which: Bools) -> "_Runs":
        return _Runs(self.rows[which], self.y[which], self.groups[which])

    def fit(self) -> dict[str, TreeSum]:
        """Trees for each quantile."""
        require("predict")
        from sklearn.ensemble import GradientBoostingRegressor

        options = {"max_depth": DEPTH, "learning_rate": RATE, "min_samples_leaf": MIN_LEAF, "random_state": 0}
        found = {}
        for name in QUANTILES:
            made = GradientBoostingRegressor(loss="quantile", alpha=float(name), n_estimators=TREES, **options)
            trees = freeze(made.fit(self.rows, self.y))
            assert isinstance(trees, TreeSum)
            found[name] = trees
        return found

    def margin(self) -> float:
        """Return the margin of intervals for runs of other groups, in logarithms: Romano et al., equation 8."""

        def scores(out: Bools) -> Floats:
            low, _, high = _in_order(self.part(~out).fit(), self.rows[out])
            outside: Floats = numpy.maximum(low - self.y[out], self.y[out] - high)
            return outside

        names = numpy.unique(self.groups)
        fold = assign_folds(numpy.searchsorted(names, self.groups), min(FOLDS, len(names)))
        return conformal_quantile(cross_validate(fold, scores), COVERAGE)


def _rows(table: pl.DataFrame) -> Floats:
    return table.select(FEATURES).to_numpy().astype(float)


def _numbers(table: pl.DataFrame, columns: Sequence[str]) -> Integers:
    """A number for each combination of values."""
    found: Integers = table.select(pl.struct(columns).rank("dense") - 1).to_series().to_numpy().astype(int)
    return found


def _in_order(quantiles: _Quantiles, rows: Floats) -> Floats:
    """Lower end, middle and upper end without a margin, in order even where trees of different quantiles cross."""
    found: Floats = numpy.sort([quantiles[name].predict(rows) for name in QUANTILES], axis=0)
    return found


def _interval(ends: Floats, margin: float | Floats) -> tuple[Floats, Floats, Floats]:
    low, middle, high = ends
    return numpy.minimum(low - margin, middle), middle, numpy.maximum(high + margin, middle)


def _validated(table: pl.DataFrame, runs: _Runs) -> RunTimeErrors:
    """The errors on every group, predicted by a model and with a margin from the others."""
    guess, y = table["guess"].to_numpy(), runs.y

    def held_out(out: Bools) -> Floats:
        others, ones = runs.part(~out), numpy.ones(int(out.sum()))
        ends = _in_order(others.fit(), runs.rows[out])
        return numpy.column_stack([*ends, others.margin() * ones, numpy.median((y + guess)[~out]) * ones])

    low, middle, high, margin, constant = cross_validate(runs.groups, held_out).T
    lower, _, upper = _interval(numpy.stack([low, middle, high]), margin)
    chosen, any_of = zip(*_regrets(table, middle + guess, y + guess), strict=True)
    return RunTimeErrors.of(
        numpy.exp(middle - y),
        numpy.exp(constant - y - guess),
        guess_error=numpy.abs(numpy.exp(-y) - 1).mean(),
        coverage=((lower <= y) & (y <= upper)).mean(),
        coverage_without_margin=((low <= y) & (y <= high)).mean(),
        interval_ratio=numpy.median(numpy.exp(upper - lower)),
        regret=numpy.mean(chosen),
        random_regret=numpy.mean(any_of),
    )


def _regrets(table: pl.DataFrame, predicted: Floats, y: Floats) -> Iterator[tuple[float, float]]:
    """Of each case with neighbours: the regret of its predicted best, and of any alternative; means over seeds."""
    named = table.select(*CASE, "rails", "link_share", "interference", "placement").with_columns(
        predicted=numpy.exp(predicted), actual=numpy.exp(y)
    )
    same = named.filter(pl.col("interference") > 0).group_by(*CASE, "rails", "link_share", "placement")
    means = same.agg(pl.col("predicted", "actual").mean()).sort(*CASE, "rails", "link_share", "placement")
    for _, case in means.group_by(CASE, maintain_order=True):
        lost = case["actual"].to_numpy() / float(case["actual"].to_numpy().min()) - 1
        yield float(lost[int(case["predicted"].arg_min() or 0)]), float(lost.mean())
