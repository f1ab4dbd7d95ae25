"""Names of columns as monitoring of InfiniBand has them.

A counter is called by the specification (``PortXmitData``), by Linux (``port_xmit_data``), or by the sampler sysclassib
of LDMS (``ib.port_xmit_data#mlx5_0.1``, and ``ib.port_xmit_data.rate#mlx5_0.1`` for what it adds in a second); its sum,
mean, minimum or maximum over several ports has that behind it (``port_xmit_data_sum``). LDMS has columns that identify
a row besides (``Time``, ``ProducerName``, ``component_id``, ``job_id``, ``app_id``), which are numbers and no counters.
"""

import re
from collections.abc import Iterable, Sequence

from fairlane.counters import COUNTERS
from fairlane.counters.sysfs import COUNTERS_OF_FILES

RUNS = ("job_id", "jobid", "JobId")
"""Columns that identify runs where there is no other: the first that a table has."""
_IDENTIFIERS = {
    *("time", "time_usec", "dt", "dt_usec", "timestamp", "timestamp_usec", "epoch", "job_start", "job_end"),
    *("producername", "producer", "component_id", "compid", "comp_id", "instance", "job_id", "jobid", "app_id", "uid"),
    *("lid", "port", "port_num", "node_name", "node_guid", "port_guid", "guid", "remote", "device", "adapter"),
}
_LDMS = {  # sysclassib's own names
    f"port_{cast}_{way}_packets": f"Port{cast.title()}{name}Pkts"
    for cast in ("unicast", "multicast")
    for way, name in (("xmit", "Xmit"), ("rcv", "Rcv"))
}
_COUNTERS = {name.lower(): name for name in COUNTERS}
_COUNTERS |= {name.lower(): counter for name, counter in (COUNTERS_OF_FILES | _LDMS).items()}
_NAME = re.compile(r"(?:ib\.)?([A-Za-z]\w*?)(_(?:sum|mean|min|max))?(\.rate)?(#[\w.-]+)?", re.ASCII)


def identifies(name: str) -> bool:
    """Whether a column says which row it is, and counts nothing."""
    return name.lstrip("#").lower() in _IDENTIFIERS


def standard_name(name: str) -> str:
    """A counter by its name in the specification, with what is behind it; any other name as it is."""
    parts = _NAME.fullmatch(name)
    counter = _COUNTERS.get(parts[1].lower()) if parts else None
    if parts is None or counter is None:
        return name
    return "".join((counter, *(part or "" for part in parts.groups()[1:])))


def of_any_device(name: str) -> str:
    """The standard name of a counter without its device; any other name as it is."""
    counter, mark, device = standard_name(name).partition("#")
    return (
        counter if mark and device and _COUNTERS.get(re.split(r"[._]", counter)[0].lower()) else counter + mark + device
    )


def column_of(name: str, columns: Iterable[str]) -> str | None:
    """The column of a counter: the one with its name, or the only one that is called otherwise; None without one."""
    every = list(columns)
    if name in every:
        return name
    same = [column for column in every if standard_name(column) == standard_name(name)]
    return same[0] if len(same) == 1 else None


def columns_of(names: Sequence[str], columns: Iterable[str]) -> dict[str, str | None]:
    """The column of each counter. Where both have a counter once, its device may differ, or be in one name only."""
    every = list(columns)
    found = {name: column_of(name, every) for name in names}
    for name in (name for name, column in found.items() if column is None):
        alike = [column for column in every if of_any_device(column) == of_any_device(name)]
        if len(alike) == 1 and [of_any_device(other) for other in names].count(of_any_device(name)) == 1:
            found[name] = alike[0]
    return found
