"""Files of ``/sys/class/infiniband`` with their content, as ``grep . /sys/class/infiniband/*/ports/*/*/*`` prints it.

A line is ``PATH:VALUE``. What collects lines of many hosts, as ``clush`` and ``pdsh``, puts the host in front:
``HOST: PATH:VALUE``. Data is in words of 4 bytes. The files ``node_guid`` and ``ports/*/lid`` identify a port, too; all
others are skipped.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from fairlane.cluster.counters.base import PortCounters, Reading, adapter_numbers
from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.csv_rows import Skipped, added_by_paste
from fairlane.inputs.files import lines_of

COUNTERS_OF_FILES = {
    "port_xmit_data": "PortXmitData",
    "port_rcv_data": "PortRcvData",
    "port_xmit_packets": "PortXmitPkts",
    "port_rcv_packets": "PortRcvPkts",
    "unicast_xmit_packets": "PortUnicastXmitPkts",
    "unicast_rcv_packets": "PortUnicastRcvPkts",
    "multicast_xmit_packets": "PortMulticastXmitPkts",
    "multicast_rcv_packets": "PortMulticastRcvPkts",
    "symbol_error": "SymbolErrorCounter",
    "link_error_recovery": "LinkErrorRecoveryCounter",
    "link_downed": "LinkDownedCounter",
    "port_rcv_errors": "PortRcvErrors",
    "port_rcv_remote_physical_errors": "PortRcvRemotePhysicalErrors",
    "port_rcv_switch_relay_errors": "PortRcvSwitchRelayErrors",
    "port_xmit_discards": "PortXmitDiscards",
    "port_xmit_constraint_errors": "PortXmitConstraintErrors",
    "port_rcv_constraint_errors": "PortRcvConstraintErrors",
    "local_link_integrity_errors": "LocalLinkIntegrityErrors",
    "excessive_buffer_overrun_errors": "ExcessiveBufferOverrunErrors",
    "VL15_dropped": "VL15Dropped",
    "port_xmit_wait": "PortXmitWait",
}
"""The counter of each file in ``ports/N/counters``."""

_DEVICE = r"(?P<device>[A-Za-z][\w.-]{0,63})"
_PLACE = rf"(?:(?P<host>[\w.-]{{1,255}}):[ \t]*)?(?:[\w./:-]*/)?{_DEVICE}"
_LINE = re.compile(rf"{_PLACE}/ports/(?P<port>\d{{1,4}})/(?P<file>[\w./-]{{1,200}}):(?P<value>.*)", re.ASCII)
_FILES = "node_guid|node_desc|node_type|sys_image_guid|board_id|fw_ver|hca_type|hw_rev"
_OF_DEVICE = re.compile(rf"{_PLACE}/(?P<file>{_FILES}):(?P<value>.*)", re.ASCII)
_BEGINS = re.compile(r"^.{0,600}/ports/\d{1,4}/counters(?:_ext)?/\w+:", re.ASCII | re.MULTILINE)
_COUNTER = re.compile(r"counters(?:_ext)?/(\w+?)(?:_64)?", re.ASCII)
_WITHOUT_VALUE = re.compile(r"N/A\b.*", re.IGNORECASE)


@dataclass
class _Port:
    line: int
    values: dict[str, int] = field(default_factory=dict)
    lid: int | None = None
    files: set[str] = field(default_factory=set)


def is_sysfs(text: str) -> bool:
    """Whether a text is of this kind."""
    return _BEGINS.search(text) is not None


def read_sysfs(text: str, file: Path) -> Reading:
    """The counters.

    Raises ``ScenarioError`` with the line of a value that is no number, and of what is no such line.
    """
    ports: dict[tuple[str, str, int], _Port] = {}
    guids: dict[tuple[str, str], int] = {}
    problems: list[Problem] = []
    skipped = Skipped()
    for number, line in enumerate(map(str.strip, lines_of(text)), 1):
        if of_device := _OF_DEVICE.fullmatch(line):
            if of_device["file"] == "node_guid":
                guids[of_device["host"] or "", of_device["device"]] = _guid(of_device["value"])
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            if line and (what := added_by_paste(line, "grep")):
                skipped.add(what, number)
            elif line:
                problems.append(Problem.of_file(file, f"not a line PATH:VALUE: {line[:60]!r}", number))
            continue
        port = ports.setdefault((match["host"] or "", match["device"], int(match["port"])), _Port(number))
        problem = _add(port, match["file"], match["value"].strip())
        if problem:
            problems.append(Problem.of_file(file, f"{problem}: {line[:80]!r}", number))
    if problems:
        raise ScenarioError(problems)
    adapters = adapter_numbers((host, device) for host, device, _ in ports)
    read = [
        PortCounters(
            number,
            port.values,
            host,
            guids.get((host, device)) or None,
            port.lid,
            adapters[host, device],
            is_switch=False,
            line=port.line,
            device=device,
        )
        for (host, device, number), port in ports.items()
        if port.values
    ]
    return Reading(read, skipped.note)


def _add(port: _Port, file: str, value: str) -> str | None:
    """Adds the content of a file to its port; what is wrong with it, if something is."""
    counter = _COUNTER.fullmatch(file)
    if file == "lid" and re.fullmatch(r"0x[0-9a-fA-F]{1,4}", value):
        port.lid = int(value, 16) or None
    elif counter and counter[1] in COUNTERS_OF_FILES and not _WITHOUT_VALUE.fullmatch(value):
        if not re.fullmatch(r"[0-9]{1,20}", value):
            return "not a whole number"
        if file in port.files:
            return "duplicate file; give one reading"
        port.files.add(file)
        name = COUNTERS_OF_FILES[counter[1]]
        if name not in port.values or file.startswith("counters_ext"):  # these have 64 bits
            port.values[name] = int(value)
    return None


def _guid(text: str) -> int:
    """A GUID as sysfs shows it: four groups of four digits; 0 for anything else."""
    groups = re.fullmatch(r"\s*([0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3})\s*", text)
    return int(groups[1].replace(":", ""), 16) if groups else 0
