"""Reads a fabric from a file, whatever of the known kinds it is."""

import codecs
from lzma import FORMAT_XZ, LZMADecompressor, LZMAError
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.cray_links import is_cray_links, read_cray_links
from fairlane.fabric.csv_links import is_csv, read_csv
from fairlane.fabric.forwarding import with_tables
from fairlane.fabric.graphml import is_graphml, read_graphml
from fairlane.fabric.ibnetdiscover import is_ibnetdiscover, read_ibnetdiscover
from fairlane.fabric.ibsim_net import is_ibsim, read_ibsim
from fairlane.fabric.nodes import Node
from fairlane.fabric.wiring import Cable, Wiring
from fairlane.inputs.files import parse_json, read_bytes, reading
from fairlane.inputs.parameters import NODES
from fairlane.units import BANDWIDTH, DURATION

_XZ = b"\xfd7zXZ\x00"
_XZ_MEMORY = 128 << 20  # bytes that unpacking may take
_LARGEST = 256 << 20  # bytes of the largest unpacked file


def read_wiring(
    file: str | Path,
    tables: str | Path | None = None,
    node_name_map: str | Path | None = None,
    *,
    switches_only: bool = False,
) -> Wiring:
    """The wiring in a file, of whatever of the known kinds it is; it may be packed by ``xz``.

    They are ``ibnetdiscover``'s output, a network file of ibsim, a CSV list of links, GraphML, a Cray's cabling, and
    what ``Wiring.save`` writes.

    ``tables`` is a file of forwarding tables (``dump_lfts``, ``ibroute``) and ``node_name_map`` one of names by GUID,
    as infiniband-diags takes it; both go with ``ibnetdiscover``'s output. With ``switches_only`` that has no sections
    of adapters, and the switches' lines say what there is to know of them. Raises ``ScenarioError`` naming file and
    line for what cannot be read, is not whole or contradicts itself.
    """
    path = Path(file)
    text = _text(path)
    dump = is_ibnetdiscover(text)
    for option, given in (("--node-name-map", node_name_map), ("--switches-only", switches_only)):
        if given and not dump:
            raise ScenarioError(Problem(option, "goes with the output of ibnetdiscover", str(path)))
    if text.lstrip().startswith("{"):
        wiring = _read_saved(text, path)
    elif is_csv(text):
        wiring = read_csv(text, path)
    elif is_graphml(text):
        wiring = read_graphml(text, path)
    elif is_ibsim(text):
        wiring = read_ibsim(text, path)
    elif dump:
        wiring = read_ibnetdiscover(
            text, path, Path(node_name_map) if node_name_map else None, switches_only=switches_only
        )
    elif is_cray_links(text):
        wiring = read_cray_links(text, path)
    else:
        kinds = (
            "the output of ibnetdiscover, a network file of ibsim, a CSV file with the columns from and to, GraphML, "
            "the cabling of a Cray Cascade, or a file of fabric import"
        )
        raise ScenarioError(Problem.of_file(path, "no fabric that is known", allowed=kinds))
    return with_tables(wiring, Path(tables)) if tables else wiring


def _text(path: Path) -> str:
    """The file's text, whatever byte order mark it begins with.

    Node descriptions are unchecked bytes: where they are not UTF-8, the rest of a dump is read.
    """
    with reading(path):
        raw = _unpacked(read_bytes(path, _LARGEST), path)
        encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
        text = raw.decode(encoding, errors="replace")
        return text if is_ibnetdiscover(text) else raw.decode(encoding)


def _unpacked(raw: bytes, path: Path) -> bytes:
    """The file's bytes, expanded if they are xz's."""
    if not raw.startswith(_XZ):
        return raw
    reader = LZMADecompressor(FORMAT_XZ, memlimit=_XZ_MEMORY)
    try:
        found = reader.decompress(raw, _LARGEST)
    except LZMAError as error:
        raise ScenarioError(Problem.of_file(path, f"is damaged: {error}")) from None
    if not reader.eof:
        words = "is cut off" if reader.needs_input else f"expands to more than {_LARGEST >> 20} MiB"
        raise ScenarioError(Problem.of_file(path, words))
    return found


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
        found = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        words = "a table, list or text is something else" if isinstance(error, IndexError | TypeError) else found
        raise ScenarioError(Problem.of_file(path, f"not a file that fairlane fabric import wrote: {words}")) from None
