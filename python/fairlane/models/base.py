"""Fitted models as data, in a file with a schema and a checksum, and the tables to fit them to."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy
import polars as pl
from numpy.typing import NDArray
from pydantic import ValidationError, model_validator
from pydantic_core import core_schema

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import load_sealed, save_sealed
from fairlane.inputs.problems import Problems, unfold
from fairlane.inputs.table import Table
from fairlane.results.errors import ResultsError
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
            found = numpy.array(value, dtype=numpy.int64 if self.integer else numpy.float64, order="C")
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"not an array of numbers with {len(self.names)} dimensions") from None
        if not found.size:
            found = found.reshape(found.shape if found.ndim == len(self.names) else (0,) * len(self.names))
        fixed = [(name, size) for name, size in zip(self.names, found.shape, strict=False) if isinstance(name, int)]
        if found.ndim != len(self.names) or any(name != size for name, size in fixed):
            raise ValueError(f"not an array of {' x '.join(map(str, self.names))}")
        right = {"any": True, "positive": (found > 0).all(), "nonzero": found.all()}[self.sign]
        if not numpy.isfinite(found).all() or not right:
            raise ValueError(f"not all are finite{'' if self.sign == 'any' else f' and {self.sign}'}")
        return found


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
            for dims in (one for one in field.metadata if isinstance(one, Dims) and value.size):
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
            words = "another kind of model, or one of an earlier version, whose keys had other names; fit it again"
            shown = given if isinstance(given, str) else None
            words = words if shown else f"missing: {words}"
            raise ScenarioError(Problem("format", words, shown, cls.FORMAT, file=str(path)))
        try:
            found = cls.model_validate(data)
        except ValidationError as error:
            raise ScenarioError(problem.at(str(path), None) for problem in unfold(error, cls)) from None
        if wrong:
            raise ScenarioError(wrong)
        return found


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
            found = read_parquet(path)
        else:
            found = pl.read_csv(path, infer_schema_length=None, schema_overrides=dict.fromkeys(text, pl.String))
    except ResultsError as error:
        raise ScenarioError(Problem("", str(error))) from error
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ScenarioError(Problem("", f"cannot be read: {error}", file=str(path))) from None
    missing = [name for name in columns if name not in found.columns]
    if missing:
        former = {new: old for old, new in (renamed or {}).items() if old in found.columns}
        words = {name: f'the column "{old}" has this name now' for name, old in former.items()}
        raise ScenarioError(
            Problem(name, words.get(name, "there is no such column"), allowed=", ".join(columns), file=str(path))
            for name in missing
        )
    return found
