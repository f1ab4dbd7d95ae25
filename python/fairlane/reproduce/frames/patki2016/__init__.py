"""Patki et al. 2016, Understanding simultaneous impact of network QoS and power on HPC application performance.

Cells are defined in ``experiments`` and run in ``simulate``; claims are judged in ``checks``, figures drawn in
``figures``.
"""

from fairlane.reproduce.frames.paper import Paper
from fairlane.reproduce.frames.patki2016.checks import CHECKS
from fairlane.reproduce.frames.patki2016.experiments import EXPERIMENTS
from fairlane.reproduce.frames.patki2016.selection import select

__all__ = ["PAPER"]

PAPER = Paper(
    name="patki2016",
    title="Patki et al. 2016, rails, service levels, power caps and placement",
    experiments=EXPERIMENTS,
    checks=CHECKS,
    select=select,
)
"""The paper."""
