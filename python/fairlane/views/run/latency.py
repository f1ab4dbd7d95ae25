"""Latencies of messages: mean and quantiles of each job with their intervals, and their distribution."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair
import numpy as np
import polars as pl

from fairlane.engine.tables import PS
from fairlane.results.latency import BUCKET_WIDTH
from fairlane.results.run import Run
from fairlane.statistics import COVERAGE
from fairlane.views.charts import Axis, Layer, chart, described, layers, legend_of, whiskers
from fairlane.views.model import Chart, sentences_of
from fairlane.views.rows import Rows
from fairlane.views.run.series import CHOSEN, JOB, MOST_LINES, Series, chosen, highlighted
from fairlane.views.tables import Column, Row, Table, count, time_ps, with_interval
from fairlane.wording import amount, percent, plural, seconds

MARKS = {"mean": "mean", "p50": "50%", "p99": "99%", "p999": "99.9%"}
"""What is shown, by column."""
SHAPES = ("diamond", "circle", "square", "triangle-up")
MOST_ROWS = 40
"""With more jobs, rows are workloads; of more workloads, those with the longest tails are shown."""
PER_OCTAVE = 8
"""Buckets of the distribution between any two successive powers of two: 32 of the table's buckets each."""
MOST_STEPS = 6000
"""Steps of all lines of the distribution; of more jobs, those with the longest tails have a line."""
_ALL = "all jobs"


def charts(series: Series) -> Iterator[Chart]:
    """The latencies by job, and their distribution."""
    level = "job" if max(run.jobs.height for run in series.runs.values()) <= MOST_ROWS else "workload"
    tables = {name: _messages(run, level) for name, run in series.runs.items()}
    known = {name: table for name, table in tables.items() if table is not None}
    if not known:
        return
    every = pl.concat([table.select("label", "p99_ps") for table in known.values()])
    longest = every.group_by("label", maintain_order=True).agg(pl.col("p99_ps").max()).top_k(MOST_ROWS, by="p99_ps")
    kept = set(longest["label"])
    names = [name for name in every["label"].unique(maintain_order=True) if name in kept]
    places = Rows(names, len(series.runs) if series.several else len(MARKS))
    rows = [row for name, table in known.items() for row in _rows(series, name, table, places)]
    left = every["label"].n_unique() - len(names)
    note = (
        f"From the send call to the delivery of the last byte. Whiskers: {COVERAGE:.0%} intervals over simulated time."
    )
    note += f" The {plural(left, 'workload')} with the shortest tails (99%) are not shown." if left else ""
    yield Chart(
        "latency",
        "Message latency",
        layers(places.height, *_latency(series, rows, places), zoom=("x",)),
        sentences_of({name: series.runs[name] for name in known}, lambda run: longest_tail(run, level)),
        note + series.below(),
        [{key: value for key, value in row.items() if key not in _PLACES} for row in rows],
        picture="latency",
    )
    yield from _distributions(series)


_PLACES = ("at", "top", "bottom", "series")


def _messages(run: Run, level: str) -> pl.DataFrame | None:
    if run.latency_merged is None:
        return None
    found = run.latency_merged.filter(pl.col("of") == "message", pl.col("level") == level, pl.col("count") > 0)
    return None if found.is_empty() else found


def longest_tail(run: Run, level: str) -> str:
    """The row with the greatest 99% quantile."""
    messages = _messages(run, level)
    assert messages is not None, "invariant: there are messages"
    worst = messages.sort("p99_ps", "label").row(-1, named=True)
    value, low, high = (worst[name] for name in ("p99_ps", "p99_low_ps", "p99_high_ps"))
    tail = amount(value, low, high, time_ps, resolution=BUCKET_WIDTH)
    return f"{worst['label']} has the longest tail: 99% within {tail}"


def _rows(series: Series, run: str, table: pl.DataFrame, places: Rows) -> Iterator[dict[str, Any]]:
    """A row for each label and mark, values in seconds. In place of an interval that reaches zero: the range."""
    for row in table.iter_rows(named=True):
        if row["label"] not in places.names:
            continue
        for at, key in enumerate(MARKS):
            value, low, high = (row[f"{key}{end}_ps"] for end in ("", "_low", "_high"))
            made = series.row(run, row["label"], mark=MARKS[key], count=row["count"], value=value * PS)
            if key == "mean":
                made |= {f"value_{name}": row[f"{of}_ps"] * PS for name, of in _SPREAD.items()}
            made |= {"value_low": None if low is None else low * PS, "value_high": None if high is None else high * PS}
            reaches = key == "mean" and low is not None and low <= 0
            drawn = {
                "shown": made["value_median"] if reaches else made["value"],
                "low": made["value_min"] if reaches else made["value_low"],
                "high": made["value_max"] if reaches else made["value_high"],
            }
            yield places.place(made | drawn, row["label"], series.number(run) if series.several else at)


_SPREAD = {"median": "p50", "min": "min", "max": "max"}


def _latency(series: Series, rows: Sequence[Row], places: Rows) -> Iterator[Layer]:
    values = (row[key] for row in rows for key in ("shown", "low", "high"))
    axis = Axis.of((value for value in values if value), "Latency of messages", "time")
    columns = [
        *series.run_column,
        Column("of", "job"),
        Column("", "mark"),
        Column("latency", with_interval("value", seconds)),
        Column("messages", "count", count),
    ]
    told, tooltip = described(rows, columns)
    marks = list(MARKS.values())
    legend = legend_of(marks)
    shape = altair.Shape("mark:N", scale=altair.Scale(domain=marks, range=list(SHAPES)), legend=legend)
    by_mark = altair.Color("mark:N", scale=altair.Scale(domain=marks), legend=legend)
    colour = series.colour(rows) if series.several else by_mark
    base = chart(told)
    yield whiskers(base, axis, "low", "high", vertical=False, y=places.y("at"), color=colour)
    points = base.mark_point(size=55).encode(
        x=axis.x("shown"), y=places.y("at"), color=colour, shape=shape, tooltip=tooltip, opacity=highlighted(0.25)
    )
    yield points.add_params(chosen())


def _distributions(series: Series) -> Iterator[Chart]:
    """The share of messages whose latency is above a value."""
    known = {
        name: run
        for name, run in series.runs.items()
        if run.latency_histogram is not None and not run.latency_histogram.filter(of="message").is_empty()
    }
    rows = [row for name, run in known.items() for row in _steps(series, name, run)]
    if not rows:
        return
    axis = Axis.of((row["latency"] for row in rows), "Latency of messages", "time", scale="log")
    share = Axis.of((row["share"] for row in rows), "Share of messages above", "share", scale="log")
    told, tooltip = described(
        rows,
        [*series.run_column, JOB, Column("above", "latency", seconds), Column("share of messages", "share", percent)],
    )
    base = chart(told).transform_filter(f"datum.job == '{_ALL}' || (length(chosen) ? {CHOSEN} : datum.first)")
    jobs = base.transform_filter(f"datum.job != '{_ALL}'")
    whole = base.transform_filter(f"datum.job == '{_ALL}'")
    encoding: dict[str, Any] = {
        "x": axis.x("latency"),
        "y": share.y("share"),
        "detail": ["run:N", "job:N"],
        "tooltip": tooltip,
    }
    colour = series.colour([row for row in rows if row["job"] != _ALL])
    lines = jobs.mark_line(interpolate="step-after", strokeWidth=1.2, opacity=0.8).encode(**encoding, color=colour)
    style = {"color": colour} if series.several else {}
    look: dict[str, Any] = {} if series.several else {"style": "ink"}
    total = whole.mark_line(interpolate="step-after", strokeWidth=2.6, **look)
    jobs_ = len({(row["run"], row["job"]) for row in rows if row["job"] != _ALL})
    most = (
        f"; of {jobs_} the {MOST_LINES} with the longest tails, or those that are chosen" if jobs_ > MOST_LINES else ""
    )
    thin = "" if series.several else f" Thin lines: jobs{most}."
    yield Chart(
        "histogram",
        "Distribution of message latency",
        layers(260, lines, total.encode(**encoding, **style).add_params(chosen())),
        sentences_of(known, _half),
        f"The share of messages whose latency is above the value; both axes are logarithmic. Thick: all jobs.{thin}",
        [{key: row[key] for key in ("run", "job", "latency", "share")} for row in rows],
        picture="latency",
    )


def _steps(series: Series, run: str, found: Run) -> Iterator[dict[str, Any]]:
    """The steps of all jobs together, and of one run those of each job, longest tails first."""
    assert found.latency_histogram is not None, "invariant: there is one"
    low = found.latency_histogram["low_ps"].cast(pl.Float64).clip(1)
    octave = low.log(2).floor()
    bucket = (octave * PER_OCTAVE + ((low / 2.0**octave - 1) * PER_OCTAVE).floor()).cast(pl.Int64)
    merged = (
        found.latency_histogram.with_columns(bucket=bucket)
        .filter(of="message")
        .group_by("name", "bucket")
        .agg(pl.col("count").sum())
        .sort("name", "bucket")
    )
    whole = merged.group_by("bucket").agg(pl.col("count").sum()).sort("bucket")
    yield from _line(series.row(run, _ALL, first=True), whole)
    if series.several:
        return
    groups = {str(name): group for (name,), group in merged.group_by("name", maintain_order=True)}
    steps = 0
    for at, (name, group) in enumerate(sorted(groups.items(), key=lambda item: -_tail(item[1]))):
        steps += group.height
        if steps > MOST_STEPS:
            return
        yield from _line(series.row(run, name, first=at < MOST_LINES), group)


def _tail(group: pl.DataFrame) -> int:
    above = group.filter(pl.col("count").cum_sum() >= 0.99 * pl.col("count").sum())
    return int(above["bucket"][0])


def _line(row: dict[str, Any], group: pl.DataFrame) -> Iterator[dict[str, Any]]:
    at = group["bucket"].to_numpy() + 1
    bounds = 2.0 ** (at // PER_OCTAVE) * (1 + at % PER_OCTAVE / PER_OCTAVE) * PS
    counts = group["count"].to_numpy()
    above = 1 - np.cumsum(counts) / counts.sum()
    least = 0.5 / counts.sum()
    for bound, share in zip(bounds, above, strict=True):
        if share > least:
            yield {**row, "latency": float(f"{bound:.5g}"), "share": float(f"{share:.4g}")}


def _half(run: Run) -> str:
    assert run.latency_histogram is not None, "invariant: there is one"
    counts = run.latency_histogram.filter(of="message").group_by("high_ps").agg(pl.col("count").sum()).sort("high_ps")
    total = int(counts["count"].sum())
    shares = counts.with_columns(share=pl.col("count").cum_sum() / total)
    half, most = (shares.filter(pl.col("share") >= at)["high_ps"][0] * PS for at in (0.5, 0.99))
    return f"Of {plural(total, 'message')}, half take at most {seconds(half)} and 99% at most {seconds(most)}"


def by_kind(series: Series) -> Iterator[Table]:
    """The latencies of each job and traffic kind, for pages."""
    frames = [
        run.latency.select(pl.lit(name).alias("run"), pl.all())
        for name, run in series.runs.items()
        if run.latency is not None and run.latency.height
    ]
    if not frames:
        return
    table = pl.concat(frames)
    rows = table.rename(
        lambda name: name.removesuffix("_ps") if "_low" not in name and "_high" not in name else name.replace("_ps", "")
    ).to_dicts()
    quantiles = {"p50": "50%", "p90": "90%", "p99": "99%", "p999": "99.9%"}
    shown = [
        *series.run_column,
        Column("job", "name", left=True),
        Column("kind", "kind", left=True),
        Column("of", "of", left=True),
        Column("count", "count", count),
        Column("mean", with_interval("mean", time_ps)),
        *(Column(heading, with_interval(key, time_ps, resolution=BUCKET_WIDTH)) for key, heading in quantiles.items()),
        Column("max", "max", time_ps),
    ]
    kinds = table["kind"].n_unique()
    yield Table(
        shown,
        rows,
        "Latency by job and kind of traffic",
        note=f"±: {COVERAGE:.0%} intervals over simulated time.",
        sentence=f"Messages and packets of {plural(kinds, 'kind')} of traffic.",
        only_page=True,
        data=table,
    )
