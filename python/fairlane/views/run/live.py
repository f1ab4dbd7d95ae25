"""Runs in progress: what they have measured so far. A page gets new rows for the same charts while it is looked at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair
import polars as pl

from fairlane.results.live import State
from fairlane.views.charts import Axis, Layer, described, layers, stacked
from fairlane.views.heat import HEAT, MOST_NUMBERS, Heat
from fairlane.views.model import Chart, View
from fairlane.views.page import cells_of
from fairlane.views.tables import Column, Row, Table, change, columns, count
from fairlane.wording import number, percent, plural, seconds

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
Draw = Callable[[list[altair.Tooltip]], altair.LayerChart]


@dataclass(frozen=True)
class _Figure:
    name: str
    title: str
    rows: Callable[[State], list[dict[str, Any]]]
    sentence: Callable[[State, Sequence[Row]], str]
    columns: Sequence[Column]
    """What a tooltip says."""
    draw: Draw
    blank: Row
    """A row for charts that are not shown yet."""
    note: str = ""
    wide: bool = False


def view(state: State) -> View:
    """What a page of the run begins with."""
    charts = [_chart(figure, state) for figure in _FIGURES]
    speed, *others = charts
    return View(
        title=state.scenario,
        headline="",
        facts=[],
        parts=[speed, _links(state), _jobs(state), *others],
        provenance={state.scenario: {"seed": state.seed, "fairlane": state.version, "started": state.started}},
    )


def update(state: State) -> dict[str, Any]:
    """What changes in the page: rows and exports of charts, rows of tables, and sentences, by the ids of its cards."""
    found: dict[str, dict[str, Any]] = {"charts": {}, "csv": {}, "tables": {}, "sentences": {}}
    for figure in _FIGURES:
        rows = figure.rows(state)
        found["charts"][figure.name] = described(rows, figure.columns)[0]
        found["csv"][figure.name] = pl.DataFrame(rows, infer_schema_length=None).write_csv()
        found["sentences"][figure.name] = figure.sentence(state, rows) if rows else ""
    for at, table in enumerate((_links(state), _jobs(state)), 1):
        found["tables"][f"table{at}"] = cells_of(table)
        found["sentences"][f"table{at}"] = table.sentence
    return found


def _chart(figure: _Figure, state: State) -> Chart:
    rows = figure.rows(state)
    told, tooltip = described([*rows] or [figure.blank], figure.columns)
    spec = figure.draw(tooltip)
    spec.data = altair.InlineData(values=told, name=_ROWS)
    words = figure.sentence(state, rows) if rows else "No data yet."
    return Chart(figure.name, figure.title, spec, words, figure.note, rows, wide=figure.wide)


def _base() -> altair.Chart:
    return altair.Chart()


def _free(title: str, kind: Any = "number", *, zero: bool = True) -> dict[str, Any]:
    """The options of an axis for rows that change."""
    axis = altair.Axis(title=title, labelOverlap=True, tickCount=6)
    if kind == "time":
        axis.labelExpr = _TIME
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


def _draw_speed(tooltip: list[altair.Tooltip]) -> altair.LayerChart:
    base = _base().encode(
        x=altair.X("elapsed_s:Q", **_free("Wall time [s]", zero=False)),
        y=altair.Y("rate:Q", **_free("Million packet-hops/s")),
    )
    area = base.mark_area(opacity=0.12)
    return layers(240, area, base.mark_line(), base.mark_point(size=30, opacity=0).encode(tooltip=tooltip))


def _compared(state: State) -> list[dict[str, Any]]:
    """The jobs that can be compared, those slowed down most first."""
    known: list[dict[str, Any]] = [
        {"job": job, "w": w} for job, w in zip(state.jobs.name, state.jobs.w, strict=False) if w is not None
    ]
    return sorted(known, key=lambda row: row["w"])[:MOST_BARS]


def _draw_w(tooltip: list[altair.Tooltip]) -> altair.LayerChart:
    bar = (
        _base()
        .mark_bar()
        .encode(
            x=altair.X("w:Q", **Axis.chosen().options),
            y=altair.Y("job:N", sort=None, title=None),
            tooltip=tooltip,
        )
    )
    return layers(280, bar, zoom=())


def _iterations(state: State) -> list[dict[str, Any]]:
    """The times per iteration of the first jobs."""
    jobs = [*zip(state.jobs.name, state.jobs.at_s, state.jobs.time_s, strict=False)]
    return [
        {"job": name, "at_s": at, "time": time}
        for name, ats, times in [job for job in jobs if job[1]][:MOST_LINES]
        for at, time in zip(ats, times, strict=True)
    ]


def _draw_iterations(tooltip: list[altair.Tooltip]) -> altair.LayerChart:
    base = _base().encode(
        x=altair.X("at_s:Q", **_free("Simulated time", "time")),
        y=altair.Y("time:Q", **_free("Time per iteration", "time")),
        color=altair.Color("job:N", sort=None, legend=altair.Legend(title=None, orient="top", columns=4)),
    )
    points = base.mark_point(size=16).encode(tooltip=tooltip)
    return layers(260, base.mark_line(strokeWidth=1.6), points)


def _cells(state: State) -> list[dict[str, Any]]:
    """The cells of the matrix between the jobs with the greatest delays, in the order of the scenario."""
    names, matrix = state.jobs.name, state.matrix
    every = [*zip(matrix.victim, matrix.aggressor, matrix.queueing_s, strict=True)]
    sums = [0.0] * len(names)
    for victim, aggressor, delay in every:
        for job in {victim, aggressor}:
            sums[job] += delay
    kept = {job for job in sorted(range(len(names)), key=lambda job: -sums[job])[:MOST_JOBS] if sums[job] > 0}
    time = state.measured_s or 1.0
    cells: list[dict[str, Any]] = [
        {"victim": victim, "aggressor": aggressor, "delay": delay, "share": delay / (state.jobs.ranks[victim] * time)}
        for victim, aggressor, delay in sorted(every)
        if victim in kept and aggressor in kept
    ]
    heat = Heat.of(cell["share"] for cell in cells if cell["victim"] != cell["aggressor"])
    for cell in cells:
        itself = cell["victim"] == cell["aggressor"]
        cell |= {
            "place": None if itself else heat.place(cell["share"]),
            "text": percent(cell["share"]) if len(kept) <= MOST_NUMBERS else "",
            "ink": heat.text(cell["share"]),
            "by": "its own packets" if itself else names[cell["aggressor"]],
            "victim": names[cell["victim"]],
            "aggressor": names[cell["aggressor"]],
        }
    return cells


def _most_delayed(state: State, rows: Sequence[Row]) -> str:
    kept = state.matrix.kept
    omitted = f" The cells have {percent(kept)} of all queueing delay." if kept < 0.9995 else ""
    others = sorted((row for row in rows if row["place"] is not None), key=lambda row: -row["delay"])
    until = f"Up to {seconds(state.measured_s or 0.0)}"
    if not others:
        return f"{until} no job's packets were delayed by another job's.{omitted}"
    most = others[0]
    share = percent(most["share"])
    return f"{until}, {most['victim']} is delayed most by {most['aggressor']}: {share} of its rank time.{omitted}"


def _draw_matrix(tooltip: list[altair.Tooltip]) -> altair.LayerChart:
    base = _base().encode(
        x=altair.X("aggressor:N", sort=None, axis=altair.Axis(labelAngle=-40, labelOverlap=False)),
        y=altair.Y("victim:N", sort=None, axis=altair.Axis(labelOverlap=False)),
        tooltip=tooltip,
    )
    scale = altair.Scale(domain=[0, 1], range=list(HEAT), interpolate="rgb")
    known = base.transform_filter("isValid(datum.place)")
    colours: list[Layer] = [
        base.transform_filter("!isValid(datum.place)").mark_rect(style="band"),
        known.mark_rect().encode(color=altair.Color("place:Q", scale=scale, legend=None)),
        known.mark_text(fontSize=11).encode(text="text:N", color=altair.Color("ink:N", scale=None)),
    ]
    own = base.transform_filter("!isValid(datum.place)").mark_text(style="text", fontSize=11).encode(text="text:N")
    made = stacked(*colours, own).resolve_scale(color="independent")
    return made.properties(height=360)  # type: ignore[no-any-return]


def _links(state: State) -> Table:
    links = state.links
    rows = [
        {"name": name, "active": active, "stalled": stalled}
        for name, active, stalled in zip(links.name, links.active_share, links.stalled_share, strict=True)
    ]
    until = seconds(state.measured_s or 0.0)
    shown = [*columns(name="link"), *columns(percent, active="utilisation", stalled="stalled")]
    return Table(shown, rows, "Busiest links", sentence=f"Shares of the simulated time up to {until}.")


def _jobs(state: State) -> Table:
    jobs = state.jobs
    fields: Mapping[str, Sequence[Any]] = {
        "workload": jobs.workload,
        "ranks": jobs.ranks,
        "iterations": jobs.iterations,
        "pace": jobs.seconds_per_iteration,
        "w": jobs.w,
    }
    rows = [
        {"name": name, **{key: values[at] if at < len(values) else None for key, values in fields.items()}}
        for at, name in enumerate(jobs.name[:MOST_ROWS])
    ]
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
        {"elapsed_s": 0.0, "rate": 1.0, "simulated_s": 0.0},
    ),
    _Figure(
        "live-matrix",
        "Interference matrix, so far",
        _cells,
        _most_delayed,
        [
            Column("victim", "victim"),
            Column("delayed by", "by"),
            Column("queueing delay", "delay", seconds),
            Column("of its rank time", "share", percent),
        ],
        _draw_matrix,
        {"victim": "", "aggressor": "", "by": "", "delay": 0.0, "share": 0.0, "place": 0.0, "text": "", "ink": ""},
        "A cell is the queueing delay of the victim's packets that the aggressor's packets caused, as a share of the "
        "victim's rank time. Grey: a job's own packets.",
        wide=True,
    ),
    _Figure(
        "live-w",
        "Throughput change against the isolated run (W), so far",
        _compared,
        lambda _, rows: f"{rows[0]['job']} is slowed down most so far: W {change(rows[0]['w'])}.",
        [Column("job", "job"), Column("W", "w", change)],
        _draw_w,
        {"job": "", "w": 0.0},
        "Over all iterations that the co-run and the isolated run have both completed. The report leaves out the "
        "warm-up, and has intervals.",
    ),
    _Figure(
        "live-iterations",
        "Time per iteration",
        _iterations,
        lambda state, _: (
            "When jobs completed iterations, and how long these took."
            + (f" The first {MOST_LINES} jobs." if len(state.jobs.name) > MOST_LINES else "")
        ),
        [
            Column("job", "job"),
            Column("time per iteration", "time", seconds),
            Column("simulated time", "at_s", seconds),
        ],
        _draw_iterations,
        {"job": "", "at_s": 1.0, "time": 1.0},
    ),
]
