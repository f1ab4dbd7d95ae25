"""Topology files of htsim (``.topo``): a fat-tree of two or three tiers, by the radices of its switches.

The header has ``Nodes``, ``Tiers`` and ``Podsize``, the hosts of a pod; then come the tiers, ``Tier 0`` at the hosts,
with ``Radix_Down``, ``Radix_Up``, ``Downlink_Speed_Gbps``, ``Downlink_Latency_ns``, ``Bundle`` (parallel cables down to
each switch), ``Oversubscribed``, ``Switch_Latency_ns``, ``Queue_Up`` and ``Queue_Down``. Keys are in any case. Switches
are joined as ``fat_tree_topology.cpp`` of csg-htsim joins them: a leaf with all switches of tier 1 of its pod (with two
tiers, with all), and switch ``j`` of a pod's tier 1 with every core whose number is ``j`` modulo those of a pod.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.files import content_lines
from fairlane.model.fabric.wiring import Cable, Wiring, within_cables

_HEADER = ("nodes", "tiers", "podsize")
_NEEDED = ("radix_down", "downlink_speed_gbps", "downlink_latency_ns")
_IGNORED = ("switch_latency_ns", "queue_up", "queue_down")
_TIER = (*_NEEDED, "radix_up", "bundle", "oversubscribed", *_IGNORED)
_MOST = {"nodes": 65_536, "tiers": 3, "downlink_latency_ns": 10**9}
_MOST_NUMBER = 100_000
_NAMES = {2: ("leaf", "spine"), 3: ("leaf", "aggregation", "core")}


@dataclass
class _Tier:
    line: int
    values: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, key: str) -> int:
        return self.values.get(key, 1)


def is_htsim_topo(text: str) -> bool:
    """Whether a file begins like one of these."""
    first_lines = [line.lower().split() for _, line in content_lines(text)][:8]
    keys = {line[0] for line in first_lines if len(line) == 2}
    return {"nodes", "tiers"} <= keys


def read_htsim_topo(text: str, file: Path) -> Wiring:
    """The wiring of the fat-tree; ``ScenarioError`` names every line that is wrong, and radices that do not fit."""
    header, tiers, problems = _read(text, file)
    if problems:
        raise ScenarioError(problems)
    counts = _counts(header, tiers, file)
    ignored = sorted({key for tier in tiers for key in _IGNORED if tier.values.get(key)})
    remarks = [f"{key} is not part of a fabric: see network.switch_latency and network.buffer" for key in ignored]
    hosts = tuple(f"host{number}" for number in range(header["nodes"]))
    return Wiring(hosts, tuple(_cables(header, tiers, counts)), remarks=tuple(remarks), source=file)


def _read(text: str, file: Path) -> tuple[dict[str, int], list[_Tier], list[Problem]]:
    header: dict[str, int] = {}
    tiers: dict[int, _Tier] = {}
    problems: list[Problem] = []
    of_tier: dict[str, int] | None = None
    for line, content in content_lines(text):
        key, _, value = content.partition(" ")
        key, value = key.lower(), value.strip()
        known = ("tier", *(_HEADER if of_tier is None else _TIER))
        least = 0 if key in (*_IGNORED, "tier") else 1
        if key not in known:
            problems.append(Problem.of_file(file, f"no key {key}", line, allowed=", ".join(known)))
        elif not (value.isdecimal() and len(value) < 12 and least <= int(value) <= _MOST.get(key, _MOST_NUMBER)):
            allowed = f"a whole number from {least} to {_MOST.get(key, _MOST_NUMBER)}"
            problems.append(Problem.of_file(file, f"{key} = {value[:40]}", line, allowed=allowed))
        elif key == "tier":
            most = header.get("tiers", 3) - 1
            if int(value) in tiers or int(value) > most:
                problems.append(Problem.of_file(file, f"tier = {value}", line, allowed=f"0 to {most}, each once"))
            of_tier = tiers.setdefault(int(value), _Tier(line)).values
        else:
            table = header if of_tier is None else of_tier
            if key in table:
                problems.append(Problem.of_file(file, f"{key} is there already", line))
            table[key] = int(value)
    if not problems:
        problems += [Problem.of_file(file, f"{key} is missing") for key in _HEADER if key not in header]
        problems += [Problem.of_file(file, "tiers = 1", allowed="2 or 3")] * (header.get("tiers") == 1)
    if not problems:
        wanted = range(header["tiers"])
        problems += [Problem.of_file(file, f"tier {number} is missing") for number in wanted if number not in tiers]
        for number, tier in tiers.items():
            keys = _NEEDED if number == header["tiers"] - 1 else (*_NEEDED, "radix_up")
            missing = [key for key in keys if key not in tier.values]
            problems += [Problem.of_file(file, f"tier {number} has no {key}", tier.line) for key in missing]
    return header, [tiers[number] for number in sorted(tiers)], problems


def _counts(header: dict[str, int], tiers: list[_Tier], file: Path) -> list[int]:
    """Switches of each tier. Raises ``ScenarioError`` where they do not come out even, or radices contradict them."""
    problems: list[Problem] = []

    def whole(tier: int, total: int, of: int, words: str) -> int:
        if total % of:
            problems.append(Problem.of_file(file, f"{total} {words} of {of} each", tiers[tier].line))
        return total // of

    def agrees(tier: int, key: str, value: int) -> None:
        found = tiers[tier][key]
        if found != value:
            words = f"{key} of tier {tier} is {found}, and the other radices give {value}"
            problems.append(Problem.of_file(file, words, tiers[tier].line))

    nodes, podsize = header["nodes"], header["podsize"]
    pods = whole(0, nodes, podsize, "hosts are no whole number of pods")
    leaves = whole(0, podsize, tiers[0]["radix_down"], "hosts of a pod are no whole number of switches")
    uplinks = leaves * tiers[0]["radix_up"]
    if len(tiers) == 2:
        pods, leaves, uplinks = 1, leaves * pods, uplinks * pods
    above = whole(1, uplinks, tiers[1]["radix_down"], "cables up from a pod's tier 0 are no whole number of switches")
    agrees(0, "radix_up", above * tiers[1]["bundle"])
    counts = [leaves * pods, above * pods]
    if len(tiers) == 3:
        up = counts[1] * tiers[1]["radix_up"]
        cores = whole(2, up, tiers[2]["radix_down"], "cables up from tier 1 are no whole number of switches")
        each = whole(2, cores, max(1, above), "core switches are no whole number of times the switches of tier 1")
        agrees(1, "radix_up", each * tiers[2]["bundle"])
        counts.append(cores)
    problems += _oversubscription(tiers, file)
    if problems:
        raise ScenarioError(problems)
    cables = [nodes, *(below * tier["radix_up"] for below, tier in zip(counts[:-1], tiers[:-1], strict=True))]
    within_cables(sum(cables), file)
    return counts


def _oversubscription(tiers: list[_Tier], file: Path) -> Iterator[Problem]:
    """Tiers whose stated ratio is not that of bandwidth down and up."""
    for number, (tier, above) in enumerate(pairwise(tiers)):
        down = tier["radix_down"] * tier["downlink_speed_gbps"]
        up = tier["radix_up"] * above["downlink_speed_gbps"]
        if "oversubscribed" in tier.values and down != up * tier["oversubscribed"]:
            message = f"oversubscribed = {tier['oversubscribed']}, and the radices and speeds of tier {number} give"
            yield Problem.of_file(file, f"{message} {down / up:g}", tier.line)


def _cables(header: dict[str, int], tiers: list[_Tier], counts: list[int]) -> Iterator[Cable]:
    names = _NAMES[len(tiers)]
    pods = 1 if len(tiers) == 2 else header["nodes"] // header["podsize"]
    leaves, above = counts[0] // pods, counts[1] // pods

    def joined(tier: int, lower: str, upper: int) -> list[Cable]:
        rate, delay = tiers[tier]["downlink_speed_gbps"] * 10**9, tiers[tier]["downlink_latency_ns"] * 1000
        bundle = tiers[tier]["bundle"] if tier else 1
        return [Cable((lower, f"{names[tier]}{upper}"), None, rate, delay)] * bundle

    for host in range(header["nodes"]):
        yield from joined(0, f"host{host}", host // tiers[0]["radix_down"])
    for leaf in range(counts[0]):
        for at in range(above):
            yield from joined(1, f"leaf{leaf}", leaf // leaves * above + at)
    if len(tiers) == 3:
        for switch in range(counts[1]):
            for core in range(switch % above, counts[2], above):
                yield from joined(2, f"aggregation{switch}", core)
