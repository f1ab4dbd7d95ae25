"""Savoie et al. 2020, Mitigating Inter-Job Interference via Process-Level Quality-of-Service.

Systems and workloads are in ``systems``, experiments in ``experiments``; ``selection`` makes cells of them; claims are
judged in ``checks``.
"""

from fairlane.reproduce.paper import Paper
from fairlane.reproduce.savoie2020.checks import CHECKS
from fairlane.reproduce.savoie2020.experiments import EXPERIMENTS
from fairlane.reproduce.savoie2020.selection import select

__all__ = ["PAPER"]

PAPER = Paper(
    name="savoie2020",
    title="Savoie et al. 2020, process-level quality of service",
    experiments=list(EXPERIMENTS),
    checks=CHECKS,
    select=select,
    options=frozenset({"placements", "periods", "beside"}),
)
"""The paper."""
