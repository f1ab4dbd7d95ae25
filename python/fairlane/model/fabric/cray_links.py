"""The cabling of a Cray Cascade (XC series): a line for each lane of every Aries.

``c0-0c0s0a0l01(0:0:0) blue -> c2-0c0s0a0l01(1:0:0)``: lane 01 of the Aries in cabinet 0-0, chassis 0, slot 0, which is
place 0 of row 0 of group 0; what its cable is; and the lane at its far end, or ``unused``. Green links join the
switches of a row, black ones those of a column, blue ones groups. ``ptile -> processor`` are lanes to hosts: two make
the link of one, and hosts are named as Cray names nodes, ``c0-0c0s0n0``. A lane's number, of two octal digits, is the
port's.

Links have the bandwidths of the topology ``cascade``. A cable has two lines, which must agree.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.files import content_lines
from fairlane.model.fabric.wiring import Cable, Wiring

_END = r"(c\d+-\d+c\d+s\d+)(a\d+)l([0-7]{2})\((\d{1,6}):(\d{1,6}):(\d{1,6})\)"
_LINE = re.compile(rf"{_END} (green|black|blue|ptile) -> (?:(unused|processor)|{_END})")
_LANES_OF_HOST = 2
_RATES = {"green": 42_000_000_000, "black": 42_000_000_000, "blue": 37_500_000_000, "ptile": 80_000_000_000}
"""Bits per second, as in the topology ``cascade``."""
_ORDER = ("green", "black", "blue")
"""Ports of a switch are in this order behind those of hosts; paths within a group take green before black."""
_WITHIN = {"green": "two switches of a row", "black": "two switches of a column", "blue": "two groups"}

_Place = tuple[int, int, int]  # group, row, column


@dataclass(frozen=True, slots=True)
class _Lane:
    """One line."""

    line: int
    blade: str
    aries: str  # name of the switch
    number: int
    place: _Place
    colour: str
    far: tuple[str, int] | None  # switch and lane at the other end
    far_place: _Place | None
    unused: bool


def is_cray_links(text: str) -> bool:
    """Whether a file begins like one of these."""
    _, first = next(content_lines(text), (0, ""))
    return _LINE.fullmatch(first) is not None


def read_cray_links(text: str, file: Path) -> Wiring:
    """The wiring that the lines list; ``ScenarioError`` names every line that is wrong."""
    problems: list[Problem] = []
    lanes: dict[tuple[str, int], _Lane] = {}
    for number, line in content_lines(text):
        lane = _read(number, line)
        if lane is None:
            problems.append(Problem.of_file(file, f"not a line of a Cray's cabling: {line[:80]!r}", number))
        elif (lane.aries, lane.number) in lanes:
            before = lanes[lane.aries, lane.number].line
            message = f"lane {lane.number:02d} of {lane.aries} is in line {before} already"
            problems.append(Problem.of_file(file, message, number))
        else:
            lanes[lane.aries, lane.number] = lane
    problems += [Problem.of_file(file, message, line) for line, message in _contradictions(lanes)]
    if problems:
        raise ScenarioError(problems)
    return _wiring(lanes, file)


def _read(number: int, line: str) -> _Lane | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    blade, aries, lane, *place, colour, nothing = match.groups()[:8]
    far_blade, far_aries, far_lane, *far_place = match.groups()[8:]
    # Lanes to hosts end at one or are unused, others at a lane or are unused.
    if (nothing == "processor") > (colour == "ptile") or (nothing is None) > (colour != "ptile"):
        return None
    far = None if nothing else (far_blade + far_aries, int(far_lane))
    there = None if nothing else (int(far_place[0]), int(far_place[1]), int(far_place[2]))
    here = (int(place[0]), int(place[1]), int(place[2]))
    return _Lane(number, blade, blade + aries, int(lane), here, colour, far, there, nothing == "unused")


def _contradictions(lanes: Mapping[tuple[str, int], _Lane]) -> Iterator[tuple[int, str]]:
    """Lines, and what is wrong with them."""
    places: dict[str, _Place] = {}
    names: dict[_Place, str] = {}
    for lane in lanes.values():
        place, name = places.setdefault(lane.aries, lane.place), names.setdefault(lane.place, lane.aries)
        if place != lane.place:
            yield lane.line, f"{lane.aries} is at {_shown(place)} in other lines, and here at {_shown(lane.place)}"
        elif name != lane.aries:
            yield lane.line, f"{_shown(lane.place)} is the place of {name} in other lines, and here of {lane.aries}"
    for lane in lanes.values():
        if lane.far is None:
            continue
        other = lanes.get(lane.far)
        name = f"lane {lane.far[1]:02d} of {lane.far[0]}"
        if other is None:
            yield lane.line, f"{name}, at the far end, has no line: is the file cut off?"
        elif other.far != (lane.aries, lane.number) or other.colour != lane.colour:
            yield lane.line, f"line {other.line} contradicts it: the other end of {name}"
        elif lane.far_place != other.place:
            yield lane.line, f"{lane.far[0]} is at {_shown(other.place)}"
        elif not _joins(lane.colour, lane.place, other.place):
            ends = f"{_shown(lane.place)} and {_shown(other.place)}"
            yield lane.line, f"a {lane.colour} link joins {_WITHIN[lane.colour]}, and here {ends}"


def _joins(colour: str, a: _Place, b: _Place) -> bool:
    if colour == "blue":
        return a[0] != b[0]
    kept = (0, 1) if colour == "green" else (0, 2)
    return a != b and all(a[axis] == b[axis] for axis in kept)


def _shown(place: _Place) -> str:
    return ":".join(map(str, place))


def _wiring(lanes: Mapping[tuple[str, int], _Lane], file: Path) -> Wiring:
    places = {lane.aries: lane.place for lane in lanes.values()}
    order = sorted(places, key=lambda aries: places[aries])
    at = {aries: number for number, aries in enumerate(order)}
    of_hosts: dict[str, list[_Lane]] = defaultdict(list)
    for lane in sorted(lanes.values(), key=lambda lane: lane.number):
        if lane.colour == "ptile" and not lane.unused:
            of_hosts[lane.aries].append(lane)
    hosts = [cable for aries in order for cable in _hosts(aries, of_hosts[aries], file)]
    switches = [lane for lane in lanes.values() if lane.far is not None and at[lane.aries] < at[lane.far[0]]]
    switches.sort(
        key=lambda lane: (_ORDER.index(lane.colour), at[lane.aries], at[(lane.far or ("", 0))[0]], lane.number)
    )
    cables = [*hosts, *(_cable(lane) for lane in switches)]
    groups, remarks = _groups(places, {cable.ends[1] for cable in hosts})
    unused = Counter(lane.colour for lane in lanes.values() if lane.unused)
    remarks += [f"{count} {colour} ports are unused" for colour, count in sorted(unused.items())]
    return Wiring(
        tuple(cable.ends[0] for cable in hosts),
        tuple(cables),
        labels={aries: _shown(place) for aries, place in places.items()},
        groups=groups,
        remarks=tuple(remarks),
        source=file,
    )


def _hosts(aries: str, lanes: list[_Lane], file: Path) -> Iterator[Cable]:
    """The cables of the hosts at a switch: two lanes each."""
    if len(lanes) % _LANES_OF_HOST:
        message = f"{aries} has {len(lanes)} lanes to hosts, and each host takes {_LANES_OF_HOST}"
        raise ScenarioError(Problem.of_file(file, message, lanes[-1].line))
    for number, lane in enumerate(lanes[::_LANES_OF_HOST]):
        blade = lane.blade if aries.endswith("a0") else aries
        ends, ports = (f"{blade}n{number}", aries), (1, lane.number)
        yield Cable(ends, ports, _RATES["ptile"], kind="ptile", line=lane.line)


def _cable(lane: _Lane) -> Cable:
    far, number = lane.far or ("", 0)
    rate, colour = _RATES[lane.colour], lane.colour
    return Cable((lane.aries, far), (lane.number, number), rate, kind=colour, line=lane.line, link_class=colour)


def _groups(places: Mapping[str, _Place], with_hosts: set[str]) -> tuple[tuple[int, int] | None, list[str]]:
    """Switches of a group and of a row, if all are alike, and what is remarkable about them."""
    shapes: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for group, row, column in places.values():
        shapes[group].add((row, column))
    numbers = sorted(shapes)
    remarks = []
    missing = sorted(set(range(numbers[-1])) - set(numbers)) if numbers[-1] < 10 * len(numbers) else []
    if missing:
        remarks.append(f"no switch is in {'group' if len(missing) == 1 else 'groups'} {', '.join(map(str, missing))}")
    shape = shapes[numbers[0]]
    rows, columns = ({place[axis] for place in shape} for axis in (0, 1))
    if any(other != shape for other in shapes.values()) or len(shape) != len(rows) * len(columns):
        return None, [*remarks, "groups differ, or are no full grids: routings of fabrics of groups do not fit"]
    if with_hosts != set(places):
        without = len(places) - len(with_hosts)
        return None, [*remarks, f"{without} switches have no hosts: routings of fabrics of groups do not fit"]
    return (len(shape), len(columns)), remarks
