"""Laws of what is measured, that hold at any time whatever the engine is made of."""

import json
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fairlane import Simulation, _core
from fairlane.model.fabric.graph import columns

__all__ = ["broken"]

Column = npt.NDArray[np.int64]


def broken(one: Simulation) -> str:
    """The laws that do not hold of a simulation, in words; empty if all do. Those of the engine raise ``RunError``."""
    one.engine.check_laws()
    laws = [_time_of_ranks, _departures]
    if one.scenario.tables["observe"]["counters"]:
        laws += [_switches, _ports, _latencies]
    return "; ".join(problem for law in laws for problem in law(one))


def _table(one: Simulation, name: str) -> dict[str, Column]:
    return {key: column.astype(np.int64) for key, column in columns(one.engine.table(name)).items()}


def _time_of_ranks(one: Simulation) -> Iterator[str]:
    """A rank that has not ended has spent all time since its job's start in computation or calls, but for pauses.

    There is at most one after each iteration.
    """
    ranks, under_way = _table(one, "ranks"), _table(one, "under_way")
    jobs = one.scenario.jobs
    start = np.array([job.start for job in jobs])[ranks["job"]]
    stops = np.array([one.now if job.stop is None else min(one.now, job.stop) for job in jobs])
    failures = _table(one, "failures")
    np.minimum.at(stops, failures["job"], failures["time"])
    stop = stops[ranks["job"]]
    by_itself = (ranks["finished"] == 1) & ((ranks["finished_at"] > 0) | (stop == one.now))
    end = np.where(by_itself, ranks["finished_at"], stop)
    spent = sum(
        (table[key] for table in (ranks, under_way) for key in ("compute", "communication")), np.zeros_like(end)
    )
    workloads = [job.table.workload for job in jobs]
    pauses = np.array([workload.pause or 0 if workload else 0 for workload in workloads])[ranks["job"]]
    asleep = np.maximum(end - start, 0) - spent
    wrong = np.flatnonzero((asleep < 0) | (asleep > pauses * ranks["iterations"]))
    if wrong.size:
        at = wrong[0]
        words = f"rank {ranks['rank'][at]} of job {ranks['job'][at]}"
        yield f"{words}: {spent[at]} ps are counted, {max(0, end[at] - start[at])} ps have passed"


def _switches(one: Simulation) -> Iterator[str]:
    """Every switch has sent no more than it has received; and as much, if nothing was lost and is left to happen."""
    ports, ends = _table(one, "ports"), [_links(one)[end] for end in ("to_switch", "from_switch")]
    switches = 1 + max(int(end.max()) for end in ends)
    for what in ("bytes", "packets"):
        of_link = np.bincount(ports["link"], weights=ports[what], minlength=len(ends[0]))
        received, sent = (np.bincount(end[end >= 0], weights=of_link[end >= 0], minlength=switches) for end in ends)
        wrong = np.flatnonzero(sent != received if one.finished and not _loses(one) else sent > received)
        if wrong.size:
            at = wrong[0]
            yield f"switch {at} has received {received[at]:.0f} {what} and sent {sent[at]:.0f}"


def _links(one: Simulation) -> dict[str, Column]:
    """The links of the fabric."""
    return _links_of(json.dumps(one.scenario.tables["fabric"]))


@lru_cache(maxsize=4)
def _links_of(fabric: str) -> dict[str, Column]:
    wanted = ("from_switch", "to_switch", "bandwidth")
    return {
        key: column.astype(np.int64) for key, column in columns(_core.Fabric(fabric).links()).items() if key in wanted
    }


def _ports(one: Simulation) -> Iterator[str]:
    """A link is active, stalled or idle; no queueing delay is charged that has not been."""
    ports = _table(one, "ports")
    busy = ports["port_active"] + ports["port_stalled"]
    # Once nothing is left to happen the clock may stand before the end of what happened.
    if not one.finished and (busy > one.now).any():
        yield f"port {ports['link'][busy.argmax()]} is active or stalled for {busy.max()} ps of {one.now} ps"
    charged, waited = int(_table(one, "interference")["waiting"].sum()), int(ports["waiting"].sum())
    if one.finished and not _controlled(one) and charged != waited:
        yield f"packets waited {waited} ps, {charged} ps are charged"


def _controlled(one: Simulation) -> bool:
    """Whether NICs send acknowledgements, CNPs or NAKs, which are no packets of messages and outlast the last rank."""
    network = one.scenario.tables["network"]
    answered = "transport" in network or any(job.table.transport for job in one.scenario.jobs)
    return answered or network.get("retransmission") == "go_back_n"


def _loses(one: Simulation) -> bool:
    """Whether packets were lost, lost their payload, or were discarded."""
    totals = _table(one, "totals")
    return bool(sum(totals[f"packets_{fate}"][0] for fate in ("lost", "trimmed", "discarded")))


def _gives_up(one: Simulation) -> bool:
    """Whether packets were given up: their hosts have them in their counts, but no link has transmitted them."""
    return bool(_table(one, "totals")["packets_given_up"][0])


def _latencies(one: Simulation) -> Iterator[str]:
    """As many latencies of packets as packets have been delivered, at most those that have been transmitted."""
    latency, ports = columns(one.engine.table("latency")), _table(one, "ports")
    last = _links(one)["to_switch"][ports["link"]] < 0
    delivered, started = int(latency["count"][latency["of"] == "packet"].sum()), int(ports["packets"][last].sum())
    if _gives_up(one):
        return
    if delivered > started or (one.finished and not _controlled(one) and delivered != started):
        yield f"{started} packets have been sent to hosts, {delivered} delivered"


def _departures(one: Simulation) -> Iterator[str]:
    """A link transmits one packet at a time, and each for its serialization time."""
    departures = _table(one, "departures")
    order = np.lexsort((departures["bytes"], departures["time"], departures["link"]))
    link, time, size = (departures[key][order] for key in ("link", "time", "bytes"))
    wire_time = -(-8 * 10**12 * size // _links(one)["bandwidth"][link])
    early = np.flatnonzero((link[1:] == link[:-1]) & (time[1:] < time[:-1] + wire_time[:-1]))
    if early.size:
        yield f"link {link[early[0]]} starts a packet at {time[early[0] + 1]} ps before the one before has left"
