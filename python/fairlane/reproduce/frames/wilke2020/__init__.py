"""Wilke and Kenny 2020, Opportunities and limitations of quality of service in MPI applications.

Cells are defined in ``experiments`` and run in ``simulate``; claims are judged in ``checks``, figures drawn in
``figures``.
"""

from fairlane.reproduce.frames.paper import Paper
from fairlane.reproduce.frames.wilke2020.checks import CHECKS
from fairlane.reproduce.frames.wilke2020.experiments import EXPERIMENTS
from fairlane.reproduce.frames.wilke2020.selection import select

__all__ = ["PAPER"]

PAPER = Paper(
    name="wilke2020",
    title="Wilke and Kenny 2020, strategies of quality of service on Dragonfly and Fat Tree",
    experiments=list(EXPERIMENTS),
    checks=CHECKS,
    select=select,
)
"""The paper."""
