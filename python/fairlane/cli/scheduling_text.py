"""How a log went, as a table."""

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table

from fairlane.results.text import percent
from fairlane.scheduler import ScheduleMetrics

__all__ = ["schedule_table"]


def schedule_table(rows: Mapping[str, ScheduleMetrics]) -> Table:
    """A row for each allocator."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("allocator", no_wrap=True)
    for heading in (
        "jobs",
        "refused",
        "utili-\nsation",
        "mean\nwait",
        "median\nwait",
        "bounded\nslowdown",
        "frag-\nmented",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in rows.items():
        table.add_row(
            name,
            str(row.jobs),
            str(row.refused),
            percent(row.utilisation),
            _time(row.mean_wait),
            _time(row.median_wait),
            f"{row.mean_bounded_slowdown:.2f}",
            percent(row.fragmentation),
        )
    return table


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.2f} h" if seconds >= 3600 else f"{seconds:.0f} s"
