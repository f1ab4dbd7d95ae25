"""Latencies of messages: mean and quantiles of each job with their intervals, and their distribution."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import altair
import polars as pl

from fairlane.core.statistics import COVERAGE
from fairlane.core.tables import PS
from fairlane.core.wording import amount, percent, plural, seconds
from fairlane.results.latency import BUCKET_WIDTH
from fairlane.results.run import Run
from fairlane.views.charts import Axis, Layer, chart, described, drawing, legend_of, picked, whiskers
from fairlane.views.model import Chart, sentences_of, together
from fairlane.views.rows import Rows
from fairlane.views.run.series import BY_JOB, CHOSEN, JOB, MOST_LINES, Series, chosen, highlighted
from fairlane.views.tables import Column, Row, Table, count, time_ps, with_interval

PICTURES = {"latency": "latencies of messages: quantiles by job, and their distribution"}
"""Its pictures, and what they show."""
MARKS = {"mean": "mean", "p50": "50%", "p99": "99%", "p999": "99.9%"}
"""Measures that are shown, by column."""
SHAPES = ("diamond", "circle", "square", "triangle-up")
MOST_ROWS = 40
"""With more jobs, rows are workloads; of more workloads, those with the longest tails are shown."""
MOST_NAMES = 12
"""With more jobs than this the table has a row for each workload."""
PER_OCTAVE = 8
"""Buckets of the distribution between any two successive powers of two: 32 of the table's buckets each."""
MOST_STEPS = 6000
"""Steps of all lines of the distribution; of more jobs, those with the longest tails have a line."""
ABOUT = "±: 95% interval over simulated time. Messages: from the send call to the last byte"
_ALL = "all jobs"


def charts(series: Series) -> Iterator[Chart]:
    """The latencies by job, and their distribution."""
    level = "job" if max(run.jobs.height for run in series.runs.values()) <= MOST_ROWS else "workload"
    known = series.having(lambda run: _messages(run, level).height)
    if not known:
        return
    every = together(known, "run", lambda run: _messages(run, level))
    longest = every.group_by("label", maintain_order=True).agg(pl.col("p99_ps").max()).top_k(MOST_ROWS, by="p99_ps")
    shown = every.filter(pl.col("label").is_in(longest["label"].implode()))
    names = shown["label"].unique(maintain_order=True).to_list()
    places = Rows(names, len(series.runs) if series.several else len(MARKS))
    rows = [row for of in shown.iter_rows(named=True) for row in _rows(series, of, places)]
    left = every["label"].n_unique() - len(names)
    note = (
        f"From the send call to the delivery of the last byte. Whiskers: {COVERAGE:.0%} intervals over simulated time."
    )
    note += f" The {plural(left, 'workload')} with the shortest tails (99%) are not shown." if left else ""
    internal = ("at", "top", "bottom", "series")
    yield Chart(
        "latency",
        "Message latency",
        drawing(places.height, _latency(series, rows, places), zoom=("x",)),
        sentences_of(known, lambda run: longest_tail(run, level)),
        note + series.below(),
        [{key: value for key, value in row.items() if key not in internal} for row in rows],
        picture="latency",
    )
    yield from _distributions(series)


def _messages(run: Run, level: str) -> pl.DataFrame:
    """The latencies of messages by job or workload; no rows if they are not known."""
    if run.latency_merged is None:
        return pl.DataFrame()
    return run.latency_merged.filter(pl.col("of") == "message", pl.col("level") == level, pl.col("count") > 0)


def longest_tail(run: Run, level: str) -> str:
    """The row with the greatest 99% quantile."""
    worst = _messages(run, level).sort("p99_ps", "label").row(-1, named=True)
    value, low, high = (worst[name] for name in ("p99_ps", "p99_low_ps", "p99_high_ps"))
    tail = amount(value, low, high, time_ps, resolution=BUCKET_WIDTH)
    return f"{worst['label']} has the longest tail: 99% within {tail}"


def _rows(series: Series, of: Row, places: Rows) -> Iterator[dict[str, Any]]:
    """A row for each mark of a label, values in seconds. In place of an interval that reaches zero: the range."""

    def time(key: str) -> float | None:
        return None if of[f"{key}_ps"] is None else of[f"{key}_ps"] * PS

    number = series.number(of["run"])
    for at, (key, mark) in enumerate(MARKS.items()):
        value, low, high = ends = time(key), time(f"{key}_low"), time(f"{key}_high")
        row = series.row(of["run"], of["label"], mark=mark, count=of["count"], value=value)
        if key == "mean":
            middle, least, most = range_ = time("p50"), time("min"), time("max")
            row |= {"value_median": middle, "value_min": least, "value_max": most}
            ends = range_ if low is not None and low <= 0 else ends
        row |= {"value_low": low, "value_high": high, **dict(zip(("shown", "low", "high"), ends, strict=True))}
        yield places.place(row, of["label"], number if series.several else at)


def _latency(series: Series, rows: Sequence[Row], places: Rows) -> Iterator[Layer]:
    values = (row[key] for row in rows for key in ("shown", "low", "high"))
    axis = Axis.of((value for value in values if value), "Latency of messages", "time")
    told = [*series.run_column, Column("of", "job"), Column("", "mark")]
    told += [Column("latency", with_interval("value", seconds)), Column("messages", "count", count)]
    shown, tooltip = described(rows, told)
    marks = list(MARKS.values())
    legend = legend_of(marks)
    shape = altair.Shape("mark:N", scale=altair.Scale(domain=marks, range=list(SHAPES)), legend=legend)
    by_mark = altair.Color("mark:N", scale=altair.Scale(domain=marks), legend=legend)
    colour = series.colour(rows) if series.several else by_mark
    base = chart(shown)
    yield whiskers(base, axis, "low", "high", vertical=False, y=places.y("at"), color=colour)
    points = base.mark_point(size=55).encode(
        x=axis.x("shown"), y=places.y("at"), color=colour, shape=shape, tooltip=tooltip, opacity=highlighted(0.25)
    )
    yield points.add_params(chosen())


def _distributions(series: Series) -> Iterator[Chart]:
    """The share of messages whose latency is above a value."""
    known = series.having(lambda run: _histogram(run).height)
    rows = [row for name, run in known.items() for row in _steps(series, name, run)]
    if not rows:
        return
    jobs = len({(row["run"], row["job"]) for row in rows if row["job"] != _ALL})
    most = f"; of {jobs} the {MOST_LINES} with the longest tails, or those that are chosen" if jobs > MOST_LINES else ""
    thin = "" if series.several else f" Thin lines: jobs{most}."
    yield Chart(
        "histogram",
        "Distribution of message latency",
        drawing(260, _distribution(series, rows)),
        sentences_of(known, _half),
        f"The share of messages whose latency is above the value; both axes are logarithmic. Thick: all jobs.{thin}",
        picked(rows, "run job latency share"),
        picture="latency",
    )


def _distribution(series: Series, rows: Sequence[Row]) -> Iterator[Layer]:
    axis = Axis.over(rows, "latency", "Latency of messages", "time", scale="log")
    share = Axis.over(rows, "share", "Share of messages above", "share", scale="log")
    told = [Column("above", "latency", seconds), Column("share of messages", "share", percent)]
    shown, tooltip = described(rows, [*series.run_column, JOB, *told])
    base = chart(shown).transform_filter(f"datum.job == '{_ALL}' || (length(chosen) ? {CHOSEN} : datum.first)")
    base = base.encode(x=axis.x("latency"), y=share.y("share"), detail=BY_JOB, tooltip=tooltip)
    jobs, whole = (base.transform_filter(f"datum.job {of} '{_ALL}'") for of in ("!=", "=="))
    colour = series.colour([row for row in rows if row["job"] != _ALL])
    yield jobs.mark_line(interpolate="step-after", strokeWidth=1.2, opacity=0.8).encode(color=colour)
    look: dict[str, Any] = {} if series.several else {"style": "ink"}
    total = whole.mark_line(interpolate="step-after", strokeWidth=2.6, **look).add_params(chosen())
    yield total.encode(color=colour) if series.several else total


def _histogram(run: Run) -> pl.DataFrame:
    """The messages of each job by latency; no rows if they are not known."""
    return pl.DataFrame() if run.latency_histogram is None else run.latency_histogram.filter(of="message")


def _steps(series: Series, run: str, results: Run) -> Iterator[dict[str, Any]]:
    """The steps of all jobs together, and of one run those of each job, longest tails first."""
    low = pl.col("low_ps").cast(pl.Float64).clip(1)
    octave = low.log(2).floor()
    bucket = (octave * PER_OCTAVE + ((low / 2.0**octave - 1) * PER_OCTAVE).floor()).cast(pl.Int64)
    counted = _histogram(results).group_by("name", bucket=bucket).agg(pl.col("count").sum()).sort("name", "bucket")
    whole = counted.group_by("bucket").agg(pl.col("count").sum()).sort("bucket")
    yield from _line(series.row(run, _ALL, first=True), whole)
    if series.several:
        return
    above = pl.col("count").cum_sum() >= 0.99 * pl.col("count").sum()
    jobs = counted.group_by("name").agg(tail=pl.col("bucket").filter(above).first(), steps=pl.len())
    kept = jobs.sort("tail", "name", descending=[True, False]).filter(pl.col("steps").cum_sum() <= MOST_STEPS)
    for at, name in enumerate(kept["name"]):
        yield from _line(series.row(run, name, first=at < MOST_LINES), counted.filter(name=name))


def _line(row: dict[str, Any], group: pl.DataFrame) -> Iterator[dict[str, Any]]:
    upper, total = pl.col("bucket") + 1, pl.col("count").sum()
    bound = 2.0 ** (upper // PER_OCTAVE).cast(pl.Float64) * (1 + upper % PER_OCTAVE / PER_OCTAVE) * PS
    share = 1 - pl.col("count").cum_sum() / total
    steps = group.select(latency=bound.round_sig_figs(5), share=share, least=0.5 / total)
    shown = steps.filter(pl.col("share") > pl.col("least")).select("latency", pl.col("share").round_sig_figs(4))
    yield from ({**row, **step} for step in shown.iter_rows(named=True))


def _half(run: Run) -> str:
    counts = _histogram(run).group_by("high_ps").agg(pl.col("count").sum()).sort("high_ps")
    total = int(counts["count"].sum())
    shares = counts.with_columns(share=pl.col("count").cum_sum() / total)
    half, most = (shares.filter(pl.col("share") >= at)["high_ps"][0] * PS for at in (0.5, 0.99))
    return f"Of {plural(total, 'message')}, half take at most {seconds(half)} and 99% at most {seconds(most)}"


def tables(series: Series) -> Iterator[Table]:
    """A row per job (or workload), and one per traffic kind where there are several; without packets where narrow.

    Half the width of an interval is below its value: so there is room for those of all columns.
    """
    for name, run in series.runs.items():
        merged = run.latency_merged
        if merged is None or not merged.height:
            continue
        level = "workload" if run.jobs.height > MOST_NAMES else "job"
        names = run.jobs["workload" if level == "workload" else "name"].unique(maintain_order=True)
        latencies = merged.rename(lambda name: name.removesuffix("_ps"))
        kinds = latencies.filter(pl.col("level") == "kind")["label"].unique().sort()
        rows: list[Row | None] = _table_rows(latencies, level, names)
        if len(kinds) > 1:
            rows += [None, *_table_rows(latencies, "kind", kinds)]
        messages = int(merged.filter(of="message", level="job")["count"].sum())
        title = f"{name}: latency" if series.several else "Latency"
        yield Table(_columns(level), rows, title, sparse=True, sentence=f"{messages:,} messages.")


def _columns(level: str) -> Sequence[Column]:
    packets = partial(Column, drop=1)
    return [
        Column(level, "label"),
        Column("messages", "message_count", count, note=ABOUT),
        *(Column(heading, _written(f"message_{key}")) for key, heading in MARKS.items()),
        Column("max", "message_max", time_ps),
        Column("packets", "packet_count", count, drop=2),
        packets("packet\nmean", _written("packet_mean"), note="packets: from the offer to the adapter to the delivery"),
        packets("packet\n99%", _written("packet_p99")),
    ]


def _written(key: str) -> Callable[[Row], str | None]:
    """A latency of a row, and below it half the width of its interval, where it has one."""

    def written(row: Row) -> str | None:
        value, low, high = (row.get(f"{key}{end}") for end in ("", "_low", "_high"))
        if value is None:
            return None
        is_mean = key.endswith("_mean")
        of = key.removesuffix("_mean")
        spread = (row[f"{of}_p50"], row[f"{of}_min"], row[f"{of}_max"]) if is_mean else None
        text = amount(value, low, high, time_ps, spread, resolution=0.0 if is_mean else BUCKET_WIDTH)
        shown, mark, rest = text.partition(" ±" if " ±" in text else " (")
        return f"{shown}\n{mark.lstrip()}{rest}" if mark else shown

    return written


def _table_rows(merged: pl.DataFrame, level: str, names: pl.Series) -> list[Row | None]:
    """Of each name the latencies of its messages and of its packets, in one row."""
    rows: dict[str, dict[str, object]] = {name: {"label": name} for name in names}
    for row in merged.filter(pl.col("level") == level).iter_rows(named=True):
        named = {f"{row['of']}_{key}": value for key, value in row.items()}
        rows.setdefault(row["label"], {"label": row["label"]}).update(named)
    return list(rows.values())


def by_kind(series: Series) -> Iterator[Table]:
    """The latencies of each job and traffic kind, for pages."""
    known = {name: run.latency for name, run in series.runs.items() if run.latency is not None and run.latency.height}
    if not known:
        return
    table = pl.concat([latencies.select(pl.lit(name).alias("run"), pl.all()) for name, latencies in known.items()])
    rows = table.rename(lambda name: name.replace("_ps", "")).to_dicts()
    quantiles = {"p50": "50%", "p90": "90%", "p99": "99%", "p999": "99.9%"}
    shown = [
        *series.run_column,
        *(Column(name, key, left=True) for name, key in (("job", "name"), ("kind", "kind"), ("of", "of"))),
        Column("count", "count", count),
        Column("mean", with_interval("mean", time_ps)),
        *(Column(heading, with_interval(key, time_ps, resolution=BUCKET_WIDTH)) for key, heading in quantiles.items()),
        Column("max", "max", time_ps),
    ]
    yield Table(
        shown,
        rows,
        "Latency by job and kind of traffic",
        note=f"±: {COVERAGE:.0%} intervals over simulated time.",
        sentence=f"Messages and packets of {plural(table['kind'].n_unique(), 'kind')} of traffic.",
        only_page=True,
        data=table,
    )
