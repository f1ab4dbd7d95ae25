"""Performing what a paper needs as the tasks of studies are performed: in processes or on Dask, stored when done."""

from collections.abc import Mapping
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
    """A task that simulates a scenario in ``function`` (see ``Task``), known by the simulator's own files too."""
    made_by = {"simulator": sources("none"), **(arguments or {})}
    return Task(function, scenario, ".", label, made_by, cost)


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
