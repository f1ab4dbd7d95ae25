"""What is to be run for a paper, and what came out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.reproduce.frames.claims import Claim
from fairlane.reproduce.frames.paper import Done, Finding, Measured, Options, Paper, Selection

__all__ = ["HOLDS", "Judged", "Plan", "Reproduction"]

HOLDS = {True: "holds", False: "does not hold", None: "not run"}
"""What is said of a claim."""


@dataclass(frozen=True)
class Judged:
    """A claim and what was measured."""

    claim: Claim
    findings: Sequence[Finding]
    missing: Sequence[str]
    """What it needs and was not run, or failed."""
    scaled: bool
    """Whether less was run than the paper has: then it is a try-out and not a judgement."""

    @property
    def holds(self) -> bool | None:
        """Whether all that was measured is in its band; None if not everything was."""
        return None if self.missing else all(held for _, held in self.findings)


@dataclass(frozen=True)
class Plan:
    """What will be run, and what is left out."""

    paper: Paper
    claims: Sequence[Claim]
    options: Options
    selection: Selection

    @property
    def left_out(self) -> Mapping[str, str]:
        """Experiments that are not run as in the paper, and how they differ."""
        return self.selection.left_out

    def judge(self, claim: Claim, measured: Measured) -> Judged:
        """Whether what was measured agrees with a claim."""
        check = self.paper.checks[claim.id]
        missing = [words for name in check.experiments for words in measured.missing(name)]
        findings = [] if missing and not check.judges_parts else list(check.judge(measured))
        scaled = self.options.quick or any(name in self.left_out for name in check.experiments)
        return Judged(claim, findings, list(dict.fromkeys(missing)), scaled)


@dataclass(frozen=True)
class Reproduction:
    """What came out."""

    plan: Plan
    measured: Measured
    judged: Sequence[Judged]
    done: Mapping[Any, Done]
    """What came of every task."""
    damaged: Sequence[str] = ()
    """Stored answers that had changed since they were stored, and so were computed again."""

    @property
    def failed(self) -> list[Done]:
        """What has no answer."""
        return [one for one in self.done.values() if one.answer is None]
