"""Load sweeps: accepted throughput and latency by offered load, and where the fabric saturates."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import altair
import polars as pl
from altair import Undefined

from fairlane.engine.tables import PS
from fairlane.results.latency import BUCKET_WIDTH
from fairlane.saturation.results import ACCEPTED_IN_FULL, FEW, Saturation
from fairlane.statistics import COVERAGE, FEWEST
from fairlane.views.charts import Axis, Layer, chart, choice, colour, described, hollow, layers, whiskers
from fairlane.views.model import Chart, View, lines_of, provenance_of, remarks_of, scenario_of, title_of, together
from fairlane.views.tables import Column, Row, Table, fixed, with_interval
from fairlane.wording import percent, plural, seconds, significant

_NAMES = {"mean": "mean", "p50": "50%", "p99": "99%", "p999": "99.9%"}
_DRAWN = {
    "messages: mean, 99%": ("message_mean", "message_p99"),
    "messages: 50%, 99.9%": ("message_p50", "message_p999"),
    "packets: mean, 99%": ("packet_mean", "packet_p99"),
}
"""Latencies that the chart shows at a time."""
_HEIGHT = 260


def view(sweeps: Mapping[str, Saturation]) -> View:
    """One sweep, or several against each other."""
    rows = [row for name, sweep in sweeps.items() for row in _rows(name, sweep)]
    return View(
        title=title_of(sweeps, "load sweep"),
        headline="\n".join(lines_of(sweeps, Saturation.headline)),
        facts=lines_of(sweeps, _facts),
        parts=[*_charts(sweeps, rows), _table(sweeps, rows)],
        remarks=[*_EXPLAINED, *remarks_of(sweeps, _remarks)],
        provenance=provenance_of(sweeps),
    )


def _rows(name: str, sweep: Saturation) -> Iterator[dict[str, Any]]:
    """The points of a sweep, latencies in seconds."""
    times = [column for column in sweep.points.columns if "_ps" in column]
    points = sweep.points.with_columns(pl.col(times) * PS).rename({time: time.replace("_ps", "") for time in times})
    yield from ({"sweep": name, **row} for row in points.iter_rows(named=True))


def _facts(sweep: Saturation) -> str:
    meta = sweep.meta
    measured, warm_up = (seconds(time * PS) for time in (meta["duration_ps"] - meta["warm_up_ps"], meta["warm_up_ps"]))
    what = f"{plural(sweep.points.height, 'load')} on {plural(len(meta['seeds']), 'seed')}"
    return f"{scenario_of(sweep)}, {what}, {measured} measured after {warm_up} of warm-up"


_EXPLAINED = (
    "Offered, accepted: shares of the injection bandwidth of the sending ranks, headers included. Latency: of "
    f"messages delivered after the warm-up, from generation to last byte. ±: {COVERAGE:.0%} over seeds; "
    f"none where all values are equal, nor of a quantile that fewer than {FEWEST} messages of a seed exceed.",
    f"Saturated: the whole interval of accepted over offered is below {ACCEPTED_IN_FULL:.0%}; latencies there grow "
    "with the simulated time.",
)


def _remarks(sweep: Saturation) -> Iterator[str]:
    """Where saturation lies, and what is weak about the figures."""
    yield f"{_highest(sweep)}."
    yield from sweep.repeated()
    if len(sweep.meta["seeds"]) < 2:
        yield "One seed gives no confidence interval, so saturation is undecided: use --replicates 2 or more."
    few = [f"{row['load']:g}" for row in sweep.points.iter_rows(named=True) if (row["message_count"] or 0) < FEW]
    if few:
        yield f"Fewer than {FEW} messages at {', '.join(few)}: use a longer --duration."
    if sweep.meta["partial"]:
        yield "Interrupted: incomplete loads and seeds are left out."


def _highest(sweep: Saturation) -> str:
    if not sweep.points["accepted"].count():
        return "No load was measured"
    best = sweep.points.sort("accepted").row(-1, named=True)
    return f"Highest accepted throughput: {best['accepted']:.3f} at load {best['load']:g}"


def _table(sweeps: Mapping[str, Saturation], rows: Sequence[Row]) -> Table:
    def latency(of: str, heading: str, drop: int) -> Column:
        # A quantile is known to the width of a bucket of its histogram.
        resolution = 0.0 if of.endswith("mean") else BUCKET_WIDTH
        return Column(heading, with_interval(of, seconds, resolution=resolution), drop=drop)

    shown = [
        *_SWEEP[: len(sweeps) - 1],
        Column("load", "load", lambda load: f"{load:g}", left=False),
        Column("offered", "offered", fixed(4), drop=1),
        Column("accepted", with_interval("accepted", fixed(4))),
        latency("message_mean", "latency: mean", 0),
        latency("message_p50", "50%", 2),
        latency("message_p99", "99%", 0),
        latency("message_p999", "99.9%", 3),
        latency("packet_mean", "packets: mean", 4),
        latency("packet_p99", "99%", 4),
        Column("links", "links", significant, drop=4, note="links: those that a packet takes, on average"),
        Column("saturated", "saturated"),
    ]
    saturated, undecided = (sum(row["saturated"] == word for row in rows) for word in ("yes", "undecided"))
    sentence = f"{saturated} of {plural(len(rows), 'load')} are saturated, {undecided} undecided."
    return Table(shown, rows, "Loads", sentence=sentence, data=together(sweeps, "sweep", lambda sweep: sweep.runs))


_SWEEP = [Column("sweep", "sweep")]
_TOLD = [Column("load", "load", lambda load: f"{load:g}"), Column("saturated", "saturated")]


def _charts(sweeps: Mapping[str, Saturation], rows: Sequence[Row]) -> Iterator[Chart]:
    known = [row for row in rows if row["message_mean"] is not None]
    if not known:
        return
    load = Axis.of(
        (row["load"] for row in known), "Offered load, share of the injection bandwidth", "share", scale="linear"
    )
    starts = [sweep.saturation()[1] for sweep in sweeps.values()]
    shade = [] if len(starts) > 1 or starts[0] is None else [_shade(load, starts[0])]
    yield Chart(
        "throughput",
        "Accepted throughput",
        layers(_HEIGHT, *shade, *_throughput(sweeps, known, load)),
        f"{'; '.join(lines_of(sweeps, _highest))}.",
        f"Bars: {COVERAGE:.0%} intervals over seeds. Grey line: all that is offered.",
        known,
        picture="saturation",
    )
    yield Chart(
        "latency",
        "Latency of messages and packets",
        layers(_HEIGHT, *shade, *_latency(sweeps, known, load)),
        f"{'; '.join(lines_of(sweeps, _means))}.",
        f"{'Triangles: the greater of the two. ' if len(sweeps) > 1 else ''}Dashed, hollow: loads that are saturated "
        "or undecided, where latency depends on the simulated time.",
        known,
        picture="saturation",
    )


def _means(sweep: Saturation) -> str:
    known = sweep.points.drop_nulls("message_mean_ps")
    rows = [known.row(at, named=True) for at in (0, -1)] if known.height else []
    ends = " and ".join(f"{seconds(row['message_mean_ps'] * PS)} at load {row['load']:g}" for row in rows)
    return f"Mean message latency: {ends or 'No message arrived'}"


def _shade(load: Axis, start: float) -> Layer:
    """The range of saturated loads."""
    shade: altair.Chart = chart([{"from": start, "to": load.high}]).mark_rect(style="shade")
    return shade.encode(x=load.x("from"), x2="to:Q")


def _throughput(sweeps: Mapping[str, Saturation], rows: Sequence[Row], load: Axis) -> Iterator[Layer]:
    highest = [row[end] for row in rows for end in ("load", "accepted", "accepted_high")]
    accepted = Axis.of(highest, "Throughput", "share", scale="linear")
    offered = chart([{"load": at, "accepted": at} for at in (0.0, load.high)])
    yield offered.mark_line(style="muted", clip=True).encode(x=load.x("load"), y=accepted.y("accepted"))
    percents = [Column(name, with_interval(name, percent)) for name in ("accepted", "offered")]
    told, tooltip = described(rows, [*_SWEEP[: len(sweeps) - 1], *_TOLD, *percents])
    base = chart(told).encode(x=load.x("load"), color=colour("sweep", list(sweeps)))
    yield base.mark_line().encode(y=accepted.y("accepted"))
    yield whiskers(base, accepted, "accepted_low", "accepted_high", vertical=True)
    yield base.mark_point().encode(y=accepted.y("accepted"), tooltip=tooltip)


def _latency(sweeps: Mapping[str, Saturation], rows: Sequence[Row], load: Axis) -> Iterator[Layer]:
    """Two lines for each sweep; colours are those of sweeps, or of a single one those of the latencies."""
    long = [row for of in _DRAWN for row in _long(rows, of)]
    ends = (row[end] for row in long for end in ("value", "value_low", "value_high"))
    axis = Axis.of((end for end in ends if end is None or end > 0), "Latency", "time")
    columns = [
        *_SWEEP[: len(sweeps) - 1],
        *_TOLD,
        Column("latency", "line"),
        Column("", with_interval("value", seconds)),
    ]
    told, tooltip = described(long, columns)
    of, chosen = choice("latency", "Of", list(_DRAWN))
    names = list(_NAMES.values())
    by_line = altair.Color("line:N", sort=names, title=None)
    coloured, shape = (by_line, Undefined) if len(sweeps) == 1 else (colour("sweep", list(sweeps)), _shape(names))
    base = (
        chart(told).transform_filter(chosen).encode(x=load.x("load"), y=axis.y("value"), detail=["sweep:N", "line:N"])
    )
    steady = base.transform_filter("datum.steady").encode(color=coloured)
    yield base.transform_filter("datum.rest").mark_line(strokeDash=[5, 4]).encode(color=coloured)
    yield steady.mark_line()
    yield whiskers(steady, axis, "value_low", "value_high", vertical=True)
    yield steady.mark_point().encode(shape=shape, tooltip=tooltip).add_params(of)
    loose = base.transform_filter("!datum.steady").encode(shape=shape)
    yield hollow(loose, color=coloured, tooltip=tooltip)


def _shape(names: Sequence[str]) -> altair.Shape:
    return altair.Shape("line:N", sort=list(names), legend=None, scale=altair.Scale(range=["circle", "triangle-up"]))


def _long(rows: Sequence[Row], of: str) -> Iterator[dict[str, Any]]:
    """A row for each point of each line: whether it is before the first load that is not steady, or not before it."""
    for latency in _DRAWN[of]:
        line = _NAMES[latency.partition("_")[2]]
        for _, group in groupby((row for row in rows if row[latency] is not None), key=lambda row: row["sweep"]):
            every = list(group)
            first = next((at for at, row in enumerate(every) if row["saturated"] != "no"), len(every))
            for at, row in enumerate(every):
                value = {f"value{end}": row.get(f"{latency}{end}") for end in ("", "_low", "_high")}
                told = {key: row[key] for key in ("sweep", "load", "saturated")}
                yield {**told, **value, "of": of, "line": line, "steady": at < first, "rest": at >= first - 1}
