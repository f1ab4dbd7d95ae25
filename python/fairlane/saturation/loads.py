"""Offered loads, as an option gives them."""

from __future__ import annotations

from fairlane.errors import Problem, ScenarioError

__all__ = ["loads_of"]

_OPTION = "--load"
_ALLOWED = "a range as 0.05..1, or loads as 0.1,0.2,0.5; each above 0 and at most 1"


def loads_of(given: str, steps: int) -> list[float]:
    """The loads of a range "0.05..1", in ``steps`` equal steps, or those of a list "0.1,0.2".

    Raises ``ScenarioError`` if they are none.
    """
    first, dots, last = given.partition("..")
    if not dots:
        loads = [_load(part, given) for part in given.split(",")]
        if len(set(loads)) < len(loads):
            raise ScenarioError(Problem(_OPTION, "a load given twice", given, _ALLOWED))
        return sorted(loads)
    low, high = _load(first, given), _load(last, given)
    if low > high:
        raise ScenarioError(Problem(_OPTION, "the range ends before it begins", given, _ALLOWED))
    if low == high:
        return [low]
    if steps < 2:
        raise ScenarioError(Problem("--loads", "a range has two loads at least", steps, "2 or more"))
    # Rounded, so that names and tables show what is meant; a millionth of the load is far below what can be measured.
    return [round(low + (high - low) * step / (steps - 1), 6) for step in range(steps)]


def _load(part: str, given: str) -> float:
    try:
        load = float(part)
    except ValueError:
        raise ScenarioError(Problem(_OPTION, f"{part.strip()!r} is no number", given, _ALLOWED)) from None
    if not 0 < load <= 1:
        raise ScenarioError(Problem(_OPTION, f"{part.strip()} is out of range", given, _ALLOWED))
    return load
