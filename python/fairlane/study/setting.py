"""Tables that set scenario keys, by dotted path: what a study, a case or a treatment changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.code import Code, may_run
from fairlane.inputs.document import KeyPath, undotted
from fairlane.inputs.problems import Problems
from fairlane.inputs.registry import import_file
from fairlane.model.scenario import Scenario
from fairlane.study.tasks.task import Stopwatch

IDENTITIES = frozenset(("name", "topology", "path", "policy", "strategy"))
"""A table with one of these keys replaces the whole table; other tables change single keys."""
LISTED = {("seed",): "seeds"}
"""Scenario keys that take the values of a list of the study."""


Change = tuple[KeyPath, Any, KeyPath]
"""A change: the scenario's path, the value, and the position in the study file."""


@dataclass(frozen=True)
class Point:
    """One scenario of the study before any treatment, and the keys that it sets.

    Its case by name; values of the parameters by dotted path and levels of the factors by name; which of the
    placements it has, from 0; and the scenario's seed.
    """

    case: str | None
    parameters: Mapping[str, Any]
    placement: int
    seed: int
    changes: tuple[Change, ...] = field(repr=False)

    def __str__(self) -> str:
        words = [*([self.case] if self.case else []), *(f"{key}={value}" for key, value in self.parameters.items())]
        return ", ".join([*words, f"placement {self.placement}", f"seed {self.seed}"])


def steps_of(key: str) -> KeyPath:
    """The path of a key."""
    return undotted(key.strip())


def misplaced(given: Iterable[tuple[str, Any]]) -> Iterator[Problem]:
    """Errors in keys to be set.

    Two keys may refer to the same value: as ``"a.b"``, and ``b`` in a table ``a``.
    """
    seen: set[KeyPath] = set()
    for key, value in given:
        path = steps_of(key)
        if not path:
            yield Problem("", "names no scenario key", key, 'a dotted path, as "network.mtu"')
        elif path in LISTED:
            yield Problem(key, f"is what the study's `{LISTED[path]}` says", value, f"{LISTED[path]} = [...]")
        elif path in seen:
            yield Problem(key, "is given twice", value, "every key once")
        seen.add(path)


def _judged(given: dict[str, Any]) -> dict[str, Any]:
    """A table, if its keys can be set."""
    wrong = list(misplaced((".".join(map(str, place)), value) for _, value, place in changes(given)))
    if wrong:
        raise Problems(*wrong)
    return given


Setting = Annotated[dict[str, Any], AfterValidator(_judged)]
"""Scenario keys that are different, by dotted path."""


def changes(
    given: Mapping[str, Any], source: KeyPath = (), prefix: KeyPath = (), whole: Set[str] = IDENTITIES
) -> list[Change]:
    """The changes of a table: path, value, and position in the study file. Single keys, or whole tables (``whole``)."""
    listed: list[Change] = []
    for key, value in given.items():
        path, place = (*prefix, *steps_of(key)), (*source, key)
        if isinstance(value, dict) and not whole & value.keys():
            listed += changes(value, place, path, whole)
        else:
            listed.append((path, value, place))
    return listed


MEASURE = "fairlane.study.setting:measure"


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
        method = cls(path.resolve(), name)
        if not any(folder in method.file.parents for folder in trusted):
            may_run(Code(path, name), given)
        return method

    def function(self) -> Callable[..., Any]:
        """Imports it. Raises ``ScenarioError`` if the file cannot be imported, or has none of this name."""
        try:
            module = import_file(self.file, self.name)
        except Problems as problems:
            raise ScenarioError(problems.problems) from None
        known = {name: value for name, value in vars(module).items() if callable(value) and not name.startswith("_")}
        if self.name not in known:
            raise ScenarioError(Problem.unknown(str(self.file), "function", self.name, [*known], self.name))
        function: Callable[..., Any] = known[self.name]
        return function


def measure(scenario: Scenario, arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """Called by workers for a study whose ``measure`` names a function: passes it the scenario and the arguments."""
    function = Method(Path(arguments["file"]), arguments["name"]).function()
    answer: dict[str, Any] = function(scenario, arguments["arguments"], watch)
    return answer
