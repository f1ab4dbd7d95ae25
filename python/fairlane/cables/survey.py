"""All failures on all seeds, on all cores. What is measured is stored at once, so that a survey can be resumed."""

from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from fairlane.cables.measure import Failure, Trunks
from fairlane.cables.plan import Plan
from fairlane.cables.results import META, Cables
from fairlane.tasks import measuring
from fairlane.tasks.measuring import measure_all
from fairlane.tasks.store import Store


def opened(plan: Plan, started: datetime, out: Path | None, *, resume: bool) -> Store:
    """The folder of a survey: a new one, or with ``resume`` one that is there, by default the latest unfinished one.

    Raises ``ScenarioError`` or ``BuildError`` if the plan cannot be simulated, ``ResultsError`` if the folder is of
    something else.
    """
    plan.check()
    return measuring.opened(
        "survey", plan, META, started, out, code="fairlane.cables.measure", suffix="cables", resume=resume
    )


def survey(plan: Plan, *, store: Store | None = None, progress: bool = False) -> Cables:
    """Lets every part fail on every seed; ``progress`` is shown on standard error.

    A seed is simulated once up to the failure; each failure continues from a fork of it. Workers are threads, so that
    all have the same forks. What ``store`` has answers of is not simulated, and new answers go there. Ctrl-C ends it;
    what is complete is kept, and ``partial`` is set. Raises ``ScenarioError``, ``BuildError`` or ``RunError``.
    """
    trunks = Trunks(plan)
    tasks = [Failure(plan, trunks, part, seed) for seed in plan.seeds for part in plan.parts]
    found = measure_all(tasks, plan.workers, store, progress=progress)
    meta = {
        "version": version("fairlane"),
        **plan.described(),
        "kind": plan.parts[0].kind,
        "parts": len(plan.parts),
        "together": len(plan.parts[0].names),
        "seeds": list(plan.seeds),
        "partial": len(found) < len(tasks),
        "recomputed": [] if store is None else store.damaged,
    }
    return Cables.of(found, meta)
