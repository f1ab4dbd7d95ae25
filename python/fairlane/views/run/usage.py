"""What jobs spend: time in MPI calls and in waits, and power."""

from collections.abc import Iterator
from typing import Any

import altair
import numpy as np
import polars as pl

from fairlane.engine.tables import PS
from fairlane.power import by_job
from fairlane.results.run import Run
from fairlane.views.charts import Axis, Layer, chart, described, layers, legend_of
from fairlane.views.model import Chart, sentences_of
from fairlane.views.rows import Rows, bars, box_numbers, boxes, dots, spread, thinned
from fairlane.views.run.series import JOB, WORKLOAD, Series, chosen, highlighted
from fairlane.views.tables import Column, fixed
from fairlane.wording import percent, plural

MOST_JOBS = 60
"""Jobs that have a row in these charts: those that compute least, or run slowest."""
_BY = {"calls": "MPI breakdown", "waits": "Waits in MPI calls by cause"}


def charts(series: Series) -> Iterator[Chart]:
    """The breakdown of time, and power."""
    yield from _calls(series)
    yield from _power(series)


def _calls(series: Series) -> Iterator[Chart]:
    known = {name: run for name, run in series.runs.items() if not run.calls.is_empty() and _rank_time(run).sum() > 0}
    if not known:
        return
    jobs = _most(known, MOST_JOBS)
    places = series.places(jobs)
    left = len(series.workloads) - len(places.names)
    few = f" The {plural(left, 'job')} that compute most are not shown." if left > 0 else ""
    every = [row for name, run in known.items() for row in _parts(series, name, run, places)]
    sentences = {"calls": _most_time, "waits": _waits}
    for by, title in _BY.items():
        rows = [row for row in every if row["by"] == by]
        parts = list(dict.fromkeys(row["part"] for row in rows))
        axis = Axis.of([0.0, 1.0, *(row["end"] for row in rows)], "Share of the time of ranks", "share", scale="linear")
        columns = [*series.run_column, JOB, WORKLOAD, Column("part", "part"), Column("share", "share", percent)]
        told, tooltip = described(rows, columns)
        colour = altair.Color("part:N", scale=altair.Scale(domain=parts), legend=legend_of(parts))
        bar = bars(told, axis, places, "begin", "end", color=colour, tooltip=tooltip, opacity=highlighted())
        yield Chart(
            by,
            title,
            layers(places.height, bar.add_params(chosen()), zoom=("x",)),
            sentences_of(known, sentences[by]),
            f"Shares of the time of a job's ranks. MPI calls that were in progress at the end are in no share."
            f"{few}{series.below()}",
            [{key: row[key] for key in ("run", "job", "part", "share")} for row in rows],
            picture="calls",
        )


def _most(runs: dict[str, Run], most: int) -> list[str]:
    every = pl.concat([run.jobs.select("name", pl.col("compute_share").fill_null(0.0)) for run in runs.values()])
    sums = every.group_by("name", maintain_order=True).agg(pl.col("compute_share").mean())
    return sums.sort("compute_share", "name").head(most)["name"].to_list()


def _rank_time(run: Run) -> pl.Series:
    return run.jobs["ranks"].cast(pl.Float64) * run.jobs["span_ps"].cast(pl.Float64) * PS


def _parts(series: Series, name: str, run: Run, places: Rows) -> Iterator[dict[str, Any]]:
    """The parts of each job's time, one after the other: by call, and by cause."""
    time = dict(zip(run.jobs["name"], _rank_time(run), strict=True))
    calls = run.calls.group_by("call").agg(pl.col("time_s").sum()).filter(pl.col("time_s") > 0)
    order = calls.sort("time_s", "call", descending=[True, False])["call"].to_list()
    by_call = {(job, call): spent for job, call, spent in run.calls.select("name", "call", "time_s").iter_rows()}
    sums = run.ranks.group_by("name").agg(pl.col("late_partner_ps", "network_ps").sum())
    waits = {job: (late * PS, network * PS) for job, late, network in sums.iter_rows()}
    shares = run.jobs.select("name", "compute_share", "communication_share").fill_null(0.0)
    for job, compute, communication in shares.iter_rows():
        if job not in places.names or not time[job]:
            continue
        late, network = (spent / time[job] for spent in waits.get(job, (0.0, 0.0)))
        rest = max(0.0, communication - late - network)
        every = {
            "calls": {"compute": compute, **{call: by_call.get((job, call), 0.0) / time[job] for call in order}},
            "waits": {"compute": compute, "late sender or receiver": late, "network": network, "other MPI time": rest},
        }
        for by, parts in every.items():
            ends = np.cumsum(list(parts.values())).tolist()
            for (part, share), end in zip(parts.items(), ends, strict=True):
                values = {"by": by, "part": part, "share": share, "begin": end - share, "end": end}
                yield places.place(series.row(name, job, **values), job, series.number(name))


def _most_time(run: Run) -> str:
    time = _rank_time(run)
    compute = float((run.jobs["compute_share"].fill_null(0.0) * time).sum()) / float(time.sum())
    most = run.calls.group_by("call").agg(pl.col("time_s").sum()).sort("time_s", "call").row(-1, named=True)
    share = percent(most["time_s"] / float(time.sum()))
    return f"Ranks compute for {percent(compute)} of their time; the MPI call with most time is {most['call']}: {share}"


def _waits(run: Run) -> str:
    total = float(_rank_time(run).sum())
    late, network = (
        float(run.ranks[f"{name}_ps"].cast(pl.Float64).sum()) * PS / total for name in ("late_partner", "network")
    )
    return f"Ranks wait {percent(late)} of their time for late senders or receivers, {percent(network)} for the network"


def _power(series: Series) -> Iterator[Chart]:
    known = {name: run for name, run in series.runs.items() if run.power is not None and run.power.height}
    if not known:
        return
    slowest = pl.concat([by_job(run.power).select("name", "least_frequency") for run in known.values()])  # type: ignore[arg-type]
    jobs = slowest.sort("least_frequency", maintain_order=True)["name"].unique(maintain_order=True).head(MOST_JOBS)
    places = series.places(jobs.to_list())
    caps = {row["name"]: row["cap_w"] for run in known.values() for row in by_job(run.power).iter_rows(named=True)}  # type: ignore[arg-type]
    labels = [[name, "no cap" if caps[name] is None else f"{caps[name]:g} W"] for name in places.names]
    places = Rows(places.names, places.series, labels)
    rows = [row for name, run in known.items() for row in _by_job(name, run)]
    boxes = "A dot is a socket; boxes: quartiles and median, whiskers: the slowest and the fastest."
    drawn = "Mean power of each socket. Red lines: the cap."
    for name, title, of, said, note in (
        ("power", "Frequency of sockets", "frequency_share", _slowest, boxes),
        ("power-drawn", "Power of sockets", "mean_w", _together, drawn),
    ):
        chart = layers(places.height, *_sockets(series, known, places, of), zoom=("x",))
        yield Chart(name, title, chart, sentences_of(known, said), f"{note}{series.below()}", rows, picture="power")


def _by_job(name: str, run: Run) -> Iterator[dict[str, Any]]:
    assert run.power is not None, "invariant: it is known"
    rows = run.power.group_by("name", maintain_order=True).agg(
        pl.len().alias("sockets"),
        pl.col("mean_w").mean(),
        pl.col("mean_w").min().alias("min_w"),
        pl.col("mean_w").max().alias("max_w"),
        pl.col("cap_w").max(),
        pl.col("energy_j").sum(),
        pl.col("frequency_share").mean(),
        pl.col("frequency_share").min().alias("min_frequency_share"),
    )
    yield from ({"run": name, "job": row.pop("name"), **row} for row in rows.iter_rows(named=True))


def _sockets(series: Series, runs: dict[str, Run], places: Rows, key: str) -> Iterator[Layer]:
    boxed, points, caps = [], [], []
    for name, run in runs.items():
        assert run.power is not None, "invariant: it is known"
        number = series.number(name)
        for job in places.names:
            found = run.power.filter(name=job)
            if found.is_empty():
                continue
            values = found[key].to_numpy()
            boxed.append(places.place(series.row(name, job, **box_numbers(values, (0, 100))), job, number))
            some = thinned(values)
            shift = spread(some.size, 0.7 * places.reach)
            at = places.at(job, number)
            points += [
                series.row(name, job, value=float(value), at=at + off) for value, off in zip(some, shift, strict=True)
            ]
            cap = found["cap_w"][0]
            caps += [] if cap is None else [places.place({"cap": cap}, job, number)]
    is_power = key == "mean_w"
    shown = [row["value"] for row in points] + [row["cap"] for row in caps if is_power]
    title = "Mean power of a socket [W]" if is_power else "Frequency of a socket, as a share of the full one"
    axis = Axis.of(shown, title, "number" if is_power else "share", scale="linear", zero=is_power)
    form = fixed(1, " W") if is_power else percent
    told, tooltip = described(points, [*series.run_column, JOB, Column("socket", "value", form)])
    colour = series.colour(points, named=True)
    yield boxes(boxed, axis, places, color=colour)
    if is_power and caps:
        line = chart(caps).mark_rule(strokeWidth=2.4, color="#c91f16")
        yield line.encode(x=axis.x("cap"), y=places.y("top"), y2="bottom:Q")
    yield dots(told, axis, places, "value", color=colour, tooltip=tooltip, opacity=highlighted(0.1, 0.8)).add_params(
        chosen()
    )


def _slowest(run: Run) -> str:
    assert run.power is not None, "invariant: it is known"
    slowest = by_job(run.power).sort("least_frequency", "name").row(0, named=True)
    if (share := slowest["least_frequency"]) < 1:
        return f"{slowest['name']}: at {slowest['cap_w']:g} W its slowest socket runs at {share:.0%} of its frequency"
    return "No socket is slowed down by its cap"


def _together(run: Run) -> str:
    assert run.power is not None, "invariant: it is known"
    return f"{plural(run.power.height, 'socket')} take {float(run.power['mean_w'].sum()):,.0f} W together"
