"""Performing what a paper needs as the tasks of studies are performed: in processes or on Dask, stored when done."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairlane.reproduce.paper import Done
from fairlane.study.execute import Executed, Watcher, execute
from fairlane.study.pool import Pool
from fairlane.study.sources import sources
from fairlane.study.store import Store
from fairlane.study.task import Computable, Task

__all__ = ["perform_all", "simulation"]


def simulation(
    function: str, scenario: Mapping[str, Any], label: str, *, cost: float, arguments: Mapping[str, Any] | None = None
) -> Task:
    """A task that simulates a scenario in ``function`` (see ``Task``).

    It is another one when the simulator's files or the module of the function change.
    """
    made_by = {"simulator": sources("none"), "module": _source(function.partition(":")[0])}
    return Task(function, scenario, ".", label, {**made_by, **(arguments or {})}, cost)


@lru_cache
def _source(module: str) -> str:
    """A digest of a module's file."""
    spec = find_spec(module)
    assert spec is not None, "the functions of tasks are in modules that are there"
    assert spec.origin is not None, "modules are files"
    return sha256(Path(spec.origin).read_bytes()).hexdigest()[:16]


def perform_all(tasks: Mapping[Any, Computable], pool: Pool, store: Store, watcher: Watcher) -> dict[Any, Done]:
    """Performs the tasks that the store has no answers of; every answer is stored at once.

    A task that fails twice is reported with its error, and the others go on.
    """
    executed = Executed()
    execute(tasks.values(), pool, store, watcher, executed)
    return {key: _done(task, executed, store) for key, task in tasks.items()}


def _done(task: Computable, executed: Executed, store: Store) -> Done:
    answer = executed.of(task)
    if answer is None:
        return Done(task, None, error=executed.failures[task.digest].error)
    kept = store.answer(task) or {}
    return Done(task, answer, sum(kept.get("laps", {}).values()), kept.get("cpu", 0.0))
