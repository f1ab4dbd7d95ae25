"""Measurements that are independent of each other: all on all cores, each stored at once; their results and folder."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NotRequired, Protocol, Self, TypeVar

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from fairlane.results.base import Results
from fairlane.results.manifest import Kind, Sealed, read_json
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import Schema
from fairlane.tasks.executor import Executor
from fairlane.tasks.pools import Pool, Threads
from fairlane.tasks.progress import TaskProgress
from fairlane.tasks.store import Store
from fairlane.tasks.task import Answer, Computable, files_of

_Task = TypeVar("_Task", bound=Computable)


class Planned(Protocol):
    """What a command measures: a scenario in many variants."""

    @property
    def scenario(self) -> Any:
        """The scenario, with ``name``, ``text`` and ``file``."""

    def described(self) -> Mapping[str, Any]:
        """What the results depend on, with the scenario's tables as ``scenario``."""

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds of the replicates."""


class StoredMeta(TypedDict):
    """Provenance that every kind of measured results has in its JSON file."""

    version: str
    scenario: dict[str, Any]
    duration_ps: int
    seeds: list[int]
    partial: bool
    recomputed: NotRequired[list[str]]


@dataclass(frozen=True, repr=False, kw_only=True)
class Measured(Results):
    """The base of what a command measures in many simulations: tables, provenance and their folder."""

    meta: Mapping[str, Any]
    """Provenance: version, scenario, seeds, whether it was interrupted."""
    folder: Path | None = None
    """Where it is stored."""

    KIND: ClassVar[Kind]
    """The kind of its folder, and the name of the JSON file with its provenance."""
    SCHEMA_VERSION: ClassVar[int]
    """Version of the layout of the folder and of its tables' columns."""
    SCHEMAS: ClassVar[Mapping[str, Schema]]
    META: ClassVar[TypeAdapter[Any]]
    CSV: ClassVar[tuple[str, str]]
    """The table that is stored as CSV, too, and its file."""

    @classmethod
    def opened(cls, kind: str, plan: Planned, started: datetime, out: Path | None, *, code: str, resume: bool) -> Store:
        """The folder of results: a new one, or with ``resume`` one that is there, by default the latest unfinished one.

        ``kind`` is what messages call it, ``code`` the module of its tasks. Raises ``ResultsError`` if the folder is of
        something else.
        """
        file, described = plan.scenario.file, plan.described()
        files = sorted(set(files_of(described["scenario"], Path() if file is None else file.parent)))
        return Store.open(
            kind,
            f"{plan.scenario.name}-{cls.KIND}",
            {**described, "files": files},
            {"scenario.toml": plan.scenario.text},
            code=[code],
            out=out,
            started=started,
            resume=resume,
            complete=lambda folder: is_whole(folder / f"{cls.KIND}.json"),
        )

    def save(self, store: Store) -> Self:
        """Stores the tables (Parquet, and one as CSV) and the provenance. Raises ``ResultsError`` if that fails."""
        table, file = self.CSV
        meta = json.dumps(dict(self.meta), indent=2) + "\n"
        files = {file: getattr(self, table).write_csv(), f"{self.KIND}.json": meta}
        store.finish(self.KIND, self.SCHEMA_VERSION, self.tables(), files)
        return replace(self, folder=store.folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads the results in a folder. Raises ``ResultsError`` if it is not complete, or has changed."""
        sealed = Sealed.open(folder, cls.KIND, cls.SCHEMA_VERSION)
        meta = read_json(cls.META.validate_json, sealed.path(f"{cls.KIND}.json"))
        return cls(**read_tables(sealed, cls.SCHEMAS), meta=dict(meta), folder=folder)


@contextmanager
def simulating(pool: Pool, store: Store | None, *, progress: bool, **options: Any) -> Iterator[Executor]:
    """An executor of simulations, with ``options`` of ``Executor``; ``progress`` is shown on standard error."""
    with TaskProgress(wanted=progress) as shown, Executor(pool, store, shown, **options) as executor:
        shown.stage("simulating")
        yield executor


def measure_all(
    tasks: Sequence[_Task], workers: int, store: Store | None, *, progress: bool
) -> list[tuple[_Task, Answer]]:
    """The tasks that have an answer, in their order, with it; ``progress`` is shown on standard error.

    What ``store`` has answers of is not computed, and new answers go there. Ctrl-C ends it; what is complete is kept.
    Raises the error of the first task that fails.
    """
    with (
        nullcontext() if store is None else store.undone_without_answers(),
        simulating(Threads(workers), store, progress=progress, attempts=1, first_failure_ends=True) as executor,
        suppress(KeyboardInterrupt),
    ):
        executor.run(tasks)
    return [(task, answer) for task in tasks if (answer := executor.answer(task)) is not None]


def provenance(plan: Planned, store: Store | None, *, partial: bool, **more: Any) -> dict[str, Any]:
    """What a folder keeps of how its results were measured: what the plan says, ``more``, and what was interrupted."""
    return {
        "version": version("fairlane"),
        **plan.described(),
        **more,
        "seeds": list(plan.seeds),
        "partial": partial,
        "recomputed": [] if store is None else store.damaged,
    }


def is_whole(meta: Path) -> bool:
    """Whether a folder has everything that was to be measured, by its JSON file with the key ``partial``."""
    try:
        return not json.loads(meta.read_bytes())["partial"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
