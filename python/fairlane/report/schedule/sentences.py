"""A sentence for each figure of a page of schedules, which says what the data in it show."""

import polars as pl

from fairlane.report.schedule.distributions import MEASURES
from fairlane.results.schedule import ScheduleResults
from fairlane.wording import number, percent, plural


def sentences(found: ScheduleResults) -> dict[str, str]:
    """The sentences, by the figures' names."""
    if found.placed.is_empty():
        return {"gantt": "No job ran."}
    table = found.placed.select("allocator", **MEASURES)
    made = {
        "gantt": _gantt(found),
        "allocators": _allocators(found),
        "load": _load(found),
        "wait": _quantiles(table, "wait"),
        "bounded_slowdown": _quantiles(table, "bounded_slowdown"),
        "sizes": _sizes(found),
    }
    if (found.placed["slowdown"] != 1).any():
        made["slowdown"] = _quantiles(table, "slowdown")
    return made


def duration(value: float) -> str:
    """A time in words, from seconds to days."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if value >= 2 * size:
            return f"{number(value / size)} {unit}"
    return f"{number(value)} s"


def difference(found: ScheduleResults, other: ScheduleResults) -> str:
    """How the mean wait and the utilisation of allocators differ that both have."""
    both = other.allocators.join(found.allocators, on="allocator", suffix="_now")
    words = [
        f"{row['allocator']}: mean wait {duration(row['mean_wait_now'])} instead of {duration(row['mean_wait'])}, "
        f"utilisation {percent(row['utilisation_now'])} instead of {percent(row['utilisation'])}"
        for row in both.iter_rows(named=True)
    ]
    return f"{'; '.join(words)}."


def _ends(found: ScheduleResults, column: str) -> tuple[tuple[str, float], tuple[str, float]]:
    """The allocators with the least and the greatest value of a metric."""
    rows = found.allocators.sort(column).select("allocator", column).rows()
    return rows[0], rows[-1]


def _gantt(found: ScheduleResults) -> str:
    (least, low), (most, high) = _ends(found, "utilisation")
    words = f"{plural(found.placed['job'].n_unique(), 'job')} on {plural(found.meta.hosts, 'host')}"
    if least == most:
        return f"{words}: utilisation {percent(high)} under {most}."
    return f"{words}: utilisation from {percent(low)} under {least} to {percent(high)} under {most}."


def _allocators(found: ScheduleResults) -> str:
    (least, low), (most, high) = _ends(found, "mean_wait")
    if least == most:
        return f"The mean wait under {least} is {duration(low)}."
    words = f"The mean wait is shortest under {least}, {duration(low)}, and longest under {most}, {duration(high)}"
    (best, fast), (worst, slow) = _ends(found, "mean_slowdown")
    if slow == 1:
        return f"{words}."
    return f"{words}; jobs run {fast:.3f} times as long as in the log under {best}, {slow:.3f} times under {worst}."


def _load(found: ScheduleResults) -> str:
    (least, low), (most, high) = _ends(found, "fragmentation")
    if high < 0.0005:
        return "No time is lost to free hosts in the wrong shape for the job at the head of the queue."
    words = f"{percent(high)} of the hosts' time enough hosts are free for the head of the queue"
    words += f", but not in the shape that {most} requires"
    return f"{words}." if least == most else f"{words}; under {least} {percent(low)}."


def _quantiles(table: pl.DataFrame, measure: str) -> str:
    form = duration if measure == "wait" else "{:.3g}".format
    found = table.group_by("allocator", maintain_order=True).agg(
        half=pl.col(measure).median(), tail=pl.col(measure).quantile(0.9)
    )
    ordered = found.sort("half", "tail", "allocator")
    name, half, tail = ordered.row(0)
    what = {"wait": "wait", "bounded_slowdown": "bounded slowdown", "slowdown": "run slowdown"}[measure]
    words = f"{name}: median {what} {form(half)}, 90th percentile {form(tail)}"
    if ordered.height == 1:
        return f"{words}."
    name, half, tail = ordered.row(-1)
    return f"{words}; {name}: {form(half)} and {form(tail)}."


def _sizes(found: ScheduleResults) -> str:
    waits = found.placed.group_by("hosts").agg(wait=MEASURES["wait"].mean()).sort("wait", "hosts")
    hosts, wait = waits.row(-1)
    return f"Jobs of {plural(hosts, 'host')} wait longest, {duration(wait)} on average over allocators."
