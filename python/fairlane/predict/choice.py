"""Which regressor on which part of the counters predicts best: chosen by cross-validation.

The choice for all runs has the least mean square error on held-out runs. To say how good a model is that is chosen so,
the choice is made again for every fold, by a cross-validation of its training runs alone: with any error on held-out
runs, or from models that were fitted to them, the least of many errors would be less than what a later run has (G. C.
Cawley, N. L. C. Talbot, "On over-fitting in model selection and subsequent selection bias in performance evaluation",
Journal of Machine Learning Research 11, 2010).
"""

from collections.abc import Callable
from dataclasses import dataclass

from fairlane.errors import Problem, ScenarioError
from fairlane.models.base import Part
from fairlane.models.regressors import REGRESSORS, RegressorName
from fairlane.predict.hyperparameters import INNER_FOLDS
from fairlane.predict.parts import PARTS, PartsName
from fairlane.predict.table import CounterTable
from fairlane.predict.validation import compare, folds_of

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
    """For each fold, the best by a cross-validation of the runs of the other folds."""
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
    of_fold = folds_of(table, folds, seed)

    def ranked(runs: CounterTable, count: int) -> list[Candidate]:
        made = compare(runs, models=models, parts=kinds, transductive=False, folds=count, seed=seed, progress=progress)
        rows = made.table.select("model", "parts", "mse").sort("mse", "model", "parts")
        return [Candidate.model_validate(row) for row in rows.iter_rows(named=True)]

    def best_without(fold: int) -> Kind:
        training = table.filter(of_fold != fold)
        if training.runs < 2:
            words = "leaves one run to train with: none is left to choose a model by"
            raise ScenarioError(Problem("folds", words, folds, "more runs, or a model and its parts by name"))
        best = ranked(training, min(INNER_FOLDS, training.runs))[0]
        return best.model, best.parts

    candidates = ranked(table, folds)
    best = candidates[0]
    return Choice((best.model, best.parts), {fold: best_without(fold) for fold in range(folds)}, candidates)
