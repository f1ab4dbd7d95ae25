"""Fabrics cable by cable: the wiring of a built one, CSV, GraphML; and what a writer makes: a text and its notes.

*A CSV file with a line for each cable, as ``fairlane fabric import`` reads it.* Lines without a second end and with 0
cables come first: they name the hosts in the order of their numbers.

*GraphML by networkx: nodes with their kind, edges with ports, bandwidth and latency.* Edges carry their number, because
GraphML orders them by node; cables and switches keep their numbers when it is read.
"""

import csv
import io
import re
from dataclasses import dataclass
from typing import Any

from fairlane.core.errors import Problem, ScenarioError, require
from fairlane.core.units import BANDWIDTH, DURATION
from fairlane.core.wording import plural, some
from fairlane.model.fabric.identities import ports_of
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Cable, Wiring, in_order

_SHOWN = 3  # hosts or switches that a note names


@dataclass(frozen=True)
class Written:
    """A file's text, with what the format has no place for."""

    text: str
    notes: tuple[str, ...] = ()
    """One sentence for each property of the fabric that is left out."""


def left_out(wiring: Wiring, *, bandwidths: bool = True, latencies: bool = True, tables: bool = True) -> list[str]:
    """Notes on what a format leaves out: with ``bandwidths`` cables' bandwidths, and so on."""
    notes = []
    if bandwidths and any(cable.bandwidth is not None for cable in wiring.cables):
        notes.append("bandwidths are left out: the format has none; fabric.bandwidth sets that of all cables")
    if latencies and any(cable.latency is not None for cable in wiring.cables):
        notes.append("latencies are left out: the format has none; fabric.latency sets that of all cables")
    if tables and wiring.tables:
        notes.append("forwarding tables are left out: the format has none")
    if wiring.groups:
        message = "groups and classes of links are left out: routings of fabrics of groups need the saved file"
        notes.append(message)
    return notes


def renumbered(wiring: Wiring, again: Wiring) -> list[str]:
    """Notes on rails, hosts, switches and links that have other numbers when the file is read ``again``."""
    before, after = ports_of(wiring), ports_of(again)
    notes = []
    if rails := [host for host in wiring.hosts if before[host] != after[host]]:
        message = f"{plural(len(rails), 'host has', 'hosts have')} other rails when the file is read again"
        notes.append(f"{message}, by port number: {some(rails, _SHOWN)}")
    for what, same in (("hosts", wiring.hosts == again.hosts), ("switches", wiring.switches == again.switches)):
        if not same:
            notes.append(f"{what} have other numbers when the file is read again; names and cables are the same")
    switches = [name for name in wiring.switches if before[name] != after[name]]
    if switches and wiring.switches == again.switches:
        message = f"links of {plural(len(switches), 'switch has', 'switches have')} another order when the file is read"
        notes.append(f"{message} again: {some(switches, _SHOWN)}; ties of routings may be decided otherwise")
    return notes


def wiring_of(fabric: Fabric) -> Wiring:
    """The cables of a fabric, each once, in an order that keeps the numbers of its switches and links.

    On fabrics of groups cables keep the classes of their links; the levels of other fabrics are inferred again.
    Where each rail has groups of its own, these are not kept: an imported fabric has them once. Nor are they, and the
    numbers, where no list of cables names the switches in order, as with leaves without hosts; a remark says so.
    """
    keys = ("from_name", "from_port", "to_name", "to_port", "bandwidth", "latency", "class", "role")
    plan, between = fabric.plan, fabric.links["role"] != "host"
    groups = plan["kind"] == "groups" and len(set(fabric.links["rail"][between].tolist())) <= 1
    known: dict[tuple[str, int], int] = {}
    places: dict[str, list[int]] = {name: [] for name in (*fabric.host_names, *fabric.switch_names)}
    cables: list[Cable] = []
    for begin, port, end, far, rate, delay, kind, role in zip(
        *(fabric.links[key].tolist() for key in keys), strict=True
    ):
        if (begin, port) not in known:
            known[end, far] = len(cables)
            name = fabric.classes[kind] if groups and role != "host" else None
            places[begin].append(len(cables))
            cables.append(Cable((begin, end), (port, far), rate, delay, link_class=name))
        else:
            places[begin].append(known[begin, port])
    order = in_order(places, fabric.switch_names)
    if order is None:
        message = "switches and links have other numbers when the file is read again, and there are no groups"
        remark = f"{message}: no list of cables has the switches of this fabric in order; ties of routings may differ"
        return Wiring(tuple(fabric.host_names), tuple(cables), remarks=(remark,))
    shape = (plan["switches"], plan["row"]) if groups else None
    return Wiring(tuple(fabric.host_names), tuple(cables[at] for at in order), groups=shape)


HEADER = ("from", "to", "from_port", "to_port", "bandwidth", "latency", "cables", "from_kind", "to_kind")
"""The columns."""


def write_csv(wiring: Wiring) -> Written:
    """The file. Raises ``ScenarioError`` for a name that a line cannot hold."""
    hosts = set(wiring.hosts)
    for name in (*wiring.hosts, *wiring.switches):
        if name != name.strip() or name.startswith("#") or len(name.splitlines()) > 1:
            message = "cannot be in a CSV file: it begins with # or a space, ends with one, or has several lines"
            raise ScenarioError(Problem("name", message, name))
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(HEADER)
    for name in wiring.hosts:
        rows.writerow((name, "", "", "", "", "", "0", "host", ""))
    for cable in wiring.cables:
        rows.writerow(_row(cable, hosts))
    return Written(out.getvalue(), tuple(left_out(wiring, bandwidths=False, latencies=False)))


def _kind(name: str, hosts: set[str]) -> str:
    return "host" if name in hosts else "switch"


def _row(cable: Cable, hosts: set[str]) -> tuple[str, ...]:
    ports = ("", "") if cable.ports is None else tuple(map(str, cable.ports))
    rate = "" if cable.bandwidth is None else BANDWIDTH.format(cable.bandwidth)
    delay = "" if cable.latency is None else DURATION.format(cable.latency)
    return (*cable.ends, *ports, rate, delay, "1", *(_kind(end, hosts) for end in cable.ends))


_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, production 2


def write_graphml(wiring: Wiring) -> Written:
    """The file. Raises ``ScenarioError`` for names that XML cannot hold, ``MissingExtraError`` without networkx."""
    require("schedule")
    import networkx

    for name in (*wiring.hosts, *wiring.switches):
        if _NO_XML.search(name):
            message = "cannot be in a GraphML file"
            raise ScenarioError(Problem("name", message, name, "no control characters, which XML cannot hold"))
    graph: networkx.MultiGraph[str] = networkx.MultiGraph()
    for name in wiring.hosts:
        graph.add_node(name, kind="host")
    for name in wiring.switches:
        graph.add_node(name, kind="switch")
    for number, cable in enumerate(wiring.cables):
        data: dict[str, Any] = {
            "number": number,
            "from": cable.ends[0],
            "from_port": None if cable.ports is None else cable.ports[0],
            "to_port": None if cable.ports is None else cable.ports[1],
            "bandwidth": None if cable.bandwidth is None else BANDWIDTH.format(cable.bandwidth),
            "latency": None if cable.latency is None else DURATION.format(cable.latency),
        }
        graph.add_edge(*cable.ends, key=number, **{key: value for key, value in data.items() if value is not None})
    text = "\n".join(networkx.generate_graphml(graph)) + "\n"
    return Written(text, tuple(left_out(wiring, bandwidths=False, latencies=False)))
