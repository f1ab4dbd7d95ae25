"""Machine of the jobs of a log: the fabric, patterns of communication, allocators, and a model of slowdowns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.reader import read_wiring
from fairlane.fabric.table import FabricTable
from fairlane.fabric.view import Fabric
from fairlane.inputs.problems import refusing
from fairlane.placement import ALLOCATORS, Communication, PlacementPolicy
from fairlane.placement.grid import sides_of
from fairlane.scheduler.easy import refusals
from fairlane.scheduler.log import LoggedJob, PatternMix
from fairlane.scheduler.slowdown.forecast import Forecast
from fairlane.scheduler.slowdown.model import load_model


@dataclass(frozen=True)
class Machine:
    """Fabric of the jobs of a log, their patterns, and a model of slowdowns."""

    fabric: Fabric
    spec: dict[str, Any]
    """The fabric as the simulator takes it."""
    patterns: Callable[[int], Communication] | None
    """The communication of a job by its number."""
    forecast: Forecast | None
    """The slowdowns of a model."""

    @classmethod
    def of_fabric(cls, fabric: str | None, assignments: Sequence[str], mix: Path | None, seed: int) -> Self:
        """A topology by name or a fabric by file, and the patterns of a file. Raises ``ScenarioError``."""
        if fabric is None and not assignments:
            allowed = 'as --set "sides=[8,4,4]", or --slowdown'
            raise ScenarioError(Problem("--fabric", "missing: what the jobs run on", allowed=allowed))
        if fabric is not None and Path(fabric).is_file():
            table = read_wiring(fabric).table()
        elif fabric is not None and Path(fabric).suffix:
            allowed = "a file of a fabric, or the name of a topology"
            raise ScenarioError(Problem("--fabric", "there is no such file", fabric, allowed))
        else:
            table = {"topology": fabric or "torus"}
        spec = FabricTable.read(table, assignments).spec
        patterns = PatternMix.from_file(mix) if mix else None
        return cls(Fabric.build(spec), spec, (lambda number: patterns.of(number, seed)) if patterns else None, None)

    @classmethod
    def of_model(cls, model: str, seed: int) -> Self:
        """The fabric and the patterns of a model of slowdowns. Raises ``ScenarioError``."""
        forecast = Forecast(load_model(model), seed)
        return cls(forecast.fabric, forecast.model.table.spec, forecast.communication, forecast)

    @property
    def kind_of(self) -> Callable[[int], str] | None:
        """The pattern of a job by its number."""
        patterns = self.patterns
        return (lambda number: patterns(number).kind) if patterns else None

    def usual(self, *, claim: bool) -> list[str]:
        """The allocators if none is named: contiguous, any free hosts, and by pattern if these are known."""
        contiguous = "domain" if sides_of(self.fabric) is None else "box"
        return [contiguous, "linear", *(["pattern"] if claim or self.patterns else [])]

    def allocators(self, texts: Sequence[str]) -> dict[str, PlacementPolicy]:
        """The allocators ``NAME[:KEY=VALUE]...`` by what the user calls them. Raises ``ScenarioError``."""
        by_text = {}
        for text in texts:
            first, *rest = text.split(":")
            extra = 1 if first.endswith(".py") else 0  # file.py:ClassName
            name = ":".join([first, *rest[:extra]])
            with refusing("allocator"):
                kind = ALLOCATORS.find(name)
            with refusing(f"allocator.{name}"):
                by_text[text] = kind.read({}, rest[extra:])
                by_text[text].check(self.fabric, [1])
        return by_text

    def refused(self, jobs: Sequence[LoggedJob], allocator: PlacementPolicy, seed: int, log: Path) -> list[Problem]:
        """The jobs of a log that get no hosts by an allocator even on the empty machine."""
        reason = f"gets no hosts even on the empty machine: it wants {allocator.wanted()}"
        return [
            Problem("processors", f"job {job.number} {reason}", job.hosts).at(str(log), job.line)
            for job in refusals(jobs, self.fabric, allocator, seed=seed, communication=self.patterns)
        ]
