"""Small fabrics with a routing that fits: every pair of a topology and a routing that the simulator can build."""

import json
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

from fairlane import _core
from fairlane.core.errors import BuildError, FairlaneError
from fairlane.inputs.parameters import entries
from fairlane.model.fabric.table import FabricTable
from vopr.parameters import BANDWIDTHS, LATENCIES, draw_parameters

__all__ = ["HOSTS", "Table", "draw_fabric", "pairs"]

Table = dict[str, Any]

HOSTS = (4, 64)
"""Hosts of a fabric, fewest and most."""
MOST_LINKS = 400
ATTEMPTS = 400


def draw_fabric(rng: Random, routing: str | None = None) -> Table:
    """The table ``fabric``: if no routing is given, each is equally likely, and so is each of its topologies."""
    if routing is None:
        routing = rng.choice(sorted({routing for _, routing in pairs()}))
    topology = rng.choice([one for one, other in pairs() if other == routing])
    fitting = [other for one, other in pairs() if one == topology and "lanes" not in _keys(other)]
    for _ in range(ATTEMPTS):
        fabric = {**_shape(rng, topology), "routing": _routing(rng, routing, fitting)}
        if _fits(fabric):
            break
    else:
        raise RuntimeError(f"none of {ATTEMPTS} fabrics drawn is a {topology} that {routing} can route")
    if rng.random() < 0.2:
        fabric["rails"] = _rails(rng)
    return fabric


@cache
def pairs() -> tuple[tuple[str, str], ...]:
    """The topologies and routings that fit, by name; tried on small fabrics of each topology."""
    rng = Random("pairs")
    found = []
    for topology in sorted(entries("topology")):
        shapes = [shape for _ in range(60) if _fits(shape := _shape(rng, topology))]
        fitting: list[str] = []
        # Routings that are made of others come last.
        for routing in sorted(entries("routing"), key=lambda name: ("lanes" in _keys(name), name)):
            if any(_fits({**shape, "routing": _routing(rng, routing, fitting)}) for shape in shapes):
                fitting.append(routing)
        found += [(topology, routing) for routing in fitting]
    return tuple(found)


def _fits(fabric: Table) -> bool:
    try:
        spec = json.dumps(FabricTable(**fabric).spec)
        hosts, _, links = _core.fabric_size(spec)
        if not HOSTS[0] <= hosts <= HOSTS[1] or links > MOST_LINKS:
            return False
        _core.Fabric(spec)
    except (BuildError, FairlaneError, ValueError):
        return False
    return True


def _shape(rng: Random, topology: str) -> Table:
    """A topology with parameters; whether they fit together is seen when it is built."""
    if topology == "imported" and rng.random() < 0.6:
        return {"topology": topology, **_cables(rng)}
    drawn = draw_parameters(rng, entries("topology")[topology].schema)
    drawn.pop("preset", None)  # large machines
    if "hosts" in drawn and isinstance(drawn["hosts"], int):
        drawn["hosts"] = rng.randint(*HOSTS)
    if "links" in drawn:
        drawn["links"] = [{**link, **_wire(rng)} for link in drawn["links"]]
    return {"topology": topology, **drawn}


def _cables(rng: Random) -> Table:
    """Switches joined at random, every cable with a bandwidth and a latency of its own."""
    switches = [f"s{number}" for number in range(rng.randint(1, 6))]
    hosts = [f"h{number}" for number in range(rng.randint(4, 16))]
    ends = [[host, rng.choice(switches)] for host in hosts]
    ends += [[switch, rng.choice(switches[:place])] for place, switch in enumerate(switches) if place]
    if len(switches) > 1:
        ends += [rng.sample(switches, 2) for _ in range(rng.randint(0, 5))]
    if rng.random() < 0.3:
        ends += [[rng.choice(hosts), rng.choice(switches)]]
    return {"hosts": hosts, "links": [{"ends": pair, **_wire(rng)} for pair in ends]}


def _wire(rng: Random) -> Table:
    return {"bandwidth": rng.choice(BANDWIDTHS), "latency": rng.choice(LATENCIES)}


def _routing(rng: Random, name: str, fitting: Sequence[str]) -> Table:
    """A routing with parameters; one for each lane is made of others that are ``fitting``."""
    if "lanes" in _keys(name):
        return {"name": name, "lanes": [rng.choice(fitting) for _ in range(2)] if fitting else []}
    return {"name": name, **draw_parameters(rng, entries("routing")[name].schema)}


def _keys(routing: str) -> list[str]:
    return list(entries("routing")[routing].schema.get("properties", {}))


def _rails(rng: Random) -> int | Table:
    count = rng.choice([2, 2, 3])
    if rng.random() < 0.4:
        return count
    slow = {"bandwidth": "3 Gbps", "latency": "90.001 ns", "message_gap": f"{rng.choice([0, 123, 900])} ns"}
    adapters = [*({} for _ in range(count - 1)), slow]
    return {"count": count, "wiring": rng.choice(["planes", "shared"]), "adapters": adapters}
