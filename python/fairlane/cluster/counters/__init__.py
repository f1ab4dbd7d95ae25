"""Port counters with InfiniBand's names and units: of simulated runs, and of real clusters."""

from collections.abc import Mapping

from fairlane.cluster.counters.base import COUNTERS, TICK_WORDS, PortCounters, Reading, since
from fairlane.cluster.counters.diagnostics import write_perfquery
from fairlane.cluster.counters.prometheus import write_openmetrics, write_prometheus
from fairlane.cluster.counters.reader import FORMATS, Located, located, read_counters, table_of
from fairlane.cluster.counters.shared import Allocation, HotLink, hot_links, read_allocation, roots, without_speed
from fairlane.cluster.counters.simulated import Snapshot, snapshots

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


def export(snapshots: list[Snapshot]) -> Mapping[str, str]:
    """The files for the counters of a run by name: at its end, and if it was sampled, after each interval."""
    last = snapshots[-1]
    files = {"perfquery.txt": write_perfquery(last.ports), "counters.prom": write_prometheus(last.ports)}
    if len(snapshots) > 1:
        width = len(str(len(snapshots)))
        files["intervals.om"] = write_openmetrics(snapshots)
        for number, snapshot in enumerate(snapshots, 1):
            files[f"intervals/{number:0{width}d}.perfquery.txt"] = write_perfquery(snapshot.ports)
    return files
