"""Load sweeps: accepted throughput and latency by offered load, and where the fabric saturates."""

from collections.abc import Iterator, Mapping, Sequence

import altair
import polars as pl
from altair import Undefined

from fairlane.core.statistics import COVERAGE, FEWEST
from fairlane.core.tables import PS
from fairlane.core.wording import percent, plural, seconds, significant
from fairlane.results.latency import BUCKET_WIDTH
from fairlane.study.shipped.saturation.results import ACCEPTED_IN_FULL, FEW, Saturation
from fairlane.views.charts import (
    Axis,
    Layer,
    chart,
    choice,
    colour,
    ends_of,
    hollow,
    layers,
    long,
    offered,
    whiskers,
    with_tooltip,
)
from fairlane.views.model import Chart, View, lines_of, provenance_of, remarks_of, scenario_of, title_of, together
from fairlane.views.tables import Column, Table, fixed, naming, with_interval

PICTURES = {"saturation": "accepted throughput and latency by offered load"}
"""Its pictures, and what they show."""
_NAMES = {"mean": "mean", "p50": "50%", "p99": "99%", "p999": "99.9%"}
_DRAWN = {
    "messages: mean, 99%": (("message", "mean"), ("message", "p99")),
    "messages: 50%, 99.9%": (("message", "p50"), ("message", "p999")),
    "packets: mean, 99%": (("packet", "mean"), ("packet", "p99")),
}
"""Latencies that the chart shows at a time."""
_HEIGHT = 260


def view(sweeps: Mapping[str, Saturation]) -> View:
    """One sweep, or several against each other."""
    points = together(sweeps, "sweep", _points)
    return View(
        title=title_of(sweeps, "load sweep"),
        headline="\n".join(lines_of(sweeps, Saturation.headline)),
        facts=lines_of(sweeps, _facts),
        parts=[*_charts(sweeps, points), _table(sweeps, points)],
        remarks=[*_EXPLAINED, *remarks_of(sweeps, _remarks)],
        provenance=provenance_of(sweeps),
    )


def _points(sweep: Saturation) -> pl.DataFrame:
    """The points of a sweep, latencies in seconds."""
    times = [column for column in sweep.points.columns if "_ps" in column]
    return sweep.points.with_columns(pl.col(times) * PS).rename({time: time.replace("_ps", "") for time in times})


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
    """Yield the place of saturation, and the weaknesses of the figures."""
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


def _table(sweeps: Mapping[str, Saturation], points: pl.DataFrame) -> Table:
    def latency(of: str, heading: str, drop: int) -> Column:
        # A quantile is known to the width of a bucket of its histogram.
        resolution = 0.0 if of.endswith("mean") else BUCKET_WIDTH
        return Column(heading, with_interval(of, seconds, resolution=resolution), drop=drop)

    shown = [
        *naming(sweeps, "sweep"),
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
    saturated, undecided = (int((points["saturated"] == word).sum()) for word in ("yes", "undecided"))
    sentence = f"{saturated} of {plural(points.height, 'load')} are saturated, {undecided} undecided."
    runs = together(sweeps, "sweep", lambda sweep: sweep.runs)
    return Table(shown, points.to_dicts(), "Loads", sentence=sentence, data=runs)


_TOLD = [Column("load", "load", lambda load: f"{load:g}"), Column("saturated", "saturated")]


def _charts(sweeps: Mapping[str, Saturation], points: pl.DataFrame) -> Iterator[Chart]:
    known = points.drop_nulls("message_mean")
    if not known.height:
        return
    load = Axis.of(known["load"], "Offered load, share of the injection bandwidth", "share", scale="linear")
    starts = [sweep.saturation()[1] for sweep in sweeps.values()]
    shade: list[Layer] = []
    if len(starts) == 1 and starts[0] is not None:  # the range of saturated loads
        saturated = chart([{"from": starts[0], "to": load.high}]).mark_rect(style="shade")
        shade.append(saturated.encode(x=load.x("from"), x2="to:Q"))
    yield Chart(
        "throughput",
        "Accepted throughput",
        layers(_HEIGHT, *shade, *_throughput(sweeps, known, load)),
        f"{'; '.join(lines_of(sweeps, _highest))}.",
        f"Bars: {COVERAGE:.0%} intervals over seeds. Grey line: all that is offered.",
        known.to_dicts(),
        picture="saturation",
    )
    yield Chart(
        "latency",
        "Latency of messages and packets",
        _latency(sweeps, known, load, shade),
        f"{'; '.join(lines_of(sweeps, _means))}.",
        f"{'Triangles: the greater of the two. ' if len(sweeps) > 1 else ''}Dashed, hollow: loads that are saturated "
        "or undecided, where latency depends on the simulated time.",
        known.to_dicts(),
        picture="saturation",
    )


def _means(sweep: Saturation) -> str:
    known = sweep.points.drop_nulls("message_mean_ps")
    rows = [known.row(at, named=True) for at in (0, -1)] if known.height else []
    ends = " and ".join(f"{seconds(row['message_mean_ps'] * PS)} at load {row['load']:g}" for row in rows)
    return f"Mean message latency: {ends or 'No message arrived'}"


def _throughput(sweeps: Mapping[str, Saturation], points: pl.DataFrame, load: Axis) -> Iterator[Layer]:
    highest = [*points["load"], *points["accepted"], *points["accepted_high"]]
    accepted = Axis.of(highest, "Throughput", "share", scale="linear")
    offered = chart([{"load": at, "accepted": at} for at in (0.0, load.high)])
    yield offered.mark_line(style="muted", clip=True).encode(x=load.x("load"), y=accepted.y("accepted"))
    percents = [Column(name, with_interval(name, percent)) for name in ("accepted", "offered")]
    base, tooltip = with_tooltip(points.to_dicts(), [*naming(sweeps, "sweep"), *_TOLD, *percents])
    base = base.encode(x=load.x("load"), color=colour("sweep", list(sweeps)))
    yield base.mark_line().encode(y=accepted.y("accepted"))
    yield whiskers(base, accepted, "accepted_low", "accepted_high", vertical=True)
    yield base.mark_point().encode(y=accepted.y("accepted"), tooltip=tooltip)


def _latency(
    sweeps: Mapping[str, Saturation], points: pl.DataFrame, load: Axis, shade: Sequence[Layer]
) -> altair.LayerChart:
    """Two lines for each sweep; colours are those of sweeps, or of a single one those of the latencies."""
    # Lines are steady up to the first load that is not; the last steady one begins their rest, too.
    before = (pl.col("saturated") != "no").cum_sum().over("sweep") == 0
    rest = ~before | (~before).shift(-1, fill_value=False).over("sweep")
    lines = {f"{of}_{end}": (what, _NAMES[end]) for what, latencies in _DRAWN.items() for of, end in latencies}
    kept = points.select("sweep", "load", "saturated", rf"^({'|'.join(lines)})(_low|_high)?$", steady=before, rest=rest)
    rows = [
        {**row, "of": lines[row["of"]][0], "line": lines[row["of"]][1]}
        for row in long(kept, {key: key for key in lines}).to_dicts()
    ]
    axis = Axis.of((end for end in ends_of(rows) if end is None or end > 0), "Latency", "time")
    told = [*naming(sweeps, "sweep"), *_TOLD, Column("latency", "line"), Column("", with_interval("value", seconds))]
    base, tooltip, choices = offered(rows, told, choice("latency", "Of", list(_DRAWN)))
    names = list(_NAMES.values())
    circles = altair.Scale(range=["circle", "triangle-up"])
    of_line = altair.Shape("line:N", sort=names, legend=None, scale=circles) if len(sweeps) > 1 else Undefined
    by_line = altair.Color("line:N", sort=names, title=None)
    coloured = colour("sweep", list(sweeps)) if len(sweeps) > 1 else by_line
    base = base.encode(x=load.x("load"), y=axis.y("value"), detail=["sweep:N", "line:N"])
    steady = base.transform_filter("datum.steady").encode(color=coloured)
    loose = base.transform_filter("!datum.steady").encode(shape=of_line)
    return layers(
        _HEIGHT,
        *shade,
        base.transform_filter("datum.rest").mark_line(strokeDash=[5, 4]).encode(color=coloured),
        steady.mark_line(),
        whiskers(steady, axis, vertical=True),
        steady.mark_point().encode(shape=of_line, tooltip=tooltip),
        hollow(loose, color=coloured, tooltip=tooltip),
        choices=choices,
    )
