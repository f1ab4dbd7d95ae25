"""Which regressor on which part of the counters predicts best: chosen by cross-validation.

The choice for all runs has the least mean square error on held-out runs. To say how good a model is that is chosen so,
the choice is made again for every fold, by the errors of the other folds: with its own, the least of many errors would
be less than what a later run has (G. C. Cawley, N. L. C. Talbot, "On over-fitting in model selection and subsequent
selection bias in performance evaluation", Journal of Machine Learning Research 11, 2010).
"""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from fairlane.models.base import Part
from fairlane.models.regressors import REGRESSORS, RegressorName
from fairlane.predict.parts import PARTS, PartsName
from fairlane.predict.table import CounterTable
from fairlane.predict.validation import compare

Kind = tuple[RegressorName, PartsName]
"""A regressor, and what it sees of the counters."""


class Candidate(Part):
    """A model that was compared, with its mean square error on held-out runs."""

    model: RegressorName
    parts: PartsName
    mse: float


@dataclass(frozen=True)
class Choice:
    """The best of several models."""

    best: Kind
    of_fold: dict[int, Kind]
    """For each fold, the best by the errors of the other folds."""
    candidates: list[Candidate]
    """All of them, the best first; none if nothing was left to choose."""


def choose(
    table: CounterTable,
    model: RegressorName | None,
    parts: PartsName | None,
    *,
    folds: int,
    seed: int,
    progress: Callable[[], None] = lambda: None,
) -> Choice:
    """The best of all models with this regressor and these parts, or of any where they are None.

    Raises ``ScenarioError`` if there are fewer runs than folds.
    """
    models = tuple(REGRESSORS) if model is None else (model,)
    kinds = PARTS if parts is None else (parts,)
    if model is not None and parts is not None:
        return Choice((model, parts), dict.fromkeys(range(folds), (model, parts)), [])
    found = compare(table, models=models, parts=kinds, transductive=False, folds=folds, seed=seed, progress=progress)
    squares = (pl.col("predicted") - pl.col("seconds")) ** 2
    errors = found.predictions.group_by("model", "parts", "fold").agg(mse=squares.mean())

    def ranked(some: pl.DataFrame) -> list[Candidate]:
        means = some.group_by("model", "parts").agg(pl.col("mse").mean()).sort("mse", "model", "parts")
        return [Candidate.model_validate(row) for row in means.iter_rows(named=True)]

    candidates = ranked(errors)
    first = {fold: ranked(errors.filter(pl.col("fold") != fold))[0] for fold in range(folds)}
    best = candidates[0]
    return Choice((best.model, best.parts), {fold: (it.model, it.parts) for fold, it in first.items()}, candidates)
