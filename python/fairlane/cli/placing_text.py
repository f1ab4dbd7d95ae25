"""Metrics of allocations as a table."""

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from fairlane.placement import AllocationMetrics
from fairlane.results.text import percent

__all__ = ["metrics_table"]

LISTED = 48
"""Characters of a list of hosts that are shown."""


def metrics_table(found: Mapping[str, AllocationMetrics], lists: Mapping[str, str]) -> Table:
    """A row for each job; ``lists`` has the names of its hosts, which are cut off where they are long."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("job", no_wrap=True)
    headings = ("hosts", "switches", "average\ndistance", "diameter", "pieces", "in the\nlargest", "links", "shared")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("on", no_wrap=True, overflow="ellipsis", max_width=LISTED)
    for name, metrics in found.items():
        table.add_row(
            name,
            str(metrics.hosts),
            str(metrics.switches),
            f"{metrics.average_distance:.2f}",
            str(metrics.diameter),
            str(metrics.pieces),
            percent(metrics.contiguity),
            str(metrics.links),
            percent(metrics.shared),
            Text(lists[name]),
        )
    return table
