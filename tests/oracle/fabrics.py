"""Fabrics as the engine builds them, and the paths that its packets take."""

import json
from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from fairlane import _core

from .case import Case, Choice, Fabric, Hop, Link
from .ecmp import Ecmp
from .routing import ADAPTIVE, NON_MINIMAL


def decode(table: dict[str, tuple[str, bytes]]) -> dict[str, list[int]]:
    """A table's numeric columns as lists."""
    return {name: np.frombuffer(raw, kind).tolist() for name, (kind, raw) in table.items() if kind != "json"}


class UntraceableError(Exception):
    """The path of a packet cannot be read from the engine's log of departures."""


def links_of(core: _core.Fabric) -> list[Link]:
    """The links of a fabric."""
    table = decode(core.links())
    ends = ("from_host", "to_host", "from_switch", "to_switch")
    roles = json.loads(core.links()["role"][1])
    ended = ({name: None if table[name][at] < 0 else table[name][at] for name in ends} for at in range(len(roles)))
    return [
        Link(rate, delay, **one, between_groups=role == "global")
        for role, rate, delay, one in zip(roles, table["bandwidth"], table["latency"], ended, strict=True)
    ]


def fat_tree(rails: dict[str, Any] | None = None, seed: int | None = None, **params: int) -> Fabric:
    """A fat-tree as the engine builds and routes it: by D-mod-k or, with a seed, by ECMP."""
    return built("fat_tree", params, rails, seed)


@cache
def star(hosts: int, **params: int) -> Fabric:
    """All hosts on one switch; built once, for nothing changes a fabric."""
    return built("fat_tree", {"hosts": hosts, "levels": 1, **params})


def built(
    topology: str, params: dict[str, Any], rails: dict[str, Any] | None = None, seed: int | None = None
) -> Fabric:
    """A fabric as the engine builds it; packets of ECMP are on channel 0 here, which is right in trees only."""
    routing, its = ("d_mod_k", {}) if seed is None else ("ecmp", {"seed": seed})
    given = {"topology": topology, "params": params, "routing": routing, "routing_params": its, "rails": rails}
    core = _core.Fabric(json.dumps(given))
    pairs = [(source, to) for source in range(core.hosts) for to in range(core.hosts) if source != to]
    routes, *more = (
        {(source, to): [Hop(link) for link in core.route(source, to, rail)] for source, to in pairs}
        for rail in range(core.rails)
    )
    links, channels = links_of(core), core.virtual_channels
    found = Fabric(links, routes, channels, topology, params, rails, tuple(more), routing=routing, routing_params=its)
    return found if seed is None else replace(found, by_flow=Ecmp(links, seed).hops)


def any_fabric(given: dict[str, Any]) -> Fabric:
    """Any topology with any routing, as the engine builds it; `recorded` adds the paths of packets."""
    core = _core.Fabric(json.dumps(given))
    links, channels = links_of(core), core.virtual_channels
    adapters: dict[int, list[int]] = defaultdict(list)
    for number, link in enumerate(links):
        if link.from_host is not None:
            adapters[link.from_host].append(number)
    routes: list[dict[tuple[int, int], list[Hop]]] = [{} for _ in range(max(map(len, adapters.values())))]
    for source, own in adapters.items():
        for rail, number in enumerate(own):
            routes[rail] |= {(source, to): [Hop(number)] for to in adapters if to != source}
    rails = given.get("rails")
    if rails:
        rails = {**rails, "adapters": [dict(one) for one in rails.get("adapters") or []] or [{} for _ in routes]}
    routing, its = given["routing"], given.get("routing_params") or {}
    first, *more = routes
    name, params = given["topology"], given["params"]
    return Fabric(
        links,
        first,
        channels,
        name,
        params,
        rails,
        tuple(more),
        routing=routing,
        routing_params=its,
        choices=choices(given),
    )


def choices(given: dict[str, Any]) -> tuple[Choice, ...]:
    """The routing of each virtual lane, with its defaults and its direct paths; none if no routing looks at loads."""
    own = {"name": given["routing"], "params": given.get("routing_params") or {}}
    lanes = own["params"]["lanes"] if own["name"] == "per_lane" else [own]
    found = []
    for lane in lanes:
        name, params = (lane, {}) if isinstance(lane, str) else (lane["name"], lane.get("params") or {})
        if name in ADAPTIVE:
            defaults = {"bias": 8192} if name in NON_MINIMAL else {}
            direct = direct_paths({**given, "routing": name, "routing_params": params})
            found.append(Choice(name, {**defaults, **params}, direct))
        else:
            found.append(Choice(name))
    return tuple(found) if any(choice.name in ADAPTIVE for choice in found) else ()


def direct_paths(given: dict[str, Any]) -> dict[tuple[int, int], tuple[int, ...]]:
    """The paths of a routing if all loads are zero, from every switch on them, by the link to the destination."""
    core = _core.Fabric(json.dumps(given))
    ends, adapters = decode(core.links())["from_switch"], np.frombuffer(core.adapters(), "<u4")
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for source in range(core.hosts):
        for rail in range(adapters[source]):
            for to, other in ((host, number) for host in range(core.hosts) for number in range(adapters[host])):
                try:
                    path = core.route(source, to, rail, other) if to != source else []
                except IndexError:  # no path between switches joins them
                    continue
                found |= {(ends[link], path[-1]): tuple(path[place:]) for place, link in enumerate(path) if place}
    return found


def with_queues(fabric: Fabric, lanes: int) -> Fabric:
    """The fabric with as many queues for each of so many virtual lanes as its routing needs channels."""
    pairs = _core.Fabric(json.dumps(fabric_spec(fabric))).required_virtual_lanes(lanes)
    queues = accumulate((sum(vl == lane for vl, _ in pairs) for lane in range(lanes)), initial=0)
    return replace(fabric, queues=tuple(queues))


def recorded(case: Case, simulation: _core.Simulation, end: int | None = None) -> Case:
    """The case with the paths that the engine's packets took; complete for those sent until `end`.

    Raises `UntraceableError` if they cannot be told apart.
    """
    return replace(case, fabric=replace(case.fabric, recorded=paths(simulation, case.fabric, end)))


def paths(simulation: _core.Simulation, fabric: Fabric, end: int | None) -> dict[tuple[int, int], list[Hop]]:
    """The hops of each packet, by time and link of its first departure; complete for those sent until the end."""
    table = decode(simulation.table("departures"))
    found: dict[tuple[int, int], list[Hop]] = {}
    under_way: dict[tuple[int, ...], list[list[Hop]]] = defaultdict(list)
    names = ("time", "link", "lane", "job", "message", "stage", "packet", "bytes")
    for time, link, lane, *key in zip(*(table[name] for name in names), strict=True):
        hop = Hop(link, lane - fabric.queue(fabric.lane_of(lane), 0))
        its = under_way[tuple(key)]
        if fabric.links[link].from_host is not None:
            if (time, link) in found:
                raise UntraceableError("packets without bytes")
            found[time, link] = [hop]
            its.append(found[time, link])
            continue
        at = [path for path in its if fabric.links[path[-1].link].to_switch == fabric.links[link].from_switch]
        if len(at) > 1:
            raise UntraceableError("parts of a message that cannot be told apart")
        if not at:
            raise AssertionError(f"a packet departs at {time} ps on link {link} from a switch that it has not come to")
        at[0].append(hop)
        if fabric.links[link].to_host is not None:
            its.remove(at[0])
    on_their_way = [time for (time, _), path in found.items() if fabric.links[path[-1].link].to_host is None]
    if any(end is None or time < end for time in on_their_way):
        raise UntraceableError("packets that are under way for very long")
    return found


def fabric_spec(fabric: Fabric) -> dict[str, Any]:
    """The fabric in the engine's terms."""
    return {
        "topology": fabric.topology,
        "params": fabric.params,
        "routing": fabric.routing,
        "routing_params": fabric.routing_params,
        "rails": fabric.rails,
    }
