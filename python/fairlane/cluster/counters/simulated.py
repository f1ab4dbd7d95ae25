"""Counters of simulated ports, from the tables of a run.

A port sends over one link and receives over the other of its cable. Packets count when their transmission starts, at
both ends, with headers. Words are whole: up to 3 bytes of a port's total are not shown. Nothing is lost in the
simulation, so all counters of errors are 0, and there is no multicast.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from fairlane.cluster.counters.base import COUNTERS, TICK_WORDS, WORD, PortCounters
from fairlane.model.fabric.identities import nodes_of, places
from fairlane.model.fabric.nodes import Node, Port
from fairlane.model.fabric.wiring import Cable, Wiring, by_ports
from fairlane.results.run import Run

_Places = dict[tuple[str, int], tuple[Node, Port]]
_PS_OF_WORD = TICK_WORDS * 8 * WORD * 10**12  # a tick times the bits per second, ps
_SUMS = ("bytes", "packets", "port_stalled_ps")


@dataclass(frozen=True)
class Snapshot:
    """The counters of all ports at one time of a run."""

    at_ps: int
    """Simulated time, ps."""
    ports: list[PortCounters]


def snapshots(run: Run, dump: Wiring | None = None, tick_ps: int | None = None) -> list[Snapshot]:
    """The counters at the end of each interval of the table ``samples``, if the run has it, and at the end of the run.

    GUIDs and LIDs are those of ``dump`` where it has them, else as ``fairlane fabric export`` generates them.
    ``tick_ps`` is the tick of ``PortXmitWait``, by default the time that the port's link takes for a word.
    """
    links = _links(run.ports)
    wiring = _wiring(links)
    source = dump if dump is not None and dump.nodes else wiring
    at = places(nodes_of(source), source)
    return [Snapshot(time, _ports(links, totals, at, tick_ps)) for time, totals in _totals(run)]


def _totals(run: Run) -> Iterator[tuple[int, pl.DataFrame]]:
    """The totals of each link at the end of each interval, and of the run."""
    end = _by_link(run.ports)
    if run.samples is not None and run.samples.height:
        increments = (
            run.samples.group_by("to_ps", "link")
            .agg(pl.col("bytes", "packets").sum(), pl.col("port_stalled_ps").max())
            .sort("to_ps")
            .with_columns(pl.col(_SUMS).cum_sum().over("link"))
        )
        for time in increments["to_ps"].unique().sort():
            if time >= run.meta.simulated_ps:
                break
            until = increments.filter(pl.col("to_ps") <= time)
            yield time, until.group_by("link").agg(pl.col(_SUMS).max())
    yield run.meta.simulated_ps, end


def _by_link(ports: pl.DataFrame) -> pl.DataFrame:
    """Sums over lanes; times are of the whole port, the same in all of its rows."""
    return ports.group_by("link").agg(pl.col("bytes", "packets").sum(), pl.col("port_stalled_ps").max())


def _links(ports: pl.DataFrame) -> pl.DataFrame:
    keys = ["link", "from_name", "from_port", "to_name", "to_port", "bandwidth_bps", "from_vertex"]
    return ports.select(keys).unique("link").sort("link")


def _wiring(links: pl.DataFrame) -> Wiring:
    """The fabric of a run, with hosts and switches in the order of their numbers, as ``fabric export`` has it."""
    names, cables = {"host": dict[int, str](), "switch": dict[int, str]()}, list[Cable]()
    seen: set[tuple[str, int]] = set()
    for row in links.iter_rows(named=True):
        kind, _, number = row["from_vertex"].partition(" ")
        names[kind][int(number)] = row["from_name"]
        if (row["from_name"], row["from_port"]) not in seen:
            seen.add((row["to_name"], row["to_port"]))
            ends, ports = (row["from_name"], row["to_name"]), (row["from_port"], row["to_port"])
            cables.append(Cable(ends, ports, row["bandwidth_bps"]))
    hosts, switches = (tuple(of[number] for number in sorted(of)) for of in names.values())
    return Wiring(hosts, by_ports(cables, hosts, switches))


def _ports(links: pl.DataFrame, totals: pl.DataFrame, at: _Places, tick: int | None) -> list[PortCounters]:
    rows = links.join(totals, on="link", how="left").with_columns(pl.col(_SUMS).fill_null(0)).sort("link")
    sent = {(row["from_name"], row["from_port"]): row for row in rows.iter_rows(named=True)}
    received = {(row["to_name"], row["to_port"]): row for row in sent.values()}
    return [_port(key, row, received[key], at, tick) for key, row in sent.items()]


def _port(
    key: tuple[str, int], sent: Mapping[str, Any], received: Mapping[str, Any], at: _Places, tick: int | None
) -> PortCounters:
    name, number = key
    node, port = at.get(key, (None, None))
    stalled = sent["port_stalled_ps"]
    ticks = stalled // tick if tick else stalled * sent["bandwidth_bps"] // _PS_OF_WORD
    values = {
        **dict.fromkeys(COUNTERS, 0),
        "PortXmitData": sent["bytes"] // WORD,
        "PortRcvData": received["bytes"] // WORD,
        **dict.fromkeys(("PortXmitPkts", "PortUnicastXmitPkts"), sent["packets"]),
        **dict.fromkeys(("PortRcvPkts", "PortUnicastRcvPkts"), received["packets"]),
        "PortXmitWait": ticks,
    }
    is_switch = sent["from_vertex"].startswith("switch ")
    if node is None or port is None:
        return PortCounters(number, values, name, is_switch=is_switch)
    lid, adapter = (node.lid, None) if is_switch else (port.lid, number - 1)
    return PortCounters(port.number, values, name, node.guid, lid, adapter, is_switch)
