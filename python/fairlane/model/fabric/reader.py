"""Reads a fabric from a file, whatever of the known kinds it is."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import BANDWIDTH, DURATION
from fairlane.inputs.files import encoding_of, parse_json, read_unpacked, reading
from fairlane.inputs.parameters import NODES
from fairlane.model.fabric.astra_network import (
    is_astra_network,
    is_astra_system,
    read_astra_network,
    refuse_astra_system,
)
from fairlane.model.fabric.cable_files import is_csv, is_graphml, is_ibsim, read_csv, read_graphml, read_ibsim
from fairlane.model.fabric.cray_links import is_cray_links, read_cray_links
from fairlane.model.fabric.forwarding import with_tables
from fairlane.model.fabric.htsim_topo import is_htsim_topo, read_htsim_topo
from fairlane.model.fabric.ibnetdiscover import is_ibnetdiscover, read_ibnetdiscover
from fairlane.model.fabric.ndt import is_ndt, read_ndt
from fairlane.model.fabric.nodes import Node
from fairlane.model.fabric.ns3_topology import is_ns3_topology, read_ns3_topology
from fairlane.model.fabric.slurm_files import is_slurm_topology, read_slurm_topology
from fairlane.model.fabric.wiring import Cable, Wiring


def read_wiring(
    file: str | Path,
    tables: str | Path | None = None,
    node_name_map: str | Path | None = None,
    *,
    switches_only: bool = False,
    bandwidth: int | None = None,
) -> Wiring:
    """The wiring in a file, of whatever of the known kinds it is; it may be packed by ``xz``.

    They are the output of ``ibnetdiscover`` and ``iblinkinfo``, UFM's topology files, network files of ibsim, CSV
    lists of links, GraphML, a Cray's cabling, Slurm's ``topology.conf`` and ``topology.yaml``, topology files of htsim
    and ns-3, network files of ASTRA-sim, and what ``Wiring.save`` writes.

    ``tables`` is a file of forwarding tables (``dump_lfts``, ``ibroute``) and ``node_name_map`` one of names by GUID,
    as infiniband-diags takes it; both go with ``ibnetdiscover``'s output. With ``switches_only`` that has no sections
    of adapters, and the switches' lines say what there is to know of them. ``bandwidth``, in bits per second, is that
    of the cables for which the file has none. Raises ``ScenarioError`` naming file and line for what cannot be read, is
    not whole or contradicts itself.
    """
    path = Path(file)
    text = _text(path)
    read = next((read for is_of_kind, read in _READERS if is_of_kind(text)), None)
    dump = read is read_ibnetdiscover
    for option, given in (("--node-name-map", node_name_map), ("--switches-only", switches_only)):
        if given and not dump:
            raise ScenarioError(Problem(option, "goes with the output of ibnetdiscover", str(path)))
    if read is None:
        raise ScenarioError(Problem.of_file(path, "no known format of a fabric", allowed=_KINDS))
    if dump:
        name_map = Path(node_name_map) if node_name_map else None
        wiring = read_ibnetdiscover(text, path, name_map, switches_only=switches_only)
    else:
        wiring = read(text, path)
    if bandwidth is not None:
        wiring = _with_bandwidth(wiring, bandwidth, path)
    return with_tables(wiring, Path(tables)) if tables else wiring


def refuse_others(file: Path) -> None:
    """Raises ``ScenarioError`` for a JSON file of another program without a fabric, and says what to read instead."""
    text = _text(file)
    if is_astra_system(text):
        refuse_astra_system(text, file)


def _with_bandwidth(wiring: Wiring, bandwidth: int, file: Path) -> Wiring:
    if all(cable.bandwidth is not None for cable in wiring.cables):
        message = f"every cable of {file} has a bandwidth of its own"
        raise ScenarioError(Problem("--bandwidth", message, BANDWIDTH.format(bandwidth)))
    cables = (cable if cable.bandwidth else replace(cable, bandwidth=bandwidth) for cable in wiring.cables)
    return replace(wiring, cables=tuple(cables))


def _text(path: Path) -> str:
    """The file's text, whatever byte order mark it begins with.

    Node descriptions are unchecked bytes: where they are not UTF-8, the rest of a dump is read.
    """
    with reading(path):
        raw = read_unpacked(path)
        encoding = encoding_of(raw)
        text = raw.decode(encoding, errors="replace")
        return text if is_ibnetdiscover(text) else raw.decode(encoding)


def _read_saved(text: str, path: Path) -> Wiring:
    with reading(path):
        data = parse_json(text)
    try:
        cables = [
            Cable(
                (link["ends"][0], link["ends"][1]),
                tuple(link["ports"]) if "ports" in link else None,
                BANDWIDTH.parse(link["bandwidth"]) if "bandwidth" in link else None,
                DURATION.parse(link["latency"]) if "latency" in link else None,
                link_class=link.get("class"),
            )
            for link in data["links"]
        ]
        tables = {switch: tuple(ports) for switch, ports in data.get("tables", {}).items()}
        groups = (data["groups"]["switches"], data["groups"]["row"]) if "groups" in data else None
        nodes = tuple(Node.read(node) for node in data.get(NODES, ()))
        return Wiring(
            tuple(data["hosts"]),
            tuple(cables),
            tables,
            guids={node.guid: node.owner for node in nodes if node.is_switch and node.guid is not None},
            nodes=nodes,
            groups=groups,
            source=path,
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        shown = "a table, list or text is something else" if isinstance(error, IndexError | TypeError) else reason
        raise ScenarioError(Problem.of_file(path, f"not a file that fairlane fabric import wrote: {shown}")) from None


_READERS: tuple[tuple[Callable[[str], bool], Callable[[str, Path], Wiring]], ...] = (
    (is_astra_system, refuse_astra_system),
    (lambda text: text.lstrip().startswith("{"), _read_saved),
    (is_csv, read_csv),
    (is_ndt, read_ndt),
    (is_graphml, read_graphml),
    (is_ibsim, read_ibsim),
    (is_ibnetdiscover, read_ibnetdiscover),
    (is_slurm_topology, read_slurm_topology),
    (is_cray_links, read_cray_links),
    (is_htsim_topo, read_htsim_topo),
    (is_ns3_topology, read_ns3_topology),
    (is_astra_network, read_astra_network),
)
_KINDS = (
    "the output of ibnetdiscover (also with -p) or iblinkinfo, a topology file of UFM (.ndt), a network file of ibsim, "
    "a CSV file with the columns from and to, GraphML, Slurm's topology.conf or topology.yaml, the cabling of a Cray "
    "Cascade, a topology file of htsim (.topo) or ns-3, a network file of ASTRA-sim, or a file of fabric import"
)
