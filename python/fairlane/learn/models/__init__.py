"""Fitted models as data, in a file with a schema and a checksum, and the regressors that fit them.

*Regressors: fitted by scikit-learn, kept and applied as plain numbers.* Why own code evaluates the trees, measured on
100 boosted trees with 48 features and 1144 rows (scikit-learn 1.9): as columns of numbers they are 67 kB of JSON, load
in 1 ms and predict what scikit-learn does to 1e-14, as fast, with numpy only. The file format of ``skops`` is 2.6 MB,
takes scikit-learn (2 s to import) and its version, and asks the reader to trust ``sklearn.tree._tree.Tree``. ONNX is 53
kB, but predicts in single precision (2e-6 off), cannot express histogram boosting with thresholds in double precision,
and takes 110 MB of libraries.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator
from pydantic_core import core_schema

from fairlane.core.errors import Problem, ResultsError, ScenarioError, require
from fairlane.inputs.files import load_sealed, save_sealed
from fairlane.inputs.problems import Problems, unfold
from fairlane.inputs.table import Table
from fairlane.results.manifest import check_listed
from fairlane.results.parquet import read_parquet

Floats = NDArray[numpy.float64]
Integers = NDArray[numpy.int64]

COUNTERS = "counters"
"""The dimension that all parts of a model share: its input columns."""


@dataclass(frozen=True)
class Dims:
    """Marks a field as an array: the name, or the length, of each dimension; the sign of all numbers; integers or not.

    Dimensions of the same name have the same length within a part, and ``COUNTERS`` within the whole model.
    """

    names: tuple[str | int, ...]
    sign: Literal["any", "positive", "nonzero"] = "any"
    integer: bool = False

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._read, serialization=core_schema.plain_serializer_function_ser_schema(lambda array: array.tolist())
        )

    def _read(self, value: Any) -> NDArray[Any]:
        try:
            array = numpy.array(value, dtype=numpy.int64 if self.integer else numpy.float64, order="C")
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"not an array of numbers with {len(self.names)} dimensions") from None
        if not array.size:
            array = array.reshape(array.shape if array.ndim == len(self.names) else (0,) * len(self.names))
        fixed = [(name, size) for name, size in zip(self.names, array.shape, strict=False) if isinstance(name, int)]
        if array.ndim != len(self.names) or any(name != size for name, size in fixed):
            raise ValueError(f"not an array of {' x '.join(map(str, self.names))}")
        right = {"any": True, "positive": (array > 0).all(), "nonzero": array.all()}[self.sign]
        if not numpy.isfinite(array).all() or not right:
            raise ValueError(f"not all are finite{'' if self.sign == 'any' else f' and {self.sign}'}")
        return array


PerCounter = Annotated[Floats, Dims((COUNTERS,))]
"""A number for each input column."""


class Part(Table):
    """Part of a fitted model: no unknown keys, immutable, arrays that fit each other."""

    @model_validator(mode="after")
    def _dimensions_agree(self) -> Self:
        known: dict[str, tuple[str, int]] = {}
        for key, name, size in self._sizes():
            other, first = known.setdefault(name, (key, size))
            if size != first:
                raise Problems(Problem(key, f"{size} {name}, while {other} has {first}"))
        return self

    def _sizes(self) -> Iterator[tuple[str, str, int]]:
        """Of every named dimension: the key of the array, the name, the length."""
        for key, field in type(self).model_fields.items():
            value = getattr(self, key)
            for dims in (metadata for metadata in field.metadata if isinstance(metadata, Dims) and value.size):
                yield from (
                    (key, name, size)
                    for name, size in zip(dims.names, value.shape, strict=True)
                    if isinstance(name, str)
                )
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, Part):
                    yield from (
                        (f"{key}.{below}", name, size) for below, name, size in part._sizes() if name == COUNTERS
                    )


class FittedModel(Part):
    """A fitted model that is kept in a file: TOML if that is its suffix, else JSON."""

    FORMAT: ClassVar[str]
    """Kind of model and version of its schema, in the file under ``format``."""

    format: str
    """Kind of model and version of its schema."""
    version: str
    """The version of fairlane that fitted it."""

    def save(self, path: Path) -> None:
        """Writes the file; raises ``ScenarioError``."""
        save_sealed(self.model_dump(mode="json", exclude_none=True), path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads a file; raises ``ScenarioError`` if it is of another kind or schema, damaged, or changed."""
        data, wrong = load_sealed(path)
        if (given := data.get("format")) != cls.FORMAT:
            message = "another kind of model, or one of an earlier version, whose keys had other names; fit it again"
            shown = given if isinstance(given, str) else None
            message = message if shown else f"missing: {message}"
            raise ScenarioError(Problem("format", message, shown, cls.FORMAT, file=str(path)))
        try:
            model = cls.model_validate(data)
        except ValidationError as error:
            raise ScenarioError(problem.at(str(path), None) for problem in unfold(error, cls)) from None
        if wrong:
            raise ScenarioError(wrong)
        return model


def read_table(
    path: Path, columns: Collection[str] = (), *, text: Collection[str] = (), renamed: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Reads a table; ``.parquet`` is Parquet, everything else CSV. In a folder with a manifest it must be as listed.

    It must have ``columns``. In a CSV file those in ``text`` are text, whatever they look like. ``renamed`` are former
    names of columns and their present ones, for the message where one is missing. Raises ``ScenarioError`` if it cannot
    be read, or a column is missing.
    """
    try:
        check_listed(path)
        if path.suffix == ".parquet":
            table = read_parquet(path)
        else:
            table = pl.read_csv(path, infer_schema_length=None, schema_overrides=dict.fromkeys(text, pl.String))
    except ResultsError as error:
        raise ScenarioError(Problem("", str(error))) from error
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ScenarioError(Problem("", f"cannot be read: {error}", file=str(path))) from None
    missing = [name for name in columns if name not in table.columns]
    if missing:
        former = {new: old for old, new in (renamed or {}).items() if old in table.columns}
        hints = {name: f'the column "{old}" has this name now' for name, old in former.items()}
        raise ScenarioError(
            Problem(name, hints.get(name, "there is no such column"), allowed=", ".join(columns), file=str(path))
            for name in missing
        )
    return table


RegressorName = Literal["gbm", "forest", "histogram", "ridge"]
REGRESSORS: dict[RegressorName, str] = {
    "gbm": "gradient boosting, Huber loss (Friedman 2001), each tree on half of the rows",
    "forest": "random forest (Breiman 2001)",
    "histogram": "histogram gradient boosting, squared loss",
    "ridge": "ridge regression: the floor",
}
"""Descriptions, by name."""
TREES = 100
"""Of all three that have trees; the learning rate of boosting is 0.1."""


def one_thread() -> AbstractContextManager[Any]:
    """Linear algebra and trees on one thread: matrices are small, and results do not depend on how many there are.

    Raises ``MissingExtraError`` if scikit-learn, which brings it, is not installed.
    """
    require("predict")
    import sklearn.ensemble  # noqa: F401 - only libraries that are loaded already can be limited
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)  # type: ignore[no-any-return]


def estimator(name: RegressorName, seed: int) -> Any:
    """An estimator of scikit-learn, not fitted yet."""
    require("predict")
    from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV

    match name:
        case "gbm":
            return GradientBoostingRegressor(
                loss="huber", n_estimators=TREES, subsample=0.5, max_features=1 / 3, random_state=seed
            )
        case "forest":
            return RandomForestRegressor(TREES, max_features=1 / 3, min_samples_leaf=2, random_state=seed)
        case "histogram":
            return HistGradientBoostingRegressor(max_iter=TREES, early_stopping=False, random_state=seed)
        case "ridge":
            return RidgeCV(alphas=numpy.logspace(-2, 4, 13))


class Linear(Part):
    """A weighted sum: ``start`` is what is predicted for a row of zeros, to which each feature adds by its weight."""

    start: float
    weights: PerCounter

    def predict(self, rows: Floats) -> Floats:
        """The sum for each row."""
        return rows @ self.weights + self.start


class TreeSum(Part):
    """A sum of decision trees: boosted, or the mean that a forest is.

    The nodes of all trees stand in common columns, children after their parents, so that every path ends. Rows go left
    where their feature is at most the threshold.
    """

    start: float
    """Prediction without any tree."""
    rate: float = Field(gt=0, le=1)
    """Factor of each tree's value."""
    precision: Literal["single", "double"]
    """Of the features, as the thresholds were chosen for it."""
    features: int = Field(ge=1)
    """Number of features of a row."""
    roots: Annotated[Integers, Dims(("trees",), integer=True)]
    """The number of each tree's first node."""
    feature: Annotated[Integers, Dims(("nodes",), integer=True)]
    """Feature that a node compares; -1 for a leaf."""
    threshold: Annotated[Floats, Dims(("nodes",))]
    left: Annotated[Integers, Dims(("nodes",), integer=True)]
    right: Annotated[Integers, Dims(("nodes",), integer=True)]
    value: Annotated[Floats, Dims(("nodes",))]

    @model_validator(mode="after")
    def _paths_end(self) -> Self:
        inner, nodes = numpy.flatnonzero(self.feature >= 0), len(self.feature)
        children = numpy.stack([self.left, self.right])[:, inner]
        roots_known = len(self.roots) and self.roots.min() >= 0 and self.roots.max() < nodes
        if (
            not roots_known
            or (children <= inner).any()
            or (children >= nodes).any()
            or (self.feature >= self.features).any()
        ):
            raise Problems(Problem("", "not trees: roots, children or features do not fit each other"))
        return self

    def predict(self, rows: Floats) -> Floats:
        """The sum for each row."""
        given = rows.astype(numpy.float32) if self.precision == "single" else rows
        total, every = numpy.zeros(len(rows)), numpy.arange(len(rows))
        for root in self.roots:
            at = numpy.full(len(rows), root)
            while (inner := self.feature[at] >= 0).any():
                smaller = given[every, self.feature[at]] <= self.threshold[at]
                at = numpy.where(inner, numpy.where(smaller, self.left[at], self.right[at]), at)
            total += self.value[at]
        return self.start + self.rate * total


Regressor = TreeSum | Linear


def freeze(made: Any) -> Regressor:
    """A fitted estimator of scikit-learn as data: boosted trees, a forest, or a linear model."""
    match type(made).__name__:
        case "GradientBoostingRegressor":
            trees = [_tree(tree_model.tree_) for tree_model in made.estimators_[:, 0]]
            return _sum(made, trees, float(made.init_.constant_.item()), made.learning_rate, "single")
        case "RandomForestRegressor":
            trees = [_tree(tree_model.tree_) for tree_model in made.estimators_]
            return _sum(made, trees, 0.0, 1 / len(trees), "single")
        case "HistGradientBoostingRegressor":
            # The library offers its fitted trees by this private name only; a test compares the predictions.
            trees = [_histogram_tree(stage[0].nodes) for stage in made._predictors]
            return _sum(made, trees, float(made._baseline_prediction.item()), 1.0, "double")
        case _:
            return Linear(start=float(made.intercept_), weights=made.coef_)


_Columns = tuple[Any, Any, Any, Any, Any]


def _tree(made: Any) -> _Columns:
    feature = numpy.maximum(made.feature, -1)
    return feature, made.threshold, made.children_left, made.children_right, made.value[:, 0, 0]


def _histogram_tree(nodes: Any) -> _Columns:
    feature = numpy.where(nodes["is_leaf"], -1, nodes["feature_idx"])
    return feature, nodes["num_threshold"], nodes["left"].astype(int), nodes["right"].astype(int), nodes["value"]


def _sum(
    made: Any, trees: Sequence[_Columns], start: float, rate: float, precision: Literal["single", "double"]
) -> TreeSum:
    """The trees one after the other."""
    roots = numpy.cumsum([0, *(len(tree[0]) for tree in trees)])[:-1]
    columns = [numpy.concatenate(column) for column in zip(*trees, strict=True)]
    feature, threshold, left, right, value = columns
    offset = numpy.repeat(roots, [len(tree[0]) for tree in trees])
    leaf = feature < 0
    return TreeSum(
        start=start,
        rate=rate,
        precision=precision,
        features=made.n_features_in_,
        roots=roots,
        feature=feature,
        threshold=numpy.where(leaf, 0.0, threshold),
        left=numpy.where(leaf, -1, left + offset),
        right=numpy.where(leaf, -1, right + offset),
        value=value,
    )
