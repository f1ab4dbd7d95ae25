"""What is to be run for a paper, and what came out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlane.reproduce.cells import Cell, Done
from fairlane.reproduce.claims import Claim, Finding
from fairlane.reproduce.experiment import DEFAULT, Experiment, Paper, Scale
from fairlane.reproduce.results import Results

__all__ = ["Judged", "Plan", "Reproduction"]


@dataclass(frozen=True)
class Judged:
    """A claim and what was measured."""

    claim: Claim
    findings: Sequence[Finding]
    """Empty if something that it needs was not run."""
    missing: Sequence[str]
    """The experiments that were not run, or failed."""
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
    experiments: Mapping[str, tuple[Experiment, Scale]]
    left_out: Mapping[str, str]
    """Experiments that are not run or are scaled, and how."""

    def cells(self) -> list[Cell]:
        """The cells, each once: experiments may share their default runs."""
        found = [
            Cell(self.paper.name, experiment.default if treatment == DEFAULT else name, placement, treatment, scale)
            for name, (experiment, scale) in self.experiments.items()
            for placement in range(1, scale.placements + 1)
            for treatment in experiment.treatments
        ]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Reproduction:
    """What came out."""

    plan: Plan
    results: Results
    judged: Sequence[Judged]
    cells: Sequence[Done]
    """All cells."""

    @property
    def failed(self) -> list[Done]:
        """Cells that have no rows."""
        return [one for one in self.cells if one.rows is None]
