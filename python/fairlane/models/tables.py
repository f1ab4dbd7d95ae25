"""Tables to fit models to: CSV or Parquet of unknown origin."""

from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.results.errors import ResultsError
from fairlane.results.manifest import check_listed
from fairlane.results.parquet import read_parquet


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
