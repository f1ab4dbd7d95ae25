"""Schedules of a job log under several allocators: jobs over time, waits, slowdowns, utilisation."""

from collections.abc import Iterator, Mapping, Sequence

import altair
import polars as pl

from fairlane.core.wording import duration, percent, plural
from fairlane.learn.scheduler.compare import BOUND_S
from fairlane.results.schedule import ScheduleResults
from fairlane.views.charts import Layer, colour, layers, with_tooltip
from fairlane.views.model import Chart, View, lines_of, remarks_of
from fairlane.views.schedule.gantt import jobs_over_time
from fairlane.views.schedule.jobs import (
    MEASURES,
    distributions,
    faded,
    greatest,
    jobs_of,
    machine_over_time,
    paler,
    sizes,
)
from fairlane.views.slowdown import ERRORS
from fairlane.views.tables import Column, Row, Table, Write, columns, fixed, naming

PICTURES = {
    "gantt": "jobs over time and hosts by allocator",
    "allocators": "metrics of schedules by allocator",
    "load": "utilisation, waiting jobs and the hosts that they request over time",
    "distributions": "shares of jobs above each wait and slowdown",
    "sizes": "mean waits and slowdowns by the size of jobs",
}
"""Its pictures, and what they show."""
Window = tuple[float, float]
"""Instants, s."""


MOST_JOBS = 200
"""Jobs in a table: those that wait longest."""
_ROOM = 1.25
"""Length of the axis of bars over that of the longest one, so that its number has room."""


def view(schedules: Mapping[str, ScheduleResults], window: Window | None = None) -> View:
    """One comparison of allocators, or several against each other; ``window`` is the time that is shown first."""
    rows = [
        {"schedules": name, **row} for name, schedule in schedules.items() for row in schedule.allocators.to_dicts()
    ]
    logs = dict.fromkeys(schedule.meta.log.split(".")[0] for schedule in schedules.values())
    ran = {name: schedule for name, schedule in schedules.items() if schedule.placed.height}
    jobs = jobs_of(ran) if ran else None
    return View(
        title=f"{', '.join(logs)}: schedules",
        headline="\n".join(lines_of(schedules, _headline)),
        facts=lines_of(schedules, _facts),
        parts=[
            *(_charts(ran, rows, jobs, window) if jobs is not None else []),
            *_tables(schedules, rows),
            *([_jobs(ran, jobs)] if jobs is not None else []),
        ],
        remarks=[*_explained(rows), *remarks_of(schedules, lambda schedule: schedule.meta.notes)],
        provenance={name: _provenance(schedule) for name, schedule in schedules.items()},
    )


def _headline(schedule: ScheduleResults) -> str:
    if schedule.placed.is_empty():
        return f"{schedule.meta.log}: no job ran"
    return f"{schedule.meta.log.split('.')[0]}: {_ends(schedule, 'mean_wait', 'mean wait', duration)}"


def _ends(schedule: ScheduleResults, key: str, what: str, form: Write) -> str:
    """The least and the greatest value of a metric, with their allocators."""
    rows = schedule.allocators.sort(key).select("allocator", key).rows()
    (least, low), (most, high) = rows[0], rows[-1]
    if form(low) == form(high):
        return f"{what} {form(high)}" if len(rows) > 1 else f"{what} {form(high)} under {most}"
    return f"{what} {form(low)} under {least} to {form(high)} under {most}"


def _facts(schedule: ScheduleResults) -> str:
    meta = schedule.meta
    model = f"slowdowns of the model {meta.model}" if meta.model else "run times of the log"
    facts = [str(meta.fabric.get("topology")), model, f"arrival-rate factor {meta.load:g}", f"seed {meta.seed}"]
    return f"{schedule.headline()}: {plural(schedule.allocators.height, 'allocator')} on {', '.join(facts)}"


def _provenance(schedule: ScheduleResults) -> dict[str, object]:
    meta = schedule.meta
    params = meta.fabric.get("params", {})
    fabric = [str(meta.fabric.get("topology")), *(f"{key} {value}" for key, value in params.items())]
    return {
        "folder": schedule.folder,
        "job log": meta.log,
        "SHA-256 of the log": meta.log_sha256,
        "fabric": ", ".join(fabric),
        "model of slowdowns": meta.model or "none: run times of the log",
        "arrival-rate factor": f"{meta.load:g}",
        "seed": meta.seed,
        "fairlane": meta.version,
        "digest of the tables": meta.digest,
    }


def _explained(rows: Sequence[Row]) -> Iterator[str]:
    yield (
        "Utilisation: share of the hosts' time, from the first submission to the last end, in which jobs had them. "
        f"Bounded slowdown: mean of (wait + time that a job ran) over the log's run time, of which at least {BOUND_S} "
        "s count. Fragmented: share of the hosts' time in which enough hosts were free for the head of the queue, but "
        "not in the shape that its allocator requires."
    )
    if _stretched(rows):
        yield (
            "Useful: the part of the utilisation that jobs would have needed with the log's run times. Run slowdown: "
            "time that a job ran over the log's run time. Lost to neighbours: share of the jobs' hosts' time."
        )


def _stretched(rows: Sequence[Row]) -> bool:
    """Whether run times are not those of the log."""
    return any(row["mean_slowdown"] != 1 for row in rows)


def _charts(
    ran: Mapping[str, ScheduleResults], rows: Sequence[Row], jobs: pl.DataFrame, window: Window | None
) -> Iterator[Chart]:
    """The charts of the schedules in which jobs ran."""
    used = f"{'; '.join(lines_of(ran, lambda schedule: _ends(schedule, 'utilisation', 'Utilisation', percent)))}."
    yield jobs_over_time(ran, jobs, used, window)
    yield _allocators([row for row in rows if row["schedules"] in ran], f"{'; '.join(lines_of(ran, _compared))}.")
    yield from machine_over_time(ran, used, f"{'; '.join(lines_of(ran, _fragmented))}.")
    measures = [*MEASURES] if _stretched(rows) else [*MEASURES][:-1]
    yield from distributions(jobs, measures)
    yield from sizes(jobs, measures)


def _allocators(rows: Sequence[Row], sentence: str) -> Chart:
    """A group of bars for each metric, each on a scale of its own; a row for each comparison and allocator."""
    names, which = ([*dict.fromkeys(row[key] for row in rows)] for key in ("allocator", "schedules"))
    every = metrics(rows)
    marks = [mark for column in every for mark in _bars(rows, column)]
    columns = [Column("allocator", "allocator"), Column("metric", "metric"), Column("value", "text")]
    base, tooltip = with_tooltip(marks, [*naming(which, "schedules"), *columns])
    order = [*dict.fromkeys(mark["series"] for mark in marks)]
    gaps = altair.Scale(paddingInner=0.2, paddingOuter=0.1)
    base = base.encode(
        x=altair.X("length:Q", axis=None, scale=altair.Scale(domain=[0, _ROOM], nice=False)),
        y=altair.Y("metric:N", sort=None, title=None, scale=gaps),
        yOffset=altair.YOffset("series:N", sort=order),
    )
    bars: Layer = base.mark_bar().encode(color=colour("allocator", names), opacity=faded(which), tooltip=tooltip)
    numbers = base.mark_text(style="text", align="left", dx=5).encode(text="text:N")
    note = "The longest bar of each metric has the greatest value; bars begin at zero, of slowdowns at one."
    spec = layers(len(every) * (14 * len(rows) + 10), bars, numbers, zoom=())
    return Chart("allocators", "Allocators compared", spec, sentence, f"{note}{paler(which)}", rows, wide=True)


def _bars(rows: Sequence[Row], column: Column) -> Iterator[Row]:
    """The bars of a metric."""
    key = str(column.value)
    least = 1.0 if "slowdown" in key else 0.0
    longest = max(row[key] for row in rows) - least
    title = " ".join(column.header.split()).replace("- ", "")
    for row in rows:
        shown = {"metric": title, "text": column.cell(row), "series": f"{row['allocator']} {row['schedules']}"}
        named = {name: row[name] for name in ("schedules", "allocator")}
        yield {**named, **shown, "length": max(0.0, (row[key] - least) / longest) if longest > 0 else 0.0}


def _compared(schedule: ScheduleResults) -> str:
    waits = _ends(schedule, "mean_wait", "Mean wait", duration)
    slowed = _stretched(schedule.allocators.to_dicts())
    return f"{waits}, {_ends(schedule, 'mean_slowdown', 'mean run slowdown', fixed(3))}" if slowed else waits


def _fragmented(schedule: ScheduleResults) -> str:
    if (schedule.allocators["fragmentation"] < 0.0005).all():
        return "No time is lost to free hosts in the wrong shape for the job at the head of the queue"
    return _ends(schedule, "fragmentation", "Fragmented", percent)


def metrics(rows: Sequence[Row]) -> list[Column]:
    """The columns of the metrics of allocators; what slowdowns do only where there are some."""
    stretched = _stretched(rows)
    useful = columns(percent, useful="useful")
    slowed = columns(fixed(3), mean_slowdown="run\nslowdown", weighted_slowdown="by hosts'\ntime")
    return [
        Column("makespan", "makespan", duration),
        Column("utilisation", "utilisation", percent),
        *(useful if stretched else []),
        *columns(duration, mean_wait="mean\nwait", median_wait="median\nwait"),
        Column("bounded\nslowdown", "mean_bounded_slowdown", fixed(2)),
        *([*slowed, Column("lost to\nneighbours", "interference", percent, drop=1)] if stretched else []),
        Column("fragmented", "fragmentation", percent, drop=2),
    ]


def _tables(schedules: Mapping[str, ScheduleResults], rows: Sequence[Row]) -> Iterator[Table]:
    which = naming(schedules, "schedules")
    counts = columns(str, jobs="jobs", refused="refused")
    shown = [*which, Column("allocator", "allocator", left=True), *counts, *metrics(rows)]
    refused = sum(row["refused"] for row in rows)
    refusals = f"{plural(refused, 'job')} refused by an allocator" if refused else "No job is refused"
    yield Table(shown, rows, "Allocators", sentence=f"{refusals}.", data=pl.DataFrame(rows))
    checked = [
        {"schedules": name, "count": 0, **row} for name, schedule in schedules.items() for row in schedule.meta.verified
    ]
    if checked:
        shown = [*which, *columns(allocator="allocator", snapshots="snapshots\nsimulated", count="jobs"), *ERRORS]
        note = "Snapshots of the schedules, simulated packet by packet. Bias: mean error with its sign."
        title = "Model of slowdowns against simulation"
        yield Table(shown, checked, title, note, sentence=_errors(checked), data=pl.DataFrame(checked))


def _jobs(ran: Mapping[str, ScheduleResults], jobs: pl.DataFrame) -> Table:
    """The jobs that wait longest, for pages, where one is chosen."""
    rows = jobs.sort("wait", descending=True, maintain_order=True).head(MOST_JOBS)
    rows = rows.with_columns(key=pl.col("job").cast(pl.String), ran=pl.col("end") - pl.col("start"))
    longest = greatest(jobs, "wait")
    longest_wait = f"Job {longest['job']} waits longest: {duration(longest['wait'])} under {longest['allocator']}."
    shown = [Column("job", "job", str), *naming(ran, "schedules"), Column("allocator", "allocator", left=True)]
    shown += columns(hosts="hosts", pattern="pattern")
    shown += columns(duration, submit="submitted\nafter", wait="wait", ran="ran", run="in the log")
    shown += columns(fixed(3), slowdown="run\nslowdown")
    title = "Jobs" if rows.height == jobs.height else f"The {MOST_JOBS} longest waits"
    return Table(shown, rows.to_dicts(), title, sentence=longest_wait, only_page=True, keyed=True, data=jobs)


def _errors(checked: Sequence[Row]) -> str:
    known = [row for row in checked if row.get("mean_error") is not None]
    if not known:
        return "No snapshot had a job with neighbours."
    worst = max(known, key=lambda row: row["mean_error"])
    worst_of = f"The mean error of predicted slowdowns is at most {percent(worst['mean_error'])} ({worst['allocator']})"
    return f"{worst_of}; {percent(worst['baseline_error'])} without a model."
