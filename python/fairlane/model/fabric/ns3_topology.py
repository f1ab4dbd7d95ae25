"""Topology files of ns-3's RDMA simulators: of HPCC, and of SimAI with GPUs and NVSwitches.

The first line has the numbers of nodes, switches and links; SimAI's the nodes, GPUs of a server, NVSwitches, switches,
links and the kind of GPU. Then come the ids of the switches (NVSwitches first), and for each link two ids, its rate,
its delay and its rate of packet errors. All words are separated by any white space, as in ``common.h`` of SimAI. What
follows is ignored, as by ns-3: files of HPCC have notes and more links there.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import BANDWIDTH, DURATION
from fairlane.inputs.files import content_lines
from fairlane.model.fabric.wiring import Cable, Wiring

_HEADERS = {3: re.compile(r"\d{1,9}\s+\d{1,9}\s+\d{1,9}"), 6: re.compile(r"(?:\d{1,9}\s+){5}[A-Za-z]\w*")}
_LINK_WORDS = 5
_Word = tuple[int, str]  # line, text


def is_ns3_topology(text: str) -> bool:
    """Whether a file begins like one of these, and not like a list of flows, whose first line is one number."""
    return any(form.fullmatch(next(content_lines(text), (0, ""))[1]) for form in _HEADERS.values())


def read_ns3_topology(text: str, file: Path) -> Wiring:
    """The wiring; ``ScenarioError`` names every line that is wrong. Nodes that are no switch are hosts."""
    words = [(line, word) for line, content in content_lines(text) for word in content.split()]
    with_gpus = bool(_HEADERS[6].fullmatch(next(content_lines(text))[1]))
    header = [int(word) for _, word in words[: 5 if with_gpus else 3]]
    nodes, (per_server, nvswitches), (others, links) = (
        header[0],
        header[1:3] if with_gpus else (0, 0),
        header[-2:],
    )
    words = words[6 if with_gpus else 3 :]
    switches = nvswitches + others
    announced = switches + _LINK_WORDS * links
    ignored, words = words[announced:], words[:announced]
    if len(words) != announced:
        following = len(words) - switches
        text = f"{links} links of {_LINK_WORDS} words each are announced, and {max(0, following)} words follow"
        raise ScenarioError(Problem.of_file(file, f"{text} the ids of {switches} switches: is the file cut off?"))
    if nodes > 2 * links:
        allowed = f"at most {2 * links} nodes, as each has a link"
        raise ScenarioError(Problem.of_file(file, f"{nodes} nodes and {links} links", allowed=allowed))
    problems: list[Problem] = []
    names: dict[int, str] = {}
    for at, (line, word) in enumerate(words[:switches]):
        if (number := _id(word, nodes)) is None or number in names:
            problems.append(Problem.of_file(file, f"switch {word[:40]}: no id, or twice", line, allowed=_ids(nodes)))
        else:
            names[number] = f"{'nvswitch' if at < nvswitches else 'switch'}{number}"
    hosts = {number: f"host{number}" for number in range(nodes) if number not in names}
    rows = (words[at : at + _LINK_WORDS] for at in range(switches, len(words), _LINK_WORDS))
    cables, lossy = [], 0
    for row in rows:
        try:
            cable, rate = _cable(row, names | hosts, nodes)
        except ValueError as error:
            problems.append(Problem.of_file(file, str(error), row[0][0]))
            continue
        cables.append(cable)
        lossy += rate > 0
    if problems:
        raise ScenarioError(problems)
    joined = {end for cable in cables for end in cable.ends}
    missing = [name for name in (*hosts.values(), *names.values()) if name not in joined]
    if missing:
        raise ScenarioError([Problem.of_file(file, f"{name} has no link") for name in missing[:10]])
    remarks = tuple(_remarks(lossy, per_server, nvswitches, ignored))
    return Wiring(tuple(hosts.values()), tuple(cables), remarks=remarks, source=file)


def _remarks(lossy: int, per_server: int, nvswitches: int, ignored: list[_Word]) -> Iterator[str]:
    if ignored:
        yield f"from line {ignored[0][0]} on the file is ignored: it announces no more links"
    if lossy:
        yield f"{lossy} links have packet errors, which are left out: see faults, bit_errors"
    if nvswitches:
        yield f"each GPU is a host with an adapter for each of its links; a server has {per_server}"


def _ids(nodes: int) -> str:
    return f"0 to {nodes - 1}"


def _id(word: str, nodes: int) -> int | None:
    return int(word) if word.isdecimal() and len(word) < 10 and int(word) < nodes else None


def _cable(row: list[_Word], names: dict[int, str], nodes: int) -> tuple[Cable, float]:
    """A link, and its rate of errors. Raises ``ValueError``."""
    first, second, rate, delay, errors = (word for _, word in row)
    ends = [_id(word, nodes) for word in (first, second)]
    if None in ends:
        raise ValueError(f"a link from {first[:40]} to {second[:40]}: no node; allowed: {_ids(nodes)}")
    if ends[0] == ends[1]:
        raise ValueError(f"a link from {first} to itself")
    try:
        lost = float(errors)
    except ValueError:
        raise ValueError(f"{errors[:40]} is no rate of errors") from None
    if not 0 <= lost <= 1:
        raise ValueError(f"{errors} is no rate of errors; allowed: 0 to 1")
    bandwidth, latency = BANDWIDTH.parse(rate), DURATION.parse(delay)
    cable = Cable((names[int(first)], names[int(second)]), None, bandwidth, latency, line=row[0][0])
    return cable, lost
