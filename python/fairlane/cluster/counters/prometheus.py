"""Prometheus text with the metric names of three exporters.

Adapters of hosts have the names of node_exporter (``node_infiniband_port_...``, labels ``device`` and ``port``, and
``instance`` for the host, which Prometheus adds when it scrapes); ports of switches those of infiniband_exporter
(``infiniband_switch_port_...``, labels ``guid`` and ``port``), which also has ``infiniband_hca_port_...`` for adapters.
Both have data in bytes. The infiniband-exporter in Python is read as well: ``infiniband_portxmitdata_total`` with the
counters of ``ibqueryerrors``, data in words, labels ``local_guid``, ``local_name``, ``local_port`` and ``component``.
OpenMetrics has the same with a time for every sample, in seconds of simulated time.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane.cluster.counters.base import COUNTERS, DATA, WORD, PortCounters, Reading, adapter_numbers
from fairlane.cluster.counters.simulated import Snapshot
from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.files import content_lines

OF_HOSTS: Mapping[str, str] = {
    "PortXmitData": "node_infiniband_port_data_transmitted_bytes_total",
    "PortRcvData": "node_infiniband_port_data_received_bytes_total",
    "PortXmitPkts": "node_infiniband_port_packets_transmitted_total",
    "PortRcvPkts": "node_infiniband_port_packets_received_total",
    "PortUnicastXmitPkts": "node_infiniband_unicast_packets_transmitted_total",
    "PortUnicastRcvPkts": "node_infiniband_unicast_packets_received_total",
    "PortMulticastXmitPkts": "node_infiniband_multicast_packets_transmitted_total",
    "PortMulticastRcvPkts": "node_infiniband_multicast_packets_received_total",
    "LinkErrorRecoveryCounter": "node_infiniband_link_error_recovery_total",
    "LinkDownedCounter": "node_infiniband_link_downed_total",
    "PortRcvErrors": "node_infiniband_port_errors_received_total",
    "PortXmitDiscards": "node_infiniband_port_discards_transmitted_total",
    "PortXmitConstraintErrors": "node_infiniband_port_constraint_errors_transmitted_total",
    "PortRcvConstraintErrors": "node_infiniband_port_constraint_errors_received_total",
    "PortXmitWait": "node_infiniband_port_transmit_wait_total",
}
"""node_exporter's metric of each counter."""
_OF_PORTS = {
    "PortXmitData": "transmit_data_bytes_total",
    "PortRcvData": "receive_data_bytes_total",
    "PortXmitPkts": "transmit_packets_total",
    "PortRcvPkts": "receive_packets_total",
    "PortUnicastXmitPkts": "unicast_transmit_packets_total",
    "PortUnicastRcvPkts": "unicast_receive_packets_total",
    "PortMulticastXmitPkts": "multicast_transmit_packets_total",
    "PortMulticastRcvPkts": "multicast_receive_packets_total",
    "SymbolErrorCounter": "symbol_error_total",
    "LinkErrorRecoveryCounter": "link_error_recovery_total",
    "LinkDownedCounter": "link_downed_total",
    "PortRcvErrors": "receive_errors_total",
    "PortRcvRemotePhysicalErrors": "receive_remote_physical_errors_total",
    "PortRcvSwitchRelayErrors": "receive_switch_relay_errors_total",
    "PortXmitDiscards": "transmit_discards_total",
    "PortXmitConstraintErrors": "transmit_constraint_errors_total",
    "PortRcvConstraintErrors": "receive_constraint_errors_total",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors_total",
    "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors_total",
    "VL15Dropped": "vl15_dropped_total",
    "PortXmitWait": "transmit_wait_total",
    "QP1Dropped": "qp1_dropped_total",
}
OF_SWITCHES: Mapping[str, str] = {name: f"infiniband_switch_port_{metric}" for name, metric in _OF_PORTS.items()}
"""infiniband_exporter's metric of each counter of a port of a switch."""
OF_ADAPTERS: Mapping[str, str] = {name: f"infiniband_hca_port_{metric}" for name, metric in _OF_PORTS.items()}
"""infiniband_exporter's metric of each counter of an adapter's port."""
OF_PYTHON: Mapping[str, str] = {name: f"infiniband_{name.lower()}_total" for name in COUNTERS}
"""Metric of each counter of the infiniband-exporter in Python, of switches and of adapters."""
_INFO = "infiniband_switch_info"


@dataclass(frozen=True)
class _Exporter:
    """Labels of a port by an exporter, and the unit of its data."""

    metrics: Mapping[str, str]
    node: str
    port: str
    unit: int = WORD
    """Its units of data in a word."""
    by_guid: bool = True
    is_switch: bool | None = None


_EXPORTERS = (
    _Exporter(OF_HOSTS, "instance", "port", by_guid=False, is_switch=False),
    _Exporter(OF_SWITCHES, "guid", "port", is_switch=True),
    _Exporter(OF_ADAPTERS, "guid", "port", is_switch=False),
    _Exporter(OF_PYTHON, "local_guid", "local_port", unit=1),
)
_KINDS = {metric: (name, it) for it in _EXPORTERS for name, metric in it.metrics.items()}
"""The counter and the exporter of each metric."""

_METRIC = re.compile(r"[A-Za-z_:][\w:]*", re.ASCII)
_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\S+))?", re.ASCII)
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_PORT = re.compile(r"[0-9]{1,9}")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _labels(port: PortCounters) -> str:
    if port.is_switch:
        return f'{{guid="0x{port.guid or 0:016x}",port="{port.number}"}}'
    return f'{{device="mlx5_{port.adapter or 0}",instance="{_escaped(port.name)}",port="1"}}'


def _metrics(ports: Sequence[PortCounters]) -> Iterator[tuple[str, str, list[PortCounters]]]:
    """Each metric with its counter and its ports."""
    for is_switch, names in ((False, OF_HOSTS), (True, OF_SWITCHES)):
        of_kind = [port for port in ports if port.is_switch is is_switch]
        for counter, metric in names.items():
            if of_kind:
                yield metric, counter, of_kind


def _value(port: PortCounters, counter: str) -> int:
    return port.values[counter] * (WORD if counter in DATA else 1)


def _infos(ports: Iterable[PortCounters]) -> list[str]:
    infos = {
        f'{_INFO}{{guid="0x{port.guid or 0:016x}",lid="{port.lid or 0}",switch="{_escaped(port.name)}"}} 1'
        for port in ports
        if port.is_switch
    }
    return sorted(infos)


def write_prometheus(ports: Sequence[PortCounters]) -> str:
    """The text of one scrape."""
    lines = []
    for metric, counter, of_kind in _metrics(ports):
        lines += [f"# HELP {metric} {counter}", f"# TYPE {metric} counter"]
        lines += [f"{metric}{_labels(port)} {_value(port, counter)}" for port in of_kind]
    if infos := _infos(ports):
        lines += [f"# HELP {_INFO} Name and LID of a switch", f"# TYPE {_INFO} gauge", *infos]
    return "\n".join(lines) + "\n"


def write_openmetrics(snapshots: Sequence[Snapshot]) -> str:
    """OpenMetrics text: every counter at the end of each interval, with simulated time as its timestamp, s."""
    lines = []
    for metric, counter, of_kind in _metrics(snapshots[0].ports):
        lines += [f"# TYPE {metric.removesuffix('_total')} counter"]
        at = {port.key: _labels(port) for port in of_kind}
        series: dict[tuple[object, ...], list[str]] = {key: [] for key in at}
        for snapshot in snapshots:
            for port in snapshot.ports:
                if port.key in at:
                    time = f"{snapshot.at_ps / 10**12:.12f}"
                    series[port.key].append(f"{metric}{at[port.key]} {_value(port, counter)} {time}")
        lines += [line for rows in series.values() for line in rows]
    if infos := _infos(snapshots[0].ports):
        lines += [f"# TYPE {_INFO} gauge", *infos]
    return "\n".join([*lines, "# EOF"]) + "\n"


def is_prometheus(text: str) -> bool:
    """Whether a text has a metric of one of the exporters."""
    return re.search(r"^(node_infiniband_|infiniband_)\w+[{ ]", text, re.MULTILINE) is not None


@dataclass
class _Port:
    """A port in the making."""

    line: int
    values: dict[str, int]
    name: str
    is_switch: bool | None


_Key = tuple[bool, str, str, int]
"""Whether it is known by its GUID, its node's GUID or its host, its device, its number."""


def read_prometheus(text: str, file: Path) -> Reading:
    """The counters; other metrics are skipped, whatever their lines have. Of several times the last one counts.

    Raises ``ScenarioError`` with the line of a sample that is wrong.
    """
    ports: dict[_Key, _Port] = {}
    names: dict[str, str] = {}
    problems: list[Problem] = []
    for number, line in content_lines(text):
        begins = _METRIC.match(line)
        metric = begins[0] if begins else ""
        if metric != _INFO and metric not in _KINDS:
            if line == metric and any(known.startswith(metric) for known in _KINDS):
                problems.append(Problem.of_file(file, f"not a sample of Prometheus text: {line[:60]!r}", number))
            continue
        sample = _SAMPLE.fullmatch(line)
        labels = None if sample is None else _read_labels(sample[2] or "")
        if sample is None or labels is None:
            problems.append(Problem.of_file(file, f"not a sample of Prometheus text: {line[:60]!r}", number))
        elif metric == _INFO:
            names[labels.get("guid", "")] = labels.get("switch", "")
        elif not _add(ports, metric, labels, sample[3], number):
            message = "not a whole number, a port or a GUID"
            problems.append(Problem.of_file(file, f"{message}: {line[:80]!r}", number))
    if problems:
        raise ScenarioError(problems)
    adapters = adapter_numbers((where, device) for by_guid, where, device, _ in ports if not by_guid)
    return Reading([_port(key, port, names, adapters) for key, port in ports.items()])


def _add(ports: dict[_Key, _Port], metric: str, labels: Mapping[str, str], value: str, line: int) -> bool:
    """Adds a sample to its port; whether its value, port and GUID are what they have to be."""
    counter, exporter = _KINDS[metric]
    amount, where, port = _count(value), labels.get(exporter.node, ""), labels.get(exporter.port, "")
    if amount is None or not _PORT.fullmatch(port) or (exporter.by_guid and _guid(where) is None):
        return False
    is_switch = exporter.is_switch if "component" not in labels else labels["component"] == "switch"
    key = (exporter.by_guid, where, "" if exporter.by_guid else labels.get("device", ""), int(port))
    port_of = ports.setdefault(key, _Port(line, {}, labels.get("local_name", ""), is_switch))
    port_of.values[counter] = amount // exporter.unit if counter in DATA else amount
    return True


def _port(key: _Key, port: _Port, names: Mapping[str, str], adapters: Mapping[tuple[str, str], int]) -> PortCounters:
    by_guid, where, device, number = key
    if by_guid:
        name = port.name or names.get(where, "")
        return PortCounters(number, port.values, name, _guid(where), is_switch=port.is_switch, line=port.line)
    host = where.rpartition(":")[0] if re.fullmatch(r".+:\d+", where) else where
    adapter = adapters[where, device]
    return PortCounters(number, port.values, host, adapter=adapter, device=device, is_switch=False, line=port.line)


def _read_labels(text: str) -> dict[str, str] | None:
    """The labels of a sample; None if they are wrong."""
    labels, at = dict[str, str](), 0
    while at < len(text):
        label = _LABEL.match(text, at)
        if label is None:
            return None
        labels[label[1]] = re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], label[2])
        at = label.end()
    return labels


def _count(text: str) -> int | None:
    """A whole number of at least 0 and below 2**64; None for anything else."""
    if re.fullmatch(r"[0-9]{1,20}", text):
        return int(text)
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if 0 <= value < 2**64 and value == int(value) else None


def _guid(text: str) -> int | None:
    match = re.fullmatch(r"0x([0-9a-fA-F]{1,16})", text)
    return int(match[1], 16) if match else None
