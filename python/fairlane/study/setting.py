"""Tables that set scenario keys, by dotted path: what a study, a case or a treatment changes."""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Annotated, Any

from pydantic import AfterValidator

from fairlane.errors import Problem
from fairlane.inputs.document import KeyPath, undotted
from fairlane.inputs.problems import Problems

IDENTITIES = frozenset(("name", "topology", "path", "policy", "strategy"))
"""A table with one of these keys replaces the whole table; other tables change single keys."""
LISTED = {("seed",): "seeds"}
"""Scenario keys that take the values of a list of the study."""


Change = tuple[KeyPath, Any, KeyPath]
"""A change: the scenario's path, the value, and the position in the study file."""


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
    found: list[Change] = []
    for key, value in given.items():
        path, place = (*prefix, *steps_of(key)), (*source, key)
        if isinstance(value, dict) and not whole & value.keys():
            found += changes(value, place, path, whole)
        else:
            found.append((path, value, place))
    return found
