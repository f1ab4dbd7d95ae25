"""Effects of treatments with their intervals: over all jobs, by workload, job and condition; how they vary.

Means and intervals are those of ``study.replication``: over placements, or over seeds of a study with one placement.
Which changes are beyond noise is decided over all rows of a level together, as ``statistics.comparing`` says.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

import altair
import polars as pl

from fairlane.statistics import COVERAGE, FALSE_DISCOVERIES, Estimate, beyond_noise
from fairlane.study.conditions import CONDITION
from fairlane.study.replication import EFFECTS, distinct, estimate
from fairlane.views.charts import Axis, Layer, caption, chart, choice, described, hollow, layers, rule, whiskers
from fairlane.views.model import Chart
from fairlane.views.study.series import RUN, VALUE, WORDS, Compared, against, ends, in_words
from fairlane.views.tables import Column, Row, Table
from fairlane.wording import listed, plural

LEVELS = {
    "by treatment": (),
    "by workload": ("workload",),
    "by job": ("name", "workload"),
    "by condition": (CONDITION,),
}
"""What the rows of a level are, besides the series: all of it, workloads, jobs, conditions."""
MOST_ROWS = 120
"""Rows of a level in the chart: of more, those with the greatest and the least effects."""
_STEP = 22
"""Height of a row, px."""

Rows = list[dict[str, Any]]


def effects_of(compared: Compared) -> dict[str, Rows]:
    """Rows by level: the series, what the row is of, and W and improvement with intervals and verdicts."""
    several = any(one.work[CONDITION].n_unique() > 1 for one in compared.series)
    return {name: _rows(compared, by) for name, by in LEVELS.items() if name != "by condition" or several}


def _rows(compared: Compared, by: Sequence[str]) -> Rows:
    rows: Rows = []
    estimates: dict[str, list[Estimate | None]] = {column: [] for column in EFFECTS}
    for series in compared.series:
        groups = series.work.group_by(by, maintain_order=True) if by else [((), series.work)]
        for key, group in groups:
            units = distinct(group)[series.unit].n_unique()
            rows.append({"run": series.name, **dict(zip(by, key, strict=True)), "units": units, "unit": series.unit})
            for column in EFFECTS:
                estimates[column].append(estimate(group, column, series.unit))
    for column, found in estimates.items():
        verdicts = iter(beyond_noise([one for one in found if one is not None]))
        for row, one in zip(rows, found, strict=True):
            row.update(ends(one, column))
            row[f"{column}_beyond"] = None if one is None else next(verdicts)
    return rows


def _known(rows: Rows, effect: str) -> Rows:
    """The rows that have an effect, from the least to the greatest."""
    return sorted((row for row in rows if row[effect] is not None), key=lambda row: row[effect])


def forest(compared: Compared, effects: Mapping[str, Rows]) -> Chart:
    """Effects with their intervals, in order; measure, rows and treatment are chosen."""
    measures = compared.effects
    long = [one for level, rows in effects.items() for of in measures for one in _long(level, rows, of)]
    columns = [
        Column("row", "label"),
        VALUE,
        Column("verdict", "verdict"),
        Column("replicates", lambda row: plural(row["units"], row["unit"])),
    ]

    def spec() -> altair.LayerChart:
        told, tooltip = described(long, columns)
        of, chosen = choice("effects_measure", "Measure", [WORDS[name] for name in measures])
        level, chosen_level = choice("effects_rows", "Rows", list(effects), "level")
        run, chosen_run = choice(
            "effects_run", "Treatment", compared.names, "run", "all" if len(compared.series) > 1 else ""
        )
        y = altair.Y("label:N", title=None, sort=altair.EncodingSortField("value", op="max", order="descending"))
        base = chart(told).transform_filter(f"{chosen} && {chosen_level} && {chosen_run}").encode(y=y)
        axis, coloured = Axis.chosen(), compared.colour(only=compared.with_effect(measures[0]))
        every: list[Layer] = [
            rule(0.0, axis, vertical=True),
            whiskers(base, axis, "low", "high", vertical=False),
            hollow(
                base.transform_filter("datum.beyond !== true").encode(x=axis.x("value")),
                color=coloured,
                tooltip=tooltip,
            ),
            caption("effects_measure"),
            base.transform_filter("datum.beyond === true")
            .mark_point(size=70)
            .encode(x=axis.x("value"), color=coloured, tooltip=tooltip)
            .add_params(of, level, run),
        ]
        return layers(0, *every, zoom=("x",)).properties(height=altair.Step(_STEP))

    titled = "Effects of the treatments" if compared.treated else "Co-running jobs against isolated ones"
    note = (
        f"Means over jobs, placements and seeds. Whiskers: {COVERAGE:.0%} interval over {compared.units}; of a single "
        f"run, that within it. Filled: beyond noise (at most {FALSE_DISCOVERIES:.0%} of such findings are expected to "
        "be false); hollow: within noise, or without an interval."
    )
    most = max(len(rows) for rows in effects.values())
    note += (
        f" Of more than {MOST_ROWS} rows, those with the greatest and the least effects." if most > MOST_ROWS else ""
    )
    data = [{"level": name, **row} for name, rows in effects.items() for row in rows]
    columns_of_data = dict.fromkeys(key for row in data for key in row)
    plain = [{key: row.get(key) for key in columns_of_data} for row in data]
    words = effects_sentence(effects["by treatment"], measures[0])
    return Chart("effects", titled, spec, words, note, plain, wide=True, only_page=True)


def _long(level: str, rows: Rows, of: str) -> Iterator[dict[str, Any]]:
    """The rows of a level that have an effect, for the chart."""
    known = _known(rows, of)
    shown = known if len(known) <= MOST_ROWS else [*known[: MOST_ROWS // 2], *known[-MOST_ROWS // 2 :]]
    runs = {row["run"] for row in known}
    keys = LEVELS[level][:1]
    for row in shown:
        beyond = row[f"{of}_beyond"]
        verdict = "not known whether beyond noise" if beyond is None else f"{'beyond' if beyond else 'within'} noise"
        parts = [str(row[key]) for key in keys] + ([row["run"]] if not keys or len(runs) > 1 else [])
        value = {f"value{end}": row[f"{of}{end}"] for end in ("", "_low", "_high")}
        shared = {"of": WORDS[of], "level": level, "run": row["run"], "label": ", ".join(parts)}
        yield {
            **shared,
            **value,
            "low": value["value_low"],
            "high": value["value_high"],
            "beyond": beyond,
            "verdict": verdict,
            "units": row["units"],
            "unit": row["unit"],
        }


def effects_sentence(rows: Rows, effect: str) -> str:
    """The greatest and the least effect over all jobs."""
    known = _known(rows, effect)
    if not known:
        return "No job could be compared."
    best, worst = known[-1], known[0]
    words = f"{best['run']}: {in_words(best, effect)} throughput against {against(effect)}, mean over jobs"
    return f"{words}." if len(known) == 1 else f"{words}; {worst['run']}: {in_words(worst, effect)}."


def has_extremes(effects: Mapping[str, Rows], effect: str) -> bool:
    """Whether several jobs have an effect."""
    return len({row["name"] for row in effects["by job"] if row[effect] is not None}) > 1


def _extreme(compared: Compared, effects: Mapping[str, Rows], of: str) -> Rows:
    """For each series with an effect its worst and its best job and the mean; the least cost to a job first."""
    found: Rows = []
    for series in compared.series:
        jobs = _known([row for row in effects["by job"] if row["run"] == series.name], of)
        mean = next(row for row in effects["by treatment"] if row["run"] == series.name)
        if jobs:
            below = sum(row[of] < 0 for row in jobs)
            found.append(
                {
                    "run": series.name,
                    "worst": jobs[0],
                    "mean": mean,
                    "best": jobs[-1],
                    "below": below,
                    "jobs": len(jobs),
                }
            )
    return sorted(found, key=lambda row: -row["worst"][of])


def extremes(compared: Compared, effects: Mapping[str, Rows]) -> Chart:
    """What each treatment does to its worst, average and best job."""
    long: list[dict[str, Any]] = []
    for of in compared.effects:
        for row in _extreme(compared, effects, of):
            span = {"worst": row["worst"][of], "best": row["best"][of]}
            for which in ("worst job", "mean", "best job"):
                job = row[which.split()[0]]
                value = {f"value{end}": job[f"{of}{end}"] for end in ("", "_low", "_high")}
                shared = {"of": WORDS[of], "run": row["run"], "which": which, **value, **span}
                who = {"job": job.get("name"), "workload": job.get("workload")}
                long.append({**shared, **who, "below": row["below"], "jobs": row["jobs"]})
    columns = [
        RUN,
        Column("which", "which"),
        Column("job", "job"),
        Column("workload", "workload"),
        VALUE,
        Column("below zero", lambda row: f"{row['below']} of {plural(row['jobs'], 'job')}"),
    ]

    def spec() -> altair.LayerChart:
        told, tooltip = described(long, columns)
        measure, chosen = choice("extremes_measure", "Measure", [WORDS[name] for name in compared.effects])
        y = altair.Y("run:N", title=None, sort=altair.EncodingSortField("worst", op="max", order="descending"))
        base = chart(told).transform_filter(chosen).encode(y=y)
        worst = base.transform_filter("datum.which === 'worst job'")
        axis, names = Axis.chosen(), ["worst job", "mean", "best job"]
        marks = altair.Scale(domain=names, range=["triangle-up", "circle", "diamond"])
        colours = altair.Scale(domain=names, range=[altair.ExprRef(f"palette{at}") for at in (1, 7, 0)])
        every: list[Layer] = [
            worst.mark_rule(style="muted", strokeWidth=5, opacity=0.35).encode(x=axis.x("worst"), x2="best:Q"),
            rule(0.0, axis, vertical=True),
            whiskers(worst, axis, "value_low", "value_high", vertical=False),
            caption("extremes_measure"),
            base.mark_point(size=80)
            .encode(
                x=axis.x("value"),
                shape=altair.Shape("which:N", scale=marks, title=None),
                color=altair.Color("which:N", scale=colours, title=None),
                tooltip=tooltip,
            )
            .add_params(measure),
        ]
        return layers(0, *every, zoom=("x",)).properties(height=altair.Step(28))

    note = (
        "Jobs are compared by their means over placements and seeds. The treatment that costs its worst job least is "
        f"at the top. Whiskers: {COVERAGE:.0%} interval of the worst job."
    )
    words = _extremes_sentence(effects["by job"], compared.effects[0])
    return Chart("extremes", "Cost to the worst job, gain of the best", spec, words, note, long, only_page=True)


def extremes_table(compared: Compared, effects: Mapping[str, Rows]) -> Table:
    """The worst and the best job of each treatment by name."""
    of = compared.effects[0]

    def changed(row: Row, which: str) -> str:
        return in_words(row[which], of)

    columns = [
        RUN,
        Column("worst job", lambda row: row["worst"]["name"], left=True),
        Column("change", lambda row: changed(row, "worst")),
        Column("mean over jobs", lambda row: changed(row, "mean")),
        Column("best job", lambda row: row["best"]["name"], left=True),
        Column("change", lambda row: changed(row, "best")),
        Column("below zero", lambda row: f"{row['below']} of {row['jobs']}", drop=1),
    ]
    words = _extremes_sentence(effects["by job"], of)
    title = f"Jobs by treatment: change against {against(of)}"
    return Table(columns, _extreme(compared, effects, of), title, sentence=words, data=pl.DataFrame(effects["by job"]))


def _extremes_sentence(rows: Rows, effect: str) -> str:
    known = _known(rows, effect)
    worst, best = known[0], known[-1]
    if worst[effect] >= 0:
        first = f"No treatment costs a job throughput: the least gain is {in_words(worst, effect)}"
        first = first if effect == "improvement" else f"The lowest W is {in_words(worst, effect)}"
        return f"{first} ({worst['name']}, {worst['run']})."
    if effect == "w":
        return f"{worst['name']} loses most against its isolated run: {in_words(worst, effect)} throughput."
    cost = f"{worst['run']} costs {worst['name']} most: {in_words(worst, effect)} throughput"
    return f"{cost}; {best['name']} gains most, {in_words(best, effect)} with {best['run']}."


def replicates(compared: Compared, effects: Mapping[str, Rows]) -> Chart:
    """Each placement's (or seed's) effect, with the mean and its interval: how certain the effects are."""
    long: list[dict[str, Any]] = []
    means = {row["run"]: row for row in effects["by treatment"]}
    for series in compared.series:
        by_unit = series.work.group_by(series.unit, maintain_order=True).agg(pl.col(*EFFECTS).mean()).sort(series.unit)
        for of in compared.effects:
            shared = {"of": WORDS[of], "run": series.name}
            value = {f"value{end}": means[series.name][f"{of}{end}"] for end in ("", "_low", "_high")}
            if value["value"] is None:
                continue
            known = by_unit.drop_nulls(of)
            for at, (number, one) in enumerate(known.select(series.unit, of).iter_rows()):
                name = placement_name(series.results.meta.placements, number)
                unit = name if series.unit == "placement" else f"seed {number}"
                place = 2 * at / (known.height - 1) - 1 if known.height > 1 else 0.0
                long.append({**shared, "what": unit, "value": one, "place": place})
            long.append({**shared, "what": "mean", **value, "place": 0.0})

    def spec() -> altair.LayerChart:
        told, tooltip = described(long, [RUN, Column("of", "what"), VALUE])
        measure, chosen = choice("replicates_measure", "Measure", [WORDS[name] for name in compared.effects])
        y = altair.Y("run:N", title=None, sort=compared.names)
        offset = altair.YOffset("place:Q", scale=altair.Scale(domain=[-2, 2]))
        base = chart(told).transform_filter(chosen).encode(y=y, yOffset=offset)
        mean, dots = (base.transform_filter(f"datum.what {sign} 'mean'") for sign in ("===", "!=="))
        axis = Axis.chosen()
        every: list[Layer] = [
            rule(0.0, axis, vertical=True),
            dots.mark_point(opacity=0.75).encode(
                x=axis.x("value"),
                color=compared.colour(only=compared.with_effect(compared.effects[0])),
                tooltip=tooltip,
            ),
            whiskers(mean, axis, "value_low", "value_high", vertical=False),
            caption("replicates_measure"),
            mean.mark_tick(style="ink", orient="vertical", thickness=3, size=18)
            .encode(x=axis.x("value"), tooltip=tooltip)
            .add_params(measure),
        ]
        return layers(0, *every, zoom=("x",)).properties(height=altair.Step(34, **{"for": "position"}))

    unit_words = compared.units
    note = (
        f"A dot is the mean over the jobs of one of the {unit_words}. Upright line: mean; whiskers: its {COVERAGE:.0%} "
        f"interval, which needs three {unit_words}."
    )
    words = _replicates_sentence(effects["by treatment"], compared.effects[0])
    return Chart("replicates", f"Variation over {unit_words}", spec, words, note, long, only_page=True)


def placement_name(names: Sequence[str], number: int) -> str:
    """What a study calls a placement."""
    return names[number] if number < len(names) else f"placement {number}"


def needed(row: Row, effect: str) -> int | None:
    """About how many placements (or seeds) the interval of a row would need to exclude zero.

    None without an interval, or if it does exclude it. The width falls with the root of their number.
    """
    value, low, high = (row[f"{effect}{end}"] for end in ("", "_low", "_high"))
    if value is None or low is None or high is None or not value or low > 0 or high < 0:
        return None
    count: int = ceil(row["units"] * ((high - low) / 2 / value) ** 2)
    return count


def _replicates_sentence(rows: Rows, effect: str) -> str:
    known = _known(rows, effect)
    if not any(row[f"{effect}_low"] is not None for row in known):
        most = max(known, key=lambda row: row["units"])
        words = (
            f"There is no interval: with {plural(most['units'], most['unit'])} it is not known how much effects vary"
        )
        return f"{words}; three are needed."
    counts = [(row, needed(row, effect)) for row in known]
    unsure = [f"{row['run']} (about {plural(count, row['unit'])})" for row, count in counts if count is not None]
    if not unsure:
        return f"All {len(known)} intervals exclude zero." if len(known) > 1 else "1 interval excludes zero."
    words = f"The intervals of {listed(unsure)} include zero"
    return f"{words}; in brackets what would be needed if the means stay as they are."
