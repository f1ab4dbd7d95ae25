"""Surveys of failures: how much each job suffers when each cable or switch fails, most critical first."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import altair
import polars as pl

from fairlane.core.statistics import COVERAGE
from fairlane.core.tables import PS
from fairlane.core.wording import listed, percent, plural, seconds, shortened, significant, some
from fairlane.study.shipped.cables.results import Cables
from fairlane.views.charts import Axis, Layer, chart, colour, ends_of, layers, rule, whiskers, with_tooltip
from fairlane.views.model import Chart, View, lines_of, provenance_of, remarks_of, scenario_of, title_of, together
from fairlane.views.tables import Bad, Column, Row, Table, fixed, naming, with_ratio

PICTURES = {"cables": "slowdowns of jobs by failed cable or switch"}
"""Its pictures, and what they show."""
MOST = 10
"""Parts that have a line in the chart."""
MOST_JOBS = 6
"""Jobs that have a column and a colour: those with the greatest slowdowns; of the others the slowest is drawn."""
FEW = 10
"""Iterations or messages below which a slowdown is rough."""
_OTHERS = "other jobs: the slowest"
_MARKS = " At the right: cross, the job failed on some seed; triangle, it completed nothing afterwards."
_LETTERS = 44
"""Of the name of a part in the chart."""
_SLOWDOWN = with_ratio("slowdown", fixed(3))
_JOB = [Column("job", "name", left=True), Column("slowdown", _SLOWDOWN)]


def view(surveys: Mapping[str, Cables], top: int = 10) -> View:
    """One survey, or several against each other; a terminal shows the ``top`` parts of each."""
    first = next(iter(surveys.values()))
    return View(
        title=title_of(surveys, f"critical {first.whats}"),
        headline="\n".join(lines_of(surveys, Cables.headline)),
        facts=lines_of(surveys, _facts),
        parts=[
            *_charts(surveys),
            *(_ranking(survey, name if len(surveys) > 1 else "", top) for name, survey in surveys.items()),
            _jobs(surveys),
        ],
        remarks=[_EXPLAINED, *remarks_of(surveys, _remarks)],
        provenance=provenance_of(surveys),
    )


def _facts(survey: Cables) -> str:
    at, duration = (seconds(survey.meta[name] * PS) for name in ("at_ps", "duration_ps"))
    seeds = plural(len(survey.meta["seeds"]), "seed")
    parts = plural(survey.meta["parts"], survey.what, survey.whats)
    return f"{scenario_of(survey)}: each of {parts} fails after {at} of {duration}, on {seeds}"


_EXPLAINED = (
    "Columns of jobs: time per iteration (of jobs without iterations the mean latency of messages) after the failure, "
    f"over that of the unbroken fork of the seed. In brackets: {COVERAGE:.0%} interval over seeds. "
    "Failed: a packet was lost for good; stalled: completed nothing afterwards."
)


def _remarks(survey: Cables) -> Iterator[str]:
    """Yield the weaknesses of the figures."""
    ranking, runs, jobs = survey.ranking, survey.runs, survey.jobs
    yield from survey.repeated()
    if survey.alike:
        condition = "the difference of the greatest slowdowns, paired by seed, is 0, or its interval contains 0"
        yield f"{survey.alike} of {ranking.height - 1} others cannot be distinguished from the first: {condition}."
    routings = runs["routing"].drop_nulls().unique().sort().to_list()
    if routings:
        yield f"Routes afterwards: {', '.join(routings)}."
    if runs["routing"].null_count():
        yield "Some forks end before routes are recomputed: fail earlier (--at), or set network.sweep_time."
    if len(survey.meta["seeds"]) < 3:
        yield "Fewer than three seeds give no confidence interval: use --replicates 3 or more."
    few = jobs.filter((pl.col("count") < FEW) & ~pl.col("failed") & ~pl.col("stalled"))["name"].unique().sort()
    if few.len():
        yield f"Fewer than {FEW} iterations or messages compared: {some(few.to_list(), 6)}. Use a longer --duration."
    errors = runs.drop_nulls("error")
    if errors.height:
        row = errors.row(0, named=True)
        which = f"{row['part']}, seed {row['seed']}"
        yield f"{plural(errors.height, 'fork')} cannot continue; {which}: {row['error']}"
    if survey.meta["partial"]:
        yield "Interrupted: what is not complete is left out."


def _ranking(survey: Cables, name: str, top: int) -> Table:
    """A row for each part, with a column for each of few jobs."""
    by_part: dict[str, dict[str, Row]] = {}
    for row in survey.slowdowns.iter_rows(named=True):
        by_part.setdefault(row["part"], {})[row["name"]] = row
    names = survey.slowdowns["name"].unique(maintain_order=True).to_list()
    lost = survey.runs.group_by("part").agg(pl.col("packets_lost").mean(), pl.col("routing").drop_nulls().first())
    ranking = survey.ranking.join(lost, on="part", how="left", maintain_order="left")
    rows = [{**row, "of_jobs": by_part.get(row["part"], {})} for row in ranking.iter_rows(named=True)]
    greatest = [Column("job", "worst_job", left=True), Column("greatest\nslowdown", _SLOWDOWN)]
    columns = [Column(job, partial(_of_job, job)) for job in names] if len(names) <= MOST_JOBS else greatest
    counts = {"jobs_failed": "jobs\nfailed", "jobs_stalled": "jobs\nstalled", "hosts_cut_off": "hosts\ncut off"}
    shown = [
        Column("rank", "rank", str, left=False),
        Column(survey.what, "part", left=True),
        *columns,
        *(Column(heading, key, lambda value: f"{value:.3g}") for key, heading in counts.items()),
        Column("packets\nlost", "packets_lost", significant, drop=2),
        Column("routes\nafterwards", "routing", left=True, drop=3),
    ]
    title = f"{name}: {survey.whats}" if name else f"{survey.whats[0].upper()}{survey.whats[1:]}"
    data = ranking.drop("behind", "behind_low", "behind_high")
    return Table(shown, rows, title, sentence=_harmed(survey), most=top, data=data)


def _of_job(name: str, row: Row) -> str | None:
    """The slowdown of a job, and whether it failed or stalled on any seed."""
    job = row["of_jobs"].get(name)
    if job is None:
        return None
    state = _state(job)
    if job["slowdown"] is None:
        return Bad(state.split()[0]) if state else None
    value = _SLOWDOWN(job)
    return Bad(f"{value}, {state}") if state else value


def _state(job: Row) -> str:
    """The share of seeds on which a job failed, or stalled."""
    return next((f"{state} in {job[state]:.0%}" for state in ("failed", "stalled") if job[state]), "")


def _harmed(survey: Cables) -> str:
    ranking = survey.ranking
    whole = plural(ranking.height, survey.what, survey.whats)
    harmed = ranking.filter((pl.col("jobs_failed") > 0) | (pl.col("jobs_stalled") > 0)).height
    cut = ranking.filter(pl.col("hosts_cut_off") > 0).height
    if not harmed and not cut:
        return f"Of {whole}, none makes a job fail or stall or cuts a host off."
    return f"Of {whole}, {harmed} make jobs fail or stall, and {cut} cut hosts off."


def _jobs(surveys: Mapping[str, Cables]) -> Table:
    """A row for each part and job, for pages."""
    shown = [
        *naming(surveys, "survey"),
        Column("what fails", "part", left=True),
        *_JOB,
        Column("without a failure", "unbroken_s", seconds, note="without a failure: time per iteration, or latency"),
        Column("failed", "failed", percent, note="failed, stalled: share of the seeds"),
        Column("stalled", "stalled", percent),
    ]
    data = together(surveys, "survey", lambda survey: survey.slowdowns)
    known = data.drop_nulls("slowdown").sort("slowdown", descending=True)
    worst = "No job completed anything in both forks."
    if known.height:
        row = known.row(0, named=True)
        worst = f"{row['name']} suffers most: slowdown {significant(row['slowdown'], 3)} if {row['part']} fails."
    return Table(shown, data.to_dicts(), "Jobs", sentence=worst, only_page=True, data=data)


def _charts(surveys: Mapping[str, Cables]) -> Iterator[Chart]:
    first = next((survey for survey in surveys.values() if survey.ranking.height), None)
    if first is None:
        return
    parts = first.ranking["part"].head(MOST).to_list()
    names, rows = _drawn(surveys)
    of_parts = [row for row in rows if row["part"] in parts]
    axis = Axis.of([1.0, *ends_of(of_parts, "slowdown")], "Slowdown against the unbroken fork", zero=False)
    harm = _MARKS if any(row["state"] for row in of_parts) else ""
    shapes = f" Circles, squares, triangles: {listed(list(surveys))}." if len(surveys) > 1 else ""
    height = len(parts) * max(26, 9 * len(names) * len(surveys))
    data = [row for row in rows if row["name"] != _OTHERS]
    yield Chart(
        "slowdowns",
        f"Slowdown by failure: the most critical {first.whats}",
        layers(height, *_critical(surveys, parts, names, of_parts, axis), zoom=("x",)),
        f"{'; '.join(lines_of(surveys, Cables.headline))}.",
        f"Means over seeds. Bars: {COVERAGE:.0%} intervals.{harm}{shapes}",
        data,
        picture="cables",
        wide=True,
    )
    known = [row["slowdown"] for row in rows if row["slowdown"] is not None]
    if not known:
        return
    yield Chart(
        "distribution",
        f"Slowdown, all {first.whats}",
        layers(200, *_distribution(surveys, names, rows, Axis.of([1.0, *known], "Slowdown", zero=False))),
        _harmed(first),
        f"Share of {first.whats} whose failure slows a job down by at most so much; never reached if the job failed.",
        data,
        picture="cables",
        wide=True,
    )


def _drawn(surveys: Mapping[str, Cables]) -> tuple[list[str], list[dict[str, Any]]]:
    """The jobs that have a colour, in the order of the scenario, and the rows that are drawn."""
    rows = together(surveys, "survey", lambda survey: survey.slowdowns)
    names = rows["name"].unique(maintain_order=True).to_list()
    if len(names) > MOST_JOBS:
        worst = rows.group_by("name").agg(pl.col("failed").max(), pl.col("slowdown").max())
        kept = set(worst.sort("failed", "slowdown", descending=True, nulls_last=True)["name"].head(MOST_JOBS - 1))
        others = rows.filter(~pl.col("name").is_in(kept)).sort("slowdown", descending=True, nulls_last=True)
        slowest = others.group_by("survey", "part", maintain_order=True).first().with_columns(name=pl.lit(_OTHERS))
        rows = pl.concat([rows.filter(pl.col("name").is_in(kept)), slowest.select(rows.columns)])
        names = [*(name for name in names if name in kept), _OTHERS]
    return names, [{**row, "state": _state(row)} for row in rows.iter_rows(named=True)]


def _critical(
    surveys: Mapping[str, Cables], parts: Sequence[str], names: Sequence[str], rows: Sequence[Row], axis: Axis
) -> Iterator[Layer]:
    """A line for each part, the first one on top, with a point for each job; those that failed at the right."""
    labels = {part: f"{at}  {shortened(part, _LETTERS)}" for at, part in enumerate(parts, 1)}
    columns = [*naming(surveys, "survey"), Column("what fails", "part"), *_JOB]
    columns.append(Column("state", "state", lambda state: state or "completed"))
    marks = [{**row, "label": labels[row["part"]], "series": f"{row['name']} {row['survey']}"} for row in rows]
    base, tooltip = with_tooltip(marks, columns)
    order = list(labels.values())
    y = altair.Y("label:N", sort=order, title=None, scale=altair.Scale(domain=order, paddingInner=0.15))
    series = [f"{name} {survey}" for name in names for survey in surveys]
    offset = altair.YOffset("series:N", sort=series, scale=altair.Scale(domain=series, padding=0.6))
    shade = chart([{"label": label} for label in order[1::2]]).mark_rect(style="band")
    yield shade.encode(y=altair.Y("label:N", sort=order, title=None))
    yield rule(1.0, axis, vertical=True)
    base = base.encode(y=y, yOffset=offset, color=colour("name", names))
    yield whiskers(base, axis, "slowdown_low", "slowdown_high", vertical=False)
    for state, symbol, angle in (("failed", "cross", 45), ("stalled", "triangle-right", 0)):
        of_state = base.transform_filter(f"indexof(datum.state, '{state}') === 0")
        mark = of_state.mark_point(shape=symbol, angle=angle, size=70, xOffset=-8)
        yield mark.encode(x=altair.value("width"), tooltip=tooltip)
    shape = altair.Shape("survey:N", sort=list(surveys), legend=None)
    known = base.transform_filter("isValid(datum.slowdown)")
    yield known.mark_point().encode(x=axis.x("slowdown"), shape=shape, tooltip=tooltip)


def _distribution(
    surveys: Mapping[str, Cables], names: Sequence[str], rows: Sequence[Row], axis: Axis
) -> Iterator[Layer]:
    """Of each job the share of parts whose slowdown is at most so much."""
    steps: list[dict[str, Any]] = []
    for name in names:
        for survey in surveys:
            slowdowns = [row["slowdown"] for row in rows if (row["name"], row["survey"]) == (name, survey)]
            known = sorted(value for value in slowdowns if value is not None)
            shares = [at / len(slowdowns) for at in range(1, len(known) + 1)]
            ends = [(axis.low, 0.0), *zip(known, shares, strict=True), *([(axis.high, shares[-1])] if shares else [])]
            steps += [{"name": name, "survey": survey, "slowdown": value, "share": share} for value, share in ends]
    share = Axis.of([0.0, 1.0], f"Share of {next(iter(surveys.values())).whats}", "share", scale="linear")
    columns = [_JOB[0], Column("slowdown", "slowdown", significant), Column("share", "share", percent)]
    base, tooltip = with_tooltip(steps, columns)
    yield rule(1.0, axis, vertical=True)
    dash = altair.StrokeDash("survey:N", sort=list(surveys), legend=None)
    base = base.encode(x=axis.x("slowdown"), y=share.y("share"), color=colour("name", names), strokeDash=dash)
    yield base.mark_line(interpolate="step-after", clip=True).encode(tooltip=tooltip)
