"""A kind of treatment for tests: its runs do what the test needs, such as dying, in whatever process they are."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from fairlane.study.pinned import simulate
from fairlane.study.tasks.task import Stopwatch, Task
from fairlane.study.treatments import Treatment

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario


class Fake(Treatment):
    """Notes in a folder that it was run, and misbehaves the first times."""

    key: ClassVar[str] = "notes"

    notes: str
    """The folder."""
    deaths: int = 0
    """How many of its runs kill their process."""
    errors: int = 0
    """How many of its runs raise."""
    gates: dict[str, float] = Field(default_factory=dict)
    """Named pipes, each of which a run passes when someone has opened and closed it, and the share done until there."""

    def treated(self, pinned: Task, name: str) -> Task:
        arguments = {"notes": self.notes, "deaths": self.deaths, "errors": self.errors, "gates": self.gates}
        return pinned.of("fake_treatment:misbehave", name, {"name": name, **arguments})


def misbehave(scenario: Scenario, arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """What ``Fake`` says, then the plain run."""
    label = f"{arguments['name']}-{scenario.seed}"
    before = len(list(Path(arguments["notes"]).glob(f"{label}.*")))
    Path(arguments["notes"], f"{label}.{before}").touch()
    if before < arguments["deaths"]:
        os.kill(os.getpid(), signal.SIGKILL)
    if before < arguments["errors"]:
        raise ArithmeticError("no such luck")
    for gate, share in arguments["gates"].items():
        watch.reached(share)
        Path(gate).read_bytes()
    return simulate(scenario, {}, watch)
