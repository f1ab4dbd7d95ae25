"""Who delays whom: lost time, and queueing delay, by victim and aggressor."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import altair
import numpy as np

from fairlane.core.wording import number, percent, seconds, short_percent, time_unit, with_half_width
from fairlane.results.culprit import HINT, LostTime, cell_of, headline, largest
from fairlane.results.run import Run
from fairlane.results.views import Interference
from fairlane.views.charts import chart, described, picked, stacked
from fairlane.views.heat import MOST_NUMBERS, MOST_TEXTS, Heat, columns_in, rows_in, side, texts
from fairlane.views.model import Chart
from fairlane.views.run.series import Series
from fairlane.views.tables import Column, Estimated, Faint, Row, Table, change, columns

PICTURES = {"interference": "lost time, or queueing delay, by victim and aggressor"}
"""Its pictures, and what they show."""
MOST_COLUMNS = 12
"""With more jobs than this the table of queueing delay is by workload; also where it is too wide for a terminal."""
MOST_JOBS = 60
"""With more jobs than this, rows and columns of the picture are workloads."""
MOST_CELLS = 12
"""Cells of lost time that are listed where the table is too wide."""
ABOUT_LOST = "±: 95% interval over iterations. Losses to several aggressors need not add up to the whole loss."
LOST_TITLE = "Lost time by victim and aggressor: how much longer an iteration takes than without the aggressor"
ABOUT_PERCENT = "Packets queue concurrently: 200% is two queueing packets per rank, all the time."
_OWN = "itself"
_LOST = Estimated("lost_s", lambda row: with_half_width(row["lost_s"], row["lost_s_low"], row["lost_s_high"], seconds))


def charts(series: Series) -> Iterator[Chart]:
    """Of each run the lost time, or the queueing delay where no job was left out; a page has its own matrix."""
    for name, run in series.runs.items():
        suffix, of = (f"-{name}", f"{name}: ") if series.several else ("", "")
        if lost := LostTime.of(run):
            yield _lost(lost, run, suffix, f"{of}lost time" if of else "Lost time by victim and aggressor")
        elif run.interference["queueing_s"].sum() > 0:
            yield _delays(run, suffix, f"{of}queueing delay" if of else "Queueing delay by victim and aggressor")


def tables(series: Series) -> Iterator[Table]:
    """Of each run the lost time and the queueing delay, where they were observed."""
    for name, run in series.runs.items():
        of = f"{name}: " if series.several else ""
        if lost := LostTime.of(run):
            yield lost_table(run, lost, of)
        if run.interference["queueing_s"].sum() > 0:
            yield interference_table(run, "workload" if run.jobs.height > MOST_COLUMNS else "job", of)


def sentence(run: Run) -> str:
    """Say how much of the delay is due to other jobs."""
    matrix = Interference.of(run)
    total = float(matrix.others.sum() + matrix.own.sum())
    if not total:
        return "No packet was queued."
    of_all = f"Other jobs cause {percent(matrix.others.sum() / total)} of all queueing delay."
    return of_all if LostTime.of(run) else f"{headline(run)}. {of_all}"


def _delays(run: Run, suffix: str, title: str) -> Chart:
    by: Literal["job", "workload"] = "job" if run.jobs.height <= MOST_JOBS else "workload"
    matrix = Interference.of(run, by)
    factor, unit = matrix.unit()
    delays = np.column_stack([matrix.others, matrix.own])
    shares = np.column_stack([matrix.share(matrix.others), matrix.share(matrix.own)])
    heat = Heat.of(shares[:, :-1].ravel())
    causes = [*matrix.labels, _OWN]
    rows: list[dict[str, Any]] = []
    for (victim, cause), delay in np.ndenumerate(delays):
        share = float(shares[victim, cause])
        cell = {"victim": matrix.labels[victim], "aggressor": causes[cause], "queueing_s": float(delay), "share": share}
        texts_ = {"text": percent(share), "below": number(delay / factor)} if share else {"text": "0", "below": ""}
        coloured = {"shade": heat.shade(share), "ink": heat.text(share)} if cause < len(matrix.labels) else {}
        if by == "workload" or victim != cause:
            rows.append({**cell, **texts_, "shade": None, "ink": "", **coloured})
    shown = [*matrix.labels, " ", _OWN]
    told = [*columns(victim="victim", aggressor="aggressor"), Column("queueing delay", "queueing_s", seconds)]
    label = "queueing delay, share of the victim's rank time"
    small = f"Small numbers: queueing delay, {unit}. " if len(shown) <= MOST_NUMBERS + 2 else ""
    return Chart(
        f"interference{suffix}",
        title,
        heat_map(rows, heat, matrix.labels, shown, label, [*told, Column("of its rank time", "share", percent)]),
        f"{headline(run)}.",
        f"{small}Rank time: ranks × simulated time; packets queue concurrently, so there can be more than 100%. Grey: "
        f"delay caused by the job's own packets. {HINT}",
        picked(rows, "victim aggressor queueing_s share"),
        picture="interference",
        only_picture=True,
    )


def heat_map(
    rows: list[dict[str, Any]], heat: Heat, victims: list[str], causes: list[str], title: str, told: list[Column]
) -> Callable[[], altair.LayerChart]:
    """Cells in colours, grey where they have none; with their texts where there is room."""

    def made() -> altair.LayerChart:
        said, tooltip = described(rows, told)
        if len(causes) > MOST_NUMBERS + 2:
            said = [{**row, "text": row["text"].removesuffix("%")} for row in said]
        x, y = columns_in("aggressor", causes, "aggressor"), rows_in("victim", victims, "victim")
        base = chart(said).encode(x=x, y=y, tooltip=tooltip)
        known, grey = (base.transform_filter(f"{sign}isValid(datum.shade)") for sign in ("", "!"))
        drawn = [grey.mark_rect(style="band"), known.mark_rect().encode(color=heat.colour("shade", title))]
        room = len(causes) - 2
        written = [texts(known, room), texts(grey, room, plain=True)] if room <= MOST_TEXTS else []
        matrix = stacked(*drawn, *written).resolve_scale(color="independent")
        return matrix.properties(height=max(60, side(len(causes)) * len(victims)))  # type: ignore[no-any-return]

    return made


def _lost(lost: LostTime, run: Run, suffix: str, title: str) -> Chart:
    heat = Heat(0.0, max(float(np.nanmax(lost.share)), 1e-6), log=False)
    factor, unit = time_unit(float(lost.queueing.max(initial=0)))
    rows = []
    for row, column in np.argwhere(np.isfinite(lost.share)).tolist():
        cell, certain = cell_of(lost, row, column), bool(lost.certain[row, column])
        share, delay = cell["share"], float(lost.queueing[row, column])
        text = percent(share, signed=share < 0)
        texts_ = {"text": text if certain else f"({text})", "below": number(delay / factor) if delay else "0"}
        measured = {**cell, "within_noise": not certain, "queueing_s": delay}
        rows.append({**measured, **texts_, "shade": heat.shade(share), "ink": heat.text(share)})
    told = [
        *columns(victim="victim", aggressor="without"),
        Column("lost per iteration", _LOST),
        Column("of its time", "share", change),
        Column("within noise", "within_noise"),
        Column("queueing delay", "queueing_s", seconds),
    ]
    small = f"Small numbers: queueing delay, {unit}. " if len(lost.aggressors) <= MOST_NUMBERS else ""
    return Chart(
        f"lost{suffix}",
        title,
        heat_map(rows, heat, lost.victims, lost.aggressors, "lost time, share of the victim's time", told),
        f"{headline(run)}.",
        f"How much longer an iteration takes than without the aggressor. {small}Brackets: within noise. Losses to "
        "several aggressors need not add up to the whole loss.",
        picked(rows, "victim aggressor lost_s lost_s_low lost_s_high share within_noise queueing_s"),
        picture="interference",
        wide=True,
    )


def interference_table(run: Run, by: Literal["job", "workload"] = "job", of: str = "") -> Table:
    """Rows are victims, columns aggressors: the queueing delay, and its percentage of the row's rank-seconds."""
    by_workload = by == "workload"
    matrix = Interference.of(run, by)
    factor, unit = matrix.unit()
    sums = {"others": matrix.others.sum(axis=1), _OWN: matrix.own}
    keys = [_key(index) for index in range(len(matrix.labels))]
    shares = matrix.share(matrix.others)
    rows: list[Row] = []
    for row, label in enumerate(matrix.labels):
        cells: dict[str, str] = {
            key: Faint("·") if row == at and not by_workload else _written(value / factor, share)
            for at, (key, value, share) in enumerate(zip(keys, matrix.others[row], shares[row], strict=True))
        }
        for name, delay in sums.items():
            cells[name] = _written(delay[row] / factor, matrix.share(delay)[row])
        rows.append({"victim": f"{keys[row]} {label}", **cells})
    whose = "victims of one workload" if by_workload else "the victim"
    return Table(
        [Column("victim \\ aggressor", "victim"), *(Column(key, key) for key in [*keys, *sums])],
        rows,
        f"{of}Who delays whom: queueing delay, {unit}; percent of the rank time of {whose}",
        ABOUT_PERCENT,
        otherwise=None if by_workload else partial(interference_table, run, "workload", of),
        sentence=sentence(run),
    )


def lost_table(run: Run, lost: LostTime, of: str = "") -> Table:
    """Rows are victims, columns aggressors: time lost per iteration, half its interval's width, and its share.

    Letters are those of the interference matrix.
    """
    letters = {name: _key(number) for number, name in enumerate(run.jobs["name"])}
    rows: list[Row] = [
        {"victim": f"{letters[name]} {name}"}
        | {aggressor: _lost_cell(lost, row, column) for column, aggressor in enumerate(lost.aggressors)}
        for row, name in enumerate(lost.victims)
    ]
    return Table(
        [
            Column("victim \\ aggressor", "victim"),
            *(
                Column(letters.get(aggressor_name, aggressor_name), aggressor_name)
                for aggressor_name in lost.aggressors
            ),
        ],
        rows,
        f"{of}{LOST_TITLE}; percent of the victim's time",
        ABOUT_LOST,
        otherwise=partial(lost_list, lost, of),
        sentence=f"{headline(run)}.",
    )


def lost_list(lost: LostTime, of: str = "") -> Table:
    """The largest cells of the same, a row each."""
    cells = [cell_of(lost, *at) for at in largest(lost, MOST_CELLS)]
    shown = [Column("victim", "victim"), Column("aggressor", "aggressor", left=True), Column("lost time", _LOST)]
    return Table([*shown, Column("share", "share", change)], cells, f"{of}{LOST_TITLE}, the largest", ABOUT_LOST)


def _lost_cell(lost: LostTime, row: int, column: int) -> str | None:
    """A cell of the table of lost time; faint where it is within noise."""
    cell = cell_of(lost, row, column)
    lost_time = _LOST(cell)
    if lost_time is None:
        return None
    text = f"{change(cell['share'])}\n{lost_time}".replace(" ±", "\n±")
    return text if lost.certain[row, column] else Faint(text)


def _written(value: float, share: float) -> str:
    return Faint("0") if value == 0 else f"{number(value)}\n{short_percent(share)}"


def _key(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else str(index + 1)
