"""Topology files of UFM (``.ndt``): CSV with the columns StartDevice, StartPort, EndDevice and EndPort.

The first column may be called ``#StartDevice`` or ``#Fields:StartDevice``; others, as rack, State and Domain, may be
there. Rows without an end, and those whose state is ``Disabled``, are ports without a cable. A cable may have a row
from either end. A device that names an adapter, or whose port does, is a host's: "node17 mlx5_0". Ports are numbered as
``Port 12`` says; those of other labels, as ``1/2/1``, by the order of the labels.
"""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import whole_number
from fairlane.core.wording import plural, some
from fairlane.model.fabric.ibnetdiscover import LANE_RATES, as_numbers_count, machine_of, refuse
from fairlane.model.fabric.wiring import Cable, Wiring, by_rails

_NEEDED = {"startdevice": 0, "startport": 1, "enddevice": 2, "endport": 3}
_SHORT = {"startdev": "startdevice", "enddev": "enddevice"}
_PORT = re.compile(r"(?:Port\s*)?(\d{1,5})", re.IGNORECASE)
_ADAPTER_OF_PORT = re.compile(r"(?:SAT\d+\s+)?(\S+)")
_SPEED = re.compile(r"(?:(\d{1,2})x)?([A-Z]+\d*)|(\d{1,6})\s*(?:G|Gbps|Gb/s)", re.IGNORECASE)
_SHOWN = 3

_End = tuple[str, str]  # device and label of the port


def is_ndt(text: str) -> bool:
    """Whether a file begins like one of these."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return set(_NEEDED) <= set(_columns(first))


def read_ndt(text: str, file: Path) -> Wiring:
    """The wiring; ``ScenarioError`` names every line that is wrong."""
    problems: list[Problem] = []
    free: list[str] = []
    far: dict[_End, _End] = {}
    lines: dict[_End, int] = {}
    rates: dict[_End, int | None] = {}
    for number, row in _rows(text, file, problems):
        end, other = (row["startdevice"], row["startport"]), (row["enddevice"], row["endport"])
        if not all(other) or row.get("state", "").lower() == "disabled":
            free.append(f"{' '.join(end)} (line {number})")
            continue
        if not all(end):
            problems.append(Problem.of_file(file, "a cable needs two devices and their ports", number))
            continue
        for here, there in ((end, other), (other, end)):
            if far.setdefault(here, there) != there:
                message = f"{here[1]} of {here[0]} has a cable already, on line {lines[here]}"
                problems.append(Problem.of_file(file, message, number))
            lines.setdefault(here, number)
        rates.setdefault(end, _rate(row.get("speed", "")))
    refuse(problems, file)
    hosts, remarks = _hosts(far)
    ports = _numbered(far, hosts)
    cables = []
    done: set[_End] = set()
    for end, other in far.items():
        if end not in done:
            done |= {end, other}
            ends = (hosts.get(end, end[0]), hosts.get(other, other[0]))
            rate = rates.get(end) or rates.get(other)
            cables.append(Cable(ends, (ports[end], ports[other]), rate, line=lines[end]))
    if free:
        remarks.append(f"{plural(len(free), 'port')} without a cable left out: {some(free, _SHOWN)}")
    names = tuple(dict.fromkeys(hosts.values()))
    if not names:
        raise ScenarioError(Problem.of_file(file, "no device is a host", allowed='devices such as "node17 mlx5_0"'))
    return Wiring(names, by_rails(cables, names), remarks=tuple(remarks), source=file)


def _columns(line: str) -> list[str]:
    """The names of the columns, in small letters."""
    cells = (cell.rpartition(":")[2].lstrip("#").strip().lower() for cell in _cells(line))
    return [_SHORT.get(cell, cell) for cell in cells]


def _rows(text: str, file: Path, problems: list[Problem]) -> Iterator[tuple[int, dict[str, str]]]:
    rows = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
    _, header = next(rows)
    columns = _columns(header)
    least = 1 + max(columns.index(name) for name in _NEEDED)
    for number, line in rows:
        cells = _cells(line)
        if len(cells) < 2 or (len(cells) < least and any(cells[2:3])):
            message = f"has {plural(len(cells), 'cell')}, and the header {len(columns)}: is the file cut off?"
            problems.append(Problem.of_file(file, message, number))
            continue
        cells += [""] * (len(columns) - len(cells))
        yield number, dict(zip(columns, cells, strict=False))


def _cells(line: str) -> list[str]:
    """The cells of a line; none of one that has a longer one than there may be."""
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _rate(text: str) -> int | None:
    """The data rate of a speed as ``4xNDR``, ``NDR`` or ``400G``, bits per second; None for anything else."""
    match = _SPEED.fullmatch(text.strip())
    if match is None:
        return None
    if match[3]:
        return whole_number(match[3]) * 10**9
    lane = LANE_RATES.get(match[2].upper())
    return whole_number(match[1] or "4") * lane if lane else None


def _hosts(far: Mapping[_End, _End]) -> tuple[dict[_End, str], list[str]]:
    """The host of each port that is a host's, and a remark where hosts are guessed."""
    hosts = {end: machine[0] for end in far if (machine := _machine(end))}
    if hosts:
        return hosts, []
    cables = Counter(device for device, _ in far)
    hosts = {end: end[0] for end in far if cables[end[0]] == 1}
    remark = f"no device names an adapter: {len(hosts)} devices with a single cable are assumed to be hosts"
    return hosts, [remark] if hosts else []


def _machine(end: _End) -> tuple[str, str] | None:
    """The machine and the adapter that a device or its port names."""
    device, label = end
    adapter = _ADAPTER_OF_PORT.fullmatch(label)
    return machine_of(device) or (machine_of(f"{device} {adapter[1]}") if adapter else None)


def _numbered(far: Mapping[_End, _End], hosts: Mapping[_End, str]) -> dict[_End, int]:
    """The number of each port: a host's over its adapters, a switch's by its label."""
    of: dict[str, list[_End]] = defaultdict(list)
    for end in far:
        of[hosts.get(end, end[0])].append(end)
    numbers_of: dict[_End, int] = {}
    for ends in of.values():
        numbers = [whole_number(match[1]) if (match := _PORT.fullmatch(label)) else 0 for _, label in ends]
        plain = ends[0] not in hosts and min(numbers) > 0 and max(numbers) <= 65_535 and len({*numbers}) == len(numbers)
        if plain:
            numbers_of.update(zip(ends, numbers, strict=True))
            continue
        order = sorted(ends, key=lambda end: (as_numbers_count((_machine(end) or end)[1]), as_numbers_count(end[1])))
        numbers_of.update((end, number) for number, end in enumerate(order, 1))
    return numbers_of
