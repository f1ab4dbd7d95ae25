"""Draws a small scenario: any topology, routing, arbiter, workload and placement, and whatever else has an effect."""

from pathlib import Path
from random import Random
from typing import Any

from fairlane import FairlaneError, Scenario
from fairlane.scenario import Resolved
from fairlane.workload import WORKLOADS

__all__ = ["Table", "draw"]

Table = dict[str, Any]

TRACE = Path(__file__).parents[1] / "data" / "traces" / "testtrace-4.dumpi"
ATTEMPTS = 200
"""Some draws do not fit together, as a placement that finds no room; then the next one is taken."""

_GRID = ("dimension_order", "valiant", "ugal_l", "ugal_g", "up_down")
_GROUPS = ("minimal", "valiant", "ugal_l", "ugal_g", "progressive", "per_lane", "up_down")
_TREES = ("d_mod_k", "adaptive", "up_down")
_FABRICS: list[tuple[Table, tuple[str, ...]]] = [
    ({"topology": "fat_tree", "hosts": 12, "levels": 1}, _TREES),
    ({"topology": "fat_tree", "hosts": 12, "levels": 2, "radix": 8}, _TREES),
    ({"topology": "fat_tree", "hosts": 16, "levels": 3, "radix": 4}, _TREES),
    ({"topology": "fat_tree", "hosts": 12, "levels": 2, "leaf_down": 4, "leaf_up": 2, "radix": 6}, _TREES),
    (
        {
            "topology": "dragonfly",
            "groups": 3,
            "switches_per_group": 2,
            "hosts_per_switch": 2,
            "global_links": 1,
            "arrangement": "relative",
        },
        _GROUPS,
    ),
    (
        {"topology": "dragonfly_plus", "groups": 3, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "global_links": 1},
        _GROUPS,
    ),
    (
        {"topology": "cascade", "groups": 3, "columns": 2, "rows": 2, "hosts_per_switch": 1, "bundle_links": 1},
        _GROUPS,
    ),
    ({"topology": "torus", "sides": [4, 3]}, _GRID),
    ({"topology": "torus", "sides": [3, 2, 2], "mesh": True}, _GRID),
    ({"topology": "hyperx", "sides": [3, 2], "hosts_per_switch": 2}, _GRID),
    ({"topology": "imported", "joined": "H0S0 H1S0 H2S1 H3S1 H4S2 H5S2 S0S1 S1S2 S2S0 S0S3 H6S3"}, ("up_down",)),
]
_COLLECTIVES = {
    "allreduce": ["ring", "recursive_doubling", "rabenseifner"],
    "alltoall": ["bruck", "pairwise", "scattered"],
    "bcast": ["binomial", "linear"],
    "barrier": ["dissemination", "linear"],
}
_KINDS = ["control", "collective_control", "eager", "bulk", "collective", "collective_eager"]


def draw(seed: int) -> tuple[Scenario, Resolved]:
    """The scenario of this seed, with its jobs placed and its programs written."""
    refused = None
    for attempt in range(ATTEMPTS):
        try:
            scenario = Scenario(**_scenario(Random(f"{seed}.{attempt}"), seed))
            return scenario, scenario.resolve()
        except FairlaneError as error:
            refused = error
    raise RuntimeError(f"seed {seed}: no draw of {ATTEMPTS} fits together; the last: {refused}")


def _scenario(rng: Random, seed: int) -> Table:
    fabric, trees = _fabric(rng)
    lanes = rng.choice([1, 1, 2, 3])
    qos = _qos(rng, lanes)
    levels = 0 if "strategy" in qos else lanes
    jobs = [_job(rng, number, levels, fabric) for number in range(rng.randint(1, 4))]
    tables: Table = {
        "name": f"drawn-{seed}",
        "seed": rng.randrange(1000),
        "duration": f"{rng.randint(30, 150)} us",
        "fabric": fabric,
        "network": _network(rng),
        "mpi": _mpi(rng),
        "qos": qos,
        "observe": _observe(rng, jobs),
        "placement": _placement(rng, trees),
        "jobs": jobs,
    }
    if rng.random() < 0.2:
        tables["power"] = {"cap": f"{rng.randint(40, 110)} W", "sockets": rng.randint(1, 2)}
    if rng.random() < 0.25:
        tables["background"] = _background(rng)
    return tables


def _fabric(rng: Random) -> tuple[Table, str]:
    base, routings = rng.choice(_FABRICS)
    fabric = dict(base)
    topology = fabric["topology"]
    if topology == "imported":
        ends = [[pair[:2], pair[2:]] for pair in fabric.pop("joined").split()]
        fabric["hosts"] = sorted({pair[0] for pair in ends})
        fabric["links"] = [{"ends": pair, "bandwidth": rng.choice(["10 Gbps", "25 Gbps"])} for pair in ends]
    else:
        fabric["latency"] = rng.choice(["10 ns", "100 ns", "70.001 ns", "1 us"])
        fabric["bandwidth"] = rng.choice(["7 Gbps", "25.6 Gbps", "100 Gbps"])
        if rng.random() < 0.3:
            fabric["host_bandwidth"] = rng.choice(["3 Gbps", "40 Gbps"])
    fabric["routing"] = _routing(rng, rng.choice(routings))
    if rng.random() < 0.25:
        fabric["rails"] = _rails(rng)
    return fabric, topology


def _routing(rng: Random, name: str) -> Table:
    if name == "adaptive":
        return {"name": name, "threshold": f"{rng.choice([0, 1000, 9000])} B"}
    if name in ("ugal_l", "ugal_g", "progressive"):
        own: Table = {"name": name, "bias": f"{rng.choice([0, 2000, 8192])} B", "samples": rng.randint(1, 3)}
        own["ties"] = rng.choice(["minimal", "random"])
        if name == "progressive":
            own["channels"] = rng.choice(["per_hop", "fewest"])
        return own
    if name == "per_lane":
        return {"name": name, "lanes": ["minimal", {"name": "progressive", "bias": "0 B"}]}
    return {"name": name}


def _rails(rng: Random) -> int | Table:
    count = rng.choice([2, 2, 3])
    if rng.random() < 0.4:
        return count
    slow = {"bandwidth": "3 Gbps", "latency": "90.001 ns", "message_gap": f"{rng.choice([0, 123, 900])} ns"}
    adapters = [*({} for _ in range(count - 1)), slow]
    return {"count": count, "wiring": rng.choice(["planes", "shared"]), "adapters": adapters}


def _network(rng: Random) -> Table:
    mtu = rng.choice([256, 700, 2048, 4096])
    return {
        "mtu": f"{mtu} B",
        "header": f"{rng.choice([0, 26, 64])} B",
        "buffer": f"{mtu + 64 + rng.choice([0, 500, 4000, 60000])} B",
        "switching": rng.choice(["cut_through", "store_and_forward"]),
        "switch_latency": rng.choice(["0 ns", "33.333 ns", "100 ns", "1 us"]),
    }


def _mpi(rng: Random) -> Table:
    kinds = rng.sample(sorted(_COLLECTIVES), rng.randint(0, 2))
    return {
        "eager_threshold": f"{rng.choice([0, 1000, 16384])} B",
        "send_overhead": rng.choice(["1 ns", "200 ns", "1.001 us"]),
        "receive_overhead": rng.choice(["0 ns", "200 ns"]),
        "control_bytes": f"{rng.choice([0, 64])} B",
        "collectives": {kind: rng.choice(_COLLECTIVES[kind]) for kind in kinds},
    }


def _qos(rng: Random, lanes: int) -> Table:
    if rng.random() < 0.1:
        return {"strategy": rng.choice(["split_priority", "bandwidth_weight", "isolate"])}
    kinds = {kind: rng.randrange(lanes) for kind in rng.sample(_KINDS, rng.randint(0, 3))}
    return {"service_levels": lanes, "kinds": kinds, "default": rng.randrange(lanes), "arbiter": arbiter(rng, lanes)}


def arbiter(rng: Random, lanes: int) -> Table:
    """An arbiter of this many virtual lanes, with parameters."""
    order = rng.sample(range(lanes), lanes)
    weights = [rng.randint(1, 9) for _ in range(lanes)]
    shares = [[order[0], rng.randint(5, 60)]] if rng.random() < 0.5 else []
    high = [[order[0], rng.randint(1, 200)]] if lanes > 1 and rng.random() < 0.6 else []
    low = [[lane, rng.randint(1, 255)] for lane in order if [lane] not in [entry[:1] for entry in high]]
    return rng.choice(
        [
            {"name": "weighted_round_robin", "weights": weights},
            {"name": "strict_priority", "order": order, "shares": shares, "interval": "5 us"},
            {"name": "vlarb", "vlarb_high": high, "vlarb_low": low, "high_limit": rng.choice([0, 1, 255])},
        ]
    )


def _observe(rng: Random, jobs: list[Table]) -> Table:
    if rng.random() < 0.3:
        return {"counters": False, "departures": rng.random() < 0.3}
    found: Table = {key: rng.random() < 0.3 for key in ("interference_by_port", "departures", "input_queueing")}
    if rng.random() < 0.3:
        found["interval"] = f"{rng.choice([1.5, 7, 20])} us"
    if rng.random() < 0.3:
        found["iterations"] = [jobs[0]["name"]]
    if rng.random() < 0.3:
        found["record"] = {"job": jobs[0]["name"], "start": "5 us", "stop": "25 us"}
    if rng.random() < 0.2:
        found["switch_counters"] = {"job": jobs[0]["name"], "poll_interval": "2 us", "all_switches": rng.random() < 0.5}
    return found


def _placement(rng: Random, topology: str) -> Table:
    names = ["random", "packed", "spread", "linear", "fragmented", "units", "domain", "pattern"]
    if topology in ("dragonfly", "dragonfly_plus", "cascade"):
        names.append("groups")
    if topology == "torus":
        names.append("box")
    strategy = rng.choice(names)
    own: Table = {"groups": {"count": 2}, "units": {"size": 2}}.get(strategy, {})
    mapping = rng.choice(["linear", "linear", "linear", "hop_bytes"])
    return {"name": strategy, "ranks_per_host": rng.choice([1, 1, 2]), "mapping": mapping, **own}


def _job(rng: Random, number: int, levels: int, fabric: Table) -> Table:
    """A job; `levels` is how many service levels it may have, 0 where a strategy gives them out."""
    job: Table = {"name": f"j{number}"}
    if rng.random() < 0.05:
        job["trace"] = str(TRACE)
    else:
        job["ranks"] = rng.choice([2, 2, 4, 4, 6, 8])
        job["workload"] = workload(rng)
        if rng.random() < 0.15:
            job["stop"] = rng.randint(1, 6)
    if rng.random() < 0.3:
        job["start"] = f"{rng.randint(1, 40)} us"
        if "stop" not in job and rng.random() < 0.6:
            job["stop"] = f"{rng.randint(41, 90)} us"
    if levels and rng.random() < 0.4:
        job["service_level"] = rng.randrange(levels)
    if levels and rng.random() < 0.2:
        job["service_levels"] = {"ranks": {"1": rng.randrange(levels)}}
    if "rails" in fabric and rng.random() < 0.7:
        policies: list[str | Table] = ["round_robin", "by_destination", {"policy": "stripe", "above": "700 B"}]
        policies += [{"only": 1}, {"policy": "by_source", "order": "random"}]
        job["rails"] = rng.choice(policies)
    if number > 0 and rng.random() < 0.15:
        job["count"] = 2
    return job


def workload(rng: Random) -> Table:
    """A workload whose iterations are short, so that there are many of them."""
    name = rng.choice(sorted(WORKLOADS))
    if WORKLOADS[name]().offered():
        size = f"{rng.choice([8, 500, 4096, 20000])} B"
        return {"name": name, "load": rng.choice([0.05, 0.3, 0.8]), "message_size": size, "variant": rng.randrange(3)}
    fields = WORKLOADS[name].model_fields
    given: Table = {"name": name, "compute": f"{rng.choice([0.3, 2, 5, 10])} us"}
    given["message_size"] = f"{rng.choice([0, 8, 500, 4096, 20000])} B"
    if rng.random() < 0.5:
        given["messages_per_iteration"] = rng.randint(1, 3)
    if rng.random() < 0.3:
        # Not `one_rank`: the others of a workload without messages would never let time pass.
        given["imbalance"] = {"kind": "uniform", "low": 0.5}
    given["memory_bound"] = rng.choice([0.0, 0.5])
    given["variant"] = rng.randrange(3)
    small = {"points": 64, "iterations": 2, "side": 2, "planes": 4, "cells": 2, "atoms": 2}
    return {**given, **{key: value for key, value in small.items() if key in fields}}


def _background(rng: Random) -> Table:
    kind: Table = {"workload": workload(rng)}
    found: Table = {"jobs": [kind], "hosts": rng.randint(2, 3), "fill": rng.choice([0.5, 0.9])}
    if rng.random() < 0.4:
        found |= {"start": {"dist": "uniform", "scale": "40 us"}, "lifetime": "30 us"}
    return found
