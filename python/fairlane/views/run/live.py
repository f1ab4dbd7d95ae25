"""Runs in progress: what they have measured so far. A page gets new rows for the same charts while it is looked at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import altair
import polars as pl

from fairlane.core.wording import duration, number, percent, plural, seconds
from fairlane.results.live import State
from fairlane.views.charts import Axis, Layer, described, layers
from fairlane.views.heat import HEAT, MOST_NUMBERS, Heat
from fairlane.views.model import Chart, View
from fairlane.views.page import cells_of
from fairlane.views.tables import Column, Row, Table, change, columns, count

MOST_LINES = 12
"""Jobs whose iterations are drawn."""
MOST_ROWS = 200
"""Jobs in the table."""
MOST_BARS = 24
"""Bars of W: of more jobs, those that are slowed down most."""
MOST_JOBS = 40
"""Rows of the matrix: of more jobs, those with the greatest delays."""
_ROWS = "rows"
"""The name of the data of each chart."""
_TIME = "replace(format(datum.value, '.3~s'), /(-?[0-9.]+)(.*)/, '$1 $2s')"
"""The label of a time in s, with a unit of its own."""


@dataclass(frozen=True)
class _Figure:
    name: str
    title: str
    rows: Callable[[State], list[dict[str, Any]]]
    sentence: Callable[[State, Sequence[Row]], str]
    columns: Sequence[Column]
    """Columns of a tooltip."""
    layers: Callable[[list[altair.Tooltip]], Iterator[Layer]]
    """The layers of the chart, which get the rows as their data."""
    height: int
    note: str = ""
    wide: bool = False
    moves: bool = True
    """Whether its axes can be moved and zoomed."""

    def chart(self, state: State) -> Chart:
        """The chart; of a state without rows, one of an empty row, which is not shown yet."""
        rows = self.rows(state)
        told, tooltip = described(rows or [{}], self.columns)
        spec = layers(self.height, *self.layers(tooltip), zoom=("x", "y") if self.moves else ())
        spec.data = altair.InlineData(values=told, name=_ROWS)
        if self.wide:
            spec = spec.resolve_scale(color="independent")
        sentence = self.sentence(state, rows) if rows else "No data yet."
        return Chart(self.name, self.title, spec, sentence, self.note, rows, wide=self.wide)


def view(state: State, name: str) -> View:
    """Return the view with which a page of the run begins; ``name`` is that of its folder."""
    speed, *others = (figure.chart(state) for figure in _FIGURES)
    started = f"started {state.started.astimezone():%d %b %Y, %H:%M:%S}"
    process = f"process {state.pid} on {state.machine}"
    what = [name, plural(len(state.jobs.name), "job"), f"seed {state.seed}", started, process]
    return View(
        title=state.scenario,
        headline="",
        facts=[" · ".join([*what, f"fairlane {state.version}"])],
        parts=[speed, _links(state), _jobs(state), *others],
        provenance={state.scenario: {"seed": state.seed, "fairlane": state.version, "started": state.started}},
    )


def update(state: State) -> dict[str, Any]:
    """Return the changes: facts, and by the ids of cards rows and exports of charts, rows of tables, and sentences."""
    updates: dict[str, dict[str, Any]] = {key: {} for key in ("charts", "csv", "tables", "sentences")}
    for figure in _FIGURES:
        rows = figure.rows(state)
        updates["charts"][figure.name] = described(rows, figure.columns)[0]
        updates["csv"][figure.name] = pl.DataFrame(rows, infer_schema_length=None).write_csv()
        updates["sentences"][figure.name] = figure.sentence(state, rows) if rows else ""
    for at, table in enumerate((_links(state), _jobs(state)), 1):
        updates["tables"][f"table{at}"] = cells_of(table)
        updates["sentences"][f"table{at}"] = table.sentence
    return {**updates, "facts": dict(_facts(state))}


def _facts(state: State) -> Iterator[tuple[str, str]]:
    """Yield progress and speed of the run, by term."""

    def millions(rate: float | None) -> str:
        return "–" if rate is None else f"{rate / 1e6:.2f} million"

    now = state.progress
    yield "done", percent(now.share)
    yield "simulated", f"{seconds(now.simulated_s)} of {seconds(now.duration_s)}"
    yield "time left", "–" if now.left_s is None else f"about {duration(now.left_s)}"
    yield "time so far", duration(now.elapsed_s)
    yield "packet-hops/s now", millions(now.hops_per_s)
    yield "packet-hops/s, mean", millions(now.packet_hops / now.elapsed_s if now.elapsed_s > 0 else None)
    yield "packet-hops", count(now.packet_hops)
    if now.isolated:
        yield "isolated runs done", f"{now.isolated_done} of {now.isolated}"


def words_of(status: str, note: str | None, state: State | None) -> str:
    """Explain the status of a run; ``state`` is its last one, None if it has ended."""
    if state is not None and state.phase == "storing" and status == "in progress":
        return "The simulations are over; the results are being stored."
    failed = f"{_WORDS['failed']} {note}" if note else _WORDS["failed"]
    return failed if status == "failed" else _WORDS.get(status, note or status)


_WORDS = {
    "in progress": "The run is simulated.",
    "killed": "The process of the run has ended without storing results: it was killed, or the machine was switched "
    "off. This is the last state that it wrote.",
    "failed": "The run has failed, and there are no results.",
    "partial": "The run was interrupted; what it had measured is stored.",
    "finished": "The run has finished.",
}


def _free(title: str, *, time: bool = False, zero: bool = True) -> dict[str, Any]:
    """The options of an axis for rows that change."""
    axis = altair.Axis(title=title, labelOverlap=True, tickCount=6, labelExpr=_TIME if time else altair.Undefined)
    return {"axis": axis, "scale": altair.Scale(zero=zero, nice=False)}


def _course(state: State) -> list[dict[str, Any]]:
    """The speed at instants of wall time."""
    history, now = state.history, state.progress
    points = [*zip(history.elapsed_s, history.hops_per_s, history.simulated_s, strict=True)]
    points += [] if now.hops_per_s is None else [(now.elapsed_s, now.hops_per_s, now.simulated_s)]
    rows = [{"elapsed_s": at, "rate": rate / 1e6, "simulated_s": simulated} for at, rate, simulated in points]
    return rows if len(rows) > 1 else []


def _speeds(_: State, rows: Sequence[Row]) -> str:
    low, high = (end(row["rate"] for row in rows) for end in (min, max))
    return f"Between {low:.2f} and {high:.2f} million packet-hops per second of wall time."


def _draw_speed(tooltip: list[altair.Tooltip]) -> Iterator[Layer]:
    x = altair.X("elapsed_s:Q", **_free("Wall time [s]", zero=False))
    base = altair.Chart().encode(x=x, y=altair.Y("rate:Q", **_free("Million packet-hops/s")))
    yield base.mark_area(opacity=0.12)
    yield base.mark_line()
    yield base.mark_point(size=30, opacity=0).encode(tooltip=tooltip)


def _compared(state: State) -> list[dict[str, Any]]:
    """The jobs that can be compared, those slowed down most first."""
    known = [(w, job) for job, w in zip(state.jobs.name, state.jobs.w, strict=False) if w is not None]
    return [{"job": job, "w": w} for w, job in sorted(known, key=lambda pair: pair[0])[:MOST_BARS]]


def _draw_w(tooltip: list[altair.Tooltip]) -> Iterator[Layer]:
    x, y = altair.X("w:Q", **Axis.chosen().options), altair.Y("job:N", sort=None, title=None)
    yield altair.Chart().mark_bar().encode(x=x, y=y, tooltip=tooltip)


def _iterations(state: State) -> list[dict[str, Any]]:
    """The times per iteration of the first jobs."""
    jobs = [job for job in zip(state.jobs.name, state.jobs.at_s, state.jobs.time_s, strict=False) if job[1]]
    return [
        {"job": name, "at_s": at, "time": time}
        for name, ats, times in jobs[:MOST_LINES]
        for at, time in zip(ats, times, strict=True)
    ]


def _completed(state: State, _: Sequence[Row]) -> str:
    first = f" The first {MOST_LINES} jobs." if len(state.jobs.name) > MOST_LINES else ""
    return f"When jobs completed iterations, and how long these took.{first}"


def _draw_iterations(tooltip: list[altair.Tooltip]) -> Iterator[Layer]:
    base = altair.Chart().encode(
        x=altair.X("at_s:Q", **_free("Simulated time", time=True)),
        y=altair.Y("time:Q", **_free("Time per iteration", time=True)),
        color=altair.Color("job:N", sort=None, legend=altair.Legend(title=None, orient="top", columns=4)),
    )
    yield base.mark_line(strokeWidth=1.6)
    yield base.mark_point(size=16).encode(tooltip=tooltip)


def _cells(state: State) -> list[dict[str, Any]]:
    """The cells of the matrix between the jobs with the greatest delays, in the order of the scenario."""
    names, matrix = state.jobs.name, state.matrix
    every = [*zip(matrix.victim, matrix.aggressor, matrix.queueing_s, strict=True)]
    sums = [0.0] * len(names)
    for victim, aggressor, delay in every:
        for job in {victim, aggressor}:
            sums[job] += delay
    kept = {job for job in sorted(range(len(names)), key=lambda job: -sums[job])[:MOST_JOBS] if sums[job] > 0}
    cells = [cell for cell in sorted(every) if kept.issuperset(cell[:2])]
    time = state.measured_s or 1.0
    shares = [delay / (state.jobs.ranks[victim] * time) for victim, _, delay in cells]
    heat = Heat.of(share for (victim, cause, _), share in zip(cells, shares, strict=True) if victim != cause)
    return [
        {
            "victim": names[victim],
            "aggressor": names[cause],
            "by": "its own packets" if victim == cause else names[cause],
            "delay": delay,
            "share": share,
            "place": None if victim == cause else heat.place(share),
            "text": percent(share) if len(kept) <= MOST_NUMBERS else "",
            "ink": heat.text(share),
        }
        for (victim, cause, delay), share in zip(cells, shares, strict=True)
    ]


def _most_delayed(state: State, rows: Sequence[Row]) -> str:
    kept = state.matrix.kept
    omitted = f" The cells have {percent(kept)} of all queueing delay." if kept < 0.9995 else ""
    most = max((row for row in rows if row["place"] is not None), key=lambda row: row["delay"], default=None)
    until = f"Up to {seconds(state.measured_s or 0.0)}"
    if most is None:
        return f"{until} no job's packets were delayed by another job's.{omitted}"
    share = percent(most["share"])
    return f"{until}, {most['victim']} is delayed most by {most['aggressor']}: {share} of its rank time.{omitted}"


def _draw_matrix(tooltip: list[altair.Tooltip]) -> Iterator[Layer]:
    x = altair.X("aggressor:N", sort=None, axis=altair.Axis(labelAngle=-40, labelOverlap=False))
    y = altair.Y("victim:N", sort=None, axis=altair.Axis(labelOverlap=False))
    base = altair.Chart().encode(x=x, y=y, tooltip=tooltip)
    known, diagonal = (base.transform_filter(f"{sign}isValid(datum.place)") for sign in ("", "!"))
    scale = altair.Scale(domain=[0, 1], range=list(HEAT), interpolate="rgb")
    yield diagonal.mark_rect(style="band")
    yield known.mark_rect().encode(color=altair.Color("place:Q", scale=scale, legend=None))
    yield known.mark_text(fontSize=11).encode(text="text:N", color=altair.Color("ink:N", scale=None))
    yield diagonal.mark_text(style="text", fontSize=11).encode(text="text:N")


def _links(state: State) -> Table:
    links = state.links
    every = zip(links.name, links.active_share, links.stalled_share, strict=True)
    rows = [{"name": name, "active": active, "stalled": stalled} for name, active, stalled in every]
    shown = [*columns(name="link"), *columns(percent, active="utilisation", stalled="stalled")]
    until = seconds(state.measured_s or 0.0)
    return Table(shown, rows, "Busiest links", sentence=f"Shares of the simulated time up to {until}.")


def _jobs(state: State) -> Table:
    jobs = state.jobs
    names = jobs.name[:MOST_ROWS]
    known = (jobs.workload, jobs.ranks, jobs.iterations, jobs.seconds_per_iteration, jobs.w)
    keys = ("name", "workload", "ranks", "iterations", "pace", "w")
    every = zip_longest(names, *(values[: len(names)] for values in known))
    rows = [dict(zip(keys, values, strict=True)) for values in every]
    shown = [
        Column("job", "name"),
        Column("workload", "workload", left=True),
        *columns(count, ranks="ranks", iterations="iterations"),
        Column("time per iteration", "pace", seconds),
        Column("iterations/s", lambda row: number(1 / row["pace"]) if row["pace"] else None),
        Column("W", "w", change),
    ]
    most = f"The first {MOST_ROWS} of {plural(len(jobs.name), 'job')}. " if len(jobs.name) > MOST_ROWS else ""
    return Table(shown, rows, "Jobs", sentence=f"{most}Rates are in simulated time.")


_FIGURES = [
    _Figure(
        "live-speed",
        "Speed of the co-run",
        _course,
        _speeds,
        [
            Column("after the start", "elapsed_s", lambda value: f"{number(value)} s"),
            Column("million packet-hops/s", "rate", number),
            Column("simulated", "simulated_s", seconds),
        ],
        _draw_speed,
        240,
    ),
    _Figure(
        "live-matrix",
        "Interference matrix, so far",
        _cells,
        _most_delayed,
        [
            *columns(victim="victim", by="delayed by"),
            Column("queueing delay", "delay", seconds),
            Column("of its rank time", "share", percent),
        ],
        _draw_matrix,
        360,
        "A cell is the queueing delay of the victim's packets that the aggressor's packets caused, as a share of the "
        "victim's rank time. Grey: a job's own packets.",
        wide=True,
        moves=False,
    ),
    _Figure(
        "live-w",
        "Throughput change against the isolated run (W), so far",
        _compared,
        lambda _, rows: f"{rows[0]['job']} is slowed down most so far: W {change(rows[0]['w'])}.",
        [Column("job", "job"), Column("W", "w", change)],
        _draw_w,
        280,
        "Over all iterations that the co-run and the isolated run have both completed. The report leaves out the "
        "warm-up, and has intervals.",
        moves=False,
    ),
    _Figure(
        "live-iterations",
        "Time per iteration",
        _iterations,
        _completed,
        [Column("job", "job"), *columns(seconds, time="time per iteration", at_s="simulated time")],
        _draw_iterations,
        260,
    ),
]
