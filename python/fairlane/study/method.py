"""Functions in a folder of studies: they measure a run, derive tables, or are a study without a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.code import Code, may_run
from fairlane.inputs.problems import Problems
from fairlane.inputs.registry import import_file
from fairlane.scenario import Scenario
from fairlane.tasks.task import Stopwatch

MEASURE = "fairlane.study.method:measure"


@dataclass(frozen=True)
class Method:
    """A function in a file."""

    file: Path
    name: str

    @classmethod
    def of(cls, folder: Path, given: str, trusted: Iterable[Path] = ()) -> Method:
        """The function behind ``method.py:name`` in a folder; raises ``Problems`` if there is none or it may not run.

        Code in the folders that are ``trusted`` needs no permission.
        """
        file, _, name = given.rpartition(":")
        path = folder / file
        if not file.endswith(".py") or not path.is_file():
            raise Problems(Problem("", "no such file and function", given, '"method.py:name"'))
        found = cls(path.resolve(), name)
        if not any(one in found.file.parents for one in trusted):
            may_run(Code(path, name), given)
        return found

    def function(self) -> Callable[..., Any]:
        """Imports it. Raises ``ScenarioError`` if the file cannot be imported, or has none of this name."""
        try:
            module = import_file(self.file, self.name)
        except Problems as problems:
            raise ScenarioError(problems.problems) from None
        known = {name: it for name, it in vars(module).items() if callable(it) and not name.startswith("_")}
        if self.name not in known:
            raise ScenarioError(Problem.unknown(str(self.file), "function", self.name, [*known], self.name))
        found: Callable[..., Any] = known[self.name]
        return found


def measure(scenario: Scenario, arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """Called by workers for a study whose ``measure`` names a function: passes it the scenario and the arguments."""
    function = Method(Path(arguments["file"]), arguments["name"]).function()
    answer: dict[str, Any] = function(scenario, arguments["arguments"], watch)
    return answer
