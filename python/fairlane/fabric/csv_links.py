"""Fabrics from a CSV file: a line for each cable.

The first line names the columns. ``from`` and ``to`` are required; ``from_port`` and ``to_port``, ``bandwidth`` and
``latency`` (with units), ``cables`` (how many in parallel) and ``from_kind`` and ``to_kind`` ("host" or "switch") are
optional. Names whose kind is not given are hosts if they have a single cable. Lines that begin with ``#`` are skipped.

Hosts and switches are numbered in order of first appearance. A line without ``to`` and with ``cables`` = 0 has no
cable: it gives the host in ``from`` its number.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.wiring import Cable, Wiring, with_one_cable
from fairlane.inputs.csv_rows import rows_of
from fairlane.inputs.files import content_lines
from fairlane.units import BANDWIDTH, DURATION, Kind
from fairlane.wording import plural, some

_REQUIRED = ("from", "to")
_OPTIONAL = ("from_port", "to_port", "bandwidth", "latency", "cables", "from_kind", "to_kind")
_KINDS = ("host", "switch")
_MOST = {"from_port": 65_535, "to_port": 65_535, "cables": 4096}  # the largest numbers that there may be
_MOST_CABLES = 4_000_000  # more cables than any fabric has; they are kept in memory one by one


def is_csv(text: str) -> bool:
    """Whether a file begins like one of these."""
    _, first = next(content_lines(text), (0, ""))
    return set(_REQUIRED) <= {cell.strip() for cell in first.split(",")}


def read_csv(text: str, file: Path) -> Wiring:
    """The wiring that a CSV file lists; ``ScenarioError`` names every line that is wrong."""
    problems: list[Problem] = []
    cables: list[Cable] = []
    kinds: dict[str, str] = {}
    named: dict[str, int] = {}
    for row in rows_of(text, file, _REQUIRED, _OPTIONAL):
        line = row.line
        try:
            if _names_one(row):
                named.setdefault(row["from"], line)
                _kind(row, "from", row["from"], kinds)
                continue
            cables += _cables(row, line)
            for side, end in zip(_REQUIRED, (row["from"], row["to"]), strict=True):
                _kind(row, side, end, kinds)
        except ValueError as error:
            problems.append(Problem.of_file(file, str(error), line))
        if len(cables) > _MOST_CABLES:
            raise ScenarioError(Problem.of_file(file, f"more than {_MOST_CABLES:,} cables up to here", line))
    problems += _twice(cables, file)
    joined = dict.fromkeys(end for cable in cables for end in cable.ends)
    problems += [Problem.of_file(file, f"{it} has no cable", at) for it, at in named.items() if it not in joined]
    if problems:
        raise ScenarioError(problems)
    single = with_one_cable(cables)
    names = dict.fromkeys((*named, *joined))
    hosts = tuple(name for name in names if (kinds[name] == "host" if name in kinds else name in single))
    return Wiring(hosts, tuple(cables), remarks=tuple(_guesses(names, hosts, kinds)), source=file)


def _guesses(names: Iterable[str], hosts: Collection[str], kinds: Mapping[str, str]) -> Iterator[str]:
    """Remarks on the names whose kind is not given."""
    guessed = [name for name in names if name not in kinds]
    there = [name for name in guessed if name in hosts]
    others = [name for name in guessed if name not in hosts]
    if there or not kinds:
        words = f"{plural(len(there), 'name')} with a single cable {'is' if len(there) == 1 else 'are'} assumed to be"
        yield f"{words} {'a host' if len(there) == 1 else 'hosts'}; set from_kind and to_kind"
    if kinds and others:
        words = f"{plural(len(others), 'name')} of no kind, with several cables: {some(others, 3)}"
        yield f"{words}; assumed to be {'a switch' if len(others) == 1 else 'switches'}; set from_kind and to_kind"


def _names_one(row: dict[str, str]) -> bool:
    """Whether a line has a name and no cable."""
    return bool(row["from"]) and not row["to"] and row.get("cables") == "0"


def _cables(row: dict[str, str], line: int) -> list[Cable]:
    if not row["from"] or not row["to"]:
        raise ValueError("a cable needs two ends")
    ports = tuple(_number(row, key) for key in ("from_port", "to_port"))
    count = _number(row, "cables") or 1
    known = None if ports[0] is None or ports[1] is None else (ports[0], ports[1])
    if known and count > 1:
        raise ValueError("several cables cannot share two ports: give each a line, or no ports")
    rate, delay = _quantity(row, "bandwidth", BANDWIDTH), _quantity(row, "latency", DURATION)
    return [Cable((row["from"], row["to"]), known, rate, delay, line=line)] * count


def _number(row: dict[str, str], key: str) -> int | None:
    given = row.get(key, "")
    if given and not (given.isdecimal() and len(given) <= 9 and 0 < int(given) <= _MOST[key]):
        raise ValueError(f"{key} = {given[:40]}: not a number from 1 to {_MOST[key]}")
    return int(given) if given else None


def _quantity(row: dict[str, str], key: str, kind: Kind) -> int | None:
    try:
        return kind.parse(row[key]) if row.get(key) else None
    except ValueError as error:
        raise ValueError(f"{key} = {row[key]}: {error}") from None


def _kind(row: dict[str, str], side: str, name: str, kinds: dict[str, str]) -> None:
    if f"{side}_kind" not in row:
        return
    kind = row[f"{side}_kind"]
    if kind not in _KINDS:
        raise ValueError(f"{side}_kind = {kind}: allowed: {', '.join(_KINDS)}")
    if kinds.setdefault(name, kind) != kind:
        raise ValueError(f"{name} is a {kind} here and a {kinds[name]} before")


def _twice(cables: list[Cable], file: Path) -> Iterator[Problem]:
    used: dict[tuple[str, int], int | None] = {}
    for cable in cables:
        for end in zip(cable.ends, cable.ports or (), strict=False):
            if end in used:
                words = f"port {end[1]} of {end[0]} has a cable already, on line {used[end]}"
                yield Problem.of_file(file, words, cable.line)
            used[end] = cable.line
