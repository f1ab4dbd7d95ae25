"""All transports, network tests and assignments of hosts, on all cores. What is measured is stored at once."""

from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from fairlane.gpcnet.measure import Trial
from fairlane.gpcnet.network_tests import TESTS, divided
from fairlane.gpcnet.plan import Plan
from fairlane.gpcnet.results import META, Gpcnet
from fairlane.tasks import measuring
from fairlane.tasks.measuring import measure_all
from fairlane.tasks.store import Store


def opened(plan: Plan, started: datetime, out: Path | None, *, resume: bool) -> Store:
    """The folder of a benchmark: a new one, or with ``resume`` one that is there, by default the latest unfinished one.

    Raises ``ResultsError`` if the folder is of something else.
    """
    return measuring.opened(
        "gpcnet", plan, META, started, out, code="fairlane.gpcnet.measure", suffix="gpcnet", resume=resume
    )


def benchmark(plan: Plan, *, store: Store | None = None, progress: bool = False) -> Gpcnet:
    """Runs every network test, isolated and congested; ``progress`` is shown on standard error.

    What ``store`` has answers of is not simulated, and new answers go there. Ctrl-C ends it; what is complete is kept,
    and ``partial`` is set. Raises ``ScenarioError`` or ``RunError`` if a simulation cannot be built or cannot continue.
    """
    trials = [
        Trial(plan, transport, test, congested, seed)
        for transport in plan.transports
        for test in TESTS.values()
        for seed in plan.seeds
        for congested in (False, True)
    ]
    found = measure_all(trials, plan.workers, store, progress=progress)
    meta = {
        "version": version("fairlane"),
        **plan.described(),
        "hosts": plan.hosts,
        "hosts_of_test": divided(plan.hosts)[0],
        "transports": list(plan.transports),
        "left_out": dict(plan.left_out),
        "seeds": list(plan.seeds),
        "partial": len(found) < len(trials),
        "recomputed": [] if store is None else store.damaged,
    }
    return Gpcnet.of(found, meta)
