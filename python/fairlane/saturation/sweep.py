"""All loads on all seeds, on all cores. What is measured is stored at once, so that a sweep can be resumed."""

import json
from contextlib import nullcontext, suppress
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from fairlane.saturation.measure import Measurement
from fairlane.saturation.plan import Plan
from fairlane.saturation.results import META, Saturation
from fairlane.tasks.executor import Executor
from fairlane.tasks.pools import Threads
from fairlane.tasks.progress import TaskProgress
from fairlane.tasks.store import Store

SCENARIO = "scenario.toml"


def opened(plan: Plan, started: datetime, out: Path | None, *, resume: bool) -> Store:
    """The folder of a sweep: a new one, or with ``resume`` one that is there, by default the latest unfinished one.

    Raises ``ScenarioError`` if the plan cannot be simulated, ``ResultsError`` if the folder is of something else.
    """
    plan.check()
    return Store.open(
        "sweep",
        f"{plan.scenario.name}-saturation",
        {**plan.described(), "files": plan.files()},
        {SCENARIO: plan.scenario.text},
        out=out,
        started=started,
        resume=resume,
        complete=_complete,
    )


def sweep(plan: Plan, *, store: Store | None = None, progress: bool = False) -> Saturation:
    """Simulates every load on every seed; ``progress`` is shown on standard error.

    What ``store`` has answers of is not simulated, and new answers go there. Ctrl-C ends it; what is complete is kept,
    and ``partial`` is set. Raises ``ScenarioError`` or ``RunError`` if a simulation cannot be built or cannot continue.
    """
    tasks = [Measurement(plan, load, seed) for load in plan.loads for seed in plan.seeds]
    with (
        TaskProgress(wanted=progress) as shown,
        nullcontext() if store is None else store.undone_without_answers(),
        Executor(Threads(plan.workers), store, shown, attempts=1, first_failure_ends=True) as executor,
        suppress(KeyboardInterrupt),
    ):
        shown.stage("simulating")
        executor.run(tasks)
    answers = [(task, executor.answer(task)) for task in tasks]
    found = [task.replicate(answer) for task, answer in answers if answer is not None]
    meta = {
        "version": version("fairlane"),
        **plan.described(),
        "loads": list(plan.loads),
        "seeds": list(plan.seeds),
        "partial": len(found) < len(tasks),
        "recomputed": [] if store is None else store.damaged,
    }
    return Saturation.of(found, meta)


def _complete(folder: Path) -> bool:
    """Whether its tables are there, with every load and seed."""
    try:
        return not json.loads((folder / META).read_bytes())["partial"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
