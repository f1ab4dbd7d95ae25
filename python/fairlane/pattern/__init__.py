"""Communication patterns: a job's communication matrix, its communities of ranks, and what kind of pattern it is.

``analyse`` does it all for a trace's or a workload's program.
"""

from dataclasses import dataclass

from fairlane.core import bridge
from fairlane.pattern.traffic import KINDS, MOST_RANKS, Traffic, observe, program_of
from fairlane.pattern.verdict import BULK, Communities, Evidence, Kind, Verdict, communities, evidence, grids, judge

__all__ = [
    "BULK",
    "KINDS",
    "MOST_RANKS",
    "Communities",
    "Evidence",
    "Kind",
    "Pattern",
    "Traffic",
    "Verdict",
    "analyse",
    "communities",
    "evidence",
    "grids",
    "judge",
    "observe",
    "program_of",
]


@dataclass(frozen=True)
class Pattern:
    """The communication pattern of a job: matrix, communities of ranks, and class."""

    traffic: Traffic
    communities: Communities
    verdict: Verdict
    evidence: Evidence | None
    """The evidence for the class; None if nothing is sent."""


def analyse(program: bridge.Program) -> Pattern:
    """The pattern of a program that ends."""
    traffic = observe(program)
    verdict, shown = judge(traffic)
    return Pattern(traffic, communities(traffic), verdict, shown)
