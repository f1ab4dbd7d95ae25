"""All loads on all seeds, on all cores."""

from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from importlib.metadata import version

from rich.console import Console
from rich.progress import Progress

from fairlane.runner.engine import Driver
from fairlane.saturation.measure import Cell, measure
from fairlane.saturation.plan import Plan
from fairlane.saturation.results import Saturation

__all__ = ["sweep"]

_WATCH_S = 0.1


def sweep(plan: Plan, *, progress: bool = False) -> Saturation:
    """Simulates every load on every seed; ``progress`` is shown on standard error if that is a terminal.

    Threads suffice: the engine lets go of the interpreter while it simulates. Ctrl-C ends it; what is complete is kept,
    and ``partial`` is set. Raises ``ScenarioError`` or ``RunError`` if a simulation cannot be built or cannot go on.
    """
    driver = Driver()
    # The greatest loads first: they take longest.
    wanted = [(load, seed) for load in sorted(plan.loads, reverse=True) for seed in plan.seeds]
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    pool = ThreadPoolExecutor(max_workers=workers)
    cells: list[Cell] = []
    try:
        futures = [pool.submit(measure, plan, load, seed, driver) for load, seed in wanted]
        with suppress(KeyboardInterrupt):
            _watch(futures, progress=progress)
    finally:
        driver.stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
    for future in futures:
        if not future.cancelled():
            cell = future.result()
            if cell is not None:
                cells.append(cell)
    meta = {
        "version": version("fairlane"),
        **plan.described(),
        "loads": list(plan.loads),
        "seeds": list(plan.seeds),
        "partial": len(cells) < len(wanted),
    }
    return Saturation.of(cells, meta)


def _watch(futures: list[Future[Cell | None]], *, progress: bool) -> None:
    """Until all are done; raises the first error at once."""
    console = Console(stderr=True)
    pending = set(futures)
    with Progress(console=console, transient=True, disable=not (progress and console.is_terminal)) as bar:
        task = bar.add_task("simulations", total=len(futures))
        while pending:
            finished, pending = wait(pending, timeout=_WATCH_S, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
            bar.update(task, completed=len(futures) - len(pending))
