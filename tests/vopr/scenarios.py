"""Draws a small scenario: any fabric, arbiter, workload, placement and mapping, and whatever else has an effect.

Kinds come from the registries and the simulator's own tables: what is added there is drawn.
"""

from random import Random

from fairlane.inputs.parameters import collectives, entries
from fairlane.model.placement import PLACEMENTS
from fairlane.model.placement.mapping import MAPPINGS
from fairlane.model.qos import KINDS, STRATEGIES
from fairlane.model.scenario.models import Mpi
from fairlane.model.scenario.network import Network
from fairlane.model.scenario.observe import Observe
from fairlane.model.workload import WORKLOADS
from vopr.fabrics import Table, draw_fabric
from vopr.parameters import BANDWIDTHS, draw_parameters
from vopr.scripted import ROUNDS

__all__ = ["SCRIPTED", "TRACE", "draw_arbiter", "draw_scenario"]

TRACE = "../data/traces/testtrace-4.dumpi"
"""A recording of four ranks, relative to this folder."""
SCRIPTED = "scripted.py:Scripted"
"""The workload of random programs."""
EXPECTING_LOSSES = {"dcqcn", "hpcc", "swift", "uec"}
"""Transports for lossy lanes."""
COMPUTE = ["300 ns", "2 us", "5 us", "10 us"]


def draw_scenario(seed: int, attempt: int) -> Table:
    """The tables of a scenario. All attempts of a seed have the same fabric: not everything that is drawn fits it."""
    fabric, rng = draw_fabric(Random(f"fabric {seed}.{attempt // 20}")), Random(f"{seed}.{attempt}")
    lanes = rng.choice([1, 2, 2, 2, 3, 4])
    qos, network = _qos(rng, lanes), _network(rng, lanes)
    if "strategy" not in qos and _name(network["transport"]) in EXPECTING_LOSSES and rng.random() < 0.5:
        qos |= {"lossy": True, "trim_vl": lanes - 1} if lanes > 1 else {"lossy": [0]}
    levels = 0 if "strategy" in qos else lanes
    jobs = [_job(rng, number, levels, fabric) for number in range(rng.randint(1, 4))]
    tables: Table = {
        "name": f"vopr-{seed}",
        "seed": rng.randrange(1000),
        "duration": f"{rng.choice([20, 40, 60, 100, 150, 500, 2000])} us",
        "fabric": fabric,
        "network": network,
        "mpi": _mpi(rng),
        "qos": qos,
        "observe": _observe(rng, jobs),
        "placement": _placement(rng),
        "jobs": jobs,
    }
    if rng.random() < 0.2:
        tables["power"] = {"cap": f"{rng.randint(40, 110)} W", "sockets": rng.randint(1, 2)}
        if rng.random() < 0.3:
            jobs[0]["power_cap"] = f"{rng.randint(40, 110)} W"
    if rng.random() < 0.25:
        tables["fault"] = [_fault(rng, network["flow_control"]) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.25:
        tables["background"] = _background(rng)
    return tables


def _network(rng: Random, lanes: int) -> Table:
    mtu, header = rng.choice([256, 700, 2048, 4096]), rng.choice([0, 26, 64])
    buffer = mtu + header + rng.choice([0, 0, 500, 4000, 60000])
    full = mtu + header
    switch = _switch(rng, full)
    found = _complete(
        Network,
        {
            "mtu": f"{mtu} B",
            "header": f"{header} B",
            "buffer": f"{buffer} B",
            "flow_control": _flow_control(rng, full),
            "switching": rng.choice(["cut_through", "store_and_forward"]),
            "switch_latency": rng.choice(["0 ns", "33.333 ns", "100 ns", "1 us"]),
            "switch": switch,
            "transport": _transport(rng, full, switch),
            "injection": rng.choice(["messages", "queue_pairs", "fifo"]),
            "retransmission_timeout": rng.choice(["5 us", "20 us", "100 us"]),
            "retransmission": rng.choice(["selective", "selective", "go_back_n"]),
            "retry_count": rng.choice([0, 3, 7]),
            "sweep_time": rng.choice(["1 us", "10 us", "50 us"]),
            "port_buffer": {
                "size": f"{lanes * full * rng.choice([1, 2, 4, 6]) + rng.choice([0, 1, full, 60000])} B",
                "sharing": rng.choice(["even", "dynamic"]),
            },
        },
    )
    del found[rng.choice(["buffer", "port_buffer"])]
    if found["flow_control"] != "credits":
        # Room for the headroom of links of up to 400 Gb/s and 10 us.
        found = {key: value for key, value in found.items() if key != "port_buffer"} | {"buffer": "2 MB"}
    return found


def _flow_control(rng: Random, full: int) -> str | Table:
    """Credits, or pauses above a few packets."""
    if rng.random() < 0.75:
        return "credits"
    others = {"response": rng.choice(["0 ns", "500 ns"])} | ({"watchdog": "15 us"} if rng.random() < 0.3 else {})
    return {"name": "pfc", "xoff": f"{full * rng.choice([1, 2, 5])} B", **others}


def _transport(rng: Random, full: int, switch: str | Table) -> str | Table:
    """A transport whose thresholds fit any buffer; one that marks or measures only if switches queue at outputs."""
    marking: dict[str, Table] = {
        "dcqcn": {"kmin": f"{full // 2} B", "kmax": f"{full} B", "pmax": 0.5, "cnp_interval": "5 us"},
        "endpoint_cc": {"threshold": f"{full // 2} B", "window": f"{rng.choice([1, 4]) * full} B"},
        "hpcc": {"flows": rng.choice([2, 100]), "max_stage": rng.choice([0, 5])},
        "uec": {
            "kmin": f"{full // 2} B",
            "kmax": f"{full} B",
            "base_rtt": rng.choice(["2 us", "20 us"]),
            "control": rng.choice(["sender", "receiver", "both"]),
        },
        "ib_cc": {"marking_rate": rng.choice([0, 2]), "ccti_timer": rng.choice([2, 150])},
    }
    if rng.random() < 0.6:
        return "credits_only"
    names = sorted(entries("transport"))
    output_queued = switch == "output_queued" or (isinstance(switch, dict) and switch["name"] == "output_queued")
    name = rng.choice(names if output_queued else [name for name in names if name not in marking])
    return {"name": name, **marking.get(name, {})}


def _name(chosen: str | Table) -> str:
    """The name of an entry that is given with or without parameters."""
    return chosen if isinstance(chosen, str) else str(chosen["name"])


def _fault(rng: Random, flow_control: str | Table) -> Table:
    """A fault of any kind, by names that many fabrics have; half of them end."""
    kind = rng.choice(sorted(set(entries("fault")) - ({"pause_storm"} if flow_control == "credits" else set())))
    host = f"host{rng.choice([0, 0, 1, 2, 5])}"
    place: dict[str, Table] = {
        "adapter_down": {"host": host},
        "pause_storm": {"host": host, "until": f"{rng.choice([32, 60])} us"},
        "slow_host": {"host": host, "factor": rng.choice([1, 1.5, 4])},
        "switch_down": {"switch": rng.choice(["leaf0", "spine0", "switch1", "group0-switch0", "switch0-0"])},
        "bit_errors": {"rate": rng.choice([1e-8, 1e-5, 1e-4]), "retry": rng.random() < 0.7},
        "degraded_link": {"lanes": rng.randint(1, 4), "one_way": rng.random() < 0.3},
        "link_down": {},
    }
    found = {"kind": kind, "at": f"{rng.choice([0, 1, 5, 30])} us", **place[kind]}
    if kind in {"bit_errors", "degraded_link", "link_down"}:
        found["link"] = rng.choice(
            [f"{host} port 1", "leaf0 port 9", "leaf1 port 5", "switch0 port 2", "switch1 port 1"]
        )
    if kind != "pause_storm" and rng.random() < 0.5:
        found["until"] = f"{rng.choice([31, 45, 80])} us"
    return found


def _switch(rng: Random, full: int) -> str | Table:
    """An architecture; every other draw has the default."""
    if rng.random() < 0.5:
        return "output_queued"
    name = rng.choice(sorted(entries("switch")))
    found = {"name": name, **draw_parameters(rng, entries("switch")[name].schema)}
    for key, values in (("speedup", [1, 1.5, 2, 3.999]), ("output_buffer", [full, full + 700, 5 * full])):
        found |= {key: rng.choice(values)} if key in found else {}
    return {**found, **({"output_buffer": f"{found['output_buffer']} B"} if "output_buffer" in found else {})}


SIZED = [{"size": "999 B", "time": "1.7 us"}, {"size": "70 KB", "time": "0 ns"}]


def _mpi(rng: Random) -> Table:
    known = collectives()
    kinds = rng.sample(sorted(known), rng.choice([0, 0, 2, len(known)]))
    return _complete(
        Mpi,
        {
            "eager_threshold": f"{rng.choice([0, 1000, 16384])} B",
            "mailbox_threshold": rng.choice([None, None, "0 B", "999 B"]),
            "send_overhead": rng.choice(["1 ns", "200 ns", "1.001 us"]),
            "send_overheads": rng.choice([[], [], [*SIZED]]),
            "adapter_delays": rng.choice([[], [], [*SIZED]]),
            "receive_overhead": rng.choice(["0 ns", "200 ns"]),
            "control_bytes": f"{rng.choice([0, 64])} B",
            "memory_latency": rng.choice(["0 ns", "200 ns"]),
            "memory_bandwidth": rng.choice(BANDWIDTHS),
            "memory_contention": rng.random() < 0.5,
            "max_messages": rng.choice([1 << 23, 1 << 24]),
            "reduction_bandwidth": rng.choice(BANDWIDTHS),
            "collectives": {kind: rng.choice(sorted(known[kind])) for kind in kinds},
        },
    )


def _complete(model: type, drawn: Table) -> Table:
    """What is drawn, without None, if it has all keys of the table: a new key must be drawn, too."""
    missing = set(model.model_fields) - set(drawn)  # type: ignore[attr-defined]
    assert not missing, f"keys of {model.__name__} that are not drawn: {missing}"
    return {key: value for key, value in drawn.items() if value is not None}


def _qos(rng: Random, lanes: int) -> Table:
    if rng.random() < 0.12:
        return {"strategy": rng.choice(sorted(STRATEGIES))}
    kinds = {kind: rng.randrange(lanes) for kind in rng.sample(sorted(KINDS), rng.randint(0, 3))}
    found: Table = {"kinds": kinds, "default": rng.randrange(lanes), "arbiter": draw_arbiter(rng, lanes)}
    if rng.random() < 0.2:  # service levels that share lanes
        found["sl2vl"] = [*rng.sample(range(lanes), lanes), *(rng.randrange(lanes) for _ in range(3))]
    else:
        found["service_levels"] = lanes
    return found


def draw_arbiter(rng: Random, lanes: int) -> Table:
    """An arbiter for this many virtual lanes, with parameters."""
    order = rng.sample(range(lanes), lanes)
    weights = [rng.randint(1, 9) for _ in range(lanes)]
    shares = [[order[0], rng.randint(5, 60)]] if rng.random() < 0.5 else []
    high = [[order[0], rng.randint(1, 200)]] if lanes > 1 and rng.random() < 0.6 else []
    low = [[lane, rng.randint(1, 255)] for lane in order if [lane] not in [entry[:1] for entry in high]]
    fitting: dict[str, Table] = {
        "weighted_round_robin": {"weights": weights},
        "strict_priority": {"order": order, "shares": shares, "interval": "5 us"},
        "vlarb": {"vlarb_high": high, "vlarb_low": low, "high_limit": rng.choice([0, 1, 2, 4, 255])},
    }
    name = rng.choice(sorted(entries("arbiter")))
    return {"name": name, **(fitting.get(name) or draw_parameters(rng, entries("arbiter")[name].schema))}


def _observe(rng: Random, jobs: list[Table]) -> Table:
    if rng.random() < 0.2:
        return {"counters": False, "departures": rng.random() < 0.3}
    job = rng.choice(jobs)["name"]
    given: Table = {
        "interval": f"{rng.choice([1.5, 7, 20])} us",
        "iterations": [job],
        "record": {"job": job, "start": "5 us", "stop": "25 us"},
        "switch_counters": {"job": job, "poll_interval": "2 us", "all_switches": rng.random() < 0.5},
    }
    switches = [key for key, field in Observe.model_fields.items() if field.annotation is bool and key != "counters"]
    _complete(Observe, {"counters": True, **given, **dict.fromkeys(switches)})
    found = {key: value for key, value in given.items() if rng.random() < 0.25}
    return {**found, **{key: rng.random() < 0.3 for key in switches}}


def _placement(rng: Random) -> Table:
    """A placement policy with its whole numbers drawn, and a mapping."""
    name = rng.choice(sorted(PLACEMENTS))
    own = {key: rng.randint(1, 3) for key, field in PLACEMENTS[name].model_fields.items() if field.annotation is int}
    mapping = rng.choice(["linear", *sorted(MAPPINGS)])
    grids = {"blocked": {"name": "blocked", "grid": [2, 2], "block": [2, 1]}}
    return {"name": name, "ranks_per_host": rng.choice([1, 1, 2, 3]), "mapping": grids.get(mapping, mapping), **own}


def _job(rng: Random, number: int, levels: int, fabric: Table) -> Table:
    """A job; `levels` is how many service levels it may have, 0 where a strategy gives them out."""
    job: Table = {"name": f"j{number}"}
    if rng.random() < 0.05:
        job["trace"] = TRACE
    else:
        job["ranks"] = rng.choice([2, 2, 3, 4, 4, 5, 6, 8, 8, 12])
        job["workload"] = _workload(rng)
        if rng.random() < 0.15:
            job["stop"] = rng.randint(1, 6)
    if rng.random() < 0.3:
        job["start"] = f"{rng.randint(1, 40)} us"
        if "stop" not in job and rng.random() < 0.6:
            job["stop"] = f"{rng.randint(41, 90)} us"
    if levels and rng.random() < 0.6:
        job["service_level"] = rng.randrange(levels)
    if levels and rng.random() < 0.2:
        job["service_levels"] = {"ranks": {"1": rng.randrange(levels)}}
    if "rails" in fabric and rng.random() < 0.7:
        policies: list[str | Table] = ["round_robin", "by_destination", {"policy": "stripe", "above": "700 B"}]
        policies += [{"only": 1}, {"policy": "by_source", "order": "random"}]
        job["rails"] = rng.choice(policies)
    if rng.random() < 0.15:
        job["transport"] = rng.choice(["credits_only", "swift"])
    if number > 0 and rng.random() < 0.15:
        job["count"] = 2
    return job


def _workload(rng: Random) -> Table:
    """A workload whose iterations are short, so that there are many of them."""
    variant = rng.randrange(1000)
    if rng.random() < 0.3:
        kinds = {} if rng.random() < 0.6 else {"kinds": [rng.choice(ROUNDS)]}
        plain = {"plain": True} if rng.random() < 0.6 else {}
        return {"name": SCRIPTED, "compute": rng.choice(COMPUTE), "variant": variant, **kinds, **plain}
    name = rng.choice(sorted(WORKLOADS))
    size = f"{rng.choice([0, 8, 500, 4096, 20000])} B"
    if WORKLOADS[name]().offered():
        size = "8 B" if size == "0 B" else size
        return {"name": name, "load": rng.choice([0.05, 0.3, 0.8]), "message_size": size, "variant": variant}
    fields = WORKLOADS[name].model_fields
    given: Table = {"name": name, "compute": rng.choice(COMPUTE), "message_size": size}
    if rng.random() < 0.5:
        given["messages_per_iteration"] = rng.randint(1, 3)
    if rng.random() < 0.3:
        # Not `one_rank`: the others of a workload without messages would never let time pass.
        given["imbalance"] = {"kind": "uniform", "low": 0.5}
    given["memory_bound"] = rng.choice([0.0, 0.5])
    if rng.random() < 0.2:
        given["burst"] = rng.choice(["0 s", "1 us", "30 us"])
        if rng.random() < 0.7:
            given["pause"] = rng.choice(["0 s", "7 us"])
    given["variant"] = variant
    small = {"points": 64, "iterations": 2, "side": 2, "planes": 4, "cells": 2, "atoms": 2}
    return {**given, **{key: value for key, value in small.items() if key in fields}}


def _background(rng: Random) -> Table:
    kind: Table = {"workload": _workload(rng)}
    found: Table = {"jobs": [kind], "hosts": rng.randint(2, 3), "fill": rng.choice([0.5, 0.9])}
    if rng.random() < 0.4:
        found |= {"start": {"dist": "uniform", "scale": "40 us"}, "lifetime": "30 us"}
    return found
