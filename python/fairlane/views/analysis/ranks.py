"""Where the time of a job's ranks went (Smith et al. 2018, Figure 3), and its iterations (Figure 10)."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from fairlane.analysis import Analysis, dominant_share, spread
from fairlane.results.views import has_timed_parts
from fairlane.views.analysis.spans import OWN_WORK, REASONS
from fairlane.views.charts import Axis, Layer, chart, colour, described, layers, whiskers
from fairlane.views.model import Chart
from fairlane.views.rows import Rows, bars
from fairlane.views.tables import Column, Row, Table, columns
from fairlane.wording import percent, plural, seconds

MOST_CALLS = 8
"""Calls that are drawn, and that a terminal lists: those with most time."""
_ROOM = 1.15
"""How far an axis reaches beyond bars that have their value beside them."""


def parts(found: Analysis) -> Iterator[Table | Chart]:
    """Time by what it was spent on and by call, drawn and as tables."""
    if not found.breakdown.height:
        return
    ranks = f"{plural(found.breakdown.height, 'rank')} of {found.job}"
    rows = [{**row, "part": _NAMES.get(row["part"], row["part"])} for row in spread(found.breakdown).to_dicts()]
    calls = found.calls.to_dicts()
    share = f"Waits and allreduce take {percent(dominant_share(found.calls))} of the time in MPI."
    said = share if calls else "No MPI call was made."
    note = f"Bars: means of {ranks}; lines: the range over ranks."
    yield Chart("breakdown", "Time of a rank", layers(150, *_breakdown(rows), zoom=("x",)), said, note, rows)
    if calls:
        drawn = calls[:MOST_CALLS]
        bottom = layers(max(60, 30 * len(drawn)), *_calls(drawn), zoom=("x",))
        yield Chart("calls", "MPI calls", bottom, share, "", calls, picture="breakdown")
    yield _ranks(rows)
    if calls:
        listed = [
            *columns(call="call", count="calls"),
            Column("time", "time_s", seconds),
            Column("share", "share", percent),
        ]
        yield Table(listed, calls, f"MPI calls: {share[0].lower()}{share[1:-1]}", sentence=share, most=MOST_CALLS)


_NAMES = {"compute": OWN_WORK}


def _ranks(rows: Sequence[Row]) -> Table:
    def name(row: Row) -> str:
        return row["part"] if row["part"] in (OWN_WORK, "communication") else f"  {row['part']}"

    statistics = columns(seconds, min="min", mean="mean", max="max", deviation="deviation")
    means = " and ".join(f"{row['part']} takes {seconds(row['mean'])}" for row in rows[:2])
    said = f"Of a rank's time, {means} on average."
    return Table([Column("spent on", name), *statistics], rows, "Time of a rank, whole run", sentence=said)


def _breakdown(rows: Sequence[Row]) -> Iterator[Layer]:
    places = Rows([row["part"] for row in rows])
    axis = Axis.of([0.0, *(_ROOM * row["max"] for row in rows)], "Time of a rank", "time")
    shown, tooltip = described(rows, [Column("spent on", "part"), *columns(seconds, min="min", mean="mean", max="max")])
    placed: list[dict[str, Any]] = [
        places.place({**row, "zero": 0.0, "text": seconds(row["mean"])}, row["part"]) for row in shown
    ]
    base = chart(placed).encode(y=places.y("at"))
    yield bars(placed, axis, places, "zero", "mean", color=colour("part", REASONS, shown=()), tooltip=tooltip)
    yield whiskers(base, axis, "min", "max", vertical=False, style="ink")
    yield base.mark_text(style="text", align="left", dx=8).encode(x=axis.x("max"), text="text:N")


def _calls(rows: Sequence[Row]) -> Iterator[Layer]:
    places = Rows([row["call"] for row in rows])
    axis = Axis.of([0.0, *(_ROOM * (row["share"] or 0.0) for row in rows)], "Share of the time in MPI", "share")
    told = [
        Column("call", "call"),
        Column("calls", "count"),
        Column("time", "time_s", seconds),
        Column("share", "share", percent),
    ]
    shown, tooltip = described(rows, told)
    placed = [places.place({**row, "zero": 0.0, "text": percent(row["share"])}, row["call"]) for row in shown]
    yield bars(placed, axis, places, "zero", "share", tooltip=tooltip)
    label = chart(placed).mark_text(style="text", align="left", dx=6)
    yield label.encode(x=axis.x("share"), y=places.y("at"), text="text:N")


def iterations(found: Analysis) -> Iterator[Chart]:
    """Time over iterations, in the co-run and isolated; nothing if the job has fewer than two."""
    if found.iterations.height < 2:
        return
    note = "An iteration lasts from the last rank's mark before it to the last rank's mark."
    if has_timed_parts(found.run.completions, found.job):
        note = "The timed part of each iteration, of its slowest rank."
    drawn = layers(240, *_iterations(found))
    yield Chart("iterations", f"Iterations of {found.job}", drawn, _slowest(found), note, found.iterations.to_dicts())


def _iterations(found: Analysis) -> Iterator[Layer]:
    runs = {"isolated run": "isolated_seconds", "co-run": "seconds"}
    runs = {name: key for name, key in runs.items() if key in found.iterations.columns}
    rows = [
        {"iteration": row["iteration"], "run": name, "time": row[key]}
        for name, key in runs.items()
        for row in found.iterations.iter_rows(named=True)
        if row[key] is not None
    ]
    number = Axis.of((row["iteration"] for row in rows), "Iteration", "count", scale="linear", zero=False)
    times = [row["time"] for row in rows]
    time = Axis.of([*times, 1.1 * max(times)], "Time", "time")
    shown, tooltip = described(
        rows, [Column("iteration", "iteration"), Column("run", "run"), Column("time", "time", seconds)]
    )
    base = chart(shown).encode(x=number.x("iteration"), y=time.y("time"), color=colour("run", list(runs)))
    yield base.mark_line(strokeWidth=1.2)
    yield base.mark_point(size=20).encode(tooltip=tooltip)
    span = found.chosen.span
    chosen = [row for row in rows if (row["iteration"], row["run"]) == (span.iteration, "co-run")]
    for row in chosen:
        right = row["iteration"] > (number.low + number.high) / 2
        label = chart([{**row, "text": f"{span.name}: {row['iteration']}, {seconds(row['time'])}"}])
        label = label.encode(x=number.x("iteration"), y=time.y("time"))
        yield label.mark_point(filled=False, size=120, style="ink", strokeWidth=1.6)
        yield label.mark_text(style="text", fontWeight="bold", align="right" if right else "left", dy=-14).encode(
            text="text:N"
        )


def _slowest(found: Analysis) -> str:
    span = found.chosen.span
    if found.isolated is None or span.iteration is None:
        return f"{plural(found.iterations.height + 1, 'iteration')} of {found.job}."
    row = found.iterations.row(by_predicate=pl.col("iteration") == span.iteration, named=True)
    ratio = row["seconds"] / row["isolated_seconds"]
    return f"{found.job}: iteration {span.iteration} takes {ratio:.2f} times as long as in the isolated run."
