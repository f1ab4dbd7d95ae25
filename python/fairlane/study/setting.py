"""Tables that set scenario keys, by dotted path: what a study, a case or a treatment changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from fairlane.errors import Problem
from fairlane.inputs.document import KeyPath, undotted
from fairlane.inputs.problems import Problems

__all__ = ["Change", "Setting", "changes", "given_twice", "leaves", "misplaced", "steps_of"]

IDENTITIES = {"name", "topology", "path"}
"""A table with one of these is one thing and replaces what was there; others change single keys."""
LISTED = {("seed",): "seeds"}
"""Scenario keys that a list of the study goes through."""


Change = tuple[KeyPath, Any, KeyPath]
"""What is set: the scenario's path, the value, and where it says so."""


def steps_of(key: str) -> KeyPath:
    """The path that a key means."""
    return undotted(key.strip())


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and what stands there, through nested tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def misplaced(key: str, value: Any) -> Problem | None:
    """What is wrong with a key that is to be set, by itself."""
    path = steps_of(key)
    if not path:
        return Problem("", "names no scenario key", key, 'a dotted path, as "network.mtu"')
    if path in LISTED:
        return Problem(key, f"is what the study's `{LISTED[path]}` says", value, f"{LISTED[path]} = [...]")
    return None


def given_twice(given: Iterable[tuple[str, Any]]) -> Iterator[Problem]:
    """Keys that mean what another one before them means: as ``"a.b"``, and ``b`` in a table ``a``."""
    seen: set[KeyPath] = set()
    for key, value in given:
        if steps_of(key) in seen:
            yield Problem(key, "is given twice", value, "every key once")
        seen.add(steps_of(key))


def _judged(given: dict[str, Any]) -> dict[str, Any]:
    """A table, if its keys can be set."""
    found = changes(given, ())
    named = [(".".join(map(str, place)), value) for _, value, place in found]
    wrong = [problem for key, value in named if (problem := misplaced(key, value))]
    wrong += given_twice(named)
    if wrong:
        raise Problems(*wrong)
    return given


Setting = Annotated[dict[str, Any], AfterValidator(_judged)]
"""Scenario keys that are different, by dotted path."""


def changes(given: Mapping[str, Any], source: KeyPath, prefix: KeyPath = ()) -> list[Change]:
    """What a table sets: path, value, and where it says so. Single keys, unless a table is a thing of its own."""
    found: list[Change] = []
    for key, value in given.items():
        path, place = (*prefix, *steps_of(key)), (*source, key)
        if isinstance(value, dict) and not IDENTITIES & value.keys():
            found += changes(value, place, path)
        else:
            found.append((path, value, place))
    return found
