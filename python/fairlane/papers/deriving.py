"""Tables that a paper derives from those of its studies: by a query, or by a function whose answer is stored."""

import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from traceback import extract_tb
from typing import Any

import polars as pl

from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.papers.folder import Derived, Folder
from fairlane.papers.planning import method_of
from fairlane.study.setting import Method
from fairlane.study.sql import Database, QueryError
from fairlane.study.tasks.closure import sources
from fairlane.study.tasks.store import Store
from fairlane.study.tasks.task import Answer, Outcome, Stopwatch, digest_of

STORED = "derived"
"""The folder, next to that of the answers of simulations, of the answers of functions."""
LIBRARIES = ("duckdb", "numpy", "polars", "scikit-learn", "scipy")
"""Libraries that a function may take its numbers from: their versions are part of its digest."""


@dataclass(frozen=True)
class Derivation:
    """A function of the tables of a paper, as a task that is computed where the tables are."""

    folder: Folder
    method: Method
    tables: Database

    @property
    def label(self) -> str:
        """The name of the function."""
        return self.method.name

    @property
    def cost(self) -> float:
        """No more than that of others: it is computed alone."""
        return 1.0

    @cached_property
    def digest(self) -> str:
        """Another one when a table, a file of the paper, the code of the function or a library changes.

        The files are those in its folder, not those in folders within it: results may be there.
        """
        files = files_digest(self.folder.path, self.folder.path.iterdir())
        key = [self.method.name, tables_digest(self.tables), files, sources(self.method.file), _libraries()]
        return digest_of(key)

    @property
    def description(self) -> Mapping[str, Any]:
        """The function."""
        return {"file": self.method.file.name, "function": self.method.name}

    def compute(self, _watch: Stopwatch) -> Answer:
        """Calls the function; its tables are text, with all their types. Raises ``Problems`` if it does not work."""
        function = self.method.function()
        try:
            returned = function(self.tables)
        except (FairlaneError, QueryError, Problems):
            raise
        except Exception as error:
            message = f"{self.method.name} fails at {_place(error, self.method.file)}: {type(error).__name__}: {error}"
            raise Problems(Problem("", message)) from error
        tables = dict(returned) if isinstance(returned, Mapping) else {"": returned}
        for table in tables.values():
            if not isinstance(table, pl.DataFrame):
                message = f"{self.method.name} returns {type(table).__name__}"
                raise Problems(Problem("", message, allowed="a data frame of Polars, or several by name"))
        return {"tables": {str(name): _text(table) for name, table in tables.items()}}


class Deriving:
    """Derives the tables of one paper, in their order, and counts the processor time of its functions."""

    def __init__(self, folder: Folder, tables: Database, store: Store | None = None) -> None:
        self._folder, self._tables = folder, tables
        self._store = None if store is None else store.section(STORED)
        self.cpu_s = 0.0
        """Processor time of functions, s, whenever they were called."""

    def derive(self, table: Derived) -> dict[str, pl.DataFrame]:
        """A table, or several, by name.

        Raises ``QueryError``, ``ScenarioError`` if a function does not work, and ``ResultsError`` if an answer cannot
        be stored.
        """
        if table.call is None:
            assert table.sql is not None, "a table has a query or a function"
            return {table.name: self._tables.ask(table.sql)}
        try:
            outcome = self._called(Derivation(self._folder, method_of(self._folder, table.call), self._tables))
        except Problems as problems:
            file, key = str(self._folder.path / "paper.toml"), f"table {table.name}: call"
            raise ScenarioError(replace(problem.at(file, None), key=key) for problem in problems.problems) from problems
        self.cpu_s += outcome.cpu
        assert outcome.answer is not None, "a function that fails raises"
        return {name or table.name: _table(text) for name, text in outcome.answer["tables"].items()}

    def _called(self, task: Derivation) -> Outcome:
        outcome = self._store.get(task) if self._store else None
        if outcome is None:
            begun = time.process_time()
            answer = task.compute(Stopwatch())
            outcome = Outcome(answer, cpu=time.process_time() - begun)
            if self._store:
                self._store.keep(task, outcome)
        return outcome


def _place(error: BaseException, file: Path) -> str:
    """The line of a file at which it failed, or the file alone."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if Path(frame.filename) == file]
    return f"{file.name}:{lines[-1]}" if lines else file.name


def _text(table: pl.DataFrame) -> str:
    content = BytesIO()
    table.write_ipc(content, compression="zstd")
    return b64encode(content.getvalue()).decode()


def _table(text: str) -> pl.DataFrame:
    return pl.read_ipc(b64decode(text))


def tables_digest(tables: Database) -> str:
    """The same for the same tables: names, columns, types, and rows in their order."""
    digest = sha256()
    known = tables.ask("SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL")
    for schema, name in known.iter_rows():
        content = BytesIO()
        tables.ask(f'SELECT * FROM "{schema}"."{name}"').rechunk().write_ipc(content)
        digest.update(f"{schema}\0{name}\0".encode())
        digest.update(sha256(content.getbuffer()).digest())
    return digest.hexdigest()


def files_digest(folder: Path, files: Iterable[Path]) -> str:
    """A digest of files in a folder, but for compiled Python: their paths seen from there, and what is in them."""
    digest = sha256()
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _libraries() -> dict[str, str]:
    """The versions of the libraries that are installed."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # of an extra
            continue
    return versions
