"""The smallest case that still fails the same check: fewer actions, jobs and keys, smaller numbers, a shorter run."""

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fairlane import FairlaneError
from fairlane.core.units import DURATION
from vopr.case import Case, possible
from vopr.checks import Difference, check

__all__ = ["fails", "shrink"]

SMALLER = ("ranks", "count", "hosts", "ranks_per_host", "messages_per_iteration", "distinct_iterations", "hops")
"""Whole numbers that are halved."""
Path = tuple[str | int, ...]


def fails(case: Case, name: str) -> bool:
    """Whether a case can be built and fails this check."""
    try:
        resolved = case.resolve()
        if not all(possible(action, resolved) for action in case.actions):
            return False
        check(case, resolved, only=name)
    except Difference as difference:
        return difference.check == name
    except (FairlaneError, ValueError, TypeError, KeyError):
        return False
    return False


def shrink(case: Case, name: str, seconds: float = 60, fails: Callable[[Case, str], bool] = fails) -> Case:
    """A smaller case that fails the same check, found within about this time."""
    end, smaller = time.monotonic() + seconds, True
    while smaller:
        smaller = False
        for candidate in _smaller(case):
            if time.monotonic() > end:
                return case
            if fails(candidate, name):
                # From here on, what is left is tried once more: candidates were made of the larger case.
                case, smaller = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases that are a little smaller, those that are much smaller first."""
    for count in _halves(len(case.actions)):
        for first in range(0, len(case.actions), count):
            yield replace(case, actions=[*case.actions[:first], *case.actions[first + count :]])
    for duration in _shorter(case):
        yield replace(case, scenario={**case.scenario, "duration": f"{duration} ps"})
    paths = [path for path in _paths(case.scenario) if path[0] != "duration"]
    for path in sorted(paths, key=lambda path: (len(path), str(path))):
        yield replace(case, scenario=_without(case.scenario, path))
    for path in paths:
        value = _at(case.scenario, path)
        if path[-1] in SMALLER and isinstance(value, int) and value > 1:
            for less in (1, 2, value // 2, value - 1):
                if less < value:
                    yield replace(case, scenario=_with(case.scenario, path, less))


def _halves(count: int) -> Iterator[int]:
    while count:
        yield count
        count //= 2


def _shorter(case: Case) -> Iterator[int]:
    """Shorter durations, ps."""
    given = str(case.scenario["duration"])
    now = DURATION.parse(given)
    yield from (now // 8, now // 2, now * 7 // 8)


def _paths(value: Any, above: Path = ()) -> Iterator[Path]:
    """Where every key and every entry of a list stands; not within what is written in one piece."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*above, key)
        yield from _paths(inner, (*above, key))


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _without(scenario: dict[str, Any], path: Path) -> dict[str, Any]:
    found = copy.deepcopy(scenario)
    del _at(found, path[:-1])[path[-1]]
    return found


def _with(scenario: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(scenario)
    _at(found, path[:-1])[path[-1]] = value
    return found
