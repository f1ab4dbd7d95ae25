"""The common base of all results: tables, SQL over them, figures, a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from fairlane.core.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb
    from matplotlib.axes import Axes


class Stream:
    """A data frame that DuckDB reads as a view; of Polars' own it would ask for pyarrow."""

    def __init__(self, table: pl.DataFrame) -> None:
        # A column of the type Null has no bitmap of validity, without which DuckDB refuses it.
        self._table = table.with_columns(pl.selectors.by_dtype(pl.Null).cast(pl.Int32))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def frame_of(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """The rows of a relation. Columns of one name are numbered: ``b``, ``b_1``."""
    names: list[str] = []
    for name in relation.columns:
        same = sum(other == name for other in relation.columns[: len(names)])
        names.append(f"{name}_{same}" if same else name)
    if names != relation.columns:
        quoted = (name.replace('"', '""') for name in names)
        relation = relation.select(", ".join(f'#{at} AS "{name}"' for at, name in enumerate(quoted, 1)))
    # Not pl.DataFrame(relation): Polars keeps the types of what it is given, and DuckDB reports them at exit as leaked.
    return pl.scan_arrow_c_stream(relation).collect()


def ask(tables: Mapping[str, pl.DataFrame], sql: str) -> pl.DataFrame:
    """Answers ``sql``, one SELECT (or DESCRIBE, SHOW, EXPLAIN) over the tables.

    Raises ``ResultsError`` if the query is wrong, with the tables and the nearest column.
    """
    import duckdb

    readers = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
    with duckdb.connect() as connection:
        try:
            for name, table in tables.items():
                connection.register(name, Stream(table))
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type not in readers:
                raise ResultsError("query: tables are only read; give one SELECT (or DESCRIBE, SHOW, EXPLAIN)")
            return frame_of(connection.sql(sql))
        except duckdb.Error as error:
            raise ResultsError(_explain(tables, str(error))) from error


def _explain(tables: Mapping[str, pl.DataFrame], message: str) -> str:
    """DuckDB's message, the nearest name, and the tables."""
    missing = re.search(r'Referenced (?:column|table) "([^"]+)"|column named "([^"]+)"|with name "?(\w+)"?', message)
    hint = ""
    if missing:
        name = next(group for group in missing.groups() if group)
        columns = {column for table in tables.values() for column in table.columns}
        near = get_close_matches(name, sorted(columns | set(tables)), n=1)
        owners = [known for known, table in tables.items() if near and near[0] in table.columns]
        of = f" (of {', '.join(owners)})" if owners else ""
        hint = f"\nnearest to {name!r}: {near[0]}{of}" if near else ""
    return f"query: {message.strip()}{hint}\ntables: {', '.join(tables)}"


class Results:
    """The base of ``Run``, ``StudyResults``, ``Saturation`` and others."""

    TABLES: ClassVar[Sequence[str]]
    """The names of the tables: attributes here, files in the folder, views in a query."""
    ON_DEMAND: ClassVar[Sequence[str]] = ()
    """The names of optional tables."""
    folder: Path | None
    """Their folder; None while they are only in memory."""

    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by name."""
        frames = {name: getattr(self, name) for name in (*self.TABLES, *self.ON_DEMAND)}
        return {name: table for name, table in frames.items() if table is not None}

    def query(self, sql: str) -> pl.DataFrame:
        """Answers ``sql``, one SELECT (or DESCRIBE, SHOW, EXPLAIN) over the tables.

        Raises ``ResultsError`` if the query is wrong, with the tables and the nearest column.
        """
        return ask(self.tables(), sql)

    def plot(self, figure: str | None = None, ax: Axes | Sequence[Axes] | None = None) -> Any:
        """Draws a figure, by default the first that there are data for, as a notebook shows it.

        Names are those of ``fairlane list figures``, or that of a plug-in. Runs, load sweeps and other results that
        have a view (``fairlane.views.kinds.KINDS``) are charts of Altair. Others are drawn by Matplotlib: the axes are
        returned, a list if several; ``ax`` are axes to draw on, as many as the figure has panels (of a run for
        ``slowdown`` and ``interference``); without them there is a new figure.

        Raises ``ScenarioError`` if there is no such figure, or nothing to show in it, and
        ``ResultsError`` for more or fewer axes than panels.
        """
        return resolve_name("fairlane.views.methods:plot")(self, figure, ax)

    def draw(self) -> list[Path]:
        """Draws every figure that there are data for into the folder, and returns their paths.

        Raises ``ResultsError`` if there is no folder, or it cannot be written.
        """
        paths: list[Path] = resolve_name("fairlane.views.kinds:draw")([self])
        return paths

    def _repr_html_(self) -> str | None:
        html: str | None = resolve_name("fairlane.views.methods:html")(self)
        return html

    def headline(self) -> str:
        """A one-line description."""
        raise NotImplementedError

    def __repr__(self) -> str:
        where = f" in {self.folder}" if self.folder else ""
        return f"<{type(self).__name__}: {self.headline()}{where}>"
