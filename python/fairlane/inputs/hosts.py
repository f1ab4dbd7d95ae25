"""Names of hosts as Slurm has them: lists with brackets, and what a name may be. ``topology.conf`` is in ``fabric``.

*Lists of hosts as Slurm writes them: ``rack1-[01-03,07],login``.* Names that differ only in the number at their end
share brackets; numbers with leading zeros keep their width, and only numbers of one width and style share a range.
Names that Slurm does not take are refused. Lists that are read may have several brackets in a name, as
``rack[0-3]_node[0-7]``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import count, groupby, product
from math import prod
from typing import Annotated, Any, Self

from pydantic import BeforeValidator

from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.core.units import Written
from fairlane.inputs.problems import Problems

__all__ = ["can_hold", "compress", "expand", "in_order", "shortened", "slurm_names"]


_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")
_PARTS = re.compile(r"(.*?)(\d*)", re.DOTALL)
_ENTRY = re.compile(r"\s*([^\[\],\s]*(?:\[[^\[\]]*\](?:[^\[\],\s]*(?=\[))?)*)\s*(?:,|$)")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_MOST = 1_000_000  # names that a list may stand for
_MOST_BRACKETS, _LONGEST = 8, 255  # brackets of an entry, and letters of a name
_LARGEST = 18  # digits of the longest number that is counted; longer ones are kept as text


def can_hold(name: str) -> bool:
    """Whether Slurm takes this name for a host or a switch."""
    return _NAME.fullmatch(name) is not None


def slurm_names(names: Sequence[str], taken: Iterable[str] = (), word: str = "host") -> list[str]:
    """The names, with those changed that Slurm does not take.

    Every run of other characters becomes one ``_``. Names that Slurm takes stay as they are; one that would then be
    there twice, or is among ``taken``, gets a number: ``_2`` and so on. A name with nothing left is ``word``.
    """
    used = {name for name in names if can_hold(name)} | set(taken)
    renamed: dict[str, str] = {}
    for name in names:
        if can_hold(name) or name in renamed:
            continue
        renamed[name] = unused(_OTHER.sub("_", name).strip("_") or word, used)
    return [renamed.get(name, name) for name in names]


def unused(name: str, used: set[str]) -> str:
    """The name, or if it is used with the lowest number, from ``_2``, with which it is not; it is used from now on."""
    numbered = (f"{name}_{number}" for number in count(2))
    free = name if name not in used else next(candidate for candidate in numbered if candidate not in used)
    used.add(free)
    return free


def compress(names: Iterable[str]) -> str:
    """The names as one list: prefixes in order of first appearance, numbers ascending, each name once.

    Raises ``ScenarioError`` for a name that such a list cannot hold.
    """
    groups: dict[str, set[str]] = {}
    for name in names:
        if not can_hold(name):
            message = "cannot be in a list of hosts"
            raise ScenarioError(Problem("host", message, name, "letters, digits, - _ and ."))
        prefix, digits = _split(name)
        groups.setdefault(prefix, set()).add(digits)
    return ",".join(entry for prefix, numbers in groups.items() for entry in _entries(prefix, numbers))


def in_order(names: Iterable[str]) -> str:
    """The names as a list that keeps their order, as of a ring: ranges only where one follows the other."""
    entries: list[tuple[str, list[str]]] = []
    for name in names:
        prefix, digits = _split(name)
        last = entries[-1] if entries else ("", [])
        before = last[1][-1] if last[1] and last[0] == prefix else ""
        if digits and before and len(digits) == len(before) and int(digits) == int(before) + 1:
            last[1].append(digits)
        else:
            entries.append((prefix, [digits]))
    return ",".join(compress(f"{prefix}{digits}" for digits in run) for prefix, run in entries)


def shortened(names: Iterable[str], width: int = 100) -> str:
    """The names for people: as one list, cut off with their count where it is long; renamed where Slurm's would be."""
    distinct = list(dict.fromkeys(names))
    text = compress(slurm_names(distinct))
    return text if len(text) <= width else f"{text[:width]} ... ({len(distinct)} names)"


def expand(text: str) -> list[str]:
    """The names of a list, in its order. Raises ``ScenarioError`` for what is no such list."""
    try:
        return members(text)
    except ValueError as error:
        raise ScenarioError(Problem("hosts", str(error), text, "as rack[01-03,7],login")) from None


def is_list(text: str) -> bool:
    """Whether a text is such a list."""
    try:
        return bool(members(text))
    except ValueError:
        return False


def members(text: str) -> list[str]:
    """The same; raises ``ValueError`` with what is wrong."""
    names: list[str] = []
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None or not entry[1]:
            raise ValueError(f"no list of hosts from {text[at:][:40]!r} on")
        names += _expanded(entry[1], _MOST - len(names))
        at = entry.end()
    return names


def _split(name: str) -> tuple[str, str]:
    """Name and the number at its end; a number that is too long belongs to the name."""
    parts = _PARTS.fullmatch(name)
    assert parts is not None, "any text has such parts"
    return (name, "") if len(parts[2]) > _LARGEST else (parts[1], parts[2])


def ranges_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of ascending numbers that follow each other."""
    ranges = []
    for _, run in groupby(enumerate(numbers), lambda numbered: numbered[1] - numbered[0]):
        members = [number for _, number in run]
        ranges.append((members[0], members[-1]))
    return ranges


def _ranges(numbers: list[int], width: int) -> list[str]:
    """Ascending numbers, those that follow each other as one range."""
    return [
        f"{first:0{width}d}-{last:0{width}d}" if last > first else f"{first:0{width}d}"
        for first, last in ranges_of(numbers)
    ]


def _entries(prefix: str, numbers: set[str]) -> Iterator[str]:
    """The entries for names with the same prefix; an empty number is the prefix itself."""
    if "" in numbers:
        yield prefix
    padded = {len(digits) for digits in numbers if len(digits) > 1 and digits.startswith("0")}
    by_width: dict[int, list[int]] = {}
    for digits in numbers - {""}:
        by_width.setdefault(len(digits) if len(digits) in padded else 1, []).append(int(digits))
    ranges = [text for width in sorted(by_width) for text in _ranges(sorted(by_width[width]), width)]
    if len(ranges) == 1 and "-" not in ranges[0]:
        yield f"{prefix}{ranges[0]}"
    elif ranges:
        yield f"{prefix}[{','.join(ranges)}]"


def _expanded(entry: str, most: int) -> list[str]:
    """The names of one entry, whose brackets hold ranges."""
    parts = _BRACKETS.split(entry)
    if len(parts) // 2 > _MOST_BRACKETS or sum(map(len, parts[::2])) > _LONGEST:
        raise ValueError(f"too long: {entry[:40]!r}...; allowed are {_MOST_BRACKETS} brackets and {_LONGEST} letters")
    ranges = [[_range(part) for part in inside.split(",")] for inside in parts[1::2]]
    if prod(sum(len(span) for span, _ in part) for part in ranges) > most:
        raise ValueError(f"too many names: {entry[:40]!r} stands for more than are allowed in a list, {_MOST}")
    numbers = [[f"{number:0{width}d}" for span, width in part for number in span] for part in ranges]
    return ["".join(a + b for a, b in zip(parts[::2], (*chosen, ""), strict=True)) for chosen in product(*numbers)]


def _range(part: str) -> tuple[range, int]:
    """The numbers of a range such as ``01-16``, and how many digits they have at least."""
    bounds = _RANGE.fullmatch(part.strip())
    low, high = (bounds[1], bounds[2] or bounds[1]) if bounds else ("", "")
    if bounds is None or max(len(low), len(high)) > _LARGEST or int(high) < int(low):
        raise ValueError(f"no range of numbers: {part[:40]!r}; allowed are those such as 01-16")
    return range(int(low), int(high) + 1), len(low)


def printable(text: str) -> str:
    """A text that users chose, as the name of a job: control characters and lone surrogates become U+FFFD."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def assigned(nodes: str) -> str:
    """The node list that Slurm printed; empty for what it prints of a job without nodes.

    This is ``(null)`` or a reason such as ``(Priority)`` of squeue, and ``None assigned`` of sacct.
    """
    text = nodes.strip()
    return "" if text.startswith("(") or text.lower() == "none assigned" else text


@dataclass(frozen=True)
class SlurmJob:
    """A job that has nodes."""

    id: str
    """Slurm's number of the job, as text."""
    nodes: tuple[str, ...]
    """Its nodes, by Slurm's names."""
    name: str = ""
    account: str = ""
    partition: str = ""
    user: str = ""

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "nodes": list(self.nodes)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``written`` has made."""
        return cls(**{**data, "nodes": tuple(data["nodes"])})


Host = int | str  # a host by its number, from 0, or by its name
Hosts = tuple[Host, ...]
_ALLOWED = 'numbers from 0, names, or lists as "cn[001-016,020],login1"'
_ONE_BY_ONE = 3  # more unknown names are one problem


def read_hosts(given: Any) -> Any:
    """The hosts that a scenario names, in its order, lists of Slurm's spread out; ``Problems`` for what is none."""
    if given is None:
        return None
    whole = isinstance(given, list | tuple)
    hosts: list[Host] = []
    problems = []
    for at, item in enumerate(given if whole else [given]):
        try:
            hosts += _hosts(item)
        except ValueError as error:
            problems.append(Problem(f"[{at}]" if whole else "", str(error), item, _ALLOWED))
    if not problems and not hosts:
        problems = [Problem("", "names no host", given, _ALLOWED)]
    if problems:
        raise Problems(*problems)
    return tuple(hosts)


HostsField = Annotated[
    Written[Hosts | None], BeforeValidator(read_hosts, json_schema_input_type=Host | list[Host] | None)
]
"""A key of a scenario that names hosts."""


def host_numbers(hosts: Sequence[Host], names: Sequence[str]) -> list[int]:
    """The numbers of hosts of a fabric whose hosts have these ``names``; ``Problems`` for those that it does not have.

    A name is one of the fabric's, or what it is called for Slurm. Digits that are no name are a number.
    """
    numbers: dict[str, int] | None = None
    chosen, problems, unknown = [], [], []
    for host in hosts:
        if isinstance(host, str):
            numbers = numbers or _numbers(tuple(names))
            number = numbers.get(host, int(host) if re.fullmatch(r"0|[1-9][0-9]{0,9}", host) else None)
        else:
            number = host
        if number is None:
            unknown.append(str(host))
        elif number < len(names):
            chosen.append(number)
        else:
            problems.append(Problem("", f"there is no host {number}", allowed=f"0 to {len(names) - 1}"))
    there = f"the {len(names)} hosts of the fabric: {shortened(names, 60)}" if unknown else ""
    if len(unknown) > _ONE_BY_ONE:
        message = f"the fabric has no hosts with these {len(unknown)} names"
        problems.append(Problem("", message, shortened(unknown, 60), there, nearest(unknown[0], names)))
    else:
        message = "the fabric has no host with this name"
        problems += [Problem("", message, host, there, nearest(host, names)) for host in unknown]
    if problems:
        raise Problems(*problems)
    return chosen


def _hosts(item: Any) -> Iterator[Host]:
    if isinstance(item, str):
        # A fabric's own name may have blanks and commas, which Slurm's lists have not.
        yield from members(item) if "[" in item or not item.strip() or is_list(item) else [item]
    elif isinstance(item, int) and not isinstance(item, bool):
        if item < 0:
            raise ValueError("hosts are numbered from 0")
        yield item
    else:
        raise ValueError("is no host")


@lru_cache(4)  # the jobs of a scenario name hosts of one fabric
def _numbers(names: tuple[str, ...]) -> dict[str, int]:
    """Hosts by name; their own names come before those that they have for Slurm."""
    return {
        **{name: number for number, name in enumerate(slurm_names(names))},
        **{name: number for number, name in enumerate(names)},
    }
