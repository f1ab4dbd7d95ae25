"""What experiments consist of: scenarios by placement, how they are treated, and how much of them there is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlane.controller.loop import Phases

__all__ = ["CONTROL", "DEFAULT", "Experiment", "Scale"]

DEFAULT = "default"
"""The treatment that is none: all jobs on one level, and every job alone."""
CONTROL = "process_prioritization"
"""The treatment that the paper is about: claims are judged by it."""


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run."""

    placements: int
    """Different placements of the jobs."""
    periods: int
    """Iterations of the algorithm."""
    period: str = "60 ms"
    """P."""
    draws: int | None = 25
    """Different combinations of variants; None for a new one each period."""


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper: scenarios by placement, how they are treated, and how much of it there is."""

    name: str
    """What it is called in tables and files."""
    figure: str
    """The paper's figure or figures."""
    title: str
    """What it is about, in a line."""
    phases: Callable[[int, Scale], Phases]
    """The scenarios of a placement (1, 2 ...), by the period from which on they hold."""
    full: Scale
    """As the paper has it."""
    quick: Scale | None
    """For a quick look; None leaves it out."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the controller."""
    treatments: Sequence[str] = (DEFAULT, CONTROL)
    """Controllers that it is run with; ``default`` is none."""
    default_of: str | None = None
    """The experiment whose default runs are the same; None if it has its own."""
    routing: str | None = None
    """Another routing for jobs whose compute times are those of the scenario's own; None for the scenario's."""
    by_job: bool = False
    """Whether figures show jobs and not workloads."""

    @property
    def judged(self) -> str:
        """The treatment that claims are about."""
        return CONTROL if CONTROL in self.treatments else DEFAULT

    @property
    def default(self) -> str:
        """The experiment that has its default runs."""
        return self.default_of or self.name
