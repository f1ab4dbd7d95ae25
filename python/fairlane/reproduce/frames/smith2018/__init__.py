"""Smith et al. 2018, Analyzing inter-job contention in dragonfly networks (Edison).

Runs are defined in ``experiments`` and simulated in ``simulate``; ``measured`` has them as tables, a row for each run
and one for each timestep, and ``dataset`` stores these. Claims are judged in ``checks``.
"""

from fairlane.reproduce.frames.paper import Paper
from fairlane.reproduce.frames.smith2018.checks import CHECKS
from fairlane.reproduce.frames.smith2018.experiments import CABLINGS, EXPERIMENTS
from fairlane.reproduce.frames.smith2018.selection import select

__all__ = ["PAPER"]

PAPER = Paper(
    name="smith2018",
    title="Smith et al. 2018, contention between jobs on a dragonfly",
    experiments=EXPERIMENTS,
    checks=CHECKS,
    select=select,
    options=frozenset({"cabling"}),
    cablings=tuple(CABLINGS),
)
"""The paper."""
