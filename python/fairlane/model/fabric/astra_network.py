"""Network files of ASTRA-sim's analytical backend: dimensions of NPUs, each a ring, fully connected or on a switch.

``topology``, ``npus_count``, ``bandwidth`` (GB/s of a link and direction, a GB being 2^30 bytes) and ``latency`` (ns of
a link) have an entry for each dimension; NPUs are numbered along the first. An NPU is a host. NPUs of one dimension
with a switch are joined to it; others forward what is not for them, so each has a switch, ``router0``, between its host
and its links, and the link to its host is as fast as all of them together.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from math import prod
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import DURATION
from fairlane.inputs.files import content_lines, parse_json, reading
from fairlane.model.fabric.slurm_topology import YamlError, parse_yaml
from fairlane.model.fabric.wiring import Cable, Wiring, within_cables

_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_LOGICAL = "logical-dims"
_FORMS = ("Ring", "FullyConnected", "Switch")
_MOST_NPUS = 65_536
_GB = 8 << 30  # bits
_HOST_PART = 10  # the latency of the link to a host is this part of the shortest
_ALGORITHMS = {
    "all-reduce": ("allreduce", {"ring": "ring", "halvingDoubling": "rabenseifner"}),
    "all-gather": ("allgather", {"ring": "ring", "halvingDoubling": "recursive_doubling"}),
    "reduce-scatter": ("reduce_scatter", {"ring": "ring", "halvingDoubling": "recursive_halving"}),
    "all-to-all": ("alltoall", {"direct": "linear"}),
}
"""Keys of system files, and the collective and its algorithms of ``mpi.collectives``."""


def is_astra_network(text: str) -> bool:
    """Whether a file is one of these."""
    keys = {line.partition(":")[0].strip() for _, line in content_lines(text)}
    return {"topology", "npus_count"} <= keys


def read_astra_network(text: str, file: Path) -> Wiring:
    """The wiring; ``ScenarioError`` names key and value of what is wrong."""
    try:
        table = parse_yaml(text)
    except YamlError as error:
        raise ScenarioError(Problem.of_file(file, str(error), error.line)) from None
    values_of = {key: table.get(key) if isinstance(table, dict) else None for key in _KEYS}
    lists: dict[str, list[Any]] = {key: values for key, values in values_of.items() if isinstance(values, list)}
    if len(lists) < len(_KEYS):
        wrong = [key for key in _KEYS if key not in lists]
        raise ScenarioError([Problem.of_file(file, f"{key} is missing or no list") for key in wrong])
    if len({len(values) for values in lists.values()}) > 1:
        counts = ", ".join(f"{len(values)} in {key}" for key, values in lists.items())
        message = f"dimensions differ: {counts}"
        raise ScenarioError(Problem.of_file(file, message, allowed="an entry for each dimension in each list"))
    if not lists["topology"]:
        raise ScenarioError(Problem.of_file(file, "no dimensions", allowed="an entry for each dimension in each list"))
    forms = [_form(value, file) for value in lists["topology"]]
    sizes = [int(_number(value, "npus_count", file, whole=True)) for value in lists["npus_count"]]
    if prod(sizes) > _MOST_NPUS:
        raise ScenarioError(Problem.of_file(file, f"{prod(sizes):,} NPUs", allowed=f"at most {_MOST_NPUS:,}"))
    rates = [round(_number(value, "bandwidth", file) * _GB) for value in lists["bandwidth"]]
    delays = [round(_number(value, "latency", file) * 1000) for value in lists["latency"]]
    dimensions = list(zip(forms, sizes, rates, delays, strict=True))
    links = [
        prod(sizes) * (size - 1 if form == "FullyConnected" else 2) // 2
        for form, size in zip(forms, sizes, strict=True)
    ]
    within_cables(sum(links), file)
    hosts = tuple(f"npu{number}" for number in range(prod(sizes)))
    if forms == ["Switch"]:
        cables = [Cable((host, "switch0"), None, rates[0], delays[0]) for host in hosts]
        return Wiring(hosts, tuple(cables), source=file)
    return _forwarding(hosts, dimensions, file)


def _form(value: Any, file: Path) -> str:
    if value not in _FORMS:
        raise ScenarioError(Problem.of_file(file, f"topology = {value}", allowed=", ".join(_FORMS)))
    return str(value)


def _number(value: Any, key: str, file: Path, *, whole: bool = False) -> float:
    try:
        number = float(int(value) if whole else value)
        if not 0 < number < 1e9:
            raise ValueError
    except (TypeError, ValueError):
        kind = "whole number" if whole else "number"
        raise ScenarioError(Problem.of_file(file, f"{key} = {value}", allowed=f"a {kind} above 0")) from None
    return number


def _forwarding(hosts: tuple[str, ...], dimensions: list[tuple[str, int, int, int]], file: Path) -> Wiring:
    """NPUs that forward: a router each."""
    links: list[Cable] = []
    stride, switches = 1, 0
    for form, size, rate, delay in dimensions:
        for first in (at for at in range(len(hosts)) if at // stride % size == 0):
            routers = [f"router{first + step * stride}" for step in range(size)]
            if form == "Switch":
                links += [Cable((router, f"switch{switches}"), None, rate, delay) for router in routers]
                switches += 1
            else:
                links += [Cable(ends, None, rate, delay) for ends in _joined(form, routers)]
        stride *= size
    total: Counter[str] = Counter()
    for cable in links:
        for end in cable.ends:
            total[end] += cable.bandwidth or 0
    short = min(delay for *_, delay in dimensions) // _HOST_PART
    to_hosts = [
        Cable((host, router), None, total[router], short)
        for number, host in enumerate(hosts)
        if total[router := f"router{number}"]
    ]
    if len(to_hosts) < len(hosts):
        raise ScenarioError(Problem.of_file(file, "NPUs without a link", allowed="at least 2 NPUs in some dimension"))
    remarks = (
        f"each NPU forwards by a router; the two links to hosts add {DURATION.format(2 * short)} to a path",
        'network.switch_latency = "0 ns" and routing = "minimal" are as in ASTRA-sim',
    )
    return Wiring(hosts, (*to_hosts, *links), remarks=remarks, source=file)


def _joined(form: str, routers: list[str]) -> Iterator[tuple[str, str]]:
    if form == "FullyConnected":
        yield from combinations(routers, 2)
        return
    yield from pairwise(routers)
    if len(routers) > 2:
        yield routers[-1], routers[0]


def is_astra_system(text: str) -> bool:
    """Whether a file is a system file of ASTRA-sim, or a network file of its ns-3 backend."""
    return text.lstrip().startswith("{") and any(key in text for key in ('-implementation"', f'"{_LOGICAL}"'))


def refuse_astra_system(text: str, file: Path) -> Wiring:
    """Raises ``ScenarioError``: it has no fabric, and says how a scenario has its collective algorithms."""
    with reading(file):
        data = parse_json(text)
    if _LOGICAL in data:
        words = "logical dimensions of ASTRA-sim's ns-3 backend, which have no links"
        raise ScenarioError(Problem.of_file(file, words, allowed="the topology file that its ns-3 configuration names"))
    chosen = []
    for key, (collective, algorithms) in _ALGORITHMS.items():
        names = data.get(f"{key}-implementation")
        if isinstance(names, list) and len(set(map(str, names))) == 1 and str(names[0]) in algorithms:
            chosen.append(f'{collective} = "{algorithms[names[0]]}"')
    message = "a system file of ASTRA-sim, which has no fabric"
    table = f"; for its collectives set mpi.collectives = {{ {', '.join(chosen)} }}" if chosen else ""
    raise ScenarioError(Problem.of_file(file, message, allowed=f"its network file{table}"))
