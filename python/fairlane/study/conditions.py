"""The cases and parameters that a study varies, and the columns of its tables, which no factor may be called."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import polars as pl

from fairlane.core.errors import Problem
from fairlane.core.wording import plural, significant
from fairlane.results.schemas import RUN, STUDY, types
from fairlane.study.design import PER_JOB
from fairlane.study.sql import Database, QueryError

POINT = ("point", "case", "placement", "seed")
"""Columns that identify the point of a row, in addition to parameters and factors."""
OF_RUN = {
    **dict.fromkeys(("scenario", "until", "digest"), pl.String),
    **dict.fromkeys(("seed", "simulated_ps", "stopped_ps", "packet_hops"), pl.UInt64),
}
"""The table ``run``, which queries see besides the tables of a run."""


def taken(*, measured: bool) -> Collection[str]:
    """Names that the tables of a study that measures, or that compares, have as columns."""
    tables = ("runs", "failures") if measured else [*STUDY]
    columns = {column: None for table in tables for column in STUDY[table]}
    return [*POINT, *columns, *(() if measured else PER_JOB)]


def collisions(factors: Collection[str], parameters: Collection[str], *, measured: bool) -> Iterator[Problem]:
    """Factors whose name is that of a column, of a parameter, or of another factor."""
    columns = [name.casefold() for name in (*taken(measured=measured), *parameters)]
    for name in factors:
        if name.casefold() in columns:
            allowed = f"another name than {', '.join(dict.fromkeys(columns))}"
            yield Problem(f"factors.{name}", "is a column that the tables have already", allowed=allowed)
        columns.append(name.casefold())


def queried(queries: Mapping[str, str], factors: Collection[str]) -> Iterator[Problem]:
    """Queries that are no SELECT, or that return a column which every table of the study has.

    Tables without rows stand for those of a run. What a query needs that only some runs have is not judged here, nor
    are factors that ``collisions`` refuses.
    """
    names = taken(measured=True)
    yield from _queried(tuple(queries.items()), tuple(name for name in factors if name.casefold() not in names))


@lru_cache  # papers read the same study many times
def _queried(queries: tuple[tuple[str, str], ...], factors: tuple[str, ...]) -> tuple[Problem, ...]:
    problems = list[Problem]()
    database = Database({"run": pl.DataFrame(schema=OF_RUN)})
    for name, schema in RUN.items():
        if any(name in sql for _, sql in queries):
            database.put(name, pl.DataFrame(schema=types(schema)))
    own = {name.casefold() for name in (*POINT, *factors)}
    for name, sql in queries:
        try:
            columns = database.columns(sql)
        except QueryError as error:
            problems.append(Problem(f"measure.tables.{name}", str(error)))
            continue
        for column in columns or ():
            if column.casefold() in own:
                words = "is a column of every table of the study"
                problems.append(Problem(f"measure.tables.{name}", words, column, "another name, by AS"))
    database.close()
    return tuple(problems)


CONDITION = "condition"
"""The column that ``with_condition`` adds."""
_NAMING = ("name", "topology", "policy", "path")
"""Keys of a table whose values say by themselves what it is."""


def varied(work: pl.DataFrame) -> list[str]:
    """The columns of cases and parameters that have more than one value, in order; placements and seeds apart."""
    columns = work.columns[1 : work.columns.index("placement")]
    return [name for name in columns if work[name].n_unique() > 1]


def with_condition(work: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The table with a column of text that names each row's condition, and all conditions in order of their points."""
    names = varied(work)
    points = work.select("point", *names).unique("point", keep="first").sort("point")
    labels = [condition_of({name: row[name] for name in names}) for row in points.iter_rows(named=True)]
    by_point = dict(zip(points["point"].to_list(), labels, strict=True))
    column = pl.col("point").replace_strict(by_point, return_dtype=pl.String).alias(CONDITION)
    return work.with_columns(column), list(dict.fromkeys(labels))


def timeless(work: pl.DataFrame) -> str | None:
    """A sentence about rows without a time per iteration; None if all have one, or no job has iterations."""
    missing = work.filter(pl.col("seconds_per_iteration").is_null())
    if missing.is_empty() or missing.height == work.height:
        return None
    verb = "has" if missing.height == 1 else "have"
    return (
        f"{missing.height} of {plural(work.height, 'run')} of a job {verb} fewer than two iterations, so no time per "
        "iteration; there is no mean time or rate over such runs."
    )


def condition_of(values: Mapping[str, Any]) -> str:
    """A condition in words: the value alone if there is one, else each with what it is of."""
    texts = {name: shown(value) for name, value in values.items() if value is not None}
    if len(texts) <= 1:
        return "".join(texts.values())
    keys = _short(list(texts))
    pairs = zip(texts.items(), keys, strict=True)
    return ", ".join(text if name == "case" else f"{key} {text}" for (name, text), key in pairs)


def shown(value: Any) -> str:
    """A parameter's value as people read it: of a table its name, and what else is in it."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            return str(value)
    if isinstance(value, Mapping):
        parts = (shown(it) if key in _NAMING else f"{key} {shown(it)}" for key, it in value.items())
        return ", ".join(parts)
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return significant(value, 6) if isinstance(value, float) else str(value)


def _short(keys: Sequence[str]) -> list[str]:
    """The last step of each path, or the whole where two end alike."""
    lasts = [key.rpartition(".")[2] for key in keys]
    return [last if lasts.count(last) == 1 else key for key, last in zip(keys, lasts, strict=True)]
