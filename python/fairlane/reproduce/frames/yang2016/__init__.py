"""Yang et al. 2016, Study of intra- and inter-job interference on torus networks.

Cells are defined in ``experiments`` and run in ``simulate``; claims are judged in ``checks``, figures drawn in
``figures``.
"""

from fairlane.reproduce.frames.paper import Paper
from fairlane.reproduce.frames.yang2016.checks import CHECKS
from fairlane.reproduce.frames.yang2016.experiments import EXPERIMENTS, SCHEDULES
from fairlane.reproduce.frames.yang2016.selection import select

__all__ = ["PAPER"]

PAPER = Paper(
    name="yang2016",
    title="Yang et al. 2016, allocation on torus networks",
    experiments=[*EXPERIMENTS, SCHEDULES],
    checks=CHECKS,
    select=select,
)
"""The paper."""
