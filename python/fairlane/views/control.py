"""Gains by a controller from period to period, and over all of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import altair

from fairlane.core.statistics import Estimate, ratio_change
from fairlane.core.wording import percent, plural
from fairlane.results.derive import interval
from fairlane.results.milestones import common
from fairlane.sim.controller import JobWork, Outcome, Work
from fairlane.views.charts import Axis, Layer, colour, course, drawing, rule
from fairlane.views.model import Chart, View
from fairlane.views.tables import Column, Row, Table, change, columns, with_change

_PERIOD = [Column("period", "period", str), Column("state", "state", left=True), Column("adopted", "adopted")]
_MEANS = columns(change, mean="mean", worst="worst", best="best")


def view(outcomes: Sequence[Outcome], name: str) -> View:
    """The periods of a controller; ``name`` is the scenario's and the controller's."""
    periods = [period_row(outcome) for outcome in outcomes]
    mean = sum(row["mean"] for row in periods) / len(periods)
    adopted = sum(outcome.accepted for outcome in outcomes)
    over = plural(len(outcomes), "period")
    said = f"Mean improvement over the default {percent(mean, signed=True)}, over {over}"
    return View(
        title=name,
        headline=said,
        facts=[f"{name}, {outcomes[0].mode}, {over}, {adopted} with settings that were adopted"],
        parts=[_chart(outcomes, periods, said), _totals(outcomes), _periods(periods)],
    )


def period_row(outcome: Outcome) -> dict[str, Any]:
    """A period with the mean, the least and the greatest improvement of its jobs."""
    gains = [gain for job in outcome.treated.jobs if (gain := outcome.improvement(job)) is not None]
    ends = {"worst": min(gains, default=0.0), "best": max(gains, default=0.0)}
    adopted = "yes" if outcome.accepted else ""
    return {
        "period": outcome.period,
        "state": outcome.state,
        "adopted": adopted,
        "mean": outcome.mean_improvement,
        **ends,
    }


def _chart(outcomes: Sequence[Outcome], periods: Sequence[Row], said: str) -> Chart:
    rows = [
        {"period": outcome.period, "state": outcome.state, "job": job, "gain": outcome.improvement(job)}
        for outcome in outcomes
        for job in outcome.treated.jobs
    ]
    return Chart(
        "improvement",
        "Improvement by period",
        drawing(300, _layers([row for row in rows if row["gain"] is not None], periods)),
        f"{said}.",
        "Throughput of each job against its default run of the same period; thick: their mean; dots on it: adopted "
        "settings.",
        rows,
        wide=True,
    )


def _layers(rows: Sequence[Row], periods: Sequence[Row]) -> Iterator[Layer]:
    number = Axis.over(periods, "period", "Period", "count", scale="linear", zero=False)
    also = [0.0, *(row["mean"] for row in periods)]
    gain = Axis.over(rows, "gain", "Improvement over the default", "change", scale="linear", also=also)
    yield rule(0.0, gain, vertical=False)
    if rows:
        told = [Column("job", "job"), *_PERIOD[:2], Column("improvement", "gain", change)]
        jobs = colour("job", list(dict.fromkeys(row["job"] for row in rows)))
        channels: dict[str, Any] = {"x": number.x("period"), "y": gain.y("gain"), "color": jobs}
        yield from course(rows, told, {"strokeWidth": 1, "opacity": 0.7}, {"size": 14}, **channels)
    size: Any = altair.condition("datum.adopted === 'yes'", altair.value(70), altair.value(1))
    ink: dict[str, Any] = {"style": "ink"}
    channels = {"x": number.x("period"), "y": gain.y("mean")}
    line, points = course(periods, [*_PERIOD, *_MEANS], {**ink, "strokeWidth": 2.6}, ink, **channels)
    yield line
    yield points.encode(size=size)


def _periods(periods: Sequence[Row]) -> Table:
    best = max(periods, key=lambda row: row["mean"])
    said = f"The greatest mean is {change(best['mean'])}, in period {best['period']}."
    return Table([*_PERIOD, *_MEANS], periods, "Periods", sentence=said, only_page=True)


def _totals(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for job in dict.fromkeys(job for outcome in outcomes for job in outcome.jobs):
        default = _total([outcome.default for outcome in outcomes if outcome.default], job)
        treated = _total([outcome.treated for outcome in outcomes], job)
        gain = _by_time(outcomes[-1], job) if outcomes[-1].mode == "online" else _by_period(outcomes, job)
        without = treated.over(default)
        shown = interval("gain", gain or (None if without is None else Estimate(without)))
        rows.append({"job": job, "default": default.done, "treated": treated.done, **shown})
    gains = Column("gain", with_change("gain"))
    said = f"{plural(len(rows), 'job')}; iterations in all periods."
    heads = columns(job="job", default="default", treated="treated")
    return Table([*heads, gains], rows, "Iterations", "±: 95% interval of other periods.", sentence=said)


def _by_time(last: Outcome, job: str) -> Estimate | None:
    """The change of throughput over the iterations that a job completed treated and by default, online."""
    runs = [last.reached[run].get(job) for run in ("treated", "default")]
    paired = common(runs[0], runs[1], warm_up=False) if runs[0] and runs[1] else None
    return paired.estimate if paired else None


def _by_period(outcomes: Sequence[Outcome], job: str) -> Estimate | None:
    """The change of iterations, where the job was there in the same periods, each a simulation of its own."""
    pairs = [(outcome.treated.jobs.get(job), outcome.default and outcome.default.jobs.get(job)) for outcome in outcomes]
    there = [(mine, other) for mine, other in pairs if mine or other]
    if not all(mine and other and mine.seconds == other.seconds for mine, other in there):
        return None
    done = [(mine.fractional, other.fractional) for mine, other in there if mine and other]
    return ratio_change([mine for mine, _ in done], [other for _, other in done], skip=0)


def _total(works: Iterable[Work], job: str) -> JobWork:
    """Add the work of a job in all of these periods, and the time for which it was there."""
    parts = [work.jobs[job] for work in works if job in work.jobs]
    done, seconds = sum(part.done for part in parts), sum(part.seconds or 0.0 for part in parts)
    advance = sum(part.fractional for part in parts)
    return JobWork((done,), compute=(), waiting=(), seconds=seconds, advance=(advance,))
