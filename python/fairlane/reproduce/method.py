"""Functions of a paper's own ``method.py``: a method of measuring, of making tables, or a study without a scenario."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.code import Code, may_run
from fairlane.inputs.document import Document
from fairlane.inputs.problems import refusing
from fairlane.inputs.registry import Registry

if TYPE_CHECKING:
    from fairlane.scenario import Scenario
    from fairlane.tasks.task import Stopwatch

__all__ = ["BUILT_IN", "PAPER", "PAPERS", "Method", "measure"]

PAPER = "paper.toml"
"""The file by which the folder of a paper is known."""
BUILT_IN = Path(__file__).with_name("papers")
"""The folder of the papers that fairlane comes with: their code needs no permission."""


class _Papers(Registry[Path]):
    """Folders of papers, by name."""

    own = f"a folder with a {PAPER}"
    wanted = f"a Python package with a {PAPER} in its folder"

    def accepted(self, thing: Any) -> Path | None:
        """The folder of a paper's package; None if it holds none."""
        found = Path(getattr(thing, "__file__", None) or "").parent
        return found if (found / PAPER).is_file() else None

    def summary(self, thing: Path) -> str:
        """The title."""
        return str(Document.read(thing / PAPER).data.get("title", thing.name))


PAPERS = _Papers(
    "paper",
    "fairlane.papers",
    {file.parent.name: file.parent for file in sorted(BUILT_IN.glob(f"*/{PAPER}"))},
    unread=BUILT_IN,
)
"""The folders of the papers that fairlane or an installed package comes with, by name."""


@dataclass(frozen=True)
class Method:
    """A function in a file."""

    file: Path
    name: str

    @classmethod
    def of(cls, folder: Path, given: str) -> Method:
        """The function behind ``method.py:name`` in a folder. Raises ``ScenarioError`` if it may not run."""
        file, colon, name = given.rpartition(":")
        path = folder / file
        if not colon or not file.endswith(".py") or not path.is_file():
            raise ScenarioError(Problem("method", "no such file and function", given, '"method.py:name"'))
        found = cls(path.resolve(), name)
        if BUILT_IN not in found.file.parents and not any(one in found.file.parents for one in PAPERS.values()):
            with refusing(given):
                may_run(Code(path, name), given)
        return found

    @property
    def digest(self) -> str:
        """Another one when the file changes."""
        return sha256(self.file.read_bytes()).hexdigest()[:16]

    def function(self) -> Callable[..., Any]:
        """It itself. Raises ``ScenarioError`` if the file has none of this name."""
        if BUILT_IN in self.file.parents:
            inside = self.file.relative_to(BUILT_IN).with_suffix("")
            module = import_module(f"fairlane.reproduce.papers.{'.'.join(inside.parts)}")
        else:
            spec = importlib.util.spec_from_file_location(f"fairlane_method_{self.digest}", self.file)
            assert spec is not None, "files of Python can be loaded"
            assert spec.loader is not None, "files of Python can be loaded"
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        known = [name for name in vars(module) if callable(getattr(module, name)) and not name.startswith("_")]
        if self.name not in known:
            raise ScenarioError(Problem.unknown(str(self.file), "function", self.name, known, self.name))
        found: Callable[..., Any] = getattr(module, self.name)
        return found


def measure(scenario: Scenario, arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """What workers call for a study whose ``measure`` names a function: it gets the scenario and its arguments."""
    function = Method(Path(arguments["file"]), arguments["name"]).function()
    answer: dict[str, Any] = function(scenario, arguments["arguments"], watch)
    return answer
