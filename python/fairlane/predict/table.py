"""Tables of counters: a row for each run and timestep, with the time it took and the counters' values.

Any numeric columns may be features, but for those that identify a row (``columns``); the file is CSV or Parquet.
Missing columns, text, empty cells, numbers that are not finite, and a timestep that appears twice are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy
import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.models.base import Floats, Integers, read_table
from fairlane.models.validation import Bools
from fairlane.predict.columns import RUNS, columns_of, identifies, of_any_device, standard_name

RUN, TIMESTEP, TARGET = "run", "timestep", "seconds"
"""What these columns are called by default."""
LARGEST = 1e100
"""The largest number: sums of squares of such numbers are finite still."""


@dataclass(frozen=True)
class CounterTable:
    """Rows in the order of runs and timesteps."""

    keys: pl.DataFrame
    """Columns ``run`` and ``timestep``."""
    features: tuple[str, ...]
    """Names of the counters, in the order of the columns of ``rows``."""
    rows: Floats
    """The counters."""
    target: Floats | None
    """The time of every timestep; None if the table has no such column and need not have one."""
    target_name: str = TARGET
    """What the column of times is called."""

    @classmethod
    def read(cls, path: Path, **columns: Any) -> Self:
        """Reads a file; ``.parquet`` is Parquet, everything else CSV. ``columns`` are those of ``of``.

        Raises ``ScenarioError``.
        """
        found = read_table(path)
        try:
            return cls.of(found, **columns)
        except ScenarioError as error:
            raise ScenarioError(problem.at(str(path), None) for problem in error.problems) from None

    @classmethod
    def of(
        cls,
        frame: pl.DataFrame,
        *,
        features: Sequence[str] | None = None,
        run: str = RUN,
        timestep: str = TIMESTEP,
        target: str = TARGET,
        target_needed: bool = True,
    ) -> Self:
        """Takes a data frame. Raises ``ScenarioError`` with all problems if something is missing or no number.

        ``features`` are names of the counters, with ``*`` and ``?`` for many, by default all other numeric columns that
        identify nothing. A counter of InfiniBand is found by any of its names. The column ``run`` identifies runs, by
        numbers or text (``job_id`` of LDMS where there is none of this name), ``timestep`` numbers the timesteps of a
        run, and ``target`` has their times, unless it is not needed.
        """
        if run == RUN and RUN not in frame.columns:
            run = next((name for name in RUNS if name in frame.columns), run)
        keys = [run, timestep]
        wanted = [*keys, target] if target_needed else keys
        missing = [Problem.unknown(name, "column", name, frame.columns) for name in wanted if name not in frame.columns]
        if missing:
            raise ScenarioError(missing)
        if not frame.height:
            raise ScenarioError(Problem("", "the table has no rows"))
        names = _features(frame, features, {*keys, target})
        there = target in frame.columns
        problems = [
            problem for name in (*names, *([target] if there else [])) for problem in _numeric(frame, name, keys)
        ]
        problems += _keyed(frame, keys)
        if problems:
            raise ScenarioError(problems)
        ordered = frame.sort(keys)
        return cls(
            keys=ordered.select(pl.col(run).alias(RUN), pl.col(timestep).alias(TIMESTEP)),
            features=tuple(names),
            rows=numpy.ascontiguousarray(ordered.select(names).to_numpy().astype(float)),
            target=ordered[target].to_numpy().astype(float) if there else None,
            target_name=target,
        )

    @cached_property
    def names(self) -> list[str]:
        """The runs, in order, as text."""
        return [str(name) for name in self.keys[RUN].unique(maintain_order=True)]

    @cached_property
    def run(self) -> Integers:
        """For each row the number of its run, from 0."""
        return self.keys[RUN].rank("dense").to_numpy().astype(int) - 1

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.names)

    def filter(self, which: Bools) -> Self:
        """Some of the rows."""
        target = None if self.target is None else self.target[which]
        return replace(self, keys=self.keys.filter(which), rows=self.rows[which], target=target)

    def select(self, features: Sequence[str]) -> Self:
        """These features only, in this order. Raises ``ScenarioError`` if one is missing."""
        words = "feature: the model asks for it, and the table does not have it:"
        columns = columns_of(features, self.features)
        missing = [Problem.unknown(name, words, name, self.features) for name in features if columns[name] is None]
        if missing:
            raise ScenarioError(missing)
        at = {name: number for number, name in enumerate(self.features)}
        chosen = [at[column] for column in columns.values() if column is not None]
        rows = numpy.ascontiguousarray(self.rows[:, chosen])
        return replace(self, features=tuple(features), rows=rows)

    def by_run(self) -> list[Floats]:
        """The rows of each run."""
        return [self.rows[self.run == number] for number in range(self.runs)]

    @property
    def truth(self) -> Floats:
        """The times; raises ``ScenarioError`` if the table has none."""
        if self.target is None:
            raise ScenarioError(Problem(self.target_name, "there is no such column"))
        return self.target

    @property
    def digest(self) -> str:
        """Of everything in it."""
        parts = (self.keys.write_csv().encode(), "\n".join(self.features).encode(), self.rows.tobytes())
        return sha256(b"\0".join((*parts, b"" if self.target is None else self.target.tobytes()))).hexdigest()[:32]


def _features(frame: pl.DataFrame, wanted: Sequence[str] | None, others: set[str]) -> list[str]:
    candidates = [name for name in frame.columns if name not in others]
    if wanted is None:
        found = [name for name in candidates if frame.schema[name].is_numeric() and not identifies(name)]
    else:
        columns = {pattern: _matching(pattern, candidates) for pattern in wanted}
        if unmet := [pattern for pattern, names in columns.items() if not names]:
            raise ScenarioError(Problem.unknown("features", "column", name, candidates, name) for name in unmet)
        found = [name for name in candidates if any(name in names for names in columns.values())]
    if not found:
        raise ScenarioError(Problem("features", "no numeric column except run, timestep and time"))
    return found


def _matching(pattern: str, candidates: Sequence[str]) -> list[str]:
    """The columns of a pattern, by their own names; else by those of the specification, at last of any device."""
    for name_of in (str, standard_name, of_any_device):
        if found := [name for name in candidates if fnmatchcase(name_of(name), name_of(pattern))]:
            return found
    return []


def _numeric(frame: pl.DataFrame, name: str, keys: list[str]) -> list[Problem]:
    column = frame[name]
    if not column.dtype.is_numeric():
        return [Problem(name, "not a column of numbers", str(column.dtype), "integers or floats")]
    number = pl.col(name).cast(pl.Float64)
    bad = frame.filter(~(number.is_finite() & (number.abs() <= LARGEST)).fill_null(False))
    if not bad.height:
        return []
    where = ", ".join(f"{key} {bad[key][0]}" for key in keys)
    value = "empty" if bad[name][0] is None else str(bad[name][0])
    words = f"{bad.height} of {frame.height} cells are no finite numbers up to {LARGEST:g}, the first at {where}"
    return [Problem(name, words, value, f"finite numbers up to {LARGEST:g}")]


def _keyed(frame: pl.DataFrame, keys: list[str]) -> list[Problem]:
    run, timestep = keys
    found = []
    if not (frame.schema[run].is_integer() or frame.schema[run] == pl.String) or frame[run].null_count():
        found.append(Problem(run, "not a column of integers or text without empty cells", str(frame.schema[run])))
    if not frame.schema[timestep].is_integer() or frame[timestep].null_count():
        words = "not a column of integers without empty cells"
        found.append(Problem(timestep, words, str(frame.schema[timestep])))
    twice = frame.filter(frame.select(keys).is_duplicated())
    if twice.height and not found:
        words = f"run {twice[run][0]} has its timestep {twice[timestep][0]} more than once"
        found.append(Problem(timestep, words, allowed="one row for each run and timestep"))
    return found
