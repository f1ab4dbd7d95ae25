"""All loads on all seeds, on all cores. What is measured is stored at once, so that a sweep can go on where it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Event

from fairlane.errors import FairlaneError
from fairlane.results.store import new_folder
from fairlane.saturation.measure import Cell, Measurement, measure
from fairlane.saturation.plan import Plan
from fairlane.saturation.results import META, Saturation
from fairlane.study.pool import cores
from fairlane.study.progress import StudyProgress
from fairlane.study.store import Store, unfinished

__all__ = ["opened", "sweep"]

KIND = "sweep"
SCENARIO = "scenario.toml"
_WATCH_S = 0.1


def opened(plan: Plan, started: datetime, out: Path | None, *, resume: bool) -> Store:
    """The folder of a sweep: a new one, or with ``resume`` one that is there, by default the latest unfinished one.

    Raises ``ScenarioError`` if the plan cannot be simulated, ``ResultsError`` if the folder is of something else.
    """
    name = f"{plan.scenario.name}-saturation"
    spec = json.loads(json.dumps({**plan.described(), "files": plan.files()}))
    if resume:
        return Store.resume(out or unfinished(name, KIND, _complete), KIND, spec)
    folder = new_folder(name, started, out)
    plan.check()
    return Store.begin(folder, KIND, spec, {SCENARIO: plan.scenario.text})


def sweep(plan: Plan, *, store: Store | None = None, progress: bool = False) -> Saturation:
    """Simulates every load on every seed; ``progress`` is shown on standard error.

    What ``store`` has answers of is not simulated, and new answers go there. Threads suffice: the engine lets go of the
    interpreter while it simulates. Ctrl-C ends it; what is complete is kept, and ``partial`` is set. Raises
    ``ScenarioError`` or ``RunError`` if a simulation cannot be built or cannot go on.
    """
    run = _Sweep(plan, store)
    try:
        with StudyProgress(wanted=progress) as shown:
            run.perform(shown)
    except FairlaneError:
        if store is not None and not store.digests():
            store.undo()
        raise
    wanted = len(plan.loads) * len(plan.seeds)
    meta = {
        "version": version("fairlane"),
        **plan.described(),
        "loads": list(plan.loads),
        "seeds": list(plan.seeds),
        "partial": len(run.cells) < wanted,
        "recomputed": [] if store is None else store.damaged,
    }
    return Saturation.of(run.cells, meta)


class _Sweep:
    """A sweep under way."""

    def __init__(self, plan: Plan, store: Store | None) -> None:
        self._plan, self._store, self._stop = plan, store, Event()
        self.cells: list[Cell] = []
        """What is known."""
        self._every = [Measurement(load, seed, plan.duration) for load in plan.loads for seed in plan.seeds]
        self._shares: dict[Measurement, float] = {}
        self._running: dict[Future[Cell | None], Measurement] = {}

    def perform(self, shown: StudyProgress) -> None:
        """Measures what is not known."""
        known = [task for task in self._every if self._found(task)]
        shown.stage("simulating")
        shown.begin(self._every, known)
        # The greatest loads first: they take longest.
        todo = sorted((task for task in self._every if task not in known), key=lambda task: -task.load)
        pool = ThreadPoolExecutor(max_workers=cores())
        try:
            self._running = {pool.submit(self._measure, task): task for task in todo}
            with suppress(KeyboardInterrupt):
                self._watch(shown)
        finally:
            self._stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
        self._keep([future for future in self._running if not future.cancelled()])

    def _found(self, task: Measurement) -> bool:
        found = None if self._store is None else self._store.answer(task)
        if found is not None:
            self.cells.append(Cell.read(task.load, task.seed, found["answer"]))
        return found is not None

    def _measure(self, task: Measurement) -> Cell | None:
        return measure(self._plan, task.load, task.seed, self._stop, partial(self._shares.__setitem__, task))

    def _watch(self, shown: StudyProgress) -> None:
        """Until all are done; raises the first error at once."""
        while self._running:
            finished, _ = wait(self._running, timeout=_WATCH_S, return_when=FIRST_COMPLETED)
            for task in self._keep(list(finished)):
                shown.done(task)
            under_way = [(task, self._shares[task]) for task in self._running.values() if task in self._shares]
            shown.update(cores(), under_way)

    def _keep(self, finished: Sequence[Future[Cell | None]]) -> list[Measurement]:
        """Stores what has been measured, and returns what that is."""
        kept = []
        for future in finished:
            cell, task = future.result(), self._running[future]
            if cell is not None:
                if self._store is not None:
                    self._store.keep(task, {"answer": cell.answer()})
                self.cells.append(cell)
                kept.append(task)
            del self._running[future]
        return kept


def _complete(folder: Path) -> bool:
    """Whether its tables are there, with every load and seed."""
    try:
        return not json.loads((folder / META).read_bytes())["partial"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
