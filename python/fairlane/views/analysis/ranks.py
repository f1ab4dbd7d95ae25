"""Parts of the time of a job's ranks (Smith et al. 2018, Figure 3), and its iterations (Figure 10).

Also what the stretches of an analysis are called, and the colours of what a rank's time is spent on.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import polars as pl

from fairlane.core.wording import percent, plural, seconds
from fairlane.results.views import has_timed_parts
from fairlane.sim.analysis.delays import LATE, SLOW
from fairlane.sim.analysis.record import Span
from fairlane.sim.analysis.result import Analysis, dominant_share, spread
from fairlane.views.charts import Axis, Layer, chart, colour, course, described, drawing, whiskers
from fairlane.views.model import Chart
from fairlane.views.rows import Rows, bars
from fairlane.views.tables import Column, Row, Table, columns

NETWORK, OWN_WORK = "network", "computing"
REASONS = (LATE, NETWORK, OWN_WORK, "other MPI", "communication")
"""Parts of the time, in the order of their colours."""
DELAYS = (LATE, SLOW)
"""Kinds of delay, in the order of their colours: slow communication has that of the network."""
MOST_CALLS = 8
"""Calls that are drawn, and that a terminal lists: those with most time."""
_ROOM = 1.15
"""Length of an axis with bars that have their value beside them, over that of the longest bar."""


def which(span: Span) -> str:
    """The iteration, or what else it is, and the round of it."""
    what = span.name if span.iteration is None else f"iteration {span.iteration}"
    return what if span.round is None else f"{what}, round {span.round}"


def stretch(analysis: Analysis) -> str:
    """The stretch that was looked at."""
    span = analysis.chosen.span
    return which(span) if span.iteration is None else f"{which(span)} ({span.name})"


def parts(analysis: Analysis) -> Iterator[Table | Chart]:
    """Time by what it was spent on and by call, drawn and as tables."""
    if not analysis.breakdown.height:
        return
    rows = [{**row, "part": _NAMES.get(row["part"], row["part"])} for row in spread(analysis.breakdown).to_dicts()]
    calls = analysis.calls.to_dicts()
    share = f"Waits and allreduce take {percent(dominant_share(analysis.calls))} of the time in MPI."
    said = share if calls else "No MPI call was made."
    note = f"Bars: means of {plural(analysis.breakdown.height, 'rank')} of {analysis.job}; lines: the range over ranks."
    times = [Column("spent on", "part"), *columns(seconds, min="min", mean="mean", max="max")]
    ends = (_ROOM * row["max"] for row in rows)
    axis = Axis.of([0.0, *ends], "Time of a rank", "time")
    coloured = {"color": colour("part", REASONS, shown=())}
    top = _bars(rows, "part", "mean", axis, times, seconds, reach=("min", "max"), **coloured)
    yield Chart("breakdown", "Time of a rank", drawing(150, top, zoom=("x",)), said, note, rows)
    shown = [*columns(call="call", count="calls"), Column("time", "time_s", seconds), Column("share", "share", percent)]
    if calls:
        most = calls[:MOST_CALLS]
        ends = (_ROOM * (row["share"] or 0.0) for row in most)
        shares = Axis.of([0.0, *ends], "Share of the time in MPI", "share")
        bottom = drawing(max(60, 30 * len(most)), _bars(most, "call", "share", shares, shown, percent), zoom=("x",))
        yield Chart("calls", "MPI calls", bottom, share, "", calls, picture="breakdown")
    yield _ranks(rows)
    if calls:
        yield Table(shown, calls, f"MPI calls: {share[0].lower()}{share[1:-1]}", sentence=share, most=MOST_CALLS)


_NAMES = {"compute": OWN_WORK}


def _ranks(rows: Sequence[Row]) -> Table:
    def name(row: Row) -> str:
        return row["part"] if row["part"] in (OWN_WORK, "communication") else f"  {row['part']}"

    statistics = columns(seconds, min="min", mean="mean", max="max", deviation="deviation")
    means = " and ".join(f"{row['part']} takes {seconds(row['mean'])}" for row in rows[:2])
    said = f"Of a rank's time, {means} on average."
    return Table([Column("spent on", name), *statistics], rows, "Time of a rank, whole run", sentence=said)


def _bars(
    rows: Sequence[Row],
    name: str,
    value: str,
    axis: Axis,
    told: Sequence[Column],
    form: Callable[[float], str],
    reach: tuple[str, str] | None = None,
    **encoding: Any,
) -> Iterator[Layer]:
    """A bar for each row with its value as text beside it, and if wanted the range that it ``reach``es over."""
    places = Rows([row[name] for row in rows])
    placed = [places.place({**row, "zero": 0.0, "text": form(row[value])}, row[name]) for row in rows]
    shown, tooltip = described(placed, told)
    base = chart(shown).encode(y=places.y("at"))
    yield bars(shown, axis, places, "zero", value, tooltip=tooltip, **encoding)
    if reach:
        yield whiskers(base, axis, *reach, vertical=False)
    text = base.mark_text(style="text", align="left", dx=8)
    yield text.encode(x=axis.x(reach[1] if reach else value), text="text:N")


def iterations(analysis: Analysis) -> Iterator[Chart]:
    """Time over iterations, in the co-run and isolated; nothing if the job has fewer than two."""
    if analysis.iterations.height < 2:
        return
    note = "An iteration lasts from the last rank's mark before it to the last rank's mark."
    if has_timed_parts(analysis.run.completions, analysis.job):
        note = "The timed part of each iteration, of its slowest rank."
    made = drawing(240, _iterations(analysis))
    yield Chart(
        "iterations", f"Iterations of {analysis.job}", made, _slowest(analysis), note, analysis.iterations.to_dicts()
    )


def _iterations(analysis: Analysis) -> Iterator[Layer]:
    runs = {"isolated_seconds": "isolated run", "seconds": "co-run"}
    runs = {key: name for key, name in runs.items() if key in analysis.iterations.columns}
    long = analysis.iterations.unpivot([*runs], index="iteration", variable_name="run", value_name="time").drop_nulls()
    rows = long.with_columns(pl.col("run").replace(runs)).to_dicts()
    number = Axis.over(rows, "iteration", "Iteration", "count", scale="linear", zero=False)
    time = Axis.over(rows, "time", "Time", "time", also=[1.1 * max(row["time"] for row in rows)])
    told = [*columns(iteration="iteration", run="run"), Column("time", "time", seconds)]
    channels: dict[str, Any] = {"x": number.x("iteration"), "y": time.y("time")}
    yield from course(rows, told, {"strokeWidth": 1.2}, {"size": 20}, **channels, color=colour("run", [*runs.values()]))
    span = analysis.chosen.span
    for row in rows:
        if (row["iteration"], row["run"]) != (span.iteration, "co-run"):
            continue
        right = row["iteration"] > (number.low + number.high) / 2
        label = chart([{**row, "text": f"{span.name}: {row['iteration']}, {seconds(row['time'])}"}]).encode(**channels)
        yield label.mark_point(filled=False, size=120, style="ink", strokeWidth=1.6)
        text = label.mark_text(style="text", fontWeight="bold", align="right" if right else "left", dy=-14)
        yield text.encode(text="text:N")


def _slowest(analysis: Analysis) -> str:
    span = analysis.chosen.span
    if analysis.isolated is None or span.iteration is None:
        return f"{plural(analysis.iterations.height + 1, 'iteration')} of {analysis.job}."
    row = analysis.iterations.row(by_predicate=pl.col("iteration") == span.iteration, named=True)
    ratio = row["seconds"] / row["isolated_seconds"]
    return f"{analysis.job}: iteration {span.iteration} takes {ratio:.2f} times as long as in the isolated run."
