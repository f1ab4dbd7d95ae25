"""Tables of counters: a row for each run and timestep, with the time it took and the counters' values.

A counter is called by the specification (``PortXmitData``), by Linux (``port_xmit_data``), or by the sampler sysclassib
of LDMS (``ib.port_xmit_data#mlx5_0.1``, and ``ib.port_xmit_data.rate#mlx5_0.1`` for what it adds in a second); its sum,
mean, minimum or maximum over several ports has that behind it (``port_xmit_data_sum``). LDMS has columns that identify
a row besides (``Time``, ``ProducerName``, ``component_id``, ``job_id``, ``app_id``), which are numbers and no counters.

Any numeric columns may be features, but for those that identify a row; the file is CSV or Parquet. Missing columns,
text, empty cells, numbers that are not finite, and a timestep that appears twice are refused.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy
import polars as pl

from fairlane.cluster.counters.base import COUNTERS
from fairlane.cluster.counters.sysfs import COUNTERS_OF_FILES
from fairlane.core.errors import Problem, ScenarioError
from fairlane.learn.models import Floats, Integers, read_table
from fairlane.learn.models.validation import Bools

RUNS = ("job_id", "jobid", "JobId")
"""Columns that identify runs where there is no other: the first that a table has."""
_IDENTIFIERS = {
    *("time", "time_usec", "dt", "dt_usec", "timestamp", "timestamp_usec", "epoch", "job_start", "job_end"),
    *("producername", "producer", "component_id", "compid", "comp_id", "instance", "job_id", "jobid", "app_id", "uid"),
    *("lid", "port", "port_num", "node_name", "node_guid", "port_guid", "guid", "remote", "device", "adapter"),
}
_LDMS = {  # sysclassib's own names
    f"port_{cast}_{way}_packets": f"Port{cast.title()}{name}Pkts"
    for cast in ("unicast", "multicast")
    for way, name in (("xmit", "Xmit"), ("rcv", "Rcv"))
}
_COUNTERS = {name.lower(): name for name in COUNTERS}
_COUNTERS |= {name.lower(): counter for name, counter in (COUNTERS_OF_FILES | _LDMS).items()}
_NAME = re.compile(r"(?:ib\.)?([A-Za-z]\w*?)(_(?:sum|mean|min|max))?(\.rate)?(#[\w.-]+)?", re.ASCII)


def identifies(name: str) -> bool:
    """Whether a column says which row it is, and counts nothing."""
    return name.lstrip("#").lower() in _IDENTIFIERS


def standard_name(name: str) -> str:
    """A counter by its name in the specification, with what is behind it; any other name as it is."""
    parts = _NAME.fullmatch(name)
    counter = _COUNTERS.get(parts[1].lower()) if parts else None
    if parts is None or counter is None:
        return name
    return "".join((counter, *(part or "" for part in parts.groups()[1:])))


def of_any_device(name: str) -> str:
    """The standard name of a counter without its device; any other name as it is."""
    counter, mark, device = standard_name(name).partition("#")
    return (
        counter if mark and device and _COUNTERS.get(re.split(r"[._]", counter)[0].lower()) else counter + mark + device
    )


def column_of(name: str, columns: Iterable[str]) -> str | None:
    """The column of a counter: the one with its name, or the only one that is called otherwise; None without one."""
    every = list(columns)
    if name in every:
        return name
    same = [column for column in every if standard_name(column) == standard_name(name)]
    return same[0] if len(same) == 1 else None


def columns_of(names: Sequence[str], columns: Iterable[str]) -> dict[str, str | None]:
    """The column of each counter. Where both have a counter once, its device may differ, or be in one name only."""
    every = list(columns)
    columns_by_name = {name: column_of(name, every) for name in names}
    for name in (name for name, column in columns_by_name.items() if column is None):
        alike = [column for column in every if of_any_device(column) == of_any_device(name)]
        if len(alike) == 1 and [of_any_device(other) for other in names].count(of_any_device(name)) == 1:
            columns_by_name[name] = alike[0]
    return columns_by_name


RUN, TIMESTEP, TARGET = "run", "timestep", "seconds"
"""Names of these columns by default."""
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
    """Name of the column of times."""

    @classmethod
    def read(cls, path: Path, **columns: Any) -> Self:
        """Reads a file; ``.parquet`` is Parquet, everything else CSV. ``columns`` are those of ``of``.

        Raises ``ScenarioError``.
        """
        frame = read_table(path)
        try:
            return cls.of(frame, **columns)
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
        """Number of runs."""
        return len(self.names)

    def filter(self, which: Bools) -> Self:
        """Some of the rows."""
        target = None if self.target is None else self.target[which]
        return replace(self, keys=self.keys.filter(which), rows=self.rows[which], target=target)

    def select(self, features: Sequence[str]) -> Self:
        """These features only, in this order. Raises ``ScenarioError`` if one is missing."""
        missing_feature = "feature: the model asks for it, and the table does not have it:"
        columns = columns_of(features, self.features)
        missing = [
            Problem.unknown(name, missing_feature, name, self.features) for name in features if columns[name] is None
        ]
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
        features = [name for name in candidates if frame.schema[name].is_numeric() and not identifies(name)]
    else:
        columns = {pattern: _matching(pattern, candidates) for pattern in wanted}
        if unmet := [pattern for pattern, names in columns.items() if not names]:
            raise ScenarioError(Problem.unknown("features", "column", name, candidates, name) for name in unmet)
        features = [name for name in candidates if any(name in names for names in columns.values())]
    if not features:
        raise ScenarioError(Problem("features", "no numeric column except run, timestep and time"))
    return features


def _matching(pattern: str, candidates: Sequence[str]) -> list[str]:
    """The columns of a pattern, by their own names; else by those of the specification, at last of any device."""
    for name_of in (str, standard_name, of_any_device):
        if names := [name for name in candidates if fnmatchcase(name_of(name), name_of(pattern))]:
            return names
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
    message = f"{bad.height} of {frame.height} cells are no finite numbers up to {LARGEST:g}, the first at {where}"
    return [Problem(name, message, value, f"finite numbers up to {LARGEST:g}")]


def _keyed(frame: pl.DataFrame, keys: list[str]) -> list[Problem]:
    run, timestep = keys
    problems = []
    if not (frame.schema[run].is_integer() or frame.schema[run] == pl.String) or frame[run].null_count():
        problems.append(Problem(run, "not a column of integers or text without empty cells", str(frame.schema[run])))
    if not frame.schema[timestep].is_integer() or frame[timestep].null_count():
        message = "not a column of integers without empty cells"
        problems.append(Problem(timestep, message, str(frame.schema[timestep])))
    twice = frame.filter(frame.select(keys).is_duplicated())
    if twice.height and not problems:
        message = f"run {twice[run][0]} has its timestep {twice[timestep][0]} more than once"
        problems.append(Problem(timestep, message, allowed="one row for each run and timestep"))
    return problems
