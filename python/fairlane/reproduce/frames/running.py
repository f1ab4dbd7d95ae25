"""Performing what a paper needs as the tasks of studies are performed: in processes or on Dask, stored when done."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairlane.reproduce.frames.paper import Done
from fairlane.tasks.executor import Executor, Watcher
from fairlane.tasks.pools import Pool
from fairlane.tasks.sources import sources
from fairlane.tasks.store import Store
from fairlane.tasks.task import Computable, Task

__all__ = ["perform_all", "simulation", "source_of"]


def simulation(
    function: str, scenario: Mapping[str, Any], label: str, *, cost: float, arguments: Mapping[str, Any] | None = None
) -> Task:
    """A task that simulates a scenario in ``function`` (see ``Task``).

    It is another one when the simulator's files or the module of the function change.
    """
    made_by = {"simulator": sources("none"), "module": source_of(function.partition(":")[0])}
    return Task(function, scenario, ".", label, {**made_by, **(arguments or {})}, cost)


@lru_cache
def source_of(module: str) -> str:
    """A digest of a module's file."""
    spec = find_spec(module)
    assert spec is not None, "the functions of tasks are in modules that are there"
    assert spec.origin is not None, "modules are files"
    return sha256(Path(spec.origin).read_bytes()).hexdigest()[:16]


def perform_all(tasks: Mapping[Any, Computable], pool: Pool, store: Store, watcher: Watcher) -> dict[Any, Done]:
    """Performs the tasks that the store has no answers of; every answer is stored at once.

    A task that fails twice is reported with its error, and the others go on.
    """
    executor = Executor(pool, store, watcher)
    executor.run(tasks.values())
    return {key: _done(task, executor) for key, task in tasks.items()}


def _done(task: Computable, executor: Executor) -> Done:
    found = executor.outcomes.get(task.digest)
    if found is None:
        return Done(task, None, error=executor.failures[task.digest].error)
    return Done(task, found.answer, found.seconds, found.cpu)
