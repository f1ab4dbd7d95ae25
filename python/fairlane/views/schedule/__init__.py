"""Schedules of a job log under several allocators: jobs over time, waits, slowdowns, utilisation."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from fairlane.results.schedule import ScheduleResults
from fairlane.scheduler.compare import BOUND_S
from fairlane.views.model import Chart, View, lines_of, remarks_of
from fairlane.views.schedule.allocators import allocators_compared
from fairlane.views.schedule.gantt import jobs_over_time
from fairlane.views.schedule.jobs import distributions, sizes
from fairlane.views.schedule.load import machine_over_time
from fairlane.views.slowdown import ERRORS
from fairlane.views.tables import Column, Row, Table, Write, columns, fixed
from fairlane.wording import duration, percent, plural

Window = tuple[float, float]
"""Instants, s."""


def view(schedules: Mapping[str, ScheduleResults], window: Window | None = None) -> View:
    """One comparison of allocators, or several against each other; ``window`` is the time that is shown first."""
    rows = [{"schedules": name, **row} for name, one in schedules.items() for row in one.allocators.to_dicts()]
    logs = dict.fromkeys(one.meta.log.split(".")[0] for one in schedules.values())
    return View(
        title=f"{', '.join(logs)}: schedules",
        headline="\n".join(lines_of(schedules, _headline)),
        facts=lines_of(schedules, _facts),
        parts=[*_charts(schedules, rows, window), *_tables(schedules, rows)],
        remarks=[*_explained(rows), *remarks_of(schedules, lambda one: one.meta.notes)],
        provenance={name: _provenance(one) for name, one in schedules.items()},
    )


def _headline(one: ScheduleResults) -> str:
    if one.placed.is_empty():
        return f"{one.meta.log}: no job ran"
    return f"{one.meta.log.split('.')[0]}: {_ends(one, 'mean_wait', 'mean wait', duration)}"


def _ends(one: ScheduleResults, key: str, what: str, form: Write) -> str:
    """The least and the greatest value of a metric, with their allocators."""
    rows = one.allocators.sort(key).select("allocator", key).rows()
    (least, low), (most, high) = rows[0], rows[-1]
    if form(low) == form(high):
        return f"{what} {form(high)}" if len(rows) > 1 else f"{what} {form(high)} under {most}"
    return f"{what} {form(low)} under {least} to {form(high)} under {most}"


def _facts(one: ScheduleResults) -> str:
    meta = one.meta
    model = f"slowdowns of the model {meta.model}" if meta.model else "run times of the log"
    facts = [str(meta.fabric.get("topology")), model, f"arrival-rate factor {meta.load:g}", f"seed {meta.seed}"]
    return f"{one.headline()}: {plural(one.allocators.height, 'allocator')} on {', '.join(facts)}"


def _provenance(one: ScheduleResults) -> dict[str, object]:
    meta = one.meta
    params = meta.fabric.get("params", {})
    fabric = [str(meta.fabric.get("topology")), *(f"{key} {value}" for key, value in params.items())]
    return {
        "folder": one.folder,
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


def _charts(schedules: Mapping[str, ScheduleResults], rows: Sequence[Row], window: Window | None) -> Iterator[Chart]:
    ran = {name: one for name, one in schedules.items() if one.placed.height}
    if not ran:
        return
    used = f"{'; '.join(lines_of(ran, lambda one: _ends(one, 'utilisation', 'Utilisation', percent)))}."
    yield jobs_over_time(ran, used, window)
    sentence = f"{'; '.join(lines_of(ran, _compared))}."
    yield allocators_compared([row for row in rows if row["schedules"] in ran], metrics(rows), sentence)
    yield from machine_over_time(ran, used, f"{'; '.join(lines_of(ran, _fragmented))}.")
    yield from distributions(ran, stretched=_stretched(rows))
    yield from sizes(ran, stretched=_stretched(rows))


def _compared(one: ScheduleResults) -> str:
    words = _ends(one, "mean_wait", "Mean wait", duration)
    slowed = _stretched(one.allocators.to_dicts())
    return f"{words}, {_ends(one, 'mean_slowdown', 'mean run slowdown', fixed(3))}" if slowed else words


def _fragmented(one: ScheduleResults) -> str:
    if (one.allocators["fragmentation"] < 0.0005).all():
        return "No time is lost to free hosts in the wrong shape for the job at the head of the queue"
    return _ends(one, "fragmentation", "Fragmented", percent)


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
    which = [Column("schedules", "schedules")] if len(schedules) > 1 else []
    counts = columns(str, jobs="jobs", refused="refused")
    shown = [*which, Column("allocator", "allocator", left=True), *counts, *metrics(rows)]
    refused = sum(row["refused"] for row in rows)
    words = f"{plural(refused, 'job')} refused by an allocator" if refused else "No job is refused"
    yield Table(shown, rows, "Allocators", sentence=f"{words}.", data=pl.DataFrame(rows))
    checked = [{"schedules": name, "count": 0, **row} for name, one in schedules.items() for row in one.meta.verified]
    if checked:
        shown = [*which, *columns(allocator="allocator", snapshots="snapshots\nsimulated", count="jobs"), *ERRORS]
        note = "Snapshots of the schedules, simulated packet by packet. Bias: mean error with its sign."
        title = "Model of slowdowns against simulation"
        yield Table(shown, checked, title, note, sentence=_errors(checked), data=pl.DataFrame(checked))


def _errors(checked: Sequence[Row]) -> str:
    known = [row for row in checked if row.get("mean_error") is not None]
    if not known:
        return "No snapshot had a job with neighbours."
    worst = max(known, key=lambda row: row["mean_error"])
    words = f"The mean error of predicted slowdowns is at most {percent(worst['mean_error'])} ({worst['allocator']})"
    return f"{words}; {percent(worst['baseline_error'])} without a model."
