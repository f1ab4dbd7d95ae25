"""Lists of hosts as Slurm writes them: ``rack1-[01-03,07],login``.

Names that differ only in the number at their end share brackets; numbers with leading zeros keep their width, and only
numbers of one width and style share a range. Names that cannot be told apart from brackets are refused.
"""

import re
from collections.abc import Iterable, Iterator

from fairlane.errors import Problem, ScenarioError

__all__ = ["can_hold", "compress", "expand"]

_PARTS = re.compile(r"(.*?)(\d*)", re.DOTALL)
_NAME = re.compile(r"[^\s,\[\]=#\"]+")
_ENTRY = re.compile(r"([^\[\],]*)(?:\[([^\[\]]*)\])?(?:,|$)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_MOST = 1_000_000
"""Names that a range may stand for."""
_LARGEST = 18
"""Digits of the longest number that is counted; longer ones stand as they are."""


def can_hold(name: str) -> bool:
    """Whether a list of hosts, or a file of Slurm, can hold this name."""
    return _NAME.fullmatch(name) is not None


def compress(names: Iterable[str]) -> str:
    """The names as one list: prefixes in order of first appearance, numbers ascending, each name once.

    Raises ``ScenarioError`` for a name that such a list cannot hold.
    """
    groups: dict[str, set[str]] = {}
    for name in names:
        if not can_hold(name):
            words = "cannot stand in a list of hosts"
            raise ScenarioError(Problem("host", words, name, 'letters, digits and signs without blanks, , [ ] = # "'))
        prefix, digits = _split(name)
        groups.setdefault(prefix, set()).add(digits)
    return ",".join(entry for prefix, numbers in groups.items() for entry in _entries(prefix, numbers))


def expand(text: str) -> list[str]:
    """The names of a list, in its order. Raises ``ScenarioError`` for what is no such list."""
    found: list[str] = []
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None or not (entry[1] or entry[2]):
            raise ScenarioError(Problem("hosts", f"no list of hosts from {text[at:]!r} on", text, "as rack[01-03,7],a"))
        found += _expanded(entry[1], entry[2], text)
        at = entry.end()
    return found


def _split(name: str) -> tuple[str, str]:
    """Name and the number at its end; a number that is too long belongs to the name."""
    parts = _PARTS.fullmatch(name)
    assert parts is not None, "any text has such parts"
    return (name, "") if len(parts[2]) > _LARGEST else (parts[1], parts[2])


def _ranges(numbers: list[int], width: int) -> list[str]:
    found = []
    first = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == last + 1:
            last = number
            continue
        low, high = f"{first:0{width}d}", f"{last:0{width}d}"
        found.append(low if first == last else f"{low}-{high}")
        if number is not None:
            first = last = number
    return found


def _entries(prefix: str, numbers: set[str]) -> Iterator[str]:
    """What stands in the list for the names that begin alike; an empty number is the prefix itself."""
    if "" in numbers:
        yield prefix
    padded = {len(digits) for digits in numbers if len(digits) > 1 and digits.startswith("0")}
    by_width: dict[int, list[int]] = {}
    for digits in numbers - {""}:
        by_width.setdefault(len(digits) if len(digits) in padded else 1, []).append(int(digits))
    ranges = [one for width in sorted(by_width) for one in _ranges(sorted(by_width[width]), width)]
    if len(ranges) == 1 and "-" not in ranges[0]:
        yield f"{prefix}{ranges[0]}"
    elif ranges:
        yield f"{prefix}[{','.join(ranges)}]"


def _expanded(prefix: str, brackets: str | None, text: str) -> list[str]:
    if brackets is None:
        return [prefix]
    found = []
    for part in brackets.split(","):
        bounds = _RANGE.fullmatch(part)
        if bounds is None or (bounds[2] and int(bounds[2]) < int(bounds[1])):
            raise ScenarioError(Problem("hosts", f"no range of numbers: {part!r}", text, "as 01-03"))
        low, high = bounds[1], bounds[2] or bounds[1]
        if int(high) - int(low) >= _MOST:
            raise ScenarioError(Problem("hosts", f"too many names: {part!r}", text, f"up to {_MOST} in a range"))
        found += [f"{prefix}{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    return found
