"""Columns that the tables of a study have: no factor can have the name of one, whatever its case (as in SQL)."""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

import polars as pl

from fairlane.errors import Problem
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
    found = {column: None for table in tables for column in STUDY[table]}
    return [*POINT, *found, *(() if measured else PER_JOB)]


def collisions(factors: Collection[str], parameters: Collection[str], *, measured: bool) -> Iterator[Problem]:
    """Factors whose name is that of a column, of a parameter, or of another factor."""
    columns = {name.casefold() for name in (*taken(measured=measured), *parameters)}
    for name in factors:
        if name.casefold() in columns:
            yield Problem(f"factors.{name}", "is a column that the tables have already", allowed="another name")
        columns.add(name.casefold())


def queried(queries: Mapping[str, str], factors: Collection[str]) -> Iterator[Problem]:
    """Queries that are no SELECT, or that return a column which every table of the study has.

    Tables without rows stand for those of a run. What a query needs that only some runs have is not judged here.
    """
    yield from _queried(tuple(queries.items()), tuple(factors))


@lru_cache  # papers read the same study many times
def _queried(queries: tuple[tuple[str, str], ...], factors: tuple[str, ...]) -> tuple[Problem, ...]:
    found = list[Problem]()
    database = Database({"run": pl.DataFrame(schema=OF_RUN)})
    for name, schema in RUN.items():
        if any(name in sql for _, sql in queries):
            database.put(name, pl.DataFrame(schema=types(schema)))
    own = {name.casefold() for name in (*POINT, *factors)}
    for name, sql in queries:
        try:
            columns = database.columns(sql)
        except QueryError as error:
            found.append(Problem(f"measure.tables.{name}", str(error)))
            continue
        for column in columns or ():
            if column.casefold() in own:
                words = "is a column of every table of the study"
                found.append(Problem(f"measure.tables.{name}", words, column, "another name, by AS"))
    database.close()
    return tuple(found)
