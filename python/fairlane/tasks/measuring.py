"""Measurements that are independent of each other: all on all cores, each stored at once, and what Ctrl-C leaves."""

import json
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TypeVar

from fairlane.tasks.executor import Executor
from fairlane.tasks.pools import Threads
from fairlane.tasks.progress import TaskProgress
from fairlane.tasks.store import Store
from fairlane.tasks.task import Answer, Computable

_Task = TypeVar("_Task", bound=Computable)


def measure_all(
    tasks: Sequence[_Task], workers: int, store: Store | None, *, progress: bool
) -> list[tuple[_Task, Answer]]:
    """The tasks that have an answer, in their order, with it; ``progress`` is shown on standard error.

    What ``store`` has answers of is not computed, and new answers go there. Ctrl-C ends it; what is complete is kept.
    Raises the error of the first task that fails.
    """
    with (
        TaskProgress(wanted=progress) as shown,
        nullcontext() if store is None else store.undone_without_answers(),
        Executor(Threads(workers), store, shown, attempts=1, first_failure_ends=True) as executor,
        suppress(KeyboardInterrupt),
    ):
        shown.stage("simulating")
        executor.run(tasks)
    return [(task, answer) for task in tasks if (answer := executor.answer(task)) is not None]


def is_whole(meta: Path) -> bool:
    """Whether a folder has everything that was to be measured, by its JSON file with the key ``partial``."""
    try:
        return not json.loads(meta.read_bytes())["partial"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
