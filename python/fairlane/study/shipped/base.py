"""The common part of shipped studies: options, task, run loop, and results with their folder.

A ``MeasuredStudy`` has the scenario of each condition and seed, and a function ``measure``. A ``ShippedStudy`` is one
with a folder of results: its ``ShippedResults`` are tables of the answers; their view is in ``fairlane.views``.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import polars as pl
from pydantic import BaseModel, Field

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import DURATION
from fairlane.inputs.problems import Problems, validated
from fairlane.inputs.table import Table
from fairlane.model.scenario import Scenario
from fairlane.model.scenario.resolve import building
from fairlane.results import notes
from fairlane.results.base import Results
from fairlane.results.manifest import Kind, Sealed, read_json
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import Schema, types
from fairlane.study.tasks.executor import Executor, simulating
from fairlane.study.tasks.pools import Threads, affordable
from fairlane.study.tasks.store import Store
from fairlane.study.tasks.task import Answer, Stopwatch, digest_of, files_of

_Model = TypeVar("_Model", bound=BaseModel)
_Built = TypeVar("_Built")
_Results = TypeVar("_Results", bound="ShippedResults")
Row = dict[str, Any]
"""An answer with its condition and its ``seed``."""


class Options(Table):
    """Options of a shipped study, which has a command of its own."""

    replicates: int = Field(default=3, ge=1)
    """Number of seeds: that of the scenario and those after it."""


def from_options(model: type[_Model], options: Mapping[str, Any], default: str = "") -> _Model:
    """Validate options as a model. Raises ``ScenarioError`` with keys as options, by default ``default``."""
    try:
        return validated(model, dict(options))
    except Problems as problems:
        raise ScenarioError([_as_option(problem, default) for problem in problems.problems]) from None


def _as_option(problem: Problem, default: str) -> Problem:
    head, dot, rest = problem.key.partition(".")
    return replace(problem, key=f"--{(head or default).replace('_', '-')}{dot}{rest}")


def check_before(option: str, time: int, end: int) -> None:
    """Raises ``ScenarioError`` unless the time of an option, ps, is before the end of the simulation."""
    if time >= end:
        allowed = f"below {DURATION.format(end)}"
        raise ScenarioError(Problem(option, "nothing is left to measure", DURATION.format(time), allowed))


def fabric_of(scenario: Scenario, build: Callable[[Mapping[str, Any]], _Built]) -> _Built:
    """Build a view of the scenario's fabric. Raises ``ScenarioError`` if it cannot be built."""
    try:
        return building(lambda: build(scenario.fabric.spec))
    except Problems as problems:
        raise scenario.error(problems) from None


def seeds_of(scenario: Scenario, count: int) -> list[int]:
    """Seeds of ``count`` replicates: that of the scenario and those after it."""
    return list(range(scenario.seed, scenario.seed + count))


@dataclass(frozen=True)
class Measurement:
    """The task that measures one condition on one seed."""

    study: "MeasuredStudy"
    condition: Mapping[str, Any]
    seed: int
    cost: float = 1.0

    @property
    def label(self) -> str:
        """Condition and seed: "swift, latency, congested, seed 3"."""
        values = {**self.condition, "seed": self.seed}
        return ", ".join(
            key if value is True else value if isinstance(value, str) else f"{key} {value:g}"
            for key, value in values.items()
            if value is not False
        )

    @property
    def digest(self) -> str:
        """Identifier of the answer within the study."""
        return digest_of([self.condition, self.seed])

    @property
    def description(self) -> Mapping[str, Any]:
        """The scenario."""
        return self.study.written(self.condition, self.seed)

    def compute(self, watch: Stopwatch) -> Answer:
        """Simulates. Raises ``RunError`` if the simulation cannot continue."""
        return self.study.measure(self.condition, self.seed, watch)


@dataclass(frozen=True, repr=False, kw_only=True)
class ShippedResults(Results):
    """Base of the results of shipped studies: tables, of which the first has a row for each measurement."""

    meta: Mapping[str, Any]
    """Provenance: version, scenario, seeds, whether the study was interrupted."""
    folder: Path | None = None
    """Folder; None while they are only in memory."""

    KIND: ClassVar[Kind]
    """The kind of the folder, and the name of the JSON file with the provenance."""
    SCHEMA_VERSION: ClassVar[int]
    """Version of the layout of the folder and of the tables' columns."""
    SCHEMAS: ClassVar[Mapping[str, Schema]]
    CSV: ClassVar[str]
    """The table that is stored as CSV, too."""
    SAME: ClassVar[Sequence[str]]
    """Columns of the first table that are equal in measurements that count as one replicate."""
    VARIED: ClassVar[str] = "seeds"
    """Name of the settings in which replicates differ."""
    MEASUREMENT: ClassVar[str] = "run"
    """Name of a measurement in sentences."""

    @classmethod
    def tables_of(cls, _rows: Sequence[Row], /) -> dict[str, pl.DataFrame]:
        """The tables of the answers, unless the study makes them."""
        raise NotImplementedError

    @classmethod
    def table(cls, name: str, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
        """A table with the columns of its schema; other keys of the rows are left out."""
        return pl.DataFrame(rows, schema=types(cls.SCHEMAS[name]), infer_schema_length=None)

    def repeated(self) -> list[str]:
        """The sentence about measurements that repeat another of their condition; nothing if none does."""
        return notes.repeated(getattr(self, self.TABLES[0]), self.SAME, [self.VARIED], self.MEASUREMENT)

    def save(self, store: Store) -> Self:
        """Stores the tables (Parquet, and one as CSV) and the provenance. Raises ``ResultsError`` if that fails."""
        meta = json.dumps(dict(self.meta), indent=2) + "\n"
        files = {f"{self.CSV}.csv": getattr(self, self.CSV).write_csv(), f"{self.KIND}.json": meta}
        store.finish(self.KIND, self.SCHEMA_VERSION, self.tables(), files)
        return replace(self, folder=store.folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads the results in a folder. Raises ``ResultsError`` if it is not complete, or has changed."""
        sealed = Sealed.open(folder, cls.KIND, cls.SCHEMA_VERSION)
        meta = read_json(json.loads, sealed.path(f"{cls.KIND}.json"))
        return cls(**read_tables(sealed, cls.SCHEMAS), meta=meta, folder=folder)


class MeasuredStudy(ABC):
    """Measurements of conditions on seeds, whose answers are rows."""

    @abstractmethod
    def measurements(self) -> Iterator[Measurement]:
        """All measurements, in the order of the first table."""

    @abstractmethod
    def at(self, condition: Mapping[str, Any], seed: int) -> Scenario:
        """The scenario of a measurement."""

    @abstractmethod
    def measure(self, condition: Mapping[str, Any], seed: int, watch: Stopwatch) -> Answer:
        """Simulates a condition on a seed. Raises ``RunError`` if the simulation cannot continue."""

    def further(self, _rows: Sequence[Row], /) -> Iterable[Measurement]:
        """Measurements that depend on the answers of the others."""
        return ()

    def written(self, condition: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """The scenario of a measurement as TOML has it."""
        return self.at(condition, seed).model_dump(mode="json", exclude_defaults=True, exclude_none=True)

    def perform(self, executor: Executor, tasks: list[Measurement] | None = None) -> list[Row]:
        """Make all measurements, which are added to ``tasks`` before they begin; a row for each."""
        tasks = [] if tasks is None else tasks
        tasks += self.measurements()
        executor.run(tasks)
        tasks += (further := list(self.further(_rows(executor, tasks))))
        executor.run(further)
        return _rows(executor, tasks)


class ShippedStudy(MeasuredStudy, Generic[_Results]):
    """A scenario and its measurements, with a folder of results."""

    results: type[_Results]
    noun: ClassVar[str]
    """Name of the study in messages."""
    scenario: Scenario
    seeds: Sequence[int]
    """Seeds of the replicates."""
    wanted_workers: int | None = None
    """Number of simulations at the same time; None for as many as there are cores and memory for."""
    remarks: Sequence[str] = ()
    """Differences from the scenario, and probable mistakes, a sentence each."""

    def tables_of(self, rows: Sequence[Row]) -> dict[str, pl.DataFrame]:
        """The tables of the answers."""
        return self.results.tables_of(rows)

    def described(self) -> dict[str, Any]:
        """Settings that answers depend on besides condition and seed, with the scenario's tables as ``scenario``."""
        return {"scenario": self.scenario.model_dump(mode="json", exclude_defaults=True, exclude={"seed"})}

    def summary(self) -> dict[str, Any]:
        """Further provenance."""
        return {}

    def check(self) -> None:
        """Raises ``ScenarioError`` or ``BuildError`` if the first simulation cannot be built."""
        self.workers  # noqa: B018 - it is kept

    @cached_property
    def workers(self) -> int:
        """Number of simulations at the same time, for which there is memory by the estimate of the first one.

        Raises ``ScenarioError`` or ``BuildError`` if it cannot be built.
        """
        first = next(self.measurements())
        estimate = self.at(first.condition, first.seed).resolve().estimate
        return affordable(estimate.memory if estimate else 0.0, self.scenario.memory, self.wanted_workers)

    def open(self, out: Path | None = None, *, resume: bool = False) -> Store:
        """The folder of the study: a new one, or with ``resume`` an existing one, by default the latest unfinished one.

        Raises ``ScenarioError`` or ``BuildError`` if it cannot be simulated, ``ResultsError`` if the folder is of
        something else.
        """
        self.check()
        file, described, kind = self.scenario.file, self.described(), self.results.KIND
        files = sorted(set(files_of(described["scenario"], Path() if file is None else file.parent)))
        return Store.open(
            self.noun,
            f"{self.scenario.name}-{kind}",
            {**described, "files": files},
            {"scenario.toml": self.scenario.text},
            code=[type(self).__module__],
            out=out,
            started=datetime.now().astimezone(),
            resume=resume,
            complete=lambda folder: _is_whole(folder / f"{kind}.json"),
        )

    def run(self, store: Store | None = None, *, progress: bool = False) -> _Results:
        """Makes all measurements whose answers are not stored; ``progress`` is shown on standard error.

        Each answer is stored at once. After Ctrl-C the results are those of what is complete, and ``partial`` is set.
        Raises the error of the first measurement that fails.
        """
        tasks, pool = list[Measurement](), Threads(self.workers)
        with (
            nullcontext() if store is None else store.undone_without_answers(),
            simulating(pool, store, progress=progress, attempts=1, first_failure_ends=True) as executor,
            suppress(KeyboardInterrupt),
        ):
            self.perform(executor, tasks)
        answers = _rows(executor, tasks)
        meta = {
            "version": version("fairlane"),
            **self.described(),
            **self.summary(),
            "seeds": list(self.seeds),
            "partial": len(answers) < len(tasks),
            "recomputed": [] if store is None else store.damaged,
        }
        tables: dict[str, Any] = self.tables_of(answers)
        results = self.results(**tables, meta=meta)
        return results if store is None else results.save(store)


def _rows(executor: Executor, tasks: Iterable[Measurement]) -> list[Row]:
    """The answers of measurements that are complete."""
    answers = ((task, executor.answer(task)) for task in tasks)
    return [{**task.condition, "seed": task.seed, **answer} for task, answer in answers if answer is not None]


def _is_whole(meta: Path) -> bool:
    """Whether a folder has all measurements, by its JSON file with the key ``partial``."""
    try:
        return not json.loads(meta.read_bytes())["partial"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
