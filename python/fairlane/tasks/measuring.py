"""Measurements that are independent of each other: all on all cores, each stored at once; and the folder for them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

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


def opened(
    kind: str, plan: Planned, meta: str, started: datetime, out: Path | None, *, code: str, suffix: str, resume: bool
) -> Store:
    """The folder of a command's results: a new one, or with ``resume`` one that is there.

    By default that is the latest unfinished one. ``code`` is the module of its tasks, ``meta`` the JSON file that says
    whether it is whole. Raises ``ResultsError`` if the folder is of something else.
    """
    file, described = plan.scenario.file, plan.described()
    files = sorted(set(files_of(described["scenario"], Path() if file is None else file.parent)))
    return Store.open(
        kind,
        f"{plan.scenario.name}-{suffix}",
        {**described, "files": files},
        {"scenario.toml": plan.scenario.text},
        code=[code],
        out=out,
        started=started,
        resume=resume,
        complete=lambda folder: is_whole(folder / meta),
    )


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


def is_whole(meta: Path) -> bool:
    """Whether a folder has everything that was to be measured, by its JSON file with the key ``partial``."""
    try:
        return not json.loads(meta.read_bytes())["partial"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
