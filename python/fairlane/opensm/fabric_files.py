"""The fabric beside exported settings: cables with GUIDs and LIDs, and forwarding tables, for ``fairlane sm check``."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

from fairlane.errors import ScenarioError
from fairlane.fabric import Fabric, Wiring
from fairlane.fabric.export import FORMATS, wiring_of
from fairlane.fabric.export.lfts import write_lfts
from fairlane.fabric.identities import endpoints_of
from fairlane.fabric.routes import tables_of

FABRIC_FILE = "fabric.ibnetdiscover"
"""The fabric as ``ibnetdiscover`` prints it."""
ROUTES_FILE = "fabric.lfts"
"""Forwarding tables as ``dump_lfts`` prints them, of routings that have some."""
_MOST_ENTRIES = 1_000_000  # entries of forwarding tables that are written: 75 MB


def fabric_files(fabric: Fabric, spec: Mapping[str, Any], dump: Wiring | None) -> tuple[dict[str, str], list[str]]:
    """The text of each file, and notes on what could not be written.

    ``spec`` is the specification of the fabric; GUIDs and LIDs are those of ``dump``, or generated.
    """
    wiring = dump or wiring_of(fabric)
    try:
        text = _dump(wiring)
    except ScenarioError as error:
        return {}, [f"{FABRIC_FILE}, which fairlane sm check reads, is left out: {error.problems[0]}"]
    tables = tables_of(fabric, spec)
    if tables is None:
        return {FABRIC_FILE: text}, []
    order = _columns(fabric, wiring)
    if order is None or set(tables) != set(wiring.switches):
        words = f"{ROUTES_FILE} is left out: the dump has other hosts, adapters or switches than the fabric"
        return {FABRIC_FILE: text}, [words]
    entries = len(tables) * (len(tables) + int(fabric.adapters_of_hosts.sum()))
    if entries > _MOST_ENTRIES:
        words = (
            f"{ROUTES_FILE} is left out: the forwarding tables have {entries:,} entries, more than {_MOST_ENTRIES:,}"
        )
        return {FABRIC_FILE: text}, [words]
    rows = {switch: [ports[column] for column in order] for switch, ports in tables.items()}
    return {FABRIC_FILE: text, ROUTES_FILE: write_lfts(wiring, rows)}, []


def _columns(fabric: Fabric, wiring: Wiring) -> list[int] | None:
    """The endpoint of the fabric for each endpoint of the wiring, adapter by adapter; None if they differ."""
    begins = accumulate(fabric.adapters_of_hosts.tolist(), initial=0)
    ranges = dict(zip(fabric.host_names, pairwise(begins), strict=True))
    hosts = [host for host, _ in endpoints_of(wiring)]
    if Counter(hosts) != Counter({host: end - begin for host, (begin, end) in ranges.items()}):
        return None
    rest = {host: iter(range(*of)) for host, of in ranges.items()}
    return [next(rest[host]) for host in hosts]


def _dump(wiring: Wiring) -> str:
    """The fabric as a dump; bandwidths that InfiniBand does not have are left out, which no check needs."""
    write = FORMATS["ibnetdiscover"].write
    try:
        return write(wiring).text
    except ScenarioError:
        return write(replace(wiring, cables=tuple(replace(one, bandwidth=None, kind="") for one in wiring.cables))).text
