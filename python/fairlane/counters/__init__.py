"""Port counters with InfiniBand's names and units: of simulated runs, and of real clusters."""

from collections.abc import Mapping

from fairlane.counters.base import COUNTERS, TICK_WORDS, PortCounters, Reading, since
from fairlane.counters.diagnostics import write_perfquery
from fairlane.counters.prometheus import write_openmetrics, write_prometheus
from fairlane.counters.reader import FORMATS, Located, located, read_counters, table_of
from fairlane.counters.shared import Allocation, HotLink, hot_links, read_allocation, roots, without_speed
from fairlane.counters.simulated import Snapshot, snapshots

__all__ = [
    "COUNTERS",
    "FORMATS",
    "TICK_WORDS",
    "Allocation",
    "HotLink",
    "Located",
    "PortCounters",
    "Reading",
    "Snapshot",
    "export",
    "hot_links",
    "located",
    "read_allocation",
    "read_counters",
    "roots",
    "since",
    "snapshots",
    "table_of",
    "without_speed",
]


def export(found: list[Snapshot]) -> Mapping[str, str]:
    """The files for the counters of a run by name: at its end, and if it was sampled, after each interval."""
    last = found[-1]
    files = {"perfquery.txt": write_perfquery(last.ports), "counters.prom": write_prometheus(last.ports)}
    if len(found) > 1:
        width = len(str(len(found)))
        files["intervals.om"] = write_openmetrics(found)
        for number, one in enumerate(found, 1):
            files[f"intervals/{number:0{width}d}.perfquery.txt"] = write_perfquery(one.ports)
    return files
