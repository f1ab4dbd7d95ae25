"""Counters of ports over time, from the table of samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from fairlane.timeline.build import Timelines

COUNTERS = (("utilisation", "%"), ("stalled", "%"), ("queue length", "packets"))
"""The counters of each port and their units."""


@dataclass(frozen=True)
class PortCounters:
    """The counters of one port."""

    name: str
    """The port's link, as ``leaf04 port 7 to spine02``."""
    points: Sequence[tuple[int, tuple[float, ...]]]
    """The beginning of each interval, ps, and the values of ``COUNTERS`` in it; at the end all are zero."""


def port_counters(found: Timelines, most: int) -> Iterator[PortCounters]:
    """The counters of the ports with most queueing delay in the range, at most so many, in order of the link."""
    samples = found.run.samples
    if samples is None or not most:
        return
    span = (pl.col("to_ps") > found.from_ps) & (pl.col("from_ps") < found.to_ps)
    table = (
        samples.filter(span)
        .group_by("link", "link_name", "from_ps", "to_ps")
        .agg(
            pl.col("port_active_share").first() * 100,
            pl.col("port_stalled_share").first() * 100,
            pl.col("mean_queue").sum(),
            pl.col("queueing_ps").sum(),
            pl.col("bytes").sum(),
        )
        .sort("link", "from_ps")
    )
    sums = table.group_by("link").agg(pl.col("queueing_ps").sum(), pl.col("bytes").sum())
    chosen = sums.sort("queueing_ps", "bytes", "link", descending=[True, True, False]).head(most)["link"].sort()
    values = ["port_active_share", "port_stalled_share", "mean_queue"]
    for link in chosen:
        points: list[tuple[int, tuple[float, ...]]] = []
        over = None
        own = table.filter(pl.col("link") == link)
        for since, until, *now in own.select("from_ps", "to_ps", *values).iter_rows():
            if over is not None and since > over:
                points.append((over, (0.0,) * len(values)))
            points.append((since, tuple(now)))
            over = until
        if over is not None:
            points.append((over, (0.0,) * len(values)))
        yield PortCounters(str(own["link_name"][0]), points)
