"""All loads on all seeds, on all cores. What is measured is stored at once, so that a sweep can be resumed."""

from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from fairlane.saturation.measure import Measurement
from fairlane.saturation.plan import Plan
from fairlane.saturation.results import META, Saturation
from fairlane.tasks import measuring
from fairlane.tasks.measuring import measure_all
from fairlane.tasks.store import Store


def opened(plan: Plan, started: datetime, out: Path | None, *, resume: bool) -> Store:
    """The folder of a sweep: a new one, or with ``resume`` one that is there, by default the latest unfinished one.

    Raises ``ScenarioError`` if the plan cannot be simulated, ``ResultsError`` if the folder is of something else.
    """
    plan.check()
    return measuring.opened(
        "sweep", plan, META, started, out, code="fairlane.saturation.measure", suffix="saturation", resume=resume
    )


def sweep(plan: Plan, *, store: Store | None = None, progress: bool = False) -> Saturation:
    """Simulates every load on every seed; ``progress`` is shown on standard error.

    What ``store`` has answers of is not simulated, and new answers go there. Ctrl-C ends it; what is complete is kept,
    and ``partial`` is set. Raises ``ScenarioError`` or ``RunError`` if a simulation cannot be built or cannot continue.
    """
    tasks = [Measurement(plan, load, seed) for load in plan.loads for seed in plan.seeds]
    answers = measure_all(tasks, plan.workers, store, progress=progress)
    found = [task.replicate(answer) for task, answer in answers]
    meta = {
        "version": version("fairlane"),
        **plan.described(),
        "loads": list(plan.loads),
        "seeds": list(plan.seeds),
        "partial": len(found) < len(tasks),
        "recomputed": [] if store is None else store.damaged,
    }
    return Saturation.of(found, meta)
