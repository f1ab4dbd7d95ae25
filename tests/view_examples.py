"""Views of what is no folder of results, each of a small example; names try to break out of the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import fairlane
from fairlane.analysis import analyze
from fairlane.views import analysis
from fairlane.views.model import View
from report_runs import EVIL

__all__ = ["VIEWS"]


def _analysis() -> View:
    """Why iterations of a job are delayed by another one, on two groups of a Cascade."""
    scenario = fairlane.Scenario(
        name="cascade",
        duration="900 us",
        seed=3,
        fabric={"topology": "cascade", "groups": 2, "columns": 3, "rows": 2, "hosts_per_switch": 2},
        placement={"name": "linear", "ranks_per_host": 2},
        observe={"iterations": ["halo"]},
        jobs=[
            {"name": "halo", "ranks": 16, "workload": {"name": "uniform_random", "compute": "5 us"}},
            {"name": EVIL, "ranks": 24, "workload": {"name": "random_pairs", "message_size": "64 KiB"}},
        ],
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        fairlane.run(scenario, out=path, isolated=False, progress=False)
        return analysis.view(analyze(path, job="halo", progress=False))


VIEWS: dict[str, Callable[[], View]] = {"analysis": _analysis}
"""By the module of ``fairlane.views``."""
